"""Which rows of a table break a narrowing, as a `NarrowingError`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from fieldjax.connectivity.questions.boxes import domain_of, local_axes, slices
from fieldjax.connectivity.questions.narrowing import bounding_box, is_inside
from fieldjax.domain import Dimension, Domain, UnitRange
from fieldjax.errors import NarrowingError

SHOWN = 4


def show_table(domain: Domain, codomain: Dimension) -> str:
    """A table as messages name it: ``(Edge, E2C) -> Cell``."""
    return f"({', '.join(dim.value for dim in domain.dims)}) -> {codomain.value}"


def broken_narrowing(
    entries: np.ndarray,
    skip_value: int | None,
    domain: Domain,
    codomain: Dimension,
    image_range: UnitRange,
    valid: UnitRange,
) -> NarrowingError:
    """The error for a table whose narrowing to `image_range` is no hyperrectangle, or nowhere.

    `valid` is the range of all valid entries.
    """
    table, wanted = show_table(domain, codomain), f"{codomain.value}{image_range}"
    # Clipped, so that both ends are finite and compare in the dtype of the table.
    asked = image_range & valid
    held = is_inside(entries, skip_value, int(asked.start), int(asked.stop))
    if not held.any():
        return NarrowingError(
            f"no entry of the table {table} lies in {wanted}",
            notes=[f"its entries lie in {codomain.value}{valid}"],
            hints=["pass a field that lives where the table points to"],
        )
    box = bounding_box(held)
    breaking = ~held if skip_value is None else ~held & (entries != skip_value)
    span = domain_of(box, domain)
    outside = np.zeros_like(breaking)
    outside[slices(box)] = breaking[slices(box)]
    return NarrowingError(
        f"the table {table} restricted to {wanted} is not defined on a hyperrectangle",
        notes=[
            f"entries in {wanted} span {', '.join(map(str, span))}, but not all entries there lie in it",
            *show_rows(entries, outside, domain, codomain, skip_value),
        ],
        hints=[
            f"pass a field that covers more of {codomain.value}",
            "ask for less with domain= or out=: only what that needs must be there",
        ],
    )


def show_rows(
    entries: np.ndarray, marked: np.ndarray, domain: Domain, codomain: Dimension, skip_value: int | None
) -> Iterator[str]:
    """The first rows that hold a marked entry, and how many more there are."""
    local = local_axes(domain)
    rows = np.argwhere(marked.any(axis=local) if local else marked)
    axes = [axis for axis in range(domain.ndim) if axis not in local]
    for row in rows[:SHOWN]:
        yield _show_row(entries, dict(zip(axes, row.tolist(), strict=True)), domain, codomain, skip_value)
    if len(rows) > SHOWN:
        yield f"... and {len(rows) - SHOWN} more of {marked.size // max(1, _width(domain, local))} rows"


def _width(domain: Domain, local: Sequence[int]) -> int:
    return int(np.prod([domain.shape[axis] for axis in local], dtype=int))


def _show_row(
    entries: np.ndarray, row: dict[int, int], domain: Domain, codomain: Dimension, skip_value: int | None
) -> str:
    index = tuple(row.get(axis, slice(None)) for axis in range(domain.ndim))
    found = np.atleast_1d(entries[index]).reshape(-1).tolist()
    shown = ", ".join("skip" if entry == skip_value else str(entry) for entry in found)
    places = (f"{domain.dims[a].value} {int(domain.ranges[a].start) + at}" for a, at in row.items())
    return f"{', '.join(places) or 'the table'} leads to {codomain.value} {shown}"
