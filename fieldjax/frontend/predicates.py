"""The conditions under which something is being recorded, for the safe points of what may not be taken."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_conditions: ContextVar[tuple[Any, ...]] = ContextVar("fieldjax_conditions", default=())


@contextmanager
def under(condition: Any) -> Iterator[None]:
    """What is recorded inside is taken only where the condition, a recorded bool, holds."""
    token = _conditions.set((*_conditions.get(), condition))
    try:
        yield
    finally:
        _conditions.reset(token)


def conditions() -> tuple[Any, ...]:
    """The recorded bools, outermost first, that must all hold."""
    return _conditions.get()
