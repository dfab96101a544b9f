"""The leaves of a graph: parameters, and literals compiled into the program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fieldjax.domain import Domain
from fieldjax.dtypes import of_literal
from fieldjax.ir.evaluation import At, Slots
from fieldjax.ir.graph import Mask, Node, Value
from fieldjax.ir.operation import Operation, Place
from fieldjax.ir.types import FieldType, Type


@dataclass(frozen=True)
class Parameter(Operation):
    """An input of the graph. `name` is for people and takes no part in the graph's key."""

    name: str
    type: Type
    carried: tuple[Mask, ...] = ()

    def types(self, *inputs: Type) -> tuple[Type, ...]:
        return (self.type,)

    def masks(self, *inputs: Value) -> tuple[tuple[Mask, ...], ...]:
        return (self.carried,)

    def available(self, node: Node, places: Sequence[Place]) -> tuple[Domain, ...]:
        raise AssertionError("the domain of a parameter is given")

    def demand(self, node: Node, wanted: Sequence[Domain | None], places: Sequence[Place]) -> tuple[Domain | None, ...]:
        return ()

    def evaluate(self, at: At, domain: Domain, slots: Slots) -> Any:
        raise AssertionError("the array of a parameter is given")

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Literal(Operation):
    """A scalar written in the source. Equal only to a literal of the same type and the same bits."""

    data: bytes
    dtype: np.dtype
    weak: bool

    @staticmethod
    def of(x: Any) -> Literal:
        """The literal of a Python or NumPy scalar."""
        dtype, weak = of_literal(x)
        return Literal(np.asarray(x, dtype).tobytes(), dtype, weak)

    @property
    def scalar(self) -> Any:
        """The value as a NumPy scalar."""
        return np.frombuffer(self.data, self.dtype)[0]

    @property
    def raw(self) -> Any:
        """The value as Python's own scalar where it is weak (JAX tells `x ** 2` from `x ** 2.0`)."""
        return self.scalar.item() if self.weak else self.scalar

    def types(self, *inputs: Type) -> tuple[FieldType, ...]:
        return (FieldType((), self.dtype, self.weak),)

    def available(self, node: Node, places: Sequence[Place]) -> tuple[Domain, ...]:
        return (Domain(),)

    def demand(self, node: Node, wanted: Sequence[Domain | None], places: Sequence[Place]) -> tuple[Domain | None, ...]:
        return ()

    def evaluate(self, at: At, domain: Domain, slots: Slots) -> Any:
        return self.scalar

    def __str__(self) -> str:
        return f"{self.raw!r}"
