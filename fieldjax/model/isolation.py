"""A part of a graph on its own: between values that become its inputs and values that it gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fieldjax.embedded.leaves import parameter
from fieldjax.ir.graph import Graph, Node, Value, topological, values_read
from fieldjax.ir.operations.literal import Literal, Parameter


def isolated(inputs: Sequence[Value], outputs: Sequence[Value]) -> Graph:
    """The graph of `outputs` on new parameters in place of `inputs`.

    Every parameter that is read on the way, and every table of a mask, must be among the inputs.
    """
    new: dict[Value, Value] = {}
    # Tables first: the masks of other inputs name them.
    for n in sorted(range(len(inputs)), key=lambda n: not inputs[n].is_table):
        value = inputs[n]
        masks = [replace(m, table=new[m.table]) for m in value.masks]
        new[value] = parameter(f"in{n}", value.type, masks)
    given = frozenset(v.node for v in inputs)
    for node in topological(outputs, leaves=given):
        if node in given:
            continue
        assert not isinstance(node.operation, Parameter), node
        made = node.reading(new)
        for value, result in zip(node.results(), made.results(), strict=True):
            new.setdefault(value, result)
    return Graph(tuple(new[v] for v in inputs), tuple(new[v] for v in outputs))


def reads_of(nodes: Sequence[Node]) -> list[Value]:
    """What `nodes` read that they don't compute, in the order of reading. Literals are left out."""
    own = set(nodes)
    read = (v for node in nodes for v in values_read(node))
    return [v for v in dict.fromkeys(read) if v.node not in own and not isinstance(v.node.operation, Literal)]
