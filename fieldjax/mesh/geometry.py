"""Geometry from coordinates: lengths, areas, normals and orientations, named and signed as in ICON's files.

`complete(grid)` adds what a grid lacks. With c, e, v a cell, an edge and a vertex, E2C[e] = (c0, c1) and
E2V[e] = (v0, v1), and n, t the unit normal and tangent of an edge:

    n points from c0 to c1 (over the boundary where one is missing); n = k × t, k pointing upward
    orientation_of_normal[c, e]    +1 where n leaves the cell (c = c0), -1 where it enters
    edge_system_orientation[e]     +1 where t points from v0 to v1, -1 the other way
    edge_orientation[v, e]         +1 where t leaves the vertex, -1 where it arrives

so that with u = n-component on edges and p on cells

    div(u)[c] = Σ orientation_of_normal · edge_length · u / cell_area           (Gauss)
    curl(u)[v] = Σ edge_orientation · dual_edge_length · u / dual_area          (Stokes), curl(grad p) = 0

0 stands where there is no neighbour. Sources: Wan et al. (2013), Geosci. Model Dev. 6, 735–763; formulas of
lengths and areas are in `surface`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fieldjax.domain import Dimension
from fieldjax.mesh.grid import Grid
from fieldjax.mesh.names import Cell, Edge, Vertex
from fieldjax.mesh.shape import CARTESIAN, LONLAT, Shape
from fieldjax.mesh.surface import Sphere, to_lonlat
from fieldjax.mesh.tables import SKIP

Variable = tuple[tuple[str, ...], np.ndarray, dict[str, Any]]  # dimensions, values, attributes
Formula = Callable[[], Variable]
Formulas = dict[str, Formula]


def complete(grid: Grid) -> Grid:
    """The same grid with every standard geometry variable; those that it has stay as they are.

    Needs the vertices' coordinates only: `vlon` and `vlat` in radians, or `cartesian_x_vertices` … on a
    plane.

    >>> from fieldjax.mesh import icosahedron
    >>> grid = icosahedron()
    >>> bare = Grid(grid.tables, grid.geometry[["vlon", "vlat"]])
    >>> bool(np.isclose(complete(bare)["dual_area"].sum(), grid["cell_area"].sum()))
    True
    """
    missing = {name: formula for name, formula in formulas(grid).items() if name not in grid}
    return with_variables(grid, {name: formula() for name, formula in missing.items()})


def with_variables(grid: Grid, variables: Mapping[str, Variable]) -> Grid:
    """The same grid with more geometry, by name (dimensions, values, attributes); old of that name goes."""
    return replace(grid, geometry=grid.geometry.assign(variables))


def formulas(grid: Grid) -> Formulas:
    """How every standard variable is computed from the coordinates, by name."""
    shape = Shape(grid)
    return _coordinates(shape) | _measures(shape) | _orientations(shape) | _normals(shape)


def _coordinates(shape: Shape) -> Formulas:
    points = {Cell: lambda: shape.cells, Edge: lambda: shape.edges, Vertex: lambda: shape.vertices}
    on_sphere = isinstance(shape.surface, Sphere)
    units = "1" if on_sphere else "m"

    def angle(dim: Dimension, which: int) -> Formula:
        return lambda: _over(dim.value, to_lonlat(points[dim]())[which], "radian")

    def cartesian(dim: Dimension, axis: int) -> Formula:
        return lambda: _over(dim.value, points[dim]()[:, axis], units)

    angles = {LONLAT[dim][i]: angle(dim, i) for dim in points for i in (0, 1)} if on_sphere else {}
    return angles | {CARTESIAN[d].format(axis): cartesian(d, i) for d in points for i, axis in enumerate("xyz")}


def _measures(shape: Shape) -> Formulas:
    e2v, c2e = shape.grid.tables["E2V"], shape.grid.tables["C2E"]
    distance = shape.surface.distance

    def dual_area() -> np.ndarray:
        corners = e2v[c2e].ravel()
        return np.bincount(corners, shape.sectors.ravel(), minlength=shape.grid.sizes[Vertex])

    def from_edge(*others: np.ndarray) -> np.ndarray:
        return np.stack([distance(shape.edges, other) for other in others], axis=-1)

    return {
        "cell_area": lambda: _over("Cell", shape.sectors.sum(axis=(1, 2)), "m2"),
        "dual_area": lambda: _over("Vertex", dual_area(), "m2"),
        "edge_length": lambda: _over("Edge", distance(*shape.ends), "m"),
        "dual_edge_length": lambda: _over("Edge", distance(shape.beside(0), shape.beside(1)), "m"),
        "edge_cell_distance": lambda: _over("Edge E2C", from_edge(shape.beside(0), shape.beside(1)), "m"),
        "edge_vert_distance": lambda: _over("Edge E2V", from_edge(*shape.ends), "m"),
    }


def _orientations(shape: Shape) -> Formulas:
    table = shape.grid.tables

    def leaving() -> np.ndarray:
        return outward(table["V2E"], table["E2V"]) * shape.system[table["V2E"]]

    return {
        "orientation_of_normal": lambda: _over("Cell C2E", outward(table["C2E"], table["E2C"]), "1"),
        "edge_system_orientation": lambda: _over("Edge", shape.system, "1"),
        "edge_orientation": lambda: _over("Vertex V2E", leaving(), "1"),
    }


def _normals(shape: Shape) -> Formulas:
    vectors = {"primal": lambda: shape.normal, "dual": lambda: shape.tangent}

    def cartesian(which: str, axis: int) -> Formula:
        return lambda: _over("Edge", vectors[which]()[:, axis], "1")

    def horizontal(which: str, axis: int) -> Formula:
        return lambda: _over("Edge", shape.surface.components(shape.edges, vectors[which]())[axis], "1")

    found: Formulas = {}
    for which in vectors:
        found |= {f"edge_{which}_normal_cartesian_{axis}": cartesian(which, i) for i, axis in enumerate("xyz")}
        found[f"zonal_normal_{which}_edge"] = horizontal(which, 0)
        found[f"meridional_normal_{which}_edge"] = horizontal(which, 1)
    return found


def _over(dims: str, values: np.ndarray, units: str) -> Variable:
    return tuple(dims.split()), values, {"units": units}


def outward(own: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """+1 where the row is the first of its slot's two ends, -1 where the second, 0 without neighbour."""
    first = ends[:, 0][own] == np.arange(len(own))[:, None]
    return np.where(own == SKIP, 0, np.where(first, 1, -1)).astype(np.int32)
