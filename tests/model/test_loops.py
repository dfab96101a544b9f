"""Loops whose carries are the variables that their bodies assign to, against the same steps in plain JAX."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fieldjax as fj
from tests.model.models import heights, mesh, smooth, smooth_reference, state
from tests.refusals import refused

BACKENDS = pytest.mark.parametrize("backend", ["jax", None], ids=["compiled", "op by op"])
X, A = jnp.linspace(0.2, 1.0, 6), 0.3


@fj.field_operator
def mixed(f, g):
    return f + 0.1 * fj.sin(g)


@fj.program
def leapfrog(old, now, a):
    mixed(old, now, out=old)
    mixed(now, old, out=now)


def fields(model: fj.Model, *names: str) -> Any:
    """Inputs that hold the same data."""
    return [model.input(name, heights()) for name in names]


def steps(step: Any, carry: Any, length: int) -> Any:
    for n in range(length):
        carry = step(carry, n)
    return carry


@BACKENDS
@pytest.mark.parametrize("checkpoint", [None, 2], ids=["plain", "checkpoints"])
def test_what_an_operator_assigns_to_is_carried(backend: Any, checkpoint: Any) -> None:
    with fj.record() as model:
        m, (f, g), a = model.input("mesh", mesh()), fields(model, "f", "g"), model.input("a", A)

        def body(step: Any) -> None:
            before = mixed(f, g)  # reads what the step before assigned
            smooth(f, a + 0.01 * step, out=f, offset_provider=m)
            mixed(g, before, out=g)

        assert model.loop(body, length=5, checkpoint=checkpoint) is None
        s = fj.sum(f * g)
        model.output("f", f)
        model.output("g", g)
        slopes = fj.derivative(s, [model.variable_of(model.inputs[n]) for n in "fga"])
        for name, slope in zip("fga", slopes.values(), strict=True):
            model.output(f"by {name}", slope)

    def reference(x: Any, y: Any, a: Any) -> Any:
        def step(carry: Any, n: int) -> Any:
            x, y = carry
            return smooth_reference(x, a + 0.01 * n), y + 0.1 * jnp.sin(x + 0.1 * jnp.sin(y))

        return steps(step, (x, y), 5)

    result = model.run(backend)
    for name, want in zip("fg", reference(X, X, A), strict=True):
        np.testing.assert_allclose(result[name].asnumpy(), want, rtol=1e-12)
    slopes = jax.grad(lambda *xs: jnp.sum(jnp.multiply(*reference(*xs))), (0, 1, 2))(X, X, jnp.asarray(A))
    for name, want in zip("fga", slopes, strict=True):
        found = result[f"by {name}"]
        np.testing.assert_allclose(getattr(found, "ndarray", found), want, rtol=1e-11)


def test_of_two_variables_of_one_value_one_is_carried() -> None:
    with fj.record() as model:
        (f,) = fields(model, "f")
        first = model.variable_of(f.value)
        model.loop(lambda: mixed(first, f, out=f), length=3)
        model.output("f", f)
        model.output("first", first)
    want = steps(lambda x, n: X + 0.1 * jnp.sin(x), X, 3)
    result = model.run()
    np.testing.assert_allclose(result["f"].asnumpy(), want, rtol=1e-14)
    np.testing.assert_array_equal(result["first"].asnumpy(), X)


def test_programs_loops_in_loops_and_what_steps_emit() -> None:
    with fj.record() as model:
        (old, now), total = fields(model, "old", "now"), model.input("total", 0.0)

        def inner(step: Any) -> Any:
            leapfrog(old, now, step)
            return fj.sum(now)

        def outer(total: Any) -> Any:
            sums = model.loop(inner, length=3)
            return total + fj.sum(sums), sums

        total, sums = fj.loop(outer, total, 2)
        model.output("now", now)
        model.output("total", total)
        model.output("sums", sums)

    def step(carry: Any, n: int) -> Any:
        old, now, sums = carry
        old = old + 0.1 * jnp.sin(now)
        now = now + 0.1 * jnp.sin(old)
        return old, now, [*sums, now.sum()]

    _, want, sums = steps(step, (X, X, []), 6)
    result = model.run()
    np.testing.assert_allclose(result["now"].asnumpy(), want, rtol=1e-13)
    np.testing.assert_allclose(result["sums"], np.reshape(sums, (2, 3)), rtol=1e-13)
    np.testing.assert_allclose(result["total"], sum(sums), rtol=1e-13)


def test_derivatives_and_equations_in_a_body_read_what_is_carried() -> None:
    """Steps downhill, along a gradient that is taken in the body, with a step size that an equation gives."""

    @fj.field_operator
    def down(f, slope, rate):
        return f - rate * slope

    with fj.record() as model:
        (f,), c = fields(model, "f"), model.input("c", 0.25)

        def body() -> None:
            slope = fj.derivative(fj.sum(f * f * f), f)
            rate = fj.implicit(lambda r: r * r - c, c) * 0.1
            down(f, slope, rate, out=f)

        model.loop(body, length=4)
        model.output("f", f)
        model.output("by c", fj.derivative(fj.sum(f), c))

    def reference(c: Any) -> Any:
        return steps(lambda x, n: x - 0.1 * jnp.sqrt(c) * 3 * x**2, X, 4)

    result = model.run()
    np.testing.assert_allclose(result["f"].asnumpy(), reference(0.25), rtol=1e-12)
    np.testing.assert_allclose(result["by c"], jax.grad(lambda c: reference(c).sum())(0.25), rtol=1e-11)


def test_evaluating_while_recording_and_another_mesh() -> None:
    with fj.record(inline=True) as model:
        m, (f,) = model.input("mesh", mesh()), fields(model, "f")
        model.loop(lambda: smooth(f, 0.3, out=f, offset_provider=m), length=2)
        model.output("f", f)
    run = model.compile()
    for seed in (0, 4):
        want = steps(lambda x, n, seed=seed: smooth_reference(x, 0.3, seed), X, 2)
        np.testing.assert_allclose(run(mesh=mesh(seed))["f"].asnumpy(), want, rtol=1e-13)
        if seed == 0:
            np.testing.assert_allclose(f.data.asnumpy(), want, rtol=1e-13)


def test_an_error_in_the_body_leaves_everything_as_it_was() -> None:
    with fj.record() as model:
        (f, g) = fields(model, "f", "g")
        kept: list[Any] = []

        def body() -> None:
            mixed(f, g, out=f)
            kept.append(f * 2.0)
            raise KeyError("on the way")

        before = state(model)
        with pytest.raises(KeyError, match="on the way"):
            model.loop(body, length=3)
        assert state(model) == before
        with pytest.raises(fj.FieldjaxError, match="this value is inside of a loop that has ended") as caught:
            kept[0] + 1.0
        assert "assign it to a variable from outside" in str(caught.value)
        model.output("f", f + g)
    np.testing.assert_array_equal(model.run()["f"].asnumpy(), 2 * X)


ERRORS: dict[str, tuple[Any, str]] = {
    "no model": (lambda m, f: fj.loop(lambda: f, length=2), "no value of a recorded model is among its initial carry"),
    "no length": (lambda m, f: m.loop(lambda: mixed(f, f, out=f)), "`length` is a positive integer, not None"),
    "nothing": (lambda m, f: m.loop(lambda: None, length=2), "a loop carries nothing and emits nothing"),
    "an input": (lambda m, f: m.loop(lambda: m.input("x", 1.0), length=2), "'x' can't become an input in the body"),
    "an output": (lambda m, f: m.loop(lambda: m.output("x", f), length=2), "'x' can't become an output in the body"),
    "data": (lambda m, f: m.loop(lambda: f.data, length=2), "a value in the body of a loop has no data"),
    "an equation": (
        lambda m, f: fj.implicit(lambda x: (mixed(f, f, out=f), x - f)[1], f),
        "an equation can't assign to variables",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    do, message = ERRORS[name]
    with fj.record() as model:
        (f,) = fields(model, "f")
        before = state(model)
        with refused(message):
            do(model, f)
    assert state(model) == before
