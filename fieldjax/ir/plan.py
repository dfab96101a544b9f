"""The plan: everything that inference answered about a graph, and nothing about which mesh was asked.

Two calls with equal plans share one executable (design.md, law 4).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fieldjax.connectivity import TableFacts
from fieldjax.domain import Domain
from fieldjax.ir.graph import Node, Value


@dataclass(frozen=True, slots=True)
class TablePlan:
    """What lowering reads about one table besides its entries."""

    domain: Domain
    skip_value: int | None
    facts: TableFacts
    adjoint: tuple[int, int] | None
    """The shape of the transposed table (elements, in-degree), where it is attached."""


@dataclass(frozen=True, slots=True)
class PlanKey:
    """A plan by value: domains in the order of the graph's nodes and ports, tables in the order of inputs.

    `nested` are the plans of graphs inside of operations, in the order of the nodes.
    """

    domains: tuple[Domain | None, ...]
    outputs: tuple[Domain, ...]
    tables: tuple[TablePlan, ...]
    clip: bool
    nested: tuple[PlanKey, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A plan of one graph, looked up by value."""

    key: PlanKey
    domains: Mapping[Value, Domain | None] = field(repr=False)
    tables: Mapping[Value, TablePlan] = field(repr=False)
    held: frozenset[Value] = field(repr=False)
    """Values that are materialised because a gather reads what a reduction computed."""
    nested: Mapping[Node, tuple[Plan, ...]] = field(repr=False, default_factory=dict)
    """The plans of the graphs inside of operations."""

    @property
    def clip(self) -> bool:
        """Whether an index can leave its field (parts were joined whose hull holds more than was asked)."""
        return self.key.clip

    @property
    def outputs(self) -> tuple[Domain, ...]:
        """The domain of each output: a part of what is computed where a value is asked for twice, or is an input."""
        return self.key.outputs

    def domain(self, value: Value) -> Domain | None:
        return self.domains.get(value)

    def table(self, value: Value) -> TablePlan:
        return self.tables[value]

    def facts(self, value: Value) -> TableFacts:
        return self.tables[value].facts
