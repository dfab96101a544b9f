"""`UnitRange`: consecutive integers, possibly without end; alone, or along a dimension."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias, overload

from fieldjax.domain.dimension import Dimension, static_integer
from fieldjax.domain.immutable import Immutable, set_slot
from fieldjax.errors import DomainError, IndexOutOfBoundsError

Bound: TypeAlias = "int | float"


def _bound(value: Any) -> Bound:
    if isinstance(value, float) and math.isinf(value):
        return float(value)
    if not hasattr(value, "__index__"):
        raise DomainError(f"the bound of a range must be an integer or ±math.inf, got {value!r}")
    return static_integer(value)


class Infinity:
    """The open ends under gt4py.next's names; they are plain ``-math.inf`` and ``math.inf``."""

    NEGATIVE = -math.inf
    POSITIVE = math.inf


class UnitRange(Immutable):
    """The integers from `start` (inclusive) to `stop` (exclusive); ``±math.inf`` leaves a side open.

    Laws: every empty range is ``UnitRange(0, 0)``; ``<=`` is "subset of"; ``a & b`` holds exactly the
    integers in both, and is `a` itself where `a` is a subset; ``a.hull(b)`` is the
    smallest range around both.

    >>> UnitRange(2, 8) & UnitRange(5, math.inf)
    UnitRange(5, 8)
    >>> UnitRange(3, 1)
    UnitRange(0, 0)
    """

    __slots__ = ("start", "stop")

    start: Bound
    stop: Bound

    def __init__(self, start: Bound, stop: Bound) -> None:
        if type(start) is not int:
            start = _bound(start)
        if type(stop) is not int:
            stop = _bound(stop)
        if not start < stop:
            start = stop = 0
        set_slot(self, "start", start)
        set_slot(self, "stop", stop)

    @classmethod
    def infinite(cls) -> UnitRange:
        """All integers."""
        return INFINITE

    def is_finite(self) -> bool:
        """Whether both sides are closed."""
        return self.start != -math.inf and self.stop != math.inf

    def is_left_finite(self) -> bool:
        """Whether it has a first element (or none at all)."""
        return self.start != -math.inf

    def is_right_finite(self) -> bool:
        """Whether it has a last element (or none at all)."""
        return self.stop != math.inf

    def is_empty(self) -> bool:
        """Whether it holds no integer."""
        return self.start == self.stop

    def __repr__(self) -> str:
        return f"UnitRange({self.start}, {self.stop})"

    def __str__(self) -> str:
        opening = "(" if self.start == -math.inf else "["
        return f"{opening}{self.start}:{self.stop})"

    def __reduce__(self) -> tuple[Any, ...]:
        return UnitRange, (self.start, self.stop)

    def __hash__(self) -> int:
        return hash((self.start, self.stop))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, UnitRange):
            return NotImplemented
        return self.start == other.start and self.stop == other.stop

    def __len__(self) -> int:
        size = self.stop - self.start
        if size == math.inf:
            raise DomainError(f"the open range {self} has no length")
        return size  # type: ignore[return-value]  # only an infinite bound is a float

    def __iter__(self) -> Iterator[int]:
        return iter(self._range())

    def __reversed__(self) -> Iterator[int]:
        return reversed(self._range())

    def _range(self) -> range:
        size = len(self)  # raises where the range is open
        return range(int(self.start), int(self.start) + size)

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> UnitRange: ...
    def __getitem__(self, index: int | slice) -> int | UnitRange:
        """The element, or the sub-range, at positions counted from the start (negative: from the stop)."""
        if isinstance(index, slice):
            return self._slice(index)
        try:
            return self._range()[index]
        except IndexError:
            raise IndexOutOfBoundsError(
                f"position {index} is outside the range {self}",
                notes=[f"positions count from the start of the range: 0 to {len(self) - 1}"],
            ) from None

    def _slice(self, index: slice) -> UnitRange:
        start, stop, step = index.indices(len(self))
        if step != 1:
            raise DomainError(f"a range is sliced with step 1, got {step}")
        return UnitRange(self.start + start, self.start + stop)

    def index(self, value: int) -> int:
        """The position of `value`."""
        if value not in self:
            raise IndexOutOfBoundsError(f"{value!r} is not in the range {self}")
        return static_integer(value - self.start)

    def count(self, value: object) -> int:
        """1 where `value` is in the range, else 0."""
        return int(value in self)

    def __contains__(self, value: object) -> bool:
        return hasattr(value, "__index__") and self.start <= static_integer(value) < self.stop

    def __and__(self, other: UnitRange) -> UnitRange:
        if self is other or self <= other:
            return self
        return other if other <= self else UnitRange(max(self.start, other.start), min(self.stop, other.stop))

    def hull(self, other: UnitRange) -> UnitRange:
        """The smallest range that holds both.

        >>> UnitRange(0, 2).hull(UnitRange(5, 7))
        UnitRange(0, 7)
        """
        if self <= other:
            return other
        return self if other <= self else UnitRange(min(self.start, other.start), max(self.stop, other.stop))

    def __le__(self, other: UnitRange) -> bool:
        return (self.start >= other.start and self.stop <= other.stop) or self.start == self.stop

    def __lt__(self, other: UnitRange) -> bool:
        return self <= other and self != other

    def __ge__(self, other: UnitRange) -> bool:
        return other <= self

    def __gt__(self, other: UnitRange) -> bool:
        return other < self

    def __add__(self, offset: int) -> UnitRange:
        """Translated by `offset`."""
        if self.start == self.stop or offset == 0:
            return self
        return UnitRange(self.start + offset, self.stop + offset)

    def __sub__(self, offset: int) -> UnitRange:
        return self + -offset


Sequence.register(UnitRange)  # pyright: ignore[reportAttributeAccessIssue]

INFINITE = UnitRange(-math.inf, math.inf)
EMPTY = UnitRange(0, 0)

RangeLike: TypeAlias = "UnitRange | range | tuple[int | float | None, int | float | None] | int | None"


def unit_range(range_like: RangeLike) -> UnitRange:
    """A `UnitRange` from a size, a (start, stop) pair (None: open), a `range`, or None (everything).

    >>> unit_range(3), unit_range((1, None))
    (UnitRange(0, 3), UnitRange(1, inf))
    """
    if isinstance(range_like, UnitRange):
        return range_like
    if range_like is None:
        return INFINITE
    if isinstance(range_like, range) and range_like.step == 1:
        return UnitRange(range_like.start, range_like.stop)
    if type(range_like) is tuple and len(range_like) == 2:
        start, stop = range_like
        return UnitRange(-math.inf if start is None else start, math.inf if stop is None else stop)
    if hasattr(range_like, "__index__"):
        return UnitRange(0, range_like)  # type: ignore[arg-type]
    raise DomainError(
        f"{range_like!r} is not a range",
        hints=["give a size, a pair (start, stop), a range with step 1, a UnitRange, or None for everything"],
    )


class NamedRange(NamedTuple):
    """A range along a dimension."""

    dim: Dimension
    unit_range: UnitRange

    def __str__(self) -> str:
        return f"{self.dim.value}{self.unit_range}"
