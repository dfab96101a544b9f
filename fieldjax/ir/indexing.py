"""Arrays read through tables: gathers, their transposes, and reads at substitute slots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fieldjax.domain import Dimension, Domain, UnitRange
from fieldjax.ir.evaluation import At, Neighbours, Slot, Slots, align, canonical
from fieldjax.ir.graph import Value


def gather(at: At, chosen: Sequence[int | None], domain: Domain, slots: Slots, zero_skips: bool) -> Any:
    """`field[table, ...]` on `domain` for operation inputs (field, *tables)."""
    field, *tables = at.node.inputs
    reads = [_read(at, t, c, domain, slots) for t, c in zip(tables, chosen, strict=True)]
    source = _source(at, 0, domain, slots, tables)
    if 0 in source.shape or 0 in domain.shape:
        return at.xp.zeros(domain.shape, field.field_type.dtype)
    indices = _indices(at, source, domain, tables, reads)
    fixed = {d for d in field.dims if d in slots and d not in {t.table_type.codomain for t in tables}}
    array = at.xp.broadcast_to(at.operand(0, source, {d: slots[d] for d in fixed}), source.shape)
    result, dims = indexed(at, array, source.dims, indices)
    result = result.transpose([dims.index(d) for d in domain.dims])
    for entries, dims in reads:
        result = _masked(at, result, entries, dims, domain, zero_skips)
    return result


def _masked(
    at: At, result: Any, entries: Neighbours, dims: tuple[Dimension, ...], domain: Domain, zero_skips: bool
) -> Any:
    if entries.valid is None:
        return result
    valid = align(entries.valid, dims, domain.dims)
    if zero_skips:
        return at.xp.where(valid, result, at.xp.zeros((), result.dtype))
    return at.arrays.guard(result, valid) if entries.guarded else result


def _read(
    at: At, table: Value, chosen: int | None, domain: Domain, slots: Slots
) -> tuple[Neighbours, tuple[Dimension, ...]]:
    """The entries that one table contributes, and the dimensions that they are laid out on."""
    local = table.table_type.local_dimension
    fixed: dict[Dimension, Slot] = {}
    if local is not None and chosen is not None:
        fixed = {local: Slot(chosen, UnitRange(chosen, chosen + 1))}
    elif local is not None and local in slots:
        fixed = {local: slots[local]}
    entries = at.neighbours(table, domain, fixed)
    return entries, tuple(d for d in canonical(table.dims) if d not in fixed)


def _source(at: At, index: int, domain: Domain, slots: Slots, tables: Sequence[Value]) -> Domain:
    """The part of the field that is read: whole along the codomains, as asked for along the rest."""
    planned = at.planned(index)
    codomains = {t.table_type.codomain for t in tables}
    dims = tuple(d for d in planned.dims if d in codomains or d not in slots)
    ranges = tuple(planned.range_of(d) if d in codomains else domain.range_of(d) for d in dims)
    return Domain(dims=dims, ranges=ranges)


def _indices(
    at: At,
    source: Domain,
    domain: Domain,
    tables: Sequence[Value],
    reads: Sequence[tuple[Neighbours, tuple[Dimension, ...]]],
) -> dict[Dimension, tuple[Any, tuple[Dimension, ...]]]:
    """For each indexed dimension of the field: relative positions, and the dimensions of that array.

    A dimension that both the field and a table have is matched, element by element.
    """
    found: dict[Dimension, tuple[Any, tuple[Dimension, ...]]] = {}
    for table, (entries, dims) in zip(tables, reads, strict=True):
        codomain = table.table_type.codomain
        span = source.range_of(codomain)
        relative = entries.index - int(span.start) if span.start else entries.index
        if entries.guarded or at.plan.clip:
            relative = at.xp.clip(relative, 0, len(span) - 1)
        found[codomain] = (relative, dims)
    brought = {d for _, dims in reads for d in dims}
    for dim in source.dims:
        if dim in brought and dim not in found:
            found[dim] = (at.xp.arange(len(domain.range_of(dim))), (dim,))
    return found


def indexed(
    at: At,
    array: Any,
    source: tuple[Dimension, ...],
    indices: dict[Dimension, tuple[Any, tuple[Dimension, ...]]],
) -> tuple[Any, tuple[Dimension, ...]]:
    """The array with its indexed axes in front replaced by the index dimensions, and its dimensions."""
    leading, trailing, dims = _axes(source, indices)
    array = moved(array, source, (*leading, *trailing))
    positions = tuple(align(indices[d][0], indices[d][1], dims) for d in leading)
    return at.arrays.index(array, positions), (*dims, *trailing)


def _axes(
    source: tuple[Dimension, ...], indices: dict[Dimension, tuple[Any, tuple[Dimension, ...]]]
) -> tuple[tuple[Dimension, ...], tuple[Dimension, ...], tuple[Dimension, ...]]:
    leading = tuple(d for d in source if d in indices)
    trailing = tuple(d for d in source if d not in indices)
    return leading, trailing, canonical(tuple(dict.fromkeys(d for _, ds in indices.values() for d in ds)))


def moved(array: Any, dims: tuple[Dimension, ...], order: tuple[Dimension, ...]) -> Any:
    """The array with its axes, which are `dims`, in another order."""
    return array if dims == order else array.transpose([dims.index(d) for d in order])


def scatter(at: At, chosen: Sequence[int | None], domain: Domain, slots: Slots) -> Any:
    """The transpose of `gather` for operation inputs (cotangent, field, *tables), slot by slot."""
    total = None
    for part in _slot_choices(at, slots):
        term = _scattered(at, chosen, domain, {**slots, **part})
        total = term if total is None else total + term
    assert total is not None
    return total


def _slot_choices(at: At, slots: Slots) -> list[dict[Dimension, Slot]]:
    """One choice for each combination of positions of the local dimensions that the scatter sums away."""
    cotangent, field, *tables = at.node.inputs
    brought = {t.table_type.local_dimension for t in tables}
    planned = at.planned(0)
    choices: list[dict[Dimension, Slot]] = [{}]
    for dim in cotangent.dims:
        if dim in brought and dim not in slots and dim not in field.dims:
            extent = planned.range_of(dim)
            choices = [{**c, dim: Slot(p, extent)} for c in choices for p in extent]
    return choices


def _scattered(at: At, chosen: Sequence[int | None], domain: Domain, slots: Slots) -> Any:
    cotangent, _, *tables = at.node.inputs
    planned = at.planned(0)
    free = tuple(d for d in planned.dims if d not in slots)
    brought = {d for t in tables for d in t.dims}
    rows = Domain(dims=free, ranges=tuple(planned.range_of(d) if d in brought else domain.range_of(d) for d in free))
    values = at.xp.broadcast_to(at.operand(0, rows, {d: slots[d] for d in slots if d in cotangent.dims}), rows.shape)
    reads = [_read(at, t, c, rows, slots) for t, c in zip(tables, chosen, strict=True)]
    indices, inside = _targets(at, domain, rows, tables, reads)
    leading, trailing, dims = _axes(domain.dims, indices)
    for valid in inside:
        values = at.xp.where(align(*valid, rows.dims), values, at.xp.zeros((), values.dtype))
    values = moved(values, rows.dims, (*dims, *trailing))
    positions = tuple(at.xp.broadcast_to(align(*indices[d], dims), values.shape[: len(dims)]) for d in leading)
    shape = tuple(len(domain.range_of(d)) for d in (*leading, *trailing))
    if 0 in shape:
        return at.xp.zeros(domain.shape, values.dtype)
    return moved(at.arrays.scatter_add(shape, positions, values), (*leading, *trailing), domain.dims)


def _targets(
    at: At,
    domain: Domain,
    rows: Domain,
    tables: Sequence[Value],
    reads: Sequence[tuple[Neighbours, tuple[Dimension, ...]]],
) -> tuple[dict[Dimension, tuple[Any, tuple[Dimension, ...]]], list[tuple[Any, tuple[Dimension, ...]]]]:
    """Where each element goes, in bounds, and which elements go nowhere (skips, positions outside)."""
    found: dict[Dimension, tuple[Any, tuple[Dimension, ...]]] = {}
    inside: list[tuple[Any, tuple[Dimension, ...]]] = []

    def add(dim: Dimension, positions: Any, dims: tuple[Dimension, ...]) -> None:
        span = domain.range_of(dim)
        relative = positions - int(span.start)
        inside.append(((relative >= 0) & (relative < len(span)), dims))
        found[dim] = (at.xp.clip(relative, 0, max(len(span) - 1, 0)), dims)

    for table, (entries, dims) in zip(tables, reads, strict=True):
        add(table.table_type.codomain, entries.index, dims)
        if entries.valid is not None:
            inside.append((entries.valid, dims))
    brought = {d for _, dims in reads for d in dims}
    for dim in domain.dims:
        if dim in brought and dim not in found:
            span = rows.range_of(dim)
            add(dim, at.xp.arange(int(span.start), int(span.stop)), (dim,))
    return found, inside


def substituted(at: At, local: Dimension, domain: Domain, slots: Slots) -> Any:
    """The operand of `Substitute`: its own element in used slots, that of the first used slot elsewhere."""
    _, table = at.node.inputs
    if not at.plan.facts(table).has_skips:
        return at.aligned(0, domain, slots)
    fixed = {local: slots[local]} if local in slots else {}
    entries = at.neighbours(table, domain, fixed)
    if entries.valid is None:
        return at.aligned(0, domain, slots)
    dims = tuple(d for d in canonical(table.dims) if d not in fixed)
    valid = align(entries.valid, dims, domain.dims)
    own = at.aligned(0, domain, slots)
    first = _first_used(at, local, entries, domain, slots)
    result = at.xp.where(valid, own, first)
    return at.arrays.guard(result, valid) if entries.guarded else result


def _first_used(at: At, local: Dimension, entries: Neighbours, domain: Domain, slots: Slots) -> Any:
    """The operand at the first used slot of each row, aligned to `domain`."""
    _, table = at.node.inputs
    extent = slots[local].extent if local in slots else domain.range_of(local)
    rows = domain.without(local) if local in domain.dims else domain
    first, row_dims = entries.first, tuple(d for d in canonical(table.dims) if d != local)
    result = None
    for position in extent:
        here = at.aligned(0, rows, {**slots, local: Slot(position, extent)})
        if result is None:
            result = here
        else:
            chosen = align(first == position - int(extent.start), row_dims, rows.dims)
            result = at.xp.where(chosen, here, result)
    result = _from_first_row(at, entries, result, row_dims, rows)
    return align(result, rows.dims, domain.dims)


def _from_first_row(at: At, entries: Neighbours, result: Any, row_dims: tuple[Dimension, ...], rows: Domain) -> Any:
    """Rows without any used slot read the first row that has one."""
    if entries.used is None:
        return result
    shape = tuple(len(rows.range_of(d)) for d in row_dims)
    best = at.xp.unravel_index(at.xp.argmax(entries.used.reshape(-1)), shape)
    full = at.xp.broadcast_to(result, rows.shape)
    position = dict(zip(row_dims, best, strict=True))
    other = full
    for axis, dim in enumerate(rows.dims):
        if dim in position:
            other = _taken(at, other, position[dim], axis)
    return at.xp.where(align(entries.used, row_dims, rows.dims), full, other)


def _taken(at: At, array: Any, position: Any, axis: int) -> Any:
    """One position of an axis, which stays with length one."""
    return at.xp.take(array, at.xp.reshape(position, 1), axis=axis, mode="clip")
