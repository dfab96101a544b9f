"""One body for all graphs that do the same: how regions, and the segments between them, share what is compiled."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from fieldjax.domain import Domain
from fieldjax.ir.graph import Graph
from fieldjax.ir.key import named_key

_bodies: weakref.WeakValueDictionary[Any, Graph] = weakref.WeakValueDictionary()


def interned(
    graph: Graph,
    domains: Sequence[Domain | None],
    wanted: Sequence[Domain | None],
    custom_operations_match: bool = False,
) -> tuple[Graph, list[int]]:
    """The one graph that computes the same from inputs on these domains, and the order of the inputs there.

    `domains` are those of the inputs, None for tables; `wanted` those that outputs are asked for. Input `n` of
    the graph that is returned is input `order[n]` of the one that was given. A graph that can't state its
    identity is shared with none; `custom_operations_match` takes custom operations of one name for the same.
    """
    try:
        key = named_key(graph) if custom_operations_match else graph.key
    except TypeError:
        return graph, list(range(len(graph.inputs)))
    order = list(key.inputs)
    identity = (key, tuple(domains[n] for n in order), tuple(wanted))
    found = _bodies.get(identity)
    if found is None:
        found = Graph(tuple(graph.inputs[n] for n in order), graph.outputs)
        found = _bodies.setdefault(identity, found)
    return found, order


def aligned(graph: Graph, other: Graph) -> list[int] | None:
    """The order of the inputs of `graph` in which `other` does the same; None where it doesn't.

    Custom operations count as the same where their names are.
    """
    try:
        mine, theirs = named_key(graph), named_key(other)
    except TypeError:
        return None
    if mine != theirs:
        return None
    order = dict(zip(theirs.inputs, mine.inputs, strict=True))
    return [order[n] for n in range(len(order))]


def states_identity(graph: Graph) -> bool:
    """Whether the graph says all that it does: custom operations don't."""
    try:
        graph.key  # noqa: B018
    except TypeError:
        return False
    return True
