"""Assignment: a field with a box of its domain replaced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fieldjax.domain import Domain
from fieldjax.ir.graph import Node
from fieldjax.ir.operation import Place, Roots, field_domain, field_types
from fieldjax.ir.operations.concat import ConcatWhere
from fieldjax.ir.types import FieldType, Type


@dataclass(frozen=True)
class Overlay(ConcatWhere):
    """The first input inside `box`, the second outside: `second[box] = first`, as a new field.

    It lives where the second input does. What is computed inside the box is computed for the box: scans take
    their column from it.
    """

    def types(self, *inputs: Type) -> tuple[FieldType, ...]:
        _, base = field_types(inputs)
        return (FieldType(base.dims, base.dtype),)

    def available(self, node: Node, places: Sequence[Place]) -> tuple[Domain, ...]:
        return (field_domain(places[1]),)

    def bounds(self, node: Node, places: Sequence[Place]) -> tuple[Domain, ...]:
        return self.available(node, places)

    def roots_of_inputs(self, node: Node, roots: Roots) -> Sequence[Roots]:
        return [dict(zip(self.box.dims, self.box.ranges, strict=True)), roots]

    def __str__(self) -> str:
        return f"overlay[{self.box}]"
