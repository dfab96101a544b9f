"""Transposed tables: which entries of a table lead to each element of its codomain.

The adjoint of a gather through a table is a gather through its transpose.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fieldjax.connectivity.questions.boxes import local_axes
from fieldjax.connectivity.questions.narrowing import COMPILED_FROM
from fieldjax.domain import Domain

LARGEST_PADDING = 4
"""A transpose padded to more than this many times its table costs more than a scatter."""


class Transposed(NamedTuple):
    """The transpose of a table with one row dimension and at most one LOCAL dimension.

    `rows` and `slots` have shape (elements, in_degree): element `e` is what the table holds at
    ``(rows[e, j], slots[e, j])`` for each `j`, in the order of the table. Positions count from the first row
    and slot of the *whole* table, whatever its domain. There is one element for each index from 0 to the
    table's largest entry: a field that reaches further receives nothing there. Unused places hold row
    ``number of rows`` (out of bounds on purpose) and slot 0.
    """

    rows: Any
    slots: Any


@dataclass(frozen=True, slots=True)
class Degrees:
    """The size of a table's transpose: its elements, and how many entries lead to the busiest of them."""

    elements: int
    largest: int

    @property
    def padded(self) -> int:
        """Rounded up, so that meshes that hardly differ share a plan: 0, 1, 2, then even numbers.

        >>> [Degrees(1, degree).padded for degree in (0, 1, 2, 3, 5, 6)]
        [0, 1, 2, 4, 6, 6]
        """
        return self.largest if self.largest <= 2 else self.largest + self.largest % 2


def is_transposable(domain: Domain) -> bool:
    """Whether tables on `domain` have a transpose: one row dimension, or one row and one LOCAL dimension."""
    return domain.ndim == 1 or (domain.ndim == 2 and len(local_axes(domain)) == 1)


def degrees_of(entries: np.ndarray, skip_value: int | None) -> Degrees:
    """The size of the transpose of a table."""
    targets = entries.reshape(-1) if skip_value is None else entries[entries != skip_value]
    if targets.size == 0:
        return Degrees(0, 0)
    lowest, highest = int(targets.min()), int(targets.max())
    if highest - lowest < 4 * targets.size + COMPILED_FROM:
        counts = np.bincount(targets - lowest)
    else:  # a few entries far apart would ask bincount for all the memory between them
        counts = np.unique(targets, return_counts=True)[1]
    return Degrees(highest + 1, int(counts.max()))


def pays(degrees: Degrees, size: int) -> bool:
    """Whether the padded transpose is small enough to beat a scatter."""
    return degrees.elements * degrees.padded <= LARGEST_PADDING * size


def transposed(entries: np.ndarray, skip_value: int | None, degrees: Degrees, slot_axis: int) -> Transposed:
    """The transpose of a table whose slots run along `slot_axis` (ignored for one axis), on the host."""
    table = entries.reshape(len(entries), 1) if entries.ndim == 1 else np.moveaxis(entries, slot_axis, 1)
    dtype = np.int32 if table.size < np.iinfo(np.int32).max else np.int64
    shape = (degrees.elements, degrees.padded)
    rows, slots = np.full(shape, table.shape[0], dtype), np.zeros(shape, dtype)
    fill = _fill_compiled if table.size >= COMPILED_FROM else _fill
    fill(table, skip_value, rows, slots)
    rows.flags.writeable = slots.flags.writeable = False
    return Transposed(rows, slots)


def _fill(table: np.ndarray, skip_value: int | None, rows: np.ndarray, slots: np.ndarray) -> None:
    row, slot = np.nonzero(np.ones(table.shape, bool) if skip_value is None else table != skip_value)
    targets = table[row, slot]
    order = np.argsort(targets, kind="stable")
    targets = targets[order]
    place = np.arange(targets.size) - np.searchsorted(targets, targets, side="left")
    rows[targets, place], slots[targets, place] = row[order], slot[order]


def _fill_compiled(table: np.ndarray, skip_value: int | None, rows: np.ndarray, slots: np.ndarray) -> None:
    from fieldjax.connectivity.questions.compiled import transpose  # imports numba

    skip = table.dtype.type(0 if skip_value is None else skip_value)
    transpose(table, skip_value is not None, skip, np.zeros(len(rows), rows.dtype), rows, slots)
