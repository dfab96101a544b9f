"""A graph as one operation: what an operator call is in a recorded model, and what a region is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from fieldjax.domain import Domain
from fieldjax.ir.derivative import jvp, vjp
from fieldjax.ir.evaluation import At, Evaluation
from fieldjax.ir.graph import Graph, Mask, Node, Value
from fieldjax.ir.operation import Place, record
from fieldjax.ir.operations.whole import Whole, masks_of_body, moves, operands, whole
from fieldjax.ir.plan import Plan
from fieldjax.ir.planning import plan_of
from fieldjax.ir.types import Type

Self = TypeVar("Self", bound="Call")


@dataclass(frozen=True)
class Call(Whole):
    """`body` on the inputs, each of which is there as a whole; the results are computed as a whole.

    `wanted` are the domains that the body's outputs are asked for, None for all that is available.
    """

    body: Graph
    wanted: tuple[Domain | None, ...]
    name: str = field(default="call", compare=False)

    def types(self, *inputs: Type) -> tuple[Type, ...]:
        for value, given in zip(self.body.inputs, inputs, strict=True):
            assert value.type == given, (value, given)
        return tuple(v.type for v in self.body.outputs)

    def masks(self, *inputs: Value) -> tuple[tuple[Mask, ...], ...]:
        return masks_of_body(self.body, self.body.inputs, inputs)

    def available(self, node: Node, places: Sequence[Place]) -> tuple[Domain, ...]:
        return plan_of(self.body, places, self.wanted).outputs

    def nested(
        self, node: Node, places: Sequence[Place], adjoints: Mapping[Value, tuple[int, int] | None]
    ) -> tuple[Plan, ...]:
        shapes = tuple(adjoints.get(v) for v in node.inputs if v.is_table)
        return (plan_of(self.body, places, self.wanted, shapes),)

    def evaluate_results(self, at: At, domains: Sequence[Domain | None]) -> tuple[Any, ...]:
        (plan,) = at.plan.nested[at.node]
        return Evaluation(self.body, plan, at.arrays, operands(at)).run()

    def jvp(self, node: Node, tangents: Sequence[Value | None]) -> tuple[Value | None, ...]:
        wrt = tuple(n for n, t in enumerate(tangents) if t is not None)
        moving = tuple(n for n, v in enumerate(node.results()) if moves(v))
        if not wrt or not moving:
            return (None,) * len(node.types)
        derivative, reads = self.body.derived(("jvp", wrt, moving), lambda: _pushed(self.body, wrt, moving))
        given = (*node.inputs, *(whole(t, node.inputs[n]) for n in wrt if (t := tangents[n]) is not None))
        made = self.deriving(derivative, tuple(self.wanted[n] for n in moving), "tangent of ")
        results = iter(record(made, *(given[n] for n in reads), location=node.location))
        return tuple(next(results) if n in moving else None for n in range(len(node.types)))

    def pull_back(
        self, node: Node, cotangents: Sequence[Value | None], needed: Sequence[bool]
    ) -> tuple[Value | None, ...]:
        seeded = tuple(n for n, c in enumerate(cotangents) if c is not None)
        wrt = tuple(n for n, v in enumerate(node.inputs) if needed[n] and moves(v))
        if not seeded or not wrt:
            return (None,) * len(node.inputs)
        derivative, reads = self.body.derived(
            ("vjp", self.wanted, seeded, wrt), lambda: _pulled(self.body, self.wanted, seeded, wrt)
        )
        results = node.results()
        given = (*node.inputs, *(whole(c, results[n]) for n in seeded if (c := cotangents[n]) is not None))
        made = self.deriving(derivative, (None,) * len(wrt), "cotangent of ")
        pulled = iter(record(made, *(given[n] for n in reads), location=node.location))
        return tuple(next(pulled) if n in wrt else None for n in range(len(node.inputs)))

    def vjp(self, node: Node, cotangents: Sequence[Value | None]) -> tuple[Value | None, ...]:
        return self.pull_back(node, cotangents, [True] * len(node.inputs))

    def deriving(self: Self, body: Graph, wanted: tuple[Domain | None, ...], prefix: str) -> Self:
        """The same kind of call for a derivative's graph."""
        return replace(self, body=body, wanted=wanted, name=prefix + self.name)

    def __str__(self) -> str:
        return self.name


def _pushed(body: Graph, wrt: tuple[int, ...], moving: tuple[int, ...]) -> tuple[Graph, tuple[int, ...]]:
    return read_only(jvp(Graph(body.inputs, tuple(body.outputs[n] for n in moving)), wrt))


def _pulled(
    body: Graph, wanted: tuple[Domain | None, ...], seeded: tuple[int, ...], wrt: tuple[int, ...]
) -> tuple[Graph, tuple[int, ...]]:
    outputs = Graph(body.inputs, tuple(body.outputs[n] for n in seeded))
    asked = [position for position, n in enumerate(seeded) if wanted[n] is not None]
    return read_only(vjp(outputs, wrt, asked))


def read_only(graph: Graph) -> tuple[Graph, tuple[int, ...]]:
    """The graph on the inputs that it reads, and which these are."""
    nodes = set(graph.nodes)
    reads = tuple(n for n, v in enumerate(graph.inputs) if v.node in nodes)
    return Graph(tuple(graph.inputs[n] for n in reads), graph.outputs), reads
