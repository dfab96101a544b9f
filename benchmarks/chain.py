"""A chain of nonlinear gather-reduce stages: what a barrier after each buys, at several numbers of levels.

python -m benchmarks.chain
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.measure import interleaved, pin_to_one_core, ratio_table, stream_triad

CELLS, STAGES = 40_000, 12


def main() -> None:
    """Prints one table for each number of levels, forward and gradient."""
    pin_to_one_core()
    import jax
    import jax.numpy as jnp
    import numpy as np

    import fieldjax as fj
    from fieldjax.ir.jax_arrays import JaxArrays

    cell, levels_dim = fj.Dimension("Cell"), fj.Dimension("K", fj.DimensionKind.VERTICAL)
    local = fj.Dimension("C2C", fj.DimensionKind.LOCAL)
    offset = fj.FieldOffset("C2C", source=cell, target=(cell, local))
    near = np.random.default_rng(0).integers(-200, 200, (CELLS, 3))
    table = np.clip(np.arange(CELLS)[:, None] + near, 0, CELLS - 1)
    mesh = fj.Mesh(C2C=fj.as_connectivity([cell, local], cell, table))

    def stages(f: Any) -> Any:
        for _ in range(STAGES):
            f = fj.tanh(0.3 * fj.neighbor_sum(f(offset), axis=local))
        return f

    def loss_of(operator: Any) -> Callable[[Any], Any]:
        return jax.jit(lambda f, m: jnp.sum(operator(f, offset_provider=m).ndarray ** 2))

    def without(f: Any, m: Any) -> Any:
        from fieldjax.backend.arrays import CompiledArrays

        kept = CompiledArrays.hold
        CompiledArrays.hold = JaxArrays.hold  # type: ignore[method-assign]
        try:
            return fj.field_operator(stages)(f, offset_provider=m)
        finally:
            CompiledArrays.hold = kept  # type: ignore[method-assign]

    held = fj.field_operator(stages)
    one = fj.field_operator(lambda f: fj.tanh(0.3 * fj.neighbor_sum(f(offset), axis=local)))

    def separate(f: Any) -> Any:
        for _ in range(STAGES):
            f = one(f, offset_provider=mesh)
        return f

    plain = jax.jit(without)
    gradient = jax.jit(jax.grad(loss_of(held)))
    plain_gradient = jax.jit(jax.grad(lambda f, m: jnp.sum(without(f, m).ndarray ** 2)))
    for levels in (1, 20):
        f = fj.as_field([cell, levels_dim], jnp.asarray(np.random.default_rng(1).random((CELLS, levels), np.float32)))
        candidates: dict[str, Callable[[], Any]] = {
            "one program with barriers": lambda f=f: held(f, offset_provider=mesh),
            "one program without": lambda f=f: plain(f, mesh),
            "separate programs": lambda f=f: separate(f),
            "gradient, with barriers": lambda f=f: gradient(f, mesh),
            "gradient, without": lambda f=f: plain_gradient(f, mesh),
            "STREAM, two passes a stage": stream_triad(2 * STAGES * CELLS * levels * 4),
        }
        title = f"{STAGES} stages, {levels} levels"
        print(ratio_table(interleaved(candidates, rounds=7), base="one program with barriers", title=title), "\n")


if __name__ == "__main__":
    main()
