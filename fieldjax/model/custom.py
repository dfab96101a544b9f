"""`custom_operation`: somebody's own function as an operation of a recorded model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from fieldjax.domain import Domain
from fieldjax.embedded.field import Field
from fieldjax.errors import ArgumentError, user_location
from fieldjax.frontend.handing_over import recorder_of
from fieldjax.ir.graph import Value
from fieldjax.ir.operation import record
from fieldjax.ir.operations.custom import Custom, Rule
from fieldjax.ir.types import FieldType
from fieldjax.model.axes import array_domain
from fieldjax.model.recorder import Recording
from fieldjax.model.variable import Variable

Compute = Callable[..., Any]


class CustomOperation:
    """A function of arrays that can be called on recorded values. Made by `custom_operation`."""

    def __init__(self, rule: Rule, like: Any) -> None:
        self.rule, self.like = rule, like

    def __call__(self, *inputs: Any) -> Any:
        """The outputs as recorded values; called on data alone, what the function gives for it."""
        recording: Any = recorder_of(inputs)
        if recording is None:
            return self.rule.compute(*(x.ndarray if isinstance(x, Field) else x for x in inputs))
        values = [recording.value(x) for x in inputs]
        types, domains = self._kinds(recording, values)
        operation = Custom(self.rule, types, domains)
        found = recording.add_all(record(operation, *values, location=user_location()))
        return found[0] if len(found) == 1 else tuple(found)

    def _kinds(self, recording: Recording, values: Sequence[Value]) -> tuple[tuple[FieldType, ...], tuple[Domain, ...]]:
        like = self.like(*values) if callable(self.like) else self.like
        if like is None:
            like = self._traced(recording, values)
        examples = like if isinstance(like, (tuple, list)) else [like]
        kinds = [_kind(recording, x) for x in examples]
        return tuple(t for t, _ in kinds), tuple(d for _, d in kinds)

    def _traced(self, recording: Recording, values: Sequence[Value]) -> Any:
        """What JAX finds that the function gives: like the first input where the shape is the same."""
        if self.rule.on_host:
            raise ArgumentError(
                f"nothing says what the custom operation {self.rule.name} gives",
                location=user_location(),
                hints=["give an example: `custom_operation(..., like=x)`"],
            )
        given = [jax.ShapeDtypeStruct(recording.domain(v).shape, v.field_type.dtype) for v in values]
        shapes = jax.tree.leaves(jax.eval_shape(self.rule.compute, *given))
        first = values[0]
        return [_as_first(recording, first, s) for s in shapes]


def _as_first(recording: Recording, first: Value, shape: Any) -> Any:
    same = recording.domain(first).shape == shape.shape and first.field_type.dtype == shape.dtype
    return Variable(first, recording) if same else shape


def _kind(recording: Recording, x: Any) -> tuple[FieldType, Domain]:
    if isinstance(x, Variable):
        kind = x.value.field_type
        return FieldType(kind.dims, kind.dtype), recording.domain(x.value)
    if isinstance(x, Field):
        return FieldType(x.dims, x.dtype), x.domain
    if hasattr(x, "shape") and hasattr(x, "dtype"):
        domain = array_domain(x.shape)
        return FieldType(domain.dims, np.dtype(x.dtype)), domain
    raise ArgumentError(f"{x!r} doesn't say what a custom operation gives", location=user_location())


def custom_operation(
    compute: Compute,
    *,
    vjp: Compute | None = None,
    jvp: Compute | None = None,
    jacobian: Compute | None = None,
    host: bool = False,
    like: Any = None,
    name: str | None = None,
) -> CustomOperation:
    """Makes an operation of a function of arrays, to be called on recorded values.

    Args:
        compute: from the arrays of the inputs (fields as a whole) to an array, or a tuple of arrays.
        vjp: `(inputs, cotangents) -> cotangents` of all inputs, both tuples; None for an input that doesn't move.
        jvp: `(inputs, tangents) -> tangents` of all outputs.
        jacobian: `(*inputs) ->` for each input the derivative of the one output, of shape `output.shape +
            input.shape`; serves both directions.
        host: the code gets NumPy arrays and needn't be JAX's; it can't be differentiated twice.
        like: an example, or a list of examples, of what it gives: fields, variables or arrays. Left away, it is what
            JAX finds, on the first input's domain where the shape is the same.
        name: what messages call it.

    Where `host` is False and no derivative is given, JAX differentiates it. Derivatives in a direction that wasn't
    given raise UnsupportedError.

    >>> import fieldjax as fj, numpy as np
    >>> cube = fj.custom_operation(
    ...     lambda x: np.power(x, 3),
    ...     vjp=lambda inputs, c: (3 * inputs[0] ** 2 * c[0],),
    ...     host=True,
    ...     like=np.zeros((), "float32"),
    ... )
    >>> with fj.record() as model:
    ...     x = model.input("x", 2.0)
    ...     model.output("slope", fj.derivative(cube(x), x))
    >>> float(model.run()["slope"])
    12.0
    """
    if jacobian is not None:
        if vjp is not None or jvp is not None:
            raise ArgumentError(
                "`jacobian` serves both directions: leave `vjp` and `jvp` away", location=user_location()
            )
        vjp, jvp = _backward(jacobian), _forward(jacobian)
    named = name or getattr(compute, "__name__", "custom")
    return CustomOperation(Rule(named, compute, vjp, jvp, host), like)


def _backward(jacobian: Compute) -> Compute:
    def vjp(inputs: Any, cotangents: Any) -> Any:
        (c,) = cotangents
        return tuple(
            np.tensordot(c, j, np.ndim(c)) if isinstance(j, np.ndarray) else jax.numpy.tensordot(c, j, np.ndim(c))
            for j in _each(jacobian(*inputs))
        )

    return vjp


def _forward(jacobian: Compute) -> Compute:
    def jvp(inputs: Any, tangents: Any) -> Any:
        total = None
        for j, t in zip(_each(jacobian(*inputs)), tangents, strict=True):
            if t is not None:
                dot = np.tensordot if isinstance(j, np.ndarray) else jax.numpy.tensordot
                term = dot(j, t, np.ndim(t))
                total = term if total is None else total + term
        return (total,)

    return jvp


def _each(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)
