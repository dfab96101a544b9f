"""Simplification: the same graph with equal nodes once. What nobody reads is not reached from the outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fieldjax.ir.graph import Graph, Node, Value
from fieldjax.ir.operation import Operation
from fieldjax.ir.operations.literal import Parameter


def simplify(graph: Graph) -> Graph:
    """Shares nodes that do the same to the same values. The same graph comes back where there are none."""
    seen: dict[tuple[Operation, tuple[Value, ...]], Node] = {}

    def share(node: Node) -> Node:
        return node if isinstance(node.operation, Parameter) else seen.setdefault((node.operation, node.inputs), node)

    return rewrite(graph, share)


def rewrite(graph: Graph, change: Callable[[Node], Node]) -> Graph:
    """Replaces nodes from the inputs on; untouched parts stay the objects that they are.

    `change` gets each node with its inputs already replaced, and returns that node or another with results
    of the same types.
    """
    new: dict[Node, Node] = {}
    for node in graph.nodes:
        new[node] = change(_with_inputs(node, new))
    outputs = tuple(_moved(v, new) for v in graph.outputs)
    return graph if outputs == graph.outputs else Graph(graph.inputs, outputs)


def _with_inputs(node: Node, new: dict[Node, Node]) -> Node:
    inputs = tuple(_moved(v, new) for v in node.inputs)
    masks = tuple(tuple(replace(m, table=_moved(m.table, new)) for m in ms) for ms in node.masks)
    if inputs == node.inputs and masks == node.masks:
        return node
    return Node(node.operation, inputs, node.types, masks, node.location)


def _moved(value: Value, new: dict[Node, Node]) -> Value:
    return Value(new[value.node], value.port) if value.node in new else value
