"""Derivatives of scan operators by JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fieldjax as fj
from tests.frontend.scans import COLUMNS, LEVELS, Cell, K, columns, numbers, solve, total, tridiagonal


def value_of(operator, weights, *domains):
    """A weighted sum of the result as a function of arrays."""

    def value(*arrays):
        fields = [fj.as_field(d, a) for d, a in zip(domains, arrays, strict=True)]
        return (operator(*fields).ndarray * weights).sum()

    return value


WHOLE = fj.domain({Cell: COLUMNS, K: LEVELS})


@pytest.mark.parametrize("backend", [None, "jax"])
def test_the_adjoint_of_the_solve_is_the_transposed_solve(backend):
    matrix, inputs = tridiagonal()
    weights = columns(9)
    value = value_of(solve.with_backend(backend), weights, *[WHOLE] * 4)
    gradient = jax.grad(value, argnums=3)(*map(jnp.asarray, inputs))
    expected = np.linalg.solve(matrix.transpose(0, 2, 1), weights[..., None])[..., 0]
    np.testing.assert_allclose(gradient, expected, rtol=1e-11)


@fj.scan_operator(axis=K, init=(1.0, True))
def curved(carry, f, g):
    value, flag = carry
    new = fj.where(flag, fj.exp(-value * f), fj.sin(value) * f + g)
    return new, ~flag


@fj.field_operator
def curved_value(f, g):
    return curved(f, g)[0]


def test_gradients_tangents_and_hessians():
    inputs = jnp.asarray(columns()), jnp.asarray(numbers(COLUMNS, seed=1))
    value = value_of(curved_value, columns(5), WHOLE, fj.domain({Cell: COLUMNS}))
    tangents = tuple(jnp.asarray(numbers(*x.shape, seed=7, low=-1, high=1)) for x in inputs)
    gradients = jax.grad(value, argnums=(0, 1))(*inputs)
    along = sum(jnp.vdot(g, t) for g, t in zip(gradients, tangents, strict=True))
    h = 1e-5
    ahead, behind = (value(*(x + s * h * t for x, t in zip(inputs, tangents, strict=True))) for s in (1, -1))
    np.testing.assert_allclose(along, (ahead - behind) / (2 * h), rtol=1e-8)
    np.testing.assert_allclose(jax.jvp(value, inputs, tangents)[1], along, rtol=1e-12)
    np.testing.assert_allclose(jax.linearize(value, *inputs)[1](*tangents), along, rtol=1e-12)
    forward_over_reverse = jax.jvp(jax.grad(value), inputs, tangents)[1]
    hessian = jax.hessian(value, argnums=(0, 1))(*inputs)[0]
    expected = sum(jnp.tensordot(block, t, t.ndim) for block, t in zip(hessian, tangents, strict=True))
    np.testing.assert_allclose(forward_over_reverse, expected, rtol=1e-10)
    np.testing.assert_allclose(jax.jit(jax.grad(value))(*inputs), gradients[0], rtol=1e-12)


def test_vmap_over_members():
    members = jnp.asarray(numbers(3, COLUMNS, LEVELS))
    got = jax.vmap(lambda a: total(fj.as_field(WHOLE, a)).ndarray)(members)
    np.testing.assert_allclose(got, np.cumsum(members, axis=2))
