"""The table that the demo prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fieldjax.demo.checks import Check
from fieldjax.demo.run import Results
from fieldjax.mesh import Cell, Edge, Vertex


def table(results: Results) -> str:
    """Sizes, times and checks, a line each."""
    rows = [*_sizes(results), *_times(results), ("", ""), *map(_checked, results.checks)]
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}   {text}".rstrip() for name, text in rows)


def failures(checks: Sequence[Check]) -> str:
    """What failed, a line each; empty if nothing did."""
    return "\n".join(f"check failed: {c.name} is {c.value:.4g}, expected {c.bound}" for c in checks if not c.passed)


def _sizes(results: Results) -> Iterator[tuple[str, str]]:
    experiment = results.experiment
    cells, edges, vertices = (experiment.grid.sizes[dim] for dim in (Cell, Edge, Vertex))
    yield f"grid {experiment.name}", f"{cells} cells, {edges} edges, {vertices} vertices"
    steps = experiment.chunks * experiment.steps
    yield "time steps", f"{steps} of {experiment.model.dt:.0f} s for {experiment.hours:g} h"


def _times(results: Results) -> Iterator[tuple[str, str]]:
    step = results.loop.run / results.experiment.steps
    forecast = results.loop.run * results.experiment.chunks
    megabytes, ratio = results.moved / 1e6, step / results.one_pass
    yield (
        "compile",
        f"{results.loop.compile:.1f} s the time loop, {results.adjoint.compile:.1f} s its gradient",
    )
    yield (
        "time per step",
        f"{1e6 * step:.0f} µs: {ratio:.1f} × one pass over the {megabytes:.1f} MB it must move",
    )
    gradient = results.adjoint.run
    yield (
        "gradient",
        f"{1e3 * gradient:.0f} ms: {gradient / forecast:.1f} × the forecast's {1e3 * forecast:.0f} ms",
    )


def _checked(check: Check) -> tuple[str, str]:
    value = f"{check.value:.2f}" if check.at_least is not None else f"{check.value:.1e}"
    bound = "" if check.bound == "reported" else f"{check.bound:<18}{'ok' if check.passed else 'FAILED'}"
    return check.name, f"{value:<10}{bound}"
