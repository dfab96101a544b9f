"""`plot`: a field on the sphere (or in the plane), drawn with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fieldjax.domain import Dimension
from fieldjax.errors import ArgumentError
from fieldjax.mesh.grid import Grid
from fieldjax.mesh.names import Cell, Edge, Vertex
from fieldjax.mesh.shape import Shape, is_planar
from fieldjax.mesh.surface import dot, from_lonlat, to_lonlat
from fieldjax.mesh.tables import SKIP

if TYPE_CHECKING:
    from matplotlib.collections import PolyCollection


def plot(
    field: Any,
    grid: Grid,
    ax: Any = None,
    *,
    view: tuple[float, float] = (0.0, 30.0),
    projection: str = "orthographic",
    colorbar: bool = True,
    **style: Any,
) -> PolyCollection:
    """Draws one value per cell (its polygon), vertex (its dual cell) or edge (the diamond around it).

    Args:
        field: on Cell, Edge or Vertex only, or an array with as many values as the grid has of one of them.
        grid: the grid it lives on.
        ax: matplotlib axes; new ones where None.
        view: longitude and latitude, in degrees, of the point that faces the viewer.
        projection: "orthographic", the sphere from afar, or "lonlat". A grid in a plane is drawn as it is.
        colorbar: whether to add one.
        style: what matplotlib's PolyCollection takes: `cmap`, `norm`, `clim`, `edgecolor`, …

    Raises:
        ArgumentError: the field has other dimensions, the array fits nothing, or matplotlib is missing.

    >>> from fieldjax.mesh import icosahedron
    >>> grid = icosahedron()
    >>> plot(grid["clat"], grid, cmap="viridis")
    <matplotlib.collections.PolyCollection object at ...>
    """
    plt, collection = _matplotlib()
    dim, start, values = _located(field, grid)
    shape = Shape(grid)
    rows = slice(start, start + len(values))
    polygons = _OUTLINES[dim](shape)[rows]
    flat, seen = _project(polygons, shape, projection, view)
    if ax is None:
        _, ax = plt.subplots()
    drawn = collection(list(flat[seen]), array=values[seen], **({"edgecolor": "face"} | style))
    ax.add_collection(drawn)
    ax.set_aspect("equal")
    if projection == "orthographic" and not is_planar(grid):
        ax.set_axis_off()  # its coordinates mean nothing
    ax.autoscale_view()
    if colorbar:
        ax.figure.colorbar(drawn, ax=ax)
    return drawn


def _matplotlib() -> tuple[Any, Any]:
    try:
        import matplotlib.pyplot as plt
        from matplotlib.collections import PolyCollection
    except ImportError as error:
        raise ArgumentError("plots need matplotlib", hints=["pip install 'fieldjax[demo]'"]) from error
    return plt, PolyCollection


def _located(field: Any, grid: Grid) -> tuple[Dimension, int, np.ndarray]:
    """Where the values live, from which index on, and the values."""
    values = np.asarray(field)
    domain = getattr(field, "domain", None)
    if domain is not None:
        if len(domain.dims) != 1 or domain.dims[0] not in grid.sizes:
            raise ArgumentError(
                f"a field on {domain} can't be drawn",
                hints=["index it down to Cell, Edge or Vertex: f[K(0)]"],
            )
        return domain.dims[0], domain.ranges[0].start, values
    fitting = [dim for dim, size in grid.sizes.items() if values.shape == (size,)]
    if not fitting:
        sizes = ", ".join(f"{size} {dim.value}" for dim, size in grid.sizes.items())
        raise ArgumentError(f"an array of shape {values.shape} fits no element of the grid", notes=[sizes])
    return fitting[0], 0, values


def _around_cells(shape: Shape) -> np.ndarray:
    """(Cell, corners, 3); unused corners repeat the first."""
    corners = shape.grid.tables["C2V"]
    return shape.vertices[np.where(corners == SKIP, corners[:, :1], corners)]


def _around_edges(shape: Shape) -> np.ndarray:
    start, end = shape.ends
    return np.stack((start, shape.beside(0), end, shape.beside(1)), axis=1)


def _around_vertices(shape: Shape) -> np.ndarray:
    """(Vertex, V2C, 3): cell centres by their angle around the vertex."""
    cells = shape.grid.tables["V2C"]
    points = shape.cells[cells]
    here = shape.vertices[:, None]
    east, north = shape.surface.components(here, shape.surface.step(here, points))
    angle = np.where(cells == SKIP, np.inf, np.arctan2(north, east))
    order = np.argsort(angle, axis=1)
    order = np.where(np.take_along_axis(cells, order, axis=1) == SKIP, order[:, :1], order)
    return np.take_along_axis(points, order[..., None], axis=1)


_OUTLINES = {Cell: _around_cells, Edge: _around_edges, Vertex: _around_vertices}


def _project(
    polygons: np.ndarray, shape: Shape, projection: str, view: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray]:
    """The polygons' corners on paper, (n, corners, 2), and which polygons are to be seen."""
    if is_planar(shape.grid):
        first = polygons[:, :1]
        whole = first + shape.surface.step(first, polygons)  # not torn at the end of a period
        return whole[..., :2], np.ones(len(polygons), bool)
    if projection == "orthographic":
        return _orthographic(polygons, *np.radians(view))
    if projection == "lonlat":
        return _unrolled(polygons, view[0]), np.ones(len(polygons), bool)
    raise ArgumentError(f"there is no projection {projection!r}", hints=["'orthographic' or 'lonlat'"])


def _orthographic(polygons: np.ndarray, lon: float, lat: float) -> tuple[np.ndarray, np.ndarray]:
    towards = from_lonlat(lon, lat)
    east = np.array([-np.sin(lon), np.cos(lon), 0.0])
    axes = np.stack((east, np.cross(towards, east)), axis=1)
    return polygons @ axes, dot(polygons.mean(axis=1), towards) > 0


def _unrolled(polygons: np.ndarray, middle: float) -> np.ndarray:
    """Longitudes and latitudes in degrees, no polygon torn at the back."""
    lon, lat = (np.degrees(angle) for angle in to_lonlat(polygons))
    centre = np.degrees(to_lonlat(polygons.mean(axis=1))[0])[:, None]
    lon = centre + (lon - centre + 180) % 360 - 180
    return np.stack((lon - 360 * np.round((centre - middle) / 360), lat), axis=-1)
