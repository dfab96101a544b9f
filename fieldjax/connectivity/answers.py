"""A bounded memory of answers, safe among threads."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any


class Answers:
    """Remembers what was computed for the last `limit` keys.

    An answer may be computed twice when two threads ask at once; both are equal. No lock is held meanwhile.
    """

    __slots__ = ("_kept", "_limit")

    def __init__(self, limit: int = 512) -> None:
        self._kept: dict[Hashable, Any] = {}
        self._limit = limit

    def get(self, key: Hashable, compute: Callable[..., Any], *arguments: Any) -> Any:
        """What `compute(*arguments)` is, or was when this key was asked before."""
        try:
            return self._kept[key]
        except KeyError:
            return self._keep(key, compute(*arguments))

    def _keep(self, key: Hashable, answer: Any) -> Any:
        while len(self._kept) >= self._limit:
            self._kept.pop(next(iter(list(self._kept)), None), None)
        self._kept[key] = answer
        return answer

    def __len__(self) -> int:
        return len(self._kept)
