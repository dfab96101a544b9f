"""How long a step takes, as a multiple of one pass over the memory that it must move."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fieldjax.demo.shallow_water import Model, State


class Stopwatch:
    """Seconds of each call of a function, its results waited for: the first one compiles."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Calls, waits for the result, and notes the time."""
        start = time.perf_counter()
        result = jax.block_until_ready(function(*args, **kwargs))
        self.seconds.append(time.perf_counter() - start)
        return result

    @property
    def run(self) -> float:
        """The median of all calls but the first."""
        return statistics.median(self.seconds[1:])

    @property
    def compile(self) -> float:
        """What the first call took longer."""
        return self.seconds[0] - self.run


def bytes_to_move(state: State, model: Model, mesh: Any) -> int:
    """By one step at least: state, geometry and tables read once, the new state written once."""
    fields = [*state, *state, model.inverse_distance, model.weight]
    return sum(f.ndarray.nbytes for f in fields) + sum(t.ndarray.nbytes for t in mesh.values())


def pass_over(size: int, passes: int) -> float:
    """Seconds for one triad x = b + s · x that moves `size` bytes, in a compiled loop like the model's."""
    b = jnp.asarray(np.random.default_rng(0).random(max(1, size // 24)))  # reads b and x, writes x: 3 doubles
    watch = Stopwatch()
    for _ in range(8):
        watch(_triad, b, b, passes)
    return watch.run / passes


@partial(jax.jit, static_argnums=2)
def _triad(b: jax.Array, x: jax.Array, passes: int) -> jax.Array:
    return jax.lax.fori_loop(0, passes, lambda _, x: b + 0.5 * x, x)
