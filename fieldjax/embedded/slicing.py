"""Parts of fields: by position along the axes, or by absolute index and range."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fieldjax.domain import Dimension, Domain, NamedIndex, NamedRange, UnitRange
from fieldjax.dtypes import result_type
from fieldjax.errors import ArgumentError, DomainError, DtypeError, IndexOutOfBoundsError, user_location

if TYPE_CHECKING:
    from fieldjax.embedded.field import Field


def part(field: Field, index: Any) -> Any:
    """`field[index]`: the part as a field, without dimensions where every one of them got an index.

    Integers, slices and `...` count along the axes from the field's first element; `Dim(3)`,
    `Dim(2):Dim(5)`, ranges and domains are absolute positions.

    Raises IndexOutOfBoundsError where the part isn't there.
    """
    from fieldjax.embedded.field import Field

    cuts, domain = located(field, index)
    array = field.ndarray[(*cuts, ...)]  # with the dots NumPy gives an array where one element is left
    masks = tuple(m for m in field.masks if set(m.connectivity.domain.dims) - set(field.dims) <= set(domain.dims))
    cut = Field(array, domain, masks)
    if domain.ndim == field.ndim:
        cut._whole = field
    return cut


def located(field: Field, index: Any) -> tuple[tuple[Any, ...], Domain]:
    """The relative cuts along every axis, and the domain of what they leave."""
    items = index if isinstance(index, tuple) and not isinstance(index, NamedRange | NamedIndex) else (index,)
    if isinstance(index, Domain) or any(_is_absolute(i) for i in items):
        absolute = _absolute(field, index, items)
        return _cut(field, [absolute.get(d, slice(None)) for d in field.dims])
    return _cut(field, _spread(field, items))


def _is_absolute(item: Any) -> bool:
    named = (NamedIndex, NamedRange)
    return isinstance(item, named) or (
        isinstance(item, slice) and any(isinstance(b, named) for b in (item.start, item.stop))
    )


def _absolute(field: Field, index: Any, items: tuple[Any, ...]) -> dict[Dimension, Any]:
    """For each named dimension its relative integer or slice."""
    if isinstance(index, Domain):
        items = tuple(index)
    found: dict[Dimension, Any] = {}
    for item in items:
        dim, cut = _relative(field, item)
        found[dim] = cut
    return found


def _relative(field: Field, item: Any) -> tuple[Dimension, Any]:
    if isinstance(item, slice):
        start, stop = item.start, item.stop
        dim = (start or stop).dim
        if (start and start.dim != dim) or (stop and stop.dim != dim) or item.step is not None:
            raise ArgumentError(f"{item!r} isn't a range of one dimension", location=user_location())
        own = _own(field, dim)
        item = NamedRange(dim, UnitRange(start.value if start else own.start, stop.value if stop else own.stop))
    own = _own(field, item.dim)
    if isinstance(item, NamedIndex):
        if item.value not in own:
            raise _outside(field, f"{item.dim.value}({item.value})")
        return item.dim, int(item.value - own.start)
    wanted = item.unit_range
    if not wanted <= own:
        raise _outside(field, f"{item.dim.value}[{wanted.start}:{wanted.stop})")
    return item.dim, slice(int(wanted.start - own.start), int(wanted.stop - own.start)) if len(wanted) else slice(0, 0)


def _own(field: Field, dim: Dimension) -> UnitRange:
    if dim not in field.dims:
        raise DomainError(
            f"the field has no dimension {dim.value}", location=user_location(), notes=[str(field.domain)]
        )
    return field.domain.range_of(dim)


def _outside(field: Field, wanted: str) -> IndexOutOfBoundsError:
    return IndexOutOfBoundsError(
        f"{wanted} isn't in the field", location=user_location(), notes=[f"it lives on {field.domain}"]
    )


def _spread(field: Field, items: tuple[Any, ...]) -> list[Any]:
    """One relative item for each axis, `...` filled up."""
    gaps = sum(i is Ellipsis for i in items)
    if gaps > 1 or len(items) - gaps > field.ndim:
        raise ArgumentError(f"{len(items)} indices for a field with {field.ndim} dimensions", location=user_location())
    at = next((n for n, i in enumerate(items) if i is Ellipsis), len(items))
    after = items[at + 1 :]
    return [*items[:at], *[slice(None)] * (field.ndim - at - len(after)), *after]


def _cut(field: Field, items: list[Any]) -> tuple[tuple[Any, ...], Domain]:
    cuts, named = [], []
    for dim, own, item in zip(field.dims, field.domain.ranges, items, strict=True):
        if isinstance(item, slice):
            start, stop, step = item.indices(len(own))
            if step != 1:
                raise ArgumentError("fields are cut in steps of one", location=user_location())
            cuts.append(slice(start, max(start, stop)))
            named.append(NamedRange(dim, UnitRange(own.start + start, own.start + max(start, stop))))
        else:
            cuts.append(_position(field, dim, own, item))
    return tuple(cuts), Domain(*named)


def _position(field: Field, dim: Dimension, own: UnitRange, item: Any) -> int:
    if not hasattr(item, "__index__"):
        raise ArgumentError(f"{item!r} isn't an index", location=user_location())
    position = int(item)
    if not -len(own) <= position < len(own):
        raise _outside(field, f"position {position} along {dim.value}")
    return position % len(own)


def with_part(field: Field, index: Any, value: Any) -> Any:
    """The field's array after `field[index] = value`. NumPy's is copied, never written to.

    Raises DomainError where `value` is a field that doesn't cover the part, DtypeError where its dtype would
    lose something.
    """
    from fieldjax.embedded.field import Field

    cuts, domain = located(field, index)
    if isinstance(value, Field):
        if not value.domain.restrict(domain.dims).contains(domain.restrict(value.dims)):
            raise DomainError(
                "the value doesn't cover the part it is assigned to",
                location=user_location(),
                notes=[f"the part is {domain}", f"the value lives on {value.domain}"],
            )
        value = laid_out(value, domain)
    _check_dtype(field, value)
    array = field.ndarray
    if isinstance(array, np.ndarray) and not _is_jax(value):
        new = array.copy()
        new[cuts] = value
        return new
    import jax.numpy as jnp

    return jnp.asarray(array).at[cuts].set(value)


def laid_out(value: Field, domain: Domain) -> Any:
    """The array of `value` on `domain`, with axes of length one for dimensions that it lacks."""
    inner = domain.restrict(value.dims)
    array = value.ndarray[value.domain.slices_of(inner)]
    return array[tuple(slice(None) if d in value.dims else None for d in domain.dims)]


def _is_jax(value: Any) -> bool:
    import jax

    return isinstance(value, jax.Array)


def _check_dtype(field: Field, value: Any) -> None:
    given = getattr(value, "dtype", None)
    if given is None:
        given, weak = np.dtype(type(value)) if isinstance(value, (bool, int, float)) else np.asarray(value).dtype, True
    else:
        weak = False
    if result_type((field.dtype, False), (np.dtype(given), weak))[0] != field.dtype:
        raise DtypeError(
            f"a field of {field.dtype} can't hold {np.dtype(given)} without loss",
            location=user_location(),
            hints=[f"convert first: `value.astype('{field.dtype}')`"],
        )
