"""A cache whose missing entries are made once, whoever asks first, without a lock being held meanwhile."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

Made = TypeVar("Made")


class _Pending:
    """An entry that one thread is making. Its owner may ask for it again and then makes another."""

    __slots__ = ("done", "owner")

    def __init__(self) -> None:
        self.owner, self.done = threading.get_ident(), threading.Event()


class Keyed(Generic[Made]):
    """At most `size` entries, the least recently used dropped first.

    `get(key, make)` returns the entry of `key`. Where it is missing, one thread calls `make`; others wait
    for that key only. No lock is held while `make` runs, and a thread never waits for an entry while it is
    making one itself: it makes its own, so that programs which call each other can't deadlock. When `make`
    raises, nothing is kept and the next caller tries again.
    """

    def __init__(self, size: int = 1024) -> None:
        self._size = size
        self._entries: OrderedDict[Hashable, Made] = OrderedDict()
        self._pending: dict[Hashable, _Pending] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def values(self) -> list[Made]:
        """The entries there are."""
        with self._lock:
            return list(self._entries.values())

    def find(self, key: Hashable) -> Made | None:
        """The entry of `key`, or None."""
        entry = self._entries.get(key)
        if entry is not None and len(self._entries) > self._size // 2:
            with self._lock:
                if key in self._entries:
                    self._entries.move_to_end(key)
        return entry

    def get(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """The entry of `key`, made where it is missing."""
        while True:
            with self._lock:
                if key in self._entries:
                    self._entries.move_to_end(key)
                    return self._entries[key]
                pending = self._pending.get(key)
                if pending is None:
                    pending = self._pending[key] = _Pending()
                    break
            if pending.owner == threading.get_ident() or _is_making():
                return make()
            pending.done.wait()
        return self._make(key, make, pending)

    def _make(self, key: Hashable, make: Callable[[], Made], pending: _Pending) -> Made:
        _making.depth = getattr(_making, "depth", 0) + 1
        try:
            made = make()
            with self._lock:
                self._entries[key] = made
                while len(self._entries) > self._size:
                    self._entries.popitem(last=False)
            return made
        finally:
            _making.depth -= 1
            with self._lock:
                self._pending.pop(key, None)
            pending.done.set()


_making: Any = threading.local()


def _is_making() -> bool:
    return getattr(_making, "depth", 0) > 0
