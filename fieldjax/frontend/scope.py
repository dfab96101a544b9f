"""What one recording can look up: the tables that the caller provides, and the data it touched from outside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from fieldjax.connectivity import FieldOffset, Provider, Table, identity_of, is_table, resolve
from fieldjax.domain import Dimension
from fieldjax.embedded.leaves import LeafType, leaf_type, parameter, table_type
from fieldjax.errors import TracingError, user_location
from fieldjax.frontend.guards import Guards
from fieldjax.ir.graph import Mask, Value
from fieldjax.ir.operation import Operation

_is_recording: ContextVar[bool] = ContextVar("fieldjax_is_recording", default=False)


@contextmanager
def in_progress() -> Iterator[None]:
    """A function is being recorded: operators without arguments that are called meanwhile belong to it."""
    token = _is_recording.set(True)
    try:
        yield
    finally:
        _is_recording.reset(token)


def is_recording() -> bool:
    """Whether a function is being recorded in this thread."""
    return _is_recording.get()


Source = tuple[str, Any]
"""Where a table comes from: ("leaf", n) or ("mask", n) of the call, ("provider", name), ("captured", n)."""


def is_same_here(table: Table, other: Table) -> bool:
    """Whether two tables are the same in the current trace: one may have been lifted there already."""
    return identity_of(resolve(table)) is identity_of(resolve(other))


class Scope:
    """One recording. Tables and captured data become inputs of its graph, once each."""

    def __init__(self, provider: Provider | None = None, guards: Guards | None = None) -> None:
        self.provider = provider
        self.guards = guards
        self.tables: dict[str, Value] = {}
        self.captured: list[tuple[Any, Value]] = []
        self.same: list[tuple[Source, Source]] = []
        """Tables that came from two sources, which the recording takes for one."""
        self._standing: list[tuple[Table, Value, Source]] = []

    def table(self, offset: FieldOffset) -> Value:
        """The provider's table for an offset. Raises OffsetProviderError where it has none that fits."""
        return self._table(offset.value, self._provider()[offset])

    def table_over(self, local: Dimension) -> Value:
        """The provider's table whose neighbours are counted by `local`."""
        return self._table(*self._provider().find_local(local))

    def _table(self, name: str, connectivity: Any) -> Value:
        if name not in self.tables:
            self.tables[name] = parameter(name, table_type(connectivity))
        return self.standing(connectivity, ("provider", name), self.tables[name])

    def standing(self, table: Table, source: Source, value: Value) -> Value:
        """What stands for a table here: `value`, or the one that stands for the same table from another source."""
        for known, stands, other in self._standing:
            if is_same_here(known, table):
                if other != source and (other, source) not in self.same:
                    self.same.append((other, source))
                return stands
        self._standing.append((table, value, source))
        return value

    def connectivity(self, table: Value) -> Any:
        """The connectivity that a recorded table stands for."""
        return next(known for known, value, _ in self._standing if value == table)

    def _provider(self) -> Provider:
        if self.provider is None:
            raise TracingError(
                "an offset is looked up outside of an operator call",
                location=user_location(),
                hints=["call the operator with `offset_provider=mesh`"],
            )
        return self.provider

    def capture(self, data: Any) -> Value:
        """A field, connectivity or JAX scalar from outside, as one more input that is read at each call."""
        for n, (known, value) in enumerate(self.captured):
            if is_table(known) and is_table(data) and is_same_here(known, data):
                return self.standing(data, ("captured", n), value)
            if known is data:
                return value
        masked: list[Table] = []
        kind = leaf_type(data, masked)
        tables = [self.capture(t) for t in masked]
        number = len(self.captured)
        value = self._captured(kind, tables, number)
        self.captured.append((data, value))
        return self.standing(data, ("captured", number), value) if is_table(data) else value

    def _captured(self, kind: LeafType, tables: Sequence[Value], number: int) -> Value:
        masks = [Mask(tables[position], slot, moved) for position, slot, moved in kind.masks]
        return parameter(f"captured{number}", kind.type, masks)

    @property
    def outer(self) -> Scope | None:
        """The recording around this one, where this one is the body of a scan."""
        return None

    @property
    def is_blank(self) -> bool:
        """Whether it belongs to nothing yet: constants, before they meet a recorded value."""
        return self.provider is None and self.guards is None and self.outer is None

    def brought(self, value: Value) -> Value:
        """What a value of another recording is in this one."""
        return value

    def check(self, operation: Operation) -> None:
        """Raises TracingError where the recording has no place for an operation."""

    def adopt(self, other: Scope) -> None:
        """Takes over what a recording without a provider captured."""
        self.captured += [c for c in other.captured if not any(c is known for known in self.captured)]
