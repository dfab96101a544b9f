"""The pairs of a table, ready to be read from both sides: part of a table and of its transpose, in bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fieldjax.domain import Dimension, Domain, UnitRange
from fieldjax.ir.evaluation import At, canonical
from fieldjax.ir.graph import Value
from fieldjax.ir.neighbours import entries_on
from fieldjax.ir.pairs import Links

MOST_PLACES = 32
"""Sums over more slots than this, or for elements with more pairs, aren't unrolled."""


@dataclass(frozen=True)
class Part:
    """The part of a table with one row dimension whose pairs are summed: some rows and some slots."""

    table: Value
    row: Dimension
    local: Dimension | None
    rows: UnitRange
    slots: UnitRange

    @property
    def codomain(self) -> Dimension:
        """The dimension of the elements."""
        return self.table.table_type.codomain


def part_with_links(at: At, table: Value, box: Domain) -> Part | None:
    """The part of `table` on `box`, where its transpose is attached and no part is empty or too wide."""
    dims, local = table.dims, table.table_type.local_dimension
    if table not in at.evaluation.transposes or len(dims) != 1 + (local is not None):
        return None
    (row,) = (d for d in dims if d != local)
    part = Part(table, row, local, box.range_of(row), UnitRange(0, 1) if local is None else box.range_of(local))
    most = max(len(part.slots), at.evaluation.transposes[table].rows.shape[1])
    return part if len(part.rows) and len(part.slots) and most <= MOST_PLACES else None


def links(at: At, part: Part, elements: UnitRange, *, inside: bool) -> Links:
    """The pairs of a part that lead to `elements`. Positions count from where each range begins.

    `inside`: no pair leads elsewhere.
    """
    key = (part, elements, inside)
    if key not in at.evaluation.links:
        to_elements = _forward(at, part, elements, inside)
        at.evaluation.links[key] = Links(*to_elements, *_backward(at, part, elements))
    return at.evaluation.links[key]


def _forward(at: At, part: Part, elements: UnitRange, inside: bool) -> tuple[Any, Any]:
    entries = _entries(at, part)
    skips = at.plan.facts(part.table).has_skips
    relative = entries - int(elements.start) if elements.start else entries
    used = entries != at.plan.table(part.table).skip_value if skips else None
    if not inside:
        within = (relative >= 0) & (relative < len(elements))
        used = within if used is None else used & within
    if used is not None or at.plan.clip:
        relative = at.xp.clip(relative, 0, len(elements) - 1)
    return relative, used


def _entries(at: At, part: Part) -> Any:
    """The table's entries, rows first."""
    rows = Domain(dims=(part.row,), ranges=(part.rows,))
    entries = entries_on(at.evaluation, part.table, rows, part.local, part.slots)
    if part.local is None:
        return entries[:, None]
    return entries if canonical(part.table.dims)[0] == part.row else entries.T


def _backward(at: At, part: Part, elements: UnitRange) -> tuple[Any, Any, Any]:
    """The transpose counts elements from 0, rows and slots from where the whole table begins."""
    xp, table, transposed = at.xp, at.plan.table(part.table).domain, at.evaluation.transposes[part.table]
    rows, slots = _on(xp, transposed.rows, elements, -1), _on(xp, transposed.slots, elements, 0)
    rows = rows - int(part.rows.start - table.range_of(part.row).start)
    led = (rows >= 0) & (rows < len(part.rows))
    if part.local is not None and part.slots != table.range_of(part.local):
        slots = slots - int(part.slots.start - table.range_of(part.local).start)
        led = led & (slots >= 0) & (slots < len(part.slots))
        slots = xp.where(led, slots, 0)
    rows = xp.where(led, rows, 0)
    return rows, rows * len(part.slots) + slots, led


def _on(xp: Any, array: Any, elements: UnitRange, unused: int) -> Any:
    """A part of the transpose for a range of elements: `unused` where no entry leads."""
    start = min(max(int(elements.start), 0), array.shape[0])
    stop = min(max(int(elements.stop), start), array.shape[0])
    before = start - int(elements.start) if stop > start else len(elements)
    after = len(elements) - before - (stop - start)
    part = array[start:stop]
    return xp.pad(part, ((before, after), (0, 0)), constant_values=unused) if before or after else part
