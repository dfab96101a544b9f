"""The arguments of a call of `fieldjax.jit`: arrays and tables as run-time data, the rest as a static key."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.extend.core import get_opaque_trace_state

from fieldjax.connectivity import Connectivity, Mesh, MeshView, Table, TableView, ambient, identity_of, is_table
from fieldjax.domain import Dimension, Domain
from fieldjax.dtypes import require_x64, x64_enabled
from fieldjax.embedded.field import Field
from fieldjax.embedded.leaves import is_scalar
from fieldjax.embedded.masks import FieldMask
from fieldjax.errors import ArgumentError, user_location


class FieldSpec(NamedTuple):
    """A field without its array; masks are (position among the tables, local slot, moved)."""

    domain: Domain
    masks: tuple[tuple[int, int | None, bool], ...]


class ArraySpec(NamedTuple):
    """An array or number."""

    aval: Hashable


class TableSpec(NamedTuple):
    """A connectivity: its position among the tables."""

    slot: int


class MeshSpec(NamedTuple):
    """A mesh: names, and the position of each connectivity (or the dimension that stands there)."""

    entries: tuple[tuple[str, int | Dimension], ...]


class StaticSpec(NamedTuple):
    """Anything else that can be hashed."""

    kind: type
    value: Hashable


Spec = FieldSpec | ArraySpec | TableSpec | MeshSpec | StaticSpec


class TableKind(NamedTuple):
    """What is static about a table."""

    domain: Domain
    codomain: Dimension
    skip_value: int | None


@dataclass(frozen=True)
class Arguments:
    """One call, taken apart. `key` is equal for calls that differ in run-time data only."""

    arrays: tuple[Any, ...]
    tables: tuple[Table, ...]
    fields: tuple[Field, ...]
    """The caller's field objects, for those that the function rebinds."""
    tree: Any
    specs: tuple[Spec, ...]
    in_force: MeshSpec | None

    @property
    def kinds(self) -> tuple[TableKind, ...]:
        """What is static about the tables."""
        return tuple(TableKind(t.domain, t.codomain, t.skip_value) for t in self.tables)

    @property
    def key(self) -> Hashable:
        """The static part."""
        return (self.tree, self.specs, self.in_force, self.kinds, x64_enabled())


class Reader:
    """Takes calls of one function apart."""

    def __init__(
        self, function: Callable[..., Any], static_argnums: Sequence[int], static_argnames: Sequence[str]
    ) -> None:
        self._function = function
        self._static = _static_names(function, static_argnums, static_argnames)
        self._reachable = tuple(reachable(function))

    def read(self, args: tuple[Any, ...], kwargs: dict[str, Any], captured: Sequence[Connectivity]) -> Arguments:
        """The arguments, the mesh in force, and the meshes that the function closes over.

        Raises DtypeError for 64-bit data while x64 is off, ArgumentError for what is neither data nor hashable.
        """
        args, kwargs = self._marked(args, kwargs)
        flat, tree = jax.tree_util.tree_flatten((args, kwargs), is_leaf=is_whole)
        taken = _Taken()
        specs = tuple(taken.spec(x) for x in flat)
        current = _mesh_in_force()
        in_force = None if current is None else taken.mesh(current)
        for used in (*self._used(), *captured):
            taken.mesh(used) if isinstance(used, Mesh) else taken.slot(used)
        return Arguments(tuple(taken.arrays), tuple(taken.tables), tuple(taken.fields), tree, specs, in_force)

    def _used(self) -> list[Mesh | Connectivity]:
        """The meshes and connectivities that the function's closure and globals hold now."""
        return [x for x in (get() for get in self._reachable) if isinstance(x, (Mesh, Connectivity))]

    def everything(self, args: Any, kwargs: Any, captured: Sequence[Connectivity]) -> Any:
        """All that a call reads, as one pytree; None for a function with static arguments."""
        return None if self._static else (args, kwargs, _mesh_in_force(), self._used(), captured)

    def _marked(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Static arguments wrapped, so that they aren't taken for data."""
        if not self._static:
            return args, kwargs
        positional = tuple(Static(x) if n in self._static else x for n, x in enumerate(args))
        return positional, {k: Static(x) if k in self._static else x for k, x in kwargs.items()}


def _mesh_in_force() -> Mesh | MeshView | None:
    current = ambient()
    return current.mesh if current is not None and current.is_current() else None


class Static:
    """An argument that was declared static."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def is_whole(x: Any) -> bool:
    """Whether an argument is taken as one piece, although JAX would look inside."""
    return is_table(x) or isinstance(x, (Field, Mesh, MeshView, Static))


class _Taken:
    """The run-time data of a call, collected; each table once."""

    def __init__(self) -> None:
        self.arrays: list[Any] = []
        self.tables: list[Table] = []
        self.fields: list[Field] = []
        self._slots: dict[Any, int] = {}

    def spec(self, x: Any) -> Spec:
        if isinstance(x, Field):
            return self._field(x)
        if is_table(x):
            return TableSpec(self.slot(x))
        if isinstance(x, (Mesh, MeshView)):
            return self.mesh(x)
        if isinstance(x, (jax.Array, np.ndarray)) or is_scalar(x):
            return self._array(x)
        return _static(x)

    def _field(self, field: Field) -> FieldSpec:
        masks = tuple((self.slot(m.connectivity), m.slot, m.moved) for m in field.masks)
        self.fields.append(field)
        self._array(field.ndarray)
        return FieldSpec(field.domain, masks)

    def _array(self, x: Any) -> ArraySpec:
        self.arrays.append(x)
        if isinstance(x, jax.Array):
            return ArraySpec((x.shape, x.dtype, x.weak_type))
        if isinstance(x, (np.ndarray, np.generic)):
            require_x64(np.dtype(x.dtype), "an argument")
            return ArraySpec((x.shape, x.dtype, False))
        return ArraySpec(type(x))

    def slot(self, table: Table) -> int:
        identity = identity_of(table)
        if identity not in self._slots:
            self._slots[identity] = len(self.tables)
            self.tables.append(table)
        return self._slots[identity]

    def mesh(self, mesh: Mesh | MeshView) -> MeshSpec:
        return MeshSpec(tuple((n, e if isinstance(e, Dimension) else self.slot(e)) for n, e in mesh.items()))


def _static(x: Any) -> StaticSpec:
    value = x.value if isinstance(x, Static) else x
    try:
        hash(value)
    except TypeError:
        raise ArgumentError(
            f"an argument of type {type(value).__name__} is neither data nor hashable",
            location=user_location(),
            hints=["pass arrays, fields, meshes, numbers, containers of them, or hashable values"],
        ) from None
    return StaticSpec(type(value), value)


def _static_names(
    function: Callable[..., Any], static_argnums: Sequence[int], static_argnames: Sequence[str]
) -> frozenset[int | str]:
    """Static arguments by position and by name, whichever way they were declared."""
    if not static_argnums and not static_argnames:
        return frozenset()
    names = list(inspect.signature(function).parameters)
    if unknown := [n for n in static_argnames if n not in names]:
        raise ArgumentError(f"no parameter is named {unknown[0]!r}", location=user_location(), notes=[str(names)])
    declared = {*static_argnames, *(names[n] for n in static_argnums)}
    return frozenset({*declared, *(n for n, name in enumerate(names) if name in declared)})


def reachable(function: Callable[..., Any]) -> Iterator[Callable[[], Any]]:
    """Ways to look at the variables that a function closes over and at the globals that it names."""
    code = getattr(function, "__code__", None)
    if code is None:
        return
    for cell in function.__closure__ or ():  # type: ignore[attr-defined]
        yield lambda cell=cell: _content(cell)
    names = function.__globals__  # type: ignore[attr-defined]
    for name in sorted(_global_names(code)):
        yield lambda name=name: names.get(name)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _global_names(code: Any) -> set[str]:
    inner = (c for c in code.co_consts if hasattr(c, "co_names"))
    return set(code.co_names).union(*(_global_names(c) for c in inner))


def rebuilt(
    call: Layout, arrays: Sequence[Any], views: Sequence[TableView]
) -> tuple[tuple[Any, ...], dict[str, Any], list[Field]]:
    """Arguments over traced data, and the field objects among them in order."""
    state, pending, fields = get_opaque_trace_state(), iter(arrays), []

    def one(spec: Spec) -> Any:
        if isinstance(spec, FieldSpec):
            masks = tuple(FieldMask(views[s], *rest) for s, *rest in spec.masks)
            fields.append(Field._trusted(next(pending), spec.domain, masks, state))
            return fields[-1]
        if isinstance(spec, ArraySpec):
            return next(pending)
        if isinstance(spec, TableSpec):
            return views[spec.slot]
        return mesh_view(spec, views) if isinstance(spec, MeshSpec) else spec.value

    args, kwargs = jax.tree_util.tree_unflatten(call.tree, [one(s) for s in call.specs])
    return args, kwargs, fields


def mesh_view(spec: MeshSpec, views: Sequence[TableView]) -> MeshView:
    """The mesh over the views of its connectivities."""
    return MeshView({n: views[e] if isinstance(e, int) else e for n, e in spec.entries})


class Layout(NamedTuple):
    """How a call is put together again; it holds none of its data."""

    tree: Any
    specs: tuple[Spec, ...]
    in_force: MeshSpec | None
    kinds: tuple[TableKind, ...]
