"""What becomes of a concrete connectivity that is met inside a trace.

Under `fieldjax.jit` it is lifted: it becomes one more argument of the compiled program. Under a foreign jit
its table is inlined as a constant of that program, which works, and is said once.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

from jax.core import Tracer

from fieldjax.connectivity.questions.explain import show_table
from fieldjax.connectivity.traces import is_compiling, recorders
from fieldjax.errors import user_location, warn

if TYPE_CHECKING:
    from fieldjax.connectivity.connectivity import Connectivity
    from fieldjax.connectivity.view import Table


class Lifter(Protocol):
    """The trace of `fieldjax.jit` that is under way."""

    def lift(self, connectivity: Table) -> Table:
        """The view of a connectivity; may abandon the trace to begin again with it as an argument.

        A traced connectivity that isn't an argument of that trace is returned as it is.
        """
        ...

    def attach(self) -> None:
        """Abandons the trace to begin again with transposed slots attached."""
        ...


_lifter: ContextVar[Lifter | None] = ContextVar("fieldjax_lifter", default=None)
_warned: weakref.WeakSet[Any] = weakref.WeakSet()
_warned_traces: weakref.WeakSet[Any] = weakref.WeakSet()


@contextmanager
def lifting(lifter: Lifter) -> Iterator[None]:
    """Concrete connectivities that are met inside belong to `lifter`."""
    token = _lifter.set(lifter)
    try:
        yield
    finally:
        _lifter.reset(token)


def resolve(table: Table) -> Table:
    """The table as the current trace may use it: lifted, or itself. Warns where it is inlined."""
    lifter = _lifter.get()
    if lifter is not None:
        return lifter.lift(table)
    if isinstance(table.table, Tracer):  # a view's always is
        return table
    concrete: Any = table
    if concrete.structure not in _warned and is_compiling():
        _warned.add(concrete.structure)
        _warn(concrete)
    return table


def _warn(table: Connectivity) -> None:
    """Once per trace: a mesh has many tables."""
    *_, outermost = recorders()
    if outermost in _warned_traces:
        return
    _warned_traces.add(outermost)
    message = (
        f"the connectivity {show_table(table.domain, table.codomain)} is closed over by jax.jit: its table is "
        "inlined into the compiled program, and so is every other. Pass the mesh as an argument, or use fieldjax.jit"
    )
    warn(message, user_location())


def want_adjoints() -> None:
    """Tells the trace under way that a derivative wants the transposed slots of its tables."""
    lifter = _lifter.get()
    if lifter is not None:
        lifter.attach()
