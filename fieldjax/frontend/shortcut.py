"""The short way of a call of `fieldjax.jit` that was made before: JAX takes the arguments apart, one lookup.

What a call reads (arguments, the mesh in force, meshes in closures and globals) is one pytree. Its structure
and the abstract values of its leaves decide everything; meshes of equal contents have equal structures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.core import Tracer
from jax.extend.core import get_opaque_trace_state

from fieldjax.connectivity import Mesh, Table, identity_of, is_table
from fieldjax.domain import Dimension
from fieldjax.dtypes import x64_enabled
from fieldjax.embedded.field import Field
from fieldjax.embedded.leaves import steady
from fieldjax.embedded.masks import FieldMask
from fieldjax.frontend.arguments import ArraySpec, FieldSpec, is_whole
from fieldjax.frontend.returns import Returned

MOST = 256
NUMBERS = (float, int, bool)


class LongWay(BaseException):
    """A short cut has to trace after all, and that takes what only the long way knows."""


class Shortcut(NamedTuple):
    """Which leaves are the arrays and the tables of a plan, and how its results are put together."""

    run: Any
    arrays: tuple[int, ...]
    tables: tuple[int, ...]
    tree: Any
    results: tuple[tuple[Any, tuple[FieldMask, ...]] | None, ...]
    """For each result the domain and masks of a field; None for an array."""


class Shortcuts:
    """The shortcuts of one function. They hold no table."""

    def __init__(self) -> None:
        self._known: dict[Any, Shortcut] = {}
        self._state: Any = None

    def call(self, everything: Any) -> Any:
        """The result, or NotImplemented where no shortcut is known."""
        state = get_opaque_trace_state()
        if state != self._state:
            return NotImplemented
        leaves, structure = jax.tree_util.tree_flatten(everything)
        known = self._known.get((structure, x64_enabled(), *map(_abstract, leaves)))
        if known is None:
            return NotImplemented
        arrays = tuple([steady(leaves[n]) for n in known.arrays])
        try:
            outputs = known.run(arrays, [(leaves[n],) for n in known.tables])
        except LongWay:
            return NotImplemented
        results = [
            a if place is None else Field._trusted(a, place[0], place[1], state)
            for a, place in zip(outputs, known.results, strict=True)
        ]
        return jax.tree_util.tree_unflatten(known.tree, results)

    def add(
        self,
        everything: Any,
        run: Any,
        arrays: Sequence[Any],
        tables: Sequence[Table],
        returned: Returned,
    ) -> None:
        """Keeps the shortcut of a call that went the long way, where there is one."""
        leaves, structure = jax.tree_util.tree_flatten(everything)
        at_arrays, at_tables = _positions(everything)
        if (len(at_arrays), len(at_tables)) != (len(arrays), len(tables)) or any(t.adjoint is not None for t in tables):
            return
        results = tuple(_place(spec, tables) for spec in returned.specs)
        if returned.rebound or NotImplemented in results or not all(map(_is_data, leaves)):
            return
        if len(self._known) >= MOST:
            self._known.clear()
        self._state = get_opaque_trace_state()
        key = (structure, x64_enabled(), *map(_abstract, leaves))
        self._known[key] = Shortcut(run, at_arrays, at_tables, returned.tree, results)


def _positions(everything: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The positions of the arrays among the leaves, and those of the tables, each table once."""
    arrays: list[int] = []
    tables: dict[Any, int] = {}
    position = 0
    for whole in jax.tree_util.tree_leaves(everything, is_leaf=is_whole):
        for part in whole.values() if isinstance(whole, Mesh) else (whole,):
            if is_table(part):
                tables.setdefault(identity_of(part), position)  # type: ignore[arg-type]
            elif not isinstance(part, Dimension):
                arrays.append(position)
            position += len(jax.tree_util.tree_leaves(part)) if not isinstance(part, Dimension) else 0
    return tuple(arrays), tuple(tables.values())


def _is_data(leaf: Any) -> bool:
    concrete = isinstance(leaf, jax.Array) and not isinstance(leaf, Tracer)
    return concrete or type(leaf) is np.ndarray or type(leaf) in NUMBERS


def _abstract(leaf: Any) -> Any:
    """What a trace depends on; something that equals nothing known for what isn't plain data."""
    if isinstance(leaf, jax.Array):
        return leaf.aval
    return (leaf.shape, leaf.dtype) if type(leaf) is np.ndarray else type(leaf)


def _place(spec: Any, tables: Sequence[Table]) -> Any:
    if isinstance(spec, FieldSpec):
        masks = tuple(FieldMask(identity_of(tables[m[0]]), *m[1:]) for m in spec.masks)
        return spec.domain, masks
    return None if isinstance(spec, ArraySpec) else NotImplemented
