"""Single slots of local dimensions, and the slots that a table leaves unused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from fieldjax.domain import Dimension, Domain, NamedRange, UnitRange, canonical_dims
from fieldjax.errors import DimensionError
from fieldjax.ir.build import reduce_to
from fieldjax.ir.evaluation import At, Slot, Slots, align
from fieldjax.ir.graph import Mask, Node, Value
from fieldjax.ir.indexing import substituted
from fieldjax.ir.operation import Linear, Place, field_domain, record, table_of
from fieldjax.ir.types import FieldType, Type


@dataclass(frozen=True)
class Substitute(Linear):
    """A field that has the local dimension of a table, read where the table's substitutes stand.

    Inputs: the field, the table. Used slots hold what the field holds; an unused slot holds the field's
    value at the first used slot of its row (of the first used row where the row has none), or zero with `zero_skips`.
    """

    local: Dimension
    zero_skips: bool = False

    def types(self, *inputs: Type) -> tuple[FieldType, ...]:
        field, table = inputs
        assert isinstance(field, FieldType)
        dims = canonical_dims(tuple(dict.fromkeys([*field.dims, *table.dims])))
        return (FieldType(dims, field.dtype, field.weak),)

    def masks(self, *inputs: Value) -> tuple[tuple[Mask, ...], ...]:
        return ((*inputs[0].masks, Mask(inputs[1])),)

    def available(self, node: Node, places: Sequence[Place]) -> tuple[Domain, ...]:
        return (field_domain(places[0]) & table_of(places[1]).domain,)

    def demand(self, node: Node, wanted: Sequence[Domain | None], places: Sequence[Place]) -> tuple[Domain | None, ...]:
        (box,) = wanted
        assert box is not None
        return (box.restrict(node.inputs[0].dims), None)

    def evaluate(self, at: At, domain: Domain, slots: Slots) -> Any:
        array = substituted(at, self.local, domain, slots)
        valid = at.valid(Mask(at.node.inputs[1]), domain, slots) if self.zero_skips else None
        return array if valid is None else at.xp.where(valid, array, at.xp.zeros((), array.dtype))

    def jvp(self, node: Node, tangents: Sequence[Value | None]) -> tuple[Value | None, ...]:
        # What stands for a skip doesn't move, as in `Gather`.
        return super(Substitute, replace(self, zero_skips=True)).jvp(node, tangents)

    def transpose(self, node: Node, cotangent: Value) -> Value | None:
        used = record(UsedOnly(self.local), cotangent, node.inputs[1], location=node.location)[0]
        return reduce_to(used, node.inputs[0])

    def __str__(self) -> str:
        return f"substitute[{self.local.value}]{' zero' if self.zero_skips else ''}"


@dataclass(frozen=True)
class UsedOnly(Linear):
    """A field with zeros in the slots that a table doesn't use. Inputs: the field, the table."""

    local: Dimension

    def types(self, *inputs: Type) -> tuple[FieldType, ...]:
        assert isinstance(inputs[0], FieldType)
        return (inputs[0],)

    def masks(self, *inputs: Value) -> tuple[tuple[Mask, ...], ...]:
        return (tuple(m for m in inputs[0].masks if m.local != self.local or m.slot is not None),)

    def available(self, node: Node, places: Sequence[Place]) -> tuple[Domain, ...]:
        return (field_domain(places[0]),)

    def demand(self, node: Node, wanted: Sequence[Domain | None], places: Sequence[Place]) -> tuple[Domain | None, ...]:
        return (wanted[0], None)

    def evaluate(self, at: At, domain: Domain, slots: Slots) -> Any:
        array = at.operand(0, domain, slots)
        valid = at.valid(Mask(at.node.inputs[1]), domain, slots)
        return array if valid is None else at.xp.where(valid, array, at.xp.zeros((), array.dtype))

    def transpose(self, node: Node, cotangent: Value) -> Value | None:
        return record(self, cotangent, node.inputs[1], location=node.location)[0]

    def __str__(self) -> str:
        return f"used_only[{self.local.value}]"


@dataclass(frozen=True)
class AtSlot(Linear):
    """One slot of a field with a local dimension: `sparse[C2EDim(0)]`."""

    local: Dimension
    position: int

    def types(self, *inputs: Type) -> tuple[FieldType, ...]:
        (field,) = inputs
        assert isinstance(field, FieldType)
        if self.local not in field.dims:
            have = ", ".join(d.value for d in field.dims)
            raise DimensionError(f"a field on ({have}) has no {self.local.value} to take position {self.position} of")
        dims = tuple(d for d in field.dims if d != self.local)
        return (FieldType(dims, field.dtype, field.weak),)

    def masks(self, *inputs: Value) -> tuple[tuple[Mask, ...], ...]:
        return (
            tuple(
                replace(m, slot=self.position) if m.local == self.local and m.slot is None else m
                for m in inputs[0].masks
            ),
        )

    def available(self, node: Node, places: Sequence[Place]) -> tuple[Domain, ...]:
        field = field_domain(places[0])
        if self.position not in field.range_of(self.local):
            raise DimensionError(
                f"{self.local.value} has no position {self.position}",
                location=node.location,
                notes=[f"the field lives on {field}"],
            )
        return (field.without(self.local),)

    def demand(self, node: Node, wanted: Sequence[Domain | None], places: Sequence[Place]) -> tuple[Domain | None, ...]:
        (box,) = wanted
        assert box is not None
        return (self._with_slot(box),)

    def _with_slot(self, box: Domain) -> Domain:
        here = Domain(NamedRange(self.local, UnitRange(self.position, self.position + 1)))
        return box & here

    def evaluate(self, at: At, domain: Domain, slots: Slots) -> Any:
        extent = UnitRange(self.position, self.position + 1)
        return at.operand(0, domain, {**slots, self.local: Slot(self.position, extent)})

    def transpose(self, node: Node, cotangent: Value) -> Value | None:
        return record(InSlot(self.local, self.position), cotangent, location=node.location)[0]

    def __str__(self) -> str:
        return f"at_slot[{self.local.value}={self.position}]"


@dataclass(frozen=True)
class InSlot(Linear):
    """A field put at one position of a local dimension: the transpose of `AtSlot`."""

    local: Dimension
    position: int

    def types(self, *inputs: Type) -> tuple[FieldType, ...]:
        (field,) = inputs
        assert isinstance(field, FieldType)
        return (FieldType(canonical_dims((*field.dims, self.local)), field.dtype, field.weak),)

    def masks(self, *inputs: Value) -> tuple[tuple[Mask, ...], ...]:
        return (tuple(m for m in inputs[0].masks if m.slot is None),)

    def available(self, node: Node, places: Sequence[Place]) -> tuple[Domain, ...]:
        return (AtSlot(self.local, self.position)._with_slot(field_domain(places[0])),)

    def demand(self, node: Node, wanted: Sequence[Domain | None], places: Sequence[Place]) -> tuple[Domain | None, ...]:
        return (None if wanted[0] is None else wanted[0].without(self.local),)

    def evaluate(self, at: At, domain: Domain, slots: Slots) -> Any:
        if self.local in slots:
            return at.operand(0, domain, slots)
        inner = domain.without(self.local)
        return align(at.operand(0, inner, slots), inner.dims, domain.dims)

    def transpose(self, node: Node, cotangent: Value) -> Value | None:
        return record(AtSlot(self.local, self.position), cotangent, location=node.location)[0]

    def __str__(self) -> str:
        return f"in_slot[{self.local.value}={self.position}]"
