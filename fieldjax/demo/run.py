"""The demo from start to end: grid, two runs, gradient, checks, files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fieldjax import Field
from fieldjax.demo.checks import Check, dot_product, energy_drift, frequency_error, mass_drift, taylor_order
from fieldjax.demo.experiment import DEGREE, Experiment, on_cells, prepare
from fieldjax.demo.shallow_water import State
from fieldjax.demo.timing import Stopwatch, bytes_to_move, pass_over
from fieldjax.mesh import Grid, icosahedral_grid, open_icon, write_icon


@dataclass(frozen=True)
class Results:
    """What the demo found."""

    experiment: Experiment
    states: tuple[State, ...]
    """Of the wave, at the beginning and after each chunk."""
    gradient: Field
    """Of the misfit with respect to the initial height, m, on Cell."""
    checks: tuple[Check, ...]
    loop: Stopwatch
    """One chunk of the compiled time loop."""
    adjoint: Stopwatch
    """The misfit and its gradient."""
    moved: int
    """Bytes that one step must move."""
    one_pass: float
    """Seconds for a triad over as many bytes."""


def run(folder: Path, *, level: int = 4, hours: float = 12.0) -> Results:
    """Everything but the files of the result; the grid goes through `folder`."""
    loop, adjoint = Stopwatch(), Stopwatch()
    with progress() as bar:
        with stage(bar, "grid"):
            experiment = prepare(grid_by_file(level, folder / "demo_grid.nc"), hours)
        bar.total += 2 * experiment.chunks
        waves = history(experiment, experiment.wave(), loop, bar, "wave")
        modes = history(experiment, experiment.mode(), loop, bar, f"mode {DEGREE}")
        with stage(bar, "gradient"):
            misfit = experiment.misfit(waves[-1].h)
            guess = on_cells(experiment.grid, np.zeros(waves[0].h.shape))
            _, gradient = [adjoint(misfit, guess) for _ in range(3)][-1]
        with stage(bar, "checks"):
            checks = (
                *physics(experiment, waves, modes),
                dot_product(experiment.forecast, waves[0], impedance=impedance(experiment)),
                taylor_order(lambda h: float(misfit(h)[0]), guess, gradient),
            )
        moved = bytes_to_move(waves[0], experiment.model, experiment.mesh)
        one_pass = pass_over(moved, experiment.steps)
    return Results(experiment, waves, gradient, checks, loop, adjoint, moved, one_pass)


def grid_by_file(level: int, path: Path) -> Grid:
    """R2B`level`, generated, written as an ICON grid file and read back."""
    write_icon(icosahedral_grid(2, level), path)
    return open_icon(path)


def history(experiment: Experiment, state: State, loop: Stopwatch, bar: Any, name: str) -> tuple[State, ...]:
    """The states of a run, from the first on."""
    states = [state]
    bar.set_description(name)
    for _ in range(experiment.chunks):
        states.append(loop(experiment.chunk, states[-1]))
        bar.update()
    return tuple(states)


def physics(experiment: Experiment, waves: Sequence[State], modes: Sequence[State]) -> Iterator[Check]:
    """The checks against theory."""
    area = experiment.grid["cell_area"]
    volume = float(np.sum(area * np.abs(waves[0].h.asnumpy())))
    yield mass_drift([experiment.mass(s) for s in waves], volume)
    yield energy_drift([experiment.energy(s) for s in waves])
    shape = area * modes[0].h.asnumpy()
    amplitudes = [float(np.sum(shape * s.h.asnumpy())) for s in modes]
    speed = float(np.sqrt(experiment.model.gravity * experiment.model.depth))
    radius = experiment.grid.geometry.attrs["sphere_radius"]
    yield frequency_error(amplitudes, experiment.interval, DEGREE, speed, radius)


def impedance(experiment: Experiment) -> float:
    """A velocity over a height of equal energy, s⁻¹."""
    return float(np.sqrt(experiment.model.gravity / experiment.model.depth))


@contextmanager
def progress() -> Iterator[Any]:
    """A bar over the stages; who knows of more to do adds to its total."""
    from tqdm import tqdm

    with tqdm(total=3, bar_format="{desc:>8} |{bar:40}| {n_fmt}/{total_fmt}, {elapsed}") as bar:
        yield bar


@contextmanager
def stage(bar: Any, name: str) -> Iterator[None]:
    """One stage, named while it lasts."""
    bar.set_description(name)
    yield
    bar.update()
