"""An expression, a world and data for it: what is run in every way that fieldjax has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from hypothesis import strategies as st

import fieldjax as fj
from fieldjax.connectivity import as_provider
from fieldjax.domain import Domain, UnitRange
from fieldjax.frontend.recording import read_call, record_call
from fieldjax.ir.graph import Graph
from tests.strategies import naive
from tests.strategies.expressions import FORMS, Expression, Form, expressions
from tests.strategies.meshes import World, numbers, worlds
from tests.strategies.naive import Naive


@dataclass(frozen=True, eq=False)
class Case:
    """An operator with its arguments."""

    expression: Expression
    world: World
    inputs: tuple[Expression, ...]
    domains: tuple[Domain, ...]
    arrays: tuple[np.ndarray, ...]

    @cached_property
    def operator(self) -> fj.FieldOperator:
        """The expression as a field operator of its inputs, in order."""

        def drawn(*fields: Any) -> Any:
            return self.expression.say(dict(zip(self.inputs, fields, strict=True)))

        return fj.field_operator(drawn)

    def fields(self, arrays: Sequence[Any] | None = None) -> list[fj.Field]:
        """The arguments, over other arrays where given."""
        return [fj.as_field(d, a) for d, a in zip(self.domains, arrays or self.arrays, strict=True)]

    @property
    def expected(self) -> Naive:
        """By the naive reference. Raises Broken or Refused."""
        return self.meanings[self.expression]

    @cached_property
    def meanings(self) -> dict[Expression, Naive]:
        """The expression and all its parts, by the naive reference."""
        of = [naive.of_array(n, d, a) for n, (d, a) in enumerate(zip(self.domains, self.arrays, strict=True))]
        return self.expression.mean(dict(zip(self.inputs, of, strict=True)), self.world)

    @cached_property
    def is_finite(self) -> bool:
        """Whether every specified element of every part is."""
        return all(np.isfinite(part.values()).all() for part in self.meanings.values() if part.domain.is_finite())

    def run(self, arrays: Sequence[Any] | None = None, mesh: Any = None, **options: Any) -> fj.Field:
        """Compiled, on the case's mesh or what stands for it."""
        return self.operator(*self.fields(arrays), offset_provider=mesh or self.world.mesh, **options)

    def embedded(self, arrays: Sequence[Any] | None = None, **options: Any) -> fj.Field:
        """Embedded."""
        operator = self.operator.with_backend(None)
        return operator(*self.fields(arrays), offset_provider=self.world.mesh, **options)

    def eager(self, arrays: Sequence[Any] | None = None) -> Any:
        """One operation at a time, on fields."""
        with self.world.mesh:
            return self.operator.function(*self.fields(arrays))

    def recorded(self) -> tuple[Graph, list[Any]]:
        """The graph, and the data of its inputs (those of the expression first)."""
        provider = as_provider(self.world.mesh)
        call = read_call(tuple(self.fields()), {})
        recording, _ = record_call(self.operator.function, call, provider)
        return recording.graph, recording.inputs(call, provider)

    def planted(self, keep: frozenset[Any], what: float) -> list[np.ndarray]:
        """The arrays with `what` in every floating-point element that isn't in `keep`."""
        arrays = [a.copy() for a in self.arrays]
        for n, array in enumerate(arrays):
            for index in np.ndindex(array.shape):
                if (n, index) not in keep and array.dtype.kind == "f":
                    array[index] = what
        return arrays

    def function(self, wanted: Domain | None = None) -> Callable[..., Any]:
        """From arrays of the inputs to the array of the result, compiled."""
        options = {} if wanted is None else {"domain": wanted}
        return lambda *arrays: self.run(arrays, **options).ndarray

    @cached_property
    def touched(self) -> frozenset[Any]:
        """Input elements that some operation computes with, over the whole domain of every part."""
        computed = [part for p, part in self.meanings.items() if p.operands]
        return frozenset().union(*(e.reads for part in computed for _, e in part.elements()))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # hypothesis asks for this first
        printer.text(repr(self))

    def __repr__(self) -> str:
        tables = [
            f"{n}: {dict(t.naive.spans)} -> {self.world.spans[t.naive.codomain]}, skip {t.naive.skip}\n{t.naive.entries}"  # noqa: E501
            for n, t in self.world.tables.items()
        ]
        inputs = [f"{i!r} on {d}" for i, d in zip(self.inputs, self.domains, strict=True)]
        return "\n".join(["Case", repr(self.expression), *inputs, *tables])


@st.composite
def cases(
    draw: Any,
    depth: int = 4,
    dtypes: Any = ("float64",),
    forms: Sequence[Form] = FORMS,
    wild: bool = False,
    worlds: Any = worlds,
) -> Case:
    """Operators on random meshes and data. `wild`: tables and fields that don't cover each other."""
    expression = draw(expressions(depth, dtypes, forms).filter(lambda e: bool(e.inputs())))
    inputs = tuple(expression.inputs())
    world = draw(worlds(expression.tables(), {d for i in inputs for d in i.dims}, wild))
    domains = tuple(draw(field_domains(world, i.dims, wild)) for i in inputs)
    seed = draw(st.integers(0, 999))
    arrays = tuple(numbers(seed + n, d.shape, i.dtype) for n, (d, i) in enumerate(zip(domains, inputs, strict=True)))
    return Case(expression, world, inputs, domains, arrays)


@st.composite
def field_domains(draw: Any, world: World, dims: Any, wild: bool = False) -> Domain:
    """The world's ranges, or others that meet them more or less."""
    domain = world.domain(dims)
    if not wild:
        return domain
    ranges = []
    for r in domain.ranges:
        start, stop = draw(st.sampled_from([0, 0, 1, -1])), draw(st.sampled_from([0, 0, 1, -1]))
        ranges.append(UnitRange(int(r.start) + start, max(int(r.stop) + stop, int(r.start) + start)))
    return Domain(dims=domain.dims, ranges=tuple(ranges))


@st.composite
def parts_of(draw: Any, domain: Domain) -> Domain:
    """Domains within `domain`, empty ones too."""
    ranges = []
    for r in domain.ranges:
        start = draw(st.integers(int(r.start), int(r.stop)))
        ranges.append(UnitRange(start, draw(st.integers(start, int(r.stop)))))
    return Domain(dims=domain.dims, ranges=tuple(ranges))
