"""Matrix products of recorded arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fieldjax.errors import ArgumentError, user_location
from fieldjax.ir.build import pointwise
from fieldjax.ir.operations.layout import Shift
from fieldjax.ir.operations.reduction import Total
from fieldjax.model.axes import AXES, is_array

if TYPE_CHECKING:
    from fieldjax.model.variable import Variable


def matmul(a: Variable, b: Any) -> Variable:
    """`a @ b` for arrays of one or two axes. Raises ArgumentError for others, and where they don't fit."""
    recorder: Any = a.recorder
    b = recorder.variable(b)
    if not (is_array(a.dims) and is_array(b.dims) and a.ndim <= 2 and b.ndim <= 2):
        raise ArgumentError("a matrix product takes arrays of one or two axes", location=user_location())
    if a.shape[-1] != b.shape[0]:
        raise ArgumentError(f"arrays of shapes {a.shape} and {b.shape} have no product", location=user_location())
    rows, inner, columns = AXES[-3:]
    # On the axes (rows, inner, columns) the product is the sum over `inner` of all that meets there.
    if a.ndim == 2:
        a = recorder.apply(Shift(AXES[-2], 0, rows), a)
    a = recorder.apply(Shift(AXES[-1], 0, inner), a)
    if b.ndim == 1:
        b = recorder.apply(Shift(AXES[-1], 0, inner), b)
    terms = recorder.add(pointwise("multiply", a.value, b.value, location=user_location()))
    product = recorder.apply(Total((inner,)), terms)
    if rows in product.dims:
        product = recorder.apply(Shift(rows, 0, AXES[-2] if columns in product.dims else AXES[-1]), product)
    return product
