"""Scans against hand-written `jax.lax.scan`: a carry of 28 numbers, and a tridiagonal solve.

    python -m benchmarks.scan

Hand-written once on arrays with the levels first, as the loop wants them, and once on arrays with the levels
last, as fields hold them: the difference is the cost of turning 3 inputs and 28 outputs around.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.measure import interleaved, pin_to_one_core, ratio_table, stream_triad

pin_to_one_core()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import fieldjax as fj  # noqa: E402

jax.config.update("jax_enable_x64", True)
Cell, K = fj.Dimension("Cell"), fj.Dimension("K", fj.DimensionKind.VERTICAL)
LEAVES, COLUMNS, LEVELS = 28, 2000, 60


def fall(where: Any, carry: Any, t: Any, p: Any, q: Any) -> Any:
    """A made-up sedimentation of 28 species, each fed by the one before and limited by `q`."""
    fluxes = [x * t + carry[n - 1] * p for n, x in enumerate(carry)]
    return tuple(where(flux > q, q + 0.5 * (flux - q), flux) for flux in fluxes)


@fj.scan_operator(axis=K, init=(0.5,) * LEAVES)
def sedimentation(carry: Any, t: Any, p: Any, q: Any) -> Any:
    """In fieldjax."""
    return fall(fj.where, carry, t, p, q)


def levels_first(body: Any, *arrays: Any, carry: Any, reverse: bool = False) -> Any:
    """Hand-written, on arrays of levels of columns."""

    def step(carry: Any, level: Any) -> Any:
        new = body(carry, *level)
        return new, new

    carry = jax.tree.map(lambda x: jnp.full(arrays[0].shape[1:], x), carry)
    return jax.lax.scan(step, carry, arrays, reverse=reverse)[1]


def levels_last(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same on arrays of columns of levels."""
    return lambda *arrays: jax.tree.map(jnp.transpose, function(*map(jnp.transpose, arrays)))


def sedimentation_by_hand(*arrays: Any) -> Any:
    return levels_first(lambda *a: fall(jnp.where, *a), *arrays, carry=(0.5,) * LEAVES)


def eliminate(carry: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """One level of the forward sweep."""
    pivot = b - a * carry[0]
    return c / pivot, (d - a * carry[1]) / pivot


def substitute(below: Any, c: Any, d: Any) -> Any:
    """One level of the backward sweep."""
    return d - c * below


down = fj.scan_operator(eliminate, axis=K, init=(0.0, 0.0))
up = fj.scan_operator(substitute, axis=K, forward=False, init=0.0)


@fj.field_operator
def solve(a: Any, b: Any, c: Any, d: Any) -> Any:
    """A tridiagonal solve in fieldjax."""
    return up(*down(a, b, c, d))


def solve_by_hand(*arrays: Any) -> Any:
    swept = levels_first(eliminate, *arrays, carry=(0.0, 0.0))
    return levels_first(substitute, *swept, carry=0.0, reverse=True)


def compare(title: str, operator: Any, by_hand: Any, inputs: int, outputs: int) -> None:
    """Prints the ratios for one operator and its hand-written twin."""
    rng = np.random.default_rng(0)
    last = [jnp.asarray(rng.random((COLUMNS, LEVELS)) + (n == 1)) for n in range(inputs)]
    first = [jnp.asarray(x.T) for x in last]
    fields = [fj.as_field({Cell: COLUMNS, K: LEVELS}, x) for x in last]
    on_first, on_last = jax.jit(by_hand), jax.jit(levels_last(by_hand))
    got, expected = (jax.tree.leaves(x) for x in (operator(*fields), on_last(*last)))
    for x, y in zip(got, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12)
    calls: dict[str, Callable[[], Any]] = {
        "lax.scan, levels first": lambda: on_first(*first),
        "lax.scan, levels last": lambda: on_last(*last),
        "fieldjax": lambda: operator(*fields),
        "STREAM": stream_triad((inputs + outputs) * COLUMNS * LEVELS * 8),
    }
    print(ratio_table(interleaved(calls), base="lax.scan, levels last", title=title))


def main() -> None:
    """Prints the ratios."""
    compare(f"carry of {LEAVES}", sedimentation, sedimentation_by_hand, 3, LEAVES)
    compare("tridiagonal solve", solve, solve_by_hand, 4, 1)


if __name__ == "__main__":
    main()
