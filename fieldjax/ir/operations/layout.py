"""Changes where elements live without changing them: affine shifts, more dimensions, more extent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fieldjax.domain import Dimension, Domain, NamedRange, UnitRange, canonical_dims
from fieldjax.errors import DimensionError
from fieldjax.ir.build import reduce_to
from fieldjax.ir.evaluation import At, Slots
from fieldjax.ir.graph import Mask, Node, Value, moved_masks
from fieldjax.ir.operation import Linear, Operation, Place, field_domain, record
from fieldjax.ir.types import FieldType, Type


@dataclass(frozen=True)
class Shift(Linear):
    """`result[i] = field[i + offset]`: the same elements under other positions, of `to` if that differs."""

    dimension: Dimension
    offset: int
    to: Dimension

    def types(self, *inputs: Type) -> tuple[FieldType, ...]:
        (field,) = inputs
        assert isinstance(field, FieldType)
        if self.dimension not in field.dims:
            have = ", ".join(d.value for d in field.dims)
            twin = (
                f"what is shifted is the dimension of the result: f({self.dimension.value} + ...) reads {self.to.value}"
            )
            raise DimensionError(
                f"a field on ({have}) can't be shifted along {self.dimension.value}",
                hints=[twin] if self.to in field.dims else [],
            )
        dims = canonical_dims(tuple(self.to if d == self.dimension else d for d in field.dims))
        return (FieldType(dims, field.dtype, field.weak),)

    def masks(self, *inputs: Value) -> tuple[tuple[Mask, ...], ...]:
        return (moved_masks(inputs[0], (self.dimension,)),)

    def available(self, node: Node, places: Sequence[Place]) -> tuple[Domain, ...]:
        return (self._relabelled(field_domain(places[0]), self.dimension, self.to, -self.offset),)

    def demand(self, node: Node, wanted: Sequence[Domain | None], places: Sequence[Place]) -> tuple[Domain | None, ...]:
        (box,) = wanted
        assert box is not None
        return (self._relabelled(box, self.to, self.dimension, self.offset),)

    @staticmethod
    def _relabelled(domain: Domain, old: Dimension, new: Dimension, by: int) -> Domain:
        ranges = {
            new if d == old else d: r + by if d == old else r for d, r in zip(domain.dims, domain.ranges, strict=True)
        }
        dims = canonical_dims(tuple(ranges))
        return Domain(dims=dims, ranges=tuple(ranges[d] for d in dims))

    def evaluate(self, at: At, domain: Domain, slots: Slots) -> Any:
        source = self._relabelled(domain, self.to, self.dimension, self.offset)
        array = at.operand(0, source, slots)
        before = tuple(self.to if d == self.dimension else d for d in source.dims)
        return array if before == domain.dims else array.transpose([before.index(d) for d in domain.dims])

    def transpose(self, node: Node, cotangent: Value) -> Value | None:
        back = Shift(self.to, -self.offset, self.dimension)
        return record(back, cotangent, location=node.location)[0]

    def __str__(self) -> str:
        to = "" if self.to == self.dimension else f" -> {self.to.value}"
        return f"shift[{self.dimension.value}{self.offset:+d}{to}]"


@dataclass(frozen=True)
class Broadcast(Linear):
    """The field on more dimensions, without end along the new ones until something else bounds them."""

    dims: tuple[Dimension, ...]

    def types(self, *inputs: Type) -> tuple[FieldType, ...]:
        (field,) = inputs
        assert isinstance(field, FieldType)
        if missing := [d.value for d in field.dims if d not in self.dims]:
            raise DimensionError(
                f"broadcast would lose {', '.join(missing)}",
                notes=[f"the field has ({', '.join(d.value for d in field.dims)})"],
                hints=["name all dimensions of the result"],
            )
        return (FieldType(canonical_dims(self.dims), field.dtype, field.weak),)

    def available(self, node: Node, places: Sequence[Place]) -> tuple[Domain, ...]:
        endless = Domain(*(NamedRange(d, UnitRange(-math.inf, math.inf)) for d in canonical_dims(self.dims)))
        return (endless & field_domain(places[0]),)

    def demand(self, node: Node, wanted: Sequence[Domain | None], places: Sequence[Place]) -> tuple[Domain | None, ...]:
        return (None if wanted[0] is None else wanted[0].restrict(node.inputs[0].dims),)

    def evaluate(self, at: At, domain: Domain, slots: Slots) -> Any:
        array = at.aligned(0, domain, slots)
        return at.xp.reshape(array, (1,) * domain.ndim) if not at.node.inputs[0].dims else array

    def transpose(self, node: Node, cotangent: Value) -> Value | None:
        return reduce_to(cotangent, node.inputs[0])

    def __str__(self) -> str:
        return f"broadcast[{', '.join(d.value for d in self.dims)}]"


@dataclass(frozen=True)
class Union(Operation):
    """The sum of fields that are zero outside their own domains, on the smallest domain that holds them all."""

    def types(self, *inputs: Type) -> tuple[FieldType, ...]:
        first = inputs[0]
        assert isinstance(first, FieldType) and all(t.dims == first.dims for t in inputs), inputs
        return (first,)

    def available(self, node: Node, places: Sequence[Place]) -> tuple[Domain, ...]:
        domains = [d for d in map(field_domain, places) if not d.is_empty()] or [field_domain(places[0])]
        hull = domains[0]
        for domain in domains[1:]:
            hull = hull.hull(domain)
        return (hull,)

    def demand(self, node: Node, wanted: Sequence[Domain | None], places: Sequence[Place]) -> tuple[Domain | None, ...]:
        (box,) = wanted
        assert box is not None
        return tuple(box & field_domain(place) for place in places)

    def evaluate(self, at: At, domain: Domain, slots: Slots) -> Any:
        count = range(len(at.node.inputs))
        # A number may stand for an array of them (in the body of a scan): it has no extent to pad.
        parts = [padded(at, i, domain, slots) if domain.dims else at.operand(i, domain, slots) for i in count]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total

    def jvp(self, node: Node, tangents: Sequence[Value | None]) -> tuple[Value | None, ...]:
        live = [t for t in tangents if t is not None]
        return (record(self, *live, location=node.location)[0] if live else None,)

    def vjp(self, node: Node, cotangents: Sequence[Value | None]) -> tuple[Value | None, ...]:
        (cotangent,) = cotangents
        return tuple(None if cotangent is None else _within(cotangent, v) for v in node.inputs)

    def __str__(self) -> str:
        return "union"


@dataclass(frozen=True)
class Extend(Linear):
    """The first input on the domain of the second, zero where it has no element."""

    def types(self, *inputs: Type) -> tuple[FieldType, ...]:
        field, like = inputs
        assert isinstance(field, FieldType) and isinstance(like, FieldType)
        return (FieldType(like.dims, field.dtype, field.weak),)

    def masks(self, *inputs: Value) -> tuple[tuple[Mask, ...], ...]:
        return (inputs[1].masks,)

    def available(self, node: Node, places: Sequence[Place]) -> tuple[Domain, ...]:
        return (field_domain(places[1]),)

    def demand(self, node: Node, wanted: Sequence[Domain | None], places: Sequence[Place]) -> tuple[Domain | None, ...]:
        (box,) = wanted
        assert box is not None
        return (box & field_domain(places[0]), None)

    def evaluate(self, at: At, domain: Domain, slots: Slots) -> Any:
        return padded(at, 0, domain, slots)

    def transpose(self, node: Node, cotangent: Value) -> Value | None:
        return _within(cotangent, node.inputs[0])

    def __str__(self) -> str:
        return "extend"


def _within(cotangent: Value, like: Value) -> Value:
    """A cotangent where its primal has elements: what is elsewhere isn't the primal's."""
    return record(Extend(), cotangent, like, location=cotangent.node.location)[0] if like.dims else cotangent


def padded(at: At, index: int, domain: Domain, slots: Slots) -> Any:
    """An operand on a domain that may reach beyond it, zeros there."""
    value = at.node.inputs[index]
    held = at.planned(index)
    outside = any(slots[d].position not in held.range_of(d) for d in value.dims if d in slots)
    free = tuple(d for d in held.dims if d not in slots)
    inner = domain.restrict(free) & held.restrict(free)
    if outside or inner.is_empty():
        return at.xp.zeros(domain.shape, value.field_type.dtype)
    array = at.xp.broadcast_to(at.operand(index, inner, slots), inner.shape)
    if inner == domain:
        return array
    widths = [(int(i.start - w.start), int(w.stop - i.stop)) for i, w in zip(inner.ranges, domain.ranges, strict=True)]
    return at.xp.pad(array, widths)
