"""Pointwise expressions as values: what is done to the operands at one point, hashable and differentiable."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

from fieldjax.domain import Domain
from fieldjax.ir.arrays import Arrays
from fieldjax.ir.derivative import jvp
from fieldjax.ir.evaluation import Evaluation
from fieldjax.ir.graph import Graph
from fieldjax.ir.inference import infer
from fieldjax.ir.key import canonical
from fieldjax.ir.plan import Plan
from fieldjax.ir.types import FieldType


class Body:
    """A graph on numbers with one result, each of which may stand for an array: a pointwise function.

    Equal, as a static parameter of jaxprs must be, where the graphs do the same.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._key = canonical(graph)
        self._hash = hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Body) and self._key == other._key

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Body({self.graph})"

    @cached_property
    def _plan(self) -> Plan:
        return infer(self.graph, [Domain()] * len(self.graph.inputs), [Domain()])

    @cached_property
    def reads(self) -> frozenset[int]:
        """Which inputs the result depends on."""
        nodes = set(self.graph.nodes)
        return frozenset(n for n, value in enumerate(self.graph.inputs) if value.node in nodes)

    def types(self) -> tuple[FieldType, ...]:
        """Of the inputs."""
        return tuple(value.field_type for value in self.graph.inputs)

    def __call__(self, arrays: Arrays, operands: Sequence[Any]) -> Any:
        """The result for operands that broadcast against each other."""
        (result,) = Evaluation(self.graph, self._plan, arrays, operands).values()
        return result

    def along(self, live: tuple[int, ...]) -> Body:
        """The derivative along the inputs in `live`: a tangent for each of them follows the inputs.

        Pointwise, it is a sum of products with the tangents: the same body, for one input at a time, takes a
        cotangent of the result to that of the input.
        """
        return _along(self, live)

    def keeping(self, operands: Sequence[int]) -> Body:
        """The same function given only these inputs; it depends on no other."""
        return Body(Graph(tuple(self.graph.inputs[n] for n in operands), self.graph.outputs))


@lru_cache(maxsize=1024)
def _along(body: Body, live: tuple[int, ...]) -> Body:
    return Body(jvp(body.graph, live))
