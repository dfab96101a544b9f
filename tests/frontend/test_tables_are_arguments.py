"""Law 2: tables are data. Nothing of a mesh is in what JAX traces, and little is in what XLA compiles."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fieldjax as fj

Vertex, Edge = fj.Dimension("Vertex"), fj.Dimension("Edge")
E2VDim = fj.Dimension("E2V", fj.DimensionKind.LOCAL)
E2V = fj.FieldOffset("E2V", source=Vertex, target=(Edge, E2VDim))

# The first 60000 edges lie between the first 30000 vertices, all others between the rest.
TABLE = (np.arange(120_000)[:, None] // 2 + np.array([0, 1])) % 30_000
TABLE[60_000:] += 30_000
E2V_TABLE = fj.as_connectivity({Edge: 120_000, E2VDim: 2}, Vertex, TABLE)
FIELD = fj.as_field({Vertex: (0, 30_000)}, jnp.arange(30_000.0))
WHOLE = fj.domain({Edge: (0, 60_000), E2VDim: (0, 2)})


@fj.field_operator
def ends(f):
    return f(E2V)


@fj.field_operator
def ends_through(f, table):
    return f.premap(table)


def by_mesh(f: fj.Field, mesh: fj.Mesh) -> fj.Field:
    return ends(f, offset_provider=mesh)


CALLS: dict[str, tuple[Any, Any]] = {
    "a mesh": (by_mesh, fj.Mesh(E2V=E2V_TABLE)),
    "a dict": (lambda f, c: ends(f, offset_provider={"E2V": c}), E2V_TABLE),
    "an argument of the operator": (lambda f, c: ends_through(f, c), E2V_TABLE),
    "embedded": (lambda f, c: f.premap(c), E2V_TABLE),
}


def constants_of(jaxpr: Any) -> list[Any]:
    """The constants of a closed jaxpr and of all jaxprs inside of it that hold arrays with elements."""
    found = [c for c in jaxpr.consts if np.size(c) > 1]
    for equation in jaxpr.jaxpr.eqns:
        for inner in jax.tree.leaves(equation.params, is_leaf=lambda x: hasattr(x, "consts")):
            if hasattr(inner, "consts"):
                found += constants_of(inner)
    return found


@pytest.mark.parametrize("name", CALLS)
def test_a_gather_narrows_and_inlines_nothing(name: str) -> None:
    function, tables = CALLS[name]
    for compiled in (jax.jit(function), function):
        result = compiled(FIELD, tables)
        assert result.domain == WHOLE
        np.testing.assert_array_equal(result.asnumpy(), TABLE[:60_000])
    jaxpr = jax.make_jaxpr(function)(FIELD, tables)
    assert jaxpr.out_avals[0].shape == (60_000, 2)
    assert constants_of(jaxpr) == []
    assert len(jax.jit(function).lower(FIELD, tables).as_text()) < 4000


@pytest.mark.parametrize("name", CALLS)
def test_through_fieldjax_jit(name: str) -> None:
    function, tables = CALLS[name]
    compiled = fj.jit(function)
    assert compiled(FIELD, tables).domain == WHOLE
    jaxpr = jax.make_jaxpr(compiled)(FIELD, tables)
    assert constants_of(jaxpr) == []
    assert len(jax.jit(compiled).lower(FIELD, tables).as_text()) < 4000


def test_a_mesh_that_is_closed_over_is_lifted_by_fieldjax_jit() -> None:
    compiled = fj.jit(lambda f: ends(f, offset_provider={"E2V": E2V_TABLE}))
    assert compiled(FIELD).domain == WHOLE
    inlined = jax.jit(lambda f: ends(f, offset_provider={"E2V": E2V_TABLE}))
    with pytest.warns(fj.FieldjaxWarning, match=r"closed over by jax\.jit.*use fieldjax\.jit"):
        text = inlined.lower(FIELD).as_text()
    assert len(text) > 100_000


def test_gradients_hold_no_table_either() -> None:
    def loss(f: fj.Field, mesh: fj.Mesh) -> jax.Array:
        return jnp.sum(ends(f, offset_provider=mesh).ndarray ** 2)

    mesh = fj.Mesh(E2V=E2V_TABLE)
    text = jax.jit(jax.grad(loss)).lower(FIELD, mesh).as_text()
    assert len(text) < 8000
    gradient = jax.jit(jax.grad(loss))(FIELD, mesh)
    want = 2 * np.arange(30_000.0) * np.bincount(TABLE[:60_000].ravel(), minlength=30_000)
    np.testing.assert_allclose(gradient.asnumpy(), want)
