"""Products of all neighbours but one, which products over neighbours are differentiated by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from fieldjax.domain import Dimension, Domain, canonical_dims
from fieldjax.dtypes import is_floating
from fieldjax.ir.build import adopt_masks, match, pointwise
from fieldjax.ir.evaluation import At, Slot, Slots
from fieldjax.ir.graph import Node, Value
from fieldjax.ir.operation import Operation, Place, common_domain, field_types, record
from fieldjax.ir.operations.layout import Extend
from fieldjax.ir.types import FieldType, Type


@dataclass(frozen=True)
class OthersProduct(Operation):
    """At each neighbour along `axis`, the product of the others' factors; no division, so that zeros may stand.

    Inputs: the factors x, then tangents t₁ … tₙ on the same domain. The result at neighbour i is the n-th
    derivative, along the tangents, of the product of all x_j with j ≠ i:

        Σ over distinct j₁ … jₙ, none of them i, of t₁[j₁] … tₙ[jₙ] · Π of the remaining x_j

    One family is closed under differentiation: a tangent of x is one more tangent, and, since the sum is
    symmetric in i and each jₘ, the cotangent of tₘ is the same operation with the cotangent in tₘ's place.
    """

    axis: Dimension
    joins: ClassVar[bool] = True

    def types(self, *inputs: Type) -> tuple[FieldType, ...]:
        fields = field_types(inputs)
        dims = canonical_dims(tuple(dict.fromkeys(d for f in fields for d in f.dims)))
        return (FieldType(dims, fields[0].dtype, fields[0].weak),)

    def available(self, node: Node, places: Sequence[Place]) -> tuple[Domain, ...]:
        return (common_domain(places),)

    def demand(self, node: Node, wanted: Sequence[Domain | None], places: Sequence[Place]) -> tuple[Domain | None, ...]:
        (box,) = wanted
        assert box is not None
        rows = box.without(self.axis)
        whole = rows & self.available(node, places)[0].restrict((self.axis,))
        return tuple(whole.restrict(v.dims) for v in node.inputs)

    def evaluate(self, at: At, domain: Domain, slots: Slots) -> Any:
        rows = domain.without(self.axis) if self.axis in domain.dims else domain
        extent = at.planned(0).range_of(self.axis)
        terms = {p: self._factor(at, rows, {**slots, self.axis: Slot(p, extent)}) for p in extent}
        if self.axis in slots:
            return self._without(at, terms, slots[self.axis].position, rows)
        parts = [self._without(at, terms, p, rows) for p in domain.range_of(self.axis)]
        if not parts:
            return at.xp.zeros(domain.shape, at.node.inputs[0].field_type.dtype)
        return at.xp.stack(parts, axis=domain.dims.index(self.axis))

    def _factor(self, at: At, rows: Domain, here: Slots) -> list[Any]:
        """What one neighbour contributes: its factor and its tangents; 1 and zeros where there is none."""
        arrays = [at.arrays.cast(at.aligned(n, rows, here), self._dtype(at)) for n in range(len(at.node.inputs))]
        mask = at.node.inputs[0].mask_over(self.axis)
        valid = None if mask is None else at.valid(mask, rows, here)
        if valid is None:
            return arrays
        return [at.xp.where(valid, a, at.xp.full((), n == 0, a.dtype)) for n, a in enumerate(arrays)]

    def _dtype(self, at: At) -> Any:
        return at.node.inputs[0].field_type.dtype

    def _without(self, at: At, factors: Mapping[int, list[Any]], position: int, rows: Domain) -> Any:
        """The mixed derivative of the product of all factors but one."""
        count = len(at.node.inputs) - 1
        taken: dict[frozenset[int], Any] = {frozenset(): at.xp.ones((1,) * len(rows.dims), self._dtype(at))}
        for x, *tangents in (f for p, f in factors.items() if p != position):
            taken = _multiplied(taken, x, tangents)
        zero = at.xp.zeros((), self._dtype(at))
        return at.xp.broadcast_to(taken.get(frozenset(range(count)), zero), rows.shape)

    def jvp(self, node: Node, tangents: Sequence[Value | None]) -> tuple[Value | None, ...]:
        terms = [self._replaced(node, n, t) for n, t in enumerate(tangents) if t is not None]
        return (_sum(terms, node),)

    def vjp(self, node: Node, cotangents: Sequence[Value | None]) -> tuple[Value | None, ...]:
        (cotangent,) = cotangents
        if cotangent is None or not is_floating(node.inputs[0].field_type.dtype):
            return (None,) * len(node.inputs)
        (seed,) = record(Extend(), cotangent, node.inputs[0], location=node.location)
        return tuple(self._replaced(node, n, seed) for n in range(len(node.inputs)))

    def _replaced(self, node: Node, position: int, seed: Value) -> Value:
        """A seed in place of a tangent, or as one more tangent when it is that of the factors."""
        inputs = list(node.inputs)
        inputs[position:] = [inputs[0], *inputs[1:], seed] if position == 0 else [seed, *inputs[position + 1 :]]
        return record(self, *adopt_masks(tuple(inputs)), location=node.location)[0]

    def __str__(self) -> str:
        return f"others_product[{self.axis.value}]"


def _multiplied(taken: Mapping[frozenset[int], Any], x: Any, tangents: Sequence[Any]) -> dict[frozenset[int], Any]:
    """One more factor: by which tangents have been taken from the factors so far."""
    found = {chosen: value * x for chosen, value in taken.items()}
    for chosen, value in taken.items():
        for n, tangent in enumerate(tangents):
            if n not in chosen:
                more, term = chosen | {n}, value * tangent
                found[more] = found[more] + term if more in found else term
    return found


def _sum(terms: Sequence[Value], node: Node) -> Value | None:
    if not terms:
        return None
    total = terms[0]
    for term in terms[1:]:
        total = pointwise("add", total, term, location=node.location)
    return match(total, node.results()[0])
