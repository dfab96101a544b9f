"""The columns of scans, fixed before a graph is differentiated.

The column of a scan follows from the outputs that it is computed for. A graph of cotangents has other
outputs: there the column must be stated by the scan itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fieldjax.ir.graph import Graph, Node, Value
from fieldjax.ir.operation import record
from fieldjax.ir.simplify import rewrite


def with_fixed_columns(graph: Graph, cotangents: Mapping[int, Value]) -> Graph:
    """The graph with scans whose columns are the extents of the cotangents of the outputs that they serve.

    `cotangents` are those of the outputs that are asked for on a domain; a scan that serves none of them runs
    as far as its arguments reach. Each scan also emits what a reverse scan reads.
    """
    from fieldjax.ir.operations.scan import Scan
    from fieldjax.ir.operations.scan_derivative import with_previous

    if not any(isinstance(n.operation, Scan) for n in graph.nodes):
        return graph
    served = _outputs_served(graph)
    visited = iter(graph.nodes)

    def fix(node: Node) -> Node:
        outputs = served[next(visited)]
        if not isinstance(node.operation, Scan):
            return node
        node = with_previous(node)
        operation = node.operation
        assert isinstance(operation, Scan)
        if operation.whole:
            return node
        anchors = [c for n, c in cotangents.items() if n in outputs and operation.axis in c.dims]
        operation = replace(operation, whole=True, anchors=len(anchors))
        return record(operation, *node.inputs, *anchors, location=node.location)[0].node

    return rewrite(graph, fix)


def _outputs_served(graph: Graph) -> dict[Node, set[int]]:
    """For each node the positions of the outputs that depend on it."""
    served: dict[Node, set[int]] = {node: set() for node in graph.nodes}
    for n, value in enumerate(graph.outputs):
        served[value.node].add(n)
    for node in reversed(graph.nodes):
        for value in node.inputs:
            served[value.node] |= served[node]
    return served
