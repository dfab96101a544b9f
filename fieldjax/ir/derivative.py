"""Derivatives of graphs as graphs: forward and reverse, to any order, since the result is a graph again."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence

from fieldjax.dtypes import is_floating
from fieldjax.errors import DtypeError
from fieldjax.ir.build import literal, match, pointwise
from fieldjax.ir.columns import with_fixed_columns
from fieldjax.ir.graph import Graph, Node, Value
from fieldjax.ir.operation import record
from fieldjax.ir.operations.layout import Extend, Union
from fieldjax.ir.operations.literal import Parameter
from fieldjax.ir.operations.slots import UsedOnly
from fieldjax.ir.simplify import simplify


def jvp(graph: Graph, wrt: Sequence[int]) -> Graph:
    """The graph of the outputs' tangents.

    Its inputs are those of `graph`, then a tangent for each input position in `wrt`, on the same domain; its
    outputs are the tangents of the outputs, zero where no path leads.

    Raises DtypeError where an input of `wrt` isn't a floating-point field.
    """
    seeds = {n: _seed(graph.inputs[n], f"d_{graph.inputs[n].node.operation}") for n in wrt}
    tangents = push(graph.nodes, {graph.inputs[n]: seed for n, seed in seeds.items()})
    outputs = tuple(_or_zero(tangents.get(v), v) for v in graph.outputs)
    return simplify(Graph((*graph.inputs, *seeds.values()), outputs))


def vjp(graph: Graph, wrt: Sequence[int], asked: Sequence[int] = ()) -> Graph:
    """The graph of the inputs' cotangents.

    Its inputs are those of `graph`, then a cotangent for each floating-point output, on the output's domain;
    its outputs are the cotangents of the inputs in `wrt`, each on the whole domain of that input.

    `asked` are the outputs that the forward program computes on domains it is asked for, not on all that is
    available. The columns of scans follow from the former, and here from the domains of their cotangents.

    Raises DtypeError where an input of `wrt` isn't a floating-point field.
    """
    for n in wrt:
        _check_differentiable(graph.inputs[n])
    seed_of = {n: _seed(v, f"ct_{n}") for n, v in enumerate(graph.outputs) if is_floating(v.field_type.dtype)}
    graph = with_fixed_columns(graph, {n: s for n, s in seed_of.items() if n in asked})
    seeds = [(graph.outputs[n], seed) for n, seed in seed_of.items()]
    pulled = pull(graph.nodes, seeds, [graph.inputs[n] for n in wrt])
    outputs = tuple(_on_whole(c, graph.inputs[n]) for n, c in zip(wrt, pulled, strict=True))
    return simplify(Graph((*graph.inputs, *(s for _, s in seeds)), outputs))


def push(nodes: Iterable[Node], seeds: Mapping[Value, Value]) -> dict[Value, Value | None]:
    """The tangents of all that `nodes`, in topological order, make of the values that have `seeds`.

    A value whose tangent is None, or that isn't there, doesn't move.
    """
    tangents: dict[Value, Value | None] = dict(seeds)
    for node in nodes:
        if isinstance(node.operation, Parameter) or any(v in seeds for v in node.results()):
            continue
        incoming = [tangents.get(v) for v in node.inputs]
        if any(t is not None for t in incoming):
            tangents.update(zip(node.results(), node.operation.jvp(node, incoming), strict=True))
    return tangents


def pull(nodes: Sequence[Node], seeds: Iterable[tuple[Value, Value]], wrt: Sequence[Value]) -> list[Value | None]:
    """The cotangents of `wrt`, each where it isn't zero, for (value, cotangent) pairs of what `nodes` compute.

    `nodes` are in topological order. None stands for zero.
    """
    incoming: dict[Value, list[Value]] = {}
    for value, seed in seeds:
        incoming.setdefault(value, []).append(seed)
    needed = _reaching(nodes, set(wrt))
    for node in reversed(nodes):
        _pull_back(node, incoming, needed)
    return [_sum(incoming.get(v, [])) for v in wrt]


def _pull_back(node: Node, incoming: dict[Value, list[Value]], needed: set[Value]) -> None:
    results = node.results()
    if isinstance(node.operation, Parameter) or not any(v in incoming for v in results):
        return
    if not any(v in needed for v in node.inputs):
        return
    cotangents = [_sum(incoming[v]) if v in incoming else None for v in results]
    asked = [v in needed for v in node.inputs]
    for value, cotangent in zip(node.inputs, node.operation.pull_back(node, cotangents, asked), strict=True):
        if cotangent is not None and value in needed:
            incoming.setdefault(value, []).append(cotangent)


def _reaching(nodes: Iterable[Node], sources: set[Value]) -> set[Value]:
    """The values that depend on `sources`."""
    reached = set(sources)
    for node in nodes:
        if any(v in reached for v in node.inputs):
            reached.update(node.results())
    return reached


def _sum(cotangents: Sequence[Value]) -> Value | None:
    if len(cotangents) > 1 and any(c.field_type.weak for c in cotangents):
        return functools.reduce(lambda x, y: pointwise("add", x, y, location=x.node.location), cotangents)
    if len(cotangents) > 1:
        return record(Union(), *cotangents, location=cotangents[0].node.location)[0]
    return cotangents[0] if cotangents else None


def _seed(value: Value, name: str) -> Value:
    _check_differentiable(value)
    return record(Parameter(name, value.type, value.masks))[0]


def _check_differentiable(value: Value) -> None:
    if value.is_table or not is_floating(value.field_type.dtype):
        raise DtypeError(
            f"{value.node.operation} is {value.type} and has no derivative",
            location=value.node.location,
            hints=["differentiate with respect to floating-point fields"],
        )


def _or_zero(tangent: Value | None, like: Value) -> Value:
    return match(literal(0.0), like) if tangent is None else tangent


def _on_whole(cotangent: Value | None, like: Value) -> Value:
    if cotangent is None:
        return match(literal(0.0), like)
    if not like.dims:
        return cotangent
    return record(Extend(), _of_neighbours(cotangent, like), like, location=like.node.location)[0]


def _of_neighbours(cotangent: Value, like: Value) -> Value:
    """Zero where `like` holds a substitute: nobody reads it there."""
    for mask in like.masks:
        if mask.slot is None and mask.local is not None and not mask.moved:
            cotangent = record(UsedOnly(mask.local), cotangent, mask.table, location=like.node.location)[0]
    return cotangent
