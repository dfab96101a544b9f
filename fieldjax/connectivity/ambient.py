"""The mesh in force: what `with mesh:` provides, and where it may be used.

A mesh in force around a trace is not an argument of what is traced. Read there, its tables would become
constants of a compiled program that is found again, by its arguments, under another mesh. So it is only read
under the trace that it was put in force under, and in the loops and branches inside of that. Transformations
that run at once (grad, jvp, vmap outside of jit) keep nothing and don't count.
"""

from __future__ import annotations

import weakref
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jax.extend.core import get_opaque_trace_state

from fieldjax.connectivity.traces import fenced, is_under, recorder

if TYPE_CHECKING:
    from fieldjax.connectivity.mesh import Mesh
    from fieldjax.connectivity.view import MeshView


@dataclass(frozen=True, slots=True, eq=False)
class Ambient:
    """A mesh in force and the trace state at the entry of its `with`."""

    mesh: Mesh | MeshView
    state: Any
    """What `jax.extend.core.get_opaque_trace_state` returned at entry."""
    recorder: weakref.ref[Any] | None
    """The trace that recorded operations at entry, if one did."""
    fence: Any
    """Keeps JAX from finding what it traced under another mesh in the same trace."""

    def is_current(self) -> bool:
        """Whether what runs now is run, or recorded by the same trace or inside of it, as at the entry."""
        if self.state == get_opaque_trace_state():
            return True
        return recorder() is None if self.recorder is None else is_under(self.recorder)


_in_force: ContextVar[tuple[Ambient, ...]] = ContextVar("fieldjax_meshes_in_force", default=())


def ambient() -> Ambient | None:
    """The innermost mesh in force in this thread (or asynchronous task)."""
    stack = _in_force.get()
    return stack[-1] if stack else None


def put_in_force(mesh: Mesh | MeshView) -> None:
    """Enter `with mesh:`."""
    recording = recorder()
    fence = None if recording is None else fenced()
    if fence is not None:
        fence.__enter__()
    _in_force.set((*_in_force.get(), Ambient(mesh, get_opaque_trace_state(), recording, fence)))


def withdraw() -> None:
    """Leave the innermost `with mesh:`."""
    *rest, left = _in_force.get()
    _in_force.set(tuple(rest))
    if left.fence is not None:
        left.fence.__exit__(None, None, None)
