"""Reads fields through neighbour tables, and the transpose of that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from fieldjax.connectivity import TableQuestions
from fieldjax.domain import Dimension, DimensionKind, Domain, UnitRange, canonical_dims
from fieldjax.errors import DimensionError, NarrowingError
from fieldjax.ir.evaluation import At, Slots
from fieldjax.ir.graph import Mask, Node, Value, moved_masks
from fieldjax.ir.indexing import gather, scatter
from fieldjax.ir.operation import Linear, Place, field_domain, record, table_of
from fieldjax.ir.types import FieldType, TableType, Type


def index_dims(table: TableType, slot: int | None) -> tuple[Dimension, ...]:
    """The dimensions that indexing with `table` brings, its local one left out where `slot` fixes it."""
    return tuple(d for d in table.dims if slot is None or d.kind is not DimensionKind.LOCAL)


def moved_dims(field: FieldType, tables: Sequence[TableType], slots: Sequence[int | None]) -> tuple[Dimension, ...]:
    """The dimensions of a field read through `tables` at the same time."""
    codomains = {t.codomain for t in tables}
    kept = [d for d in field.dims if d not in codomains]
    brought = [d for t, s in zip(tables, slots, strict=True) for d in index_dims(t, s)]
    return canonical_dims(tuple(dict.fromkeys([*kept, *brought])))


Locate = Callable[[TableQuestions, UnitRange, Domain], Domain]
"""Where a part of a table may be read, given the range of the field that it points into."""


@dataclass(frozen=True)
class Gather(Linear):
    """`result[i, j, ...] = field[table[i, j], ...]`, through one table or several at the same time.

    Inputs: the field, then the tables. `slots[n]` fixes the local dimension of table n (`f(V2E[0])`).
    A skip reads a substitute, and the result carries the table's mask; with `zero_skips` it reads zero.
    """

    slots: tuple[int | None, ...]
    zero_skips: bool = False

    def types(self, *inputs: Type) -> tuple[FieldType, ...]:
        field, *tables = inputs
        assert isinstance(field, FieldType)
        for table in tables:
            assert isinstance(table, TableType)
            if table.codomain not in field.dims:
                raise DimensionError(
                    f"a field on ({', '.join(d.value for d in field.dims)}) has no {table.codomain.value} to look up",
                    notes=[f"the connectivity points into {table.codomain.value}"],
                )
        return (FieldType(moved_dims(field, tables, self.slots), field.dtype, field.weak),)  # type: ignore[arg-type]

    def masks(self, *inputs: Value) -> tuple[tuple[Mask, ...], ...]:
        dims = self.types(*(v.type for v in inputs))[0].dims
        carried = moved_masks(inputs[0], {t.table_type.codomain for t in inputs[1:]})
        kept = [m for m in carried if m.slot is not None or m.local in dims]
        own = [Mask(t, s) for t, s in zip(inputs[1:], self.slots, strict=True)]
        return (tuple(dict.fromkeys([*kept, *own])),)

    def available(self, node: Node, places: Sequence[Place]) -> tuple[Domain, ...]:
        return (self._located(places, lambda table, span, part: table.inverse_image(span, part)),)

    def bounds(self, node: Node, places: Sequence[Place]) -> tuple[Domain, ...]:
        return (self._located(places, lambda table, span, part: part),)

    def _located(self, places: Sequence[Place], locate: Locate) -> Domain:
        field, tables = field_domain(places[0]), [table_of(p) for p in places[1:]]
        domain = field.without(*(t.codomain for t in tables))
        for table, slot in zip(tables, self.slots, strict=True):
            found = locate(table, field.range_of(table.codomain), at_slot(table.domain, slot))
            domain = domain & (found if slot is None else drop_local(found))
        return domain

    def demand(self, node: Node, wanted: Sequence[Domain | None], places: Sequence[Place]) -> tuple[Domain | None, ...]:
        (box,) = wanted
        assert box is not None
        held, ranges = field_domain(places[0]), {}
        for place, slot in zip(places[1:], self.slots, strict=True):
            table = table_of(place)
            ranges[table.codomain] = _read_range(table, at_slot(table.domain, slot), held, box)
        dims = node.inputs[0].dims
        field = Domain(dims=dims, ranges=tuple(ranges[d] if d in ranges else box.range_of(d) for d in dims))
        return (field, *(None for _ in places[1:]))

    def evaluate(self, at: At, domain: Domain, slots: Slots) -> Any:
        return gather(at, self.slots, domain, slots, self.zero_skips)

    def jvp(self, node: Node, tangents: Sequence[Value | None]) -> tuple[Value | None, ...]:
        # What stands for a skip doesn't move, so that tangents and cotangents are each other's transposes.
        return super(Gather, replace(self, zero_skips=True)).jvp(node, tangents)

    def transpose(self, node: Node, cotangent: Value) -> Value | None:
        return record(Scatter(self.slots), cotangent, *node.inputs, location=node.location)[0]

    def __str__(self) -> str:
        chosen = "".join(f"[{s}]" for s in self.slots if s is not None)
        return f"gather{chosen}{' zero' if self.zero_skips else ''}"


def _read_range(table: TableQuestions, part: Domain, held: Domain, box: Domain) -> UnitRange:
    """What is needed of a field that lives on `held` to read `part` of a table on `box`.

    All of it where all that can be read is read: meshes that differ in what their neighbours happen not to
    reach then share a plan.
    """
    asked = part & box.restrict(part.dims)
    span = held.range_of(table.codomain)
    if span.is_finite():
        with suppress(NarrowingError):
            if table.inverse_image(span, part) == asked:
                return span
    return table.image(asked)


@dataclass(frozen=True)
class Scatter(Linear):
    """The transpose of a gather: `result[table[i, j], ...] += cotangent[i, j, ...]`; skips contribute nothing.

    Inputs: the cotangent, the field that was gathered (for its domain only), the tables.
    """

    slots: tuple[int | None, ...]

    def types(self, *inputs: Type) -> tuple[FieldType, ...]:
        cotangent, field = inputs[:2]
        assert isinstance(cotangent, FieldType) and isinstance(field, FieldType)
        return (FieldType(field.dims, cotangent.dtype, cotangent.weak),)

    def masks(self, *inputs: Value) -> tuple[tuple[Mask, ...], ...]:
        return (tuple(m for m in inputs[1].masks if m.slot is None),)

    def available(self, node: Node, places: Sequence[Place]) -> tuple[Domain, ...]:
        cotangent, field = field_domain(places[0]), field_domain(places[1])
        if field.is_finite():
            return (field & _kept(cotangent, field, node),)
        ranges = {}
        for place, slot in zip(places[2:], self.slots, strict=True):
            table = table_of(place)
            part = table.domain if slot is None else at_slot(table.domain, slot)
            ranges[table.codomain] = table.image(part & cotangent.restrict(part.dims))
        return (_replaced(field, ranges) & _kept(cotangent, field, node),)

    def demand(self, node: Node, wanted: Sequence[Domain | None], places: Sequence[Place]) -> tuple[Domain | None, ...]:
        (box,) = wanted
        assert box is not None
        whole = field_domain(places[0])
        kept = [d for d in node.inputs[0].dims if d in box.dims and not self._indexes(node, d)]
        return (_replaced(whole, {d: box.range_of(d) for d in kept}), None, *(None for _ in places[2:]))

    def _indexes(self, node: Node, dim: Dimension) -> bool:
        return any(dim in t.dims for t in node.inputs[2:])

    def evaluate(self, at: At, domain: Domain, slots: Slots) -> Any:
        if self.slots == (None,) and not slots:
            from fieldjax.ir.neighbour_sums import scattered

            if (total := scattered(at, domain)) is not None:
                return total
        return scatter(at, self.slots, domain, slots)

    def transpose(self, node: Node, cotangent: Value) -> Value | None:
        back = Gather(self.slots, zero_skips=True)
        return record(back, cotangent, *node.inputs[2:], location=node.location)[0]

    def __str__(self) -> str:
        return "scatter" + "".join(f"[{s}]" for s in self.slots if s is not None)


def _kept(cotangent: Domain, field: Domain, node: Node) -> Domain:
    """The part of the cotangent's domain along dimensions that the gather left in place."""
    codomains = {t.table_type.codomain for t in node.inputs[2:]}
    indexed = {d for t in node.inputs[2:] for d in t.dims}
    return cotangent.restrict(
        tuple(d for d in cotangent.dims if d in field.dims and d not in codomains and d not in indexed)
    )


def _replaced(domain: Domain, ranges: dict[Dimension, UnitRange]) -> Domain:
    return Domain(
        dims=domain.dims,
        ranges=tuple(ranges.get(d, r) for d, r in zip(domain.dims, domain.ranges, strict=True)),
    )


def at_slot(domain: Domain, slot: int | None) -> Domain:
    """A table's domain at one position of its local dimension (all of it for None)."""
    if slot is None:
        return domain
    local = next(d for d in domain.dims if d.kind is DimensionKind.LOCAL)
    return _replaced(domain, {local: UnitRange(slot, slot + 1)})


def drop_local(domain: Domain) -> Domain:
    """A domain without its local dimensions."""
    return domain.restrict(tuple(d for d in domain.dims if d.kind is not DimensionKind.LOCAL))
