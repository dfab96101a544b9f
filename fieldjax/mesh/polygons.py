"""A grid from the polygons' vertices alone: edges, neighbours and geometry are derived."""

from __future__ import annotations

from typing import Any

import numpy as np

from fieldjax.errors import ConnectivityError
from fieldjax.mesh.derive import inverse
from fieldjax.mesh.geometry import complete
from fieldjax.mesh.grid import Grid
from fieldjax.mesh.surface import EARTH_RADIUS
from fieldjax.mesh.tables import SKIP, check_polygons, index_dtype


def from_polygons(
    vertices_of_cell: Any,
    vlon: Any,
    vlat: Any,
    *,
    centres: tuple[Any, Any] | None = None,
    radius: float = EARTH_RADIUS,
    source: str = "polygons",
) -> Grid:
    """A grid on the sphere, with all geometry.

    Args:
        vertices_of_cell: (Cell, C2V) integers from 0, counterclockwise seen from above, -1 behind the last.
        vlon: the vertices' longitudes, radians.
        vlat: the vertices' latitudes, radians.
        centres: the cells' longitudes and latitudes, radians; by default their vertices' centre of gravity.
        radius: metres.
        source: a name for errors and `repr`.

    Raises:
        ConnectivityError: a cell is no polygon, an edge has more than two cells, or an index is out of range.

    >>> square = from_polygons([[0, 1, 2, 3]], vlon=[0.0, 0.1, 0.1, 0.0], vlat=[0.0, 0.0, 0.1, 0.1])
    >>> square.table("E2C").tolist()
    [[0, -1], [0, -1], [0, -1], [0, -1]]
    """
    import xarray

    angles = {"vlon": ("Vertex", vlon), "vlat": ("Vertex", vlat)}
    if centres is not None:
        angles |= {"clon": ("Cell", centres[0]), "clat": ("Cell", centres[1])}
    variables = {name: (dim, np.asarray(angle), {"units": "radian"}) for name, (dim, angle) in angles.items()}
    geometry = xarray.Dataset(variables, attrs={"sphere_radius": radius})
    tables = topology(np.asarray(vertices_of_cell), geometry.sizes["Vertex"], source)
    return complete(Grid(tables, geometry, source))


def topology(c2v: np.ndarray, vertices: int, where: str, e2v: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """All six core tables of polygons (rows of vertices, -1 at the end).

    Slot i of C2E is the edge between vertices i and i + 1. Edges are numbered by their vertices, or as in
    `e2v` where that is given. The first cell of an edge is the one of lower index; where it runs
    counterclockwise, new edges run so that their `edge_system_orientation` is +1.
    """
    check_polygons(c2v, vertices, where)
    starts, stops = _sides(c2v)
    keys = _keys(starts, stops, vertices)
    there = starts != SKIP
    if e2v is None:
        known, first, index = np.unique(keys[there], return_index=True, return_inverse=True)
        e2v = np.stack((stops[there][first], starts[there][first]), axis=1)
    else:
        known, index = _given_edges(keys[there], _keys(e2v[:, 0], e2v[:, 1], vertices), where)
    c2e = np.full(c2v.shape, SKIP, index_dtype(len(known)))
    c2e[there] = index
    e2c = _two_cells(c2e, len(known), where)
    return {
        "C2V": c2v,
        "E2V": e2v.astype(index_dtype(vertices)),
        "C2E": c2e,
        "E2C": e2c,
        "V2C": inverse(c2v, vertices),
        "V2E": inverse(e2v, vertices),
    }


def _sides(c2v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every side's first and second vertex, each shaped as `c2v`, -1 in unused slots."""
    count = np.maximum((c2v != SKIP).sum(axis=1, keepdims=True), 1)
    following = (np.arange(c2v.shape[1]) + 1) % count
    return c2v, np.where(c2v == SKIP, SKIP, np.take_along_axis(c2v, following, axis=1))


def _keys(starts: np.ndarray, stops: np.ndarray, vertices: int) -> np.ndarray:
    """One number per side, the same in both directions."""
    low, high = np.minimum(starts, stops), np.maximum(starts, stops)
    return low.astype(np.int64) * vertices + high


def _given_edges(sides: np.ndarray, edges: np.ndarray, where: str) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(edges)
    place = np.minimum(np.searchsorted(edges[order], sides), len(edges) - 1)
    index = order[place]
    if not np.array_equal(edges[index], sides):
        raise ConnectivityError(f"{where}: {int((edges[index] != sides).sum())} sides of faces are not among the edges")
    return edges, index


def _two_cells(c2e: np.ndarray, edges: int, where: str) -> np.ndarray:
    cells = inverse(c2e, edges)
    if cells.shape[1] > 2:
        edge = int(np.flatnonzero(cells[:, 2] != SKIP)[0])
        shared = cells[edge][cells[edge] != SKIP].tolist()
        raise ConnectivityError(f"{where}: edge {edge} has more than two cells: {shared}")
    missing = np.full((edges, 2 - cells.shape[1]), SKIP, cells.dtype)
    return np.column_stack((cells, missing))
