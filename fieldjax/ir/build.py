"""Builds nodes: pointwise work on values and literals, with every operand under the same masks.

Operations import this module to state their derivatives, and this module records operations: the
operations are therefore imported where they are used.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from fieldjax.domain import Dimension
from fieldjax.errors import ConnectivityError, Location
from fieldjax.ir.arithmetic import Arithmetic
from fieldjax.ir.graph import Value
from fieldjax.ir.operation import record
from fieldjax.ir.slot_masks import at_substitutes


def literal(x: Any) -> Value:
    """A Python or NumPy scalar as a value."""
    from fieldjax.ir.operations.literal import Literal

    return record(Literal.of(x))[0]


def as_value(x: Any) -> Value:
    """A value as it is, anything else as a literal."""
    return x if isinstance(x, Value) else literal(x)


def pointwise(function: str, *operands: Any, location: Location | None = None) -> Value:
    """`function` of values and literals.

    An operand that has a masked local dimension without carrying the mask itself (a sparse field, say) is
    read at the same substitute slots as the others (design.md, law 5).
    """
    from fieldjax.ir.operations.pointwise import Pointwise

    values = adopt_masks(tuple(as_value(x) for x in operands), location)
    return record(Pointwise(function), *values, location=location)[0]


def adopt_masks(values: tuple[Value, ...], location: Location | None = None) -> tuple[Value, ...]:
    """Every value under the masks that any of them carries along a dimension which it has.

    `sparse[E2CDim(1)]` beside `f(E2C[1])` is read at that slot's substitutes too.
    """
    tables: dict[Dimension, Value] = {}
    at_slots = dict.fromkeys(m for v in values for m in v.masks if m.slot is not None and not m.moved)
    for mask in at_slots:
        values = tuple(v if mask in v.masks else at_substitutes(v, mask) for v in values)
    for value in values:
        for mask in value.masks:
            if mask.slot is None and mask.local is not None and not mask.moved:
                known = tables.setdefault(mask.local, mask.table)
                if known != mask.table:
                    raise ConnectivityError(
                        f"two tables meet along {mask.local.value}",
                        location=location,
                        notes=["their neighbours are numbered differently, so slots can't be matched"],
                        hints=["reduce one of the operands first"],
                    )
    return tuple(_adopt(value, tables, location) for value in values)


def _adopt(value: Value, tables: dict[Dimension, Value], location: Location | None) -> Value:
    from fieldjax.ir.operations.slots import Substitute

    for local, table in tables.items():
        if local in value.dims and value.mask_over(local) is None:
            value = record(Substitute(local), value, table, location=location)[0]
    return value


def reduce_to(value: Value, like: Value) -> Value:
    """Sums away the dimensions that `like` lacks and takes its dtype: the transpose of broadcasting."""
    from fieldjax.ir.operations.pointwise import Cast
    from fieldjax.ir.operations.reduction import Reduce, Total

    location = value.node.location
    extra = tuple(d for d in value.dims if d not in like.dims)
    for dim in extra:
        if value.mask_over(dim) is not None:
            value = record(Reduce("sum", dim), value, location=location)[0]
    rest = tuple(d for d in extra if d in value.dims)
    if rest:
        value = record(Total(rest), value, location=location)[0]
    if value.field_type.dtype != like.field_type.dtype:
        value = record(Cast(like.field_type.dtype), value, location=location)[0]
    return value


def match(value: Value, like: Value) -> Value:
    """`value` with the dimensions, the domain and the dtype of `like`."""
    from fieldjax.ir.operations.pointwise import Cast

    value = pointwise("first", value, like, location=like.node.location)
    kind, wanted = value.field_type, like.field_type
    if kind.dtype != wanted.dtype or (kind.weak and not wanted.weak):
        value = record(Cast(like.field_type.dtype), value, location=like.node.location)[0]
    return value


def expressions(values: Iterable[Value], location: Location | None) -> list[Expression]:
    """Values that can be written as arithmetic."""
    return [Expression(value, location) for value in values]


class Expression(Arithmetic):
    """A recorded value with Python's arithmetic. There is no truth value here."""

    __slots__ = ("_at", "value")
    __array_priority__ = 1000

    def __init__(self, value: Value, location: Location | None = None) -> None:
        self.value, self._at = value, location

    def build(self, function: str, *operands: Any) -> Any:
        """`function` of expressions and literals, as an expression."""
        values = [x.value if isinstance(x, Expression) else x for x in operands]
        return Expression(pointwise(function, *values, location=self._at), self._at)

    def _combine(self, function: str, *operands: Any) -> Any:
        known = all(isinstance(x, (Expression, bool, int, float, np.generic)) for x in operands)
        return self.build(function, *operands) if known else NotImplemented
