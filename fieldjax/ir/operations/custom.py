"""Operations whose code fieldjax doesn't see: somebody's function of arrays, with the derivatives that come with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from fieldjax.domain import Domain
from fieldjax.dtypes import is_floating
from fieldjax.errors import UnsupportedError
from fieldjax.ir.evaluation import At
from fieldjax.ir.graph import Mask, Node, Value
from fieldjax.ir.key import Named
from fieldjax.ir.operation import Place, record
from fieldjax.ir.operations.whole import Whole, moves, operands, or_zero
from fieldjax.ir.types import FieldType, Type

Function = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class Rule(Named):
    """A function of arrays and its derivatives. Identity is that of the object: its code can't state what it does.

    `compute(*inputs)` gives the outputs, a tuple where there are several; `vjp(inputs, cotangents)` the cotangents of
    all inputs, `jvp(inputs, tangents)` the tangents of all outputs. `on_host` code gets NumPy arrays and may do
    anything; other code JAX can trace, and differentiates where no rule is stated.
    """

    name: str
    compute: Function
    vjp: Function | None = None
    jvp: Function | None = None
    on_host: bool = False

    @property
    def is_automatic(self) -> bool:
        """Whether JAX differentiates the function."""
        return not self.on_host and self.vjp is None and self.jvp is None

    def forward(self) -> Function:
        """`(inputs, tangents) -> tangents`. Raises UnsupportedError where there is none."""
        if self.is_automatic:
            return lambda inputs, tangents: jax.jvp(lambda *x: _tuple(self.compute(*x)), inputs, tangents)[1]
        if self.jvp is None:
            raise self._missing("forward", "jvp")
        return self.jvp

    def backward(self) -> Function:
        """`(inputs, cotangents) -> cotangents`. Raises UnsupportedError where there is none."""
        if self.is_automatic:
            return lambda inputs, cotangents: jax.vjp(lambda *x: _tuple(self.compute(*x)), *inputs)[1](cotangents)
        if self.vjp is None:
            raise self._missing("reverse", "vjp")
        return self.vjp

    def _missing(self, direction: str, argument: str) -> UnsupportedError:
        return UnsupportedError(
            f"the custom operation {self.name} has no {direction} derivative",
            hints=[f"give it: `custom_operation(..., {argument}=...)`, or `jacobian=`, which serves both directions"],
        )


@dataclass(frozen=True)
class Custom(Whole):
    """`rule.compute` of the inputs as whole arrays; the outputs have the types and domains that were stated."""

    rule: Rule
    outputs: tuple[FieldType, ...]
    domains: tuple[Domain, ...]

    def types(self, *inputs: Type) -> tuple[Type, ...]:
        return self.outputs

    def masks(self, *inputs: Value) -> tuple[tuple[Mask, ...], ...]:
        return ((),) * len(self.outputs)

    def available(self, node: Node, places: Sequence[Place]) -> tuple[Domain, ...]:
        return self.domains

    def evaluate_results(self, at: At, domains: Sequence[Domain | None]) -> tuple[Any, ...]:
        shapes = [jax.ShapeDtypeStruct(d.shape, t.dtype) for d, t in zip(self.domains, self.outputs, strict=True)]
        return tuple(at.arrays.call(self.rule, operands(at), shapes))

    def jvp(self, node: Node, tangents: Sequence[Value | None]) -> tuple[Value | None, ...]:
        moving = [n for n, v in enumerate(node.inputs) if moves(v)]
        given = [or_zero(tangents[n], node.inputs[n]) for n in moving]
        count, forward = len(node.inputs), self.rule.forward()

        def compute(*arrays: Any) -> Any:
            inputs = arrays[:count]
            dense = [np.zeros(x.shape, jax.dtypes.float0) for x in inputs] if self.rule.is_automatic else [None] * count
            for n, t in zip(moving, arrays[count:], strict=True):
                dense[n] = t
            results = _tuple(forward(inputs, tuple(dense)))
            return tuple(r for r, t in zip(results, self.outputs, strict=True) if is_floating(t.dtype))

        derived = Rule(f"tangent of {self.rule.name}", compute, on_host=self.rule.on_host)
        floating = [n for n, t in enumerate(self.outputs) if is_floating(t.dtype)]
        operation = Custom(derived, tuple(self.outputs[n] for n in floating), tuple(self.domains[n] for n in floating))
        found = iter(record(operation, *node.inputs, *given, location=node.location))
        return tuple(next(found) if n in floating else None for n in range(len(self.outputs)))

    def vjp(self, node: Node, cotangents: Sequence[Value | None]) -> tuple[Value | None, ...]:
        results = node.results()
        floating = [n for n, t in enumerate(self.outputs) if is_floating(t.dtype)]
        given = [or_zero(cotangents[n], results[n]) for n in floating]
        moving = [n for n, v in enumerate(node.inputs) if moves(v)]
        count, backward = len(node.inputs), self.rule.backward()

        def compute(*arrays: Any) -> Any:
            given = dict(zip(floating, arrays[count:], strict=True))
            # What isn't floating-point has no cotangent; JAX wants to be told so.
            dense = [
                given[n] if n in given else np.zeros(self.domains[n].shape, jax.dtypes.float0)
                for n in range(len(self.outputs))
            ]
            pulled = _tuple(backward(arrays[:count], tuple(dense)))
            return tuple(pulled[n] for n in moving)

        derived = Rule(f"cotangent of {self.rule.name}", compute, on_host=self.rule.on_host)
        likes = [node.inputs[n] for n in moving]
        operation = Cotangents(derived, tuple(v.field_type for v in likes), (), tuple(moving))
        found = iter(record(operation, *node.inputs, *given, location=node.location))
        return tuple(next(found) if n in moving else None for n in range(count))

    def __str__(self) -> str:
        return self.rule.name


@dataclass(frozen=True)
class Cotangents(Custom):
    """The cotangents of a custom operation's inputs: result `n` lives where input `like[n]` does."""

    like: tuple[int, ...] = ()

    def available(self, node: Node, places: Sequence[Place]) -> tuple[Domain, ...]:
        return tuple(p for n in self.like if isinstance(p := places[n], Domain))

    def evaluate_results(self, at: At, domains: Sequence[Domain | None]) -> tuple[Any, ...]:
        shapes = [
            jax.ShapeDtypeStruct(at.planned(n).shape, t.dtype) for n, t in zip(self.like, self.outputs, strict=True)
        ]
        return tuple(at.arrays.call(self.rule, operands(at), shapes))


def _tuple(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def checked(results: Any, shapes: Sequence[Any], name: str) -> list[Any]:
    """The results as a list. Raises UnsupportedError where they aren't what was stated."""
    found = list(_tuple(results))
    have = [(np.shape(x), np.dtype(getattr(x, "dtype", type(x)))) for x in found]
    want = [(tuple(s.shape), np.dtype(s.dtype)) for s in shapes]
    if have != want:
        raise UnsupportedError(
            f"the custom operation {name} gives arrays of other shapes or dtypes than were stated",
            notes=[f"stated: {_shown(want)}", f"given:  {_shown(have)}"],
            hints=["say what it gives with `like=`"],
        )
    return found


def _shown(kinds: Sequence[tuple[Any, Any]]) -> str:
    return ", ".join(f"{dtype}{list(shape)}" for shape, dtype in kinds)
