"""ICON's grid files: `open_icon` and `write_icon`, exact inverses of each other.

In a file, tables are (slots, elements) counted from 1, and -1 or 0 stands where there is no neighbour; here
they are (elements, slots) counted from 0, with -1. Coordinates (radian), areas (m²), lengths (m), normals,
refinement markers and attributes are kept under their names, `start_idx_*` and `end_idx_*` as in the file
(counted from 1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from fieldjax.errors import ArgumentError
from fieldjax.mesh import netcdf
from fieldjax.mesh.grid import Grid
from fieldjax.mesh.names import Cell, Edge, Vertex, endpoints
from fieldjax.mesh.tables import SKIP, index_table

if TYPE_CHECKING:
    import xarray

ELEMENTS: Final = {"cell": Cell, "edge": Edge, "vertex": Vertex}
_NAMES: Final = {dim: name for name, dim in ELEMENTS.items()}

# Offset: variable and slot dimension in the file.
TABLES: Final = {
    "C2E": ("edge_of_cell", "nv"),
    "C2V": ("vertex_of_cell", "nv"),
    "C2E2C": ("neighbor_cell_index", "nv"),
    "E2C": ("adjacent_cell_of_edge", "nc"),
    "E2V": ("edge_vertices", "nc"),
    "V2C": ("cells_of_vertex", "ne"),
    "V2E": ("edges_of_vertex", "ne"),
    "V2E2V": ("vertices_of_vertex", "ne"),
}
WIDTHS: Final = {"nv": 3, "nc": 2, "ne": 6}
# Variables with one value per slot of a table, stored (slots, elements) too.
SLOTS: Final = {
    "orientation_of_normal": "C2E",
    "edge_cell_distance": "E2C",
    "edge_vert_distance": "E2V",
    "edge_orientation": "V2E",
}
COORDINATES: Final = ("clon", "clat", "elon", "elat", "vlon", "vlat")
# What DWD's and MPI-M's files mean where an attribute is left out.
_UNITS: Final = {
    **dict.fromkeys(COORDINATES, "radian"),
    **dict.fromkeys(("cell_area", "dual_area"), "m2"),
    **dict.fromkeys(("edge_length", "dual_edge_length", "edge_cell_distance", "edge_vert_distance"), "m"),
}


def open_icon(path: netcdf.Path) -> Grid:
    """Reads an ICON grid file.

    Args:
        path: a netCDF file with the eight tables and the coordinates of cells, edges and vertices.

    Raises:
        FileNotFoundError: there is no such file.
        ArgumentError: it isn't a netCDF file, is truncated, or lacks a variable or dimension.
        ConnectivityError: an index is out of range; file, variable and row (counted from 1) are named.

    >>> import tempfile, os
    >>> from fieldjax.mesh import icosahedral_grid
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "R2B0.nc")
    ...     write_icon(icosahedral_grid(2, 0), path)
    ...     open_icon(path).sizes
    {Dimension('Cell'): 80, Dimension('Edge'): 120, Dimension('Vertex'): 42}
    """
    file = netcdf.read(path)
    variables = [variable for variable, _ in TABLES.values()]
    netcdf.require(file, [*variables, *COORDINATES], path, "ICON")
    tables = {name: _read_table(file, name, path) for name in TABLES}
    return Grid(tables, _read_geometry(file.drop_vars(variables)), source=str(path))


def write_icon(grid: Grid, path: netcdf.Path) -> None:
    """Writes an ICON grid file (netCDF-4) that `open_icon` reads back unchanged; missing neighbours are -1.

    Raises:
        ArgumentError: the cells aren't triangles, a vertex has more than six of them, or h5netcdf is missing.
    """
    import xarray

    tables = {variable: _write_table(grid, name) for name, (variable, _) in TABLES.items()}
    geometry = {name: _write_variable(str(name), variable) for name, variable in grid.geometry.variables.items()}
    netcdf.write(xarray.Dataset(tables | geometry, attrs=grid.geometry.attrs), path)


def _read_table(file: xarray.Dataset, name: str, path: netcdf.Path) -> np.ndarray:
    variable, slots = TABLES[name]
    start, end = endpoints(name)
    here = _NAMES[start]
    expected = {slots: WIDTHS[slots], here: netcdf.size(file, here, path)}
    found = file.variables[variable]
    if dict(found.sizes) != expected:
        raise ArgumentError(f"{path}: {variable} is {dict(found.sizes)}, an ICON file has {expected}")
    size = netcdf.size(file, _NAMES[end], path)
    return index_table(found.transpose(here, slots).values, size, base=1, missing=(0, -1), where=f"{path}: {variable}")


def _read_geometry(file: xarray.Dataset) -> Any:
    variables = {name: _read_variable(str(name), variable) for name, variable in file.variables.items()}
    return type(file)(variables, attrs=file.attrs)


def _read_variable(name: str, variable: xarray.Variable) -> Any:
    renamed = {file_dim: dim.value for file_dim, dim in ELEMENTS.items()}
    attrs = ({"units": _UNITS[name]} if name in _UNITS else {}) | variable.attrs
    elements = [dim for dim in variable.dims if dim in ELEMENTS]
    if name in SLOTS and variable.ndim == 2 and elements:
        return (renamed[str(elements[0])], SLOTS[name]), variable.transpose(elements[0], ...).values, attrs
    return tuple(renamed.get(str(dim), dim) for dim in variable.dims), variable.values, attrs


def _write_variable(name: str, variable: xarray.Variable) -> Any:
    renamed = {dim.value: file_dim for file_dim, dim in ELEMENTS.items()}
    dims = tuple(renamed.get(str(dim), dim) for dim in variable.dims)
    if dims[1:] == (SLOTS.get(name),):
        slots = TABLES[SLOTS[name]][1]
        return (slots, dims[0]), _widened(variable.values, WIDTHS[slots], 0).T, variable.attrs
    return dims, variable.values, variable.attrs


def _write_table(grid: Grid, name: str) -> Any:
    slots = TABLES[name][1]
    table = grid.table(name)
    if table.shape[1] > WIDTHS[slots]:
        raise ArgumentError(
            f"{grid.source}: {name} has {table.shape[1]} slots, ICON's files have {WIDTHS[slots]}",
            hints=["grid.to_xarray().to_netcdf(path) writes any grid"],
        )
    wide = _widened(table, WIDTHS[slots], SKIP).T
    start, _ = endpoints(name)
    return (slots, _NAMES[start]), np.where(wide == SKIP, SKIP, wide + 1), {"long_name": _long_name(name)}


def _widened(values: np.ndarray, width: int, fill: int) -> np.ndarray:
    return np.pad(values, ((0, 0), (0, width - values.shape[1])), constant_values=fill)


def _long_name(name: str) -> str:
    start, end = endpoints(name)
    return f"{end.value.lower()} neighbours of each {start.value.lower()}, from 1, -1: none"
