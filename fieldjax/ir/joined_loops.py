"""Loops that take the same steps from the same start as one: it gives what any of them gives.

The derivative of a loop reads the carries of all steps from a second loop, which records them. Where both are in a
graph, that one does for both.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from fieldjax.ir.graph import Graph, Node, Value
from fieldjax.ir.operation import record
from fieldjax.ir.operations.loop import Loop

NO_BODY = Graph((), ())


def join_loops(graph: Graph) -> Graph:
    """The graph in which no two loops take the same steps. The same graph comes back where that is so already."""
    groups: dict[Hashable, list[Node]] = {}
    for node in graph.nodes:
        if isinstance(node.operation, Loop):
            groups.setdefault(_steps(node, node.operation), []).append(node)
    group_of = {node: group for group in groups.values() if len(group) > 1 for node in group}
    if not group_of:
        return graph
    new: dict[Value, Value] = {}
    for node in graph.nodes:
        if node in group_of and node.results()[0] in new:
            continue
        made = node.reading(new)
        if node in group_of:
            new.update(_joined(group_of[node], made.inputs))
        elif made is not node:
            new.update(zip(node.results(), made.results(), strict=True))
    return Graph(graph.inputs, tuple(new.get(v, v) for v in graph.outputs))


def _steps(node: Node, loop: Loop) -> Hashable:
    """What is the same for loops that hand on the same from step to step."""
    return replace(loop, body=NO_BODY), loop.body.inputs, loop.body.outputs[: loop.carries], node.inputs


def _joined(nodes: Sequence[Node], inputs: Sequence[Value]) -> dict[Value, Value]:
    """One loop for several on the same inputs: what stands for their results."""
    loops = [node.operation for node in nodes if isinstance(node.operation, Loop)]
    first = loops[0]
    emitted = list(dict.fromkeys(v for loop in loops for v in loop.body.outputs[loop.carries :]))
    outputs = (*first.body.outputs[: first.carries], *emitted)
    made = replace(first, body=_body(loops, outputs), name=min((loop.name for loop in loops), key=len))
    results = record(made, *inputs, location=nodes[0].location)
    place = {v: first.carries + n for n, v in enumerate(emitted)}
    new: dict[Value, Value] = {}
    for node, loop in zip(nodes, loops, strict=True):
        ports = [*range(loop.carries), *(place[v] for v in loop.body.outputs[loop.carries :])]
        new.update(zip(node.results(), (results[p] for p in ports), strict=True))
    return new


def _body(loops: Sequence[Loop], outputs: tuple[Value, ...]) -> Graph:
    """The steps with these outputs: those of one of the loops, where it gives all of them."""
    body = loops[0].body
    known = (loop.body for loop in loops if loop.body.outputs == outputs)
    return next(known, None) or body.derived(("joined", outputs), lambda: Graph(body.inputs, outputs))
