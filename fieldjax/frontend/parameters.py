"""The parameters of an operator or a program: which are bound to values for good, and which are static."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from fieldjax.connectivity import is_table
from fieldjax.embedded.field import Field
from fieldjax.embedded.leaves import is_scalar
from fieldjax.errors import ArgumentError, TracingError, user_location
from fieldjax.frontend.containers import flatten, unflatten


class StaticScalar:
    """A scalar that a recording depends on by value. Equal where type, dtype and bits are."""

    __slots__ = ("_key", "value")

    def __init__(self, value: Any) -> None:
        self.value = np.asarray(value)[()] if isinstance(value, (jax.Array, np.ndarray)) else value
        array = np.asarray(self.value)
        self._key = (type(self.value), array.dtype, array.tobytes())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StaticScalar) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


@dataclass(frozen=True)
class Parameters:
    """A signature, and the values that some of its parameters are bound to."""

    name: str
    signature: inspect.Signature
    bound: Mapping[str, Any] = field(default_factory=dict)

    @property
    def remaining(self) -> inspect.Signature:
        """The signature without the bound parameters."""
        kept = [p for n, p in self.signature.parameters.items() if n not in self.bound]
        return self.signature.replace(parameters=kept)

    def binding(self, values: Mapping[str, Any]) -> Parameters:
        """With more parameters bound. Raises ArgumentError for one that there isn't, or that is bound."""
        self.check_free(values)
        self.check_names(values)
        return Parameters(self.name, self.signature, {**self.bound, **values})

    def check_names(self, names: Iterable[str]) -> None:
        """Raises ArgumentError where one of the names isn't a parameter."""
        if unknown := [n for n in names if n not in self.signature.parameters]:
            raise ArgumentError(
                f"{self.name} has no parameter {unknown[0]!r}",
                location=user_location(),
                notes=[f"its parameters are {', '.join(self.remaining.parameters)}"],
            )

    def check_free(self, names: Iterable[str]) -> None:
        """Raises ArgumentError where one of the names is bound."""
        if taken := [n for n in names if n in self.bound]:
            raise ArgumentError(
                f"the parameter {taken[0]!r} of {self.name} is bound already",
                location=user_location(),
                notes=[f"bound are {', '.join(self.bound)}"],
            )

    def complete(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a call with the bound ones among them. Raises ArgumentError where they don't fit."""
        if not self.bound:
            return args, kwargs
        self.check_free(kwargs)
        given = self._bind(self.remaining, args, kwargs).arguments
        return self._arguments({**given, **self.bound})

    def static(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], names: Sequence[str]
    ) -> tuple[tuple[Any, ...], dict[str, Any], dict[str, Any]]:
        """A complete call with the scalars of the static parameters as `StaticScalar`, and their values."""
        if not names:
            return args, kwargs, {}
        bound = self._bind(self.signature, args, kwargs)
        bound.apply_defaults()
        values = {n: bound.arguments[n] for n in names}
        marked = {n: static_value(n, x) for n, x in values.items()}
        return *self._arguments({**bound.arguments, **marked}), values

    def _bind(self, signature: inspect.Signature, args: Any, kwargs: Any) -> inspect.BoundArguments:
        try:
            return signature.bind(*args, **kwargs)
        except TypeError as reason:
            bound = [f"bound are {', '.join(self.bound)}"] if self.bound else []
            raise ArgumentError(
                f"{self.name}{signature} was called with other arguments: {reason}",
                location=user_location(),
                notes=bound,
            ) from None

    def _arguments(self, values: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        ordered = {n: values[n] for n in self.signature.parameters if n in values}
        found = inspect.BoundArguments(self.signature, ordered)  # type: ignore[arg-type]
        return found.args, found.kwargs


def static_value(name: str, x: Any) -> Any:
    """The value of a static parameter, its scalars as `StaticScalar`.

    Raises ArgumentError for fields and connectivities, TracingError for a scalar that JAX traces.
    """
    leaves, tree = flatten(x)
    return unflatten(tree, [_static_leaf(name, leaf) for leaf in leaves])


def _static_leaf(name: str, x: Any) -> Any:
    if isinstance(x, Field) or is_table(x):
        raise ArgumentError(
            f"the static parameter {name!r} is a {type(x).__name__.lower()}",
            location=user_location(),
            hints=["only scalars can be static"],
        )
    if isinstance(x, Tracer):
        raise TracingError(
            f"the static parameter {name!r} is a scalar that JAX is tracing",
            location=user_location(),
            hints=["make it a static argument of the outer jit, or leave it out of `static_params`"],
        )
    return StaticScalar(x) if is_scalar(x) else x
