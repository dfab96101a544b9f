"""What is in a region: the nodes between its inputs and outputs, what else it reads, what of it others use."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Mapping, Sequence

from fieldjax.errors import ArgumentError, UnsupportedError, user_location
from fieldjax.ir.graph import Node, Value
from fieldjax.ir.operation import is_endless
from fieldjax.ir.operations.literal import Literal, Parameter
from fieldjax.model.growing import Boundary
from fieldjax.model.isolation import reads_of
from fieldjax.model.recorder import Recording


class Uses:
    """Who uses the values of a recording, as it is now."""

    def __init__(self, recording: Recording) -> None:
        self._recording, self._kept = recording, recording.kept()

    def readers(self, value: Value) -> Iterable[Node]:
        """The nodes that read a value."""
        return self._recording.readers.get(value, ())

    def outside(self, value: Value, inside: Collection[Node]) -> bool:
        """Whether somebody else than the nodes `inside` uses a value."""
        return value in self._kept or any(n not in inside for n in self.readers(value))


def between(recording: Recording, inputs: Sequence[Value], outputs: Sequence[Value]) -> dict[Node, None]:
    """The nodes on the paths from `inputs` to `outputs`, in topological order.

    Raises ArgumentError where no path leads to an output, and where an input depends on a node between.
    """
    number = recording.number
    reached = set(inputs)
    inside: dict[Node, None] = {}
    for node in _behind(outputs, reached, number, min(number[v.node] for v in inputs)):
        if any(v in reached for v in node.inputs):
            inside[node] = None
            reached.update(node.results())
    for value in outputs:
        if value.node not in inside:
            raise ArgumentError(
                f"no path leads from the inputs to {_named(recording, value)}", location=user_location()
            )
    for value in inputs:
        if depends([value], inside, number, {}):
            raise ArgumentError(
                f"the input {_named(recording, value)} depends on a value inside of the region",
                location=user_location(),
                notes=["as one operation the region would have to run before itself"],
                hints=["make it an output of the region instead, or choose inputs that come before it"],
            )
    return inside


def _behind(values: Iterable[Value], stops: Collection[Value], number: Mapping[Node, int], first: int) -> list[Node]:
    """The nodes from number `first` on that `values` depend on, not going beyond `stops`, in topological order."""
    found: set[Node] = set()
    stack = [v.node for v in values if v not in stops]
    while stack:
        node = stack.pop()
        if node not in found and number[node] >= first:
            found.add(node)
            stack += [v.node for v in node.inputs if v not in stops]
    return sorted(found, key=number.__getitem__)


def depends(
    values: Iterable[Value], inside: Collection[Node], number: Mapping[Node, int], owner: Mapping[Node, Boundary]
) -> bool:
    """Whether values depend on nodes `inside`, where nodes that have an owner depend on all that it reads."""
    earliest = min(number[n] for n in inside)
    seen: set[Node] = set()
    stack = [v.node for v in values]
    while stack:
        node = stack.pop()
        if node in inside:
            return True
        unit = owner.get(node)
        if node in seen or (unit is None and number[node] < earliest):
            continue
        seen.update([node] if unit is None else unit.nodes)
        stack += [v.node for v in (node if unit is None else unit).inputs]
    return False


def with_feeders(
    recording: Recording, inside: Mapping[Node, None], inputs: Sequence[Value], uses: Uses
) -> dict[Node, None]:
    """The nodes, and those before them whose results nobody else uses."""
    number = recording.number
    found = dict(inside)
    # The last one first: then all that read a node are decided before it is.
    last = [(-number[v.node], v.node) for n in inside for v in n.inputs]
    heapq.heapify(last)
    seen = set(inside)
    while last:
        _, node = heapq.heappop(last)
        if node in seen or isinstance(node.operation, (Parameter, Literal)):
            continue
        seen.add(node)
        if not any(v in inputs or uses.outside(v, found) for v in node.results()):
            found[node] = None
            for value in node.inputs:
                heapq.heappush(last, (-number[value.node], value.node))
    return dict.fromkeys(sorted(found, key=number.__getitem__))


def check_pure(nodes: Iterable[Node]) -> None:
    """Raises UnsupportedError where an operation isn't a function of its inputs alone."""
    for node in nodes:
        if not node.operation.pure:
            raise UnsupportedError(
                f"{node.operation} isn't a function of its inputs alone and can't be part of a region",
                location=node.location,
                hints=["choose the region around it"],
            )


def bounded(
    recording: Recording,
    inside: dict[Node, None],
    inputs: Sequence[Value],
    outputs: Sequence[Value],
    intermediates: str,
    uses: Uses,
) -> Boundary:
    """The region of these nodes. Raises ArgumentError where an inner value is used elsewhere and mustn't be."""
    inner = [v for n in inside for v in n.results() if v not in outputs]
    used = [v for v in inner if uses.outside(v, inside)]
    if used and intermediates == "none":
        shown = ", ".join(_named(recording, v) for v in used)
        raise ArgumentError(
            f"values inside of the region are used elsewhere: {shown}",
            location=user_location(),
            hints=["add them to the outputs, or expose them with `intermediates='used'`"],
        )
    given = [*outputs, *{"none": [], "used": used, "all": inner}[intermediates]]
    extra = [v for v in _read(recording, list(inside)) if v not in inputs]
    return Boundary(tuple(inside), (*inputs, *extra), tuple(given))


def _read(recording: Recording, nodes: Sequence[Node]) -> list[Value]:
    """What nodes read that is there as an array: what has no end is computed inside too."""
    found: list[Value] = []
    for value in reads_of(nodes):
        found += _read(recording, [value.node]) if is_endless(recording.places[value]) else [value]
    return list(dict.fromkeys(found))


def _named(recording: Recording, value: Value) -> str:
    name = recording.name_of(value)
    where = f" ({value.node.location})" if value.node.location else ""
    return repr(name) if name else f"{value.node.operation}{where}"
