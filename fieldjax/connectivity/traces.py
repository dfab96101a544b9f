"""Which traces of JAX are under way, and how what JAX remembers of one is kept from the others."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import jax
from jax.extend.core import take_current_trace

# The trace that records operations to compile them; the others hand them on to their parent.
_STAGING = "DynamicJaxprTrace"
_DIFFERENTIATING = ("JVPTrace", "LinearizeTrace")

# Part of the key of everything that JAX keeps: bodies of loops, branches, jitted functions.
_fence: Any = jax.make_user_context(None)


def trace_chain() -> Iterator[Any]:
    """The traces that are under way, innermost first."""
    with take_current_trace() as trace:
        pass
    while trace is not None:
        yield trace
        trace = getattr(trace, "parent_trace", None)


def recorders() -> Iterator[Any]:
    """The traces that record operations to compile them, innermost first."""
    return (t for t in trace_chain() if type(t).__name__ == _STAGING)


def recorder() -> weakref.ref[Any] | None:
    """The innermost trace that records operations, if one does."""
    return next(map(weakref.ref, recorders()), None)


def is_under(trace: weakref.ref[Any]) -> bool:
    """Whether `trace` is under way here, or around what is."""
    sought = trace()
    return sought is not None and any(t is sought for t in trace_chain())


def is_compiling() -> bool:
    """Whether what runs now is recorded for `jax.jit` (not just for scan, cond or a derivative)."""
    purposes = (getattr(getattr(t, "frame", None), "debug_info", None) for t in recorders())
    return any(getattr(info, "traced_for", "jit") in ("jit", "pmap") for info in purposes)


def is_differentiating() -> bool:
    """Whether a derivative is being taken of what runs now."""
    return any(type(t).__name__ in _DIFFERENTIATING for t in trace_chain())


def fenced() -> AbstractContextManager[Any]:
    """What JAX traces inside is found again inside only.

    JAX finds the body of a loop, a branch or a jitted function again by its identity, whatever it read besides
    its arguments. A table that it read from a mesh in force or a closure would come back under another mesh.
    """
    return _fence(object())
