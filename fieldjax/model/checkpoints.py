"""Loops over loops: the derivative of a long loop then keeps what its segments begin with, not every step."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from fieldjax.domain import Dimension, Domain, NamedRange, UnitRange
from fieldjax.embedded.leaves import parameter
from fieldjax.errors import ArgumentError, user_location
from fieldjax.ir.build import literal, pointwise
from fieldjax.ir.graph import Graph, Mask, Value
from fieldjax.ir.operation import record
from fieldjax.ir.operations.blocks import Merge
from fieldjax.ir.operations.call import Call
from fieldjax.ir.operations.concat import ConcatWhere
from fieldjax.ir.operations.layout import Shift
from fieldjax.ir.operations.loop import Loop, index_type

SEGMENT = Dimension("#step of a segment")
"""The dimension of stacks inside of a segment; inside of a segment's segments it is that of the whole stack again."""


def sizes_of(checkpoint: Any) -> tuple[int, ...]:
    """The lengths of segments, of the segments in these, and so on.

    Raises ArgumentError for what isn't a positive integer, or several that decrease.
    """
    if checkpoint is None:
        return ()
    sizes = tuple(checkpoint) if isinstance(checkpoint, (tuple, list)) else (checkpoint,)
    integers = all(isinstance(s, int) and not isinstance(s, bool) and s > 0 for s in sizes)
    if not integers or any(after >= before for before, after in itertools.pairwise(sizes)):
        raise ArgumentError(
            f"`checkpoint` is a positive integer, or several from the largest to the smallest, not {checkpoint!r}",
            location=user_location(),
        )
    return sizes


def checkpointed(
    graph: Graph, values: Sequence[Value], carries: int, length: int, sizes: Sequence[int], axis: Dimension
) -> tuple[Value, ...]:
    """What `Loop(graph, length, carries, 0, axis)` gives on these values, by segments of `sizes` steps."""
    given = (*values[:carries], _constant(0), *values[carries:])
    return _steps(_with_first(graph, carries), given, carries, length, sizes, (axis, SEGMENT))


def _steps(
    body: Graph,
    values: Sequence[Value],
    carries: int,
    length: int,
    sizes: Sequence[int],
    axes: tuple[Dimension, Dimension],
) -> tuple[Value, ...]:
    """`length` steps from the one whose number follows the carries: the last carries, and stacks along `axes[0]`."""
    axis, other = axes
    size, *smaller = [s for s in sizes if s < length] or [length]
    if size == length:
        return record(Loop(body, length, carries, 0, axis), *values, location=user_location())
    whole, rest = divmod(length, size)
    segment = _segment(body, carries, size, smaller, (other, axis))
    results = record(Loop(segment, whole, carries, 0, axis), *values, location=user_location())
    last, stacks = results[:carries], [record(Merge(axis, other, size), v)[0] for v in results[carries:]]
    if not rest:
        return (*last, *stacks)
    first = pointwise("add", values[carries], _constant(whole * size))
    ending = _steps(body, (*last, first, *values[carries + 1 :]), carries, rest, smaller, axes)
    longer = [_continued(s, whole * size, e, axis) for s, e in zip(stacks, ending[carries:], strict=True)]
    return (*ending[:carries], *longer)


def _segment(body: Graph, carries: int, size: int, smaller: Sequence[int], axes: tuple[Dimension, Dimension]) -> Graph:
    """`size` steps as one step of a loop."""
    step, *inner = _like(body.inputs)
    first = pointwise("add", inner[carries], pointwise("multiply", step, _constant(size)))
    given = (*inner[:carries], first, *inner[carries + 1 :])
    return Graph((step, *inner), _steps(body, given, carries, size, smaller, axes))


def _continued(stack: Value, length: int, ending: Value, axis: Dimension) -> Value:
    """A stack of `length` steps, and behind it the one of the steps that followed."""
    (behind,) = record(Shift(axis, -length, axis), ending)
    return record(ConcatWhere(Domain(NamedRange(axis, UnitRange(-math.inf, length)))), stack, behind)[0]


def _with_first(graph: Graph, carries: int) -> Graph:
    """The body with one more input after the carries: the number of its first step."""
    step, *inner = _like(graph.inputs)
    (first,) = _like([graph.inputs[0]])
    number = pointwise("add", first, step)
    wanted = (None,) * len(graph.outputs)
    outputs = record(Call(graph, wanted, "step"), number, *inner)
    return Graph((step, *inner[:carries], first, *inner[carries:]), outputs)


def _like(inputs: Sequence[Value]) -> list[Value]:
    """New parameters of the same types and masks."""
    new: dict[Value, Value] = {}
    for value in sorted(inputs, key=lambda v: not v.is_table):
        masks = [Mask(new[m.table], m.slot, m.moved) for m in value.masks]
        new[value] = parameter(str(value.node.operation), value.type, masks)
    return [new[v] for v in inputs]


def _constant(n: int) -> Value:
    return literal(index_type().dtype.type(n))
