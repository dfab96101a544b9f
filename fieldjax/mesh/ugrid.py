"""UGRID files (https://ugrid-conventions.github.io): 2-D meshes of polygons, their edges derived.

Faces are our cells, nodes our vertices. Geometry is computed from the nodes' coordinates (see `geometry`);
data over faces, edges and nodes is kept under its own names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from fieldjax.errors import ArgumentError
from fieldjax.mesh import netcdf
from fieldjax.mesh.geometry import complete
from fieldjax.mesh.grid import Grid
from fieldjax.mesh.polygons import topology
from fieldjax.mesh.shape import PLANE
from fieldjax.mesh.surface import EARTH_RADIUS
from fieldjax.mesh.tables import SKIP, index_table

if TYPE_CHECKING:
    import xarray

# The attribute of the topology variable, and what its two coordinates become on a sphere.
_COORDINATES: Final = {
    "node_coordinates": ("Vertex", ("vlon", "vlat"), "cartesian_{}_vertices"),
    "face_coordinates": ("Cell", ("clon", "clat"), "cell_circumcenter_cartesian_{}"),
    "edge_coordinates": ("Edge", ("elon", "elat"), "edge_middle_cartesian_{}"),
}


def open_ugrid(path: netcdf.Path, mesh: str | None = None, *, radius: float = EARTH_RADIUS) -> Grid:
    """Reads a 2-D mesh of a UGRID file.

    Edges are numbered as in `edge_node_connectivity` where the file has it, by their nodes otherwise.
    Longitudes and latitudes may be degrees or radians; with any other coordinates the mesh lies in a plane,
    in metres.

    Args:
        path: the file.
        mesh: the name of the topology variable, where the file has several 2-D meshes.
        radius: of the sphere, metres: UGRID doesn't say.

    Raises:
        FileNotFoundError: there is no such file.
        ArgumentError: it isn't a netCDF file, is truncated, or has no (or more than one) 2-D mesh topology.
        ConnectivityError: an index is out of range, or an edge has more than two faces.

    >>> import os, tempfile, xarray
    >>> attrs = {"cf_role": "mesh_topology", "topology_dimension": 2}
    >>> attrs |= {"node_coordinates": "lon lat", "face_node_connectivity": "faces"}
    >>> triangle = xarray.Dataset(
    ...     {
    ...         "mesh": ((), 0, attrs),
    ...         "lon": ("node", [0.0, 9.0, 0.0], {"units": "degrees_east"}),
    ...         "lat": ("node", [0.0, 0.0, 9.0], {"units": "degrees_north"}),
    ...         "faces": (("face", "corner"), [[0, 1, 2]]),
    ...     }
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     triangle.to_netcdf(os.path.join(folder, "mesh.nc"), engine="h5netcdf")
    ...     open_ugrid(os.path.join(folder, "mesh.nc")).table("E2C").tolist()
    [[0, -1], [0, -1], [0, -1]]
    """
    file = netcdf.read(path)
    reader = _Reader(file, _topology(file, mesh, path), path)
    tables = reader.tables()
    variables = reader.coordinates() | reader.data()
    planar = {} if any(name in variables for name in ("vlon", "vlat")) else {"grid_geometry": PLANE}
    attrs = {**file.attrs, "sphere_radius": radius} | planar
    return complete(Grid(tables, type(file)(variables, attrs=attrs), source=str(path)))


def _topology(file: xarray.Dataset, mesh: str | None, path: netcdf.Path) -> xarray.Variable:
    found = {
        str(name): variable
        for name, variable in file.variables.items()
        if variable.attrs.get("cf_role") == "mesh_topology" and int(variable.attrs.get("topology_dimension", 2)) == 2
    }
    chosen = list(found) if mesh is None else [name for name in found if name == mesh]
    if len(chosen) != 1:
        raise ArgumentError(
            f"{path} has {len(chosen) or 'no'} 2-D mesh topologies{f' named {mesh!r}' if mesh else ''}",
            notes=[f"2-D meshes there: {', '.join(found) or 'none'}"],
            hints=["name one: open_ugrid(path, mesh=...)"] if found else [],
        )
    return found[chosen[0]]


@dataclass(frozen=True)
class _Reader:
    """What one topology variable of a file refers to."""

    file: xarray.Dataset
    topology: xarray.Variable
    path: netcdf.Path

    def tables(self) -> dict[str, np.ndarray]:
        nodes = self.file.sizes[self.elements["Vertex"]]
        edges = "edge_node_connectivity"
        return topology(
            self.connectivity("face_node_connectivity", "face_dimension", nodes),
            nodes,
            str(self.path),
            self.connectivity(edges, "edge_dimension", nodes) if edges in self.topology.attrs else None,
        )

    @property
    def elements(self) -> dict[str, str]:
        """The file's dimension of our cells, edges and vertices."""
        found = {
            "Cell": self._rows("face_node_connectivity", "face_dimension"),
            "Vertex": str(self.variable(self.names("node_coordinates")[0]).dims[0]),
        }
        if "edge_node_connectivity" in self.topology.attrs:
            found["Edge"] = self._rows("edge_node_connectivity", "edge_dimension")
        return found

    def connectivity(self, role: str, dimension: str, size: int) -> np.ndarray:
        """A table as ours, rows first whichever way it is stored."""
        name = self.names(role)[0]
        variable = self.variable(name)
        base = int(variable.attrs.get("start_index", 0))
        missing = [
            int(v) for key in ("_FillValue", "missing_value") for v in np.atleast_1d(variable.attrs.get(key, ()))
        ]
        raw = variable.transpose(self._rows(role, dimension), ...).values
        return index_table(
            _whole(raw), size, base=base, missing=(*missing, SKIP, base - 1), where=f"{self.path}: {name}"
        )

    def coordinates(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for role, (dim, on_sphere, on_plane) in _COORDINATES.items():
            if role not in self.topology.attrs:
                continue
            pair = [self.variable(name) for name in self.names(role)[:2]]
            if all(_angular(variable) for variable in pair):
                for name, variable in zip(_lon_first(pair, on_sphere), pair, strict=True):
                    found[name] = (dim, _radians(variable), {"units": "radian"})
            else:
                values = [variable.values for variable in pair]
                for letter, column in zip("xyz", [*values, np.zeros_like(values[0])], strict=True):
                    found[on_plane.format(letter)] = (dim, column, {"units": "m"})
        return found

    def data(self) -> dict[str, Any]:
        """The variables over faces, edges and nodes that don't describe the mesh."""
        renamed = {theirs: ours for ours, theirs in self.elements.items()}
        described = {name for value in self.topology.attrs.values() for name in str(value).split()}
        return {
            str(name): (
                tuple(renamed.get(str(dim), dim) for dim in variable.dims),
                variable.values,
                variable.attrs,
            )
            for name, variable in self.file.variables.items()
            if name not in described and renamed.keys() & set(variable.dims)
        }

    def names(self, role: str) -> list[str]:
        if role not in self.topology.attrs:
            raise ArgumentError(f"{self.path}: the mesh topology has no attribute {role}")
        return str(self.topology.attrs[role]).split()

    def variable(self, name: str) -> xarray.Variable:
        netcdf.require(self.file, [name], self.path, "UGRID")
        return self.file.variables[name]

    def _rows(self, role: str, dimension: str) -> str:
        return str(self.topology.attrs.get(dimension, self.variable(self.names(role)[0]).dims[0]))


def _whole(raw: np.ndarray) -> np.ndarray:
    """Integers, where a writer stored them as floating point with NaN for missing."""
    if raw.dtype.kind != "f":
        return raw
    filled = np.where(np.isnan(raw), SKIP, raw)
    return filled.astype(np.int64) if np.array_equal(filled, np.rint(filled)) else raw


def _angular(variable: xarray.Variable) -> bool:
    return str(variable.attrs.get("units", "")).startswith(("degree", "radian"))


def _radians(variable: xarray.Variable) -> np.ndarray:
    return np.radians(variable.values) if variable.attrs["units"].startswith("degree") else variable.values


def _lon_first(pair: list[xarray.Variable], names: tuple[str, str]) -> tuple[str, str]:
    """UGRID asks for longitude first; the attributes know better where a writer didn't care."""
    first = pair[0].attrs
    swapped = first.get("standard_name") == "latitude" or first["units"] in ("degrees_north", "degree_north")
    return (names[1], names[0]) if swapped else names
