"""Calls on values of a recorded model are handed over to the model: recording is by value."""

from __future__ import annotations

import abc
from collections.abc import Iterable
from typing import Any, Protocol

from fieldjax.ir.operation import Operation


class Recorder(Protocol):
    """What a value of a recorded model names as its `recorder`."""

    depth: int
    """How many recordings are around it: bodies of loops are recorded inside of what calls them."""

    def pointwise(self, function: str, *operands: Any) -> Any:
        """Records `function` of values, fields, arrays and scalars."""
        ...

    def apply(self, operation: Operation, *operands: Any) -> Any:
        """Records an operation on values, fields, arrays and scalars."""
        ...

    def call_operator(self, operator: Any, args: Any, kwargs: Any, out: Any, domain: Any, provider: Any) -> Any:
        """Records a call of a field operator or scan operator."""
        ...

    def call_program(self, program: Any, args: Any, kwargs: Any, provider: Any) -> None:
        """Records a call of a program."""
        ...


def recorder_of(leaves: Iterable[Any]) -> Recorder | None:
    """The innermost recorder of the values of recorded models among `leaves`."""
    found: Recorder | None = None
    for leaf in leaves:
        if isinstance(leaf, Handing) and (found is None or leaf.recorder.depth > found.depth):
            found = leaf.recorder
    return found


class Handing(abc.ABC):
    """Base of the values of a recorded model."""

    __slots__ = ()

    @property
    @abc.abstractmethod
    def recorder(self) -> Recorder:
        """Who records what is done with this value."""
