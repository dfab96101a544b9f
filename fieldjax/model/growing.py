"""A graph that grows at its end, and in which one operation can take the place of many."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fieldjax.errors import Location
from fieldjax.ir.graph import Node, Value
from fieldjax.ir.operation import Operation, Place, record


@dataclass(frozen=True, eq=False)
class Boundary:
    """A part of a graph: its nodes in topological order, the values that it reads, and those that it gives."""

    nodes: tuple[Node, ...]
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]


@dataclass(frozen=True, eq=False)
class Replacement(Boundary):
    """An operation that is to do what the nodes do: on `inputs`, giving `outputs`."""

    operation: Operation

    @property
    def location(self) -> Location | None:
        """The source line of the first output."""
        return self.outputs[0].node.location


class GrowingGraph:
    """Nodes in the order in which they were recorded, each with a number, and who reads each value.

    Nodes are frozen, so what is downstream of a replacement must be made anew. That is put off until somebody looks
    at the graph: many replacements then cost one pass over what they change.
    """

    def __init__(self) -> None:
        self.number: dict[Node, int] = {}
        """The nodes in topological order, each with a number that grows with it. Replacements may be pending."""
        self.readers: dict[Value, dict[Node, None]] = {}
        self.places: dict[Value, Place] = {}
        """Where values live: the domain of each field, array and scalar; whom to ask about each table."""
        self.pending: dict[Node, Replacement] = {}
        """What takes the place of a node as soon as somebody looks."""
        self._last = 0

    @property
    def nodes(self) -> Collection[Node]:
        """The nodes in topological order."""
        self.settle()
        return self.number.keys()

    @property
    def state(self) -> int:
        """Another number after each change."""
        self.settle()
        return self._last

    def enter(self, node: Node, places: Sequence[Place]) -> None:
        """Adds a node, whose results live at `places`, at the end."""
        self._last += 1
        self.number[node] = self._last
        for value in node.inputs:
            self.readers.setdefault(value, {})[node] = None
        self.places.update(zip(node.results(), places, strict=True))

    def replace(self, replacements: Sequence[Replacement]) -> None:
        """Each operation takes the place of its nodes, which must be disjoint, and closed but for their outputs."""
        for replacement in replacements:
            self.pending.update(dict.fromkeys(replacement.nodes, replacement))

    def settle(self) -> None:
        """Carries out what is pending."""
        if not self.pending:
            return
        owner, self.pending = self.pending, {}
        affected = self._affected(owner)
        new: dict[Value, Value] = {}
        made: list[Node] = []
        for unit in _in_order(affected, owner):
            node = _operation(unit, new) if isinstance(unit, Replacement) else unit.reading(new)
            results = unit.outputs if isinstance(unit, Replacement) else unit.results()
            new.update(zip(results, node.results(), strict=True))
            made.append(node)
        places = {to: self.places[value] for value, to in new.items()}
        for node in affected:
            self._remove(node)
        for node in made:
            self.enter(node, [places[v] for v in node.results()])
        self.on_replaced(new)

    def on_replaced(self, new: Mapping[Value, Value]) -> None:
        """Called when values were replaced by others."""

    def _affected(self, owner: Mapping[Node, Replacement]) -> list[Node]:
        """The nodes that are replaced and all that depends on them, in topological order."""
        found = set(owner)
        stack = list(owner)
        while stack:
            for value in stack.pop().results():
                new = [n for n in self.readers.get(value, ()) if n not in found]
                found.update(new)
                stack += new
        return sorted(found, key=self.number.__getitem__)

    def _remove(self, node: Node) -> None:
        del self.number[node]
        for value in node.inputs:
            # Twice where it reads a value twice; gone where the value's node went before it.
            self.readers.get(value, {}).pop(node, None)
        for value in node.results():
            self.readers.pop(value, None)
            del self.places[value]


def _in_order(nodes: Sequence[Node], owner: Mapping[Node, Replacement]) -> list[Node | Replacement]:
    """The nodes and what takes the place of some, each after what it reads of them."""
    own = set(nodes)
    done: dict[Node | Replacement, None] = {}
    stack: list[tuple[Node | Replacement, Iterator[Value]]] = []

    def push(node: Node) -> None:
        unit = owner.get(node, node)
        if unit not in done:
            stack.append((unit, iter(unit.inputs)))

    for root in nodes:
        push(root)
        while stack:
            unit, pending = stack[-1]
            value = next((v for v in pending if v.node in own and owner.get(v.node, v.node) not in done), None)
            if value is not None:
                push(value.node)
            else:
                stack.pop()
                done[unit] = None
    return list(done)


def _operation(replacement: Replacement, new: Mapping[Value, Value]) -> Node:
    inputs = (new.get(v, v) for v in replacement.inputs)
    return record(replacement.operation, *inputs, location=replacement.location)[0].node
