"""Evaluates a recorded graph node by node; nothing but regions is compiled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fieldjax.ir.evaluation import Evaluation
from fieldjax.ir.graph import Graph, Node, Value, values_read
from fieldjax.ir.inference import infer
from fieldjax.ir.jax_arrays import JaxArrays
from fieldjax.ir.operation import Place, is_endless
from fieldjax.ir.operations.literal import Parameter
from fieldjax.model.executable import executable
from fieldjax.model.region import Region
from fieldjax.model.results import data_of


def evaluate(node: Node, places: Mapping[Value, Place], known: dict[Value, Any], data: Mapping[Value, Any]) -> None:
    """Adds the arrays of a node's results to `known`."""
    if isinstance(node.operation, Parameter) or is_endless(places[node.results()[0]]):
        return
    inputs = tuple(_read(node, places))
    graph = Graph(inputs, node.results())
    plan = infer(graph, [places[v] for v in inputs], [None] * len(graph.outputs))
    arrays = [known[v] if v in known else data_of(data[v]) for v in inputs]
    operation = node.operation
    if isinstance(operation, Region) and operation.options.mode != "inline":
        own = dict(zip(inputs, arrays, strict=True))
        run = executable(operation.body, plan.nested[node][0], operation.options)
        results = run([own[v] for v in node.inputs])
    else:
        results = Evaluation(graph, plan, JaxArrays(), arrays).run()
    known.update(zip(graph.outputs, results, strict=True))


def _read(node: Node, places: Mapping[Value, Place]) -> list[Value]:
    """The values behind a node that are there as arrays: what has no end is computed for its reader."""
    found: list[Value] = []
    for value in values_read(node):
        if isinstance(value.node.operation, Parameter) or not is_endless(places[value]):
            found.append(value)
        else:
            found += _read(value.node, places)
    return list(dict.fromkeys(found))
