"""Arguments against the signature: how many there are, what they are called, and what was annotated."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable
from typing import Any

import numpy as np

from fieldjax.domain import show_dims
from fieldjax.dtypes import as_dtype, is_floating, is_integer
from fieldjax.embedded.annotation import Dims, FieldAnnotation
from fieldjax.embedded.leaves import is_scalar, scalar_type
from fieldjax.errors import ArgumentError, DimensionError, DtypeError, user_location
from fieldjax.frontend.traced import TracedField
from fieldjax.ir.types import FieldType

__all__ = ["Dims", "FieldAnnotation", "check_arguments"]


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
        if isinstance(value, TracedField):
            _check(name, value, hints.get(name))
        elif is_scalar(value):
            _check_scalar(name, value, hints.get(name))


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


def _check(name: str, value: TracedField, hint: Any) -> None:
    if isinstance(hint, FieldAnnotation):
        if hint.dims is not None and set(hint.dims) != set(value.dims):
            raise DimensionError(
                f"{name} is annotated {hint}, but has dimensions {show_dims(value.dims)}", location=user_location()
            )
        _check_dtype(name, value.value.field_type, hint.dtype, str(hint))
    elif not value.dims and _is_scalar_type(hint):
        _check_dtype(name, value.value.field_type, hint, hint.__name__)


def _check_scalar(name: str, value: Any, hint: Any) -> None:
    if _is_scalar_type(hint):
        _check_dtype(name, scalar_type(value), hint, hint.__name__)


def _is_scalar_type(hint: Any) -> bool:
    return isinstance(hint, type) and (hint in (bool, int, float) or issubclass(hint, np.generic))


def _holds(wanted: np.dtype, literal: np.dtype) -> bool:
    return is_floating(wanted) or (is_integer(literal) and is_integer(wanted))


def _check_dtype(name: str, found: FieldType, dtype: Any, shown: str) -> None:
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
            location=user_location(),
            hints=[f"convert it: `astype({name}, {wanted})`", "or leave the annotation out: dtypes promote"],
        )
