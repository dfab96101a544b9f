"""Dimensions, what can be written with them, and their canonical order."""

from __future__ import annotations

import enum
import functools
import numbers
import operator
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from fieldjax.errors import DimensionError, DomainError, FieldjaxError, TracingError

if TYPE_CHECKING:
    from fieldjax.domain.domain import Domain
    from fieldjax.domain.union import DomainUnion

_STAGGERED_PREFIX = "_Staggered"


class DimensionKind(enum.StrEnum):
    """What a dimension runs over: locations of the mesh, levels, or neighbours of a location."""

    HORIZONTAL = "horizontal"
    VERTICAL = "vertical"
    LOCAL = "local"


_KIND_ORDER = {DimensionKind.HORIZONTAL: 0, DimensionKind.LOCAL: 1, DimensionKind.VERTICAL: 2}


class NamedIndex(NamedTuple):
    """One index along one dimension: ``Cell(3)``."""

    dim: Dimension
    value: int

    def __str__(self) -> str:
        return f"{self.dim.value}({self.value})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Dimension:
    """A named axis of fields.

    >>> Cell, K = Dimension("Cell"), Dimension("K", DimensionKind.VERTICAL)
    >>> Cell(3).value
    3
    >>> (2 <= K) & (K < 5)
    Domain(K[2:5))
    >>> K + 1
    Shift(dimension=Dimension('K', DimensionKind.VERTICAL), offset=1)
    """

    value: str
    kind: DimensionKind = DimensionKind.HORIZONTAL

    # NumPy scalars then leave ``np.int64(2) <= K`` to the dimension.
    __array_ufunc__ = None

    def __post_init__(self) -> None:
        if not isinstance(self.value, str):
            raise DimensionError(f"the name of a dimension must be a string, got {self.value!r}")
        if type(self.kind) is not DimensionKind:
            object.__setattr__(self, "kind", DimensionKind(self.kind))

    def __repr__(self) -> str:
        kind = "" if self.kind is DimensionKind.HORIZONTAL else f", DimensionKind.{self.kind.name}"
        return f"Dimension({self.value!r}{kind})"

    def __str__(self) -> str:
        return f"{self.value}[{self.kind}]"

    def __hash__(self) -> int:
        return hash(self.value)

    def __call__(self, value: int) -> NamedIndex:
        """The index `value` along this dimension; ``f[Cell(2):Cell(5)]`` slices by such indices."""
        return NamedIndex(self, static_integer(value))

    def __add__(self, offset: int | float) -> Shift:
        return Shift(self, offset)

    __radd__ = __add__

    def __sub__(self, offset: int | float) -> Shift:
        return Shift(self, -offset)

    def __lt__(self, bound: int) -> Domain:
        return _condition(self, bound, stop=0)

    def __le__(self, bound: int) -> Domain:
        return _condition(self, bound, stop=1)

    def __gt__(self, bound: int) -> Domain:
        return _condition(self, bound, start=1)

    def __ge__(self, bound: int) -> Domain:
        return _condition(self, bound, start=0)

    # An int answers both overloads; a checker takes the first.
    @overload
    def __eq__(self, other: int) -> Domain: ...  # pyright: ignore[reportOverlappingOverload]
    @overload
    def __eq__(self, other: object) -> bool: ...
    def __eq__(self, other: object) -> Any:
        if isinstance(other, Dimension):
            return self is other or (self.value == other.value and self.kind is other.kind)
        return _condition(self, other, start=0, stop=1)

    @overload
    def __ne__(self, other: int) -> Domain | DomainUnion: ...  # pyright: ignore[reportOverlappingOverload]
    @overload
    def __ne__(self, other: object) -> bool: ...
    def __ne__(self, other: object) -> Any:
        if isinstance(other, Dimension):
            return not self == other
        below = _condition(self, other, stop=0)
        return below if below is NotImplemented else below | _condition(self, other, start=1)


def _condition(dim: Dimension, bound: Any, *, start: int | None = None, stop: int | None = None) -> Any:
    """The condition ``bound + start <= dim < bound + stop``; None leaves a side open."""
    from fieldjax.domain.conditions import condition  # a Domain is made of dimensions: it comes later

    # Recorded scalars count as integers: they answer __index__ with a guard.
    if not hasattr(bound, "__index__") or getattr(bound, "ndim", 0):
        return NotImplemented
    value = static_integer(bound)
    return condition(dim, None if start is None else value + start, None if stop is None else value + stop)


def static_integer(value: Any) -> int:
    """`value` as a Python int.

    Raises:
        TracingError: it is traced by JAX.
        DomainError: it is no integer.
    """
    try:
        return operator.index(value)
    except TypeError as error:
        raise _not_an_index(value) from error


def _not_an_index(value: Any) -> FieldjaxError:
    jax: Any = sys.modules.get("jax")  # a tracer exists only where JAX has been imported
    if jax is None or not isinstance(value, jax.core.Tracer):
        return DomainError(f"an index or a bound must be an integer, got {value!r}")
    return TracingError(
        "domains are static, but an index or a bound is traced by JAX",
        notes=[f"it is {jax.typeof(value)}"],
        hints=["make it a static argument, or compute everywhere and select with where"],
    )


@dataclass(frozen=True, slots=True)
class Shift:
    """Reading a field at a displaced index: what ``K + 1`` or ``I - 0.5`` is.

    Law: ``f(Shift(d, offset))`` holds at ``d(i)`` what ``f`` holds at ``codomain(i + index_offset)``.
    A half offset leads to the staggered twin. A staggered index sits half a cell below its base index:
    ``I + 0.5`` reads the twin at i + 1, and on the twin ``+ 0.5`` reads ``I`` at i.

    >>> I = Dimension("I")
    >>> shift = I + 0.5
    >>> shift.codomain == flip_staggered(I), shift.index_offset
    (True, 1)
    """

    dimension: Dimension
    offset: int | float

    def __post_init__(self) -> None:
        object.__setattr__(self, "offset", _half_integer(self.offset))

    @property
    def codomain(self) -> Dimension:
        """The dimension of the field that is read."""
        return self.dimension if isinstance(self.offset, int) else flip_staggered(self.dimension)

    @property
    def index_offset(self) -> int:
        """What is added to an index of `dimension` to get the index of `codomain`."""
        if isinstance(self.offset, int):
            return self.offset
        return int(self.offset // 1) + (0 if is_staggered(self.dimension) else 1)


def _half_integer(offset: Any) -> int | float:
    if hasattr(offset, "__index__"):
        return static_integer(offset)
    if not isinstance(offset, numbers.Real) or not (2 * float(offset)).is_integer():
        raise DimensionError(f"a dimension is shifted by integers or halves, got {offset!r}")
    whole = float(offset)
    return int(whole) if whole.is_integer() else whole


def is_staggered(dim: Dimension) -> bool:
    """Whether `dim` is a staggered twin."""
    return dim.value.startswith(_STAGGERED_PREFIX)


def flip_staggered(dim: Dimension) -> Dimension:
    """The staggered twin of `dim`, or the dimension that `dim` is the twin of.

    >>> flip_staggered(flip_staggered(Dimension("I")))
    Dimension('I')
    """
    if is_staggered(dim):
        return Dimension(dim.value.removeprefix(_STAGGERED_PREFIX), dim.kind)
    return Dimension(_STAGGERED_PREFIX + dim.value, dim.kind)


def as_non_staggered(dim: Dimension) -> Dimension:
    """`dim`, or the dimension that it is the staggered twin of."""
    return flip_staggered(dim) if is_staggered(dim) else dim


def canonical_dims(dims: Iterable[Dimension]) -> tuple[Dimension, ...]:
    """The same dimensions, each once, HORIZONTAL < LOCAL < VERTICAL, then by name.

    A staggered twin stands where its base would.

    >>> Cell, K = Dimension("Cell"), Dimension("K", DimensionKind.VERTICAL)
    >>> [dim.value for dim in canonical_dims((K, Cell, K))]
    ['Cell', 'K']
    """
    return _canonical(tuple(dims))


@functools.lru_cache(maxsize=1024)
def _canonical(dims: tuple[Dimension, ...]) -> tuple[Dimension, ...]:
    ordered = tuple(sorted(dict.fromkeys(dims), key=_order_key))
    return dims if ordered == dims else ordered


def _order_key(dim: Dimension) -> tuple[int, str, str]:
    return _KIND_ORDER[dim.kind], as_non_staggered(dim).value, dim.value


def promote_dims(*dims: Iterable[Dimension]) -> tuple[Dimension, ...]:
    """The union of several sets of dimensions, in canonical order."""
    return canonical_dims(dim for group in dims for dim in group)


def check_order(dims: Iterable[Dimension]) -> None:
    """Raise `DimensionError` unless `dims` (or those of a domain) can be the dimensions of a field.

    They stand in canonical order, each once, and none beside its staggered twin.

    >>> Cell, K = Dimension("Cell"), Dimension("K", DimensionKind.VERTICAL)
    >>> check_order((K, Cell))
    Traceback (most recent call last):
    ...
    fieldjax.errors.DimensionError: dimensions (K, Cell) are not in canonical order
    note: HORIZONTAL comes before LOCAL, LOCAL before VERTICAL; then by name
    help: write (Cell, K)
    """
    _check_field_dims(tuple(getattr(dims, "dims", dims)))


@functools.lru_cache(maxsize=1024)
def _check_field_dims(dims: tuple[Dimension, ...]) -> None:
    _check_once(dims)
    if canonical_dims(dims) != dims:
        raise DimensionError(
            f"dimensions {show_dims(dims)} are not in canonical order",
            notes=["HORIZONTAL comes before LOCAL, LOCAL before VERTICAL; then by name"],
            hints=[f"write {show_dims(canonical_dims(dims))}"],
        )


def _check_once(dims: tuple[Dimension, ...]) -> None:
    if len({as_non_staggered(dim) for dim in dims}) == len(dims):
        return
    if len(set(dims)) < len(dims):
        raise DimensionError(f"a dimension occurs twice in {show_dims(dims)}")
    raise DimensionError(
        f"a dimension and its staggered twin stand in one field: {show_dims(dims)}",
        notes=["they name different places of the grid"],
        hints=["bring one to the other first: f(I + 0.5)"],
    )


def show_dims(dims: Iterable[Dimension]) -> str:
    """The names of `dims`, as error messages print them."""
    return f"({', '.join(dim.value for dim in dims)})"
