"""What becomes of a concrete connectivity that is met inside a trace.

Under `fieldjax.jit` it is lifted: it becomes one more argument of the compiled program. Under a foreign jit
its table is inlined as a constant of that program, which works, and is said once.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

import jax

from fieldjax.connectivity.traces import is_compiling
from fieldjax.errors import FieldjaxWarning

if TYPE_CHECKING:
    from fieldjax.connectivity.connectivity import Connectivity
    from fieldjax.connectivity.view import Table, TableView


class Lifter(Protocol):
    """The trace of `fieldjax.jit` that is under way."""

    def lift(self, connectivity: Connectivity) -> TableView:
        """The view of a concrete connectivity; may abandon the trace to begin again with it as an argument."""
        ...

    def attach(self) -> None:
        """Abandons the trace to begin again with transposed slots attached."""
        ...


_lifter: ContextVar[Lifter | None] = ContextVar("fieldjax_lifter", default=None)
_warned: weakref.WeakSet[Any] = weakref.WeakSet()


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
    if isinstance(table.table, jax.core.Tracer):  # a view's always is
        return table
    lifter = _lifter.get()
    if lifter is not None:
        return lifter.lift(table)
    if table.structure not in _warned and is_compiling():
        _warned.add(table.structure)
        warnings.warn(
            f"the connectivity {table.structure.domain} -> {table.codomain.value} is closed over by jax.jit: its "
            "table is inlined into the compiled program. Pass it as an argument, or use fieldjax.jit",
            FieldjaxWarning,
            stacklevel=2,
        )
    return table


def want_adjoints() -> None:
    """Tells the trace under way that a derivative wants the transposed slots of its tables."""
    lifter = _lifter.get()
    if lifter is not None:
        lifter.attach()
