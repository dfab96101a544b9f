"""The benchmarks' measuring: what is called how often, in which order, and what the table says."""

import re

import jax.numpy as jnp
import pytest

from benchmarks.measure import Timing, interleaved, ratio_table, stream_triad


def test_candidates_take_turns():
    calls = []
    interleaved({name: lambda name=name: calls.append(name) for name in "ab"}, rounds=4, sample_seconds=1e-5)
    turns = re.sub(r"(.)\1*", r"\1", "".join(calls))
    assert turns == "ab" * 5  # one to compile and calibrate, then the rounds


def test_results_are_waited_for():
    timings = interleaved({"jax": lambda: jnp.arange(4) + 1}, rounds=1, sample_seconds=1e-5)
    assert timings["jax"].wall > 0


@pytest.mark.parametrize("nbytes", [0, 24, 24_000])
def test_a_triad_runs_at_any_size(nbytes):
    stream_triad(nbytes)()


def test_the_table_gives_ratios_to_the_base():
    timings = {"bare": Timing(2e-6, 4e-3), "ours": Timing(3e-6, 8.0)}
    assert ratio_table(timings, base="bare", title="dispatch").splitlines() == [
        "dispatch          CPU    ratio         wall    ratio",
        "bare          2.00 µs     1.00      4.00 ms     1.00",
        "ours          3.00 µs     1.50      8.00 s   2000.00",
    ]
