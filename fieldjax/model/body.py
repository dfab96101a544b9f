"""The body of a loop or of an equation while it is recorded: once, for all the times that it runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from fieldjax.connectivity import is_table
from fieldjax.embedded.leaves import parameter
from fieldjax.errors import ArgumentError, DomainError, DtypeError, TracingError, user_location
from fieldjax.ir.graph import Mask, Value
from fieldjax.ir.operation import record
from fieldjax.ir.operations.pointwise import Cast
from fieldjax.model.recorder import Recording
from fieldjax.model.variable import Variable


class BodyRecording(Recording):
    """What a body records. What it reads of the recording around it becomes an input.

    Of a variable from outside it keeps what it was when it was first read, and what it is now: unlike values,
    variables are assigned to, and of two that had the same value one may be.
    """

    def __init__(self, outer: Recording) -> None:
        super().__init__()
        self.outer, self.depth = outer, outer.depth + 1
        self._read: dict[Value, Value] = {}
        self._starts: dict[Variable, Value] = {}
        self._now: dict[Variable, Value] = {}
        self._ended: str | None = None

    @contextmanager
    def opened(self, what: str) -> Iterator[None]:
        """What is done with variables meanwhile is recorded here; variables of the body are of no use afterwards."""
        self.outer.inside = self
        try:
            yield
        finally:
            self._ended, self.outer.inside = what, None

    @property
    def innermost(self) -> Recording:
        """As of every recording. Raises TracingError where the body has ended."""
        if self._ended is not None:
            raise TracingError(
                f"this value is inside of {self._ended} that has ended",
                location=user_location(),
                hints=["return it from the body, or assign it to a variable from outside with `out=`"],
            )
        return super().innermost

    def new_input(self, name: str, like: Value, place: Any) -> Value:
        """An input of the body like a value of the recording around it."""
        masks = [Mask(self._brought(m.table), m.slot, m.moved) for m in like.masks]
        value = parameter(name, like.type, masks)
        self.enter(value.node, [place])
        return value

    def known(self, x: Any) -> Value:
        """A field, an array or a connectivity from outside."""
        return self._brought(self.outer.known(x))

    def known_value(self, x: Any) -> Value | None:
        """What was met before, outside."""
        value = self.outer.known_value(x)
        return None if value is None else self._brought(value)

    def _brought(self, value: Value) -> Value:
        if value not in self._read:
            self._read[value] = self.new_input(f"read{len(self._read)}", value, self.outer.places[value])
        return self._read[value]

    def _from_other(self, variable: Variable) -> Value:
        if variable not in self._now:
            value = self.outer.value(variable)
            start = self.new_input(f"outer{len(self._now)}", value, self.outer.places[value])
            self._starts[variable] = self._now[variable] = start
        return self._now[variable]

    def assign(self, variable: Variable, value: Value) -> None:
        """From now on the variable stands for another value, in the body alone where it is from outside."""
        if variable.home is self:
            variable.value = value
        else:
            self._from_other(variable)
            self._now[variable] = value

    @property
    def assigned(self) -> dict[Variable, tuple[Value, Value]]:
        """The variables from outside that were assigned to: what they were, and what they are now, in the body."""
        self.settle()
        return {v: (start, self._now[v]) for v, start in self._starts.items() if self._now[v] != start}

    def reads(self) -> dict[Value, Value]:
        """Which value outside each input is that nobody assigned to, by the input."""
        read = {inner: outer for outer, inner in self._read.items()}
        changing = self.assigned
        read.update((start, self.outer.value(v)) for v, start in self._starts.items() if v not in changing)
        return read

    def kept(self) -> frozenset[Value]:
        """What variables from outside stand for now."""
        return frozenset(self._now.values())

    def on_replaced(self, new: Mapping[Value, Value]) -> None:
        """Variables from outside follow their values too."""
        super().on_replaced(new)
        self._now = {variable: new.get(v, v) for variable, v in self._now.items()}

    def result(self, value: Value) -> Any:
        """Raises TracingError: what is in a body stands for all the times that it runs."""
        raise TracingError(
            "a value in the body of a loop has no data: it stands for all steps", location=user_location()
        )

    def fitting(self, x: Any, carry: Value) -> Value:
        """What the body gives, like the carry that it replaces.

        Raises DtypeError or DomainError where it is of another dtype or lives elsewhere, ArgumentError for a table.
        """
        value = self.value(x)
        if value.is_table or carry.is_table or is_table(x):
            raise ArgumentError("a table can't be carried: read it from the model", location=user_location())
        if value.field_type.weak:
            value = self.add(record(Cast(carry.field_type.dtype), value, location=user_location())[0]).value
        if value.field_type.dtype != carry.field_type.dtype:
            raise DtypeError(
                f"the carry begins as {carry.type} and becomes {value.type}",
                location=user_location(),
                hints=["convert one of them with `astype`"],
            )
        if value.dims != carry.dims or self.domain(value) != self.domain(carry):
            raise DomainError(
                "the carry changes its domain from step to step",
                location=user_location(),
                notes=[f"it begins on  {self.domain(carry)}", f"it becomes    {self.domain(value)}"],
            )
        return value
