"""Where evaluation meets sums over pairs: reductions and scatters through tables with a transpose at hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fieldjax.domain import Dimension, Domain, UnitRange
from fieldjax.dtypes import is_floating
from fieldjax.ir.body import Body
from fieldjax.ir.evaluation import At, align
from fieldjax.ir.graph import Graph, Value
from fieldjax.ir.indexing import moved
from fieldjax.ir.links import Pairs, Side
from fieldjax.ir.operation import record
from fieldjax.ir.operations.gather import Gather
from fieldjax.ir.operations.layout import Broadcast
from fieldjax.ir.operations.literal import Literal, Parameter
from fieldjax.ir.operations.pointwise import Cast, Pointwise
from fieldjax.ir.operations.slots import Substitute, UsedOnly
from fieldjax.ir.pairs import PairSum
from fieldjax.ir.types import FieldType

MOST_PLACES = 32
"""Sums over more slots than this, or for elements with more pairs, aren't unrolled."""


def reduced(at: At, axis: Dimension, domain: Domain) -> Any | None:
    """The sum over neighbours along `axis`, whose adjoint is a gather; None where it can't be written so."""
    (value,) = at.node.inputs
    mask = value.mask_over(axis)
    if mask is None or not is_floating(value.field_type.dtype):
        return None
    part = part_of(at, mask.table, domain & at.planned(0).restrict((axis,)))
    summand = None if part is None else summand_of(at, part, value, domain)
    return None if summand is None else summand.over_rows(domain)


def scattered(at: At, domain: Domain) -> Any | None:
    """What a scatter through one table adds up, by a gather; None where it can't be written so."""
    cotangent, _, *tables = at.node.inputs
    if len(tables) != 1 or not is_floating(cotangent.field_type.dtype):
        return None
    part = part_of(at, tables[0], at.planned(0))
    summand = None if part is None else summand_of(at, part, cotangent, domain)
    return None if summand is None else summand.over_elements(domain)


@dataclass(frozen=True)
class Part:
    """The part of a table with one row dimension whose pairs are summed."""

    table: Value
    row: Dimension
    local: Dimension | None
    box: Domain
    """Rows, and slots where the table has a local dimension."""

    @property
    def codomain(self) -> Dimension:
        """The dimension of the elements."""
        return self.table.table_type.codomain

    def pairs(self, at: At, elements: UnitRange, *, inside: bool) -> Pairs:
        """Which pairs count of those that lead to `elements`; `inside`: they lead nowhere else."""
        known = at.plan.table(self.table)
        whole, local = known.domain, self.local
        return Pairs(
            _positions(self.box.range_of(self.row), whole.range_of(self.row)),
            None if local is None else _positions(self.box.range_of(local), whole.range_of(local)),
            range(int(elements.start), int(elements.stop)),
            known.skip_value if known.facts.has_skips else None,
            inside and not at.plan.clip,
            whole.dims[0] == self.row,
        )


def _positions(part: UnitRange, whole: UnitRange) -> range:
    return range(int(part.start - whole.start), int(part.stop - whole.start))


def part_of(at: At, table: Value, box: Domain) -> Part | None:
    """The part of `table` on `box`, where its transpose is attached and it is neither empty nor too wide."""
    known, local = at.evaluation.attached.get(table), table.table_type.local_dimension
    if known is None or len(table.dims) != 1 + (local is not None):
        return None
    (row,) = (d for d in table.dims if d != local)
    part = Part(table, row, local, box.restrict(table.dims))
    most = max(known.transpose.rows.shape[1], *part.box.shape[1:], 1)
    return part if 0 not in part.box.shape and most <= MOST_PLACES else None


class _NotPointwise(Exception):
    """The summand isn't a pointwise expression of stored arrays."""


def summand_of(at: At, part: Part, value: Value, result: Domain) -> Summand | None:
    """`value` as the summand of a sum on `result`, if it is a pointwise expression of stored arrays."""
    others = result.without(part.row) if part.row in result.dims else result.without(part.codomain)
    if part.codomain in others.dims or part.row in others.dims or 0 in result.shape:
        return None
    try:
        return Summand(at, part, value, others)
    except _NotPointwise:
        return None


class Summand:
    """A value with the local dimension of a table, as an expression of what stands at each pair."""

    def __init__(self, at: At, part: Part, value: Value, others: Domain) -> None:
        self._at, self._part, self._others = at, part, others
        self._known: dict[Value, Value] = {}
        self._leaves: dict[tuple[Value, Side], Value] = {}
        result = self._number(value)
        self._body = Body(Graph(tuple(self._leaves.values()), (result,)))

    def over_rows(self, domain: Domain) -> Any | None:
        """The sum for each row, laid out on `domain`; None where nothing is gathered."""
        elements = None
        for value, side in self._leaves:
            if side is Side.ELEMENT:
                span = self._planned(value)
                elements = span if elements is None else elements & span
        return None if not elements else self._sum(Side.ROW, elements, domain)

    def over_elements(self, domain: Domain) -> Any:
        """The sum for each element, laid out on `domain`."""
        return self._sum(Side.ELEMENT, domain.range_of(self._part.codomain), domain)

    def _sum(self, onto: Side, elements: UnitRange, domain: Domain) -> Any:
        sides = tuple(side for _, side in self._leaves)
        operands = tuple(self._array(value, side, elements) for value, side in self._leaves)
        pairs = self._part.pairs(self._at, elements, inside=onto is Side.ROW)
        tables = self._at.evaluation.attached[self._part.table]
        total = self._at.arrays.pair_sum(PairSum(self._body, sides, onto, pairs), operands, tables)
        order = (*self._leading(onto), *self._others.dims)
        return moved(total, order, domain.dims)

    def _number(self, value: Value) -> Value:
        """The value as one that stands for a number at each pair."""
        if value not in self._known:
            self._known[value] = self._read(value)
        return self._known[value]

    def _read(self, value: Value) -> Value:
        operation, inputs, part = value.node.operation, value.node.inputs, self._part
        if isinstance(operation, Literal):
            return record(operation)[0]
        if part.local is None or part.local not in value.dims:
            return self._leaf(value, Side.ROW)
        if value in self._at.evaluation.stored:
            return self._leaf(value, Side.PAIR)
        if isinstance(operation, Gather) and operation.slots == (None,) and inputs[1] == part.table:
            return self._leaf(inputs[0], Side.ELEMENT)
        if isinstance(operation, Cast) or (isinstance(operation, Pointwise) and operation.function != "first"):
            return record(operation, *map(self._number, inputs))[0]
        # Sums over pairs leave unused slots out: what stands there, and what a mask says of it, is no matter.
        at_same = isinstance(operation, (Substitute, UsedOnly)) and inputs[1] == part.table
        if at_same or isinstance(operation, (Broadcast, Pointwise)):
            return self._number(inputs[0])
        raise _NotPointwise

    def _leaf(self, value: Value, side: Side) -> Value:
        others = set(value.dims) - set(self._leading(side))
        if value not in self._at.evaluation.stored or not others <= set(self._others.dims):
            raise _NotPointwise
        if (value, side) not in self._leaves:
            type_ = FieldType((), value.field_type.dtype, value.field_type.weak)
            self._leaves[value, side] = record(Parameter(f"x{len(self._leaves)}", type_))[0]
        return self._leaves[value, side]

    def _leading(self, side: Side) -> tuple[Dimension, ...]:
        """The dimensions that arrays on one side have in front."""
        part = self._part
        if side is Side.ELEMENT:
            return (part.codomain,)
        return (part.row,) if side is Side.ROW or part.local is None else (part.row, part.local)

    def _planned(self, value: Value) -> UnitRange:
        """The elements that a gathered field has."""
        domain = self._at.plan.domain(value)
        assert domain is not None
        return domain.range_of(self._part.codomain)

    def _array(self, value: Value, side: Side, elements: UnitRange) -> Any:
        """The array of a leaf, laid out for its side."""
        leading, part = self._leading(side), self._part
        first = part.box if side is not Side.ELEMENT else _along(part.codomain, elements & self._planned(value))
        own = (self._others & first).restrict(value.dims)
        array = self._at.arrays.cast(self._at.evaluation.array(value, own, {}), value.field_type.dtype)
        onto = (*leading, *self._others.dims)
        if not value.dims:
            return self._at.xp.reshape(array, (1,) * len(onto))
        order = tuple(d for d in onto if d in value.dims)
        array = align(moved(array, value.dims, order), order, onto)
        return self._filled(array, own.range_of(part.codomain), elements) if side is Side.ELEMENT else array

    def _filled(self, array: Any, span: UnitRange, elements: UnitRange) -> Any:
        """One entry for each element, anything for those outside of `span`: no pair leads there."""
        if len(span) == 0:
            return self._at.xp.zeros((len(elements), *array.shape[1:]), array.dtype)
        array = self._at.xp.broadcast_to(array, (len(span), *array.shape[1:]))
        before, after = int(span.start - elements.start), int(elements.stop - span.stop)
        if not (before or after):
            return array
        return self._at.xp.pad(array, ((before, after), *((0, 0) for _ in array.shape[1:])))


def _along(dim: Dimension, span: UnitRange) -> Domain:
    return Domain(dims=(dim,), ranges=(span,))
