"""The graph: frozen nodes, the values that they produce, and the graph between inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from fieldjax.domain import Dimension
from fieldjax.errors import Location
from fieldjax.ir.types import FieldType, TableType, Type

if TYPE_CHECKING:
    from fieldjax.ir.key import StructuralKey
    from fieldjax.ir.operation import Operation

Derived = TypeVar("Derived")


@dataclass(frozen=True, slots=True)
class Mask:
    """Where `table` holds a skip, the value that carries this mask holds a substitute.

    `slot` is None while the value still has the table's local dimension; afterwards it is the slot that
    `f(V2E[slot])` chose.

    A `moved` mask belongs to a value whose rows were read elsewhere since: `table` no longer says which elements
    are substitutes. Inference accepts it for tables without skips only.
    """

    table: Value
    slot: int | None = None
    moved: bool = False

    @property
    def local(self) -> Dimension | None:
        return self.table.table_type.local_dimension


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """One operation on some values. Equality is identity; provenance never takes part in it."""

    operation: Operation
    inputs: tuple[Value, ...]
    types: tuple[Type, ...]
    masks: tuple[tuple[Mask, ...], ...]
    location: Location | None = field(default=None, repr=False)

    def results(self) -> tuple[Value, ...]:
        return tuple(Value(self, port) for port in range(len(self.types)))

    def reading(self, new: Mapping[Value, Value]) -> Node:
        """The same on the values that stand for what it reads; the node itself where none does."""
        inputs = tuple(new.get(v, v) for v in self.inputs)
        masks = tuple(tuple(replace(m, table=new.get(m.table, m.table)) for m in ms) for ms in self.masks)
        if inputs == self.inputs and masks == self.masks:
            return self
        return Node(self.operation, inputs, self.types, masks, self.location)


@dataclass(frozen=True, slots=True)
class Value:
    """What a node produces at one of its ports."""

    node: Node
    port: int = 0

    @property
    def type(self) -> Type:
        return self.node.types[self.port]

    @property
    def field_type(self) -> FieldType:
        type_ = self.type
        assert isinstance(type_, FieldType), type_
        return type_

    @property
    def table_type(self) -> TableType:
        type_ = self.type
        assert isinstance(type_, TableType), type_
        return type_

    @property
    def dims(self) -> tuple[Dimension, ...]:
        return self.type.dims

    @property
    def is_table(self) -> bool:
        return isinstance(self.type, TableType)

    @property
    def masks(self) -> tuple[Mask, ...]:
        return self.node.masks[self.port]

    def mask_over(self, local: Dimension) -> Mask | None:
        """The mask that this value carries along its local dimension `local`."""
        return next((m for m in self.masks if m.slot is None and m.local == local), None)

    def __repr__(self) -> str:
        return f"Value({self.node.operation}:{self.port}, {self.type})"


@dataclass(frozen=True, eq=False)
class Graph:
    """The values between `inputs` and `outputs`. Every other leaf of the graph is a literal."""

    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]

    @cached_property
    def given(self) -> frozenset[Node]:
        """The nodes whose results are inputs."""
        return frozenset(v.node for v in self.inputs)

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """Every node that an output needs, each after the nodes that it reads."""
        from fieldjax.ir.operations.literal import Parameter

        cut = frozenset(n for n in self.given if not isinstance(n.operation, Parameter))
        return topological(self.outputs, leaves=cut)

    @cached_property
    def key(self) -> StructuralKey:
        """What graphs that do the same share. Raises TypeError where an operation can't state its identity."""
        from fieldjax.ir.key import structural_key

        return structural_key(self)

    @cached_property
    def plans(self) -> dict[Hashable, Any]:
        """Plans that were made of this graph, by what was asked (`ir/planning.py`)."""
        return {}

    @cached_property
    def _derived(self) -> dict[Hashable, Any]:
        return {}

    def derived(self, key: Hashable, make: Callable[[], Derived]) -> Derived:
        """What `make` derives from this graph, made once for each `key` and kept as long as the graph."""
        if key not in self._derived:
            self._derived[key] = make()
        return self._derived[key]

    @cached_property
    def moved_masks(self) -> tuple[tuple[Node, Mask], ...]:
        """Where rows with masked neighbours were read elsewhere."""
        return tuple((n, m) for n in self.nodes for masks in n.masks for m in masks if m.moved)

    @cached_property
    def readers(self) -> dict[Value, tuple[Node, ...]]:
        """The nodes that read each value, in topological order."""
        found: dict[Value, list[Node]] = {}
        for node in self.nodes:
            for value in dict.fromkeys(values_read(node)):
                found.setdefault(value, []).append(node)
        return {value: tuple(nodes) for value, nodes in found.items()}

    def __str__(self) -> str:
        from fieldjax.ir.text import to_text

        return to_text(self)


def moved_masks(value: Value, dims: Collection[Dimension]) -> tuple[Mask, ...]:
    """The masks of `value` once it is read at other positions along `dims`.

    Where no local dimension is left to reduce, substitutes become values like any other.
    """
    moves = [any(d in dims for d in m.table.dims) for m in value.masks]
    return tuple(
        replace(m, moved=m.moved or moved)
        for m, moved in zip(value.masks, moves, strict=True)
        if not moved or (m.slot is None and m.local is not None)
    )


def values_read(node: Node) -> tuple[Value, ...]:
    """The inputs of a node and the tables of its masks."""
    return (*node.inputs, *(m.table for masks in node.masks for m in masks))


def topological(
    outputs: Sequence[Value], before: frozenset[Node] = frozenset(), leaves: frozenset[Node] = frozenset()
) -> tuple[Node, ...]:
    """Iterative depth-first order, so that a chain of any length is fine.

    Stops short of the nodes `before`, and goes no further than the nodes `leaves`.
    """
    done: dict[Node, None] = {}
    stack: list[tuple[Node, Iterator[Value]]] = []
    open_: set[Node] = set()

    def push(node: Node) -> None:
        if node not in done and node not in open_ and node not in before:
            open_.add(node)
            stack.append((node, iter(() if node in leaves else values_read(node))))

    for output in outputs:
        push(output.node)
        while stack:
            node, pending = stack[-1]
            value = next(pending, None)
            if value is not None:
                push(value.node)
            else:
                stack.pop()
                done[node] = None
    return tuple(done)
