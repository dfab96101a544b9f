"""Arguments and results against the signature: how many there are, what they are called, what was annotated."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from fieldjax.domain import Dimension, show_dims
from fieldjax.dtypes import as_dtype, is_floating, is_integer
from fieldjax.embedded.annotation import Dims, FieldAnnotation
from fieldjax.embedded.leaves import is_scalar, scalar_type
from fieldjax.errors import ArgumentError, DimensionError, DtypeError, Location, user_location
from fieldjax.frontend.containers import is_container
from fieldjax.frontend.traced import TracedField
from fieldjax.ir.types import FieldType

__all__ = ["Dims", "FieldAnnotation", "check_arguments", "check_results"]

Where = Callable[[Any], Location | None]
"""Where a value comes from, asked only when it is wrong."""


def check_arguments(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Recorded arguments against the function's signature and annotations, where it has them.

    Raises ArgumentError for a wrong number or an unknown name, DimensionError and DtypeError where a field or
    scalar isn't what the annotation says.
    """
    signature = _signature(function)
    if signature is None:
        return
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as reason:
        raise ArgumentError(
            f"{_name(function)}{signature} was called with other arguments: {reason}", location=user_location()
        ) from None
    hints = _hints(function)
    for name, value in bound.arguments.items():
        _check(name, value, hints.get(name), _at_call)


def check_results(function: Callable[..., Any], results: Any) -> None:
    """Recorded results of a function against its return annotation, where it has one.

    Raises DimensionError and DtypeError like `check_arguments`, at what computed the result.
    """
    hint = _hints(function).get("return")
    if hint is not None:
        _check("the result", results, hint, lambda x: _location_of(x) or _definition(function))


def _at_call(_: Any) -> Location | None:
    return user_location()


def _location_of(value: Any) -> Location | None:
    return value.value.node.location if isinstance(value, TracedField) else None


def _definition(function: Callable[..., Any]) -> Location | None:
    code = getattr(function, "__code__", None)
    return None if code is None else Location(code.co_filename, code.co_firstlineno, function=code.co_name)


def check_scalar(function: Callable[..., Any], name: str, value: Any) -> None:
    """A scalar for one parameter of a function, against its annotation. Raises DtypeError like `check_arguments`."""
    if is_scalar(value):
        _check_scalar(name, value, _hints(function).get(name))


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", "the operator")


@functools.lru_cache(maxsize=4096)
def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


@functools.lru_cache(maxsize=4096)
def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations that can be resolved; those that can't are for people."""
    try:
        return typing.get_type_hints(function)
    except Exception:  # anything may stand in an annotation
        return {}


def _check(name: str, value: Any, hint: Any, where: Where) -> None:
    """One value, or each part of a container. What else may stand in an annotation is for people."""
    if isinstance(value, TracedField):
        _check_leaf(name, value.dims, value.value.field_type, hint, where(value))
    elif is_scalar(value):
        _check_leaf(name, (), scalar_type(value), hint, where(value))
    elif is_container(value):
        for part, x, of_part in _parts(name, value, hint, where):
            _check(part, x, of_part, where)


def _check_leaf(name: str, dims: tuple[Dimension, ...], found: FieldType, hint: Any, where: Location | None) -> None:
    if isinstance(hint, FieldAnnotation):
        if not hint.has_dims(dims):
            has = f"dimensions {show_dims(dims)}" if dims else "no dimensions"
            raise DimensionError(f"{name} is annotated {hint}, but has {has}", location=where)
        _check_dtype(name, found, hint.dtype, str(hint), where)
    elif _is_scalar_type(hint) and not dims:
        _check_dtype(name, found, hint, hint.__name__, where)
    elif typing.get_origin(hint) is tuple:
        raise ArgumentError(f"{name} is annotated as a tuple, but is one value", location=where)


def _parts(name: str, value: Any, hint: Any, where: Where) -> Iterable[tuple[str, Any, Any]]:
    """The parts of a container with their names and annotations, where the annotation is of such a container."""
    short = name.removeprefix("the ")
    if isinstance(value, tuple) and typing.get_origin(hint) is tuple:
        hints = typing.get_args(hint)
        hints = hints[:1] * len(value) if hints[1:] == (Ellipsis,) else hints
        if len(hints) != len(value):
            raise ArgumentError(
                f"{name} is annotated as a tuple of {len(hints)}, but has {len(value)} parts", location=where(value)
            )
        return [(f"{short}[{n}]", x, h) for n, (x, h) in enumerate(zip(value, hints, strict=True))]
    if isinstance(hint, FieldAnnotation) or _is_scalar_type(hint):
        raise ArgumentError(f"{name} is annotated {_shown(hint)}, but is a container", location=where(value))
    if type(value) is hint:
        return [(f"{short}.{n}", getattr(value, n), h) for n, h in _hints(hint).items() if hasattr(value, n)]
    return []


def _shown(hint: Any) -> str:
    return str(hint) if isinstance(hint, FieldAnnotation) else hint.__name__


def _check_scalar(name: str, value: Any, hint: Any) -> None:
    if _is_scalar_type(hint):
        _check_dtype(name, scalar_type(value), hint, hint.__name__, user_location())


def _is_scalar_type(hint: Any) -> bool:
    return isinstance(hint, type) and (hint in (bool, int, float) or issubclass(hint, np.generic))


def _holds(wanted: np.dtype, literal: np.dtype) -> bool:
    return is_floating(wanted) or (is_integer(literal) and is_integer(wanted))


def _check_dtype(name: str, found: FieldType, dtype: Any, shown: str, where: Location | None) -> None:
    """A literal fits every dtype that holds its kind: 1 fits a float, 1.0 doesn't fit an integer."""
    if not isinstance(dtype, (type, np.dtype, str)):
        return
    try:
        wanted = as_dtype(dtype)
    except DtypeError:
        return
    if found.dtype != wanted and not (found.weak and _holds(wanted, found.dtype)):
        kind = "a Python float" if found.weak and is_floating(found.dtype) else str(found.dtype)
        raise DtypeError(
            f"{name} is annotated {shown}, but is {kind}",
            location=where,
            hints=[f"convert it: `astype(..., {wanted})`", "or leave the annotation out: dtypes promote"],
        )
