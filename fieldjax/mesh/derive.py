"""Neighbour tables that no file holds, derived on the host from those that it does.

Every table is (rows, slots), 0-based, with -1 where there is no neighbour, and a slot that is reached through
a missing neighbour is missing. Orders follow ICON's; for triangles the widths are those of ICON's stencils,
for polygons with up to w edges they are given below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from fieldjax.errors import ConnectivityError
from fieldjax.mesh.tables import SKIP, index_dtype

Lookup = Callable[[str], np.ndarray]


def follow(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Two steps at once, (rows, slots of `first`, slots of `second`).

    >>> follow(np.array([[1, -1]]), np.array([[5, 6], [7, 8]]))
    array([[[ 7,  8],
            [-1, -1]]])
    """
    reached = second[first]  # -1 reads the last row, which the next line takes back
    reached[first == SKIP] = SKIP
    return reached


def inverse(table: np.ndarray, size: int) -> np.ndarray:
    """Which rows lead to each of `size` elements, ascending: V2C from C2V. Shape (size, largest number).

    >>> inverse(np.array([[0, 1], [1, 2]]), 3)
    array([[ 0, -1],
           [ 0,  1],
           [ 1, -1]], dtype=int32)
    """
    rows, slots = np.nonzero(table != SKIP)
    targets = table[rows, slots]
    order = np.argsort(targets, kind="stable")
    counts = np.bincount(targets, minlength=size)
    position = np.arange(targets.size) - np.repeat(np.cumsum(counts) - counts, counts)
    found = np.full((size, max(1, int(counts.max(initial=1)))), SKIP, index_dtype(len(table)))
    found[targets[order], position] = rows[order]
    return found


def across(own: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The other end of every edge: C2E2C from C2E and E2C, V2E2V from V2E and E2V. Slots as in `own`."""
    both = follow(own, ends)
    here = np.arange(len(own))[:, None]
    return np.where(both[..., 0] == here, both[..., 1], both[..., 0])


def without(table: np.ndarray, unwanted: np.ndarray, width: int) -> np.ndarray:
    """Each row less the entries where `unwanted` holds, the others in order, cut or filled up to `width`."""
    order = np.argsort(unwanted, axis=-1, kind="stable")[..., :width]
    kept = np.take_along_axis(table, order, axis=-1)
    return np.where(np.take_along_axis(unwanted, order, axis=-1), SKIP, kept)


def with_self(table: np.ndarray) -> np.ndarray:
    """The element itself, then its neighbours."""
    return np.column_stack((np.arange(len(table), dtype=table.dtype), table))


def _joined(table: np.ndarray) -> np.ndarray:
    return table.reshape(len(table), -1)


def _c2e2c2e(table: Lookup) -> np.ndarray:
    """All edges of the first neighbour, of the second, …: w² slots."""
    return _joined(follow(table("C2E2C"), table("C2E")))


def _c2e2c2e2c(table: Lookup) -> np.ndarray:
    """The neighbours, then the others' neighbours in the same order, the cell itself left out: w² slots."""
    near = table("C2E2C")
    beyond = follow(near, near)
    here = np.arange(len(near))[:, None, None]
    return np.column_stack((near, _joined(without(beyond, beyond == here, near.shape[1] - 1))))


def _e2c2v(table: Lookup) -> np.ndarray:
    """The two ends, then what the first cell has besides them, then the second: 2 + 2 (w - 2) slots."""
    ends, vertices = table("E2V"), follow(table("E2C"), table("C2V"))
    is_end = (vertices == ends[:, :1, None]) | (vertices == ends[:, 1:, None])
    return np.column_stack((ends, _joined(without(vertices, is_end, vertices.shape[2] - 2))))


def _e2c2e(table: Lookup) -> np.ndarray:
    """The first cell's other edges, onwards from this one, then the second's: 2 (w - 1) slots."""
    cells, edges_of = table("E2C"), table("C2E")
    return np.column_stack([_edges_after(cells[:, side], edges_of) for side in (0, 1)])


def _edges_after(cell: np.ndarray, edges_of: np.ndarray) -> np.ndarray:
    edges = follow(cell, edges_of)
    is_self = edges == np.arange(len(cell))[:, None]
    stray = np.flatnonzero(~is_self.any(axis=1) & (cell != SKIP))
    if stray.size:
        edge = int(stray[0])
        raise ConnectivityError(f"E2C and C2E disagree: edge {edge} is none of cell {int(cell[edge])}'s edges")
    count = np.maximum((edges != SKIP).sum(axis=1), 1)[:, None]
    step = np.arange(1, edges.shape[1])
    turned = np.take_along_axis(edges, (is_self.argmax(axis=1)[:, None] + step) % count, axis=1)
    return np.where(step < count, turned, SKIP)


DERIVATIONS: Mapping[str, Callable[[Lookup], np.ndarray]] = {
    "C2E2C": lambda table: across(table("C2E"), table("E2C")),
    "C2E2CO": lambda table: with_self(table("C2E2C")),
    "C2E2C2E": _c2e2c2e,
    "C2E2C2E2C": _c2e2c2e2c,
    "E2C2V": _e2c2v,
    "E2C2E": _e2c2e,
    "E2C2EO": lambda table: with_self(table("E2C2E")),
    "V2E2V": lambda table: across(table("V2E"), table("E2V")),
}
