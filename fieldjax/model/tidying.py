"""Leaves out what changes nothing: an extension onto the domain that a value has already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fieldjax.ir.graph import Value
from fieldjax.ir.operations.layout import Extend

if TYPE_CHECKING:
    from fieldjax.model.recorder import Recording


def tidied(recording: Recording, values: Sequence[Value]) -> list[Value]:
    """The same values, of which those that are new to the recording are simpler where they can be."""
    new: dict[Value, Value] = {}
    places = dict[Value, object]()
    for node in recording.unknown_nodes([v.node for v in values]):
        made = node.reading(new)
        given = [places[v] if v in places else recording.places[v] for v in made.inputs]
        if isinstance(made.operation, Extend) and given[0] == given[1] and made.inputs[0].type == made.types[0]:
            new[node.results()[0]] = made.inputs[0]
            continue
        found = made.operation.available(made, given)  # type: ignore[arg-type]
        places.update(zip(made.results(), found, strict=True))
        if made is not node:
            new.update(zip(node.results(), made.results(), strict=True))
    return [new.get(v, v) for v in values]
