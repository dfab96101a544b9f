"""Models that the tests of recording and of regions share, each with the same function in plain JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import fieldjax as fj

Cell, Edge = fj.Dimension("Cell"), fj.Dimension("Edge")
K = fj.Dimension("K", fj.DimensionKind.VERTICAL)
E2CDim, C2EDim = fj.Dimension("E2C", fj.DimensionKind.LOCAL), fj.Dimension("C2E", fj.DimensionKind.LOCAL)
E2C = fj.FieldOffset("E2C", source=Cell, target=(Edge, E2CDim))
C2E = fj.FieldOffset("C2E", source=Edge, target=(Cell, C2EDim))


def tables(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Edges between 6 cells, some with one cell only; 3 edges around each cell. The seed numbers them otherwise."""
    rng = np.random.default_rng(0)
    edge_cells = rng.integers(0, 6, (9, 2))
    edge_cells[[2, 5], 1] = -1
    numbered = np.where(edge_cells < 0, -1, (edge_cells + seed) % 6)
    return numbered, (rng.integers(0, 9, (6, 3)) + seed) % 9


def mesh(seed: int = 0) -> fj.Mesh:
    edge_cells, cell_edges = tables(seed)
    return fj.Mesh(
        E2C=fj.as_connectivity({Edge: 9, E2CDim: 2}, Cell, edge_cells, skip_value=-1),
        C2E=fj.as_connectivity({Cell: 6, C2EDim: 3}, Edge, cell_edges),
    )


@fj.field_operator
def smooth(f, a):
    g = fj.neighbor_sum(f(E2C) * f(E2C), axis=E2CDim)
    return f + a * fj.neighbor_sum(fj.sin(g(C2E)), axis=C2EDim)


def smooth_reference(x: jax.Array, a: Any, seed: int = 0) -> jax.Array:
    edge_cells, cell_edges = tables(seed)
    valid = edge_cells >= 0
    g = jnp.sum(jnp.where(valid, x[jnp.where(valid, edge_cells, 0)] ** 2, 0.0), -1)
    return x + a * jnp.sum(jnp.sin(g[cell_edges]), -1)


def heights() -> fj.Field:
    return fj.as_field({Cell: 6}, jnp.linspace(0.2, 1.0, 6))


X = np.linspace(0.1, 1.0, 5)


def layer(h: Any, p: Any, m: Any) -> Any:
    """One layer of a chain, with the functions of `m`: fieldjax's or JAX's."""
    return m.tanh(m.sin(h * p) + 0.1)


class Chain(NamedTuple):
    """A recorded chain of layers: its values in order, the first of them the input."""

    model: fj.Model
    values: list[Any]
    p: Any


def chain(layers: int, p: Any = 0.7, inline: bool = False, width: int = 5) -> Chain:
    with fj.record(inline=inline) as model:
        values = [model.input("x", jnp.linspace(0.1, 1.0, width))]
        parameter = model.input("p", p)
        for _ in range(layers):
            values.append(layer(values[-1], parameter, fj))
    return Chain(model, values, parameter)


def chain_reference(layers: int) -> Callable[[Any, Any], jax.Array]:
    def run(x: Any, p: Any) -> jax.Array:
        for _ in range(layers):
            x = layer(x, p, jnp)
        return x

    return run


def state(model: Any) -> Any:
    """All that `compress` could have changed, to compare before and after."""
    return (
        list(model.nodes),
        dict(model.outputs),
        dict(model.places),
        dict(model.moved),
        list(model.regions),
        {id(v): v.value for v in model.variables},
    )
