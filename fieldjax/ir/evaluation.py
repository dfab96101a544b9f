"""Evaluates a planned graph on arrays: one walk for NumPy, for JAX and for tracers.

Values without local dimensions are computed once, on the part that is needed, in topological order. Values
with a local dimension are computed for their reader: slot by slot inside a reduction (design.md, "Reduce by
slots"), with the whole axis otherwise. An array is laid out on a domain, axes in canonical order; an axis
along which it is constant may have length one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fieldjax.domain import Dimension, Domain, UnitRange
from fieldjax.ir.arrays import Arrays
from fieldjax.ir.graph import Graph, Mask, Node, Value
from fieldjax.ir.links import TableArrays
from fieldjax.ir.plan import Plan


class Slot(NamedTuple):
    """The position at which a local dimension is fixed, within the positions that its reader asks for."""

    position: int
    extent: UnitRange


Slots = Mapping[Dimension, Slot]


class Neighbours(NamedTuple):
    """Entries of a table, skips replaced by a valid entry; `valid` is None where no skip occurs."""

    index: Any
    valid: Any | None
    first: Any | None
    """For each row the slot, relative to the extent, of its first valid entry (None: no skips or no slots)."""
    used: Any | None = None
    """For each row whether it has a valid entry; None where every row has one."""

    @property
    def guarded(self) -> bool:
        """Whether something unrelated may be read in place of a skip."""
        return self.valid is not None and (self.used is not None or self.first is None)


class Evaluation:
    """The state of one walk over one graph."""

    def __init__(self, graph: Graph, plan: Plan, arrays: Arrays, inputs: Sequence[Any]) -> None:
        self.graph, self.plan, self.arrays = graph, plan, arrays
        self.xp = arrays.xp
        self.stored: dict[Value, Any] = {}
        self._lazy: dict[tuple[Any, ...], Any] = {}
        self._tables: dict[tuple[Any, ...], Neighbours] = {}
        self.attached: dict[Value, TableArrays] = {}
        """Tables with their transposes, where these are at hand."""
        for value, array in zip(graph.inputs, inputs, strict=True):
            if isinstance(array, TableArrays):
                self.attached[value] = array
                array = array.table
            self.stored[value] = array

    def run(self) -> tuple[Any, ...]:
        """The arrays of the graph's outputs on their planned domains."""
        # JAX doesn't warn, and NumPy would in vain where a substitute or a branch not taken is singular.
        with np.errstate(all="ignore"):
            for node in self.graph.nodes:
                self._store(node)
            return tuple(map(self._output, self.graph.outputs, self.plan.outputs))

    def values(self) -> tuple[Any, ...]:
        """The outputs of a graph on numbers, each of which may stand for an array of them (the body of a scan)."""
        for node in self.graph.nodes:
            self._store(node)
        return tuple(self.stored[value] for value in self.graph.outputs)

    def _store(self, node: Node) -> None:
        if node in self.graph.given or is_lazy(node):
            return
        results = node.results()
        domains = [self.plan.domain(value) for value in results]
        if all(d is None or d.is_empty() for d in domains):
            return
        arrays = node.operation.evaluate_results(At(self, node), domains)
        for value, array in zip(results, arrays, strict=True):
            self.stored[value] = self.arrays.hold(array) if value in self.plan.held else array

    def _output(self, value: Value, domain: Domain) -> Any:
        return self.xp.broadcast_to(self.array(value, domain, {}), domain.shape)

    def array(self, value: Value, domain: Domain, slots: Slots) -> Any:
        """`value` on `domain`, which has the dimensions of the value that `slots` doesn't fix."""
        if domain.is_empty():  # nothing was demanded for it
            return self.xp.zeros(domain.shape, value.field_type.dtype)
        if value in self.stored:
            return self._part(value, domain, slots)
        key = (value, domain, tuple(sorted((d.value, s) for d, s in slots.items())))
        if key not in self._lazy:
            self._lazy[key] = value.node.operation.evaluate(At(self, value.node), domain, slots)
        return self._lazy[key]

    def _part(self, value: Value, domain: Domain, slots: Slots) -> Any:
        """The stored array, cut to what is asked for."""
        array = self.stored[value]
        laid_out = self.plan.domain(value)
        if not value.dims or laid_out == domain:
            return array
        assert laid_out is not None
        cuts: list[Any] = []
        for axis, dim in enumerate(laid_out.dims):
            whole = laid_out.range_of(dim)
            constant = array.shape[axis] == 1 and len(whole) != 1
            if dim in slots:
                cuts.append(0 if constant else slots[dim].position - int(whole.start))
            else:
                cuts.append(slice(None) if constant else part_of(whole, domain.range_of(dim)))
        return array[tuple(cuts)]


def part_of(whole: UnitRange, part: UnitRange) -> slice:
    """The relative slice that reads `part` of an axis that holds `whole`."""
    return slice(int(part.start - whole.start), int(part.stop - whole.start))


def is_lazy(node: Node) -> bool:
    """Whether the node's result is computed for its reader instead of once."""
    from fieldjax.ir.types import FieldType

    type_ = node.types[0]
    return len(node.types) == 1 and not node.operation.once and isinstance(type_, FieldType) and bool(type_.local_dims)


class At:
    """The evaluation as one operation sees it: its operands, tables and masks."""

    def __init__(self, evaluation: Evaluation, node: Node) -> None:
        self.evaluation, self.node = evaluation, node
        self.arrays, self.xp, self.plan = evaluation.arrays, evaluation.xp, evaluation.plan

    def planned(self, index: int) -> Domain:
        """The part of an operand that the whole plan needs."""
        domain = self.plan.domain(self.node.inputs[index])
        assert domain is not None
        return domain

    def operand(self, index: int, domain: Domain, slots: Slots) -> Any:
        """Operand `index` on the part of `domain` and `slots` that it has dimensions for."""
        value = self.node.inputs[index]
        fixed = {d: s for d, s in slots.items() if d in value.dims}
        free = domain.restrict(tuple(d for d in value.dims if d not in fixed))
        return self.evaluation.array(value, free, fixed)

    def aligned(self, index: int, domain: Domain, slots: Slots) -> Any:
        """The operand with an axis of length one for each dimension of `domain` that it lacks."""
        array = self.operand(index, domain, slots)
        dims = tuple(d for d in self.node.inputs[index].dims if d not in slots)
        return align(array, dims, domain.dims)

    def neighbours(self, table: Value, domain: Domain, slots: Slots) -> Neighbours:
        """The entries of `table` on `domain` and `slots`, skips replaced."""
        from fieldjax.ir.neighbours import neighbours

        return neighbours(self.evaluation, table, domain, slots)

    def valid(self, mask: Mask, domain: Domain, slots: Slots) -> Any | None:
        """Where `mask`'s table holds no skip, aligned to `domain`; None where there are none at all."""
        table = mask.table
        if not self.plan.facts(table).has_skips:
            return None
        fixed = {d: s for d, s in slots.items() if d in table.dims}
        entries = self.neighbours(table, domain, fixed)
        dims = tuple(d for d in canonical(table.dims) if d not in fixed)
        return None if entries.valid is None else align(entries.valid, dims, domain.dims)


def canonical(dims: tuple[Dimension, ...]) -> tuple[Dimension, ...]:
    """Dimensions in canonical order."""
    from fieldjax.domain import canonical_dims

    return canonical_dims(dims)


def align(array: Any, dims: tuple[Dimension, ...], onto: tuple[Dimension, ...]) -> Any:
    """Axes of length one where `onto` has a dimension that `dims` lacks; scalars stay scalars."""
    if dims == onto or not dims:
        return array
    present = set(dims)
    return array[tuple(slice(None) if d in present else None for d in onto)]
