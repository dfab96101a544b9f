"""Makes fields: from data, or filled."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from fieldjax.domain import Dimension, Domain, NamedRange, UnitRange, show_dims
from fieldjax.domain import domain as as_domain
from fieldjax.dtypes import as_dtype, require_x64
from fieldjax.embedded.field import Field
from fieldjax.errors import DimensionError, DomainError, user_location


def as_field(
    domain: Any,
    data: Any,
    dtype: Any = None,
    *,
    origin: Mapping[Dimension, int] | None = None,
    allocator: Any = None,
    device: Any = None,
    aligned_index: Any = None,
) -> Field:
    """A field of `data` on `domain`.

    `domain` is anything that `fieldjax.domain` takes, or the bare dimensions: then each starts at zero, or
    at `-origin[dim]`. Data of NumPy (lists too) is copied and stays NumPy's; arrays and tracers of JAX stay
    JAX's. `allocator` or `device`, a `jax.Device`, a sharding, or `jax.numpy`, makes it a JAX array. A
    `jax.ShapeDtypeStruct` makes a field without elements, for `compile` and `lower`.

    Raises DomainError where the shapes differ, DtypeError for a 64-bit dtype while x64 is off, and
    DimensionError where the dimensions aren't in canonical order, or `origin` names another.

    >>> import fieldjax as fj
    >>> Cell = fj.Dimension("Cell")
    >>> fj.as_field({Cell: (2, 5)}, [1.0, 2.0, 3.0]).domain
    Domain(Cell[2:5))
    """
    array = data.ndarray if isinstance(data, Field) else data
    if isinstance(array, jax.ShapeDtypeStruct):
        abstract = jax.ShapeDtypeStruct(array.shape, array.dtype if dtype is None else as_dtype(dtype))
        return Field(abstract, _domain_for(domain, array.shape, origin))
    if not isinstance(array, jax.Array):
        array = np.array(array, copy=True)
        dtype = _default(array, data) if dtype is None else dtype
    if dtype is not None:
        wanted = as_dtype(dtype)
        require_x64(wanted, "a field")
        array = array.astype(wanted)
    return Field(_placed(array, allocator, device), _domain_for(domain, tuple(array.shape), origin))


def _default(array: np.ndarray, data: Any) -> np.dtype:
    """Python numbers take JAX's default dtype; NumPy arrays keep theirs."""
    if isinstance(data, (np.ndarray, np.generic)) or hasattr(data, "__array__"):
        return array.dtype
    kinds = {"f": float, "i": int}
    return as_dtype(kinds[array.dtype.kind]) if array.dtype.kind in kinds else array.dtype


def _placed(array: Any, *places: Any) -> Any:
    """The array where it was asked for. Allocators and devices of gt4py.next say nothing here."""
    import jax.numpy as jnp

    for place in places:
        if place is jnp:
            array = jnp.asarray(array)
        elif isinstance(place, (jax.Device, jax.sharding.Sharding)):
            array = jax.device_put(array, place)
    return array


def _domain_for(domain: Any, shape: tuple[int, ...], origin: Mapping[Dimension, int] | None) -> Domain:
    dims = _bare_dims(domain)
    if dims is None:
        if origin:
            raise DomainError("`origin` goes with bare dimensions, not with ranges", location=user_location())
        return as_domain(domain)
    if len(dims) != len(shape):
        raise DomainError(
            f"{len(dims)} dimensions don't name the axes of an array of shape {shape}", location=user_location()
        )
    if stray := [d.value for d in origin or {} if d not in dims]:
        raise DimensionError(
            f"`origin` names {', '.join(stray)}, the field has {show_dims(dims)}", location=user_location()
        )
    starts = {d: -int((origin or {}).get(d, 0)) for d in dims}
    return Domain(*(NamedRange(d, UnitRange(starts[d], starts[d] + n)) for d, n in zip(dims, shape, strict=True)))


def _bare_dims(domain: Any) -> tuple[Dimension, ...] | None:
    if isinstance(domain, Dimension):
        return (domain,)
    if isinstance(domain, (tuple, list)) and all(isinstance(d, Dimension) for d in domain):
        return tuple(domain)
    return None


def full(
    domain: Any,
    fill_value: Any,
    dtype: Any = None,
    *,
    allocator: Any = None,
    device: Any = None,
    aligned_index: Any = None,
) -> Field:
    """A field that holds `fill_value` everywhere; the dtype is the value's unless given.

    `allocator` and `device` as in `as_field`; `aligned_index`, for programs written for gt4py.next, has no effect.
    """
    where = as_domain(domain)
    _require_finite(where)
    dtype = (
        as_dtype(type(fill_value) if isinstance(fill_value, (bool, int, float)) else np.asarray(fill_value).dtype)
        if dtype is None
        else as_dtype(dtype)
    )
    require_x64(dtype, "a field")
    return Field(_placed(np.full(where.shape, fill_value, dtype), allocator, device), where)


def _require_finite(domain: Domain) -> None:
    if not domain.is_finite():
        raise DomainError(f"a field needs a finite domain, not {domain}", location=user_location())


def zeros(domain: Any, dtype: Any = float, **placing: Any) -> Field:
    """A field of zeros. `placing` as in `full`."""
    return full(domain, 0, dtype, **placing)


def ones(domain: Any, dtype: Any = float, **placing: Any) -> Field:
    """A field of ones. `placing` as in `full`."""
    return full(domain, 1, dtype, **placing)


def empty(domain: Any, dtype: Any = float, **placing: Any) -> Field:
    """A field to be filled. It holds zeros: uninitialised memory would differ from run to run."""
    return full(domain, 0, dtype, **placing)


def _with_partial(constructor: Any) -> None:
    """`zeros.partial(allocator=...)`: the constructor with some arguments given (gt4py.next has it)."""
    constructor.partial = functools.partial(functools.partial, constructor)


for _constructor in (zeros, ones, full, empty, as_field):
    _with_partial(_constructor)
