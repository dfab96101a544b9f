"""Axes of length one that meet longer ones: dropped, so that the value is constant along them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fieldjax.ir.graph import Value
from fieldjax.ir.operation import record
from fieldjax.ir.operations.reduction import Total
from fieldjax.model.axes import AXES

if TYPE_CHECKING:
    from fieldjax.model.recorder import Recording


def stretched(recording: Recording, value: Value, shapes: Sequence[tuple[int, ...]]) -> Value:
    """`value` without the axes along which it has length one and some array of these shapes has more.

    The sum over an axis of length one is what drops it; its transpose puts it back.
    """
    place = recording.domain(value)
    dropped = tuple(d for d, n in zip(place.dims, place.shape, strict=True) if n == 1 and _longest(shapes, d) > 1)
    if not dropped:
        return value
    shorter = record(Total(dropped), value, location=value.node.location)[0]
    recording.adopt([shorter])
    return shorter


def _longest(shapes: Sequence[tuple[int, ...]], dim: object) -> int:
    from_last = len(AXES) - next(n for n, d in enumerate(AXES) if d == dim)
    return max((s[-from_last] for s in shapes if len(s) >= from_last), default=1)
