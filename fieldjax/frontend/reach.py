"""Where a function finds the meshes that aren't its arguments: in its variables, and in what hangs on them.

A way leads from a call to an object and is followed again at each call, so that an object that was replaced is
seen. The search for one looks at closures, globals that the function names, defaults, containers and the
attributes of objects; it runs when a trace meets a table that it didn't know of.
"""

from __future__ import annotations

import functools
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import jax
import numpy as np

from fieldjax.connectivity import Connectivity, Mesh, MeshView, TableView, identity_of, is_table
from fieldjax.domain import Dimension, Domain
from fieldjax.embedded.field import Field

MOST_LOOKED_AT = 20_000

Whole = Mesh | MeshView | Connectivity | TableView | dict[str, Any]
"""What a way leads to; of a dict, its connectivities."""

_NOTHING_INSIDE = (
    *(str, bytes, int, float, complex, type(None), types.BuiltinFunctionType, types.CodeType),
    *(np.ndarray, np.generic, jax.Array, Field, Dimension, Domain),
)


class Step(NamedTuple):
    """From an object to one that it holds."""

    kind: str
    key: Any

    def take(self, x: Any) -> Any:
        """Raises AttributeError, LookupError, TypeError or ValueError where there is nothing any more."""
        return _TAKE[self.kind](x, self.key)


_TAKE: dict[str, Callable[[Any, Any], Any]] = {
    "item": lambda x, key: x[key],
    "attribute": getattr,
    "cell": lambda x, key: x.__closure__[key].cell_contents,
    "global": lambda x, key: x.__globals__[key],
}

Way = tuple[Step, ...]
"""Leads from ``(function, args, kwargs)`` of a call to an object."""


def follow(way: Way, call: tuple[Any, ...]) -> Whole | None:
    """The mesh or connectivity at the end of a way now; None where something else is."""
    found: Any = call
    try:
        for step in way:
            found = step.take(found)
    except (AttributeError, LookupError, TypeError, ValueError):
        return None
    if type(found) is dict:
        return _tables_in(found) or None
    return found if _is_whole(found) else None


def variables(function: Callable[..., Any]) -> tuple[Way, ...]:
    """The ways to the variables that a function closes over and to the globals that it names."""
    if not hasattr(function, "__code__"):
        return ()
    return tuple((Step("item", 0), step) for step, _ in _of_function(function))


def way_to(call: tuple[Any, ...], table: Connectivity) -> Way | None:
    """The shortest way from ``(function, args, kwargs)`` to a mesh with a table of these contents, or to it."""
    identity = identity_of(table)
    return next((way for way, x in _walk(call) if _holds(x, identity)), None)


def _is_whole(x: Any) -> bool:
    return is_table(x) or isinstance(x, (Mesh, MeshView))


def _tables_in(x: dict[Any, Any]) -> dict[str, Any]:
    return {name: entry for name, entry in x.items() if is_table(entry) and isinstance(name, str)}


def _holds(x: Any, identity: Any) -> bool:
    if is_table(x):
        return identity_of(x) is identity
    if type(x) is dict or isinstance(x, (Mesh, MeshView)):
        return any(is_table(e) and identity_of(e) is identity for e in list(x.values()))  # type: ignore[arg-type]
    return False


def _walk(call: tuple[Any, ...]) -> Iterator[tuple[Way, Any]]:
    """What can be reached, nearest first; each object once."""
    pending: deque[tuple[Way, Any]] = deque([((), call)])
    seen: dict[int, Any] = {}  # keeps what it names: an id may not come again meanwhile
    names: set[str] = set()
    while pending and len(seen) < MOST_LOOKED_AT:
        way, x = pending.popleft()
        if id(x) in seen or isinstance(x, _NOTHING_INSIDE):
            continue
        seen[id(x)] = x
        yield way, x
        if not _is_whole(x):
            names |= _names_in(getattr(x, "__code__", None))
            pending.extend(((*way, step), inner) for step, inner in _inside(x, names))


def _inside(x: Any, names: set[str]) -> Iterator[tuple[Step, Any]]:
    """What an object holds. Of modules and classes, what some function on the way names."""
    if isinstance(x, dict):
        yield from ((Step("item", key), inner) for key, inner in list(x.items()))
    elif isinstance(x, (list, tuple)):
        yield from ((Step("item", n), inner) for n, inner in enumerate(x))
    elif isinstance(x, types.FunctionType):
        yield from _of_function(x)
        yield from _attributes(x, ("__defaults__", "__kwdefaults__", "__wrapped__"))
    elif isinstance(x, (types.MethodType, functools.partial)) or hasattr(x, "__wrapped__"):
        yield from _attributes(x, ("__self__", "__func__", "func", "args", "keywords", "__wrapped__"))
    elif isinstance(x, types.ModuleType):
        yield from _attributes(x, sorted(names & set(vars(x))))
    else:
        yield from _attributes(x, _attribute_names(x, names))


def _of_function(function: Any) -> Iterator[tuple[Step, Any]]:
    """The variables that a function closes over and the globals that it names; None for those unset."""
    for n, cell in enumerate(function.__closure__ or ()):
        yield Step("cell", n), _content(cell)
    for name in sorted(_names_in(function.__code__)):
        yield Step("global", name), function.__globals__.get(name)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _names_in(code: Any) -> set[str]:
    """The globals and attributes that a function and those inside of it name."""
    if not isinstance(code, types.CodeType):
        return set()
    inner = (c for c in code.co_consts if isinstance(c, types.CodeType))
    return set(code.co_names).union(*map(_names_in, inner))


def _attribute_names(x: Any, names: set[str]) -> list[str]:
    kinds = x.__mro__ if isinstance(x, type) else type(x).__mro__
    slots = [s for kind in kinds for s in _slots(kind)]
    shared = [n for kind in kinds for n in names & set(vars(kind)) if not _is_code(vars(kind)[n])]
    own = [] if isinstance(x, type) else list(getattr(x, "__dict__", ()))
    return list(dict.fromkeys([*own, *slots, *shared]))


def _slots(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _is_code(x: Any) -> bool:
    return hasattr(type(x), "__get__")


def _attributes(x: Any, names: Iterable[str]) -> Iterator[tuple[Step, Any]]:
    for name in names:
        with suppress(Exception):  # of a property of the user's
            yield Step("attribute", name), getattr(x, name)
