"""What an offset provider is: names, and the connectivity or dimension that each stands for."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from fieldjax.connectivity.ambient import Ambient, ambient
from fieldjax.connectivity.cartesian import CartesianConnectivity
from fieldjax.connectivity.connectivity import Connectivity
from fieldjax.connectivity.mesh import Mesh
from fieldjax.connectivity.offset import FieldOffset
from fieldjax.connectivity.questions.explain import show_table
from fieldjax.connectivity.questions.protocol import TableQuestions
from fieldjax.domain import Dimension, show_dims
from fieldjax.errors import OffsetProviderError

Provided: TypeAlias = "Connectivity | CartesianConnectivity | Dimension | TableQuestions"


class Provider(Mapping[str, Provided]):
    """An immutable snapshot of an offset provider.

    Entries are looked at when they are asked for: those that nobody asks for may be anything. Lookups raise
    `OffsetProviderError`, which says what is there.
    """

    __slots__ = ("_ambient", "_entries")

    def __init__(self, entries: Mapping[str, Any], ambient: Ambient | None = None) -> None:
        self._entries: dict[str, Any] = dict(entries)
        self._ambient = ambient

    def __getitem__(self, name: str | FieldOffset) -> Provided:
        """The entry of a name, or of an offset, which it must then fit."""
        if isinstance(name, FieldOffset):
            return self._fitting(name)
        self._check_ambient(name)
        try:
            entry = self._entries[name]
        except KeyError:
            raise self._missing(name) from None
        if isinstance(entry, (Connectivity, Dimension, CartesianConnectivity)) or _answers(entry):
            return entry
        raise OffsetProviderError(
            f"the offset provider has no connectivity under {name!r}, but {type(entry).__name__}",
            hints=["make one with as_connectivity(domain, codomain, data), or give a Dimension"],
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"Provider({', '.join(map(repr, self._entries))})"

    def find_local(self, dim: Dimension) -> tuple[str, Connectivity | TableQuestions]:
        """The connectivity that counts its slots along the LOCAL dimension `dim`, and its name.

        The entry that is named like the dimension comes first.

        Raises:
            OffsetProviderError: there is none, or there are several that differ.
        """
        self._check_ambient(dim.value)
        names = [name for name, entry in self._entries.items() if _has_local(entry, dim)]
        if dim.value in names:
            names = [dim.value]
        if not names:
            raise self._missing(dim.value, what=f"connectivity with the local dimension {dim.value}")
        found = {id(_identity(self._entries[name])) for name in names}
        if len(found) > 1:
            raise OffsetProviderError(
                f"several connectivities have the local dimension {dim.value}: {', '.join(names)}",
                hints=[f"name the one that is meant {dim.value!r}"],
            )
        return names[0], self._entries[names[0]]

    def _fitting(self, offset: FieldOffset) -> Provided:
        entry = self[offset.value]
        if isinstance(entry, Dimension):
            fits, shown = offset.target == (entry,) and offset.source == entry, f"the dimension {entry.value}"
        else:
            dims = entry.domain.dims
            fits = entry.codomain == offset.source and set(dims) == set(offset.target)
            shown = f"a table {show_table(entry.domain, entry.codomain)}"
        if fits:
            return entry
        raise OffsetProviderError(
            f"the entry {offset.value!r} of the offset provider doesn't fit the offset",
            notes=[
                f"the offset leads from {show_dims(offset.target)} to {offset.source.value}",
                f"the entry is {shown}",
            ],
        )

    def _check_ambient(self, name: str) -> None:
        if self._ambient is None or self._ambient.is_current():
            return
        raise OffsetProviderError(
            f"{name!r} would be read from a mesh that is in force outside of the function being traced",
            notes=["the compiled function would keep its tables, also when it is called under another mesh"],
            hints=[
                "use fieldjax.jit instead of jax.jit: it passes the mesh in force as an argument",
                "or pass the mesh as an argument, and enter `with mesh:` inside of the function",
            ],
        )

    def _missing(self, name: str, what: str | None = None) -> OffsetProviderError:
        close = difflib.get_close_matches(str(name), list(map(str, self._entries)), n=1)
        there = ", ".join(map(str, self._entries))
        return OffsetProviderError(
            f"the offset provider has no {what or f'entry {name!r}'}",
            notes=[f"it has: {there}" if there else "it is empty"],
            hints=[f"did you mean {close[0]!r}?"] if close else [f'pass offset_provider={{"{name}": ...}}'],
        )


_EMPTY = Provider({})


def as_provider(source: Any = None) -> Provider:
    """The offset provider that `source` is: a mapping, a mesh, or None for the mesh in force (or nothing).

    Raises:
        OffsetProviderError: it is none of these.
    """
    if source is None:
        current = ambient()
        return _EMPTY if current is None else Provider(current.mesh.entries, current)
    if isinstance(source, Provider):
        return source
    if isinstance(source, Mapping):
        return Provider(source.entries if isinstance(source, Mesh) else source)
    raise OffsetProviderError(
        f"{type(source).__name__} is not an offset provider",
        hints=['pass offset_provider={"E2C": e2c, ...} or a Mesh'],
    )


def _has_local(entry: Any, dim: Dimension) -> bool:
    return _answers(entry) and dim in entry.domain.dims


def _answers(entry: Any) -> bool:
    # Not isinstance of the protocol: that would ask a recording view all its properties.
    return hasattr(type(entry), "inverse_image")


def _identity(entry: Connectivity | TableQuestions) -> object:
    return entry._structure if isinstance(entry, Connectivity) else entry
