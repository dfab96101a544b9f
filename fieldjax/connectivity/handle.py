"""Handles: what jit caches keep of a table's contents, without keeping the table."""

from __future__ import annotations

import hashlib
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from fieldjax.connectivity.interning import Interning
from fieldjax.errors import ConnectivityError

if TYPE_CHECKING:
    from fieldjax.connectivity.host_table import HostTable


class Handle:
    """Stands for the contents of a table in auxiliary data.

    Laws: there is one handle per contents, so handles compare by identity; a handle never keeps a table
    alive; any live twin of its contents answers, also one made after all earlier ones died.
    """

    __slots__ = ("__weakref__", "_twin", "digest")

    digest: bytes
    _twin: weakref.ref[HostTable] | None

    def __init__(self, digest: bytes) -> None:
        self.digest = digest
        self._twin = None

    def live(self) -> HostTable | None:
        """A live twin, or None."""
        return None if self._twin is None else self._twin()

    def twin(self) -> HostTable:
        """A live twin.

        Raises:
            ConnectivityError: every connectivity with these contents has been dropped.
        """
        found = self.live()
        if found is None:
            raise ConnectivityError(
                "the host table behind a traced connectivity is gone",
                notes=["every connectivity with these contents has been dropped"],
                hints=["keep the connectivity, or one equal to it, as long as traces ask about it"],
            )
        return found

    def answered_by(self, twin: HostTable) -> None:
        """Make `twin` the one that answers."""
        self._twin = weakref.ref(twin)

    def __repr__(self) -> str:
        return f"Handle({self.digest.hex()[:12]})"

    def __reduce__(self) -> tuple[Any, ...]:
        return handle_of, (self.digest,)


_handles: Interning[bytes, Handle] = Interning()


def handle_of(digest: bytes) -> Handle:
    """The handle of the contents with this digest."""
    return _handles.get_or_make(digest, lambda: Handle(digest))


def digest_of(entries: np.ndarray, skip_value: int | None) -> bytes:
    """SHA-1 of a C-contiguous table and what it means: dtype, shape, skip value, bytes."""
    meaning = f"{entries.dtype.str} {entries.shape} {skip_value}"
    digest = hashlib.sha1(meaning.encode(), usedforsecurity=False)
    digest.update(entries.reshape(-1).view(np.uint8).data)
    return digest.digest()
