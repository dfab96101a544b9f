"""Puts regions in the place of their nodes: the values that they give keep their readers, names and variables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fieldjax.compress.boundary import Boundary
from fieldjax.ir.graph import Graph, Node, Value
from fieldjax.ir.operation import record
from fieldjax.model.recorder import Recording
from fieldjax.model.region import Options, Region


@dataclass(frozen=True)
class Placed:
    """A region to be put in place: what it is in the graph, and the body that it runs, its inputs in that order."""

    boundary: Boundary
    body: Graph
    inputs: tuple[Value, ...]
    name: str
    options: Options


def put_in_place(recording: Recording, regions: Sequence[Placed]) -> list[Node]:
    """Replaces the nodes of each region by one node. Returns these, in the order of `regions`."""
    owner = {node: region for region in regions for node in region.boundary.nodes}
    new: dict[Value, Value] = {}
    order: dict[Node, None] = {}
    made: dict[int, Node] = {}
    for unit in _in_order(recording, owner):
        if isinstance(unit, Placed):
            node = _region(unit, new)
            made[id(unit)] = node
            new.update(zip(unit.boundary.outputs, node.results(), strict=True))
        else:
            node = unit.reading(new)
            new.update(zip(unit.results(), node.results(), strict=True))
        order[node] = None
    moved = {
        v: region.name
        for region in regions
        for node in region.boundary.nodes
        for v in node.results()
        if v not in region.boundary.outputs
    }
    recording.replaced(order, new, moved)
    return [made[id(region)] for region in regions]


def _in_order(recording: Recording, owner: dict[Node, Placed]) -> list[Node | Placed]:
    """Nodes and regions, each after what it reads."""
    done: dict[int, Node | Placed] = {}
    stack: list[tuple[Node | Placed, Iterator[Value]]] = []

    def push(node: Node) -> None:
        unit = owner.get(node, node)
        if id(unit) not in done:
            stack.append((unit, iter(unit.inputs)))

    for root in recording.nodes:
        push(root)
        while stack:
            unit, pending = stack[-1]
            value = next((v for v in pending if id(owner.get(v.node, v.node)) not in done), None)
            if value is not None:
                push(value.node)
            else:
                stack.pop()
                done.setdefault(id(unit), unit)
    return list(done.values())


def _region(placed: Placed, new: dict[Value, Value]) -> Node:
    operation = Region(placed.body, (None,) * len(placed.body.outputs), placed.name, options=placed.options)
    location = placed.boundary.outputs[0].node.location
    return record(operation, *(new.get(v, v) for v in placed.inputs), location=location)[0].node
