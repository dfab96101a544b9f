"""Bounds of a table's valid entries: one scan that answers most questions by integer arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many entries are valid (not skips), and the smallest and the largest of them (0 and -1 if none)."""

    size: int
    valid: int
    minimum: int
    maximum: int

    @property
    def skips(self) -> int:
        """How many entries are skips."""
        return self.size - self.valid


def bounds_of(entries: np.ndarray, skip_value: int | None) -> Bounds:
    """The bounds of a table, or of a part of one, whose valid entries aren't negative.

    >>> bounds_of(np.array([[4, -1], [7, 5]]), -1)
    Bounds(size=4, valid=3, minimum=4, maximum=7)
    """
    mask = None if skip_value is None else entries != skip_value
    valid = entries.size if mask is None else int(np.count_nonzero(mask))
    if valid == 0:
        return Bounds(entries.size, 0, 0, -1)
    if mask is None or valid == entries.size:
        return Bounds(entries.size, valid, int(entries.min()), int(entries.max()))
    if skip_value is not None and skip_value < 0:
        # As an unsigned number a negative skip is larger than any index: no temporaries, no masks.
        unsigned = entries.view(f"u{entries.dtype.itemsize}")
        return Bounds(entries.size, valid, int(unsigned.min()), int(entries.max()))
    limits = np.iinfo(entries.dtype)
    minimum = int(np.where(mask, entries, limits.max).min())
    maximum = int(np.where(mask, entries, limits.min).max())
    return Bounds(entries.size, valid, minimum, maximum)
