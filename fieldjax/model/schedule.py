"""A model as a schedule of compiled functions: regions, and the segments of operations between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fieldjax.domain import Domain
from fieldjax.ir.graph import Graph, Node, Value
from fieldjax.ir.operation import Place, is_endless
from fieldjax.ir.operations.literal import Literal, Parameter
from fieldjax.model.interning import interned
from fieldjax.model.isolation import isolated, reads_of
from fieldjax.model.region import Options, Region


@dataclass(frozen=True)
class Step:
    """A graph that is compiled on its own, the values that it reads, and those that it gives."""

    body: Graph
    wanted: tuple[Domain | None, ...]
    options: Options
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]


def schedule(graph: Graph, places: Mapping[Value, Place]) -> list[Step]:
    """The steps of a model, in an order that they can run in. Each value is computed by one step.

    What lies between two regions along every path is one segment; segments that do the same share their body.
    """
    depth = depths(graph)
    steps: list[Step] = []
    for level in range(max(depth.values(), default=0) + 1):
        nodes = [n for n in graph.nodes if depth[n] == level]
        segment = [n for n in nodes if not (is_apart(n) or _is_free(n, places))]
        if (step := _segment(graph, segment, places)) is not None:
            steps.append(step)
        steps += [_region(n) for n in nodes if is_apart(n)]
    wanted = (*graph.outputs, *(v for n in graph.nodes if is_apart(n) for v in n.inputs))
    literals = tuple(v for v in dict.fromkeys(wanted) if isinstance(v.node.operation, Literal))
    return [step_of(literals, places, lambda n: False), *steps] if literals else steps


def is_apart(node: Node) -> bool:
    """Whether a node is a region that has an executable of its own."""
    return isinstance(node.operation, Region) and node.operation.options.is_apart


def _is_free(node: Node, places: Mapping[Value, Place]) -> bool:
    """Whether a node is computed again by everyone who reads it: literals, and what has no end."""
    if isinstance(node.operation, (Literal, Parameter)):
        return True
    return is_endless(places[node.results()[0]])


def depths(graph: Graph) -> dict[Node, int]:
    """How many regions lie behind each node, along the path with most of them."""
    depth: dict[Node, int] = {}
    for node in graph.nodes:
        depth[node] = max((depth[v.node] + is_apart(v.node) for v in node.inputs), default=0)
    return depth


def _region(node: Node) -> Step:
    operation = node.operation
    assert isinstance(operation, Region)
    return Step(operation.body, operation.wanted, operation.options, node.inputs, node.results())


def _segment(graph: Graph, nodes: Sequence[Node], places: Mapping[Value, Place]) -> Step | None:
    own = set(nodes)
    outside = {v for n in graph.nodes if n not in own for v in n.inputs} | set(graph.outputs)
    outputs = tuple(v for n in nodes for v in n.results() if v in outside)
    if not outputs:
        return None
    return step_of(outputs, places, lambda n: n not in own and not _is_free(n, places))


def step_of(outputs: tuple[Value, ...], places: Mapping[Value, Place], is_given: Callable[[Node], bool]) -> Step:
    """The step that computes `outputs` from what the nodes that are given provide, and from parameters."""
    inputs: list[Value] = []
    nodes: dict[Node, None] = {}
    stack = [v.node for v in outputs]
    while stack:
        node = stack.pop()
        if node in nodes:
            continue
        nodes[node] = None
        for value in reads_of([node]):
            if isinstance(value.node.operation, Parameter) or is_given(value.node):
                inputs.append(value)
            else:
                stack.append(value.node)
    inputs = list(dict.fromkeys(inputs))
    body = isolated(inputs, outputs)
    wanted = (None,) * len(outputs)
    domains = [place if isinstance(place := places[v], Domain) else None for v in inputs]
    body, order = interned(body, domains, wanted)
    return Step(body, wanted, Options(), tuple(inputs[n] for n in order), outputs)
