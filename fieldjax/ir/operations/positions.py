"""The positions along a dimension, as a field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fieldjax.domain import Dimension, Domain
from fieldjax.errors import DomainError
from fieldjax.ir.evaluation import At, Slots
from fieldjax.ir.graph import Mask, Node, Value
from fieldjax.ir.operation import Operation, Place, field_domain
from fieldjax.ir.types import FieldType, Type


@dataclass(frozen=True)
class Positions(Operation):
    """`result[i] = i` along `dimension`, where the input lives; of the input nothing else is read.

    With `only`, the input must live there: what was recorded for these positions holds for no others.
    """

    dimension: Dimension
    dtype: np.dtype
    only: Domain | None = None

    def types(self, *inputs: Type) -> tuple[FieldType, ...]:
        (like,) = inputs
        assert isinstance(like, FieldType) and self.dimension in like.dims
        return (FieldType((self.dimension,), self.dtype),)

    def masks(self, *inputs: Value) -> tuple[tuple[Mask, ...], ...]:
        return ((),)

    def available(self, node: Node, places: Sequence[Place]) -> tuple[Domain, ...]:
        domain = field_domain(places[0]).restrict((self.dimension,))
        if self.only is not None and domain != self.only:
            raise DomainError(
                f"what was recorded for {self.only} is asked for {domain}",
                location=node.location,
                hints=["record the model anew for this domain"],
            )
        return (domain,)

    def demand(self, node: Node, wanted: Sequence[Domain | None], places: Sequence[Place]) -> tuple[Domain | None, ...]:
        return (None,)

    def evaluate(self, at: At, domain: Domain, slots: Slots) -> Any:
        if self.dimension in slots:
            return at.xp.asarray(slots[self.dimension].position, self.dtype)
        span = domain.range_of(self.dimension)
        return at.xp.arange(int(span.start), int(span.stop), dtype=self.dtype)

    def jvp(self, node: Node, tangents: Sequence[Value | None]) -> tuple[Value | None, ...]:
        return (None,)

    def vjp(self, node: Node, cotangents: Sequence[Value | None]) -> tuple[Value | None, ...]:
        return (None,)

    def __str__(self) -> str:
        return f"positions[{self.dimension.value}]"
