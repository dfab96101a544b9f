"""Neighbour tables as files give them, turned into ours: (rows, slots), 0-based, -1 where there is none."""

from __future__ import annotations

from typing import Any

import numpy as np

from fieldjax.errors import ConnectivityError

SKIP = -1


def index_dtype(size: int) -> type[np.int32] | type[np.int64]:
    """int32 unless indices below `size` don't fit."""
    return np.int32 if size <= np.iinfo(np.int32).max else np.int64


def index_table(raw: Any, size: int, *, base: int, missing: tuple[int, ...], where: str) -> np.ndarray:
    """The table of a file, of shape (rows, slots), counted from 0 and with -1 for missing neighbours.

    Args:
        raw: what the file holds: `base` … `base + size - 1`, or one of `missing`.
        size: how many elements the table can lead to.
        base: 1 in ICON and MPAS files, 0 or 1 in UGRID files.
        missing: the values that stand for "no neighbour".
        where: the file and the variable, for the error.

    Raises:
        ConnectivityError: an entry is outside that range, or not an integer.

    >>> index_table([[1, 2], [2, 0]], 2, base=1, missing=(0, -1), where="mesh.nc: cells")
    array([[ 0,  1],
           [ 1, -1]], dtype=int32)
    """
    given = np.asarray(raw)
    if given.dtype.kind not in "iu":
        raise ConnectivityError(f"{where} holds {given.dtype}, a neighbour table holds integers")
    absent = np.isin(given, missing)
    table = np.where(absent, SKIP, given.astype(np.int64) - base)
    _check_range(table, ~absent, size, base, where)
    return table.astype(index_dtype(size))


def check_table(table: np.ndarray, rows: int, size: int, where: str) -> None:
    """Raises a `ConnectivityError` unless `table` is (rows, slots) with entries in -1 … size - 1."""
    if table.ndim != 2 or table.dtype.kind != "i":
        raise ConnectivityError(f"{where} is {table.dtype}{list(table.shape)}, expected int[rows, slots]")
    if table.shape[0] != rows:
        raise ConnectivityError(f"{where} has {table.shape[0]} rows, expected {rows}")
    _check_range(table, table != SKIP, size, 0, where)


def check_polygons(c2v: np.ndarray, vertices: int, where: str) -> None:
    """Raises a `ConnectivityError` unless each row is at least three vertices, then -1 only."""
    check_table(c2v, len(c2v), vertices, where)
    there = c2v != SKIP
    broken = (there[:, 1:] > there[:, :-1]).any(axis=1) | (there.sum(axis=1) < 3)
    if broken.any():
        row = int(np.flatnonzero(broken)[0])
        raise ConnectivityError(f"{where}: cell {row} is no polygon: {c2v[row].tolist()}")


def _check_range(table: np.ndarray, valid: np.ndarray, size: int, base: int, where: str) -> None:
    outside = valid & ((table < 0) | (table >= size))
    if not outside.any():
        return
    row, slot = (int(i[0]) for i in np.nonzero(outside))
    raise ConnectivityError(
        f"{where}, row {row + base}, slot {slot + base}: index {table[row, slot] + base} is out of range",
        notes=[
            f"indices run from {base} to {size - 1 + base}, rows and slots are counted from {base} too",
            f"{int(outside.sum())} entries in {int(outside.any(axis=1).sum())} rows are out of range",
        ],
    )
