"""A region: a subgraph as one operation that runs as one compiled function of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
from jax.experimental.xla_metadata import set_xla_metadata

from fieldjax.backend.arrays import CompiledArrays
from fieldjax.backend.host_call import checked, host_call
from fieldjax.domain import Domain
from fieldjax.errors import ArgumentError, user_location
from fieldjax.ir.evaluation import At, Evaluation
from fieldjax.ir.graph import Graph
from fieldjax.ir.operations.call import Call
from fieldjax.ir.operations.whole import operands
from fieldjax.ir.plan import Plan

MODES = ("auto", "segment", "scan", "call", "callback", "inline")


@dataclass(frozen=True)
class Options:
    """How a region is executed.

    `mode` is one of `MODES`; `device` names a JAX device ("cpu:1") or is None; `fusion` is None (XLA's default), True
    or False; `jit_kwargs` go to `jax.jit`, as sorted pairs. Regions share an executable only where these are equal.
    """

    mode: str = "auto"
    device: str | None = None
    fusion: bool | None = None
    jit_kwargs: tuple[tuple[str, Any], ...] = ()

    @property
    def is_apart(self) -> bool:
        """Whether a model runs the region as an executable of its own."""
        return self.mode not in ("inline", "call")

    @property
    def placed(self) -> Any:
        """The device, or None. Raises ArgumentError where this process doesn't have it."""
        return None if self.device is None else device_named(self.device)

    def compiled(self, function: Callable[..., Any]) -> Any:
        """`function` as a compiled function of its own."""
        kwargs = dict(self.jit_kwargs)
        compiler = dict(kwargs.pop("compiler_options", None) or ())
        if self.fusion is False:
            compiler["xla_disable_hlo_passes"] = "fusion"
        return jax.jit(function, **kwargs, compiler_options=compiler or None)


def device_named(name: str) -> Any:
    """The device of a name like "cpu:1" or "gpu" (its first). Raises ArgumentError where there is none."""
    kind, _, number = name.partition(":")
    try:
        return dict(enumerate(jax.devices(kind)))[int(number or 0)]  # a list would take -1 too
    except (RuntimeError, KeyError, ValueError):
        there = ", ".join(f"{d.platform}:{d.id}" for d in jax.devices())
        raise ArgumentError(
            f"there is no device {name!r} here", location=user_location(), notes=[f"there are {there}"]
        ) from None


@dataclass(frozen=True)
class Region(Call):
    """A call whose body is compiled on its own, and shared with the regions of its group.

    Regions of a group have the same body, the same graph object; so have their derivatives.
    """

    options: Options = field(default_factory=Options)

    def evaluate_results(self, at: At, domains: Sequence[Domain | None]) -> tuple[Any, ...]:
        """The arrays of all results: in a compiled program a call that XLA may not inline."""
        (plan,) = at.plan.nested[at.node]
        if self.options.mode == "inline" or not isinstance(at.arrays, CompiledArrays):
            return Evaluation(self.body, plan, at.arrays, operands(at)).run()
        leaves, tree = jax.tree.flatten(operands(at))
        if self.options.mode == "callback" or self.options.device is not None:
            device = None if self.options.device is None else checked(self.options.placed)
            return host_call(function_of(self.body, plan, tree), tuple(leaves), device)
        with set_xla_metadata(inlineable="false"):
            return function_of(self.body, plan, tree)(*leaves)

    def __str__(self) -> str:
        return f"region {self.name}"


def function_of(body: Graph, plan: Plan, tree: Any) -> Callable[..., Any]:
    """The body as a jitted function of the arrays in `tree`, for calls inside of other programs: one for each plan."""

    def evaluate(*arrays: Any) -> tuple[Any, ...]:
        return Evaluation(body, plan, CompiledArrays(), jax.tree.unflatten(tree, arrays)).run()

    return body.derived(("function", plan.key, tree), lambda: jax.jit(evaluate))
