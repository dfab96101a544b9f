"""What operations have in common that take whole inputs and compute whole results: calls, loops, equations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from fieldjax.domain import Domain
from fieldjax.dtypes import is_floating
from fieldjax.ir.build import literal, match
from fieldjax.ir.evaluation import At, Slots
from fieldjax.ir.graph import Graph, Mask, Node, Value
from fieldjax.ir.operation import Operation, Place, record
from fieldjax.ir.operations.layout import Extend


class Whole(Operation):
    """An operation that reads all of its inputs and gives all of its results, whatever part is asked for."""

    once: ClassVar[bool] = True

    def demand(self, node: Node, wanted: Sequence[Domain | None], places: Sequence[Place]) -> tuple[Domain | None, ...]:
        return tuple(p if isinstance(p, Domain) else None for p in places)

    def settle(
        self, node: Node, wanted: Sequence[Domain | None], places: Sequence[Place], roots: Any
    ) -> Sequence[Domain | None]:
        return self.available(node, places)

    def evaluate(self, at: At, domain: Domain, slots: Slots) -> Any:
        raise AssertionError(f"{self} is evaluated once, not for its readers")


def operands(at: At) -> list[Any]:
    """The inputs of the node as arrays, fields as a whole, tables with what is attached to them."""
    evaluation = at.evaluation
    found = []
    for n, value in enumerate(at.node.inputs):
        if value.is_table:
            found.append(evaluation.attached.get(value, evaluation.stored[value]))
        else:
            domain = at.planned(n)
            found.append(at.xp.broadcast_to(at.operand(n, domain, {}), domain.shape))
    return found


def masks_of_body(body: Graph, given: Sequence[Value], inputs: Sequence[Value]) -> tuple[tuple[Mask, ...], ...]:
    """The masks of a body's outputs, where `inputs` stand for its inputs `given`."""
    outside = dict(zip(given, inputs, strict=True))
    return tuple(tuple(replace(m, table=outside[m.table]) for m in v.masks) for v in body.outputs)


def moves(value: Value) -> bool:
    """Whether a value can have a derivative."""
    return not value.is_table and is_floating(value.field_type.dtype)


def whole(derivative: Value, like: Value) -> Value:
    """A tangent or cotangent on the whole domain of its primal; zero where it has no element."""
    if not like.dims:
        return derivative
    return record(Extend(), derivative, like, location=like.node.location)[0]


def or_zero(derivative: Value | None, like: Value) -> Value:
    """A tangent or cotangent on the whole domain of its primal, also where there is none."""
    return match(literal(0.0), like) if derivative is None else whole(derivative, like)
