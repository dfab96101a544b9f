"""Repeats that feed one another, as one loop: compiling a chain of regions then doesn't grow with its length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from fieldjax.embedded.leaves import parameter
from fieldjax.ir.graph import Graph, Node, Value
from fieldjax.ir.operation import Place, record
from fieldjax.ir.operations.layout import Union
from fieldjax.ir.operations.loop import Loop, index_type
from fieldjax.ir.operations.reduction import Total
from fieldjax.ir.operations.stack import Pick
from fieldjax.model.executable import stats_of
from fieldjax.model.loops import STEPS
from fieldjax.model.region import Region
from fieldjax.model.schedule import depths, is_apart
from fieldjax.model.stacking import runs_of, stacked, steps_of

SHORTEST = 3
"""Chains of fewer regions stay as they are."""


@dataclass(frozen=True)
class Chain:
    """Regions of one body, each of which reads outputs of the one before at the same places."""

    nodes: tuple[Node, ...]
    links: tuple[tuple[int, int], ...]
    """(input, port): what a region reads of the one before."""

    @property
    def region(self) -> Region:
        """What each of them does."""
        operation = self.nodes[0].operation
        assert isinstance(operation, Region)
        return operation

    @cached_property
    def carried(self) -> tuple[int, ...]:
        """The inputs that come from the region before."""
        return tuple(n for n, _ in self.links)

    @cached_property
    def varying(self) -> tuple[int, ...]:
        """The inputs that differ from region to region otherwise."""
        first = self.nodes[0].inputs
        others = (n for n in range(len(first)) if n not in self.carried)
        return tuple(n for n in others if any(node.inputs[n] != first[n] for node in self.nodes))

    @cached_property
    def same(self) -> tuple[int, ...]:
        """The inputs that all regions share."""
        return tuple(n for n in range(len(self.nodes[0].inputs)) if n not in self.carried and n not in self.varying)


def chained(graph: Graph, places: dict[Value, Place]) -> Graph:
    """The graph with every chain of at least `SHORTEST` regions as one region that is a loop.

    Adds where its new values live to `places`.
    """
    while (chain := _first_chain(graph, places)) is not None:
        graph = _looped(graph, chain, places)
    return graph


def _first_chain(graph: Graph, places: dict[Value, Place]) -> Chain | None:
    depth = depths(graph)
    seen: set[Node] = set()
    for node in graph.nodes:
        if node in seen or not _can_chain(node):
            continue
        chain = _chain_from(graph, node, depth, places)
        seen.update(chain.nodes)
        if len(chain.nodes) >= SHORTEST:
            return chain
    return None


def _can_chain(node: Node) -> bool:
    operation = node.operation
    return isinstance(operation, Region) and operation.options.mode in ("auto", "scan") and not operation.options.device


def _chain_from(graph: Graph, first: Node, depth: Mapping[Node, int], places: dict[Value, Place]) -> Chain:
    nodes, links = [first], None
    while True:
        found = _next(graph, nodes[-1], first, depth, places)
        if found is None or (links is not None and found[1] != links):
            return Chain(tuple(nodes), links or ())
        node, links = found
        nodes.append(node)


def _next(
    graph: Graph, node: Node, first: Node, depth: Mapping[Node, int], places: dict[Value, Place]
) -> tuple[Node, tuple[tuple[int, int], ...]] | None:
    """The region after a region in a chain, and how it reads it."""
    for reader in dict.fromkeys(r for v in node.results() for r in graph.readers.get(v, ())):
        if reader.operation != node.operation:
            continue
        links = tuple((n, v.port) for n, v in enumerate(reader.inputs) if v.node is node)
        rest = [v for v in reader.inputs if v.node is not node]
        early = all(depth[v.node] + is_apart(v.node) <= depth[first] for v in rest)
        fits = all(_alike(Value(node, port), node.inputs[n], places) for n, port in links)
        stacks = all(_stacks_with(v, w, places) for v, w in zip(reader.inputs, node.inputs, strict=True) if v in rest)
        if early and fits and stacks:
            return reader, links
    return None


def _stacks_with(value: Value, other: Value, places: dict[Value, Place]) -> bool:
    """Whether two inputs can be elements of one stack, or are the same.

    Tables aren't stacked, nor fields with unused slots. A mask of one slot that was read is for people to see.
    """
    if value.is_table or any(m.slot is None for m in value.masks):
        return value == other
    return places[value] == places[other]


def _alike(value: Value, other: Value, places: dict[Value, Place]) -> bool:
    return value.type == other.type and places[value] == places[other]


def _looped(graph: Graph, chain: Chain, places: dict[Value, Place]) -> Graph:
    """The graph with a chain as one region whose body is a loop, and the stacks that it reads and gives."""
    emitted = _emitted(graph, chain)
    stacks, backward = _stacks(chain)
    order = (*chain.carried, *chain.varying, *chain.same)
    body = _loop_graph(chain, emitted, backward, order, stacks)
    inits = [chain.nodes[0].inputs[n] for n in chain.carried]
    shared = [chain.nodes[0].inputs[n] for n in chain.same]
    location = chain.nodes[0].location
    operation = replace(
        chain.region,
        body=body,
        wanted=(None,) * len(body.outputs),
        name=f"{len(chain.nodes)} x {chain.region.name}",
        options=replace(chain.region.options, mode="segment"),
    )
    results = record(operation, *inits, *stacks, *shared, location=location)
    new: dict[Value, Value] = {}
    length = len(chain.nodes)
    for position, port in enumerate(emitted):
        for n, node in enumerate(chain.nodes):
            at = length - 1 - n if backward else n
            stack = results[len(chain.links) + position]
            new[Value(node, port)] = record(Pick(STEPS, at), stack, location=location)[0]
    for position, (_, port) in enumerate(chain.links):
        new[Value(chain.nodes[-1], port)] = results[position]
    return _replaced(graph, frozenset(chain.nodes), new, places)


def _emitted(graph: Graph, chain: Chain) -> tuple[int, ...]:
    """The ports that somebody outside of the chain reads, but for the last carries."""
    own = set(chain.nodes)
    carried_on = {port for _, port in chain.links}
    read: set[int] = set()
    for node in chain.nodes:
        for value in node.results():
            is_last = node is chain.nodes[-1] and value.port in carried_on
            outside = value in graph.outputs or any(r not in own for r in graph.readers.get(value, ()))
            if outside and not is_last:
                read.add(value.port)
    return tuple(sorted(read))


def _stacks(chain: Chain) -> tuple[list[Value], bool]:
    """What differs from region to region, stacked; in reverse where the stacks that are there run that way."""
    columns = [[node.inputs[n] for node in chain.nodes] for n in chain.varying]
    forward = [runs_of(c) for c in columns]
    reverse = [runs_of(c[::-1]) for c in columns]
    backward = sum(map(len, reverse)) < sum(map(len, forward))
    return [stacked(r) for r in (reverse if backward else forward)], backward


def _loop_graph(
    chain: Chain, emitted: Sequence[int], backward: bool, order: Sequence[int], stacks: Sequence[Value]
) -> Graph:
    """The graph whose one operation is the loop over the regions."""
    region = chain.region
    key = ("chain", len(chain.nodes), chain.links, chain.varying, tuple(emitted), backward)
    return region.body.derived(key, lambda: _made_loop_graph(chain, emitted, backward, order, stacks))


def _made_loop_graph(
    chain: Chain, emitted: Sequence[int], backward: bool, order: Sequence[int], stacks: Sequence[Value]
) -> Graph:
    body = chain.region.body
    step = parameter("step", index_type())
    outputs = (*(body.outputs[port] for _, port in chain.links), *(body.outputs[port] for port in emitted))
    inner = Graph((step, *(body.inputs[n] for n in order)), outputs)
    loop = Loop(inner, len(chain.nodes), len(chain.carried), len(chain.varying), STEPS, reverse=backward)
    types = [v.type for v in (*(chain.nodes[0].inputs[n] for n in chain.carried), *stacks)]
    types += [chain.nodes[0].inputs[n].type for n in chain.same]
    inputs = tuple(parameter(f"in{n}", t) for n, t in enumerate(types))
    made = Graph(inputs, record(loop, *inputs))
    # What is compiled for the chain counts as compiled for the region.
    made.derived("stats", lambda: stats_of(body))
    return made


def _replaced(graph: Graph, gone: frozenset[Node], new: dict[Value, Value], places: dict[Value, Place]) -> Graph:
    """The graph with values of nodes that are gone replaced; sums over all elements of a stack become one operation."""
    moved = dict(new)
    for node in graph.nodes:
        made = node if node in gone else node.reading(moved)
        if made is not node:
            made = _summed(made)
            moved.update(zip(node.results(), made.results(), strict=True))
    result = Graph(graph.inputs, tuple(moved.get(v, v) for v in graph.outputs))
    for node in result.nodes:
        if node not in graph.given and any(v not in places for v in node.results()):
            places.update(
                zip(node.results(), node.operation.available(node, [places[v] for v in node.inputs]), strict=True)
            )
    return result


def _summed(node: Node) -> Node:
    """A sum in which all elements of a stack occur: the sum over the stack, and what is left."""
    if not isinstance(node.operation, Union):
        return node
    by_stack: dict[Value, list[Value]] = {}
    for value in node.inputs:
        if isinstance(value.node.operation, Pick):
            by_stack.setdefault(value.node.inputs[0], []).append(value)
    for stack, picks in by_stack.items():
        if len(picks) != steps_of(stack):
            continue
        total = record(Total((STEPS,)), stack, location=node.location)[0]
        rest = [v for v in node.inputs if v not in picks]
        return record(Union(), total, *rest, location=node.location)[0].node if rest else total.node
    return node
