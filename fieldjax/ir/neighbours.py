"""Reads a part of a neighbour table so that no index is ever a skip (design.md, law 5)."""

from __future__ import annotations

from typing import Any

from fieldjax.domain import Dimension, Domain, UnitRange
from fieldjax.ir.evaluation import Evaluation, Neighbours, Slots, canonical, part_of
from fieldjax.ir.graph import Value


def neighbours(evaluation: Evaluation, table: Value, domain: Domain, slots: Slots) -> Neighbours:
    """Entries of `table` on the dimensions of `domain`, its local dimension fixed where `slots` says so.

    A skip reads the first valid entry of its row; in a row of skips, the first valid row's. Both are looked
    for in the part of the table that the reader asks for, so that every operand of one reduction is read at
    the same substitute.
    """
    local = table.table_type.local_dimension
    fixed = slots.get(local) if local is not None else None
    extent = fixed.extent if fixed else None
    rows = domain.restrict(tuple(d for d in canonical(table.dims) if not (fixed and d == local)))
    key = (table, rows, local if fixed else None, extent)
    whole = evaluation._tables.get(key)
    if whole is None:
        whole = evaluation._tables[key] = _substituted(evaluation, table, rows, local, extent)
    if fixed is None or local is None:
        return whole
    axis, slot = canonical(table.dims).index(local), fixed.position - int(fixed.extent.start)
    take = (*(slice(None),) * axis, slot)
    return whole._replace(index=whole.index[take], valid=None if whole.valid is None else whole.valid[take])


def _substituted(
    evaluation: Evaluation, table: Value, rows: Domain, local: Dimension | None, extent: UnitRange | None
) -> Neighbours:
    xp, entries = evaluation.xp, _part(evaluation, table, rows, local, extent)
    facts, known = evaluation.plan.facts(table), evaluation.plan.table(table)
    if not facts.has_skips or entries.size == 0:
        return Neighbours(entries, None, None)
    valid = entries != known.skip_value
    if local is None:
        return Neighbours(_elsewhere(xp, entries, valid, valid), valid, None)
    axis = canonical(table.dims).index(local)
    first = xp.argmax(valid, axis=axis)
    own = xp.take_along_axis(entries, xp.expand_dims(first, axis), axis=axis)
    entries = xp.where(valid, entries, own)
    narrower = entries.shape[axis] < len(known.domain.range_of(local))
    if not (facts.has_all_skip_row or narrower):
        return Neighbours(entries, valid, first)
    used = valid.any(axis=axis)
    entries = _elsewhere(xp, entries, valid, xp.expand_dims(used, axis))
    return Neighbours(entries, valid, first, used)


def _elsewhere(xp: Any, entries: Any, valid: Any, keep: Any) -> Any:
    """Entries that aren't kept read the first valid entry of all."""
    fallback = entries.reshape(-1)[xp.argmax(valid.reshape(-1))]
    return xp.where(keep, entries, fallback)


def _part(evaluation: Evaluation, table: Value, rows: Domain, local: Dimension | None, extent: UnitRange | None) -> Any:
    """The raw entries on `rows` and `extent`, axes in canonical order."""
    domain = evaluation.plan.table(table).domain
    array = evaluation.xp.asarray(evaluation.stored[table])
    wanted = [extent if extent is not None and d == local else rows.range_of(d) for d in domain.dims]
    array = array[tuple(part_of(domain.range_of(d), r) for d, r in zip(domain.dims, wanted, strict=True))]
    order = canonical(domain.dims)
    return array if order == domain.dims else array.transpose([domain.dims.index(d) for d in order])
