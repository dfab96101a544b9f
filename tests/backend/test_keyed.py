"""One maker per entry, nothing held meanwhile, and no way to deadlock."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from typing import Any

import pytest

from fieldjax.backend.keyed import Keyed


def in_threads(*work: Any) -> list[Any]:
    results: list[Any] = [None] * len(work)

    def run(n: int) -> None:
        results[n] = work[n]()

    threads = [threading.Thread(target=run, args=(n,), daemon=True) for n in range(len(work))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive(), "deadlock"
    return results


def test_one_of_many_threads_makes_an_entry() -> None:
    cache: Keyed[object] = Keyed()
    made: list[object] = []

    def make() -> object:
        time.sleep(0.05)
        made.append(object())
        return made[-1]

    found = in_threads(*[lambda: cache.get("key", make)] * 8)
    assert len(made) == 1
    assert all(x is made[0] for x in found)


def test_makers_of_different_entries_run_at_the_same_time() -> None:
    cache: Keyed[int] = Keyed()
    meet = threading.Barrier(2, timeout=10)

    def make(n: int) -> int:
        meet.wait()
        return n

    assert in_threads(lambda: cache.get(1, lambda: make(1)), lambda: cache.get(2, lambda: make(2))) == [1, 2]


def test_makers_that_want_each_others_entries_do_not_wait_for_ever() -> None:
    cache: Keyed[str] = Keyed()
    meet = threading.Barrier(2, timeout=10)

    def make(own: str, other: str, first: bool = True) -> str:
        if first:
            meet.wait()
            cache.get(other, lambda: make(other, own, first=False))
        return own

    assert in_threads(
        lambda: cache.get("a", lambda: make("a", "b")), lambda: cache.get("b", lambda: make("b", "a"))
    ) == ["a", "b"]


def test_a_maker_may_ask_for_its_own_entry() -> None:
    cache: Keyed[int] = Keyed()
    assert cache.get("key", lambda: cache.get("key", lambda: 1) + 1) == 2


def test_a_failure_is_not_kept() -> None:
    cache: Keyed[int] = Keyed()

    def fail() -> int:
        raise ValueError("no entry")

    with pytest.raises(ValueError, match="no entry"):
        cache.get("key", fail)
    assert cache.find("key") is None
    assert cache.get("key", lambda: 3) == 3


def test_the_least_recently_used_go_first() -> None:
    cache: Keyed[int] = Keyed(size=3)
    for n in range(3):
        cache.get(n, lambda n=n: n)
    assert cache.find(0) == 0
    cache.get(3, lambda: 3)
    assert [cache.find(n) for n in range(4)] == [0, None, 2, 3]


def test_dropped_entries_are_freed() -> None:
    class Made:
        pass

    cache: Keyed[Made] = Keyed(size=1)
    seen = weakref.ref(cache.get(1, Made))
    cache.get(2, Made)
    gc.collect()
    assert seen() is None
