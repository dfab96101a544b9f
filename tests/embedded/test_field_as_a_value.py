"""A field is a JAX value: copied, moved, stacked, carried and differentiated like an array, through operators."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import fieldjax as fj

Cell, Edge = fj.Dimension("Cell"), fj.Dimension("Edge")
E2CDim, C2EDim = fj.Dimension("E2C", fj.DimensionKind.LOCAL), fj.Dimension("C2E", fj.DimensionKind.LOCAL)
E2C = fj.FieldOffset("E2C", source=Cell, target=(Edge, E2CDim))
C2E = fj.FieldOffset("C2E", source=Edge, target=(Cell, C2EDim))

TABLES = np.random.default_rng(3)
EDGE_CELLS = np.where(TABLES.random((9, 2)) < 0.2, -1, TABLES.integers(0, 6, (9, 2)))
CELL_EDGES = TABLES.integers(0, 9, (6, 3))


def mesh_of(edge_cells: Any = EDGE_CELLS, cell_edges: Any = CELL_EDGES) -> fj.Mesh:
    return fj.Mesh(
        E2C=fj.as_connectivity({Edge: 9, E2CDim: 2}, Cell, edge_cells, skip_value=-1),
        C2E=fj.as_connectivity({Cell: 6, C2EDim: 3}, Edge, cell_edges),
    )


MESH = mesh_of()
VALUES = np.linspace(0.5, 2.0, 6)


@fj.field_operator
def smooth(f):
    """Nonlinear, over skips, there and back."""
    g = fj.neighbor_sum(f(E2C) * f(E2C), axis=E2CDim)
    return f + 0.1 * fj.neighbor_sum(fj.sin(g(C2E)), axis=C2EDim)


def expected(x: np.ndarray, edge_cells: np.ndarray = EDGE_CELLS) -> np.ndarray:
    g = np.where(edge_cells >= 0, x[edge_cells] ** 2, 0.0).sum(-1)
    return x + 0.1 * np.sin(g[CELL_EDGES]).sum(-1)


def field(x: Any = VALUES) -> fj.Field:
    return fj.as_field({Cell: 6}, jnp.asarray(x))


def step(f: fj.Field, mesh: fj.Mesh = MESH) -> fj.Field:
    return smooth(f, offset_provider=mesh)


def misfit(f: fj.Field, mesh: fj.Mesh = MESH) -> jax.Array:
    return jnp.sum(step(f, mesh).ndarray ** 3)


def expected_gradient(x: np.ndarray, h: float = 1e-6) -> np.ndarray:
    def value(x: np.ndarray) -> float:
        return float((expected(x) ** 3).sum())

    return np.array([(value(x + h * e) - value(x - h * e)) / (2 * h) for e in np.eye(x.size)])


COPIES: dict[str, Callable[[fj.Field], fj.Field]] = {
    "pickle": lambda f: pickle.loads(pickle.dumps(f)),
    "deepcopy": copy.deepcopy,
    "device_put": lambda f: jax.device_put(f, jax.devices()[1]),
    "tree_map": lambda f: jax.tree.map(lambda x: x * 1.0, f),
    "flatten and unflatten": lambda f: jax.tree.unflatten(jax.tree.structure(f), jax.tree.leaves(f)),
    "jit": lambda f: jax.jit(lambda g: g)(f),
}


@pytest.mark.parametrize("wrap", [np.asarray, jnp.asarray], ids=["NumPy", "JAX"])
@pytest.mark.parametrize("name", COPIES)
def test_copies_have_the_same_elements_on_the_same_domain(name: str, wrap: Any) -> None:
    original = fj.as_field({Cell: (2, 8)}, wrap(VALUES))
    copied = COPIES[name](original)
    assert copied.domain == original.domain
    np.testing.assert_array_equal(copied.asnumpy(), VALUES)
    np.testing.assert_array_equal((copied + original).asnumpy(), 2 * VALUES)


def test_a_copy_of_a_masked_field_still_knows_what_is_missing() -> None:
    read = field().premap(MESH["E2C"])
    for name in ("pickle", "deepcopy", "tree_map"):
        copied = COPIES[name](read)
        np.testing.assert_array_equal(copied.asnumpy(masked=True).mask, EDGE_CELLS < 0)
        total = fj.neighbor_sum(copied, axis=E2CDim).asnumpy()
        np.testing.assert_allclose(total, np.where(EDGE_CELLS >= 0, VALUES[EDGE_CELLS], 0).sum(-1))


def test_a_field_on_the_second_device_is_computed_there() -> None:
    device = jax.devices()[1]
    moved = jax.device_put((field(), MESH), device)
    result = step(*moved)
    assert result.ndarray.devices() == {device}
    np.testing.assert_allclose(result.asnumpy(), expected(VALUES))


def test_donated_fields_are_gone_and_results_are_right() -> None:
    donated = field()
    run = jax.jit(step, donate_argnums=0)
    result = run(donated, MESH)
    np.testing.assert_allclose(result.asnumpy(), expected(VALUES))
    assert donated.ndarray.is_deleted()
    np.testing.assert_allclose(run(result, MESH).asnumpy(), expected(expected(VALUES)))


@pytest.mark.parametrize("axis", [0, 1])
def test_vmap_over_fields(axis: int) -> None:
    members = np.stack([VALUES, VALUES[::-1], VALUES**2], axis)
    stacked = jax.tree.map(lambda _: jnp.asarray(members), field())
    result = jax.vmap(step, in_axes=(axis, None), out_axes=axis)(stacked, MESH)
    one_by_one = np.apply_along_axis(expected, 1 - axis, members)
    np.testing.assert_allclose(result.ndarray, one_by_one)


def test_a_gradient_for_each_member() -> None:
    members = np.stack([VALUES, VALUES[::-1]])
    stacked = jax.tree.map(lambda _: jnp.asarray(members), field())
    gradients = jax.vmap(jax.grad(misfit))(stacked).ndarray
    np.testing.assert_allclose(gradients, [expected_gradient(m) for m in members], rtol=1e-7)


def test_fields_in_the_carry_of_a_loop() -> None:
    def body(f: fj.Field, dt: jax.Array) -> tuple[fj.Field, fj.Field]:
        g = step(f) * dt
        return g, g

    last, history = jax.lax.scan(body, field(), jnp.array([1.0, 0.5, 0.25]))
    x, states = VALUES, []
    for dt in (1.0, 0.5, 0.25):
        x = expected(x) * dt
        states.append(x)
    np.testing.assert_allclose(last.asnumpy(), x)
    np.testing.assert_allclose(history.ndarray, states)
    while_last = jax.lax.fori_loop(0, 3, lambda _, f: step(f), field())
    np.testing.assert_allclose(while_last.asnumpy(), expected(expected(expected(VALUES))))


@pytest.mark.parametrize("first", [True, False])
def test_cond_takes_the_branch_of_the_right_mesh(first: bool) -> None:
    other_table = np.roll(EDGE_CELLS, 1, axis=0)
    other = mesh_of(other_table)
    want = expected(VALUES, EDGE_CELLS if first else other_table)

    def choose(p: Any, f: fj.Field, m: fj.Mesh, n: fj.Mesh) -> fj.Field:
        return jax.lax.cond(p, lambda: step(f, m), lambda: step(f, n))

    np.testing.assert_allclose(jax.jit(choose)(first, field(), MESH, other).asnumpy(), want)
    np.testing.assert_allclose(fj.jit(choose)(first, field(), MESH, other).asnumpy(), want)


def test_cond_refuses_to_return_one_mesh_or_another() -> None:
    other = mesh_of(np.roll(EDGE_CELLS, 1, axis=0))
    with pytest.raises(TypeError, match=r"same pytree structure|same type structure"):
        jax.jit(lambda p, m, n: jax.lax.cond(p, lambda: m, lambda: n))(True, MESH, other)


def test_reverse_and_forward_derivatives_agree_with_differences() -> None:
    want = expected_gradient(VALUES)
    checked = {
        "grad": jax.grad(misfit)(field()),
        "grad of jit": jax.grad(jax.jit(misfit))(field(), MESH),
        "jit of grad": jax.jit(jax.grad(misfit))(field(), MESH),
        "grad of fieldjax.jit": jax.grad(fj.jit(misfit))(field(), MESH),
        "checkpoint": jax.grad(jax.checkpoint(misfit))(field(), MESH),
        "value_and_grad": jax.value_and_grad(misfit)(field())[1],
        "vjp": jax.vjp(misfit, field())[1](jnp.ones(()))[0],
    }
    for name, gradient in checked.items():
        np.testing.assert_allclose(gradient.asnumpy(), want, rtol=1e-7, err_msg=name)
        assert gradient.domain == field().domain

    direction = np.cos(np.arange(6.0))
    slope = float(want @ direction)
    np.testing.assert_allclose(jax.jvp(misfit, (field(),), (field(direction),))[1], slope, rtol=1e-7)
    np.testing.assert_allclose(jax.linearize(misfit, field())[1](field(direction)), slope, rtol=1e-7)


def test_the_adjoint_is_the_transpose_of_the_tangent_linear() -> None:
    rng = np.random.default_rng(5)
    direction, weight = rng.normal(size=6), rng.normal(size=6)
    tangent = jax.jvp(step, (field(),), (field(direction),))[1].asnumpy()
    cotangent = jax.vjp(step, field())[1](field(weight))[0].asnumpy()
    np.testing.assert_allclose(tangent @ weight, direction @ cotangent, rtol=1e-13)


@pytest.mark.parametrize(
    "second",
    [jax.hessian, lambda f: jax.jacfwd(jax.jacfwd(f)), lambda f: jax.jacrev(jax.jacrev(f))],
    ids=["forward over reverse", "forward over forward", "reverse over reverse"],
)
def test_second_derivatives(second: Any) -> None:
    found = second(misfit)(field()).ndarray.ndarray
    h = 1e-5
    want = [(expected_gradient(VALUES + h * e) - expected_gradient(VALUES - h * e)) / (2 * h) for e in np.eye(6)]
    np.testing.assert_allclose(found, found.T, rtol=1e-12)
    np.testing.assert_allclose(found, want, atol=2e-3 * np.abs(want).max())
    exact = jax.jacfwd(lambda x: jax.grad(lambda y: jnp.sum(_reference(y) ** 3))(x))(jnp.asarray(VALUES))
    np.testing.assert_allclose(found, exact, rtol=1e-12)


def _reference(x: jax.Array) -> jax.Array:
    """The same function written without fieldjax."""
    gathered = x[jnp.where(EDGE_CELLS >= 0, EDGE_CELLS, 0)] ** 2
    g = jnp.sum(jnp.where(EDGE_CELLS >= 0, gathered, 0.0), axis=-1)
    return x + 0.1 * jnp.sum(jnp.sin(g[CELL_EDGES]), axis=-1)


def test_shard_map_over_members_with_the_mesh_replicated() -> None:
    devices = jax.make_mesh((2,), ("member",), axis_types=(AxisType.Auto,))
    members = np.stack([VALUES * (1 + n) for n in range(4)])
    stacked = jax.tree.map(lambda _: jnp.asarray(members), field())
    stacked = jax.device_put(stacked, NamedSharding(devices, PartitionSpec("member")))

    def each(f: fj.Field, mesh: fj.Mesh) -> fj.Field:
        return jax.vmap(step, in_axes=(0, None))(f, mesh)

    run = jax.shard_map(
        each, mesh=devices, in_specs=(PartitionSpec("member"), PartitionSpec()), out_specs=PartitionSpec("member")
    )
    result = jax.jit(run)(stacked, MESH)
    np.testing.assert_allclose(result.ndarray, [expected(m) for m in members])
    gradient = jax.jit(jax.grad(lambda f: jnp.sum(run(f, MESH).ndarray ** 3)))(stacked)
    np.testing.assert_allclose(gradient.ndarray, [expected_gradient(m) for m in members], rtol=1e-6)
