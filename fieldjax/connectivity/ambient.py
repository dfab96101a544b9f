"""The mesh in force: what `with mesh:` provides, and where it may be used.

A mesh in force around a trace is not an argument of what is traced. Read there, its tables would become
constants of a compiled program that is found again, by its arguments, under another mesh. So it is only read
under the trace that it was put in force under. Transformations that run at once (grad, jvp, vmap outside of
jit) keep nothing and don't count.
"""

from __future__ import annotations

import weakref
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jax.extend.core import get_opaque_trace_state, take_current_trace

if TYPE_CHECKING:
    from fieldjax.connectivity.mesh import Mesh
    from fieldjax.connectivity.view import MeshView

# The trace that records operations to compile them; the others hand them on to their parent.
_STAGING = "DynamicJaxprTrace"


@dataclass(frozen=True, slots=True, eq=False)
class Ambient:
    """A mesh in force and the trace state at the entry of its `with`."""

    mesh: Mesh | MeshView
    state: Any
    """What `jax.extend.core.get_opaque_trace_state` returned at entry."""
    recorder: weakref.ref[Any] | None
    """The trace that recorded operations at entry, if one did."""

    def is_current(self) -> bool:
        """Whether what runs now is run, or recorded by the same trace, as at the entry."""
        if self.state == get_opaque_trace_state():
            return True
        now = _recorder()
        return now is None if self.recorder is None else now is not None and self.recorder() is now()


_in_force: ContextVar[tuple[Ambient, ...]] = ContextVar("fieldjax_meshes_in_force", default=())


def ambient() -> Ambient | None:
    """The innermost mesh in force in this thread (or asynchronous task)."""
    stack = _in_force.get()
    return stack[-1] if stack else None


def put_in_force(mesh: Mesh | MeshView) -> None:
    """Enter `with mesh:`."""
    _in_force.set((*_in_force.get(), Ambient(mesh, get_opaque_trace_state(), _recorder())))


def withdraw() -> None:
    """Leave the innermost `with mesh:`."""
    _in_force.set(_in_force.get()[:-1])


def _recorder() -> weakref.ref[Any] | None:
    with take_current_trace() as trace:
        pass
    while trace is not None:
        if type(trace).__name__ == _STAGING:
            return weakref.ref(trace)
        trace = getattr(trace, "parent_trace", None)
    return None
