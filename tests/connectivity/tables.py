"""Small tables, hypothesis strategies for them, and what questions about them mean, in naive Python."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from fieldjax.connectivity import Connectivity, as_connectivity
from fieldjax.domain import Dimension, DimensionKind, Domain, UnitRange

Cell, Edge, Vertex = Dimension("Cell"), Dimension("Edge"), Dimension("Vertex")
K = Dimension("K", DimensionKind.VERTICAL)
E2CDim = Dimension("E2C", DimensionKind.LOCAL)
C2EDim = Dimension("C2E", DimensionKind.LOCAL)


def e2c(entries, skip_value=None, **options) -> Connectivity:
    """A table (Edge, E2C) -> Cell."""
    return as_connectivity([Edge, E2CDim], Cell, entries, skip_value=skip_value, **options)


def ring(size: int, step: int = 1) -> Connectivity:
    """Every edge of a ring leads to the cells on its two sides."""
    edges = np.arange(size)
    return e2c(np.stack([edges, (edges + step) % size], axis=1))


Box = tuple[tuple[int, int], ...]


def reference_box(table: np.ndarray, skip, lower, upper, order) -> Box | None:
    """Narrowing, as spec/frontend.md says it, entry by entry."""
    valid = {index for index in np.ndindex(table.shape) if skip is None or table[index] != skip}
    inside = {index for index in valid if lower <= table[index] < upper}
    if not valid:
        return tuple((0, size) for size in table.shape)
    if not inside:
        return None
    box = [(min(i[axis] for i in inside), max(i[axis] for i in inside) + 1) for axis in range(table.ndim)]
    if any(index not in inside for index in _indices(box) if index in valid):
        return None
    for axis in order:
        while box[axis][0] > 0 and not _line(box, axis, box[axis][0] - 1) & valid:
            box[axis] = (box[axis][0] - 1, box[axis][1])
        while box[axis][1] < table.shape[axis] and not _line(box, axis, box[axis][1]) & valid:
            box[axis] = (box[axis][0], box[axis][1] + 1)
    return tuple(box)


def _indices(box) -> Iterator[tuple[int, ...]]:
    return itertools.product(*(range(start, stop) for start, stop in box))


def _line(box, axis: int, position: int) -> set[tuple[int, ...]]:
    return set(_indices([*box[:axis], (position, position + 1), *box[axis + 1 :]]))


@dataclass(frozen=True)
class Case:
    """A table with everything that `as_connectivity` takes, and the axes in the order of growth."""

    domain: Domain
    table: np.ndarray
    skip: int | None

    @property
    def order(self) -> tuple[int, ...]:
        is_local = [dim.kind is DimensionKind.LOCAL for dim in self.domain.dims]
        return tuple(sorted(range(self.table.ndim), key=lambda axis: not is_local[axis]))

    def build(self) -> Connectivity:
        return as_connectivity(self.domain, Cell, self.table, skip_value=self.skip)

    def part(self, sub: Domain) -> list[int]:
        """The valid entries on `sub`."""
        starts = [int(r.start) for r in self.domain.ranges]
        found = []
        for index in np.ndindex(self.table.shape):
            places = [start + i for start, i in zip(starts, index, strict=True)]
            named = zip(self.domain.dims, places, strict=True)
            if all(dim not in sub.dims or place in sub.range_of(dim) for dim, place in named):
                found.append(self.table[index])
        return [int(entry) for entry in found if self.skip is None or entry != self.skip]


@st.composite
def cases(draw, max_ndim: int = 3, min_size: int = 0) -> Case:
    """Tables of any rank and kind of dimensions, on domains that start anywhere, with any skip value."""
    dims = draw(
        st.lists(st.sampled_from([Edge, Vertex, E2CDim, C2EDim, K]), min_size=1, max_size=max_ndim, unique=True)
    )
    ranges = [UnitRange(start, start + draw(st.integers(max(1, min_size), 4))) for start in draw(_starts(len(dims)))]
    domain = Domain(dims=tuple(dims), ranges=tuple(ranges))
    skip = draw(st.sampled_from([None, -1, 0, 1, 3, 7, -99]))
    entry = st.integers(0, 5) if skip is None else st.one_of(st.integers(0, 5), st.just(skip))
    size = int(np.prod(domain.shape))
    entries = draw(st.lists(entry, min_size=size, max_size=size))
    return Case(domain, np.array(entries).reshape(domain.shape), skip)


def _starts(count: int):
    return st.lists(st.integers(-3, 5), min_size=count, max_size=count)


@st.composite
def ranges(draw) -> UnitRange:
    """Ranges of the codomain: empty, open, or anything around the entries of `cases`."""
    start = draw(st.one_of(st.integers(-1, 8), st.just(-np.inf)))
    stop = draw(st.one_of(st.integers(-1, 8), st.just(np.inf)))
    return UnitRange(start, stop)


@st.composite
def parts(draw, domain: Domain) -> Domain:
    """Domains that ask about a part of a table on `domain`, and beyond it."""
    dims = draw(st.lists(st.sampled_from([*domain.dims, Cell]), unique=True))
    spans = [UnitRange(draw(st.integers(-4, 9)), draw(st.integers(-4, 9))) for _ in dims]
    return Domain(dims=tuple(dims), ranges=tuple(spans))
