"""Outputs of a call that are also its inputs: fine where they are read in place, or where nothing is written."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from fieldjax.domain import Domain
from fieldjax.embedded.field import Field
from fieldjax.errors import ArgumentError, FieldjaxError, user_location
from fieldjax.frontend.scope import Scope
from fieldjax.ir.graph import Graph, Node, Value, topological
from fieldjax.ir.inference import boxes_of, infer
from fieldjax.ir.operation import Place
from fieldjax.ir.operations.concat import Part
from fieldjax.ir.operations.gather import Gather
from fieldjax.ir.operations.indexed import IndexedShift
from fieldjax.ir.operations.layout import Shift
from fieldjax.ir.operations.literal import Parameter

MOVING = (Gather, Shift, IndexedShift)


def check_aliases(assigned: Sequence[tuple[Any, Value, Domain]], reads: Sequence[Any]) -> None:
    """Raises ArgumentError where a call reads, at other positions, elements that it also writes.

    `assigned` are (cell, new value, domain); `reads` are the recorded arguments of the call.
    """
    written = {cell.value: domain for cell, _, domain in assigned}
    arguments = frozenset(x.value.node for x in reads) | {v.node for v in written}
    values = [value for _, value, _ in assigned]
    nodes = topological(values, before=arguments)
    readers = _moving_readers(nodes, set(written))
    if not readers:
        return
    cells = {c.value: c.domain for c in (*(c for c, _, _ in assigned), *reads) if hasattr(c, "domain")}
    overlaps = False
    with suppress(FieldjaxError):  # what can't be inferred is reported when the program is planned
        overlaps = _overlaps(assigned, nodes, readers, cells, written)
    if overlaps:
        raise ArgumentError(
            "a call writes elements of a field that it also reads at other positions",
            location=user_location(),
            notes=["what it gives would depend on which are written first"],
            hints=["write to another field, and copy it in a second call"],
        )


def _moving_readers(nodes: Sequence[Node], sources: set[Value]) -> dict[Node, Value]:
    """The nodes that read one of `sources`, or a part of one, at other positions.

    What was computed from a source first is a value of its own, and may be read anywhere.
    """
    origin = {v: v for v in sources}
    found: dict[Node, Value] = {}
    for node in nodes:
        source = origin.get(node.inputs[0]) if node.inputs else None
        if source is not None and isinstance(node.operation, MOVING):
            found[node] = source
        elif source is not None and isinstance(node.operation, Part):
            origin[node.results()[0]] = source
    return found


def _overlaps(
    assigned: Sequence[tuple[Any, Value, Domain]],
    nodes: Sequence[Node],
    readers: dict[Node, Value],
    cells: dict[Value, Domain],
    written: dict[Value, Domain],
) -> bool:
    scope = assigned[0][0].scope
    leaves = _leaves(nodes, cells)
    places = [_place(v, cells, scope) for v in leaves]
    plan = infer(Graph(tuple(leaves), tuple(v for _, v, _ in assigned)), places, [d for _, _, d in assigned])
    known: dict[Value, Place] = dict(zip(leaves, places, strict=True))
    for node, source in readers.items():
        domain = plan.domain(node.results()[0])
        if domain is None:
            continue
        inputs = [known.get(v, plan.domain(v)) for v in node.inputs]
        for box in boxes_of(node.operation.demand(node, [domain], inputs)[0]):  # type: ignore[arg-type]
            if not (box & written[source]).is_empty():
                return True
    return False


def _leaves(nodes: Sequence[Node], cells: dict[Value, Domain]) -> list[Value]:
    """What the call begins from: the values of cells, and parameters."""
    inside = {v for node in nodes for v in node.results() if not isinstance(node.operation, Parameter)}
    outside = dict.fromkeys(v for node in nodes for v in node.inputs if v not in inside)
    parameters = (node.results()[0] for node in nodes if isinstance(node.operation, Parameter))
    return list(dict.fromkeys([*outside, *parameters, *cells]))


def _place(value: Value, cells: dict[Value, Domain], scope: Scope) -> Place:
    if value in cells:
        return cells[value]
    if value.is_table:
        return scope.connectivity(value)
    captured = next((data for data, v in scope.captured if v == value), None)
    return captured.domain if isinstance(captured, Field) else Domain()
