"""Dimensions, tables with every kind of skip, and the domains of fields, drawn at random."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from hypothesis import strategies as st

import fieldjax as fj
from fieldjax.domain import Dimension, DimensionKind, Domain, UnitRange
from tests.strategies.naive import NaiveTable

Cell, Edge, Vertex, I = (Dimension(name) for name in ("Cell", "Edge", "Vertex", "I"))
K = Dimension("K", DimensionKind.VERTICAL)
E2VDim, V2EDim, C2EDim, C2CDim = (Dimension(n, DimensionKind.LOCAL) for n in ("E2V", "V2E", "C2E", "C2C"))
HORIZONTAL = (Cell, Edge, Vertex, I)

OFFSETS = {
    offset.value: offset
    for offset in (
        fj.FieldOffset("E2V", source=Vertex, target=(Edge, E2VDim)),
        fj.FieldOffset("V2E", source=Edge, target=(Vertex, V2EDim)),
        fj.FieldOffset("C2E", source=Edge, target=(Cell, C2EDim)),
        fj.FieldOffset("C2C", source=Cell, target=(Cell, C2CDim)),
        fj.FieldOffset("E2P", source=Vertex, target=(Edge,)),
    )
}
"""Tables of two and of one dimension, into another dimension and into their own."""

SLOTS = {E2VDim: 2, V2EDim: 3, C2EDim: 3, C2CDim: 2}
TABLE_OVER = {d: name for name, offset in OFFSETS.items() for d in offset.target if d.kind is DimensionKind.LOCAL}


@dataclass(frozen=True, eq=False)
class Table:
    """A neighbour table, for fieldjax and for the naive reference."""

    naive: NaiveTable

    @property
    def domain(self) -> Domain:
        spans = self.naive.spans
        return Domain(dims=tuple(spans), ranges=tuple(UnitRange(*s) for s in spans.values()))

    @cached_property
    def connectivity(self) -> Any:
        return fj.as_connectivity(self.domain, self.naive.codomain, self.naive.entries, skip_value=self.naive.skip)


@dataclass(frozen=True, eq=False)
class World:
    """A range for each dimension, and tables between them."""

    spans: dict[Dimension, tuple[int, int]]
    tables: dict[str, Table]

    @cached_property
    def mesh(self) -> Any:
        return fj.Mesh({name: table.connectivity for name, table in self.tables.items()})

    def domain(self, dims: Iterable[Dimension]) -> Domain:
        chosen = [(d, self.spans[d]) for d in dims]
        return Domain(dims=tuple(d for d, _ in chosen), ranges=tuple(UnitRange(*s) for _, s in chosen))


@st.composite
def spans(draw: Any, dim: Dimension, sizes: Any = (1, 2, 3, 3, 4, 5)) -> tuple[int, int]:
    """A range that starts anywhere. Positions that tables can name aren't negative."""
    if dim.kind is DimensionKind.LOCAL:
        return (0, SLOTS[dim])
    start = draw(st.integers(-3, 3) if dim in (I, K) else st.integers(0, 3))
    size = draw(st.sampled_from(sizes))
    return (start, start + size) if size else (0, 0)


@st.composite
def entries(draw: Any, shape: tuple[int, ...], span: tuple[int, int], wild: bool = False) -> Any:
    """Entries within `span` (beyond it where `wild`), and the skip value among them, or None.

    Skips stand anywhere, also as whole rows; their value may be one that is a position otherwise.
    """
    low, high = (max(0, span[0] - 1), span[1] + 1) if wild else span
    skip = draw(st.sampled_from([None, -1, -1, max(0, low), max(0, high - 1), 99]))
    usable = [n for n in range(low, high) if n != skip]
    if not usable:
        return np.full(shape, -1), -1
    size = int(np.prod(shape))
    alphabet = usable if skip is None else [*usable, skip, skip] if len(usable) < 4 else [*usable, skip]
    found = np.array(draw(st.lists(st.sampled_from(alphabet), min_size=size, max_size=size)), int).reshape(shape)
    if skip is not None and len(shape) > 1 and shape[0]:
        for row in draw(st.sets(st.integers(0, shape[0] - 1), max_size=shape[0])):
            found[row] = skip
    return found, skip


@st.composite
def tables(draw: Any, name: str, spans: dict[Dimension, tuple[int, int]], wild: bool = False) -> Table:
    """The table of an offset, its rows on the range of their dimension, its axes in either order."""
    offset = OFFSETS[name]
    shape = tuple(spans[d][1] - spans[d][0] for d in offset.target)
    found, skip = draw(entries(shape, spans[offset.source], wild))
    laid_out = {d: spans[d] for d in offset.target}
    if len(shape) == 2 and draw(st.integers(0, 4)) == 4:
        laid_out, found = dict(reversed(laid_out.items())), found.T
    return Table(NaiveTable(laid_out, offset.source, found, skip))


@st.composite
def worlds(draw: Any, names: Iterable[str], dims: Iterable[Dimension], wild: bool = False) -> World:
    """Ranges for `dims`, and the tables called `names`."""
    names = sorted(names)
    needed = {*dims, *(d for n in names for d in (*OFFSETS[n].target, OFFSETS[n].source))}
    ranges = {d: draw(spans(d)) for d in sorted(needed, key=lambda d: d.value)}
    return World(ranges, {n: draw(tables(n, ranges, wild)) for n in names})


def numbers(seed: int, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Data without ties, of both signs; magnitudes at which nothing overflows."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        return rng.integers(0 if dtype.kind == "u" else -5, 6, shape).astype(dtype)
    return (rng.uniform(0.3, 1.7, shape) * rng.choice([-1, 1, 1], shape)).astype(dtype)
