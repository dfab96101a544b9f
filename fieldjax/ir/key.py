"""The structural key: what two graphs must share to compute the same, whatever their names and places.

The walk starts at the outputs, numbers operations and inputs at first visit, and writes down kind,
attributes, types and where each operand comes from. It tells x * x from x * y, and a shared subexpression
from a repeated one, which a hash of hashes can't.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from fieldjax.domain import Dimension, Domain
from fieldjax.ir.graph import Graph, Node, Value
from fieldjax.ir.operations.literal import Parameter
from fieldjax.ir.types import Type


class Named:
    """Base of attributes that can't state their identity, but have a name that may be taken for it."""

    name: str


VERSION = 1
"""Raised whenever an operation changes what it computes for the same attributes."""


@dataclasses.dataclass(frozen=True)
class StructuralKey:
    """The digest and the serialised structure of a graph, and the order in which its inputs are met."""

    digest: bytes
    text: bytes
    inputs: tuple[int, ...]
    """Positions of the graph's inputs in the order of the walk; inputs that nothing reads come last."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StructuralKey) and self.digest == other.digest and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.digest)


_by_name: ContextVar[bool] = ContextVar("fieldjax_key_by_name", default=False)


@contextmanager
def _going_by_name() -> Iterator[None]:
    token = _by_name.set(True)
    try:
        yield
    finally:
        _by_name.reset(token)


def named_key(graph: Graph) -> StructuralKey:
    """The key of a graph in which custom operations count as the same where their names are."""
    with _going_by_name():
        return structural_key(graph)


def same_by_name(first: Any, second: Any) -> bool:
    """Whether two attributes or operations are the same, custom operations of one name being the same."""
    with _going_by_name():
        try:
            return canonical(first) == canonical(second)
        except TypeError:
            return False


def structural_key(graph: Graph) -> StructuralKey:
    """The key of a graph. It is the same in every process."""
    order = _visit_order(graph)
    number = {node: n for n, node in enumerate(order)}
    lines = [f"fieldjax {VERSION}", *(_line(node, number) for node in order)]
    lines.append(f"outputs {' '.join(_source(v, number) for v in graph.outputs)}")
    text = "\n".join(lines).encode()
    position = {v.node: n for n, v in enumerate(graph.inputs)}
    # Those that are met, in that order, and the rest behind them.
    inputs = dict.fromkeys((*(position[n] for n in order if n in position), *range(len(graph.inputs))))
    return StructuralKey(hashlib.sha256(text).digest(), text, tuple(inputs))


def _visit_order(graph: Graph) -> list[Node]:
    """Nodes at first visit, outputs in port order, operands before the nodes that read them."""
    return list(graph.nodes)


def _line(node: Node, number: dict[Node, int]) -> str:
    types = " ".join(_type(t) for t in node.types)
    if isinstance(node.operation, Parameter):
        masks = " ".join(f"{_source(m.table, number)}/{m.slot}/{m.moved}" for m in node.masks[0])
        return f"input {types} {masks}"
    operands = " ".join(_source(v, number) for v in node.inputs)
    return f"{canonical(node.operation)} ({operands}) {types}"


@functools.lru_cache(maxsize=1024)
def _type(x: Type) -> str:
    return canonical(x)


def _source(value: Value, number: dict[Node, int]) -> str:
    return f"{number[value.node]}.{value.port}"


def canonical(x: Any) -> str:
    """An attribute as text that tells different values apart.

    Raises TypeError for what can't state its identity: such an operation can't be shared.
    """
    if isinstance(x, Graph):
        key = structural_key(x) if _by_name.get() else x.key
        return f"graph{key.inputs}({key.text.decode()})"
    if isinstance(x, Named) and _by_name.get():
        return f"named({x.name!r})"
    if isinstance(x, Dimension):
        return f"{x.kind.value}:{x.value!r}"
    if isinstance(x, Domain):
        return f"domain({','.join(f'{canonical(d)}{r.start}:{r.stop}' for d, r in zip(x.dims, x.ranges, strict=True))})"
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        name, attributes = _compared(type(x))
        return f"{name}({','.join(canonical(getattr(x, a)) for a in attributes)})"
    if isinstance(x, tuple):
        return f"({','.join(map(canonical, x))})"
    return "".join(_plain(x))


@functools.cache
def _compared(kind: type) -> tuple[str, tuple[str, ...]]:
    """The full name of a dataclass and its fields that take part in comparisons."""
    fields = tuple(f.name for f in dataclasses.fields(kind) if f.compare)
    return f"{kind.__module__}.{kind.__qualname__}", fields


def _plain(x: Any) -> Iterator[str]:
    import numpy as np

    if x is None or isinstance(x, (bool, int, str, bytes)):
        yield f"{type(x).__name__}:{x!r}"
    elif isinstance(x, float):
        yield f"float:{x.hex()}"
    elif isinstance(x, np.dtype):
        yield f"dtype:{x.name}"
    else:
        raise TypeError(f"{x!r} can't state its identity")
