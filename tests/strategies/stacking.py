"""Cases of the operations that recorded models add: positions, stacks, their elements, and stacks of stacks."""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np
from hypothesis import strategies as st

import fieldjax as fj
from fieldjax.domain import Dimension
from fieldjax.ir.operations.blocks import Merge, Split
from fieldjax.ir.operations.positions import Positions
from fieldjax.ir.operations.stack import Pick, Put, Stack
from tests.strategies.meshes import Cell
from tests.strategies.naive import Element, Naive
from tests.strategies.operations import Given, OperationCase, cases_of, given, some_domain

Step, Inner = Dimension("#step"), Dimension("inside of a block")


@cases_of(Positions)
def _positions(draw: Any) -> OperationCase:
    dtype = np.dtype(draw(st.sampled_from(["int32", "int64"])))
    like = jax.ShapeDtypeStruct((), dtype)
    domain = some_domain(draw, Cell)
    only = draw(st.sampled_from([None, domain.restrict((Cell,))]))

    def meaning(x: Naive) -> Naive:
        return Naive({Cell: x.spans[Cell]}, like, lambda at: Element(dtype.type(at[Cell])))

    return OperationCase(Positions(Cell, dtype, only), (given(draw, domain),), meaning)


@cases_of(Stack)
def _stack(draw: Any) -> OperationCase:
    domain, count, dtype = some_domain(draw, Cell), draw(st.integers(1, 3)), draw(st.sampled_from(["float64", "int32"]))
    parts = tuple(given(draw, domain, (dtype,)) for _ in range(count))

    def meaning(*xs: Naive) -> Naive:
        return Naive({**xs[0].spans, Step: (0, count)}, xs[0].like, lambda at: xs[at[Step]].at(at))

    return OperationCase(Stack(Step), parts, meaning)


@cases_of(Pick)
def _pick(draw: Any) -> OperationCase:
    domain = some_domain(draw, Cell)
    whole = (domain & fj.domain({Step: (0, 3)})).canonical()
    position = draw(st.integers(0, 2))

    def meaning(x: Naive) -> Naive:
        spans = {d: s for d, s in x.spans.items() if d != Step}
        return Naive(spans, x.like, lambda at: x.at({**at, Step: position}))

    return OperationCase(Pick(Step, position), (given(draw, whole),), meaning)


@cases_of(Put)
def _put(draw: Any) -> OperationCase:
    position = draw(st.integers(0, 2))
    x: Given = given(draw, some_domain(draw, Cell))

    def meaning(x: Naive) -> Naive:
        return Naive({**x.spans, Step: (position, position + 1)}, x.like, x.at)

    return OperationCase(Put(Step, position), (x,), meaning)


# Inputs end anywhere: tangents and cotangents are zero where they have no element, and so a block may be in part.


@cases_of(Merge)
def _merge(draw: Any) -> OperationCase:
    axis, inner = draw(st.permutations([Step, Inner]))
    size, between = draw(st.integers(1, 3)), draw(st.sampled_from([(), (Cell,)]))
    x: Given = given(draw, some_domain(draw, Step, Inner, *between))

    def meaning(x: Naive) -> Naive:
        spans = {d: s for d, s in x.spans.items() if d != inner}
        spans[axis] = tuple(size * end for end in spans[axis])

        def element(at: Any) -> Element:
            block, place = divmod(at[axis], size)
            inside = x.spans[inner][0] <= place < x.spans[inner][1]
            return x.at({**at, axis: block, inner: place}) if inside else Element(x.dtype.type(0))

        return Naive(spans, x.like, element)

    return OperationCase(Merge(axis, inner, size), (x,), meaning)


@cases_of(Split)
def _split(draw: Any) -> OperationCase:
    axis, inner = draw(st.permutations([Step, Inner]))
    size, between = draw(st.integers(1, 3)), draw(st.sampled_from([(), (Cell,)]))
    x: Given = given(draw, some_domain(draw, axis, *between))

    def meaning(x: Naive) -> Naive:
        start, stop = x.spans[axis]
        blocks = (math.floor(start / size), math.ceil(stop / size))

        def element(at: Any) -> Element:
            there = at[axis] * size + at[inner]
            return x.at({**at, axis: there}) if start <= there < stop else Element(x.dtype.type(0))

        return Naive({**x.spans, axis: blocks, inner: (0, size)}, x.like, element)

    return OperationCase(Split(axis, inner, size), (x,), meaning)
