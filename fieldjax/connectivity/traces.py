"""Which traces of JAX are under way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jax.extend.core import take_current_trace


def trace_chain() -> Iterator[Any]:
    """The traces that are under way, innermost first."""
    with take_current_trace() as trace:
        pass
    while trace is not None:
        yield trace
        trace = getattr(trace, "parent_trace", None)


def is_compiling() -> bool:
    """Whether what runs now is recorded for `jax.jit` (not just for scan, cond or a derivative)."""
    for trace in trace_chain():
        if type(trace).__name__ == "DynamicJaxprTrace":
            info = getattr(getattr(trace, "frame", None), "debug_info", None)
            if getattr(info, "traced_for", "jit") in ("jit", "pmap"):
                return True
    return False


def is_differentiating() -> bool:
    """Whether a derivative is being taken of what runs now."""
    return any(type(t).__name__ in ("JVPTrace", "LinearizeTrace") for t in trace_chain())
