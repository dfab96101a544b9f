"""The derivatives of a scan, as scans: tangents run along with it, cotangents run against it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fieldjax.dtypes import is_floating
from fieldjax.ir.build import literal, reduce_to
from fieldjax.ir.derivative import jvp, vjp
from fieldjax.ir.graph import Graph, Node, Value
from fieldjax.ir.operation import record
from fieldjax.ir.operations.literal import Literal
from fieldjax.ir.operations.scan import Scan
from fieldjax.ir.simplify import simplify


def forward_tangents(scan: Scan, node: Node, tangents: Sequence[Value | None]) -> tuple[Value | None, ...]:
    """The tangents of the results: a scan over the body and its tangent."""
    live = [n for n in range(scan.end) if tangents[n] is not None]
    if not live:
        return (None,) * len(node.types)
    carried = _floating(scan.body.inputs[: scan.carries])
    moving = [n for n in live if n >= scan.carries]
    emitted = _floating(scan.body.outputs[scan.carries :])
    initial = [tangents[n] or _zero(node.inputs[n], scan.body.inputs[n]) for n in carried]
    order = [*range(scan.carries), *carried, *range(scan.carries, scan.end), *moving]
    given = [*node.inputs[: scan.carries], *initial, *node.inputs[scan.carries : scan.end]]
    given += [t for n in moving if (t := tangents[n]) is not None]
    operation = replace(
        scan,
        body=_with_tangents(scan, carried, moving, emitted),
        carries=scan.carries + len(carried),
        partial=_partial(scan, order, node.inputs[: scan.carries], initial),
    )
    results = record(operation, *given, *node.inputs[scan.end :], location=node.location)
    found: list[Value | None] = [None] * len(node.types)
    for position, n in enumerate(carried):
        found[n] = results[scan.carries + position]
    for position, n in enumerate(emitted):
        found[scan.carries + n] = results[operation.carries + position]
    return tuple(found)


def _partial(scan: Scan, order: Sequence[int], *initial: Sequence[Value]) -> tuple[int, ...]:
    """Positions of what is partial already, and of its tangent. A literal holds everywhere."""
    first = [v for values in initial for v in values]
    literals = {n for n, v in enumerate(first) if isinstance(v.node.operation, Literal)}
    return tuple(p for p, n in enumerate(order) if n in scan.partial and p not in literals)


def _with_tangents(scan: Scan, carried: Sequence[int], moving: Sequence[int], emitted: Sequence[int]) -> Graph:
    """The body with tangents: of carries and arguments, to new carries and what is emitted."""
    body, number = scan.body, scan.carries
    tangent = jvp(body, [*carried, *moving])
    seeds = tangent.inputs[scan.end :]
    inputs = (*body.inputs[:number], *seeds[: len(carried)], *body.inputs[number:], *seeds[len(carried) :])
    new = (*body.outputs[:number], *(tangent.outputs[n] for n in carried))
    return simplify(Graph(inputs, (*new, *(tangent.outputs[number + n] for n in emitted))))


def with_previous(node: Node) -> Node:
    """The same scan, which also emits the carries that each level began with, after its other results."""
    scan = node.operation
    assert isinstance(scan, Scan)
    emitted = scan.body.outputs[scan.carries :]
    missing = [v for v in scan.body.inputs[: scan.carries] if v not in emitted]
    if not missing:
        return node
    operation = replace(scan, body=Graph(scan.body.inputs, (*scan.body.outputs, *missing)))
    return record(operation, *node.inputs, location=node.location)[0].node


def reverse_cotangents(scan: Scan, node: Node, cotangents: Sequence[Value | None]) -> tuple[Value | None, ...]:
    """The cotangents of the inputs: a scan from the last level to the first over the transposed body.

    It carries the cotangents of the carries, and at each level reads the carries that the level began with.
    """
    nothing = (None,) * len(node.inputs)
    carried = _floating(scan.body.inputs[: scan.carries])
    moving = [n + scan.carries for n in _floating(scan.body.inputs[scan.carries :])]
    if all(c is None for c in cotangents) or not (carried or moving):
        return nothing
    forward = with_previous(node)
    live = [n for n in range(scan.carries, len(node.types)) if cotangents[n] is not None]
    given_carries = [position for position, n in enumerate(carried) if cotangents[n] is not None]
    operation, read = _reversed(scan, carried, given_carries, moving, live)
    available = (*_previous(forward), *node.inputs[scan.carries : scan.end], *(cotangents[n] for n in live))
    initial = [cotangents[n] or _zero(node.inputs[n], scan.body.inputs[n]) for n in carried]
    given = [v for n in read if (v := available[n]) is not None]
    anchor = forward.results()[scan.carries]
    results = record(operation, *initial, *given, anchor, location=node.location)
    found: list[Value | None] = list(nothing)
    for n, value in zip((*carried, *moving), results, strict=False):
        if not isinstance(node.inputs[n].node.operation, Literal):
            found[n] = reduce_to(value, node.inputs[n])
    return tuple(found)


def _reversed(
    scan: Scan,
    carried: Sequence[int],
    given_carries: Sequence[int],
    moving: Sequence[int],
    live: Sequence[int],
) -> tuple[Scan, list[int]]:
    """The reverse scan; and which of previous carries, arguments and cotangents it reads."""
    body = scan.body
    back = vjp(Graph(body.inputs, tuple(body.outputs[n] for n in (*carried, *live))), [*carried, *moving])
    seeds = back.inputs[scan.end :]
    arguments = (*body.inputs, *seeds[len(carried) :])
    emitted = back.outputs[len(carried) :] or back.outputs[:1]
    nodes = set(Graph((), back.outputs).nodes)
    zeros = {*(n for n in scan.partial if n >= scan.carries), *range(scan.end, len(arguments))}
    read = [n for n, v in enumerate(arguments) if v.node in nodes or n >= scan.end]
    inputs = (*seeds[: len(carried)], *(arguments[n] for n in read))
    operation = Scan(
        body=Graph(inputs, (*back.outputs[: len(carried)], *emitted)),
        axis=scan.axis,
        forward=not scan.forward,
        carries=len(carried),
        partial=(*given_carries, *(len(carried) + p for p, n in enumerate(read) if n in zeros)),
        anchors=1,
        whole=scan.whole,
    )
    return operation, read


def _previous(node: Node) -> list[Value]:
    """For each carry, the field of what each level began with."""
    scan = node.operation
    assert isinstance(scan, Scan)
    emitted = scan.body.outputs[scan.carries :]
    return [node.results()[scan.carries + emitted.index(v)] for v in scan.body.inputs[: scan.carries]]


def _floating(values: Iterable[Value]) -> list[int]:
    return [n for n, v in enumerate(values) if is_floating(v.field_type.dtype)]


def _zero(like: Value, carry: Value) -> Any:
    return literal(np.zeros((), carry.field_type.dtype)[()])
