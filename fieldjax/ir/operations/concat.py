"""Chooses by position: one field on a box of the domain, another elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from fieldjax.domain import Domain, DomainUnion, UnitRange, canonical_dims, complement, unite
from fieldjax.dtypes import is_floating, result_type
from fieldjax.errors import NarrowingError
from fieldjax.ir.build import literal, match, reduce_to
from fieldjax.ir.evaluation import At, Slots, align
from fieldjax.ir.graph import Node, Value
from fieldjax.ir.operation import Demand, Linear, Operation, Place, field_domain, field_types, record
from fieldjax.ir.operations.layout import padded
from fieldjax.ir.types import FieldType, Type


@dataclass(frozen=True)
class ConcatWhere(Operation):
    """The first input inside `box`, the second outside; nothing of either is computed elsewhere.

    Along the dimensions of the box the result reaches as far as the two parts do together; along the others
    it lives where both inputs do. Raises NarrowingError where the parts leave a hole.
    """

    box: Domain
    joins: ClassVar[bool] = True

    def types(self, *inputs: Type) -> tuple[FieldType, ...]:
        inside, outside = field_types(inputs)
        dims = canonical_dims((*inside.dims, *outside.dims, *self.box.dims))
        dtype, weak = result_type((inside.dtype, inside.weak), (outside.dtype, outside.weak))
        return (FieldType(dims, dtype, weak),)

    def available(self, node: Node, places: Sequence[Place]) -> tuple[Domain, ...]:
        parts = self._parts(node, places)
        filled = unite(parts)
        if isinstance(filled, DomainUnion):
            raise NarrowingError(
                "the two parts of concat_where don't fill a rectangular domain",
                location=node.location,
                notes=[f"inside {self.box} and outside they are {', '.join(map(str, parts))}"],
                hints=["ask for the part that is there with `domain=`, or extend one of the fields"],
            )
        return (filled,)

    def bounds(self, node: Node, places: Sequence[Place]) -> tuple[Domain, ...]:
        first, *others = [p for p in self._parts(node, places) if not p.is_empty()]
        for part in others:
            first = first.hull(part)
        return (first,)

    def _parts(self, node: Node, places: Sequence[Place]) -> list[Domain]:
        """What each input contributes, over all dimensions of the result."""
        dims = node.results()[0].dims
        inside, outside = (field_domain(p).broadcast(dims) for p in places)
        common = (inside & outside).without(*self.box.dims)
        return [part & region & common for part, regions in self._regions(inside, outside) for region in regions]

    def _regions(self, inside: Any, outside: Any) -> list[tuple[Any, tuple[Domain, ...]]]:
        return [(inside, (self.box,)), (outside, boxes_of(complement(self.box)))]

    def demand(self, node: Node, wanted: Sequence[Domain | None], places: Sequence[Place]) -> tuple[Demand, ...]:
        (box,) = wanted
        assert box is not None
        inside, outside = node.inputs
        return tuple(_needed(value, box, regions) for value, regions in self._regions(inside, outside))

    def evaluate(self, at: At, domain: Domain, slots: Slots) -> Any:
        out = at.node.results()[0].field_type
        if any(slots[d].position not in self.box.range_of(d) for d in self.box.dims if d in slots):
            return self._whole(at, 1, domain, slots)
        here = self.box.without(*slots)
        if here.contains(domain.restrict(here.dims)):
            return self._whole(at, 0, domain, slots)
        if (domain & here).is_empty():
            return self._whole(at, 1, domain, slots)
        inside, outside = (at.arrays.cast(self._part(at, i, domain, slots), out.dtype) for i in (0, 1))
        return at.xp.where(membership(at.xp, here, domain), inside, outside)

    def _whole(self, at: At, index: int, domain: Domain, slots: Slots) -> Any:
        return at.arrays.cast(self._part(at, index, domain, slots), at.node.results()[0].field_type.dtype)

    def _part(self, at: At, index: int, domain: Domain, slots: Slots) -> Any:
        """An input on the domain of the result, zeros where it wasn't computed, aligned."""
        value = at.node.inputs[index]
        own = domain.restrict(value.dims)
        array = padded(at, index, own, {d: s for d, s in slots.items() if d in value.dims})
        array = align(array, own.dims, domain.dims)
        return at.xp.reshape(array, (1,) * domain.ndim) if not own.dims else array

    def jvp(self, node: Node, tangents: Sequence[Value | None]) -> tuple[Value | None, ...]:
        if all(t is None for t in tangents):
            return (None,)
        live = [t or match(literal(0.0), v) for t, v in zip(tangents, node.inputs, strict=True)]
        return record(self, *live, location=node.location)

    def vjp(self, node: Node, cotangents: Sequence[Value | None]) -> tuple[Value | None, ...]:
        (cotangent,) = cotangents
        if cotangent is None:
            return (None, None)
        return tuple(_pulled_back(value, regions, cotangent) for value, regions in self._regions(*node.inputs))

    def __str__(self) -> str:
        return f"concat_where[{self.box}]"


def _needed(value: Value, box: Domain, regions: Sequence[Domain]) -> Demand:
    """What the result on `box` needs of the input that it takes from `regions`."""
    parts = [box & region for region in regions]
    own = [part.restrict(value.dims) for part in parts if not part.is_empty()]
    return unite(own) if own else None


def _pulled_back(value: Value, regions: Sequence[Domain], cotangent: Value) -> Value | None:
    from fieldjax.ir.operations.layout import Union

    if not is_floating(value.field_type.dtype):
        return None
    location = cotangent.node.location
    parts = [record(Part(region), cotangent, location=location)[0] for region in regions]
    total = parts[0] if len(parts) == 1 else record(Union(), *parts, location=location)[0]
    return reduce_to(total, value)


@dataclass(frozen=True)
class Part(Linear):
    """The field on the part of its domain that lies in `box`: the transpose of taking it there."""

    box: Domain

    def types(self, *inputs: Type) -> tuple[FieldType, ...]:
        (field,) = field_types(inputs)
        return (field,)

    def available(self, node: Node, places: Sequence[Place]) -> tuple[Domain, ...]:
        domain = field_domain(places[0])
        return (domain & self.box.restrict(domain.dims),)

    def demand(self, node: Node, wanted: Sequence[Domain | None], places: Sequence[Place]) -> tuple[Domain | None, ...]:
        return tuple(wanted)

    def evaluate(self, at: At, domain: Domain, slots: Slots) -> Any:
        return at.operand(0, domain, slots)

    def transpose(self, node: Node, cotangent: Value) -> Value | None:
        return cotangent

    def __str__(self) -> str:
        return f"part[{self.box}]"


def boxes_of(region: Domain | DomainUnion) -> tuple[Domain, ...]:
    """The disjoint boxes of a region."""
    return tuple(region) if isinstance(region, DomainUnion) else (region,)  # type: ignore[return-value]


def membership(xp: Any, box: Domain, domain: Domain) -> Any:
    """Which positions of `domain` lie in `box`; axes of length one along dimensions that don't decide."""
    inside: Any = None
    for axis, dim in enumerate(domain.dims):
        if dim not in box.dims:
            continue
        decided = _along(xp, box.range_of(dim), domain.range_of(dim))
        shaped = decided.reshape([-1 if a == axis else 1 for a in range(domain.ndim)])
        inside = shaped if inside is None else inside & shaped
    return inside


def _along(xp: Any, box: UnitRange, span: UnitRange) -> Any:
    positions = xp.arange(int(span.start), int(span.stop))
    common = box & span
    return (positions >= int(common.start)) & (positions < int(common.stop))
