"""What is static about a connectivity: the auxiliary data of its pytree node."""

from __future__ import annotations

from typing import Any, TypeAlias

from fieldjax.connectivity.handle import Handle
from fieldjax.connectivity.interning import Interning
from fieldjax.domain import Dimension, Domain

Key: TypeAlias = "tuple[Domain, Dimension, int | None, Handle, bool]"


class Structure:
    """Domain, codomain, skip value, handle, and whether the transposed slots are attached.

    Law: interned, so that structures are equal exactly where they are the same object; comparing and hashing
    them when a jitted function is dispatched costs nothing. It keeps no table alive.
    """

    __slots__ = ("__weakref__", "codomain", "domain", "handle", "has_adjoint", "skip_value")

    def __init__(
        self, domain: Domain, codomain: Dimension, skip_value: int | None, handle: Handle, has_adjoint: bool
    ) -> None:
        self.domain, self.codomain, self.skip_value = domain, codomain, skip_value
        self.handle, self.has_adjoint = handle, has_adjoint

    @property
    def width(self) -> int:
        """How many children a node with this structure has."""
        return 3 if self.has_adjoint else 1

    def replace(self, *, handle: Handle | None = None, has_adjoint: bool | None = None) -> Structure:
        """The structure with another handle, or with or without transposed slots."""
        adjoint = self.has_adjoint if has_adjoint is None else has_adjoint
        return structure_of(self.domain, self.codomain, self.skip_value, handle or self.handle, adjoint)

    def __repr__(self) -> str:
        adjoint = ", with adjoint" if self.has_adjoint else ""
        skip = "" if self.skip_value is None else f", skip_value={self.skip_value}"
        return f"{self.domain} -> {self.codomain.value}{skip}{adjoint}, {self.handle}"

    def __reduce__(self) -> tuple[Any, ...]:
        return structure_of, (self.domain, self.codomain, self.skip_value, self.handle, self.has_adjoint)


_structures: Interning[Key, Structure] = Interning()


def structure_of(
    domain: Domain, codomain: Dimension, skip_value: int | None, handle: Handle, has_adjoint: bool = False
) -> Structure:
    """The one structure of these parts."""
    key = (domain, codomain, skip_value, handle, has_adjoint)
    return _structures.get_or_make(key, lambda: Structure(*key))
