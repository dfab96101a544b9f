"""What operations mean, element by element: fields as functions of positions, in plain Python loops.

Nothing here knows how fieldjax computes. An element also says which input elements it was made of, so that
tests can plant anything anywhere else.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from fieldjax.domain import Dimension, DimensionKind, Domain, UnitRange
from tests.connectivity.tables import reference_box

Position = Mapping[Dimension, int]
Span = tuple[float, float]
EVERYWHERE: Span = (-math.inf, math.inf)
NOTHING: frozenset[Any] = frozenset()


class Broken(Exception):
    """A premap without a rectangular result: fieldjax must raise NarrowingError."""


class Refused(Exception):
    """Rows with missing neighbours read elsewhere: fieldjax must raise UnsupportedError."""


class Absent(Exception):
    """A slot that a narrowed field doesn't have: fieldjax must raise DimensionError."""


class Element(NamedTuple):
    """One element. A `value` of None is unspecified: a substitute stands there."""

    value: Any
    reads: frozenset[Any] = NOTHING
    """(input, position) of everything that it depends on."""
    skipped: frozenset[Dimension] = NOTHING
    """LOCAL dimensions along which it is no neighbour."""


KIND_ORDER = {DimensionKind.HORIZONTAL: 0, DimensionKind.LOCAL: 1, DimensionKind.VERTICAL: 2}


def in_order(dims: Iterable[Dimension]) -> tuple[Dimension, ...]:
    """Each dimension once, in the order that spec/frontend.md gives them."""
    return tuple(sorted(set(dims), key=lambda d: (KIND_ORDER[d.kind], d.value)))


def meet(*spans: Span) -> Span:
    """The common part; (0, 0) where there is none."""
    start, stop = max(s[0] for s in spans), min(s[1] for s in spans)
    return (start, stop) if start < stop else (0, 0)


class Naive:
    """A field: a range for each dimension, and a function from positions to elements."""

    def __init__(
        self,
        spans: Mapping[Dimension, Span],
        like: Any,
        element: Callable[[Position], Element],
        masked: Mapping[Dimension, NaiveTable] | None = None,
    ) -> None:
        self.dims = in_order(spans)
        self.spans = {d: spans[d] for d in self.dims}
        self.like = like
        self.masked = {d: t for d, t in (masked or {}).items() if d in self.dims}
        """LOCAL dimensions along which a table has skipped elements already."""
        self._element, self._known = element, {}

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(self.like.dtype)

    @property
    def domain(self) -> Domain:
        ranges = tuple(UnitRange(*self.spans[d]) for d in self.dims)
        return Domain(dims=self.dims, ranges=ranges)

    def at(self, position: Position) -> Element:
        """The element at a position, which may have more dimensions."""
        key = tuple(position[d] for d in self.dims)
        if key not in self._known:
            self._known[key] = self._element(dict(zip(self.dims, key, strict=True)))
        return self._known[key]

    def positions(self) -> Iterator[dict[Dimension, int]]:
        """Every position; 0 along dimensions without end."""
        spans = [(0, 1) if math.inf in map(abs, s) else s for s in self.spans.values()]
        for index in itertools.product(*(range(int(a), int(b)) for a, b in spans)):
            yield dict(zip(self.dims, index, strict=True))

    def elements(self) -> Iterator[tuple[tuple[int, ...], Element]]:
        """Array index and element of everything."""
        for position in self.positions():
            index = tuple(position[d] - int(self.spans[d][0]) for d in self.dims)
            yield index, self.at(position)

    def reads(self, part: Domain) -> frozenset[Any]:
        """Every input element that the elements on `part` depend on."""
        inside = [dict(zip(part.dims, p, strict=True)) for p in itertools.product(*part.ranges)]
        return NOTHING.union(*(self.at(p).reads for p in inside))

    def specified(self) -> np.ndarray:
        """Where an array of this field has a meaning."""
        where = np.zeros(self.domain.shape, bool)
        for index, element in self.elements():
            where[index] = element.value is not None
        return where

    def values(self) -> np.ndarray:
        """The elements as an array, 0 where unspecified."""
        out = np.zeros(self.domain.shape, self.dtype)
        for index, element in self.elements():
            out[index] = 0 if element.value is None else element.value
        return out


class NaiveTable(NamedTuple):
    """A neighbour table: entries laid out on `spans`, in that order."""

    spans: Mapping[Dimension, Span]
    codomain: Dimension
    entries: np.ndarray
    skip: int | None

    @property
    def local(self) -> Dimension | None:
        return next((d for d in self.spans if d.kind is DimensionKind.LOCAL), None)

    def entry(self, position: Position) -> int | None:
        """The neighbour at a position, or None for a skip."""
        index = tuple(position[d] - int(start) for d, (start, _) in self.spans.items())
        found = int(self.entries[index])
        return None if self.skip is not None and found == self.skip else found

    def box(self, span: Span, slot: int | None) -> dict[Dimension, Span]:
        """Where the table leads into `span` only."""
        dims, entries = list(self.spans), self.entries
        starts = {d: s[0] for d, s in self.spans.items()}
        if slot is not None:
            axis = dims.index(self.local)
            entries = entries.take([slot - int(starts[self.local])], axis=axis)
            starts[self.local] = slot
        order = sorted(range(len(dims)), key=lambda n: dims[n].kind is not DimensionKind.LOCAL)
        found = reference_box(entries, self.skip, *span, order)
        if found is None:
            raise Broken
        spans = {d: (starts[d] + a, starts[d] + b) for d, (a, b) in zip(dims, found, strict=True)}
        return {d: s for d, s in spans.items() if slot is None or d != self.local}


def pointwise(function: Callable[..., Any], like: Any, operands: Sequence[Naive], common: Any = None) -> Naive:
    """`function` of NumPy scalars of dtype `common` (None: as they are), as an element of dtype `like`."""
    dims = in_order(d for x in operands for d in x.dims)
    spans = {d: meet(*(x.spans[d] for x in operands if d in x.dims)) for d in dims}

    def element(position: Position) -> Element:
        elements = [x.at(position) for x in operands]
        reads = NOTHING.union(*(e.reads for e in elements))
        skipped = NOTHING.union(*(e.skipped for e in elements)) & set(dims)
        if any(e.value is None for e in elements):
            return Element(None, reads, skipped)
        values = [e.value if common is None else np.asarray(e.value).astype(common)[()] for e in elements]
        with np.errstate(all="ignore"):
            return Element(np.asarray(function(*values)).astype(like.dtype)[()], reads, skipped)

    return Naive(spans, like, element, {d: t for x in operands for d, t in x.masked.items()})


def gather(field: Naive, tables: Sequence[NaiveTable], slots: Sequence[int | None]) -> Naive:
    """The field read through tables at the same time."""
    spans = {d: s for d, s in field.spans.items() if d not in {t.codomain for t in tables}}
    check_moves(field, [t.codomain for t in tables])
    own: dict[Dimension, NaiveTable] = {}
    for table, slot in zip(tables, slots, strict=True):
        for dim, span in table.box(field.spans[table.codomain], slot).items():
            spans[dim] = meet(spans.get(dim, EVERYWHERE), span)
        if slot is None and table.local is not None:
            own[table.local] = table

    def element(position: Position) -> Element:
        target, skipped, missing = dict(position), set(), False
        for table, slot in zip(tables, slots, strict=True):
            fixed = {} if slot is None else {table.local: slot}
            entry = table.entry({**position, **fixed})
            if entry is None:
                missing = True
                skipped |= {table.local} & set(own)
            else:
                target[table.codomain] = entry
        if missing:
            return Element(None, NOTHING, frozenset(skipped))
        found = field.at(target)
        return found._replace(skipped=found.skipped & set(spans))

    return Naive(spans, field.like, element, {**field.masked, **own})


def check_moves(field: Naive, dims: Iterable[Dimension]) -> None:
    """Raises Refused where `field` is read elsewhere along a dimension of a table that has skipped elements."""
    for table in field.masked.values():
        if set(dims) & set(table.spans) and table.skip is not None and (table.entries == table.skip).any():
            raise Refused


def shift(field: Naive, dim: Dimension, offset: int, to: Dimension) -> Naive:
    """The element at i of `to` is the one at i + offset of `dim`."""
    check_moves(field, [dim])
    start, stop = field.spans[dim]
    spans = {d: s for d, s in field.spans.items() if d != dim}
    spans[to] = (start - offset, stop - offset) if start < stop else (0, 0)
    return Naive(spans, field.like, lambda p: field.at({**p, dim: p[to] + offset}), field.masked)


def broadcast(field: Naive, dims: Sequence[Dimension]) -> Naive:
    """Constant and without end along new dimensions."""
    return Naive({d: field.spans.get(d, EVERYWHERE) for d in dims}, field.like, field.at, field.masked)


IDENTITY = {
    "sum": lambda dtype: dtype.type(0),
    "mean": lambda dtype: dtype.type(0),
    "product": lambda dtype: dtype.type(1),
    "max": lambda dtype: dtype.type(-np.inf if dtype.kind == "f" else np.iinfo(dtype).min),
    "min": lambda dtype: dtype.type(np.inf if dtype.kind == "f" else np.iinfo(dtype).max),
}
COMBINE = {
    "sum": lambda a, b: a + b,
    "mean": lambda a, b: a + b,
    "product": lambda a, b: a * b,
    "max": np.maximum,
    "min": np.minimum,
}


def reduce(kind: str, field: Naive, axis: Dimension, table: NaiveTable | None) -> Naive:
    """Over neighbours; `table` says which slots of a field that carries no mask are neighbours."""
    spans = {d: s for d, s in field.spans.items() if d != axis}
    start, stop = field.spans[axis]
    if axis not in field.masked and table is not None:
        for dim, span in table.spans.items():
            if dim != axis:
                spans[dim] = meet(spans.get(dim, EVERYWHERE), span)
        start, stop = meet((start, stop), table.spans[axis])

    def element(position: Position) -> Element:
        total, reads, rest, count = IDENTITY[kind](field.dtype), NOTHING, NOTHING, 0
        for slot in range(int(start), int(stop)):
            at = {**position, axis: slot}
            value, read, skipped = field.at(at)
            if axis in skipped:
                continue
            if axis not in field.masked and table is not None and table.entry(at) is None:
                total = None if value is None else total  # what is unspecified for another reason stays so
                continue
            reads, rest, count = reads | read, rest | (skipped - {axis}), count + 1
            with np.errstate(all="ignore"):
                total = None if value is None or total is None else COMBINE[kind](total, value)
        if kind == "mean" and total is not None:
            total = total / field.dtype.type(max(count, 1))
        return Element(total, reads, rest)

    return Naive(spans, field.like, element, field.masked)


def others_product(axis: Dimension, x: Naive, *tangents: Naive) -> Naive:
    """At each neighbour: the sum over distinct other ones for the tangents, times the factors that remain."""
    slots = range(int(x.spans[axis][0]), int(x.spans[axis][1]))

    def element(position: Position) -> Element:
        found = [[f.at({**position, axis: j}) for j in slots] for f in (x, *tangents)]
        others = [n for n, j in enumerate(slots) if j != position[axis] and axis not in found[0][n].skipped]
        total, reads = x.dtype.type(0), NOTHING
        for chosen in itertools.permutations(others, len(tangents)):
            term = x.dtype.type(1)
            for n in others:
                term = term * found[1 + chosen.index(n) if n in chosen else 0][n].value
            total = total + term
        for n in others:
            reads = reads.union(*(f[n].reads for f in found))
        here = x.at(position)
        return Element(None if axis in here.skipped else total, reads, here.skipped)

    return Naive(x.spans, x.like, element, x.masked)


def at_slot(field: Naive, local: Dimension, slot: int) -> Naive:
    """One position of a LOCAL dimension."""
    spans = {d: s for d, s in field.spans.items() if d != local}
    if not field.spans[local][0] <= slot < field.spans[local][1]:
        raise Absent

    def element(position: Position) -> Element:
        found = field.at({**position, local: slot})
        return found._replace(skipped=found.skipped - {local})

    return Naive(spans, field.like, element, field.masked)


def of_array(name: Any, domain: Domain, array: Any) -> Naive:
    """An input."""
    array, spans = np.asarray(array), {d: (r.start, r.stop) for d, r in zip(domain.dims, domain.ranges, strict=True)}

    def element(position: Position) -> Element:
        index = tuple(position[d] - int(spans[d][0]) for d in domain.dims)
        return Element(array[index], frozenset({(name, index)}))

    return Naive(spans, jax.ShapeDtypeStruct((), array.dtype), element)


def of_literal(x: Any) -> Naive:
    """A Python or NumPy scalar."""
    like = jax.eval_shape(lambda: jax.numpy.asarray(x))
    return Naive({}, like, lambda _: Element(x))
