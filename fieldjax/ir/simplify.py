"""Simplification: the same graph with equal nodes once, and with one loop for loops with the same steps.

What nobody reads is not reached from the outputs.
"""

from __future__ import annotations

from collections.abc import Callable

from fieldjax.ir.graph import Graph, Node, Value
from fieldjax.ir.joined_loops import join_loops
from fieldjax.ir.operation import Operation
from fieldjax.ir.operations.literal import Parameter


def simplify(graph: Graph) -> Graph:
    """Shares nodes that do the same to the same values, and joins loops that take the same steps.

    The same graph comes back where there are none.
    """
    seen: dict[tuple[Operation, tuple[Value, ...]], Node] = {}

    def share(node: Node) -> Node:
        return node if isinstance(node.operation, Parameter) else seen.setdefault((node.operation, node.inputs), node)

    shared = rewrite(graph, share)
    joined = join_loops(shared)
    # What read two loops may do the same to one.
    return shared if joined is shared else simplify(joined)


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
