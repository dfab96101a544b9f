"""A loop over steps: each step sees what the step before handed on. Steps are whole graphs on whole fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fieldjax.domain import Dimension, Domain, NamedRange, UnitRange, canonical_dims
from fieldjax.ir.evaluation import At, Evaluation
from fieldjax.ir.graph import Graph, Mask, Node, Value
from fieldjax.ir.operation import Place, field_domain
from fieldjax.ir.operations.whole import Whole, masks_of_body, operands
from fieldjax.ir.plan import Plan
from fieldjax.ir.planning import plan_of
from fieldjax.ir.types import FieldType, Type


@dataclass(frozen=True)
class Loop(Whole):
    """Runs `body` for the steps 0, 1, ... `length` - 1 (from the last one back, when `reverse`).

    Inputs of the body: the number of the step, `carries` values from the step before, `sliced` values of the step,
    and what is the same in every step. Its outputs: the new carries, of the same types and on the same domains,
    then what the step emits.

    Inputs of the node: the initial carries, one stack along `axis` for each sliced value, and the rest. Results: the
    last carries, then one stack along `axis` for each thing that is emitted.

    Steps without carries that are `batched` run at once.
    """

    body: Graph
    length: int
    carries: int
    sliced: int
    axis: Dimension
    reverse: bool = False
    batched: bool = False
    name: str = field(default="loop", compare=False)

    def types(self, *inputs: Type) -> tuple[Type, ...]:
        first = self.carries + self.sliced
        given = (
            *inputs[: self.carries],
            *(_sliced(t, self.axis) for t in inputs[self.carries : first]),
            *inputs[first:],
        )
        for value, type_ in zip(self.body.inputs[1:], given, strict=True):
            assert value.type == type_, (value, type_)
        outputs = [v.type for v in self.body.outputs]
        assert outputs[: self.carries] == list(given[: self.carries]), (outputs, given)
        return (*outputs[: self.carries], *(_stacked(t, self.axis) for t in outputs[self.carries :]))

    def masks(self, *inputs: Value) -> tuple[tuple[Mask, ...], ...]:
        return masks_of_body(self.body, self.body.inputs[1:], inputs)

    def available(self, node: Node, places: Sequence[Place]) -> tuple[Domain, ...]:
        outputs = self._plan(places).outputs
        steps = Domain(NamedRange(self.axis, UnitRange(0, self.length)))
        stacks = tuple((steps & d).canonical() for d in outputs[self.carries :])
        return (*outputs[: self.carries], *stacks)

    def _plan(self, places: Sequence[Place], shapes: Sequence[tuple[int, int] | None] = ()) -> Plan:
        first = self.carries + self.sliced
        slices = [field_domain(p).without(self.axis) for p in places[self.carries : first]]
        inner = (Domain(), *places[: self.carries], *slices, *places[first:])
        emitted = len(self.body.outputs) - self.carries
        wanted = (*map(field_domain, places[: self.carries]), *[None] * emitted)
        return plan_of(self.body, inner, wanted, shapes)

    def nested(
        self, node: Node, places: Sequence[Place], adjoints: Mapping[Value, tuple[int, int] | None]
    ) -> tuple[Plan, ...]:
        return (self._plan(places, tuple(adjoints.get(v) for v in node.inputs if v.is_table)),)

    def evaluate_results(self, at: At, domains: Sequence[Domain | None]) -> tuple[Any, ...]:
        (plan,) = at.plan.nested[at.node]
        given, first = operands(at), self.carries + self.sliced
        same = given[first:]

        def step(carries: Sequence[Any], level: Sequence[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
            results = Evaluation(self.body, plan, at.arrays, [level[0], *carries, *level[1:], *same]).run()
            return results[: self.carries], results[self.carries :]

        stacks = [
            at.xp.moveaxis(x, self._place(at.planned(n)), 0) for n, x in enumerate(given[:first]) if n >= self.carries
        ]
        levels = (at.xp.arange(self.length, dtype=self.body.inputs[0].field_type.dtype), *stacks)
        last, emitted = self._run(at, step, tuple(given[: self.carries]), levels)
        placed = [
            at.xp.moveaxis(x, 0, self._place(d))
            for x, d in zip(emitted, domains[self.carries :], strict=True)
            if d is not None
        ]
        return (*last, *placed)

    def _run(self, at: At, step: Any, carries: tuple[Any, ...], levels: tuple[Any, ...]) -> Any:
        if self.batched and not carries:
            return at.arrays.batch(step, levels)
        return at.arrays.scan(step, carries, levels, self.length, not self.reverse)

    def _place(self, domain: Domain) -> int:
        return domain.dims.index(self.axis)

    def jvp(self, node: Node, tangents: Sequence[Value | None]) -> tuple[Value | None, ...]:
        from fieldjax.ir.operations.loop_derivative import forward_tangents

        return forward_tangents(self, node, tangents)

    def pull_back(
        self, node: Node, cotangents: Sequence[Value | None], needed: Sequence[bool]
    ) -> tuple[Value | None, ...]:
        from fieldjax.ir.operations.loop_derivative import reverse_cotangents

        return reverse_cotangents(self, node, cotangents, needed)

    def vjp(self, node: Node, cotangents: Sequence[Value | None]) -> tuple[Value | None, ...]:
        return self.pull_back(node, cotangents, [True] * len(node.inputs))

    def __str__(self) -> str:
        how = " at once" if self.batched else " backward" if self.reverse else ""
        return f"{self.name}[{self.length}{how}]"


def index_type() -> FieldType:
    """The type of a step's number: JAX's default integer."""
    from fieldjax.dtypes import as_dtype

    return FieldType((), np.dtype(as_dtype(int)))


def _sliced(type_: Type, axis: Dimension) -> Type:
    assert isinstance(type_, FieldType)
    return FieldType(tuple(d for d in type_.dims if d != axis), type_.dtype, type_.weak)


def _stacked(type_: Type, axis: Dimension) -> Type:
    assert isinstance(type_, FieldType) and axis not in type_.dims
    return FieldType(canonical_dims((axis, *type_.dims)), type_.dtype, type_.weak)
