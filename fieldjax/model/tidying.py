"""Leaves out what changes nothing where values live now: extensions onto the domain that a value has, unneeded reads.

A derivative extends cotangents to the domains of what they belong to, and scatters them there. Whole fields have these
domains already, and any field of the same domain says as much: an adjoint of linear steps then reads no state.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

from fieldjax.domain import Domain
from fieldjax.errors import NarrowingError
from fieldjax.ir.graph import Graph, Node, Value
from fieldjax.ir.operation import Place, record
from fieldjax.ir.operations.call import Call, read_only
from fieldjax.ir.operations.layout import Extend
from fieldjax.ir.operations.literal import Parameter
from fieldjax.ir.operations.pointwise import Pointwise
from fieldjax.ir.planning import identity_of_place
from fieldjax.model.executable import stats_of

FIRST = Pointwise("first")
"""Its first operand, where the others live."""

Body = tuple[Graph, tuple[int, ...]]
"""A body, and which of the inputs it reads."""


def tidied(graph: Graph, places: dict[Value, Place], known: dict[Hashable, Body] | None = None) -> Graph:
    """The graph without such extensions, also inside of calls and regions, which then read what they compute with.

    Adds where its new values live to `places`. `known` are bodies that were tidied for the same places before.
    """
    known = {} if known is None else known
    new: dict[Value, Value] = {}
    for node in graph.nodes:
        made = node.reading(new)
        if isinstance(made.operation, Extend) and _changes_nothing(made, places):
            new[node.results()[0]] = made.inputs[0]
            continue
        if isinstance(made.operation, Call):
            made = _tidied_call(made, made.operation, places, known)
        if made is not node:
            new.update(zip(node.results(), made.results(), strict=True))
            places.update(zip(made.results(), (places[v] for v in node.results()), strict=True))
    return Graph(graph.inputs, tuple(new.get(v, v) for v in graph.outputs)) if new else graph


def _changes_nothing(extension: Node, places: Mapping[Value, Place]) -> bool:
    value, like = extension.inputs
    return places[value] == places[like] and (value.type,) == extension.types


def _tidied_call(node: Node, call: Call, places: Mapping[Value, Place], known: dict[Hashable, Body]) -> Node:
    given = [places[v] for v in node.inputs]
    key = (call.body, *map(identity_of_place, given))
    if key not in known:
        known[key] = _tidied_body(call.body, given, known)
    body, reads = known[key]
    if body is call.body:
        return node
    return record(replace(call, body=body), *(node.inputs[n] for n in reads), location=node.location)[0].node


def _tidied_body(body: Graph, given: Sequence[Place], known: dict[Hashable, Body]) -> Body:
    """The body for these places: the same one for all that its values have the same domains for."""
    as_it_is = body, tuple(range(len(body.inputs)))
    try:
        places = places_in(body, dict(zip(body.inputs, given, strict=True)))
    except NarrowingError:  # of a value that nobody needs as a whole
        return as_it_is

    def make() -> Body:
        own = dict(places)
        found = _reading_less(tidied(body, own, known), own)
        if found is body:
            return as_it_is
        made, reads = read_only(found)
        # What is compiled for it counts as compiled for the body.
        made.derived("stats", lambda: stats_of(body))
        return made, reads

    return body.derived(("tidied", domains_of(places)), make)


def _reading_less(graph: Graph, places: Mapping[Value, Place]) -> Graph:
    """The graph with inputs of which only the domain is of use replaced by others that live there and are read."""
    read = _read(graph, places)
    others: dict[Hashable, Value] = {}
    for value in graph.inputs:
        if value in read and not value.is_table:
            others.setdefault((value.type, places[value]), value)
    unread = (v for v in graph.inputs if v not in read and not any(m.slot is None for m in v.masks))
    new = {v: others[key] for v in unread if not v.is_table and (key := (v.type, places[v])) in others}
    if not new:
        return graph
    for node in graph.nodes:
        if (made := node.reading(new)) is not node:
            new.update(zip(node.results(), made.results(), strict=True))
    return Graph(graph.inputs, tuple(new.get(v, v) for v in graph.outputs))


def _read(graph: Graph, places: Mapping[Value, Place]) -> set[Value]:
    """The values of which elements are read, from the outputs back."""
    read = set(graph.outputs)
    for node in reversed(graph.nodes):
        results = node.results()
        if isinstance(node.operation, Parameter) or read.isdisjoint(results):
            continue
        wanted = [place if isinstance(place := places[v], Domain) and v in read else None for v in results]
        asked = node.operation.demand(node, wanted, [places[v] for v in node.inputs])
        operands = [v for v, box in zip(node.inputs, asked, strict=True) if box is not None]
        read.update(operands[:1] if node.operation == FIRST else operands)
    return read


def places_in(graph: Graph, given: Mapping[Value, Place]) -> dict[Value, Place]:
    """Where every value of a graph lives when its inputs live at the places given."""
    places = dict(given)
    for node in graph.nodes:
        if not isinstance(node.operation, Parameter):
            found = node.operation.available(node, [places[v] for v in node.inputs])
            places.update(zip(node.results(), found, strict=True))
    return places


def domains_of(places: Mapping[Value, Place]) -> tuple[Domain | None, ...]:
    """The domains among some places, in order; None for tables."""
    return tuple(p if isinstance(p, Domain) else None for p in places.values())
