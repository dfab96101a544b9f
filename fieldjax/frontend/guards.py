"""Guards: what a recording asked about the scalar arguments, and the answers that it holds for.

`if dt > 0:` on a scalar argument specialises by the outcome of the condition, not by the value of `dt`.
A scalar that is used as an integer (`range(n)`) specialises by its value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jax.core import Tracer

from fieldjax.domain import Domain
from fieldjax.errors import TracingError, user_location
from fieldjax.ir.arrays import NumpyArrays
from fieldjax.ir.evaluation import Evaluation
from fieldjax.ir.graph import Graph, Value, topological
from fieldjax.ir.inference import infer
from fieldjax.ir.operations.literal import Parameter


class _Traced:
    """The outcome that isn't known."""

    __slots__ = ()


TRACED = _Traced()


@dataclass(frozen=True, eq=False)
class Guard:
    """A question about scalar leaves: the graph of the condition, and which leaves it reads."""

    graph: Graph
    leaves: tuple[int, ...]
    kind: type

    def outcome(self, leaves: Sequence[Any]) -> Any:
        """The answer for these leaves of a call; `TRACED` where JAX traces one of them."""
        inputs = [leaves[n] for n in self.leaves]
        if any(isinstance(x, Tracer) for x in inputs):
            return TRACED
        plan = infer(self.graph, [Domain()] * len(inputs), [None])
        (answer,) = Evaluation(self.graph, plan, NumpyArrays(), [np.asarray(x) for x in inputs]).run()
        return self.kind(answer)


class Guards:
    """The questions of one recording, in order, answered from the leaves of the call that records."""

    def __init__(self, leaves: Sequence[Any], positions: Mapping[Value, int]) -> None:
        self.leaves, self.positions = leaves, positions
        self.asked: list[tuple[Guard, Any]] = []

    def is_traced(self, value: Value) -> bool:
        """Whether a recorded scalar depends on one that JAX traces. If so, the recording holds for such calls."""
        inputs = _inputs(value)
        known = [self.leaves[self.positions[v]] for v in inputs if v in self.positions]
        traced = any(isinstance(x, Tracer) for x in known)
        if traced and len(known) == len(inputs):
            self.asked.append((self._guard(inputs, value, bool), TRACED))
        return traced

    def ask(self, value: Value, kind: type) -> Any:
        """The concrete `kind` (bool, int, float) of a recorded scalar.

        Raises TracingError where the value depends on fields, or on a scalar that JAX traces.
        """
        inputs = _inputs(value)
        if value.dims or any(v not in self.positions for v in inputs):
            raise _field_condition(value, kind)
        guard = self._guard(inputs, value, kind)
        answer = guard.outcome(self.leaves)
        if answer is TRACED:
            traced = (self.leaves[n] for n in guard.leaves)
            raise _traced_condition(kind, next(x for x in traced if isinstance(x, Tracer)))
        self.asked.append((guard, answer))
        return answer

    def _guard(self, inputs: tuple[Value, ...], value: Value, kind: type) -> Guard:
        return Guard(Graph(inputs, (value,)), tuple(self.positions[v] for v in inputs), kind)


def _inputs(value: Value) -> tuple[Value, ...]:
    return tuple(n.results()[0] for n in topological([value]) if isinstance(n.operation, Parameter))


def _field_condition(value: Value, kind: type) -> TracingError:
    if kind is not bool:
        return TracingError(
            f"the elements of a field aren't known here, {kind.__name__} needs one", location=user_location()
        )
    return TracingError(
        "a field has no truth value: each element would decide for itself",
        location=user_location(),
        notes=[f"the condition is {value.type}"],
        hints=["choose element by element: `where(condition, a, b)`"],
    )


def _traced_condition(kind: type, tracer: Any) -> TracingError:
    return TracingError(
        f"Python needs the {kind.__name__} of a scalar that JAX is tracing",
        location=user_location(),
        notes=[f"the scalar is {tracer}"],
        hints=["pass it as a static argument of the outer jit, or select with `where`"],
    )
