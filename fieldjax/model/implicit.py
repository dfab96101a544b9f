"""`implicit`: a value that an equation gives, in a recorded model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fieldjax.errors import ArgumentError, user_location
from fieldjax.frontend.handing_over import recorder_of
from fieldjax.ir.graph import Graph
from fieldjax.ir.operation import record
from fieldjax.ir.operations.implicit import Implicit, OwnSolver, Solver
from fieldjax.model.body import BodyRecording
from fieldjax.model.loops import strong
from fieldjax.model.recorder import Recording
from fieldjax.model.variable import Variable

METHODS = ("newton", "fixed point")


def implicit(
    residual: Callable[[Variable], Any],
    start: Any,
    *,
    solver: str | Callable[..., Any] = "newton",
    tolerance: float | None = None,
    steps: int = 50,
    recorder: Recording | None = None,
) -> Variable:
    """The `x` for which `residual(x)` is zero: one operation of the recorded model.

    `residual` is recorded once; it may read any value of the model, and gives a value like `x`. `solver` is "newton"
    (linear systems by lineax), "fixed point" (`x - residual(x)` is taken again and again), or a function
    `solver(residual, start)` of arrays. Iterations end where a step changes no element by more than `tolerance`,
    absolute and relative (None: 16 roundings of the dtype), or after `steps`; where they don't converge the result is
    NaN.

    Derivatives follow from the equation at the root, not from the iterations: to any order, with any solver.

    Raises ArgumentError for an unknown solver, and where nothing belongs to a recorded model; DtypeError or
    DomainError where the residual isn't like `x`; UnsupportedError where lineax isn't installed.

    >>> import fieldjax as fj
    >>> with fj.record() as model:
    ...     a = model.input("a", 2.0)
    ...     root = fj.implicit(lambda x: x * x - a, a)
    ...     model.output("root", root)
    ...     model.output("slope", fj.derivative(root, a))
    >>> result = model.run()
    >>> round(float(result["root"]), 6), round(float(result["slope"]), 6)
    (1.414214, 0.353553)
    """
    outer: Any = recorder_of([start]) if recorder is None else recorder.innermost
    if outer is None:
        raise ArgumentError(
            "an equation is recorded, and its start isn't a value of a recorded model",
            location=user_location(),
            hints=["pass `recorder=model`"],
        )
    if not (solver in METHODS or callable(solver)):
        known = ", ".join(map(repr, METHODS))
        raise ArgumentError(f"`solver` is one of {known} or a function, not {solver!r}", location=user_location())
    method = solver if isinstance(solver, str) else OwnSolver(getattr(solver, "__name__", "solver"), solver)
    value = strong(outer, outer.value(start))
    inner = BodyRecording(outer)
    unknown = inner.new_input("x", value, outer.places[value])
    with inner.opened("an equation"):
        result = inner.fitting(residual(inner.variable_of(unknown)), unknown)
    if inner.assigned:
        raise ArgumentError("an equation can't assign to variables", location=user_location())
    read = inner.reads()
    graph = Graph((unknown, *read), (result,))
    operation = Implicit(graph, Solver(method, tolerance, steps))
    return outer.add(record(operation, value, *read.values(), location=user_location())[0])
