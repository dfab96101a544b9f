"""What is in a region: the nodes between its inputs and outputs, what else it reads, what of it others use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fieldjax.errors import ArgumentError, UnsupportedError, user_location
from fieldjax.ir.graph import Node, Value
from fieldjax.ir.operation import is_endless
from fieldjax.ir.operations.literal import Literal, Parameter
from fieldjax.model.isolation import reads_of
from fieldjax.model.recorder import Recording


@dataclass(frozen=True)
class Boundary:
    """A region in a graph: its nodes in topological order, the values that it reads, and those that it gives."""

    nodes: tuple[Node, ...]
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]


class Uses:
    """Who reads each value of a recording."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.readers: dict[Value, list[Node]] = {}
        for node in recording.nodes:
            for value in dict.fromkeys(node.inputs):
                self.readers.setdefault(value, []).append(node)
        self.named = recording.kept()

    def outside(self, value: Value, inside: Iterable[Node]) -> bool:
        """Whether somebody else than the nodes `inside` uses a value."""
        return value in self.named or any(n not in inside for n in self.readers.get(value, ()))


def between(recording: Recording, inputs: Sequence[Value], outputs: Sequence[Value]) -> dict[Node, None]:
    """The nodes on the paths from `inputs` to `outputs`, in topological order.

    Raises ArgumentError where no path leads to an output, and where an input depends on a node between.
    """
    behind = _behind(outputs, set(inputs))
    reached = set(inputs)
    inside: dict[Node, None] = {}
    for node in recording.nodes:
        if node in behind and any(v in reached for v in node.inputs):
            inside[node] = None
            reached.update(v for v in node.results() if v not in inputs)
    for value in outputs:
        if value.node not in inside:
            raise ArgumentError(
                f"no path leads from the inputs to {_named(recording, value)}", location=user_location()
            )
    for value in inputs:
        if value.node in inside or _behind([value], set()) & inside.keys():
            raise ArgumentError(
                f"the input {_named(recording, value)} depends on a value inside of the region",
                location=user_location(),
                notes=["as one operation the region would have to run before itself"],
                hints=["make it an output of the region instead, or choose inputs that come before it"],
            )
    return inside


def _behind(values: Iterable[Value], stops: set[Value]) -> set[Node]:
    """All nodes that `values` depend on, not going beyond `stops`."""
    found: set[Node] = set()
    stack = [v for v in values if v not in stops]
    while stack:
        node = stack.pop().node
        if node not in found:
            found.add(node)
            stack += [v for v in node.inputs if v not in stops]
    return found


def with_feeders(
    recording: Recording, inside: dict[Node, None], inputs: Sequence[Value], uses: Uses
) -> dict[Node, None]:
    """The nodes, and those before them whose results nobody else uses."""
    found = dict(inside)
    for node in reversed(recording.nodes):
        if node in found or isinstance(node.operation, (Parameter, Literal)):
            continue
        results = node.results()
        read = any(n in found for v in results for n in uses.readers.get(v, ()))
        if read and not any(v in inputs or uses.outside(v, found) for v in results):
            found[node] = None
    return {node: None for node in recording.nodes if node in found}


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
