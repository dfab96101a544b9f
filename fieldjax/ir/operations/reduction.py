"""Reductions: over the neighbours of each row, skips left out, and over whole dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fieldjax.domain import Dimension, DimensionKind, Domain
from fieldjax.dtypes import is_floating
from fieldjax.errors import DimensionError
from fieldjax.ir.build import Expression, expressions, match
from fieldjax.ir.evaluation import At, Slot, Slots
from fieldjax.ir.graph import Node, Value
from fieldjax.ir.operation import Linear, Operation, Place, field_domain, record
from fieldjax.ir.types import FieldType, Type

MOST_SLOTS = 32
"""Reductions over more positions than this use the local axis instead of one accumulation per slot."""

_COMBINED = {"sum": 0, "product": 1}
"""The reductions that accumulate, with what they start from."""


@dataclass(frozen=True)
class Reduce(Operation):
    """Sum, product, max or min over the neighbours along `axis`; a row without neighbours gives the identity.

    For a sum the derivative is the sum of the derivatives; for a product each is multiplied by the other
    factors; for max and min the neighbours that attain the extremum share it evenly.
    """

    kind: str
    axis: Dimension

    def types(self, *inputs: Type) -> tuple[FieldType, ...]:
        (field,) = inputs
        assert isinstance(field, FieldType)
        if self.axis.kind is not DimensionKind.LOCAL:
            raise DimensionError(
                f"{self.axis.value} isn't a local dimension",
                hints=["reductions run over the neighbours of a connectivity: `neighbor_sum(f(V2E), axis=V2EDim)`"],
            )
        if self.axis not in field.dims:
            have = ", ".join(d.value for d in field.dims)
            raise DimensionError(f"nothing to reduce: a field on ({have}) has no {self.axis.value}")
        dims = tuple(d for d in field.dims if d != self.axis)
        return (FieldType(dims, field.dtype, field.weak),)

    def available(self, node: Node, places: Sequence[Place]) -> tuple[Domain, ...]:
        return (field_domain(places[0]).without(self.axis),)

    def demand(self, node: Node, wanted: Sequence[Domain | None], places: Sequence[Place]) -> tuple[Domain | None, ...]:
        (box,) = wanted
        assert box is not None
        return (box & field_domain(places[0]).restrict((self.axis,)),)

    def evaluate(self, at: At, domain: Domain, slots: Slots) -> Any:
        mask = at.node.inputs[0].mask_over(self.axis)
        if mask is not None and not at.plan.facts(mask.table).has_valid:
            return self._identity(at, domain)
        positions = at.planned(0).range_of(self.axis)
        if len(positions) == 0:
            return self._identity(at, domain)
        if self.kind == "sum" and not slots:
            from fieldjax.ir.neighbour_sums import reduced

            if (total := reduced(at, self.axis, domain)) is not None:
                return total
        if len(positions) > MOST_SLOTS:
            return self._along_axis(at, domain, slots, mask)
        parts, masks = [], []
        for position in positions:
            here = {**slots, self.axis: Slot(position, positions)}
            parts.append(at.aligned(0, domain, here))
            masks.append(None if mask is None else at.valid(mask, domain, here))
        if self.kind in _COMBINED:
            return self._combined(at, parts, masks)
        known = [m for m in masks if m is not None]
        return at.arrays.extremum(parts, known or None, largest=self.kind == "max")

    def _identity(self, at: At, domain: Domain) -> Any:
        from fieldjax.dtypes import maximum_of, minimum_of

        dtype = at.node.inputs[0].field_type.dtype
        value = _COMBINED.get(self.kind, minimum_of(dtype) if self.kind == "max" else maximum_of(dtype))
        return at.xp.full(domain.shape, value, dtype)

    def _combined(self, at: At, parts: Sequence[Any], masks: Sequence[Any]) -> Any:
        """The sum or product of the unmasked parts."""
        total, identity = None, at.xp.full((), _COMBINED[self.kind], parts[0].dtype)
        for part, valid in zip(parts, masks, strict=True):
            kept = part if valid is None else at.xp.where(valid, part, identity)
            total = kept if total is None else total + kept if self.kind == "sum" else total * kept
        return at.arrays.cast(total, parts[0].dtype)

    def _along_axis(self, at: At, domain: Domain, slots: Slots, mask: Any) -> Any:
        whole = domain & at.planned(0).restrict((self.axis,))
        array = at.xp.broadcast_to(at.operand(0, whole, slots), whole.shape)
        valid = None if mask is None else at.valid(mask, whole, slots)
        axis = whole.dims.index(self.axis)
        if self.kind in _COMBINED:
            kept = (
                array if valid is None else at.xp.where(valid, array, at.xp.full((), _COMBINED[self.kind], array.dtype))
            )
            return getattr(kept, "sum" if self.kind == "sum" else "prod")(axis=axis, dtype=array.dtype)
        valid = None if valid is None else at.xp.broadcast_to(valid, whole.shape)
        parts = [at.xp.take(array, p, axis=axis) for p in range(array.shape[axis])]
        masks = None if valid is None else [at.xp.take(valid, p, axis=axis) for p in range(array.shape[axis])]
        return at.arrays.extremum(parts, masks, largest=self.kind == "max")

    def jvp(self, node: Node, tangents: Sequence[Value | None]) -> tuple[Value | None, ...]:
        (tangent,) = tangents
        if tangent is None:
            return (None,)
        if self.kind == "sum":
            return record(self, tangent, location=node.location)
        if self.kind == "product":
            t, others = self._beside_others(node, tangent)
            return record(Reduce("sum", self.axis), (others * t).value, location=node.location)
        t, ties, count = self._shares(node, tangent)
        (total,) = record(Reduce("sum", self.axis), (ties * t).value, location=node.location)
        return ((Expression(total, node.location) / count).value,)

    def vjp(self, node: Node, cotangents: Sequence[Value | None]) -> tuple[Value | None, ...]:
        (cotangent,) = cotangents
        (operand,) = node.inputs
        if cotangent is None or not is_floating(operand.field_type.dtype):
            return (None,)
        if self.kind == "sum":
            return (match(cotangent, operand),)
        if self.kind == "product":
            t, others = self._beside_others(node, cotangent)
            return ((others * t).value,)
        t, ties, count = self._shares(node, cotangent)
        return ((t / count * ties).value,)

    def _beside_others(self, node: Node, seed: Value) -> list[Expression]:
        """The seed, and at each neighbour the product of the other factors."""
        from fieldjax.ir.operations.product import OthersProduct

        (others,) = record(OthersProduct(self.axis), node.inputs[0], location=node.location)
        return expressions((seed, others), node.location)

    def _shares(self, node: Node, seed: Value) -> tuple[Expression, Expression, Expression]:
        """The seed, 1 where a neighbour attains the extremum (else 0), and how many do (at least 1)."""
        from fieldjax.ir.operations.pointwise import Cast

        t, x, r = expressions((seed, node.inputs[0], node.results()[0]), node.location)
        (ties,) = record(Cast(x.value.field_type.dtype), (x == r).value, location=node.location)
        (count,) = record(Reduce("sum", self.axis), ties, location=node.location)
        shares, total = expressions((ties, count), node.location)
        return t, shares, total.build("maximum", total, 1)

    def __str__(self) -> str:
        return f"{self.kind}_over[{self.axis.value}]"


@dataclass(frozen=True)
class Total(Linear):
    """The sum over all elements along whole dimensions: the transpose of a broadcast."""

    over: tuple[Dimension, ...]

    def types(self, *inputs: Type) -> tuple[FieldType, ...]:
        (field,) = inputs
        assert isinstance(field, FieldType)
        dims = tuple(d for d in field.dims if d not in self.over)
        return (FieldType(dims, field.dtype, field.weak),)

    def available(self, node: Node, places: Sequence[Place]) -> tuple[Domain, ...]:
        return (field_domain(places[0]).without(*self.over),)

    def demand(self, node: Node, wanted: Sequence[Domain | None], places: Sequence[Place]) -> tuple[Domain | None, ...]:
        (box,) = wanted
        assert box is not None
        return (box & field_domain(places[0]).restrict(self.over),)

    def evaluate(self, at: At, domain: Domain, slots: Slots) -> Any:
        whole = domain & at.planned(0).restrict(self.over)
        array = at.xp.broadcast_to(at.operand(0, whole, slots), whole.shape)
        return array.sum(axis=tuple(whole.dims.index(d) for d in self.over), dtype=array.dtype)

    def transpose(self, node: Node, cotangent: Value) -> Value | None:
        return match(cotangent, node.inputs[0])

    def __str__(self) -> str:
        return f"total[{', '.join(d.value for d in self.over)}]"
