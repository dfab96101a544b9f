"""Brings the ranges of two domains over the same dimensions, so that they can be joined one by one.

A box is a tuple of ranges over dimensions that are understood.
"""

from __future__ import annotations

import functools
from typing import TypeAlias

from fieldjax.domain.dimension import Dimension, canonical_dims, promote_dims
from fieldjax.domain.unit_range import EMPTY, INFINITE, UnitRange

Box: TypeAlias = tuple[UnitRange, ...]


def aligned(
    dims: tuple[Dimension, ...], box: Box, other_dims: tuple[Dimension, ...], other_box: Box
) -> tuple[tuple[Dimension, ...], Box, Box]:
    """The united dimensions in canonical order, and both boxes over them, unbounded where they lack one."""
    if dims == other_dims and canonical_dims(dims) == dims:
        return dims, box, other_box
    united, places, other_places = _places(dims, other_dims)
    # Place -1 is that of a missing dimension: it picks the range that is appended here.
    ours, theirs = (*box, INFINITE), (*other_box, INFINITE)
    return united, tuple([ours[i] for i in places]), tuple([theirs[i] for i in other_places])


@functools.lru_cache(maxsize=1024)
def _places(
    dims: tuple[Dimension, ...], other: tuple[Dimension, ...]
) -> tuple[tuple[Dimension, ...], tuple[int, ...], tuple[int, ...]]:
    united = promote_dims(dims, other)
    own_place, other_place = ({dim: i for i, dim in enumerate(group)} for group in (dims, other))
    return united, tuple(own_place.get(d, -1) for d in united), tuple(other_place.get(d, -1) for d in united)


def is_empty_box(box: Box) -> bool:
    """Whether it holds no point."""
    return any(rng.start == rng.stop for rng in box)


def hull_of_boxes(left: Box, right: Box) -> Box:
    """The smallest box around two over the same dimensions."""
    if is_empty_box(left) != is_empty_box(right):
        return right if is_empty_box(left) else left
    # Two empty boxes may be empty along different dimensions: the hull must stay empty.
    keep_empty = is_empty_box(left)
    return tuple(
        [
            EMPTY if keep_empty and (a.is_empty() or b.is_empty()) else a.hull(b)
            for a, b in zip(left, right, strict=True)
        ]
    )
