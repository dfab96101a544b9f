"""Where a table, restricted to a range of its codomain, is fully defined (the inverse image of the range).

The smallest hyperrectangle that holds every entry inside the range must hold nothing else but skips. It
then grows by neighbouring lines that hold only skips: along LOCAL dimensions first, then along the others in
domain order, each line tested over the current extent. A table of only skips is defined everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from fieldjax.connectivity.questions.bounds import Bounds
from fieldjax.connectivity.questions.boxes import Box, slices, whole

COMPILED_FROM = 50_000
"""Tables with fewer entries are scanned by NumPy: compiling takes half a second once."""

Scan: TypeAlias = "Callable[[np.ndarray, int | None, int, int, Sequence[int]], Box | None]"
"""From (entries, skip value, lower, upper, axes in the order of growth) to the box, or None if none is."""


def narrow(
    entries: np.ndarray,
    skip_value: int | None,
    bounds: Bounds,
    lower: float,
    upper: float,
    order: Sequence[int],
) -> Box | None:
    """The box for the range from `lower` to `upper` (exclusive; either may be infinite), or None.

    Law: the same as `scan` wherever the bounds answer alone.
    """
    if bounds.valid == 0 or (lower <= bounds.minimum and bounds.maximum < upper):
        return whole(entries.shape)
    if upper <= bounds.minimum or bounds.maximum < lower or upper <= lower:
        return None
    # Within the bounds, hence finite and representable in the dtype of the table.
    first, last = int(max(lower, bounds.minimum)), int(min(upper, bounds.maximum + 1))
    return scan_for(entries)(entries, skip_value, first, last, order)


def scan_for(entries: np.ndarray) -> Scan:
    """The scan that suits the size of the table."""
    if entries.size < COMPILED_FROM or entries.ndim > 2:
        return scan
    from fieldjax.connectivity.questions.compiled import scan as compiled_scan  # imports numba

    return compiled_scan


def is_inside(entries: np.ndarray, skip_value: int | None, lower: int, upper: int) -> np.ndarray:
    """Which entries are neighbours inside the range. A skip value may lie inside it and is still none."""
    inside = (entries >= lower) & (entries < upper)
    return inside if skip_value is None else inside & (entries != skip_value)


def scan(
    entries: np.ndarray,
    skip_value: int | None,
    lower: int,
    upper: int,
    order: Sequence[int],
    inside: Callable[[np.ndarray, int | None, int, int], np.ndarray] = is_inside,
) -> Box | None:
    """Look at every entry; for a table of any rank that has a valid entry."""
    held = inside(entries, skip_value, lower, upper)
    if not held.any():
        return None
    box = bounding_box(held)
    used = np.ones_like(held) if skip_value is None else entries != skip_value
    if (used & ~held)[slices(box)].any():
        return None
    return _grown(box, used, order)


def bounding_box(held: np.ndarray) -> Box:
    """The smallest box that holds every True of a mask that has some."""
    return tuple(_extent(_project(held, axis)) for axis in range(held.ndim))


def _extent(line: np.ndarray) -> tuple[int, int]:
    positions = np.flatnonzero(line)
    return int(positions[0]), int(positions[-1]) + 1


def _project(mask: np.ndarray, axis: int) -> np.ndarray:
    return np.asarray(mask.any(axis=tuple(other for other in range(mask.ndim) if other != axis)))


def _grown(box: Box, used: np.ndarray, order: Sequence[int]) -> Box:
    extents = list(box)
    for axis in order:
        start, stop = extents[axis]
        extents[axis] = (0, used.shape[axis])
        line = _project(used[slices(tuple(extents))], axis)
        before, after = np.flatnonzero(line[:start]), np.flatnonzero(line[stop:])
        start = int(before[-1]) + 1 if before.size else 0
        stop = stop + int(after[0]) if after.size else used.shape[axis]
        extents[axis] = (start, stop)
    return tuple(extents)
