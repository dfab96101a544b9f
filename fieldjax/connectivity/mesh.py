"""`Mesh`: many named connectivities as one JAX value."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, TypeAlias

import jax

from fieldjax.connectivity.ambient import put_in_force, withdraw
from fieldjax.connectivity.connectivity import Connectivity
from fieldjax.connectivity.interning import Interning
from fieldjax.connectivity.settling import is_fresh
from fieldjax.connectivity.structure import Structure
from fieldjax.domain import Dimension
from fieldjax.errors import ConnectivityError

Entry: TypeAlias = Connectivity | Dimension


class MeshStructure:
    """The auxiliary data of a mesh: names, in order, each with the structure of its connectivity.

    Law: interned, so that one comparison by identity dispatches all tables of a mesh.
    """

    __slots__ = ("__weakref__", "entries")

    def __init__(self, entries: tuple[tuple[str, Structure | Dimension], ...]) -> None:
        self.entries = entries

    def __repr__(self) -> str:
        return f"Mesh({', '.join(f'{name}: {entry}' for name, entry in self.entries)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return mesh_structure_of, (self.entries,)


_structures: Interning[tuple[tuple[str, Structure | Dimension], ...], MeshStructure] = Interning()


def mesh_structure_of(entries: tuple[tuple[str, Structure | Dimension], ...]) -> MeshStructure:
    """The one mesh structure with these entries."""
    return _structures.get_or_make(entries, lambda: MeshStructure(entries))


class Mesh(Mapping[str, Entry]):
    """Named connectivities (and Cartesian dimensions), one pytree node for all.

    Accepted wherever an offset provider is; ``with mesh:`` provides it to all operators called inside.
    Immutable; equality is identity; names stand in alphabetical order. An entry is ``mesh["E2C"]``, or
    ``mesh.E2C`` unless the name means something else there.

    >>> from fieldjax.connectivity import as_connectivity
    >>> Cell, Edge = Dimension("Cell"), Dimension("Edge")
    >>> mesh = Mesh(E2C=as_connectivity({Edge: 2}, Cell, [1, 0]), Coff=Cell)
    >>> list(mesh), mesh.E2C.shape
    (['Coff', 'E2C'], (2,))
    """

    __slots__ = ("__weakref__", "_checks", "_children", "_entries", "_structure")

    _structure: MeshStructure
    _children: tuple[Any, ...]
    _checks: tuple[Callable[[], bool], ...]
    """For each table, whether it must be looked at before it is flattened."""
    _entries: dict[str, Entry] | None
    """None until somebody asks, after unflattening."""

    def __init__(self, entries: Mapping[str, Entry] | None = None, /, **named: Entry) -> None:
        given = {**(entries or {}), **named}
        for name, entry in given.items():
            _check_entry(name, entry)
        self._entries = {name: given[name] for name in sorted(given)}
        self._gather()

    @classmethod
    def _unflatten(cls, structure: MeshStructure, children: Any) -> Mesh:
        made = object.__new__(cls)
        made._structure, made._children, made._entries = structure, tuple(children), None
        made._checks = (is_fresh,)
        return made

    def _flatten(self) -> tuple[tuple[Any, ...], MeshStructure]:
        # Called on every dispatch: about 0.4 µs for ten tables.
        if any(map(operator.call, self._checks)):
            self._gather()
        return self._children, self._structure

    def _gather(self) -> None:
        children: list[Any] = []
        entries: list[tuple[str, Structure | Dimension]] = []
        for name, entry in self.entries.items():
            parts, static = entry._flatten() if isinstance(entry, Connectivity) else ((), entry)
            children += parts
            entries.append((name, static))
        self._children, self._structure = tuple(children), mesh_structure_of(tuple(entries))
        self._checks = tuple(e._is_stale for e in self.entries.values() if isinstance(e, Connectivity))

    @property
    def entries(self) -> Mapping[str, Entry]:
        """All entries by name; not to be changed."""
        if self._entries is None:
            self._entries = dict(_unpack(self._structure, self._children))
        return self._entries

    def __getitem__(self, name: str) -> Entry:
        return self.entries[name]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # half-made by unpickling, say: nothing below would end
            raise AttributeError(name, name=name, obj=self)
        if name not in self.entries:
            held = ", ".join(self) or "nothing"
            raise AttributeError(f"the mesh has no {name}; it has {held}", name=name, obj=self)
        return self.entries[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __enter__(self) -> Mesh:
        put_in_force(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, traceback: TracebackType | None
    ) -> None:
        withdraw()

    def with_adjoint(self) -> Mesh:
        """The mesh with transposed slots attached to every connectivity where they pay."""
        return Mesh({name: _with_adjoint(entry) for name, entry in self.items()})

    def __repr__(self) -> str:
        lines = (f"\n  {name}: {getattr(e, '_structure', e)}," for name, e in self.items())
        return f"Mesh({''.join(lines)}\n)" if self else "Mesh()"

    def __copy__(self) -> Mesh:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Mesh:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Mesh, (dict(self),)


def _check_entry(name: str, entry: Entry) -> None:
    if not isinstance(name, str):
        raise ConnectivityError(f"entries of a mesh are named by strings, got {name!r}")
    if not isinstance(entry, (Connectivity, Dimension)):
        raise ConnectivityError(
            f"{name} in a mesh must be a connectivity or a dimension, got {type(entry).__name__}",
            hints=[f"{name}=as_connectivity(domain, codomain, data)"],
        )


def _unpack(structure: MeshStructure, children: tuple[Any, ...]) -> Iterator[tuple[str, Entry]]:
    start = 0
    for name, entry in structure.entries:
        if isinstance(entry, Dimension):
            yield name, entry
        else:
            stop = start + entry.width
            yield name, Connectivity._unflatten(entry, children[start:stop])
            start = stop


def _with_adjoint(entry: Entry) -> Entry:
    return entry.with_adjoint() if isinstance(entry, Connectivity) and entry.adjoint_pays else entry


def _flatten_with_keys(mesh: Mesh) -> tuple[tuple[tuple[Any, Any], ...], MeshStructure]:
    children, structure = mesh._flatten()
    widths = ((name, entry.width) for name, entry in structure.entries if isinstance(entry, Structure))
    parts = (f"{name}{part}" for name, width in widths for part in ("", ".rows", ".slots")[:width])
    keys = map(jax.tree_util.DictKey, parts)
    return tuple(zip(keys, children, strict=True)), structure


jax.tree_util.register_pytree_with_keys(Mesh, _flatten_with_keys, Mesh._unflatten, Mesh._flatten)
