"""Derivatives of loops as loops: tangents run along, cotangents run back over the carries of a recorded history."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from fieldjax.ir.build import literal, match, pointwise
from fieldjax.ir.derivative import jvp, vjp
from fieldjax.ir.graph import Graph, Node, Value
from fieldjax.ir.operation import record
from fieldjax.ir.operations.literal import Parameter
from fieldjax.ir.operations.loop import Loop
from fieldjax.ir.operations.pointwise import Cast
from fieldjax.ir.operations.whole import moves, or_zero, whole
from fieldjax.ir.types import FieldType


def forward_tangents(loop: Loop, node: Node, tangents: Sequence[Value | None]) -> tuple[Value | None, ...]:
    """The tangents of the results: a loop that also carries the tangents of the carries."""
    moving = [n for n in range(loop.carries) if moves(node.inputs[n])]
    given = [n for n in range(loop.carries, len(node.inputs)) if tangents[n] is not None]
    if all(t is None for t in tangents):
        return (None,) * len(node.types)
    body = loop.body.derived(("jvp", tuple(moving), tuple(given)), lambda: _pushed(loop, moving, given))
    first = loop.carries + loop.sliced
    slices, rest = [n for n in given if n < first], [n for n in given if n >= first]
    starts = [or_zero(tangents[n], node.inputs[n]) for n in moving]
    stacks = [whole(t, node.inputs[n]) for n in slices if (t := tangents[n]) is not None]
    same = [whole(t, node.inputs[n]) for n in rest if (t := tangents[n]) is not None]
    operation = replace(
        loop,
        body=body,
        carries=loop.carries + len(moving),
        sliced=loop.sliced + len(slices),
        name=f"tangent of {loop.name}",
    )
    inputs = node.inputs
    results = record(
        operation,
        *inputs[: loop.carries], *starts, *inputs[loop.carries : first], *stacks, *inputs[first:], *same,
        location=node.location,
    )  # fmt: skip
    found: Iterator[Value] = iter(results[loop.carries :])
    return tuple(
        next(found) if (n in moving if n < loop.carries else moves(v)) else None for n, v in enumerate(node.results())
    )


def _pushed(loop: Loop, moving: Sequence[int], given: Sequence[int]) -> Graph:
    """The body with tangents: carries and their tangents, slices and theirs, the rest and theirs."""
    body, first = loop.body, 1 + loop.carries + loop.sliced
    wrt = [1 + n for n in (*moving, *given)]
    outputs = [*moving, *(n for n in range(loop.carries, len(body.outputs)) if moves(body.outputs[n]))]
    tangent = jvp(Graph(body.inputs, tuple(body.outputs[n] for n in outputs)), wrt)
    seeds = dict(zip(wrt, tangent.inputs[len(body.inputs) :], strict=True))
    inputs = [body.inputs[0]]
    for low, high in ((1, 1 + loop.carries), (1 + loop.carries, first), (first, len(body.inputs))):
        inputs += [*body.inputs[low:high], *(seeds[n] for n in wrt if low <= n < high)]
    return Graph(tuple(inputs), (*body.outputs[: loop.carries], *tangent.outputs))


def reverse_cotangents(
    loop: Loop, node: Node, cotangents: Sequence[Value | None], needed: Sequence[bool]
) -> tuple[Value | None, ...]:
    """The cotangents of the inputs: a loop from the last step to the first over the transposed body.

    It carries the cotangents of the carries and the sums for what is the same in every step, and reads the carries
    that each step began with from a loop that also emits them.
    """
    first = loop.carries + loop.sliced
    carried = [n for n in range(loop.carries) if moves(node.inputs[n])]
    slices = [n for n in range(loop.carries, first) if needed[n] and moves(node.inputs[n])]
    same = [n for n in range(first, len(node.inputs)) if needed[n] and moves(node.inputs[n])]
    seeded = [n for n in range(loop.carries, len(node.types)) if cotangents[n] is not None]
    if all(c is None for c in cotangents) or not (any(needed[n] for n in carried) or slices or same):
        return (None,) * len(node.inputs)
    key = ("vjp", tuple(carried), tuple(slices), tuple(same), tuple(seeded))
    body = loop.body.derived(key, lambda: _pulled(loop, carried, slices, same, seeded))
    history = _history(loop, node)
    results, inputs = node.results(), node.inputs
    starts = [or_zero(cotangents[n], results[n]) for n in carried]
    sums = [_zero(inputs[n]) for n in same]
    stacks = [whole(c, results[n]) for n in seeded if (c := cotangents[n]) is not None]
    operation = replace(
        loop,
        body=body,
        carries=len(carried) + len(same),
        sliced=loop.carries + loop.sliced + len(seeded),
        reverse=not loop.reverse,
        name=f"cotangent of {loop.name}",
    )
    pulled = record(
        operation, *starts, *sums, *history, *inputs[loop.carries : first], *stacks, *inputs[first:],
        location=node.location,
    )  # fmt: skip
    found = dict(zip((*carried, *same, *slices), pulled, strict=True))
    return tuple(found.get(n) for n in range(len(inputs)))


def _history(loop: Loop, node: Node) -> tuple[Value, ...]:
    """For each carry the stack of what the steps began with."""
    if not loop.carries:
        return ()
    body = loop.body.derived(
        "history",
        lambda: Graph(loop.body.inputs, (*loop.body.outputs[: loop.carries], *loop.body.inputs[1 : 1 + loop.carries])),
    )
    recorded = replace(loop, body=body, name=f"history of {loop.name}")
    return record(recorded, *node.inputs, location=node.location)[loop.carries :]


def _pulled(
    loop: Loop, carried: Sequence[int], slices: Sequence[int], same: Sequence[int], seeded: Sequence[int]
) -> Graph:
    """One step back.

    Inputs: the step, cotangents of carries, sums so far; the carries that the step began with, its slices, the
    cotangents of what it emitted; the rest. Outputs: cotangents of carries, the sums; cotangents of slices.
    """
    body, first = loop.body, 1 + loop.carries + loop.sliced
    wrt = [1 + n for n in (*carried, *same, *slices)]
    outputs = [*carried, *seeded]
    asked = list(range(len(carried)))
    pulled = vjp(Graph(body.inputs, tuple(body.outputs[n] for n in outputs)), wrt, asked)
    seeds = pulled.inputs[len(body.inputs) :]
    before = len(carried)
    new, contributions = pulled.outputs[:before], pulled.outputs[before : before + len(same)]
    so_far = [_sum_so_far(body.inputs[1 + n]) for n in same]
    sums = [pointwise("add", s, c) for s, c in zip(so_far, contributions, strict=True)]
    inputs = (
        body.inputs[0], *seeds[:before], *so_far,
        *body.inputs[1:first], *seeds[before:], *body.inputs[first:],
    )  # fmt: skip
    return Graph(inputs, (*new, *sums, *pulled.outputs[before + len(same) :]))


def _sum_so_far(like: Value) -> Value:
    kind = FieldType(like.dims, like.field_type.dtype)
    return record(Parameter(f"sum_{like.node.operation}", kind, like.masks))[0]


def _zero(like: Value) -> Value:
    """Zeros like a value, of a dtype that doesn't yield to others."""
    zero = match(literal(0.0), like)
    return record(Cast(zero.field_type.dtype), zero, location=like.node.location)[0] if zero.field_type.weak else zero
