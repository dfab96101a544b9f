"""`out=` and `f[...] = x`: nothing is lost unsaid, under any trace, in whole fields and in parts."""

from __future__ import annotations

import gc
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fieldjax as fj

Cell = fj.Dimension("Cell")
K = fj.Dimension("K", fj.DimensionKind.VERTICAL)


@fj.field_operator
def double(f):
    return 2.0 * f


def field(wrap: Any, value: float = 1.0) -> fj.Field:
    return fj.as_field({Cell: 3, K: 4}, wrap(np.full((3, 4), value)))


LIBRARIES = pytest.mark.parametrize("wrap", [np.array, jnp.array], ids=["NumPy", "JAX"])
BACKENDS = pytest.mark.parametrize("backend", [None, "jax"], ids=["embedded", "compiled"])


@LIBRARIES
@BACKENDS
def test_out_whole_and_in_part(wrap: Any, backend: Any) -> None:
    f, out = field(wrap), field(wrap, 0.0)
    run = double.with_backend(backend)
    assert run(f, out=out) is None
    np.testing.assert_array_equal(out.asnumpy(), 2.0)
    out = field(wrap, 0.0)
    run(f[:, 1:], out=out[:, 1:])
    np.testing.assert_array_equal(out.asnumpy(), [[0, 2, 2, 2]] * 3)
    out = field(wrap, 0.0)
    run(f, out=out, domain={Cell: (1, 2), K: 4})
    np.testing.assert_array_equal(out.asnumpy(), [[0] * 4, [2] * 4, [0] * 4])


@LIBRARIES
def test_assignment_to_parts_of_parts(wrap: Any) -> None:
    f = field(wrap, 0.0)
    f[1:][:, 2:][...] = 5.0
    f[Cell(0), K(0)] = 7.0
    np.testing.assert_array_equal(f.asnumpy(), [[7, 0, 0, 0], [0, 0, 5, 5], [0, 0, 5, 5]])


@LIBRARIES
def test_results_of_earlier_reads_stay(wrap: Any) -> None:
    """Values are immutable: what was computed from a field doesn't follow it."""
    f = field(wrap)
    doubled = double(f)
    f[...] = 10.0
    np.testing.assert_array_equal(doubled.asnumpy(), 2.0)


@pytest.mark.parametrize("jit", [jax.jit, fj.jit], ids=["jax.jit", "fieldjax.jit"])
def test_a_returned_field_holds_what_was_written(jit: Any) -> None:
    def run(f: fj.Field, out: fj.Field) -> fj.Field:
        double(f, out=out)
        double(f[:, 2:] * 10.0, out=out[:, 2:])
        out[Cell(1), K(1)] = 3.0
        return out

    result = jit(run)(field(jnp.array), field(jnp.array, 0.0))
    want = [[2, 2, 20, 20], [2, 3, 20, 20], [2, 2, 20, 20]]
    np.testing.assert_array_equal(result.asnumpy(), want)


def test_a_change_that_plain_jit_would_lose_is_warned_of_once() -> None:
    def run(f: fj.Field, out: fj.Field) -> jax.Array:
        double(f, out=out)
        return f.ndarray[0, 0]

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        jitted = jax.jit(run)
        out = field(jnp.array, 0.0)
        jitted(field(jnp.array), out)
        jitted(field(jnp.array), out)
        gc.collect()
    messages = [str(w.message) for w in caught if issubclass(w.category, fj.FieldjaxWarning)]
    assert len(messages) == 1
    assert "the change is lost" in messages[0] and "use fieldjax.jit" in messages[0] and __file__ in messages[0]
    np.testing.assert_array_equal(out.asnumpy(), 0.0)


@LIBRARIES
def test_fieldjax_jit_writes_back(wrap: Any) -> None:
    @fj.jit
    def run(f: fj.Field, out: fj.Field) -> None:
        double(f, out=out[:, 1:], domain={Cell: 3, K: (1, 4)})

    out = field(wrap, 0.0)
    for factor in (1.0, 2.0):
        run(field(wrap, factor), out)
        np.testing.assert_array_equal(out.asnumpy(), [[0, *[2 * factor] * 3]] * 3)


def test_inside_of_a_loop_the_carry_takes_the_change() -> None:
    def body(f: fj.Field, _: Any) -> tuple[fj.Field, None]:
        double(f, out=f)
        f[Cell(0), K(0)] = 1.0
        return f, None

    last, _ = jax.lax.scan(body, field(jnp.array), length=3)
    want = np.full((3, 4), 8.0)
    want[0, 0] = 1.0
    np.testing.assert_array_equal(last.asnumpy(), want)


def test_derivatives_go_through_what_was_written() -> None:
    def loss(f: fj.Field) -> jax.Array:
        out = fj.as_field(f.domain, jnp.zeros((3, 4)))
        double(f * f, out=out)
        out[:, 0] = 1.0
        return jnp.sum(out.ndarray)

    for differentiate in (jax.grad(loss), jax.grad(jax.jit(loss)), jax.jit(jax.grad(loss)), jax.grad(fj.jit(loss))):
        gradient = differentiate(field(jnp.array, 3.0))
        np.testing.assert_array_equal(gradient.asnumpy(), [[0, 12, 12, 12]] * 3)


FOREIGN = {
    "jax.jit": lambda change: jax.jit(lambda x: change(x))(1.0),
    "fieldjax.jit": lambda change: fj.jit(lambda x: change(x))(jnp.ones(())),
    "scan": lambda change: jax.lax.scan(lambda c, x: (c, change(x)), 0.0, jnp.ones(2)),
    "grad": lambda change: jax.grad(lambda x: change(x) * 1.0)(1.0),
    "vmap": lambda change: jax.vmap(change)(jnp.ones(2)),
}


@pytest.mark.parametrize("how", FOREIGN)
@LIBRARIES
def test_a_field_of_another_trace_is_not_changed(how: str, wrap: Any) -> None:
    foreign = field(wrap, 1.0)

    def by_out(x: Any) -> Any:
        double(fj.as_field({Cell: 3, K: 4}, jnp.ones((3, 4)) * x), out=foreign)
        return x

    def by_assignment(x: Any) -> Any:
        foreign[...] = x
        return x

    for change in (by_out, by_assignment):
        with pytest.raises(fj.FieldjaxError, match="belongs to another trace") as caught:
            FOREIGN[how](change)
        assert "return the new value" in str(caught.value) and "test_rebinding.py" in str(caught.value)
        np.testing.assert_array_equal(foreign.asnumpy(), 1.0)


def test_a_field_that_the_argument_was_cut_from_is_not_lost_either() -> None:
    """The caller holds the whole, the function a part."""
    whole = field(np.array, 0.0)
    double(field(np.array)[:, :2], out=whole[:, :2])
    np.testing.assert_array_equal(whole.asnumpy(), [[2, 2, 0, 0]] * 3)
    whole = field(jnp.array, 0.0)
    run = fj.jit(lambda f, out: double(f, out=out))
    run(field(jnp.array)[:, :2], whole[:, :2])
    np.testing.assert_array_equal(whole.asnumpy(), [[2, 2, 0, 0]] * 3)
