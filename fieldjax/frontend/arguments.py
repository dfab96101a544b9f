"""The arguments of a call of `fieldjax.jit`: arrays and tables as run-time data, the rest as a static key."""

from __future__ import annotations

import dataclasses
import inspect
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.extend.core import get_opaque_trace_state

from fieldjax.connectivity import Mesh, MeshView, Table, TableView, ambient, identity_of, is_table
from fieldjax.domain import Dimension, Domain
from fieldjax.dtypes import require_x64, x64_enabled
from fieldjax.embedded.field import Field
from fieldjax.embedded.leaves import is_scalar, steady
from fieldjax.embedded.masks import FieldMask
from fieldjax.errors import ArgumentError, user_location
from fieldjax.frontend.containers import flatten
from fieldjax.frontend.reach import Way, Whole, follow, variables


class FieldSpec(NamedTuple):
    """A field without its array; masks are (position among the tables, local slot, moved)."""

    domain: Domain
    masks: tuple[tuple[int, int | None, bool], ...]
    number: int = -1
    """Its position among the fields of the call: the same object twice is one field."""


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
    """Anything else that can be hashed; what equals nothing but itself is held weakly."""

    kind: type
    value: Hashable
    is_weak: bool


Spec = FieldSpec | ArraySpec | TableSpec | MeshSpec | StaticSpec


class TableKind(NamedTuple):
    """What is static about a table."""

    domain: Domain
    codomain: Dimension
    skip_value: int | None

    @classmethod
    def of(cls, table: Table) -> TableKind:
        """That of a table."""
        return cls(table.domain, table.codomain, table.skip_value)


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
    reached: tuple[MeshSpec | TableSpec | None, ...]
    """What stands in the variables of the function, in their order."""
    roots: tuple[Any, ...]
    """The function and its arguments as they came: where ways begin."""

    @property
    def kinds(self) -> tuple[TableKind, ...]:
        """What is static about the tables."""
        return tuple(map(TableKind.of, self.tables))

    @property
    def key(self) -> Hashable:
        """The static part."""
        return (self.tree, self.specs, self.in_force, self.reached, self.kinds, x64_enabled())


class Reader:
    """Takes calls of one function apart."""

    def __init__(
        self, function: Callable[..., Any], static_argnums: Sequence[int], static_argnames: Sequence[str]
    ) -> None:
        self._function = function
        self._static = _static_names(function, static_argnums, static_argnames)
        self._ways = variables(function)

    def add(self, way: Way) -> bool:
        """Follows another way at each call; False if it was followed already."""
        if way in self._ways:
            return False
        self._ways = (*self._ways, way)
        return True

    def read(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        """The arguments, the mesh in force, and the meshes that the function finds in its variables.

        Raises DtypeError for 64-bit data while x64 is off, ArgumentError for what is neither data nor hashable.
        """
        roots = (self._function, args, kwargs)
        flat, tree = _flattened(self._marked(args, kwargs))
        taken = _Taken()
        specs = tuple(taken.spec(x) for x in flat)
        current = _mesh_in_force()
        in_force = None if current is None else taken.mesh(current)
        reached = tuple(taken.whole(follow(way, roots)) for way in self._ways)
        data = tuple(taken.arrays), tuple(taken.tables), tuple(taken.fields)
        return Arguments(*data, tree, specs, in_force, reached, roots)

    def everything(self, args: Any, kwargs: Any) -> Any:
        """All that a call reads, as one pytree; None for a function with static arguments."""
        if self._static:
            return None
        roots = (self._function, args, kwargs)
        return args, kwargs, _mesh_in_force(), tuple(follow(way, roots) for way in self._ways)

    def _marked(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
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


def _flattened(x: Any) -> tuple[list[Any], Any]:
    """The pieces of a call. A dataclass of numbers alone is static, as JAX has it; one of fields isn't."""
    flat, tree = jax.tree_util.tree_flatten(x, is_leaf=is_whole)
    return flatten(x) if any(map(_holds_fields, flat)) else (flat, tree)


def _holds_fields(x: Any) -> bool:
    if not dataclasses.is_dataclass(x) or isinstance(x, type) or is_whole(x):
        return False
    parts = jax.tree_util.tree_leaves([getattr(x, f.name) for f in dataclasses.fields(x)], is_leaf=is_whole)
    return any(isinstance(p, Field) or is_table(p) or _holds_fields(p) for p in parts)


class _Taken:
    """The run-time data of a call, collected; each table and each field once."""

    def __init__(self) -> None:
        self.arrays: list[Any] = []
        self.tables: list[Table] = []
        self.fields: list[Field] = []
        self._slots: dict[Any, int] = {}
        self._numbers: dict[int, int] = {}

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
        masks = tuple((self.slot(m.connectivity), m.slot, m.moved) for m in field.masks if m.slot is None)
        number = self._numbers.setdefault(id(field), len(self.fields))
        if number == len(self.fields):
            field.check()
            self.fields.append(field)
            self._array(steady(field.operand))
        return FieldSpec(field.domain, masks, number)

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

    def mesh(self, mesh: Mapping[str, Any]) -> MeshSpec:
        return MeshSpec(tuple((n, e if isinstance(e, Dimension) else self.slot(e)) for n, e in mesh.items()))

    def whole(self, found: Whole | None) -> MeshSpec | TableSpec | None:
        if found is None:
            return None
        return self.mesh(found) if isinstance(found, Mapping) else TableSpec(self.slot(found))


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
    if type(value).__eq__ is not object.__eq__:
        return StaticSpec(type(value), value, False)
    try:
        return StaticSpec(type(value), weakref.ref(value), True)
    except TypeError:
        return StaticSpec(type(value), value, False)


def _static_names(
    function: Callable[..., Any], static_argnums: Sequence[int], static_argnames: Sequence[str]
) -> frozenset[int | str]:
    """Static arguments by position and by name, whichever way they were declared."""
    if not static_argnums and not static_argnames:
        return frozenset()
    names = list(inspect.signature(function).parameters)
    if unknown := [n for n in static_argnames if n not in names]:
        raise ArgumentError(f"no parameter is named {unknown[0]!r}", location=user_location(), notes=[str(names)])
    if unknown := [n for n in static_argnums if not -len(names) <= n < len(names)]:
        raise ArgumentError(f"there is no parameter {unknown[0]}", location=user_location(), notes=[str(names)])
    declared = {*static_argnames, *(names[n] for n in static_argnums)}
    return frozenset({*declared, *(n for n, name in enumerate(names) if name in declared)})


def rebuilt(
    call: Layout, arrays: Sequence[Any], views: Sequence[TableView]
) -> tuple[tuple[Any, ...], dict[str, Any], list[Field]]:
    """Arguments over traced data, and the field objects among them in order."""
    state, pending, fields = get_opaque_trace_state(), iter(arrays), []

    def one(spec: Spec) -> Any:
        if isinstance(spec, FieldSpec):
            if spec.number == len(fields):
                masks = tuple(FieldMask(views[n], slot, moved) for n, slot, moved in spec.masks)
                fields.append(Field._trusted(next(pending), spec.domain, masks, state))
            return fields[spec.number]
        if isinstance(spec, ArraySpec):
            return next(pending)
        if isinstance(spec, TableSpec):
            return views[spec.slot]
        return mesh_view(spec, views) if isinstance(spec, MeshSpec) else static_value(spec)

    args, kwargs = jax.tree_util.tree_unflatten(call.tree, [one(s) for s in call.specs])
    return args, kwargs, fields


def static_value(spec: StaticSpec) -> Any:
    """The argument itself."""
    return spec.value() if spec.is_weak else spec.value  # type: ignore[operator]


def mesh_view(spec: MeshSpec, views: Sequence[TableView]) -> MeshView:
    """The mesh over the views of its connectivities."""
    return MeshView({n: views[e] if isinstance(e, int) else e for n, e in spec.entries})


class Layout(NamedTuple):
    """How a call is put together again; it holds none of its data."""

    tree: Any
    specs: tuple[Spec, ...]
    in_force: MeshSpec | None
    kinds: tuple[TableKind, ...]
