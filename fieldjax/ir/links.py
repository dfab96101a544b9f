"""The pairs of row and element that a neighbour table is a set of, read from both sides."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, NamedTuple

from fieldjax.connectivity import Transposed


class TableArrays(NamedTuple):
    """The input of a graph for a table with its transpose attached."""

    table: Any
    transpose: Transposed


class Side(enum.Enum):
    """Where an operand or a result stands, and so what its leading axes count. All further axes are shared.

    An axis along which an operand is constant may have length one, except that which counts elements.
    """

    ROW = "row"
    """(rows, ...)"""
    ELEMENT = "element"
    """(elements, ...)"""
    PAIR = "pair"
    """(rows, slots, ...)"""


class Links(NamedTuple):
    """Where pairs lead, for each pair or each place of an element. Every index is in bounds.

    What isn't a pair leads anywhere.
    """

    ends: Any
    """For each pair (rows, slots) its element; for each place (elements, degree) its row."""
    pairs: Any | None
    """For each place the pair itself, counted row by row."""
    used: Any | None
    """Whether it is a pair; None where all are."""


@dataclass(frozen=True)
class Pairs:
    """Which pairs of a table count: those in some rows and slots that lead to some elements.

    Positions count from where each range begins.
    """

    rows: range
    """Positions in the table."""
    slots: range | None
    """Positions in the table; None where it has no local dimension."""
    elements: range
    """Indices along the codomain."""
    skip_value: int | None
    """None where there are no skips."""
    inside: bool
    """Whether the pairs lead to these elements only."""
    rows_first: bool
    """Whether the table's first axis counts rows."""

    @property
    def width(self) -> int:
        """Slots of each row."""
        return 1 if self.slots is None else len(self.slots)

    def shape_of(self, side: Side) -> tuple[int, ...]:
        """The leading axes of what stands there."""
        rows, elements = len(self.rows), len(self.elements)
        return {Side.ROW: (rows,), Side.ELEMENT: (elements,), Side.PAIR: (rows, self.width)}[side]

    def from_rows(self, xp: Any, tables: TableArrays) -> Links:
        """Which element each pair leads to."""
        entries = tables.table if self.rows_first else tables.table.T
        entries = entries[self.rows.start : self.rows.stop]
        if self.slots is None:
            entries = entries[:, None]
        else:
            entries = entries[:, self.slots.start : self.slots.stop]
        used = None if self.skip_value is None else entries != self.skip_value
        entries = entries - self.elements.start if self.elements.start else entries
        if not self.inside:
            within = (entries >= 0) & (entries < len(self.elements))
            used = within if used is None else used & within
        if used is not None:
            entries = xp.where(used, entries, 0)
        return Links(entries, None, used)

    def from_elements(self, xp: Any, tables: TableArrays) -> Links:
        """Which row each place of an element leads to: `Transposed` counts elements from zero."""
        rows = _part(xp, tables.transpose.rows, self.elements, -1)
        slots = _part(xp, tables.transpose.slots, self.elements, 0)
        rows = rows - self.rows.start if self.rows.start else rows
        used = (rows >= 0) & (rows < len(self.rows))
        if self.slots is not None:
            slots = slots - self.slots.start if self.slots.start else slots
            if len(self.slots) != tables.table.shape[1 if self.rows_first else 0]:
                used = used & (slots >= 0) & (slots < len(self.slots))
        rows = xp.where(used, rows, 0)
        return Links(rows, rows * self.width + xp.where(used, slots, 0), used)


def _part(xp: Any, array: Any, elements: range, unused: int) -> Any:
    """A part of a transpose for a range of elements: `unused` where no entry leads."""
    start = min(max(elements.start, 0), array.shape[0])
    stop = min(max(elements.stop, start), array.shape[0])
    before = start - elements.start if stop > start else len(elements)
    after = len(elements) - before - (stop - start)
    part = array[start:stop]
    return xp.pad(part, ((before, after), (0, 0)), constant_values=unused) if before or after else part
