"""MPAS meshes (Voronoi cells with up to ten edges, three cells at a vertex), their TRiSK weights included.

What has a name in ICON's files gets it here, so that one operator runs on both:

    lonCell latCell       clon clat       areaCell       cell_area
    lonEdge latEdge       elon elat       areaTriangle   dual_area
    lonVertex latVertex   vlon vlat       dvEdge         edge_length (between vertices)
                                          dcEdge         dual_edge_length (between cells)

The rest (`weightsOnEdge`, `angleEdge`, `kiteAreasOnVertex`, `fVertex`, …) keeps MPAS's names. `edgesOnEdge`
is the table E2C2E in the file's order, to which `weightsOnEdge` over (Edge, E2C2E) belongs: the velocity
along k × n, which is against our tangent, is Σ weightsOnEdge · u over E2C2E (Thuburn, Ringler, Skamarock and
Klemp 2009, J. Comput. Phys. 228, 8321–8335). Normals point from the first cell of an edge to the second, as
in ICON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from fieldjax.mesh import netcdf
from fieldjax.mesh.geometry import complete
from fieldjax.mesh.grid import Grid
from fieldjax.mesh.names import endpoints
from fieldjax.mesh.shape import CARTESIAN, PLANE, TORUS
from fieldjax.mesh.tables import SKIP, index_table

if TYPE_CHECKING:
    import xarray

ELEMENTS: Final = {"nCells": "Cell", "nEdges": "Edge", "nVertices": "Vertex"}
TABLES: Final = {
    "C2E": "edgesOnCell",
    "C2V": "verticesOnCell",
    "C2E2C": "cellsOnCell",
    "E2C": "cellsOnEdge",
    "E2V": "verticesOnEdge",
    "E2C2E": "edgesOnEdge",
    "V2C": "cellsOnVertex",
    "V2E": "edgesOnVertex",
}
# How many slots of a row are used; behind them a file may hold anything.
COUNTS: Final = {
    "C2E": "nEdgesOnCell",
    "C2V": "nEdgesOnCell",
    "C2E2C": "nEdgesOnCell",
    "E2C2E": "nEdgesOnEdge",
}
SLOTS: Final = {"weightsOnEdge": "E2C2E", "kiteAreasOnVertex": "V2C"}
RENAMED: Final = {
    "lonCell": ("clon", "radian"),
    "latCell": ("clat", "radian"),
    "lonEdge": ("elon", "radian"),
    "latEdge": ("elat", "radian"),
    "lonVertex": ("vlon", "radian"),
    "latVertex": ("vlat", "radian"),
    "areaCell": ("cell_area", "m2"),
    "areaTriangle": ("dual_area", "m2"),
    "dvEdge": ("edge_length", "m"),
    "dcEdge": ("dual_edge_length", "m"),
}
# On a plane; on a sphere the same names would promise unit vectors.
_CARTESIAN: Final = {
    f"{axis}{dim.value}": (name.format(axis), "m") for dim, name in CARTESIAN.items() for axis in "xyz"
}
_UNITS: Final = {
    "kiteAreasOnVertex": "m2",
    "angleEdge": "radian",
    "weightsOnEdge": "1",
    **dict.fromkeys((f"{axis}{where}" for axis in "xyz" for where in ("Cell", "Edge", "Vertex")), "m"),
}


def open_mpas(path: netcdf.Path) -> Grid:
    """Reads an MPAS mesh file; metres are those of the file's `sphere_radius` (often 1).

    Raises:
        FileNotFoundError: there is no such file.
        ArgumentError: it isn't a netCDF file, is truncated, or lacks a variable or dimension.
        ConnectivityError: an index is out of range; file, variable and row (counted from 1) are named.
    """
    file = netcdf.read(path)
    netcdf.require(file, [*TABLES.values(), *dict.fromkeys(COUNTS.values()), *RENAMED], path, "MPAS")
    tables = {name: _read_table(file, name, path) for name in TABLES}
    rest = file.drop_vars([*TABLES.values(), *dict.fromkeys(COUNTS.values())])
    attrs = file.attrs | _plane(file.attrs)
    renamed = RENAMED | (_CARTESIAN if "grid_geometry" in attrs else {})
    variables = dict(_variable(str(name), variable, renamed) for name, variable in rest.variables.items())
    return complete(Grid(tables, type(file)(variables, attrs=attrs), source=str(path)))


def _read_table(file: xarray.Dataset, name: str, path: netcdf.Path) -> np.ndarray:
    variable = file.variables[TABLES[name]]
    _, end = endpoints(name)
    size = netcdf.size(file, next(dim for dim, element in ELEMENTS.items() if element == end.value), path)
    raw = variable.values
    if name in COUNTS:
        used = np.arange(raw.shape[1]) < file.variables[COUNTS[name]].values[:, None]
        raw = np.where(used, raw, 0)
    return index_table(raw, size, base=1, missing=(0, SKIP), where=f"{path}: {TABLES[name]}")


def _variable(name: str, variable: xarray.Variable, renamed: Mapping[str, tuple[str, str]]) -> tuple[str, Any]:
    ours, units = renamed.get(name, (name, _UNITS.get(name)))
    dims = [ELEMENTS.get(str(dim), dim) for dim in variable.dims]
    values = variable.values
    if name in SLOTS:
        dims[1] = SLOTS[name]
    attrs = ({"units": units} if units else {}) | ({"mpas_name": name} if ours != name else {}) | variable.attrs
    return ours, (tuple(dims), values, attrs)


def _plane(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """What ICON's attributes say of a planar mesh; nothing of a spherical one."""
    if _flag(attrs, "on_a_sphere", "YES"):
        return {}
    if not _flag(attrs, "is_periodic", "NO"):
        return {"grid_geometry": PLANE}
    return {
        "grid_geometry": TORUS,
        "domain_length": attrs.get("x_period") or np.inf,
        "domain_height": attrs.get("y_period") or np.inf,
    }


def _flag(attrs: Mapping[str, Any], name: str, default: str) -> bool:
    return str(attrs.get(name, default)).strip().upper() == "YES"
