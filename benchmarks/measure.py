"""Times candidates side by side: interleaved medians of CPU and wall time, a STREAM triad, ratio tables."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Candidate = Callable[[], object]


@dataclass(frozen=True)
class Timing:
    """Medians over the rounds, in seconds per call; `cpu` is the sum over all threads."""

    cpu: float
    wall: float


def pin_to_one_core() -> None:
    """Leaves this process one core. Call it before JAX is imported: XLA sizes its thread pool once."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def interleaved(
    candidates: Mapping[str, Candidate], *, rounds: int = 15, sample_seconds: float = 0.05
) -> dict[str, Timing]:
    """The timing of each candidate, all timed in turn, round after round.

    A candidate takes nothing and returns what must be ready before its work counts as done: arrays, fields,
    any pytree. It runs once to compile, is then repeated as often as fills `sample_seconds`, and the same
    number of times in each of the `rounds`. What it returns is waited for once per round, so that calls
    overlap as they do in a program.
    """
    repeats = {name: _repeats(candidate, sample_seconds) for name, candidate in candidates.items()}
    samples: dict[str, list[Timing]] = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, candidate in candidates.items():
            samples[name].append(_sample(candidate, repeats[name]))
    return {name: _median(timings) for name, timings in samples.items()}


def _repeats(candidate: Candidate, sample_seconds: float) -> int:
    _sample(candidate, 1)
    repeats = 1
    while (wall := _sample(candidate, repeats).wall * repeats) < sample_seconds / 2:
        repeats = max(2 * repeats, int(repeats * sample_seconds / max(wall, 1e-9) / 4))
    return max(1, round(repeats * sample_seconds / wall))


def _sample(candidate: Candidate, repeats: int) -> Timing:
    import jax  # not at the top: the process may have to be pinned first

    cpu, wall = time.process_time(), time.perf_counter()
    result = None
    for _ in range(repeats):
        result = candidate()
    jax.block_until_ready(result)
    return Timing((time.process_time() - cpu) / repeats, (time.perf_counter() - wall) / repeats)


def _median(timings: list[Timing]) -> Timing:
    return Timing(statistics.median(t.cpu for t in timings), statistics.median(t.wall for t in timings))


def stream_triad(nbytes: int) -> Candidate:
    """A candidate that moves `nbytes` bytes and does little else: `a[i] = b[i] + s * c[i]`.

    In float64, on one thread. The cache line that a store may have to read first isn't counted, as in
    McCalpin, "Memory Bandwidth and Machine Balance in Current High Performance Computers", 1995.
    """
    import numba
    import numpy as np

    @numba.njit(fastmath=True)
    def triad(a, b, c, s):
        for i in range(a.size):
            a[i] = b[i] + s * c[i]

    a, b, c = (np.full(max(1, nbytes // 24), value) for value in (0.0, 1.0, 2.0))
    return lambda: triad(a, b, c, 3.0)


def ratio_table(timings: Mapping[str, Timing], *, base: str, title: str = "") -> str:
    """The timings in a text table, with each CPU and wall time over that of the candidate named `base`."""
    width = max(map(len, (*timings, title)))
    lines = [f"{title:<{width}}  {'CPU':>11}  {'ratio':>7}  {'wall':>11}  {'ratio':>7}"]
    for name, timing in timings.items():
        cpu = f"{_duration(timing.cpu)}  {timing.cpu / timings[base].cpu:7.2f}"
        wall = f"{_duration(timing.wall)}  {timing.wall / timings[base].wall:7.2f}"
        lines.append(f"{name:<{width}}  {cpu}  {wall}")
    return "\n".join(lines)


def _duration(seconds: float) -> str:
    for unit, size in (("s ", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:8.2f} {unit}"
    return f"{seconds / 1e-9:8.2f} ns"
