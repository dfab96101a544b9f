"""Gradients through neighbour tables: transposed gathers against scatter-adds, and against plain JAX.

Losses are sums of squares of a divergence (cells read their three edges) and of an edge chain (vertices sum their
six edges, edges take the difference of their two vertices), at 1, 20 and 80 levels on a mesh of the size of R2B6,
numbered at random within a short distance. One core.

    python -m benchmarks.adjoint [--quarter]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from benchmarks.measure import interleaved, pin_to_one_core, ratio_table

if __name__ == "__main__":
    pin_to_one_core()

import jax
import jax.numpy as jnp
import numpy as np

import fieldjax as fj

jax.config.update("jax_enable_x64", True)

Cell, Edge, Vertex = fj.Dimension("Cell"), fj.Dimension("Edge"), fj.Dimension("Vertex")
K = fj.Dimension("K", fj.DimensionKind.VERTICAL)
C2EDim, V2EDim, E2VDim = (fj.Dimension(name, fj.DimensionKind.LOCAL) for name in ("C2E", "V2E", "E2V"))
C2E = fj.FieldOffset("C2E", source=Edge, target=(Cell, C2EDim))
V2E = fj.FieldOffset("V2E", source=Edge, target=(Vertex, V2EDim))
E2V = fj.FieldOffset("E2V", source=Vertex, target=(Edge, E2VDim))
CELLS, EDGES, VERTICES = 81920, 122880, 40962
LEVELS = (1, 20, 80)


@fj.field_operator
def divergence(flux, weights):
    return fj.neighbor_sum(flux(C2E) * weights, axis=C2EDim)


@fj.field_operator
def chain(flux, weights):
    at_vertices = fj.neighbor_sum(flux(V2E) * weights, axis=V2EDim)
    return at_vertices(E2V[1]) - at_vertices(E2V[0])


def plain_divergence(flux, weights, tables):
    return weighted_sum(flux, weights, tables["C2E"])


def plain_chain(flux, weights, tables):
    at_vertices = weighted_sum(flux, weights, tables["V2E"])
    return read(at_vertices, tables["E2V"][:, 1]) - read(at_vertices, tables["E2V"][:, 0])


def weighted_sum(flux, weights, table):
    return sum(read(flux, table[:, s]) * weights[:, s, None] for s in range(table.shape[1]))


def read(field, index):
    return field.at[index].get(mode="promise_in_bounds")


def random_mesh(rng: np.random.Generator, parts: int) -> fj.Mesh:
    """Tables of a mesh whose neighbours have numbers within a few hundred of each other."""
    cells, edges, vertices = CELLS // parts, EDGES // parts, VERTICES // parts
    return fj.Mesh(
        C2E=fj.as_connectivity([Cell, C2EDim], Edge, local_table(rng, cells, 3, edges)),
        V2E=fj.as_connectivity([Vertex, V2EDim], Edge, local_table(rng, vertices, 6, edges)),
        E2V=fj.as_connectivity([Edge, E2VDim], Vertex, local_table(rng, edges, 2, vertices)),
    )


def local_table(rng: np.random.Generator, rows: int, slots: int, elements: int) -> np.ndarray:
    """Each element about as often as any other, near where its number falls among the rows."""
    entries = np.repeat(np.arange(elements), -(-rows * slots // elements))[: rows * slots]
    places = np.arange(rows * slots) + rng.integers(-300, 300, rows * slots)
    return entries[np.argsort(places, kind="stable")].reshape(rows, slots)


def gradients(operator: Any, plain: Any, sparse: Any, mesh: fj.Mesh, levels: int) -> dict[str, Callable[[], Any]]:
    """Candidates that compute the same gradient with respect to the flux."""
    rng = np.random.default_rng(levels)
    flux = jnp.asarray(rng.random((mesh.E2V.domain.shape[0], levels)))
    weights = jnp.asarray(rng.random(sparse.shape))
    tables = {name: mesh[name].table for name in ("C2E", "V2E", "E2V")}

    def loss(flux, weights, mesh):
        domain = fj.domain({Edge: flux.shape[0], K: levels})
        result = operator(fj.as_field(domain, flux), fj.as_field(sparse, weights), offset_provider=mesh)
        return jnp.sum(result.ndarray**2)

    gradient = jax.jit(jax.grad(loss))
    in_jax = jax.jit(jax.grad(lambda *args: jnp.sum(plain(*args) ** 2)))
    attached = mesh.with_adjoint()
    return {
        "plain JAX": lambda: in_jax(flux, weights, tables),
        "scatter-adds": lambda: gradient(flux, weights, mesh),
        "transposed gathers": lambda: gradient(flux, weights, attached),
    }


def main() -> None:
    mesh = random_mesh(np.random.default_rng(0), 4 if "--quarter" in sys.argv else 1)
    losses = {
        "divergence": (divergence, plain_divergence, mesh.C2E.domain),
        "edge chain": (chain, plain_chain, mesh.V2E.domain),
    }
    for name, loss in losses.items():
        for levels in LEVELS:
            candidates = gradients(*loss, mesh, levels)
            expected = candidates["plain JAX"]()
            for candidate in candidates.values():
                np.testing.assert_allclose(candidate(), expected, rtol=1e-10, atol=1e-10)
            timings = interleaved(candidates, rounds=9)
            print(ratio_table(timings, base="plain JAX", title=f"{name}, K={levels}"), "\n")


if __name__ == "__main__":
    main()
