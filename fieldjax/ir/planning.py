"""Plans of graphs inside of graphs, kept with the graph: the same body is planned once for the same places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fieldjax.connectivity import identity_of
from fieldjax.domain import Domain
from fieldjax.ir.graph import Graph
from fieldjax.ir.inference import infer
from fieldjax.ir.operation import Place
from fieldjax.ir.plan import Plan

MOST_PLANS = 16
"""Plans that are kept for each graph."""


def plan_of(
    graph: Graph,
    places: Sequence[Place],
    wanted: Sequence[Domain | None],
    adjoints: Sequence[tuple[int, int] | None] = (),
) -> Plan:
    """`infer(graph, places, wanted, adjoints)`, remembered."""
    key = (tuple(map(identity_of_place, places)), tuple(wanted), tuple(adjoints))
    plan = graph.plans.get(key)
    if plan is None:
        plan = infer(graph, places, wanted, adjoints)
        while len(graph.plans) >= MOST_PLANS:
            graph.plans.pop(next(iter(graph.plans)), None)
        graph.plans[key] = plan
    return plan


def identity_of_place(place: Place) -> Any:
    """A domain, or what is the same object for tables of the same contents."""
    return place if isinstance(place, Domain) else identity_of(place)  # type: ignore[arg-type]
