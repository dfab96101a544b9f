"""Jacobians: one reverse pass for each element of a value, in a recorded loop or all at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fieldjax.domain import Dimension
from fieldjax.embedded.leaves import parameter
from fieldjax.errors import user_location
from fieldjax.ir.build import literal, match, pointwise
from fieldjax.ir.derivative import pull
from fieldjax.ir.graph import Node, Value, topological
from fieldjax.ir.operation import record
from fieldjax.ir.operations.layout import Shift
from fieldjax.ir.operations.loop import Loop, index_type
from fieldjax.ir.operations.positions import Positions
from fieldjax.ir.operations.whole import or_zero
from fieldjax.model.axes import AXES
from fieldjax.model.isolation import isolated, reads_of
from fieldjax.model.recorder import Recording
from fieldjax.model.variable import Variable


def jacobian(recording: Recording, of: Value, wrt: Sequence[Value], loop: bool) -> list[Variable]:
    """Plain arrays of shape `of.shape + wrt.shape`."""
    rows = [Dimension(f"#row {n}") for n in range(len(of.dims))]
    numbers = [parameter(f"row{n}", index_type()) for n in range(len(of.dims))]
    pulled = pull(topological([of]), [(of, _unit(recording, of, numbers))], wrt)
    values = [or_zero(c, w) for c, w in zip(pulled, wrt, strict=True)]
    for number, row, dim in reversed(list(zip(numbers, rows, of.dims, strict=True))):
        length = len(recording.domain(of).range_of(dim))
        values = _over(values, number, row, length, batched=not loop, known=recording)
    return [_as_array(recording, v, rows, w) for v, w in zip(values, wrt, strict=True)]


def _unit(recording: Recording, of: Value, numbers: Sequence[Value]) -> Value:
    """One at the element with these numbers, zero elsewhere."""
    chosen: Value | None = None
    for dim, number in zip(of.dims, numbers, strict=True):
        along, dtype = recording.domain(of).restrict((dim,)), index_type().dtype
        position = record(Positions(dim, dtype, along), of, location=user_location())[0]
        first = literal(dtype.type(along.range_of(dim).start))
        here = pointwise("equal", position, pointwise("add", number, first))
        chosen = here if chosen is None else pointwise("bitwise_and", chosen, here)
    one, zero = (literal(np.full((), x, of.field_type.dtype)[()]) for x in (1, 0))
    return match(pointwise("where", chosen, one, zero), of)


def _over(
    values: Sequence[Value], number: Value, row: Dimension, length: int, batched: bool, known: Recording
) -> list[Value]:
    """The values for each `number` along a new dimension: a loop, whose body is all that depends on the number."""
    inside = _depending_on(number, values)
    read = [v for v in reads_of(list(inside)) if v != number]
    read = list(dict.fromkeys((*read, *(v for v in values if v.node not in inside))))
    body = isolated((number, *read), values)
    results = record(Loop(body, length, 0, 0, row, batched=batched, name="rows"), *read)
    return list(results)


def _depending_on(number: Value, values: Sequence[Value]) -> dict[Node, None]:
    reached = {number}
    nodes: dict[Node, None] = {}
    for node in topological(values):
        if any(v in reached for v in node.inputs):
            reached.update(node.results())
            nodes[node] = None
    return nodes


def _as_array(recording: Recording, value: Value, rows: Sequence[Dimension], wrt: Value) -> Variable:
    dims = [*rows, *wrt.dims]
    for dim, axis in zip(dims, AXES[len(AXES) - len(dims) :], strict=True):
        start = 0 if dim in rows else int(recording.domain(wrt).range_of(dim).start)
        value = record(Shift(dim, start, axis), value)[0]
    return recording.add(value)
