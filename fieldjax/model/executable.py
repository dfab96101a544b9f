"""Compiled functions of graphs: one for each body, plan and way of running it, shared by all that ask."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax

from fieldjax.backend.arrays import CompiledArrays
from fieldjax.dtypes import x64_enabled
from fieldjax.ir.evaluation import Evaluation
from fieldjax.ir.graph import Graph
from fieldjax.ir.plan import Plan
from fieldjax.model.region import Options


@dataclass
class Stats:
    """What was done for one body: functions compiled, how often JAX traced them, seconds, and calls."""

    compiled: int = 0
    traces: int = 0
    seconds: float = 0.0
    """What the first call of each function took: tracing, compiling, one run."""
    calls: int = 0


class Executable:
    """A graph and a plan as one compiled function of the arrays of the graph's inputs."""

    def __init__(self, body: Graph, plan: Plan, options: Options, stats: Stats) -> None:
        self.stats = stats
        self._device = options.placed
        self._first = True

        def evaluate(*arrays: Any) -> tuple[Any, ...]:
            stats.traces += 1
            return Evaluation(body, plan, CompiledArrays(), arrays).run()

        self._run: Any = options.compiled(evaluate)

    def text(self, arrays: Sequence[Any], compiled: bool = False) -> str:
        """The StableHLO text of the function for these arrays, or what XLA made of it."""
        lowered = self._run.lower(*arrays)
        return lowered.compile().as_text() if compiled else lowered.as_text()

    def __call__(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """The arrays of the graph's outputs."""
        self.stats.calls += 1
        if self._device is not None:
            arrays = jax.device_put(list(arrays), self._device)
        if not self._first:
            return self._run(*arrays)
        self._first = False
        start = time.perf_counter()
        results = jax.block_until_ready(self._run(*arrays))
        self.stats.compiled += 1
        self.stats.seconds += time.perf_counter() - start
        return results


def stats_of(body: Graph) -> Stats:
    """What was done for a body so far."""
    return body.derived("stats", Stats)


def executable(body: Graph, plan: Plan, options: Options) -> Executable:
    """The compiled function of a body, made once for each plan and options."""
    key = ("executable", plan.key, options, _flags())
    return body.derived(key, lambda: Executable(body, plan, options, stats_of(body)))


def _flags() -> Any:
    return x64_enabled(), jax.config.jax_default_matmul_precision  # type: ignore[attr-defined]
