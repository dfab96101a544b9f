"""Law 5: a skip never reaches arithmetic. Values, gradients and Hessians are right whatever stands elsewhere."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fieldjax as fj

Cell, Vertex = fj.Dimension("Cell"), fj.Dimension("Vertex")
V2CDim = fj.Dimension("V2C", fj.DimensionKind.LOCAL)
V2C = fj.FieldOffset("V2C", source=Cell, target=(Vertex, V2CDim))

Function = Callable[[Any, Any, Any], Any]


@dataclasses.dataclass(frozen=True)
class Formula:
    """What is summed over neighbours: from a neighbour's value, a sparse weight and the module of functions."""

    of: Function
    second: Function
    """Its second derivative in the neighbour's value, written by hand."""
    first: Function
    at: float = 0.0
    """Neighbours' values are taken above this."""


FORMULAS = {
    "sqrt": Formula(
        lambda v, w, m: w * m.sqrt(v), lambda v, w, m: -0.25 * w * v**-1.5, lambda v, w, m: 0.5 * w * v**-0.5
    ),
    "log": Formula(lambda v, w, m: w * m.log(v), lambda v, w, m: -w / v**2, lambda v, w, m: w / v),
    "reciprocal": Formula(lambda v, w, m: w / v, lambda v, w, m: 2 * w / v**3, lambda v, w, m: -w / v**2),
    "theta log v": Formula(lambda v, w, m: v * m.log(w * v), lambda v, w, m: 1 / v, lambda v, w, m: np.log(w * v) + 1),
}

# Each example compiles; the deep profile still looks long.
FEWER = settings(max_examples=max(settings.default.max_examples // 3, 8))
POISON = st.sampled_from([0.0, -1.0, np.inf, -np.inf, np.nan])


@dataclasses.dataclass(frozen=True)
class Setting:
    """A table with skips, a field whose unrelated elements are poisoned, and a weight poisoned at the skips."""

    table: np.ndarray
    skip: int
    start: int
    """Where the cells begin."""
    values: np.ndarray
    weights: np.ndarray

    @property
    def valid(self) -> np.ndarray:
        return self.table != self.skip

    @property
    def read(self) -> np.ndarray:
        """Which cells are some vertex's neighbour."""
        return np.isin(np.arange(self.values.size) + self.start, self.table[self.valid])

    def connectivity(self) -> fj.Connectivity:
        domain = {Vertex: (2, 2 + len(self.table)), V2CDim: self.table.shape[1]}
        return fj.as_connectivity(domain, Cell, self.table, skip_value=self.skip)

    def field(self) -> fj.Field:
        return fj.as_field({Cell: (self.start, self.start + self.values.size)}, jnp.asarray(self.values))

    def weight(self) -> fj.Field:
        return fj.as_field(self.connectivity().domain, jnp.asarray(self.weights))

    def neighbours(self) -> np.ndarray:
        """Each neighbour's value, one where there is none."""
        return np.where(self.valid, self.values[np.where(self.valid, self.table - self.start, 0)], 1.0)

    def scattered(self, contributions: np.ndarray) -> np.ndarray:
        """The sum at each cell of what its places in the table hold."""
        total = np.zeros(self.values.size)
        np.add.at(total, (self.table - self.start)[self.valid], contributions[self.valid])
        return total


@st.composite
def a_setting(draw: Any) -> Setting:
    rows, slots, cells, start = 3, 3, 5, draw(st.sampled_from([0, 3]))
    skip = draw(st.sampled_from([-1, 0, 99, start, start + cells - 1, -7]))
    inside = [c for c in range(start, start + cells) if c != skip]
    entries = st.one_of(st.sampled_from(inside), st.just(skip))
    flat = draw(st.lists(entries, min_size=rows * slots, max_size=rows * slots).filter(lambda x: set(x) != {skip}))
    table = np.array(flat).reshape(rows, slots)
    numbers = st.floats(0.5, 2.0)
    values = np.array(draw(st.lists(numbers, min_size=cells, max_size=cells)))
    weights = np.array(draw(st.lists(numbers, min_size=rows * slots, max_size=rows * slots))).reshape(rows, slots)
    setting = Setting(table, skip, start, values, weights)
    poison = draw(POISON)
    return dataclasses.replace(
        setting,
        values=np.where(setting.read, values, poison),
        weights=np.where(setting.valid, weights, draw(POISON)),
    )


def total_of(formula: Formula) -> Callable[..., Any]:
    @fj.field_operator
    def total(f, w):
        return fj.neighbor_sum(formula.of(f(V2C), w, fj), axis=V2CDim)

    return total


TOTALS = {name: total_of(formula) for name, formula in FORMULAS.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMULAS)
@FEWER
@given(setting=a_setting())
def test_values_and_derivatives(name: str, setting: Setting) -> None:
    formula, total = FORMULAS[name], TOTALS[name]
    mesh = {"V2C": setting.connectivity()}
    f, w, v = setting.field(), setting.weight(), setting.neighbours()
    weights = np.where(setting.valid, setting.weights, 1.0)
    sums = np.where(setting.valid, formula.of(v, weights, np), 0.0).sum(-1)
    first = setting.scattered(formula.first(v, weights, np))
    second = setting.scattered(formula.second(v, weights, np))

    for backend in (None, "jax"):
        np.testing.assert_allclose(total.with_backend(backend)(f, w, offset_provider=mesh).asnumpy(), sums, rtol=1e-12)

    def loss(f: fj.Field) -> jax.Array:
        return jnp.sum(total(f, w, offset_provider=mesh).ndarray)

    np.testing.assert_allclose(jax.grad(loss)(f).asnumpy(), first, rtol=1e-12)
    ones = fj.as_field(f.domain, jnp.ones(f.shape))
    np.testing.assert_allclose(jax.jvp(loss, (f,), (ones,))[1], first.sum(), rtol=1e-12)
    hessian = jax.hessian(loss)(f).ndarray.ndarray
    np.testing.assert_allclose(hessian, np.diag(second), rtol=1e-12, atol=1e-300)


@FEWER
@given(setting=a_setting())
def test_the_weights_own_derivative_is_zero_at_skips(setting: Setting) -> None:
    def loss(w: fj.Field) -> jax.Array:
        mesh = {"V2C": setting.connectivity()}
        return jnp.sum(TOTALS["sqrt"](setting.field(), w, offset_provider=mesh).ndarray)

    want = np.where(setting.valid, np.sqrt(setting.neighbours()), 0.0)
    np.testing.assert_allclose(jax.grad(loss)(setting.weight()).asnumpy(), want, rtol=1e-12)


@fj.field_operator
def largest(f):
    return fj.max_over(f(V2C), axis=V2CDim)


@fj.field_operator
def smallest(f):
    return fj.min_over(f(V2C), axis=V2CDim)


@pytest.mark.parametrize("operator", [largest, smallest], ids=["max_over", "min_over"])
@FEWER
@given(setting=a_setting())
def test_neighbours_that_share_an_extremum_share_its_derivative(operator: Any, setting: Setting) -> None:
    """Rounded values, so that there are ties; a row of skips gives the identity and moves nothing."""
    setting = dataclasses.replace(setting, values=np.where(setting.read, np.round(setting.values), setting.values))
    sign = 1.0 if operator is largest else -1.0
    v = np.where(setting.valid, sign * setting.neighbours(), -np.inf)
    best = v.max(-1)
    attains = (v == best[:, None]) & setting.valid
    mesh = {"V2C": setting.connectivity()}
    np.testing.assert_array_equal(operator(setting.field(), offset_provider=mesh).asnumpy(), sign * best)

    def loss(f: fj.Field) -> jax.Array:
        result = operator(f, offset_provider=mesh).ndarray
        return jnp.sum(jnp.where(jnp.isfinite(result), result, 0.0))

    shares = attains / np.maximum(attains.sum(-1, keepdims=True), 1)
    np.testing.assert_allclose(jax.grad(loss)(setting.field()).asnumpy(), setting.scattered(shares), rtol=1e-12)


def test_first_last_and_other_elements_may_hold_anything() -> None:
    """Where XLA and JAX read in place of a skip, by habit, are the first and the last element."""
    table = np.array([[3, 4, -1], [-1, -1, -1], [4, -1, 5]])
    for bad in (0.0, np.inf, np.nan):
        for element in (0, 1, 6):
            values = np.linspace(1.0, 2.0, 7)
            values[element] = bad
            setting = Setting(table, -1, 0, values, np.where(table < 0, bad, 1.5))
            mesh = {"V2C": setting.connectivity()}
            for name, total in TOTALS.items():
                gradient = jax.grad(
                    lambda f, t=total, m=mesh, s=setting: jnp.sum(t(f, s.weight(), offset_provider=m).ndarray)
                )(setting.field()).asnumpy()
                want = setting.scattered(FORMULAS[name].first(setting.neighbours(), 1.5, np))
                np.testing.assert_allclose(gradient, want, rtol=1e-12)
