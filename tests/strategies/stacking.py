"""Cases of the operations that recorded models add: positions, stacks and their elements."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from hypothesis import strategies as st

import fieldjax as fj
from fieldjax.domain import Dimension
from fieldjax.ir.operations.positions import Positions
from fieldjax.ir.operations.stack import Pick, Put, Stack
from tests.strategies.meshes import Cell
from tests.strategies.naive import Element, Naive
from tests.strategies.operations import Given, OperationCase, cases_of, given, some_domain

Step = Dimension("#step")


@cases_of(Positions)
def _positions(draw: Any) -> OperationCase:
    dtype = np.dtype(draw(st.sampled_from(["int32", "int64"])))
    like = jax.ShapeDtypeStruct((), dtype)

    def meaning(x: Naive) -> Naive:
        return Naive({Cell: x.spans[Cell]}, like, lambda at: Element(dtype.type(at[Cell])))

    return OperationCase(Positions(Cell, dtype), (given(draw, some_domain(draw, Cell)),), meaning)


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
