"""Conditions in the bodies of scans: each column decides for itself, as Python would on numbers."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fieldjax as fj
from tests.frontend.scans import COLUMNS, LEVELS, Cell, K, columns, everywhere, field, numbers, plain


def by_hand(body, init, *arrays, forward=True):
    """The body itself, on Python's numbers, column by column."""
    leaves = [np.zeros((COLUMNS, LEVELS)) for _ in jax.tree.leaves(init)]
    for column in range(COLUMNS):
        carry = init
        for k in range(LEVELS) if forward else reversed(range(LEVELS)):
            carry = body(carry, *(float(a[column, k] if a.ndim == 2 else a[column]) for a in arrays))
            for leaf, value in zip(leaves, jax.tree.leaves(carry), strict=True):
                leaf[column, k] = value
    return leaves


def assert_decides(body, init, *arrays, forward=True):
    operator = fj.scan_operator(body, axis=K, init=init, forward=forward)
    fields = [field(a, *((Cell, K) if a.ndim == 2 else (Cell,))) for a in arrays]
    for got, expected in zip(
        plain(everywhere(operator, *fields)), by_hand(body, init, *arrays, forward=forward), strict=True
    ):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-14)


def ternary(carry, x):
    return carry if carry > x else carry + 1.0


def stepwise(carry, x):
    if x > 1.2:
        new = carry + x
    elif x > 0.9:
        new = carry * 0.5
        if carry > 2.0:
            new = new - x
    else:
        new = -carry
    return new


def early(carry, x):
    if carry > 3.0:
        return carry * 0.5
    y = x * x
    if y < 1.0 and not carry < 0.5:
        return carry + y
    return carry + 2.0 * y if 0.4 < carry <= 1.5 else carry + x


def singular(carry, x):
    return carry + (fj.sqrt(x - 1.0) if x > 1.0 else 0.1)


@pytest.mark.parametrize("body", [ternary, stepwise, early])
@pytest.mark.parametrize("forward", [True, False])
def test_each_column_decides_for_itself(body, forward):
    assert_decides(body, 0.0, columns(), forward=forward)


def test_pressure_from_the_top_with_a_flag_for_the_first_level():
    def pressure(carry, density, top):
        above, is_first = carry
        if is_first:
            below = top + 9.81 * density
        else:
            below = above + 9.81 * density
        return below, False

    assert_decides(pressure, (0.0, True), columns(), numbers(COLUMNS, seed=1))


class Column(NamedTuple):
    """What falls: ten species with a flux each, a flag, and a count."""

    mixing: tuple
    flux: tuple
    wet: bool
    count: int


def sediment(carry, x, t):
    """31 conditions on 22 values."""
    wet, count = carry.wet, carry.count
    mixing, flux = [], []
    for n, (q, p) in enumerate(zip(carry.mixing, carry.flux, strict=True)):
        if q > x:
            p = p + 0.5 * (q - x)
            q = x
            wet = True
        elif p > t:
            q = q + 0.1 * p
        q = q * t if t < 1.0 + 0.01 * n else q + 0.1
        p = 0.9 * p if wet and p > 0.5 else p + 0.01
        mixing.append(q)
        flux.append(p)
    if wet:
        count = count + 1
    return Column(tuple(mixing), tuple(flux), wet, count)


START = Column(tuple(0.2 * n for n in range(10)), tuple(0.1 * n for n in range(10)), False, 0)


def test_sedimentation_of_22_values():
    assert_decides(sediment, START, columns(), columns(1))


def test_it_is_one_program():
    operator = fj.scan_operator(sediment, axis=K, init=START)
    for seed in (0, 2, 4):
        operator(field(columns(seed), Cell, K), field(columns(seed + 1), Cell, K))
    assert (operator.stats.recordings, operator.stats.traces) == (1, 1)


def test_gradients_follow_the_branches_that_are_taken():
    operator = fj.scan_operator(sediment, axis=K, init=START)
    weights = [columns(seed) for seed in range(20)]

    def value(x, t):
        got = operator(field(x, Cell, K), field(t, Cell, K))
        fields = [f.ndarray for f in (*got.mixing, *got.flux)]
        return sum((f * w).sum() for f, w in zip(fields, weights, strict=True))

    at = jnp.asarray(columns()), jnp.asarray(columns(1))
    tangents = tuple(jnp.asarray(columns(seed, low=-1, high=1)) for seed in (2, 3))
    gradients = jax.grad(value, argnums=(0, 1))(*at)
    along = sum(jnp.vdot(g, t) for g, t in zip(gradients, tangents, strict=True))
    h = 1e-6
    ahead, behind = (value(*(a + s * h * t for a, t in zip(at, tangents, strict=True))) for s in (1, -1))
    np.testing.assert_allclose(along, (ahead - behind) / (2 * h), rtol=1e-6)
    np.testing.assert_allclose(jax.jvp(value, at, tangents)[1], along, rtol=1e-10)


def test_a_branch_not_taken_never_reaches_a_gradient():
    operator = fj.scan_operator(singular, axis=K, init=0.0)
    x = jnp.asarray(np.where(columns() > 1, columns(), 1.0))  # the root is singular where it isn't taken
    gradient = jax.grad(lambda x: operator(field(x, Cell, K)).ndarray.sum())(x)
    taken = np.where(x > 1, 0.5 / np.sqrt(np.where(x > 1, x - 1, 1)), 0)
    np.testing.assert_allclose(gradient, taken * np.arange(LEVELS, 0, -1), rtol=1e-10)


def test_scalar_arguments_decide_once_for_all():
    @fj.scan_operator(axis=K, init=0.0)
    def limited(carry, x, limit, use_limit):
        new = carry + x
        if use_limit and limit > 0:
            return limit if new > limit else new
        return new

    f = field(columns(), Cell, K)
    whole = np.cumsum(columns(), axis=1)
    for limit, use_limit in [(2.0, True), (3.0, True), (2.0, False), (-1.0, True), (4.0, False)]:
        expected = np.minimum(whole, limit) if use_limit and limit > 0 else whole
        np.testing.assert_allclose(limited(f, limit, use_limit).asnumpy(), expected)
    assert limited.stats.recordings == 3
