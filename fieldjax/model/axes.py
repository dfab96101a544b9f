"""Plain arrays in a recorded model: fields over axes that are counted from the last one, as NumPy broadcasts them."""

from __future__ import annotations

import string
from collections.abc import Sequence

import numpy as np

from fieldjax.domain import Dimension, Domain, UnitRange
from fieldjax.errors import ArgumentError, user_location

AXES = tuple(Dimension(f"axis {letter}") for letter in string.ascii_lowercase)
"""The axes; the last one of an array is always the last of these."""

_AXES = frozenset(AXES)


def axes(rank: int) -> tuple[Dimension, ...]:
    """The axes of an array of this rank. Raises ArgumentError for more than 26."""
    if rank > len(AXES):
        raise ArgumentError(f"an array of {rank} axes; there can be {len(AXES)}", location=user_location())
    return AXES[len(AXES) - rank :]


def array_domain(shape: Sequence[int]) -> Domain:
    """Where an array of this shape lives."""
    return Domain(dims=axes(len(shape)), ranges=tuple(UnitRange(0, n) for n in shape))


def is_array(dims: Sequence[Dimension]) -> bool:
    """Whether something with these dimensions is a plain array with axes."""
    return bool(dims) and all(d in _AXES for d in dims)


def has_axes(dims: Sequence[Dimension]) -> bool:
    """Whether some of the dimensions are axes of plain arrays."""
    return any(d in _AXES for d in dims)


def check_shapes(shapes: Sequence[tuple[int, ...]]) -> None:
    """Raises ArgumentError where arrays of these shapes don't broadcast against each other."""
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        shown = " and ".join(map(str, shapes))
        raise ArgumentError(f"arrays of shapes {shown} don't fit together", location=user_location()) from None
