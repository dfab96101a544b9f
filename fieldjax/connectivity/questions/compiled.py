"""The narrowing scan and the transposition of large tables, compiled by numba. Import when first needed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit

from fieldjax.connectivity.questions.boxes import Box


def scan(entries: np.ndarray, skip_value: int | None, lower: int, upper: int, order: Sequence[int]) -> Box | None:
    """What `narrowing.scan` answers, for one or two axes, without temporaries."""
    table = entries.reshape(entries.shape[0], -1)
    skip = entries.dtype.type(0 if skip_value is None else skip_value)
    ends = entries.dtype.type(lower), entries.dtype.type(upper - 1)
    found, *box = _scan(table, skip_value is not None, skip, *ends, tuple(order) == (0, 1))
    return ((box[0], box[1]), (box[2], box[3]))[: entries.ndim] if found else None


@njit(cache=True, nogil=True)
def _scan(table, has_skips, skip, lower, last, rows_first):
    rows, columns = table.shape
    top, bottom, left, right = rows, 0, columns, 0
    for row in range(rows):
        for column in range(columns):
            entry = table[row, column]
            if lower <= entry <= last and not (has_skips and entry == skip):
                top, bottom = min(top, row), row + 1
                left, right = min(left, column), max(right, column + 1)
    if bottom == 0:
        return False, 0, 0, 0, 0
    for row in range(top, bottom):
        for column in range(left, right):
            entry = table[row, column]
            if not (lower <= entry <= last) and not (has_skips and entry == skip):
                return False, 0, 0, 0, 0
    if has_skips and rows_first:
        top, bottom = _grow(table, skip, top, bottom, left, right)
    if has_skips:
        left, right = _grow(table.T, skip, left, right, top, bottom)
    if has_skips and not rows_first:
        top, bottom = _grow(table, skip, top, bottom, left, right)
    return True, top, bottom, left, right


@njit(cache=True, nogil=True)
def _grow(table, skip, top, bottom, left, right):
    while top > 0 and _only_skips(table[top - 1], skip, left, right):
        top -= 1
    while bottom < table.shape[0] and _only_skips(table[bottom], skip, left, right):
        bottom += 1
    return top, bottom


@njit(cache=True, nogil=True)
def _only_skips(line, skip, left, right):
    for position in range(left, right):  # noqa: SIM110  # numba has no generators
        if line[position] != skip:
            return False
    return True


@njit(cache=True, nogil=True)
def transpose(table, has_skips, skip, filled, rows, slots):
    """Write, for each element, the rows and slots that point to it, in the order of the table."""
    for row in range(table.shape[0]):
        for slot in range(table.shape[1]):
            entry = table[row, slot]
            if not (has_skips and entry == skip):
                rows[entry, filled[entry]] = row
                slots[entry, filled[entry]] = slot
                filled[entry] += 1
