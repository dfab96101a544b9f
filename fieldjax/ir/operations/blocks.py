"""A dimension in blocks of equal size: where stacks of stacks become one stack, and one becomes a stack of stacks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fieldjax.domain import Dimension, Domain, NamedRange, UnitRange, canonical_dims
from fieldjax.ir.evaluation import At, Slots, part_of
from fieldjax.ir.graph import Node, Value
from fieldjax.ir.indexing import moved
from fieldjax.ir.operation import Linear, Place, field_domain, field_types, record
from fieldjax.ir.operations.layout import padded
from fieldjax.ir.operations.whole import whole
from fieldjax.ir.types import FieldType, Type


@dataclass(frozen=True)
class Merge(Linear):
    """`result[i] = field[i // size, i % size]` along `axis`, the blocks, and `inner`, the positions in a block.

    Zero where the field lacks a position of a block that it has.
    """

    axis: Dimension
    inner: Dimension
    size: int

    def types(self, *inputs: Type) -> tuple[FieldType, ...]:
        (field,) = field_types(inputs)
        assert {self.axis, self.inner} <= set(field.dims), field
        return (FieldType(tuple(d for d in field.dims if d != self.inner), field.dtype, field.weak),)

    def available(self, node: Node, places: Sequence[Place]) -> tuple[Domain, ...]:
        return (merged(field_domain(places[0]), self.axis, self.inner, self.size),)

    def demand(self, node: Node, wanted: Sequence[Domain | None], places: Sequence[Place]) -> tuple[Domain | None, ...]:
        (box,) = wanted
        assert box is not None
        return (split(box, self.axis, self.inner, self.size) & field_domain(places[0]),)

    def evaluate(self, at: At, domain: Domain, slots: Slots) -> Any:
        blocks = split(domain, self.axis, self.inner, self.size)
        array = moved(padded(at, 0, blocks, slots), blocks.dims, _in_blocks(domain, self.axis, self.inner))
        covered = merged(blocks, self.axis, self.inner, self.size)
        return at.xp.reshape(array, covered.shape)[_cut(covered, domain)]

    def transpose(self, node: Node, cotangent: Value) -> Value | None:
        back = record(Split(self.axis, self.inner, self.size), cotangent, location=node.location)[0]
        return whole(back, node.inputs[0])

    def __str__(self) -> str:
        return f"merge[{self.axis.value} {self.inner.value} {self.size}]"


@dataclass(frozen=True)
class Split(Linear):
    """`result[b, n] = field[b * size + n]` along `axis`, for 0 <= n < `size` along `inner`: the transpose of `Merge`.

    Zero where a block has positions that the field lacks.
    """

    axis: Dimension
    inner: Dimension
    size: int

    def types(self, *inputs: Type) -> tuple[FieldType, ...]:
        (field,) = field_types(inputs)
        assert self.axis in field.dims and self.inner not in field.dims, field
        return (FieldType(canonical_dims((*field.dims, self.inner)), field.dtype, field.weak),)

    def available(self, node: Node, places: Sequence[Place]) -> tuple[Domain, ...]:
        return (split(field_domain(places[0]), self.axis, self.inner, self.size),)

    def demand(self, node: Node, wanted: Sequence[Domain | None], places: Sequence[Place]) -> tuple[Domain | None, ...]:
        (box,) = wanted
        assert box is not None
        return (merged(box, self.axis, self.inner, self.size) & field_domain(places[0]),)

    def evaluate(self, at: At, domain: Domain, slots: Slots) -> Any:
        covered = merged(domain, self.axis, self.inner, self.size)
        blocks = split(covered, self.axis, self.inner, self.size)
        order = _in_blocks(covered, self.axis, self.inner)
        shape = tuple(len(blocks.range_of(d)) for d in order)
        array = at.xp.reshape(padded(at, 0, covered, slots), shape)
        return moved(array, order, blocks.dims)[_cut(blocks, domain)]

    def transpose(self, node: Node, cotangent: Value) -> Value | None:
        back = record(Merge(self.axis, self.inner, self.size), cotangent, location=node.location)[0]
        return whole(back, node.inputs[0])

    def __str__(self) -> str:
        return f"split[{self.axis.value} {self.inner.value} {self.size}]"


def merged(blocks: Domain, axis: Dimension, inner: Dimension, size: int) -> Domain:
    """The domain of all positions of these blocks."""
    span = blocks.range_of(axis)
    return blocks.without(inner).replace(axis, NamedRange(axis, UnitRange(span.start * size, span.stop * size)))


def split(domain: Domain, axis: Dimension, inner: Dimension, size: int) -> Domain:
    """The blocks that hold the positions of a domain, whole ones."""
    span = domain.range_of(axis)
    start = span.start // size if span.is_left_finite() else -math.inf
    stop = -(-span.stop // size) if span.is_right_finite() else math.inf
    blocks = domain.replace(axis, NamedRange(axis, UnitRange(start, stop)))
    return (blocks & Domain(NamedRange(inner, UnitRange(0, size)))).canonical()


def _in_blocks(domain: Domain, axis: Dimension, inner: Dimension) -> tuple[Dimension, ...]:
    """The dimensions of a domain with `inner` right behind `axis`, as a reshape makes them."""
    behind = domain.dims.index(axis) + 1
    return (*domain.dims[:behind], inner, *domain.dims[behind:])


def _cut(covered: Domain, domain: Domain) -> tuple[slice, ...]:
    return tuple(part_of(w, p) for w, p in zip(covered.ranges, domain.ranges, strict=True))
