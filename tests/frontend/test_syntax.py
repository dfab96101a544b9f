"""Rewritten functions do what Python does on plain values, and select where a condition differs by point."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fieldjax as fj
from fieldjax.frontend.syntax import rewritten

Cell = fj.Dimension("Cell")
K = fj.Dimension("K", fj.DimensionKind.VERTICAL)
OUTSIDE = 10


def early_returns(x: int, y: int) -> Any:
    if x > y:
        if y:
            return x - y
        x = x + 1
    elif x == y:
        return "same"
    else:
        z = y
    return (x, z) if x < y else x


def loops(x: int, y: int) -> Any:
    total = 0
    for n in range(abs(x)):
        if n == y:
            break
        if n % 2:
            continue
        if n > 3:
            total += n
        else:
            total -= 1
    while total > 5 and y < 3:
        total -= 2
    return total


def logic(x: int, y: int) -> Any:
    a = (x and y) or OUTSIDE
    b = not x or (0 < x < y <= 5)
    return a, b, x if not y else [n for n in range(5) if n > x], x == y != 3


def nested(x: int, y: int, *rest: int, scale: int = 2, **named: int) -> Any:
    def inner(n: int) -> int:
        if n > scale:
            return n
        return -n

    if (n := x + y) > 3:
        result = inner(n)
    else:
        result = inner(-n)
    try:
        if y == 0:
            raise ValueError
        result += 1
    except ValueError:
        result = result if x else 0
    with_lambda = lambda v: v if v > 0 else -v  # noqa: E731
    return with_lambda(result), rest, named


@pytest.mark.parametrize("function", [early_returns, loops, logic, nested])
@given(x=st.integers(-6, 6), y=st.integers(-6, 6))
def test_plain_values_give_what_python_gives(function: Any, x: int, y: int) -> None:
    assert rewritten(function) is not function
    assert rewritten(function)(x, y) == function(x, y)


def test_a_function_without_conditions_is_left_alone() -> None:
    def plain(x: int) -> int:
        return x + 1

    assert rewritten(plain) is plain


@pytest.mark.parametrize("function", [lambda x: x if x > 0 else -x])
def test_a_lambda_is_not_taken_for_the_function_around_it(function: Any) -> None:
    assert rewritten(function) is function
    assert function(-3) == 3


def test_closures_defaults_and_names_stay() -> None:
    offset = 1

    def shifted(x: int, y: int = 4, *, z: int = 2) -> int:
        """Its documentation."""
        return x + offset if x > y else z

    new = rewritten(shifted)
    assert (new.__name__, new.__doc__, new(5), new(1)) == ("shifted", "Its documentation.", 6, 2)
    offset = 100
    assert new(5) == 105


def test_short_circuits_stay() -> None:
    def guarded(x: int) -> Any:
        return x != 0 and 1 / x > 0, x == 0 or 1 / x > 0

    assert rewritten(guarded)(0) == guarded(0)


def columns(values: Any) -> fj.Field:
    return fj.as_field({Cell: len(values), K: len(values[0])}, np.asarray(values, float))


@pytest.mark.parametrize("backend", ["jax", None])
def test_a_scan_selects_point_by_point(backend: Any) -> None:
    @fj.scan_operator(axis=K, init=(0.0, 1.0), backend=backend)
    def scan(carry: Any, x: Any) -> Any:
        a, b = carry
        if x > 0.5:
            a = a + fj.sqrt(x - 0.5)
        elif x > 0.25 and not b < 0:
            b = 1.0 / (x - 0.25)
        if 0.1 < x <= 0.2 or x < 0:
            return a, -b
        return a, b if x < 2 else 0.0

    def naive(a: float, b: float, x: float) -> tuple[float, float]:
        if x > 0.5:
            a = a + np.sqrt(x - 0.5)
        elif x > 0.25 and not b < 0:
            b = 1.0 / (x - 0.25)
        if 0.1 < x <= 0.2 or x < 0:
            return a, -b
        return a, b if x < 2 else 0.0

    values = np.random.default_rng(3).uniform(-0.2, 2.2, (6, 5))
    values[0, 0], values[1, 1] = 0.5, 0.25
    found = [f.asnumpy() for f in scan(columns(values))]
    for c in range(6):
        a, b = 0.0, 1.0
        for k in range(5):
            a, b = naive(a, b, values[c, k])
            np.testing.assert_allclose([found[0][c, k], found[1][c, k]], [a, b])


class State(NamedTuple):
    wet: Any
    dry: Any


def test_branches_may_give_containers_of_one_structure_only() -> None:
    @fj.scan_operator(axis=K, init=State(0.0, 0.0))
    def swap(carry: Any, x: Any) -> Any:
        return State(carry.dry + x, carry.wet) if x > 1 else State(carry.wet, carry.dry - x)

    wet = swap(columns([[2.0, 0.5, 3.0]])).wet.asnumpy()
    np.testing.assert_allclose(wet, [[2.0, 2.0, 2.5]])

    @fj.scan_operator(axis=K, init=0.0)
    def mixed(carry: Any, x: Any) -> Any:
        pair = (x, x) if x > 1 else x
        return carry + pair

    with pytest.raises(fj.FieldjaxError, match="would be of different kinds"):
        mixed(columns([[2.0]]))


@pytest.mark.parametrize("at", [0.0, -1.0, 1.0, np.inf])
@pytest.mark.parametrize("function", [fj.sqrt, fj.log, lambda x: 1 / x, lambda x: x**0.5, lambda x: fj.arccosh(x)])
def test_what_a_branch_would_do_elsewhere_never_reaches_derivatives(function: Any, at: float) -> None:
    @fj.scan_operator(axis=K, init=0.0)
    def safe(carry: Any, x: Any) -> Any:
        if x > 1.5 and x < 100:
            return carry + function(x)
        return carry + 0.0

    def loss(x: Any) -> Any:
        return jnp.sum(safe(fj.as_field({Cell: 1, K: 2}, x)).ndarray ** 2)

    x = jnp.array([[at, 4.0]])
    assert np.isfinite(loss(x))
    assert np.isfinite(jax.grad(loss)(x)).all()
    assert np.isfinite(jax.hessian(loss)(x)).all()
    expected = 2 * function(4.0) * jax.grad(function)(4.0)
    np.testing.assert_allclose(jax.grad(loss)(x), [[0.0, expected]])


def test_a_name_that_one_branch_assigns_is_missed_only_where_it_is_used() -> None:
    @fj.scan_operator(axis=K, init=0.0)
    def unused(carry: Any, x: Any) -> Any:
        if x > 1:
            extra = x  # noqa: F841
        return carry + x

    np.testing.assert_allclose(unused(columns([[1.0, 2.0]])).asnumpy(), [[1.0, 3.0]])

    @fj.scan_operator(axis=K, init=0.0)
    def used(carry: Any, x: Any) -> Any:
        if x > 1:
            extra = x
        return carry + extra

    with pytest.raises(fj.FieldjaxError, match="extra has no value here"):
        used(columns([[1.0]]))


def test_scalar_arguments_specialise_by_outcome() -> None:
    @fj.field_operator
    def stepped(f: Any, dt: Any, limit: Any) -> Any:
        if dt > 0 and not limit < 0:
            return f * dt
        return f - 1 if limit > 5 else f

    f = columns([[1.0, 2.0]])
    for dt, limit in [(1.0, 1.0), (2.5, 3.0), (4.0, 0.0)]:
        np.testing.assert_allclose(stepped(f, dt, limit).asnumpy(), f.asnumpy() * dt)
    assert stepped.stats.recordings == 1
    np.testing.assert_allclose(stepped(f, -1.0, 9.0).asnumpy(), f.asnumpy() - 1)
    np.testing.assert_allclose(stepped(f, -2.0, 8.0).asnumpy(), f.asnumpy() - 1)
    assert stepped.stats.recordings == 2


def test_a_scalar_of_a_foreign_jit_selects() -> None:
    @fj.field_operator
    def stepped(f: Any, dt: Any) -> Any:
        if dt > 0:
            return f * fj.sqrt(dt)
        return f

    f = columns([[1.0, 2.0]])
    compiled = jax.jit(lambda dt: stepped(f, dt).ndarray)
    np.testing.assert_allclose(compiled(4.0), [[2.0, 4.0]])
    np.testing.assert_allclose(compiled(-4.0), [[1.0, 2.0]])
    assert np.isfinite(jax.grad(lambda dt: compiled(dt).sum())(-1.0))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("if f > 0: return f\n    return -f", "a field has no truth value"),
        ("return f if f > 0 else -f", "a field has no truth value"),
        ("return where(f > 0 and f < 1, f, 0.0)", "combine fields element by element with `&`"),
        ("return where(not f > 0, f, 0.0)", "combine fields element by element with `~`"),
        ("return where(0 < f < 1, f, 0.0)", "combine fields element by element with `&`"),
    ],
)
def test_fields_decide_nothing(body: str, message: str, tmp_path: Any) -> None:
    path = tmp_path / "model.py"
    path.write_text(f"from fieldjax import where\n\ndef op(f):\n    {body}\n")
    namespace: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    with pytest.raises(fj.FieldjaxError) as caught:
        fj.field_operator(namespace["op"])(columns([[1.0]]))
    assert message in str(caught.value)
    assert f"{path}:4" in str(caught.value)
