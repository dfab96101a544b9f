"""Leaves out what changes nothing: an extension onto the domain that a value has already."""

from __future__ import annotations

from fieldjax.ir.graph import Graph, Node, Value
from fieldjax.ir.operation import Place
from fieldjax.ir.operations.layout import Extend


def tidied(graph: Graph, places: dict[Value, Place]) -> Graph:
    """The graph without extensions that change nothing where its values live now.

    Adds where its new values live to `places`.
    """
    new: dict[Value, Value] = {}
    for node in graph.nodes:
        made = node.reading(new)
        if isinstance(made.operation, Extend) and _changes_nothing(made, places):
            new[node.results()[0]] = made.inputs[0]
        elif made is not node:
            new.update(zip(node.results(), made.results(), strict=True))
            places.update(zip(made.results(), (places[v] for v in node.results()), strict=True))
    return Graph(graph.inputs, tuple(new.get(v, v) for v in graph.outputs)) if new else graph


def _changes_nothing(extension: Node, places: dict[Value, Place]) -> bool:
    value, like = extension.inputs
    return places[value] == places[like] and (value.type,) == extension.types
