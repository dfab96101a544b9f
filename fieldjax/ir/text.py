"""The text form of a graph: one line per node, values numbered in order, types, source lines."""

from __future__ import annotations

from fieldjax.ir.graph import Graph, Node, Value
from fieldjax.ir.operations.literal import Literal, Parameter


def to_text(graph: Graph) -> str:
    """A graph as text. Equal graphs print alike but for names and source lines.

    A line reads `%3 = multiply %1 %2 : float64[Edge, K]  # model.py:12`.
    """
    names: dict[Value, str] = {}
    inputs = [_named(v, f"%{v.node.operation}", names) for v in graph.inputs]
    lines = [f"graph({', '.join(f'{n}: {v.type}' for n, v in zip(inputs, graph.inputs, strict=True))})"]
    for node in graph.nodes:
        if not isinstance(node.operation, Parameter):
            lines.append(f"  {_line(node, names)}")
            lines += [f"      {line}" for line in _body(node)]
    lines.append(f"  return {', '.join(names[v] for v in graph.outputs)}")
    return "\n".join(lines)


def _body(node: Node) -> list[str]:
    """The graph inside of an operation."""
    body = getattr(node.operation, "body", None)
    return to_text(body).splitlines() if isinstance(body, Graph) else []


def _named(value: Value, name: str, names: dict[Value, str]) -> str:
    taken = set(names.values())
    unique = (
        name if name not in taken else next(f"{name}.{n}" for n in range(len(taken) + 1) if f"{name}.{n}" not in taken)
    )
    names[value] = unique
    return unique


def _line(node: Node, names: dict[Value, str]) -> str:
    results = node.results()
    for value in results:
        names[value] = f"%{len(names)}"
    left = ", ".join(names[v] for v in results)
    types = ", ".join(_type(v, names) for v in results)
    where = f"  # {node.location}" if node.location else ""
    if isinstance(node.operation, Literal):
        return f"{left} = literal {node.operation} : {types}{where}"
    operands = "".join(f" {names[v]}" for v in node.inputs)
    return f"{left} = {node.operation}{operands} : {types}{where}"


def _type(value: Value, names: dict[Value, str]) -> str:
    masks = [f"{names[m.table]}{'' if m.slot is None else f'[{m.slot}]'}" for m in value.masks]
    shown = ", ".join(masks)
    return f"{value.type} masked by {shown}" if masks else str(value.type)
