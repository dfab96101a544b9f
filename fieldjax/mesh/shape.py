"""Where the points of a grid are, and the directions and areas that follow for its edges and cells."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fieldjax.domain import Dimension
from fieldjax.errors import ArgumentError
from fieldjax.mesh.grid import Grid
from fieldjax.mesh.names import Cell, Edge, Vertex
from fieldjax.mesh.surface import EARTH_RADIUS, Plane, Sphere, Surface, dot, from_lonlat, unit
from fieldjax.mesh.tables import SKIP

LONLAT = {Cell: ("clon", "clat"), Edge: ("elon", "elat"), Vertex: ("vlon", "vlat")}
CARTESIAN = {
    Cell: "cell_circumcenter_cartesian_{}",
    Edge: "edge_middle_cartesian_{}",
    Vertex: "cartesian_{}_vertices",
}
# ICON's grid_geometry, and the attributes that hold a plane's periods.
TORUS, CHANNEL, PLANE = 2, 3, 4
_PERIODS = {TORUS: ("domain_length", "domain_height"), CHANNEL: ("domain_length",), PLANE: ()}


def is_planar(grid: Grid) -> bool:
    """Whether the grid says that it lies in a plane (ICON's `grid_geometry`)."""
    return grid.geometry.attrs.get("grid_geometry") in _PERIODS


def periods(grid: Grid) -> tuple[float, float]:
    """Of a planar grid along x and y, metres."""
    names = _PERIODS[grid.geometry.attrs["grid_geometry"]]
    known = [float(grid.geometry.attrs.get(name, np.inf)) for name in names]
    x, y = [*known, np.inf, np.inf][:2]
    return x, y


def radius(grid: Grid) -> float:
    """The sphere's radius in metres: the grid's `sphere_radius` or `semi_major_axis`, else ICON's."""
    attrs = grid.geometry.attrs
    return float(attrs.get("sphere_radius", attrs.get("semi_major_axis", EARTH_RADIUS)))


@dataclass(frozen=True, eq=False)
class Shape:
    """Where the points of a grid are, and what follows for its edges and cells."""

    grid: Grid

    @cached_property
    def surface(self) -> Surface:
        """A sphere, or a plane where the file says so."""
        return Plane(periods(self.grid)) if is_planar(self.grid) else Sphere(radius(self.grid))

    @cached_property
    def vertices(self) -> np.ndarray:
        """(Vertex, 3): unit vectors on a sphere, metres in a plane."""
        found = _points(self.grid, Vertex)
        if found is None:
            raise ArgumentError(f"{self.grid.source}: geometry needs the vertices' coordinates vlon and vlat")
        return found

    @cached_property
    def cells(self) -> np.ndarray:
        """(Cell, 3): the cell centres, the vertices' centre of gravity where the grid doesn't say."""
        found = _points(self.grid, Cell)
        return self.centroids if found is None else found

    @cached_property
    def edges(self) -> np.ndarray:
        """(Edge, 3): the edges' middles."""
        found = _points(self.grid, Edge)
        start, _ = self.ends
        return self.surface.onto(start + self.along / 2) if found is None else found

    @property
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """The edges' two vertices, each (Edge, 3)."""
        first, second = self.grid.tables["E2V"].T
        return self.vertices[first], self.vertices[second]

    @cached_property
    def centroids(self) -> np.ndarray:
        """(Cell, 3): surely inside a convex cell, which a circumcentre isn't."""
        corners = self.grid.tables["C2V"]
        there = (corners != SKIP)[..., None]
        first = self.vertices[corners[:, 0]]
        steps = np.where(there, self.surface.step(first[:, None], self.vertices[corners]), 0.0)
        return self.surface.onto(first + steps.sum(axis=1) / there.sum(axis=1))

    def beside(self, side: int) -> np.ndarray:
        """(Edge, 3): the centre of the cell on that side, the edge's middle where there is none."""
        cell = self.grid.tables["E2C"][:, side]
        return np.where((cell == SKIP)[:, None], self.edges, self.cells[cell])

    @cached_property
    def across(self) -> np.ndarray:
        """(Edge, 3): from the first cell's inside towards the second's, not normalised."""
        first, second = (
            np.where((cell == SKIP)[:, None], self.edges, self.centroids[cell]) for cell in self.grid.tables["E2C"].T
        )
        return self.surface.step(first, second)

    @cached_property
    def along(self) -> np.ndarray:
        """(Edge, 3): from v0 to v1, not normalised."""
        return self.surface.step(*self.ends)

    @cached_property
    def system(self) -> np.ndarray:
        """(Edge,): +1 where the tangent points from v0 to v1: k × (v1 - v0) points from c0 to c1."""
        ahead = dot(np.cross(self.surface.up(self.edges), self.along), self.across) > 0
        return np.where(ahead, 1, -1).astype(np.int32)

    @cached_property
    def normal(self) -> np.ndarray:
        """(Edge, 3): n, along k × ±(v1 - v0), of unit length."""
        return unit(self.system[:, None] * np.cross(self.surface.up(self.edges), self.along))

    @cached_property
    def tangent(self) -> np.ndarray:
        """(Edge, 3): t = n × k, of unit length."""
        return np.cross(self.normal, self.surface.up(self.edges))

    @cached_property
    def sectors(self) -> np.ndarray:
        """(Cell, C2E, E2V): areas of the triangles (cell centre, edge middle, vertex), which tile the mesh.

        Negative where the centre lies beyond the edge, so that sums stay exact; 0 in unused slots.
        """
        of_cell = self.grid.tables["C2E"]
        start, end = (points[of_cell] for points in self.ends)
        middle, centre = self.edges[of_cell], self.cells[:, None, :]
        triangle = self.surface.triangle_area
        areas = np.stack((triangle(centre, start, middle), triangle(centre, middle, end)), axis=-1)
        turn = np.sign(triangle(self.centroids[:, None, :], start, end))[..., None]
        return np.where((of_cell == SKIP)[..., None], 0.0, turn * areas)


def _points(grid: Grid, dim: Dimension) -> np.ndarray | None:
    planar = is_planar(grid)
    names = [CARTESIAN[dim].format(axis) for axis in "xyz"] if planar else list(LONLAT[dim])
    if any(name not in grid for name in names):
        return None
    values = [grid[name] for name in names]
    return np.stack(values, axis=-1) if planar else from_lonlat(*values)
