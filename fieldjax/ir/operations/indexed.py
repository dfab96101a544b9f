"""Reads a field at positions that a field of integers gives: indices that are data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fieldjax.domain import Dimension, Domain, canonical_dims
from fieldjax.dtypes import is_integer
from fieldjax.errors import DimensionError, DtypeError, IndexOutOfBoundsError
from fieldjax.ir.evaluation import At, Slots, align
from fieldjax.ir.graph import Node, Value
from fieldjax.ir.indexing import indexed, moved
from fieldjax.ir.operation import Linear, Place, field_domain, field_types, record
from fieldjax.ir.types import FieldType, Type


@dataclass(frozen=True)
class IndexedShift(Linear):
    """`result[..., k] = field[..., k + offset[..., k]]` along `dimension`.

    Inputs: the field, the offsets. Offsets aren't known to inference: the result lives where both inputs do,
    and all of the field along `dimension` is needed. A read outside of the field is an error when embedded on
    NumPy; compiled, it gives the nearest element, without a derivative.
    """

    dimension: Dimension

    def types(self, *inputs: Type) -> tuple[FieldType, ...]:
        field, offset = field_types(inputs)
        if not is_integer(offset.dtype):
            raise DtypeError(f"offsets are integers, not {offset.dtype}", hints=["convert: `astype(offset, int32)`"])
        if self.dimension not in field.dims:
            have = ", ".join(d.value for d in field.dims)
            raise DimensionError(f"a field on ({have}) can't be shifted along {self.dimension.value}")
        return (FieldType(canonical_dims((*field.dims, *offset.dims)), field.dtype, field.weak),)

    def available(self, node: Node, places: Sequence[Place]) -> tuple[Domain, ...]:
        return (field_domain(places[0]) & field_domain(places[1]),)

    def demand(self, node: Node, wanted: Sequence[Domain | None], places: Sequence[Place]) -> tuple[Domain | None, ...]:
        (box,) = wanted
        assert box is not None
        field, offset = node.inputs
        return (_whole_along(self.dimension, box.restrict(field.dims), places[0]), box.restrict(offset.dims))

    def evaluate(self, at: At, domain: Domain, slots: Slots) -> Any:
        positions, dims, inside = _positions(at, 1, self.dimension, at.planned(0), domain, slots)
        if at.xp.__name__ == "numpy" and not inside.all():
            raise _outside(at, int((~inside).sum()), self.dimension)
        source = _whole_along(self.dimension, domain.restrict(at.node.inputs[0].dims), at.planned(0))
        array = at.xp.broadcast_to(at.operand(0, source, slots), source.shape)
        if 0 in array.shape or 0 in domain.shape:
            return at.xp.zeros(domain.shape, array.dtype)
        indices = {self.dimension: (positions, dims)}
        for dim in source.dims:
            if dim in dims and dim != self.dimension:
                indices[dim] = (at.xp.arange(len(domain.range_of(dim))), (dim,))
        result, order = indexed(at, array, source.dims, indices)
        result = moved(result, order, domain.dims)
        return at.arrays.guard(result, align(inside, dims, domain.dims))

    def transpose(self, node: Node, cotangent: Value) -> Value | None:
        return record(IndexedScatter(self.dimension), cotangent, *node.inputs, location=node.location)[0]

    def __str__(self) -> str:
        return f"indexed_shift[{self.dimension.value}]"


@dataclass(frozen=True)
class IndexedScatter(Linear):
    """The transpose of `IndexedShift`: adds each element where it was read from.

    Inputs: the cotangent, the field that was read (for its domain only), the offsets.
    """

    dimension: Dimension

    def types(self, *inputs: Type) -> tuple[FieldType, ...]:
        cotangent, field, _ = field_types(inputs)
        return (FieldType(field.dims, cotangent.dtype, cotangent.weak),)

    def available(self, node: Node, places: Sequence[Place]) -> tuple[Domain, ...]:
        cotangent, field = field_domain(places[0]), field_domain(places[1])
        kept = cotangent.restrict(tuple(d for d in field.dims if d != self.dimension))
        return (field & kept,)

    def demand(self, node: Node, wanted: Sequence[Domain | None], places: Sequence[Place]) -> tuple[Domain | None, ...]:
        (box,) = wanted
        assert box is not None
        held = field_domain(places[0])
        kept = tuple(d for d in held.dims if d in box.dims and d != self.dimension)
        asked = held & box.restrict(kept)
        return (asked, None, asked.restrict(node.inputs[2].dims))

    def evaluate(self, at: At, domain: Domain, slots: Slots) -> Any:
        rows = at.planned(0).without(*slots)
        kept = tuple(d for d in rows.dims if d in domain.dims and d != self.dimension)
        rows = rows & domain.restrict(kept)
        values = at.xp.broadcast_to(at.operand(0, rows, slots), rows.shape)
        positions, dims, inside = _positions(at, 2, self.dimension, domain, rows, slots)
        values = at.xp.where(align(inside, dims, rows.dims), values, at.xp.zeros((), values.dtype))
        indices = [align(positions, dims, rows.dims) if d == self.dimension else _own(at, d, rows) for d in domain.dims]
        if 0 in domain.shape:
            return at.xp.zeros(domain.shape, values.dtype)
        spread = tuple(at.xp.broadcast_to(i, rows.shape) for i in indices)
        return at.arrays.scatter_add(domain.shape, spread, values)

    def transpose(self, node: Node, cotangent: Value) -> Value | None:
        return record(IndexedShift(self.dimension), cotangent, node.inputs[2], location=node.location)[0]

    def __str__(self) -> str:
        return f"indexed_scatter[{self.dimension.value}]"


def _whole_along(dim: Dimension, box: Domain, place: Place) -> Domain:
    """The box, but all that there is along `dim`."""
    held = field_domain(place).range_of(dim)
    return Domain(
        dims=box.dims, ranges=tuple(held if d == dim else r for d, r in zip(box.dims, box.ranges, strict=True))
    )


def _own(at: At, dim: Dimension, rows: Domain) -> Any:
    """The positions of a dimension that stays in place, as an index."""
    return align(at.xp.arange(len(rows.range_of(dim))), (dim,), rows.dims)


def _positions(
    at: At, index: int, dimension: Dimension, target: Domain, domain: Domain, slots: Slots
) -> tuple[Any, tuple[Dimension, ...], Any]:
    """Relative positions in bounds, their dimensions, and which of them were in bounds."""
    value = at.node.inputs[index]
    own = domain.restrict(tuple(d for d in value.dims if d not in slots))
    dims = canonical_dims((*own.dims, dimension))
    frame = domain.restrict(dims)
    offsets = align(at.xp.broadcast_to(at.operand(index, own, slots), own.shape), own.dims, frame.dims)
    start = domain.range_of(dimension).start
    span = target.range_of(dimension)
    here = align(at.xp.arange(len(domain.range_of(dimension))), (dimension,), frame.dims)
    relative = offsets + here + int(start - span.start)
    inside = (relative >= 0) & (relative < len(span))
    return at.xp.clip(relative, 0, max(len(span) - 1, 0)), frame.dims, inside


def _outside(at: At, count: int, dimension: Dimension) -> IndexOutOfBoundsError:
    span = at.planned(0).range_of(dimension)
    return IndexOutOfBoundsError(
        f"{count} offsets lead outside of the field along {dimension.value}",
        location=at.node.location,
        notes=[f"the field lives on [{span.start}, {span.stop}) there"],
    )
