"""The short way of a call that was made before: no recording, no inference, one lookup.

It serves plain calls: fields and Python numbers as positional arguments, concrete data, a mesh or a dict of
connectivities. Whatever else comes takes the long way, which is always right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.core import Tracer
from jax.extend.core import get_opaque_trace_state

from fieldjax.connectivity import Connectivity, Mesh, ambient
from fieldjax.dtypes import x64_enabled
from fieldjax.embedded.field import Field, FieldKind
from fieldjax.embedded.masks import FieldMask

NUMBERS = (float, int, bool)
SMALL = 2**31
MOST_ROUTES = 256


class Route:
    """Where a kind of call leads: a compiled program, its tables, and what its results are."""

    __slots__ = ("on_numpy", "outputs", "picks", "run", "unflatten")

    def __init__(
        self,
        run: Callable[..., Any],
        picks: tuple[int, ...] | None,
        outputs: tuple[tuple[FieldKind, tuple[FieldMask, ...]], ...],
        on_numpy: bool,
        unflatten: Callable[[list[Field]], Any] | None,
    ) -> None:
        self.run, self.picks, self.outputs = run, picks, outputs
        self.on_numpy, self.unflatten = on_numpy, unflatten


class Routes:
    """The routes of one operator. Entries hold no table: static data of meshes, and programs."""

    def __init__(self) -> None:
        self._by_arguments: dict[Any, tuple[tuple[str, ...], dict[Any, Route]]] = {}
        self._state: Any = None

    def call(self, args: tuple[Any, ...], source: Any) -> Any:
        """The result, or NotImplemented where no route is known."""
        state = get_opaque_trace_state()
        if state != self._state:
            return NotImplemented
        kinds, arrays = [], []
        for x in args:
            if type(x) is Field:
                kind = x._kind or x.kind
                if kind is None:
                    return NotImplemented
                kinds.append(kind)
                arrays.append(x._array)
            elif type(x) in NUMBERS and -SMALL < x < SMALL:
                kinds.append(type(x))
                arrays.append(x)
            else:
                return NotImplemented
        found = self._by_arguments.get((x64_enabled(), *kinds))
        if found is None:
            return NotImplemented
        names, routes = found
        if names:
            token, tables = _tables(source, names, state)
            route = routes.get(token)
            if route is None:
                return NotImplemented
            arrays += tables if route.picks is None else [tables[n] for n in route.picks]
        else:
            route = routes[None]
        return _results(route, route.run(*arrays), state)

    def add(
        self, args: tuple[Any, ...], source: Any, names: tuple[str, ...], results: Any, run: Any, on_numpy: bool
    ) -> None:
        """Keeps the route of a call that went the long way and was plain."""
        state = get_opaque_trace_state()
        kinds = _plain_kinds(args)
        flat, tree = jax.tree_util.tree_flatten(results, is_leaf=lambda x: isinstance(x, Field))
        if kinds is None or any(f.kind is None for f in flat):
            return
        token, picks = None, None
        if names:
            token, _ = _tables(source, names, state)
            if token is None:
                return
            mesh = _source(source, state)
            picks = tuple(_position(mesh, n) for n in names) if isinstance(mesh, Mesh) else None
        single = type(results) is Field
        unflatten = None if single else lambda fields: jax.tree_util.tree_unflatten(tree, fields)
        outputs = tuple((f.kind, f.masks) for f in flat)
        route = Route(run, picks, outputs, on_numpy, unflatten)
        self._state = state
        if len(self._by_arguments) >= MOST_ROUTES:
            self.clear()
        known = self._by_arguments.setdefault((x64_enabled(), *kinds), (names, {}))
        if known[0] == names:
            while len(known[1]) >= 64:
                known[1].pop(next(iter(known[1])))
            known[1][token] = route

    def clear(self) -> None:
        """Forgets all routes."""
        self._by_arguments.clear()


def _plain_kinds(args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    kinds: list[Any] = []
    for x in args:
        if type(x) is Field and x.kind is not None:
            kinds.append(x.kind)
        elif type(x) in NUMBERS:
            kinds.append(type(x))
        else:
            return None
    return tuple(kinds)


def _source(source: Any, state: Any) -> Any:
    """The offset provider, or the mesh in force under this trace state."""
    if source is not None:
        return source
    current = ambient()
    return current.mesh if current is not None and current.state == state else None


def _tables(source: Any, names: tuple[str, ...], state: Any) -> tuple[Any, Sequence[Any]]:
    """What identifies the tables' contents, and the tables (of a mesh: all of them)."""
    source = _source(source, state)
    if type(source) is Mesh:
        children, structure = source._flatten()
        return structure, children
    if type(source) is not dict:
        return None, ()
    structures, tables = [], []
    for name in names:
        entry = source.get(name)
        if type(entry) is not Connectivity:
            return None, ()
        children, structure = entry._flatten()
        structures.append(structure)
        tables.append(children[0])
    if any(isinstance(t, Tracer) for t in tables):
        return None, ()
    return tuple(structures), tables


def _position(mesh: Mesh, name: str) -> int:
    """Where the table of `name` stands among the leaves of a mesh."""
    position = 0
    for other, entry in mesh.items():
        if other == name:
            break
        position += entry.structure.width if isinstance(entry, Connectivity) else 0
    return position


def _results(route: Route, arrays: Sequence[Any], state: Any) -> Any:
    if route.on_numpy:
        arrays = [np.asarray(a) for a in arrays]
    of_kind = Field._of_kind
    fields = [of_kind(a, kind, masks, state) for a, (kind, masks) in zip(arrays, route.outputs, strict=True)]
    return fields[0] if route.unflatten is None else route.unflatten(fields)
