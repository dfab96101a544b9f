"""Finds other copies of a region: by walking both back from their outputs, operation by operation."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence

from fieldjax.compress.boundary import Uses, depends
from fieldjax.ir.graph import Node, Value
from fieldjax.ir.key import same_by_name
from fieldjax.ir.operation import Operation
from fieldjax.ir.operations.literal import Literal
from fieldjax.model.growing import Boundary
from fieldjax.model.recorder import Recording


class Finder:
    """Looks for copies of one region, first come first taken in topological order."""

    def __init__(self, recording: Recording, pattern: Boundary, by_name: bool = False) -> None:
        self.recording, self.pattern, self.uses = recording, pattern, Uses(recording)
        self._same: Callable[[Operation, Operation], bool] = _equal_or_named if by_name else operator.eq
        self._slots = set(pattern.inputs)
        self._owner: dict[Node, Boundary] = dict.fromkeys(pattern.nodes, pattern)
        self._height = max(self._heights(pattern.nodes, {}).values())
        self._number = recording.number

    def copies(self) -> list[Boundary]:
        """The copies that can be regions too: disjoint, none of their inner values used elsewhere, no cycle."""
        found: list[Boundary] = []
        heights: dict[Node, int] = {}
        last = self.pattern.outputs[0]
        for node in self._number:
            if node in self._owner:
                continue
            self._heights([node], heights)
            if heights[node] < self._height or not self._same(node.operation, last.node.operation):
                continue
            copy = self._match(Value(node, last.port))
            if copy is not None:
                found.append(copy)
                self._owner.update(dict.fromkeys(copy.nodes, copy))
                heights.update(dict.fromkeys(copy.nodes, 0))
        return found

    def _heights(self, nodes: Sequence[Node], known: dict[Node, int]) -> dict[Node, int]:
        """How many nodes lie behind each, one upon the other, that aren't part of a region yet."""
        own = set(nodes)
        for node in nodes:
            behind = (known.get(v.node, 0) for v in node.inputs if not (v in self._slots and v.node not in own))
            known[node] = 1 + max(behind, default=0)
        return known

    def _match(self, anchor: Value) -> Boundary | None:
        match = Match(self.recording, self.pattern, self._slots, self._owner, self._same)
        if not match.extend(self.pattern.outputs[0], anchor):
            return None
        for output in self.pattern.outputs[1:]:
            if output.node not in match.nodes and not self._search(match, output):
                return None
        boundary = match.boundary()
        inside = set(boundary.nodes)
        if not self._is_closed(boundary, inside) or depends(boundary.inputs, inside, self._number, self._owner):
            return None
        return boundary

    def _search(self, match: Match, output: Value) -> bool:
        """Matches an output that the others don't depend on."""
        readers = dict.fromkeys(n for v in match.known() for n in self.uses.readers(v))
        return any(match.extend(output, Value(n, output.port)) for n in readers if n not in self._owner)

    def _is_closed(self, boundary: Boundary, inside: set[Node]) -> bool:
        given = set(boundary.outputs)
        return not any(self.uses.outside(v, inside) for n in inside for v in n.results() if v not in given)


class Match:
    """A correspondence of a region's nodes and inputs with other nodes and values, as far as it goes."""

    def __init__(
        self,
        recording: Recording,
        pattern: Boundary,
        slots: set[Value],
        owner: dict[Node, Boundary],
        same: Callable[[Operation, Operation], bool],
    ) -> None:
        self.recording, self.pattern, self._slots, self._owner = recording, pattern, slots, owner
        self._same = same
        self.nodes: dict[Node, Node] = {}
        self.inputs: dict[Value, Value] = {}
        self._taken: set[Node] = set()

    def extend(self, pattern: Value, value: Value) -> bool:
        """Adds that `value` is to this copy what `pattern` is to the region. False, and nothing added, if not so."""
        nodes, inputs = dict(self.nodes), dict(self.inputs)
        taken = set(self._taken)
        stack = [(pattern, value)]
        while stack:
            p, v = stack.pop()
            steps = self._step(p, v)
            if steps is None:
                self.nodes, self.inputs, self._taken = nodes, inputs, taken
                return False
            stack += steps
        return True

    def _step(self, p: Value, v: Value) -> list[tuple[Value, Value]] | None:
        """What else must correspond when these two do; None when they can't."""
        if p.type != v.type or (p.port != v.port and p not in self._slots):
            return None
        if isinstance(p.node.operation, Literal) and p not in self._slots:
            return [] if p.node.operation == v.node.operation else None
        if p in self._slots:
            known = self.inputs.setdefault(p, v)
            return [] if known == v and self._same_place(p, v) else None
        if p.node in self.nodes:
            return [] if self.nodes[p.node] is v.node else None
        if v.node in self._owner or v.node in self._taken or not self._same(p.node.operation, v.node.operation):
            return None
        if not self._same_place(p, v):
            return None
        self.nodes[p.node] = v.node
        self._taken.add(v.node)
        return list(zip(p.node.inputs, v.node.inputs, strict=True))

    def _same_place(self, p: Value, v: Value) -> bool:
        return p.is_table or self.recording.places[p] == self.recording.places[v]

    def known(self) -> Iterator[Value]:
        """The values of the copy so far."""
        yield from self.inputs.values()
        for node in self.nodes.values():
            yield from node.results()

    def boundary(self) -> Boundary:
        """The copy as a region, its inputs and outputs in the region's order."""
        return Boundary(
            tuple(self.nodes[n] for n in self.pattern.nodes),
            tuple(self.inputs.get(v, v) for v in self.pattern.inputs),
            tuple(Value(self.nodes[v.node], v.port) for v in self.pattern.outputs),
        )


def _equal_or_named(first: Operation, second: Operation) -> bool:
    return first == second or same_by_name(first, second)
