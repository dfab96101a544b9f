"""Parts of recorded values: arrays are cut as in NumPy, fields as `Field` is."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from fieldjax.domain import Dimension, Domain, NamedRange, UnitRange
from fieldjax.embedded.slicing import located
from fieldjax.errors import ArgumentError, IndexOutOfBoundsError, user_location
from fieldjax.ir.operations.concat import Part
from fieldjax.ir.operations.layout import Shift
from fieldjax.ir.operations.reduction import Total
from fieldjax.model.axes import AXES, is_array

if TYPE_CHECKING:
    from fieldjax.model.variable import Variable


def cut(x: Variable, index: Any) -> Variable:
    """`x[index]`. Raises ArgumentError for an index of another kind, IndexOutOfBoundsError outside of an array."""
    if not is_array(x.dims):
        _, domain = located(x, index)  # type: ignore[arg-type]  # it looks at the domain only
        if domain.ndim != x.ndim:
            raise ArgumentError("a recorded field is cut, not indexed", location=user_location())
        return x.recorder.apply(Part(domain), x)
    entries = _entries(x, index)
    box = Domain(*(NamedRange(d, r) for d, (r, _) in zip(x.dims, entries, strict=True)))
    part = x.recorder.apply(Part(box), x) if box != x.domain else x
    dropped = tuple(d for d, (_, drop) in zip(x.dims, entries, strict=True) if drop)
    # The sum over an axis of length one drops it.
    return from_zero(x.recorder.apply(Total(dropped), part) if dropped else part)


def _entries(x: Variable, index: Any) -> list[tuple[UnitRange, bool]]:
    """For each axis the range that is taken, and whether the axis goes."""
    given = list(index) if isinstance(index, tuple) else [index]
    if given.count(Ellipsis) > 1 or len(given) - given.count(Ellipsis) > x.ndim:
        raise ArgumentError(f"too many indices for {x!r}", location=user_location())
    if Ellipsis not in given:
        given.append(Ellipsis)
    place = given.index(Ellipsis)
    given[place : place + 1] = [slice(None)] * (x.ndim - len(given) + 1)
    return [_entry(length, i) for length, i in zip(x.shape, given, strict=True)]


def _entry(length: int, index: Any) -> tuple[UnitRange, bool]:
    if isinstance(index, slice):
        start, stop, step = index.indices(length)
        if step != 1:
            raise ArgumentError("a recorded array is cut in steps of one", location=user_location())
        return UnitRange(start, max(start, stop)), False
    try:
        position = operator.index(index)
    except TypeError:
        raise ArgumentError(
            f"a recorded array is indexed by integers and slices, not by {index!r}", location=user_location()
        ) from None
    if not -length <= position < length:
        raise IndexOutOfBoundsError(f"no position {position} among {length}", location=user_location())
    position %= length
    return UnitRange(position, position + 1), True


def from_zero(x: Variable) -> Variable:
    """The array on the last axes, each beginning at zero."""
    moves: list[tuple[Dimension, int, Dimension]] = []
    for n, dim in enumerate(reversed(x.dims), 1):
        start, to = int(x.domain.range_of(dim).start), AXES[len(AXES) - n]
        if start or dim != to:
            moves.append((dim, start, to))
    for dim, start, to in moves:
        x = x.recorder.apply(Shift(dim, start, to), x)
    return x
