"""Runs the user's function on recorded values."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from fieldjax.errors import (
    ArgumentError,
    FieldjaxError,
    TracingError,
    UnknownNameError,
    error_location,
    raised_in_user_code,
)
from fieldjax.frontend.annotations import check_arguments, check_results
from fieldjax.frontend.syntax import rewritten
from fieldjax.frontend.traced import TracedField


def called(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`function(*args, **kwargs)` like `run`, its arguments and results checked against what is annotated."""
    check_arguments(function, args, kwargs)
    results = run(function, *args, **kwargs)
    check_results(function, results)
    return results


def run(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """`function(*args, **kwargs)`, its conditions rewritten.

    Raises, at the user's line, TracingError where another library's function refuses a recorded value,
    UnknownNameError for a name that nothing has, and ArgumentError where Python finds a type wrong (a function that
    is called with too many arguments, say).
    """
    try:
        return rewritten(function)(*args, **kwargs)
    except FieldjaxError as error:
        raise error.with_location(error_location(error)) from error.__cause__
    except NameError as error:
        if not raised_in_user_code(error):
            raise
        message = f"there is no {error.name}" if error.name else str(error)
        raise _unknown(message, error, _names(function)) from error
    except AttributeError as error:
        owner = _owner(error.obj)
        if owner is None:
            raise
        raise _unknown(f"{owner} has no {error.name}", error, dir(error.obj)) from error
    except TypeError as error:
        if TracedField.__name__ in str(error):
            raise TracingError(
                str(error).replace(TracedField.__name__, "Field"),
                location=error_location(error),
                notes=["inside an operator a field has no elements yet, and never changes"],
                hints=["use the functions of fieldjax (`fieldjax.sin`, `fieldjax.where`, ...)"],
            ) from error
        if type(error) is TypeError and raised_in_user_code(error):
            raise ArgumentError(str(error), location=error_location(error)) from error
        raise


def _owner(x: Any) -> str | None:
    """What the language itself gives names to: recorded fields, and this package."""
    if isinstance(x, TracedField):
        return "a recorded field"
    name = x.__name__ if isinstance(x, ModuleType) else ""
    return name if name.partition(".")[0] == "fieldjax" else None


def _unknown(message: str, error: NameError | AttributeError, known: Iterable[str]) -> UnknownNameError:
    public = [n for n in known if not n.startswith("_")]
    close = difflib.get_close_matches(error.name or "", public, n=2)
    hints = [f"did you mean {' or '.join(close)}?"] if close else []
    return UnknownNameError(message, location=error_location(error), hints=hints)


def _names(function: Callable[..., Any]) -> list[str]:
    """What the function could have meant: its variables, and those around it."""
    code = getattr(function, "__code__", None)
    own = () if code is None else (*code.co_varnames, *code.co_freevars)
    return [*own, *getattr(function, "__globals__", ())]
