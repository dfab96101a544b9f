"""One live object per key, held weakly: what makes comparison by identity mean equality of contents."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Made = TypeVar("Made")


class Interning(Generic[Key, Made]):
    """Gives out the object that lives under a key, or makes it.

    Law: two objects obtained for equal keys while either lives are the same object. Safe among threads;
    `make` runs under the lock, so it must be short and may not wait for anybody.
    """

    def __init__(self) -> None:
        self._live: weakref.WeakValueDictionary[Key, Made] = weakref.WeakValueDictionary()
        # Reentrant: the collector may run a finaliser of the user's, which may build a connectivity.
        self._lock = threading.RLock()

    def get(self, key: Key) -> Made | None:
        """The live object under `key`, if there is one."""
        return self._live.get(key)

    def get_or_make(self, key: Key, make: Callable[[], Made]) -> Made:
        """The live object under `key`, made now where there is none."""
        found = self._live.get(key)
        if found is not None:
            return found
        with self._lock:
            found = self._live.get(key)
            return found if found is not None else self._live.setdefault(key, make())
