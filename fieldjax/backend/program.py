"""A planned graph as one `jax.jit` program. There is one such object for each plan of a graph."""

from __future__ import annotations

from typing import Any

import jax

from fieldjax.backend.arrays import CompiledArrays
from fieldjax.ir.evaluation import Evaluation
from fieldjax.ir.graph import Graph
from fieldjax.ir.plan import Plan


class Program:
    """Calls like a function of the graph's input arrays and returns the output arrays.

    Tables are arguments like any other: nothing of them is in the jaxpr. `traces` counts how often JAX
    traced the program.
    """

    __slots__ = ("__weakref__", "graph", "plan", "run", "traces")

    def __init__(self, graph: Graph, plan: Plan) -> None:
        self.graph, self.plan, self.traces = graph, plan, 0
        self.run = jax.jit(self._evaluate)

    def _evaluate(self, *inputs: Any) -> tuple[Any, ...]:
        self.traces += 1
        return Evaluation(self.graph, self.plan, CompiledArrays(), inputs).run()
