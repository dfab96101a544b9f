"""Sums over all elements, of recorded values and of data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

from fieldjax.domain import Dimension
from fieldjax.embedded.field import Field
from fieldjax.errors import ArgumentError, DimensionError, user_location
from fieldjax.frontend.handing_over import recorder_of
from fieldjax.ir.operations.reduction import Total
from fieldjax.model.axes import is_array
from fieldjax.model.cutting import from_zero
from fieldjax.model.variable import Variable

Axis = int | Dimension | Sequence[int | Dimension] | None


def sum(x: Any, axis: Axis = None) -> Any:
    """The sum over all elements, or along `axis`: dimensions of a field, numbers of axes of an array.

    A field has as its sum a scalar, or a field on the dimensions that are left. Raises DimensionError for a
    dimension or an axis that `x` doesn't have or that is given twice. Over neighbours, `neighbor_sum` knows what is
    missing.

    >>> import fieldjax as fj
    >>> Cell = fj.Dimension("Cell")
    >>> float(fj.sum(fj.as_field({Cell: 3}, [1.0, 2.0, 4.0])))
    7.0
    """
    if (recorder := recorder_of([x])) is not None:
        over = _dims(x, axis)
        total = recorder.apply(Total(over), x) if over else x
        return from_zero(total) if is_array(total.dims) else total
    if isinstance(x, Field):
        over = _dims(x, axis)
        array = jnp.sum(x.operand, axis=tuple(x.dims.index(d) for d in over))
        left = x.domain.without(*over)
        return Field(array, left) if left.ndim else array
    return jnp.sum(jnp.asarray(x), axis=axis)  # type: ignore[arg-type]


def _dims(x: Any, axis: Axis) -> tuple[Dimension, ...]:
    if axis is None:
        return x.dims
    asked = list(axis) if isinstance(axis, Sequence) else [axis]
    over = tuple(_dim(x, a) for a in asked)
    if len(set(over)) < len(over):
        raise DimensionError(f"an axis is given twice: {axis}", location=user_location())
    return over


def _dim(x: Any, axis: int | Dimension) -> Dimension:
    if isinstance(axis, Dimension):
        if axis not in x.dims:
            have = ", ".join(d.value for d in x.dims)
            raise DimensionError(f"no {axis.value} to sum over among ({have})", location=user_location())
        return axis
    if isinstance(x, Variable) and not is_array(x.dims):
        raise ArgumentError("the axes of a field are dimensions", location=user_location())
    if not -x.ndim <= axis < x.ndim:
        raise DimensionError(f"no axis {axis} among {x.ndim}", location=user_location())
    return x.dims[axis]
