"""Single operations of the IR on random inputs, each with its naive meaning.

A new operation joins the tests of every law by one strategy in `CASES`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special
import numpy as np
from hypothesis import strategies as st

from fieldjax.domain import Dimension, Domain, UnitRange
from fieldjax.ir.graph import Graph, Mask, Value
from fieldjax.ir.operation import Operation, Place, record
from fieldjax.ir.operations.concat import ConcatWhere, Part
from fieldjax.ir.operations.gather import Gather, Scatter
from fieldjax.ir.operations.indexed import IndexedScatter, IndexedShift
from fieldjax.ir.operations.layout import Broadcast, Extend, Shift, Union
from fieldjax.ir.operations.literal import Literal, Parameter
from fieldjax.ir.operations.overlay import Overlay
from fieldjax.ir.operations.pointwise import Cast, Pointwise
from fieldjax.ir.operations.product import OthersProduct
from fieldjax.ir.operations.reduction import Reduce, Total
from fieldjax.ir.operations.slots import AtSlot, InSlot, Substitute, UsedOnly
from fieldjax.ir.types import FieldType, TableType
from tests.strategies import naive
from tests.strategies.cases import field_domains
from tests.strategies.functions import MEANINGS, scalar
from tests.strategies.meshes import (
    OFFSETS,
    SLOTS,
    TABLE_OVER,
    Cell,
    Edge,
    I,
    K,
    Table,
    numbers,
    spans,
    worlds,
)
from tests.strategies.naive import EVERYWHERE, NOTHING, Element, Naive, in_order

FLOATS = ("float64", "float64", "float32")


@dataclass(frozen=True, eq=False)
class Given:
    """An input field; `masked_by` are positions of the tables among the inputs whose masks it carries."""

    domain: Domain
    array: np.ndarray
    masked_by: tuple[int, ...] = ()

    @property
    def dtype(self) -> np.dtype:
        return self.array.dtype


Leaf = Given | Table


@dataclass(frozen=True, eq=False)
class OperationCase:
    """An operation with inputs. `meaning` takes naive fields and naive tables."""

    operation: Operation
    leaves: tuple[Leaf, ...]
    meaning: Callable[..., Naive]
    read: int | None = None
    """How many of the inputs are the node's own (the rest are tables of masks); None: all."""
    wanted: Domain | None = None
    """Where the result is asked for, when it extends without end."""
    linear_in: tuple[int, ...] | None = None
    """Inputs that carry a derivative, where that isn't every floating-point field."""

    @cached_property
    def graph(self) -> Graph:
        inputs: list[Value | None] = [
            record(Parameter(f"t{n}", TableType(x.domain.dims, x.naive.codomain)))[0] if isinstance(x, Table) else None
            for n, x in enumerate(self.leaves)
        ]
        for n, x in enumerate(self.leaves):
            if isinstance(x, Given):
                masks = tuple(Mask(inputs[m]) for m in x.masked_by)
                inputs[n] = record(Parameter(f"x{n}", FieldType(x.domain.dims, x.dtype), masks))[0]
        values = tuple(v for v in inputs if v is not None)
        return Graph(values, record(self.operation, *values[: self.read]))

    @property
    def places(self) -> list[Place]:
        return [x.connectivity if isinstance(x, Table) else x.domain for x in self.leaves]

    @property
    def arrays(self) -> list[Any]:
        return [x.connectivity.asnumpy() if isinstance(x, Table) else x.array for x in self.leaves]

    @property
    def differentiable(self) -> tuple[int, ...]:
        """Positions of the inputs that a derivative may be taken in."""
        floating = [n for n, x in enumerate(self.leaves) if isinstance(x, Given) and x.dtype.kind == "f"]
        return tuple(n for n in floating if self.linear_in is None or n in self.linear_in)

    def planted(self, part: Domain) -> list[Any]:
        """The arrays with NaN where no element of the result on `part` depends on them."""
        keep = self.expected.reads(part)
        arrays = [np.array(a) for a in self.arrays]
        for n, array in enumerate(arrays):
            if array.dtype.kind == "f":
                for index in np.ndindex(array.shape):
                    array[index] = array[index] if (n, index) in keep else np.nan
        return arrays

    @cached_property
    def expected(self) -> Naive:
        """By the naive reference. Raises Broken."""
        given = [x.naive if isinstance(x, Table) else self._given(n, x) for n, x in enumerate(self.leaves)]
        found = self.meaning(*given)
        if self.wanted is None:
            return found
        ends = {d: (r.start, r.stop) for d, r in zip(self.wanted.dims, self.wanted.ranges, strict=True)}
        return Naive(ends, found.like, found.at, found.masked)

    def _given(self, n: int, x: Given) -> Naive:
        found = naive.of_array(n, x.domain, x.array)
        tables = [self.leaves[m].naive for m in x.masked_by]

        def element(position: Any) -> Element:
            value, reads, _ = found.at(position)
            skipped = frozenset(t.local for t in tables if t.entry(position) is None)
            return Element(None if skipped else value, reads, skipped)

        return Naive(found.spans, found.like, element, {t.local: t for t in tables})

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))

    def __repr__(self) -> str:
        lines = [f"{self.operation} ({self.operation!r})"]
        for x in self.leaves:
            entries = (
                f" skip {x.naive.skip}\n{x.naive.entries}" if isinstance(x, Table) else f" {x.dtype} {x.masked_by}"
            )
            lines.append(f"{x.domain}{entries}")
        return "\n".join(lines)


def given(draw: Any, domain: Domain, dtypes: Sequence[str] = FLOATS, masked_by: tuple[int, ...] = ()) -> Given:
    """Random data on a domain."""
    return Given(domain, numbers(draw(st.integers(0, 999)), domain.shape, draw(st.sampled_from(dtypes))), masked_by)


def some_domain(draw: Any, *needed: Dimension, ranges: Any = None) -> Domain:
    """A domain over `needed`, sometimes one dimension more."""
    extra = draw(st.sampled_from([(), (K,), (I,)]))
    dims = in_order({*needed, *extra} or {Cell})
    world = draw(worlds((), dims)) if ranges is None else None
    if world is not None:
        return world.domain(dims)
    more = {d: draw(spans(d)) for d in dims if d not in ranges}
    return _domain({d: {**ranges, **more}[d] for d in dims})


def _domain(ranges: dict[Dimension, Any]) -> Domain:
    return Naive(ranges, None, lambda _: Element(0)).domain


CASES: dict[type[Operation], Callable[..., Any]] = {}


def cases_of(kind: type[Operation]) -> Callable[..., Any]:
    """Declares the cases of an operation."""

    def declare(draw_case: Callable[..., Any]) -> Callable[..., Any]:
        CASES[kind] = st.composite(draw_case)
        return CASES[kind]

    return declare


JAX_NAMES: dict[str, Callable[..., Any]] = {
    "first": lambda x, like: x,
    "gamma": jax.scipy.special.gamma,
    "polygamma": jax.scipy.special.polygamma,
    "erf": jax.scipy.special.erf,
}


def pointwise_cases(function: str) -> Any:
    """One function on operands with different dimensions, domains and dtypes."""

    @st.composite
    def draw_case(draw: Any) -> OperationCase:
        meaning = MEANINGS[function]
        kind = draw(st.sampled_from(sorted(meaning.kinds)))
        dtypes = {"f": FLOATS, "i": ("int32", "int64"), "b": ("bool",)}[kind]
        whole = some_domain(draw, Cell)
        operands = []
        for n, interval in enumerate(meaning.intervals):
            condition = function == "where" and n == 0
            dims = draw(st.sampled_from([whole.dims, whole.dims, whole.dims[:1], ()]))
            domain = draw(field_domains(_world(whole), dims, wild=True))
            dtype = "bool" if condition else draw(st.sampled_from(dtypes if n not in meaning.whole else ("int32",)))
            operands.append(Given(domain, _between(draw(st.integers(0, 999)), domain.shape, dtype, *interval)))
        return OperationCase(Pointwise(function), tuple(operands), _meant(function))

    return draw_case()


def _world(domain: Domain) -> Any:
    from tests.strategies.meshes import World

    return World({d: (int(r.start), int(r.stop)) for d, r in zip(domain.dims, domain.ranges, strict=True)}, {})


def _between(seed: int, shape: tuple[int, ...], dtype: str, low: float, high: float) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype.startswith("int"):
        return rng.integers(int(np.ceil(low)), int(np.floor(high)) + 1, shape).astype(dtype)
    return rng.uniform(low, high, shape).astype(dtype)


def _meant(function: str) -> Callable[..., Naive]:
    def meaning(*operands: Naive) -> Naive:
        abstract = [jax.ShapeDtypeStruct((), x.dtype) for x in operands]
        like = jax.eval_shape(JAX_NAMES.get(function) or getattr(jnp, function), *abstract)
        apart = (0,) if function in ("where", "polygamma") else ()
        common = jnp.result_type(*(x.dtype for n, x in enumerate(operands) if n not in apart))
        of = MEANINGS[function].of

        def compute(*values: Any) -> Any:
            cast = [v if n in apart else v.astype(common) for n, v in enumerate(values)]
            return of(*(scalar(v) for v in cast))

        return naive.pointwise(compute, like, operands)

    return meaning


@cases_of(Pointwise)
def _pointwise(draw: Any) -> OperationCase:
    return draw(pointwise_cases(draw(st.sampled_from(["add", "multiply", "where", "sqrt"]))))


@cases_of(Cast)
def _cast(draw: Any) -> OperationCase:
    x = given(draw, some_domain(draw, Cell), ("float64", "float32", "int32", "bool"))
    dtype = np.dtype(draw(st.sampled_from(["float64", "float32", "int64", "int8", "bool"])))
    like = jax.ShapeDtypeStruct((), dtype)
    return OperationCase(Cast(dtype), (x,), lambda f: naive.pointwise(lambda v: v, like, [f]))


@cases_of(Literal)
def _literal(draw: Any) -> OperationCase:
    x = draw(st.sampled_from([0, -3, 0.1, True, np.float32(0.1), np.int8(5), float("nan"), -0.0]))
    return OperationCase(Literal.of(x), (), lambda: naive.of_literal(x))


@cases_of(Parameter)
def _parameter(draw: Any) -> OperationCase:
    """A parameter computes nothing: read through the identity."""
    x = given(draw, some_domain(draw, Cell), ("float64", "int32"))
    return OperationCase(Pointwise("positive"), (x,), lambda f: f)


@cases_of(Shift)
def _shift(draw: Any) -> OperationCase:
    dim, to = draw(st.sampled_from([(K, K), (I, I), (Edge, Edge), (I, Cell), (Cell, K), (K, Edge)]))
    domain = draw(worlds((), {dim, Cell, I} - ({to} if to != dim else set()))).domain(
        in_order({dim, *draw(st.sampled_from([(), (Cell,), (I,)]))} - ({to} if to != dim else set()))
    )
    offset = draw(st.integers(-2, 2))
    x = given(draw, domain, (*FLOATS, "int32"))
    return OperationCase(Shift(dim, offset, to), (x,), lambda f: naive.shift(f, dim, offset, to))


@cases_of(Broadcast)
def _broadcast(draw: Any) -> OperationCase:
    whole = some_domain(draw, Cell, Edge)
    kept = tuple(d for d in whole.dims if draw(st.booleans()))
    x = given(draw, whole.restrict(kept), (*FLOATS, "int32"))
    return OperationCase(Broadcast(whole.dims), (x,), lambda f: naive.broadcast(f, whole.dims), wanted=whole)


@cases_of(Union)
def _union(draw: Any) -> OperationCase:
    whole = some_domain(draw, Cell)
    count = draw(st.integers(1, 3))
    parts = [given(draw, draw(field_domains(_world(whole), whole.dims, wild=True)), ("float64",)) for _ in range(count)]

    def meaning(*fields: Naive) -> Naive:
        full = [f for f in fields if f.domain.size] or [fields[0]]
        hull = {d: (min(f.spans[d][0] for f in full), max(f.spans[d][1] for f in full)) for d in fields[0].dims}
        return Naive(hull, fields[0].like, lambda p: _sum(f.at(p) for f in fields if _holds(f, p)))

    return OperationCase(Union(), tuple(parts), meaning)


def _holds(field: Naive, position: Any) -> bool:
    return all(start <= position[d] < stop for d, (start, stop) in field.spans.items())


def _sum(elements: Any) -> Element:
    total, reads = 0.0, NOTHING
    for e in elements:
        total, reads = total + e.value, reads | e.reads
    return Element(total, reads)


@cases_of(Extend)
def _extend(draw: Any) -> OperationCase:
    whole = some_domain(draw, Cell)
    x = given(draw, draw(field_domains(_world(whole), whole.dims, wild=True)))
    like = given(draw, whole, ("float64",))

    def meaning(f: Naive, like: Naive) -> Naive:
        return Naive(like.spans, f.like, lambda p: f.at(p) if _holds(f, p) else Element(0.0))

    return OperationCase(Extend(), (x, like), meaning, linear_in=(0,))


@cases_of(Total)
def _total(draw: Any) -> OperationCase:
    domain = some_domain(draw, Cell, Edge)
    over = draw(st.sampled_from([d for n in (1, 2) for d in itertools.combinations(domain.dims, n)]))
    x = given(draw, domain)

    def meaning(f: Naive) -> Naive:
        spans = {d: s for d, s in f.spans.items() if d not in over}
        whole = [range(*map(int, f.spans[d])) for d in over]
        at = [dict(zip(over, index, strict=True)) for index in itertools.product(*whole)]
        return Naive(spans, f.like, lambda p: _sum(f.at({**p, **q}) for q in at))

    return OperationCase(Total(over), (x,), meaning)


@cases_of(Gather)
def _gather(draw: Any) -> OperationCase:
    names = draw(st.sampled_from([("E2V",), ("V2E",), ("C2E",), ("C2C",), ("E2P",), ("E2V", "C2E"), ("C2C", "V2E")]))
    sources = {OFFSETS[n].source for n in names}
    dims = in_order({*sources, *draw(st.sampled_from([(), (K,), (Edge,)]))})
    brought = {d for n in names for d in OFFSETS[n].target}
    zero_skips = draw(st.booleans())
    world = draw(worlds(names, {*dims, *brought}, wild=draw(st.booleans())))
    slots = tuple(draw(_slot(n)) for n in names)
    x = given(draw, draw(field_domains(world, dims, wild=draw(st.booleans()))), (*FLOATS, "int32"))

    def meaning(f: Naive, *tables: Any) -> Naive:
        found = naive.gather(f, tables, slots)
        return _zero_where_skipped(found) if zero_skips else found

    leaves = (x, *(world.tables[n] for n in names))
    return OperationCase(Gather(slots, zero_skips), leaves, meaning)


@st.composite
def _slot(draw: Any, name: str) -> int | None:
    local = OFFSETS[name].local_dimension
    return None if local is None else draw(st.sampled_from([None, *range(SLOTS[local])]))


def _zero_where_skipped(field: Naive) -> Naive:
    def element(position: Any) -> Element:
        found = field.at(position)
        return Element(0, found.reads) if found.value is None else found

    return Naive(field.spans, field.like, element, field.masked)


@cases_of(Scatter)
def _scatter(draw: Any) -> OperationCase:
    """The cotangent of what a gather gives; `field` is there for its domain only."""
    name = draw(st.sampled_from(sorted(OFFSETS)))
    offset, slot = OFFSETS[name], draw(_slot(name))
    more = draw(st.sampled_from([(), (K,), (I,)]))
    world = draw(worlds([name], {offset.source, *offset.target, *more}))
    rows = [d for d in offset.target if slot is None or d != offset.local_dimension]
    cotangent = given(draw, world.domain(in_order({*rows, *more})))
    like = given(draw, world.domain(in_order({offset.source, *more})), ("float64",))

    def meaning(ct: Naive, f: Naive, table: Any) -> Naive:
        def element(position: Any) -> Element:
            hits = []
            for at in ct.positions():
                entry = table.entry(at if slot is None else {**at, table.local: slot})
                if entry == position[table.codomain] and all(at[d] == position[d] for d in more):
                    hits.append(ct.at(at))
            return _sum(hits)

        return Naive(f.spans, ct.like, element)

    return OperationCase(Scatter((slot,)), (cotangent, like, world.tables[name]), meaning, linear_in=(0,))


def _sparse(draw: Any) -> tuple[Table, Domain]:
    """A table with slots, and the domain of a field that has its dimensions."""
    name = draw(st.sampled_from(sorted(TABLE_OVER.values())))
    more = draw(st.sampled_from([(), (K,), (I,)]))
    world = draw(worlds([name], {*OFFSETS[name].target, *more}))
    return world.tables[name], world.domain(in_order({*OFFSETS[name].target, *more}))


@cases_of(Reduce)
def _reduce(draw: Any) -> OperationCase:
    table, domain = _sparse(draw)
    kind, axis = draw(st.sampled_from(["sum", "product", "max", "min"])), table.naive.local
    masked = draw(st.booleans())
    x = given(draw, domain, (*FLOATS, "int32"), masked_by=(1,) if masked else ())
    leaves = (x, table) if masked else (x,)
    return OperationCase(Reduce(kind, axis), leaves, lambda f, *_: naive.reduce(kind, f, axis, None), read=1)


@cases_of(OthersProduct)
def _others_product(draw: Any) -> OperationCase:
    """Factors of which some are zero, and up to two tangents."""
    table, domain = _sparse(draw)
    axis, count = table.naive.local, draw(st.integers(0, 2))
    masked = draw(st.booleans())
    masked_by = (1 + count,) if masked else ()
    x, *tangents = [given(draw, domain, ("float64",), masked_by) for _ in range(1 + count)]
    x.array[draw(st.integers(0, 1)) :: 3] = 0
    leaves = (x, *tangents, table) if masked else (x, *tangents)

    def meaning(*inputs: Any) -> Naive:
        return naive.others_product(axis, *inputs[: 1 + count])

    return OperationCase(OthersProduct(axis), leaves, meaning, read=1 + count)


@cases_of(Substitute)
def _substitute(draw: Any) -> OperationCase:
    table, domain = _sparse(draw)
    kept = [d for d in domain.dims if d == table.naive.local or draw(st.integers(0, 3))]
    x = given(draw, domain.restrict(kept), (*FLOATS, "int32"))

    def meaning(f: Naive, t: Any) -> Naive:
        spans = {d: naive.meet(t.spans.get(d, EVERYWHERE), f.spans.get(d, EVERYWHERE)) for d in {*f.dims, *t.spans}}

        def element(position: Any) -> Element:
            used = t.entry(position) is not None
            return f.at(position) if used else Element(None, NOTHING, frozenset({t.local}))

        return Naive(spans, f.like, element, {t.local: t})

    return OperationCase(Substitute(table.naive.local), (x, table), meaning)


@cases_of(UsedOnly)
def _used_only(draw: Any) -> OperationCase:
    table, domain = _sparse(draw)
    x = given(draw, domain)

    def meaning(f: Naive, t: Any) -> Naive:
        return Naive(f.spans, f.like, lambda p: Element(0.0) if t.entry(p) is None else f.at(p))

    return OperationCase(UsedOnly(table.naive.local), (x, table), meaning)


@cases_of(AtSlot)
def _at_slot(draw: Any) -> OperationCase:
    table, domain = _sparse(draw)
    local, masked = table.naive.local, draw(st.booleans())
    slot = draw(st.integers(0, SLOTS[local] - 1))
    x = given(draw, domain, (*FLOATS, "int32"), masked_by=(1,) if masked else ())
    return OperationCase(
        AtSlot(local, slot), (x, table) if masked else (x,), lambda f, *_: naive.at_slot(f, local, slot), read=1
    )


@cases_of(InSlot)
def _in_slot(draw: Any) -> OperationCase:
    local = draw(st.sampled_from(sorted(TABLE_OVER, key=str)))
    slot = draw(st.integers(0, SLOTS[local] - 1))
    x = given(draw, some_domain(draw, Cell))

    def meaning(f: Naive) -> Naive:
        return Naive({**f.spans, local: (slot, slot + 1)}, f.like, f.at)

    return OperationCase(InSlot(local, slot), (x,), meaning)


def _some_box(draw: Any, whole: Domain) -> Domain:
    """A box that cuts one dimension or two, and may miss the domain."""
    dims = draw(st.sampled_from([d for n in (1, 2) for d in itertools.combinations(whole.dims, n)]))
    ranges = []
    for dim in dims:
        own = whole.range_of(dim)
        start = draw(st.integers(int(own.start) - 1, int(own.stop) + 1))
        ranges.append(UnitRange(start, draw(st.integers(start, int(own.stop) + 2))))
    return Domain(dims=dims, ranges=tuple(ranges))


def _chosen(box: Domain) -> Callable[..., Naive]:
    spans = {d: (r.start, r.stop) for d, r in zip(box.dims, box.ranges, strict=True)}

    def meaning(inside: Naive, outside: Naive) -> Naive:
        def element(p: Any) -> Element:
            return (inside if all(a <= p[d] < b for d, (a, b) in spans.items()) else outside).at(p)

        return Naive(outside.spans, outside.like, element)

    return meaning


@cases_of(ConcatWhere)
def _concat_where(draw: Any) -> OperationCase:
    whole = some_domain(draw, Cell)
    box = _some_box(draw, whole)
    fields = given(draw, whole, ("float64",)), given(draw, whole, ("float64",))
    return OperationCase(ConcatWhere(box), fields, _chosen(box))


@cases_of(Overlay)
def _overlay(draw: Any) -> OperationCase:
    whole = some_domain(draw, Cell)
    box = _some_box(draw, whole)
    fields = given(draw, whole, ("float64",)), given(draw, whole, ("float64",))
    return OperationCase(Overlay(box), fields, _chosen(box))


@cases_of(Part)
def _part(draw: Any) -> OperationCase:
    whole = some_domain(draw, Cell)
    box = _some_box(draw, whole)

    def meaning(f: Naive) -> Naive:
        spans = {d: naive.meet(s, f.spans[d]) for d, s in _spans(whole & box).items()}
        return Naive(spans, f.like, f.at)

    return OperationCase(Part(box), (given(draw, whole),), meaning)


def _spans(domain: Domain) -> dict[Any, tuple[Any, Any]]:
    return {d: (r.start, r.stop) for d, r in zip(domain.dims, domain.ranges, strict=True)}


def _offsets(draw: Any, whole: Domain) -> Given:
    """Offsets along K that stay inside of `whole`."""
    span = whole.range_of(K)
    targets = np.random.default_rng(draw(st.integers(0, 999))).integers(0, max(len(span), 1), whole.shape)
    axis = whole.dims.index(K)
    own = np.arange(len(span)).reshape([-1 if n == axis else 1 for n in range(whole.ndim)])
    return Given(whole, (targets - own).astype("int32"))


@cases_of(IndexedShift)
def _indexed_shift(draw: Any) -> OperationCase:
    whole = some_domain(draw, Cell, K)

    def meaning(f: Naive, offset: Naive) -> Naive:
        def element(p: Any) -> Element:
            there = offset.at(p)
            found = f.at({**p, K: p[K] + int(there.value)})
            return found._replace(reads=found.reads | there.reads)

        return Naive(f.spans, f.like, element)

    leaves = given(draw, whole, ("float64",)), _offsets(draw, whole)
    return OperationCase(IndexedShift(K), leaves, meaning, linear_in=(0,))


@cases_of(IndexedScatter)
def _indexed_scatter(draw: Any) -> OperationCase:
    whole = some_domain(draw, Cell, K)

    def meaning(cotangent: Naive, field: Naive, offset: Naive) -> Naive:
        levels = range(*map(int, cotangent.spans[K]))

        def element(p: Any) -> Element:
            sources = [{**p, K: k} for k in levels]
            moved = [(cotangent.at(q), offset.at(q), q) for q in sources]
            reads = NOTHING.union(*(there.reads for _, there, _ in moved))
            total = _sum(x for x, there, q in moved if q[K] + int(there.value) == p[K])
            return total._replace(reads=total.reads | reads)

        return Naive(field.spans, cotangent.like, element)

    leaves = given(draw, whole, ("float64",)), given(draw, whole, ("float64",)), _offsets(draw, whole)
    return OperationCase(IndexedScatter(K), leaves, meaning, linear_in=(0,))
