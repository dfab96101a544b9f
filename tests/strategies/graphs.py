"""Graphs evaluated in every way, without a front end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fieldjax.backend.program import Program
from fieldjax.domain import Domain
from fieldjax.ir.arrays import NumpyArrays
from fieldjax.ir.evaluation import Evaluation
from fieldjax.ir.graph import Graph
from fieldjax.ir.inference import infer
from fieldjax.ir.jax_arrays import JaxArrays
from fieldjax.ir.operation import Place


def on_numpy(
    graph: Graph, places: Sequence[Place], arrays: Sequence[Any], wanted: Sequence[Domain | None] | None = None
) -> tuple[Any, ...]:
    """The results by NumPy."""
    return Evaluation(graph, infer(graph, places, wanted or [None] * len(graph.outputs)), NumpyArrays(), arrays).run()


def on_jax(
    graph: Graph, places: Sequence[Place], arrays: Sequence[Any], wanted: Sequence[Domain | None] | None = None
) -> tuple[Any, ...]:
    """The results by JAX, operation by operation."""
    return Evaluation(graph, infer(graph, places, wanted or [None] * len(graph.outputs)), JaxArrays(), arrays).run()


def compiled(graph: Graph, places: Sequence[Place], wanted: Sequence[Domain | None] | None = None) -> Any:
    """A function of the inputs' arrays, compiled."""
    return Program(graph, infer(graph, places, wanted or [None] * len(graph.outputs))).run
