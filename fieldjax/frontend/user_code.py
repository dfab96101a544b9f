"""Runs the user's function on recorded values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fieldjax.errors import FieldjaxError, TracingError, error_location
from fieldjax.frontend.syntax import rewritten
from fieldjax.frontend.traced import TracedField


def run(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """`function(*args, **kwargs)`, its conditions rewritten.

    Raises TracingError, at the user's line, where another library's function refuses a recorded value.
    """
    try:
        return rewritten(function)(*args, **kwargs)
    except FieldjaxError:
        raise
    except TypeError as error:
        if TracedField.__name__ not in str(error):
            raise
        raise TracingError(
            "this function can't take a recorded field, which has no elements yet",
            location=error_location(error),
            hints=["use the functions of fieldjax (`fieldjax.sin`, `fieldjax.where`, ...) inside operators"],
        ) from error
