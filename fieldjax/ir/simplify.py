"""Simplification: the same graph with equal nodes once. What nobody reads is not reached from the outputs."""

from __future__ import annotations

from collections.abc import Callable

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
    of the same types, which others may follow.
    """
    new: dict[Value, Value] = {}
    for node in graph.nodes:
        made = change(node.reading(new))
        if made is not node:
            new.update(zip(node.results(), made.results(), strict=False))
    outputs = tuple(new.get(v, v) for v in graph.outputs)
    return graph if outputs == graph.outputs else Graph(graph.inputs, outputs)
