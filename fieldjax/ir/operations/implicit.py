"""Values given by an equation: the root of a residual, and the linear systems that its derivatives solve."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from fieldjax.domain import Domain
from fieldjax.errors import UnsupportedError
from fieldjax.ir.build import pointwise
from fieldjax.ir.derivative import jvp, vjp
from fieldjax.ir.evaluation import At, Evaluation
from fieldjax.ir.graph import Graph, Mask, Node, Value
from fieldjax.ir.jax_arrays import JaxArrays
from fieldjax.ir.key import Named
from fieldjax.ir.operation import Place, field_domain, record
from fieldjax.ir.operations.call import Call
from fieldjax.ir.operations.whole import Whole, moves, operands, or_zero, whole
from fieldjax.ir.plan import Plan
from fieldjax.ir.planning import plan_of
from fieldjax.ir.types import Type


@dataclass(frozen=True, eq=False)
class OwnSolver(Named):
    """A user's solver: `solve(residual, start) -> root`, both on arrays. Identity is that of the object."""

    name: str
    solve: Callable[..., Any]


@dataclass(frozen=True)
class Solver:
    """How a root is found: by "newton" or "fixed point" iterations, or by somebody's own function.

    It ends where no element of the last step is larger than `tolerance` (absolute and relative; None: 16 roundings of
    the dtype), or after `steps`.
    """

    method: str | OwnSolver = "newton"
    tolerance: float | None = None
    steps: int = 50


class Solved(Whole):
    """Base: the first input is the unknown (its start, or the root), and the result lives where it does."""

    residual: Graph

    def types(self, *inputs: Type) -> tuple[Type, ...]:
        return (inputs[0],)

    def masks(self, *inputs: Value) -> tuple[tuple[Mask, ...], ...]:
        return (inputs[0].masks,)

    def available(self, node: Node, places: Sequence[Place]) -> tuple[Domain, ...]:
        return (field_domain(places[0]),)


@dataclass(frozen=True)
class Implicit(Solved):
    """The root `x` of `residual(x, ...)`; inputs: where to start, then the rest of the residual's inputs.

    Its derivatives are those of the root (implicit function theorem), whatever the solver did.
    """

    residual: Graph
    solver: Solver

    def nested(
        self, node: Node, places: Sequence[Place], adjoints: Mapping[Value, tuple[int, int] | None]
    ) -> tuple[Plan, ...]:
        return (plan_of(self.residual, places, (field_domain(places[0]),)),)

    def evaluate_results(self, at: At, domains: Sequence[Domain | None]) -> tuple[Any, ...]:
        (plan,) = at.plan.nested[at.node]
        start, *rest = _plain(operands(at))

        def residual(x: Any) -> Any:
            return Evaluation(self.residual, plan, JaxArrays(), [x, *rest]).run()[0]

        return (root(residual, jnp.asarray(start), self.solver),)

    def jvp(self, node: Node, tangents: Sequence[Value | None]) -> tuple[Value | None, ...]:
        x, *rest = (node.results()[0], *node.inputs[1:])
        wrt = [n for n in range(1, len(node.inputs)) if tangents[n] is not None]
        if not wrt:
            return (None,)
        graph = self.residual
        moved = jvp(graph, wrt)
        given = [whole(t, node.inputs[n]) for n in wrt if (t := tangents[n]) is not None]
        (right,) = record(Call(moved, (None,), "tangent of the residual"), x, *rest, *given, location=node.location)
        return record(LinearSolve(graph), x, *rest, pointwise("negative", right), location=node.location)

    def vjp(self, node: Node, cotangents: Sequence[Value | None]) -> tuple[Value | None, ...]:
        (cotangent,) = cotangents
        nothing = (None,) * len(node.inputs)
        wrt = [n for n in range(1, len(node.inputs)) if moves(node.inputs[n])]
        if cotangent is None or not wrt:
            return nothing
        x, *rest = (node.results()[0], *node.inputs[1:])
        right = pointwise("negative", whole(cotangent, x))
        (dual,) = record(LinearSolve(self.residual, True), x, *rest, right, location=node.location)
        pulled = Call(vjp(self.residual, wrt), (None,) * len(wrt), "cotangent of the residual")
        found = dict(zip(wrt, record(pulled, x, *rest, dual, location=node.location), strict=True))
        return tuple(found.get(n) for n in range(len(node.inputs)))

    def __str__(self) -> str:
        method = self.solver.method
        return f"implicit[{method if isinstance(method, str) else method.name}]"


@dataclass(frozen=True)
class LinearSolve(Solved):
    """`J y = b` for `y`, where `J` is the derivative of the residual in its first input, or its transpose.

    Inputs: those of the residual, then the right-hand side.
    """

    residual: Graph
    transposed: bool = False

    @property
    def product(self) -> Graph:
        """The graph of `J y` (or its transpose applied to `y`) on the residual's inputs and `y`."""
        return self.residual.derived(
            ("product", self.transposed), lambda: (vjp if self.transposed else jvp)(self.residual, [0])
        )

    def nested(
        self, node: Node, places: Sequence[Place], adjoints: Mapping[Value, tuple[int, int] | None]
    ) -> tuple[Plan, ...]:
        inner = (*places[:-1], places[0])
        return (plan_of(self.product, inner, (field_domain(places[0]),)),)

    def evaluate_results(self, at: At, domains: Sequence[Domain | None]) -> tuple[Any, ...]:
        (plan,) = at.plan.nested[at.node]
        *given, right = _plain(operands(at))

        def product(y: Any) -> Any:
            return Evaluation(self.product, plan, JaxArrays(), [*given, y]).run()[0]

        return (solve(product, jnp.asarray(right)),)

    def jvp(self, node: Node, tangents: Sequence[Value | None]) -> tuple[Value | None, ...]:
        """`J dy = db - dJ y`."""
        *given, right = node.inputs
        y = node.results()[0]
        moving = {v: t for v, t in zip(self.product.inputs[:-1], tangents[:-1], strict=True) if t is not None}
        change = or_zero(tangents[-1], right)
        if moving:
            wrt = [n for n, v in enumerate(self.product.inputs) if v in moving]
            call = Call(jvp(self.product, wrt), (None,), "change of the matrix")
            seeds = [whole(t, given[n]) for n in wrt if (t := tangents[n]) is not None]
            (moved,) = record(call, *given, y, *seeds, location=node.location)
            change = pointwise("subtract", change, moved)
        return record(self, *given, change, location=node.location)

    def vjp(self, node: Node, cotangents: Sequence[Value | None]) -> tuple[Value | None, ...]:
        """`b` gets the solution `l` of the transposed system, the rest minus what `l . (J y)` pulls back."""
        (cotangent,) = cotangents
        if cotangent is None:
            return (None,) * len(node.inputs)
        *given, _ = node.inputs
        y = node.results()[0]
        back = LinearSolve(self.residual, not self.transposed)
        (dual,) = record(back, *given, whole(cotangent, y), location=node.location)
        wrt = [n for n, v in enumerate(given) if moves(v)]
        pulled = Call(vjp(self.product, wrt), (None,) * len(wrt), "change of the matrix")
        found = dict(
            zip(wrt, record(pulled, *given, y, pointwise("negative", dual), location=node.location), strict=True)
        )
        return (*(found.get(n) for n in range(len(given))), dual)

    def __str__(self) -> str:
        return "solve transposed" if self.transposed else "solve"


def root(residual: Callable[..., Any], start: Any, solver: Solver) -> Any:
    """A root of `residual`, from `start` on. An array that is not finite where the iteration doesn't end well."""
    if isinstance(solver.method, OwnSolver):
        return jnp.asarray(solver.method.solve(residual, start), start.dtype).reshape(start.shape)
    if solver.method == "newton":
        step: Callable[..., Any] = lambda x: -solve(lambda v: jax.jvp(residual, (x,), (v,))[1], residual(x))  # noqa: E731
    else:
        step = lambda x: -residual(x)  # noqa: E731

    tolerance = 16 * float(jnp.finfo(start.dtype).eps) if solver.tolerance is None else solver.tolerance

    def proceed(state: Any) -> Any:
        x, _, n = state
        change = step(x)
        return x + change, jnp.max(jnp.abs(change) / (1 + jnp.abs(x)), initial=0), n + 1

    def goes_on(state: Any) -> Any:
        return (state[1] > tolerance) & (state[2] < solver.steps)

    x, change, _ = jax.lax.while_loop(goes_on, proceed, proceed((start, jnp.zeros((), start.dtype), 0)))
    # Steps of rounding error may never become smaller; a thousandfold tolerance has converged.
    return jnp.where(change <= 1e3 * tolerance, x, jnp.nan)


def solve(product: Callable[..., Any], right: Any) -> Any:
    """The solution of the linear system `product(y) = right`, by lineax.

    Raises UnsupportedError where lineax isn't installed.
    """
    try:
        import lineax
    except ImportError:
        raise UnsupportedError(
            "linear systems are solved by lineax, which isn't installed", hints=["pip install 'fieldjax[solve]'"]
        ) from None
    shape = jax.ShapeDtypeStruct(right.shape, right.dtype)
    operator = lineax.FunctionLinearOperator(product, shape)
    dense = lineax.MatrixLinearOperator(operator.as_matrix()) if right.ndim else operator
    return lineax.linear_solve(dense, right.ravel() if right.ndim else right, throw=False).value.reshape(right.shape)


def _plain(arrays: Sequence[Any]) -> list[Any]:
    return [getattr(x, "table", x) for x in arrays]
