"""`Domain`: a hyperrectangle of named ranges, where a field lives."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from fieldjax.domain.alignment import aligned, hull_of_boxes, is_empty_box
from fieldjax.domain.dimension import Dimension, canonical_dims, show_dims
from fieldjax.domain.immutable import Immutable, set_slot
from fieldjax.domain.slicing import SliceAt, slices_of
from fieldjax.domain.unit_range import INFINITE, NamedRange, UnitRange
from fieldjax.errors import DimensionError, DomainError, IndexOutOfBoundsError, MissingDimensionError

if TYPE_CHECKING:
    from fieldjax.domain.union import DomainUnion


class Domain(Immutable):
    """Where a field lives: one range for each of its dimensions.

    Immutable and hashable (the hash is computed once). As a set of points it is unbounded along every
    dimension that it lacks. Dimensions may stand in any order here: the canonical order is checked when a
    field is constructed (`check_order`). Results of ``&``, ``|`` and `hull` are in canonical order.

    Laws: ``&`` is associative, commutative up to the order of dimensions and idempotent, with `Domain()` as
    its neutral element; where the result equals the left operand it *is* the left operand.

    >>> from fieldjax.domain import domain
    >>> Cell, K = Dimension("Cell"), Dimension("K")
    >>> domain({Cell: 10, K: (0, 5)}) & (K > 2)
    Domain(Cell[0:10), K[3:5))

    Raises:
        DimensionError: a dimension occurs twice, or something isn't a dimension.
        DomainError: the numbers of dimensions and ranges differ, or something isn't a range.
    """

    __slots__ = ("_hash", "_shape", "dims", "ranges")

    dims: tuple[Dimension, ...]
    ranges: tuple[UnitRange, ...]
    _hash: int
    _shape: tuple[int, ...]

    def __init__(
        self,
        *named_ranges: NamedRange,
        dims: Sequence[Dimension] | None = None,
        ranges: Sequence[UnitRange] | None = None,
    ) -> None:
        if dims is None and ranges is None:
            dims, ranges = _unzip(named_ranges)
        elif named_ranges or dims is None or ranges is None:
            raise DomainError("a domain is made of named ranges, or of both dims= and ranges=")
        set_slot(self, "dims", tuple(dims))
        set_slot(self, "ranges", tuple(ranges))
        _check(self.dims, self.ranges)

    def __repr__(self) -> str:
        return f"Domain({', '.join(map(str, self))})"

    def __reduce__(self) -> tuple[Any, ...]:
        # The cached hash stays behind: hashes of strings differ between processes.
        return _restore, (type(self), self.dims, self.ranges)

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            set_slot(self, "_hash", hash((self.dims, self.ranges)))
            return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Domain):
            return NotImplemented
        return self.dims == other.dims and self.ranges == other.ranges

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.dims)

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of every range; a `DomainError` where one is open."""
        try:
            return self._shape
        except AttributeError:
            set_slot(self, "_shape", tuple(map(len, self.ranges)))
            return self._shape

    @property
    def size(self) -> int | None:
        """The number of points, or None where a range is open."""
        return math.prod(self.shape) if self.is_finite() else None

    def is_finite(self) -> bool:
        """Whether no range is open."""
        return all(rng.is_finite() for rng in self.ranges)

    def is_empty(self) -> bool:
        """Whether it holds no point."""
        return is_empty_box(self.ranges)

    def __len__(self) -> int:
        return len(self.dims)

    def __iter__(self) -> Iterator[NamedRange]:
        return map(NamedRange, self.dims, self.ranges)

    def __contains__(self, item: object) -> bool:
        return any(item == named for named in self)

    @overload
    def __getitem__(self, index: int | Dimension) -> NamedRange: ...
    @overload
    def __getitem__(self, index: slice) -> Domain: ...
    def __getitem__(self, index: int | slice | Dimension) -> NamedRange | Domain:
        """The named range at a position or of a dimension; the domain of a slice of the dimensions."""
        if isinstance(index, slice):
            return _make(self.dims[index], self.ranges[index])
        position = self._position(index)
        return NamedRange(self.dims[position], self.ranges[position])

    def _position(self, index: int | Dimension) -> int:
        if isinstance(index, Dimension):
            return self.dim_index(index, allow_missing=False)
        if not hasattr(index, "__index__"):
            raise DomainError(f"a domain is indexed by position, slice or dimension, got {index!r}")
        if not -len(self.dims) <= index < len(self.dims):
            raise IndexOutOfBoundsError(f"position {index} is out of bounds for {self}")
        return index % len(self.dims)

    @overload
    def dim_index(self, dim: Dimension, *, allow_missing: Literal[False]) -> int: ...
    @overload
    def dim_index(self, dim: Dimension, *, allow_missing: bool = True) -> int | None: ...
    def dim_index(self, dim: Dimension, *, allow_missing: bool = True) -> int | None:
        """The position of `dim`; None (or, on request, a `MissingDimensionError`) where it is missing."""
        for position, own in enumerate(self.dims):
            if own is dim or own == dim:
                return position
        if allow_missing:
            return None
        raise MissingDimensionError(f"dimension {dim.value!r} is not in {self}")

    def range_of(self, dim: Dimension) -> UnitRange:
        """The range of `dim`; a `MissingDimensionError` where it is missing."""
        return self.ranges[self.dim_index(dim, allow_missing=False)]

    def pop(self, index: int | Dimension = -1) -> Domain:
        """Without the dimension at `index`."""
        return self.replace(index)

    def insert(self, index: int | Dimension, *named_ranges: NamedRange) -> Domain:
        """With `named_ranges` before `index`; an index of `ndim` appends."""
        at_end = not isinstance(index, Dimension) and index == self.ndim
        position = self.ndim if at_end else self._position(index)
        return self._splice(position, position, named_ranges)

    def replace(self, index: int | Dimension, *named_ranges: NamedRange) -> Domain:
        """With `named_ranges` (any number) in place of the dimension at `index`."""
        position = self._position(index)
        return self._splice(position, position + 1, named_ranges)

    def _splice(self, start: int, stop: int, named_ranges: Sequence[NamedRange]) -> Domain:
        dims, ranges = _unzip(named_ranges)
        return Domain(
            dims=(*self.dims[:start], *dims, *self.dims[stop:]),
            ranges=(*self.ranges[:start], *ranges, *self.ranges[stop:]),
        )

    @property
    def slice_at(self) -> SliceAt:
        """Slice every range at relative positions: ``d.slice_at[2:3, 2:5]``."""
        return SliceAt(self)

    def restrict(self, dims: Iterable[Dimension]) -> Domain:
        """The part over those of `dims` that it has, in its own order."""
        kept = frozenset(dims)
        return self._select([dim in kept for dim in self.dims])

    def without(self, *dims: Dimension) -> Domain:
        """The part over all other dimensions."""
        return self._select([dim not in dims for dim in self.dims])

    def _select(self, keep: list[bool]) -> Domain:
        if all(keep):
            return self
        return _make(tuple(itertools.compress(self.dims, keep)), tuple(itertools.compress(self.ranges, keep)))

    def translate(self, dim: Dimension, offset: int) -> Domain:
        """Moved along `dim`."""
        position = self.dim_index(dim, allow_missing=False)
        moved = self.ranges[position] + offset
        return self.with_ranges((*self.ranges[:position], moved, *self.ranges[position + 1 :]))

    def with_ranges(self, ranges: tuple[UnitRange, ...]) -> Domain:
        """Other ranges for the same dimensions."""
        if len(ranges) != len(self.dims):
            raise _wrong_number(self.dims, ranges)
        return _make(self.dims, ranges)

    def broadcast(self, dims: tuple[Dimension, ...]) -> Domain:
        """The same points over `dims`, which must hold its own: unbounded along the new ones."""
        if dims is self.dims or dims == self.dims:
            return self
        own = dict(zip(self.dims, self.ranges, strict=True))
        ranges = tuple(own.pop(dim, INFINITE) for dim in dims)
        if own:
            raise DimensionError(f"{self} cannot be broadcast to {show_dims(dims)}: it lacks {show_dims(own)}")
        return _make(dims, ranges)

    def canonical(self) -> Domain:
        """The same domain with its dimensions in canonical order."""
        return self.broadcast(canonical_dims(self.dims))

    def __and__(self, other: Domain) -> Domain:
        if not isinstance(other, Domain):
            return NotImplemented
        dims, left, right = aligned(self.dims, self.ranges, other.dims, other.ranges)
        ranges = left if left == right else tuple(map(UnitRange.__and__, left, right))
        return self._or_same(dims, ranges)

    def __or__(self, other: Domain) -> Domain | DomainUnion:
        from fieldjax.domain.union import unite  # a union is made of domains: it comes later

        return unite((self, other)) if isinstance(other, Domain) else NotImplemented

    def __sub__(self, other: Domain) -> Domain | DomainUnion:
        from fieldjax.domain.union import difference

        return difference(self, other) if isinstance(other, Domain) else NotImplemented

    def __invert__(self) -> Domain | DomainUnion:
        from fieldjax.domain.union import complement

        return complement(self)

    def hull(self, other: Domain) -> Domain:
        """The smallest domain that holds the points of both."""
        dims, left, right = aligned(self.dims, self.ranges, other.dims, other.ranges)
        return self._or_same(dims, hull_of_boxes(left, right))

    def _or_same(self, dims: tuple[Dimension, ...], ranges: tuple[UnitRange, ...]) -> Domain:
        return self if ranges == self.ranges and dims == self.dims else _make(dims, ranges)

    def contains(self, other: Domain) -> bool:
        """Whether every point of `other` is in this domain."""
        if self is other or other.is_empty():
            return True
        _, left, right = aligned(self.dims, self.ranges, other.dims, other.ranges)
        return all(map(UnitRange.__ge__, left, right))

    def slices_of(self, sub: Domain) -> tuple[slice, ...]:
        """The slices that read `sub` from an array laid out on this domain.

        >>> from fieldjax.domain import domain
        >>> I = Dimension("I")
        >>> domain({I: (2, 10)}).slices_of(domain({I: (5, 7)}))
        (slice(3, 5, None),)

        Raises:
            DimensionError: the dimensions differ.
            DomainError: `sub` reaches beyond this domain.
        """
        return slices_of(self, sub)


Sequence.register(Domain)  # pyright: ignore[reportAttributeAccessIssue]


def _unzip(named_ranges: Sequence[Any]) -> tuple[tuple[Dimension, ...], tuple[UnitRange, ...]]:
    if not all(isinstance(named, NamedRange) for named in named_ranges):
        raise DomainError(
            f"a domain is made of named ranges, got {named_ranges!r}",
            hints=["domain({Cell: 10, K: (0, 5)}) takes sizes and pairs"],
        )
    return tuple(named.dim for named in named_ranges), tuple(named.unit_range for named in named_ranges)


# A set's verdict on a `map` of types is the fastest check there is: domains are built on hot paths.
_ONLY_DIMENSIONS = frozenset({Dimension})
_ONLY_RANGES = frozenset({UnitRange})


def _check(dims: tuple[Dimension, ...], ranges: tuple[UnitRange, ...]) -> None:
    if len(dims) != len(ranges):
        raise _wrong_number(dims, ranges)
    if not (_ONLY_DIMENSIONS.issuperset(map(type, dims)) or all(isinstance(dim, Dimension) for dim in dims)):
        raise DimensionError(f"the dimensions of a domain must be instances of Dimension, got {dims!r}")
    if not _ONLY_RANGES.issuperset(map(type, ranges)):
        raise DomainError(f"the ranges of a domain must be instances of UnitRange, got {ranges!r}")
    if len(set(dims)) != len(dims):
        raise DimensionError(f"a dimension occurs twice in {show_dims(dims)}")


def _wrong_number(dims: tuple[Dimension, ...], ranges: tuple[UnitRange, ...]) -> DomainError:
    shown = ", ".join(map(str, ranges))
    return DomainError(f"the number of dimensions in {show_dims(dims)} doesn't match the ranges ({shown})")


def _make(dims: tuple[Dimension, ...], ranges: tuple[UnitRange, ...]) -> Domain:
    """A domain of parts that are known to be sound."""
    made = Domain.__new__(Domain)
    set_slot(made, "dims", dims)
    set_slot(made, "ranges", ranges)
    return made


def _restore(cls: type[Domain], dims: tuple[Dimension, ...], ranges: tuple[UnitRange, ...]) -> Domain:
    return cls(dims=dims, ranges=ranges)
