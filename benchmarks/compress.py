"""What `compress` buys: set-up and steady state of recorded gradients, uncompressed and in regions.

python -m benchmarks.compress [chain] [wave]

`chain`: layers h <- tanh(sin(h p) + 0.1) on 1000 elements in 100-layer regions, as in the specification; gradients
with respect to a vector p. `wave`: unrolled time steps of the demo's shallow-water model.

Set-up is recording, differentiating, compiling and the first run, in a process of its own for each row, so that
nothing is shared between rows; steady state is the median of runs after that; memory is the peak of the process.
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

CHAIN = {
    "uncompressed, 400 layers": {"layers": 400},
    "one program of regions, 400": {"layers": 400, "mode": "call"},
    "separate regions, 400": {"layers": 400, "mode": "segment"},
    "uncompressed, 1200 layers": {"layers": 1200},
    "one program of regions, 1200": {"layers": 1200, "mode": "call"},
    "separate regions, 1200": {"layers": 1200, "mode": "segment"},
    "no sharing, 4 regions": {"layers": 400, "mode": "segment", "share_compiled": False},
    "shared, 4 regions": {"layers": 400, "mode": "segment"},
    "find_repeats, 4 regions": {"layers": 400, "mode": "auto", "repeats": True},
    "no sharing, 12 regions": {"layers": 1200, "mode": "segment", "share_compiled": False},
    "shared, 12 regions": {"layers": 1200, "mode": "segment"},
    "find_repeats, 12 regions": {"layers": 1200, "mode": "auto", "repeats": True},
    "no sharing, 24 regions": {"layers": 2400, "mode": "segment", "share_compiled": False},
    "shared, 24 regions": {"layers": 2400, "mode": "segment"},
    "find_repeats, 24 regions": {"layers": 2400, "mode": "auto", "repeats": True},
}
WAVE = {
    f"{mode or 'uncompressed'}, {steps} steps": {"steps": steps, "mode": mode}
    for steps in (10, 50, 200)
    for mode in (None, "segment", "scan", "call")
}


def chain(_: None, layers: int, mode: str | None = None, repeats: bool = False, size: int = 100, **options: Any) -> Any:
    """The compiled chain and its gradient."""
    import numpy as np

    import fieldjax as fj

    with fj.record() as model:
        x = model.input("x", np.linspace(0.1, 1.0, 1000))
        p = model.input("p", np.linspace(0.3, 0.9, 1000))
        h, starts = x, [x]
        for n in range(1, layers + 1):
            h = fj.tanh(fj.sin(h * p) + 0.1)
            if n % size == 0:
                starts.append(h)
        ends = list(itertools.pairwise(starts))
        if mode is not None:
            for start, end in ends[:1] if repeats else ends:
                fj.compress([start, p], end, mode=mode, find_repeats=repeats, **options)
        s = fj.sum(h)
        model.output("s", s)
        model.output("gradient", fj.derivative(s, p))
    return model.compile()


def wave(experiment: Any, steps: int, mode: str | None = None) -> Any:
    """The compiled shallow-water model, and the gradient of its energy with respect to the first height."""
    import numpy as np

    import fieldjax as fj
    from fieldjax.demo.shallow_water import forward_backward
    from fieldjax.mesh import Cell, Edge

    mesh, physics = experiment.mesh, experiment.model
    cells, edges = (len(mesh[n].domain.range_of(d)) for n, d in (("C2E", Cell), ("E2C", Edge)))
    with fj.record() as model:
        m = model.input("mesh", mesh)
        h = model.input("h", fj.as_field({Cell: cells}, np.sin(np.arange(cells) / 100.0)))
        u = model.input("u", fj.as_field({Edge: edges}, np.zeros(edges)))
        rest = [model.input(name, value) for name, value in physics._asdict().items()]
        first, states = (h, u), []
        for _ in range(steps):
            h, u = forward_backward(h, u, *rest, offset_provider=m)
            states.append((h, u))
        if mode is not None:
            fj.compress([*first, *rest], list(states[0]), mode=mode, find_repeats=True)
        energy = fj.sum(h * h)
        model.output("energy", energy)
        model.output("gradient", fj.derivative(energy, first[0]))
    return model.compile()


def an_ocean() -> Any:
    """The demo's model on R2B4."""
    from fieldjax.demo.experiment import prepare
    from fieldjax.mesh import icosahedral_grid

    return prepare(icosahedral_grid(2, 4), hours=12.0)


class Kind(NamedTuple):
    """A table: what is there before the clock starts, what is timed, and the rows."""

    given: Callable[[], Any]
    build: Callable[..., Any]
    rows: dict[str, dict[str, Any]]


KINDS = {"chain": Kind(lambda: None, chain, CHAIN), "wave": Kind(an_ocean, wave, WAVE)}


def measure(kind: Kind, row: str) -> dict[str, float]:
    """Set-up and steady state in seconds, and the peak of memory in megabytes, in this process."""
    import jax

    jax.config.update("jax_enable_x64", True)
    import fieldjax  # noqa: F401 (its import is no part of the set-up)

    jax.block_until_ready(jax.jit(lambda x: x + 1)(1.0))
    given = kind.given()
    start = time.perf_counter()
    run = kind.build(given, **kind.rows[row])
    jax.block_until_ready(list(run().values()))
    setup = time.perf_counter() - start
    samples = []
    for _ in range(10):
        start = time.perf_counter()
        jax.block_until_ready(list(run().values()))
        samples.append(time.perf_counter() - start)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"setup": setup, "steady": statistics.median(samples), "memory": memory}


def main() -> None:
    """Measures each row in a process of its own and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", help="chain, wave (default: both)")
    parser.add_argument("--row", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.row:
        print(json.dumps(measure(KINDS[asked.row[0]], asked.row[1])))
        return
    for kind in asked.kinds or KINDS:
        print(f"{kind:32}{'set-up':>10}{'steady':>12}{'peak memory':>14}")
        for row in KINDS[kind].rows:
            command = [sys.executable, "-m", "benchmarks.compress", "--row", kind, row]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                print(f"{row:32}failed: {done.stderr.splitlines()[-1] if done.stderr else done.returncode}")
                continue
            found = json.loads(done.stdout.splitlines()[-1])
            setup, steady, memory = found["setup"], found["steady"] * 1e3, found["memory"]
            print(f"{row:32}{setup:8.2f} s{steady:9.2f} ms{memory:11.0f} MB", flush=True)


if __name__ == "__main__":
    main()
