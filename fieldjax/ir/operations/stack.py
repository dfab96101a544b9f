"""Values side by side along a new dimension, and one of them again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from fieldjax.domain import Dimension, Domain, NamedRange, UnitRange, canonical_dims
from fieldjax.ir.build import literal, match
from fieldjax.ir.evaluation import At, Slots
from fieldjax.ir.graph import Mask, Node, Value
from fieldjax.ir.operation import Linear, Operation, Place, common_domain, field_domain, field_types, record
from fieldjax.ir.types import FieldType, Type


@dataclass(frozen=True)
class Stack(Operation):
    """Input `n` at position `n` along `axis`. All inputs live on one domain."""

    axis: Dimension
    once: ClassVar[bool] = True

    def types(self, *inputs: Type) -> tuple[FieldType, ...]:
        first = field_types(inputs)[0]
        assert all(t == first for t in inputs), inputs
        return (FieldType(canonical_dims((self.axis, *first.dims)), first.dtype, first.weak),)

    def masks(self, *inputs: Value) -> tuple[tuple[Mask, ...], ...]:
        return (inputs[0].masks,)

    def available(self, node: Node, places: Sequence[Place]) -> tuple[Domain, ...]:
        return ((Domain(NamedRange(self.axis, UnitRange(0, len(places)))) & common_domain(places)).canonical(),)

    def demand(self, node: Node, wanted: Sequence[Domain | None], places: Sequence[Place]) -> tuple[Domain | None, ...]:
        (box,) = wanted
        assert box is not None
        read = box.range_of(self.axis)
        return tuple(box.without(self.axis) if n in read else None for n in range(len(places)))

    def evaluate(self, at: At, domain: Domain, slots: Slots) -> Any:
        rest = domain.without(self.axis)
        parts = [at.xp.broadcast_to(at.operand(n, rest, slots), rest.shape) for n in domain.range_of(self.axis)]
        return at.xp.stack(parts, axis=domain.dims.index(self.axis))

    def jvp(self, node: Node, tangents: Sequence[Value | None]) -> tuple[Value | None, ...]:
        if all(t is None for t in tangents):
            return (None,)
        moved = [match(literal(0.0), v) if t is None else t for t, v in zip(tangents, node.inputs, strict=True)]
        return record(self, *moved, location=node.location)

    def vjp(self, node: Node, cotangents: Sequence[Value | None]) -> tuple[Value | None, ...]:
        (cotangent,) = cotangents
        if cotangent is None:
            return (None,) * len(node.inputs)
        return tuple(record(Pick(self.axis, n), cotangent, location=node.location)[0] for n in range(len(node.inputs)))

    def __str__(self) -> str:
        return f"stack[{self.axis.value}]"


@dataclass(frozen=True)
class Pick(Linear):
    """The input at one position along `axis`."""

    axis: Dimension
    position: int

    def types(self, *inputs: Type) -> tuple[FieldType, ...]:
        (field,) = field_types(inputs)
        return (FieldType(tuple(d for d in field.dims if d != self.axis), field.dtype, field.weak),)

    def available(self, node: Node, places: Sequence[Place]) -> tuple[Domain, ...]:
        return (field_domain(places[0]).without(self.axis),)

    def demand(self, node: Node, wanted: Sequence[Domain | None], places: Sequence[Place]) -> tuple[Domain | None, ...]:
        return (None if wanted[0] is None else self._there(wanted[0]),)

    def _there(self, domain: Domain) -> Domain:
        here = Domain(NamedRange(self.axis, UnitRange(self.position, self.position + 1)))
        return (here & domain).canonical()

    def evaluate(self, at: At, domain: Domain, slots: Slots) -> Any:
        whole = self._there(domain)
        return at.operand(0, whole, slots).squeeze(whole.dims.index(self.axis))

    def transpose(self, node: Node, cotangent: Value) -> Value | None:
        return record(Put(self.axis, self.position), cotangent, location=node.location)[0]

    def __str__(self) -> str:
        return f"pick[{self.axis.value} {self.position}]"


@dataclass(frozen=True)
class Put(Linear):
    """The input at one position along a new dimension, on which there is nothing else: the transpose of `Pick`."""

    axis: Dimension
    position: int

    def types(self, *inputs: Type) -> tuple[FieldType, ...]:
        (field,) = field_types(inputs)
        return (FieldType(canonical_dims((self.axis, *field.dims)), field.dtype, field.weak),)

    def available(self, node: Node, places: Sequence[Place]) -> tuple[Domain, ...]:
        here = Domain(NamedRange(self.axis, UnitRange(self.position, self.position + 1)))
        return ((here & field_domain(places[0])).canonical(),)

    def demand(self, node: Node, wanted: Sequence[Domain | None], places: Sequence[Place]) -> tuple[Domain | None, ...]:
        return (None if wanted[0] is None else wanted[0].without(self.axis),)

    def evaluate(self, at: At, domain: Domain, slots: Slots) -> Any:
        rest = domain.without(self.axis)
        array = at.xp.broadcast_to(at.operand(0, rest, slots), rest.shape)
        return at.xp.expand_dims(array, domain.dims.index(self.axis))

    def transpose(self, node: Node, cotangent: Value) -> Value | None:
        return record(Pick(self.axis, self.position), cotangent, location=node.location)[0]

    def __str__(self) -> str:
        return f"put[{self.axis.value} {self.position}]"
