"""What `compress` buys: set-up, steady state and memory of recorded models, uncompressed, in regions, and by hand.

python -m benchmarks.compress [x] [vector] [scalar] [sharing] [wave] [adjoint] [matching]

`x`, `vector`, `scalar`: a chain of layers h <- tanh(sin(h p) + 0.1) on 1000 elements in regions of 100 layers; the
gradient with respect to x, to a vector p, to a scalar p. `sharing`: the same with nothing shared, every region
compressed by itself, and all found as repeats of the first. `wave`: unrolled time steps of the demo's shallow-water
model; `adjoint`: the gradient through them. `matching`: what `compress` itself takes for a block of 100 layers. By hand
is a `lax.scan`.

Set-up is recording, differentiating, compiling and the first run, in a process of its own for each entry, so that
nothing is shared between them; steady state is the median of the runs after that; memory is what the peak of the
process grew by. `--limit` gives up on an entry after so many seconds.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple


class Entry(NamedTuple):
    """What is measured: a function of `benchmarks.recorded` and its arguments."""

    build: str
    options: dict[str, Any]


class Measured(NamedTuple):
    """Seconds, seconds and megabytes."""

    setup: float
    steady: float
    memory: float

    def __str__(self) -> str:
        return f"{self.setup:6.2f} s, {self.steady * 1e3:7.2f} ms, {self.memory:5.0f} MB"


Table = dict[str, dict[str, Entry]]
"""Entries by row and column."""


def chains(by: str, columns: dict[str, dict[str, Any]], lengths: tuple[int, ...]) -> Table:
    """Chains of these lengths, uncompressed, with the options of each column, and by hand."""
    return {
        f"{layers} layers": {
            "uncompressed": Entry("chain", {"layers": layers, "by": by}),
            **{name: Entry("chain", {"layers": layers, "by": by, **options}) for name, options in columns.items()},
            "by hand": Entry("chain_by_hand", {"layers": layers, "by": by}),
        }
        for layers in lengths
    }


def waves(gradient: bool) -> Table:
    """Time steps of the shallow-water model, uncompressed, in each mode with all repeats found, and by hand."""
    return {
        f"{steps} steps": {
            **{
                mode or "uncompressed": Entry("wave", {"steps": steps, "gradient": gradient, "mode": mode})
                for mode in (None, "segment", "scan", "call")
            },
            "by hand": Entry("wave_by_hand", {"steps": steps, "gradient": gradient}),
        }
        for steps in (10, 50, 200)
    }


FORMS = {
    "one program": {"mode": "call"},
    "separate": {"mode": "segment"},
    "repeats": {"mode": "auto", "repeats": True},
}
SHARING = {
    "no sharing": {"mode": "segment", "share_compiled": False},
    "shared": {"mode": "segment"},
    "find_repeats": {"mode": "segment", "repeats": True},
    "find_repeats, scan": {"mode": "auto", "repeats": True},
}
SCALAR = {
    "separate": {"mode": "segment", "repeats": True},
    "separate, no fusion": {"mode": "segment", "repeats": True, "fusion": False},
    "repeats": {"mode": "auto", "repeats": True},
}
TABLES: dict[str, Table] = {
    "x": chains("x", FORMS, (400, 1200)),
    "vector": chains("vector", FORMS, (400, 1200)),
    "scalar": chains("scalar", SCALAR, (100, 1200)),
    "sharing": {
        f"{n} regions": {name: Entry("chain", {"layers": 100 * n, **options}) for name, options in SHARING.items()}
        for n in (4, 12, 24)
    },
    "wave": waves(gradient=False),
    "adjoint": waves(gradient=True),
}


def measure(entry: Entry) -> Measured:
    """Measures in this process."""
    import jax

    jax.config.update("jax_enable_x64", True)
    from benchmarks import recorded

    build: Callable[..., Any] = getattr(recorded, entry.build)
    given = [recorded.an_ocean()] if entry.build.startswith("wave") else []
    jax.block_until_ready(jax.jit(lambda x: x + 1)(1.0))
    before, start = peak(), time.perf_counter()
    run = build(*given, **entry.options)
    jax.block_until_ready(run())
    setup = time.perf_counter() - start
    samples = []
    for _ in range(10):
        start = time.perf_counter()
        jax.block_until_ready(run())
        samples.append(time.perf_counter() - start)
    return Measured(setup, statistics.median(samples), peak() - before)


def peak() -> float:
    """The peak of this process's memory so far, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measured_apart(table: str, row: str, column: str, limit: float) -> Measured | None:
    """Measures in a process of its own; None where that takes longer than `limit`."""
    command = [sys.executable, "-m", "benchmarks.compress", "--entry", table, row, column]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        raise RuntimeError(f"{table}, {row}, {column} failed:\n{done.stderr}")
    return Measured(*json.loads(done.stdout.splitlines()[-1]))


def show(name: str, limit: float) -> None:
    """Measures and prints a table: set-up, steady state, memory, and the growth from the first row to the last."""
    table = TABLES[name]
    columns = list(next(iter(table.values())))
    print(f"\n{name}:\n{'':22}" + "".join(f"{c:30}" for c in columns))
    found: dict[tuple[str, str], Measured | None] = {}
    for row in table:
        print(f"{row:22}", end="", flush=True)
        for column in columns:
            found[row, column] = measured_apart(name, row, column, limit)
            shown = str(found[row, column] or f"more than {limit:.0f} s")
            print(f"{shown:30}", end="", flush=True)
        print()
    rows = list(table)
    print(f"{'last row / first row':22}" + "".join(_growth(found[rows[0], c], found[rows[-1], c]) for c in columns))


def _growth(first: Measured | None, last: Measured | None) -> str:
    ratio = f"{last.setup / first.setup:6.2f}    {last.steady / first.steady:7.2f}" if first and last else ""
    return f"{ratio:30}"


def matching() -> None:
    """Prints what `compress` takes for each block of 100 layers, by itself and as a repeat."""
    import jax

    jax.config.update("jax_enable_x64", True)
    from benchmarks.recorded import REGION, compressed, layers_of

    def once(repeats: bool) -> float:
        recorded = layers_of(24 * REGION)
        start = time.perf_counter()
        compressed(recorded.ends, recorded.p, repeats, mode="segment")
        len(recorded.model.nodes)  # what was put off until somebody looks
        return (time.perf_counter() - start) / 24

    print()
    for name, repeats in (("compress, each by itself", False), ("find_repeats", True)):
        best = min(once(repeats) for _ in range(5))
        print(f"{name:26}{best * 1e3:6.1f} ms for each block of {REGION} layers")


def main() -> None:
    """Prints the tables that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", help=f"{', '.join(TABLES)}, matching (default: all)")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for one entry")
    parser.add_argument("--entry", nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.entry:
        table, row, column = asked.entry
        print(json.dumps(measure(TABLES[table][row][column])))
        return
    for name in asked.tables or (*TABLES, "matching"):
        matching() if name == "matching" else show(name, asked.limit)


if __name__ == "__main__":
    main()
