"""Guards: what a recording asked about scalar arguments. A new outcome records and compiles once."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fieldjax as fj

Cell = fj.Dimension("Cell")
K = fj.Dimension("K", fj.DimensionKind.VERTICAL)
F = np.arange(6.0).reshape(2, 3)


def field(wrap: Any = np.asarray) -> fj.Field:
    return fj.as_field({Cell: 2, K: 3}, wrap(F))


def plain(f: Any, a: Any, b: Any, n: Any) -> Any:
    """Asks in an order that depends on the answers before."""
    if a > 0:
        f = f * a
        if a * b > 2:
            f = f + b
    elif b < 0 or n == 1:
        f = f - b
    for _ in range(n):
        f = 2 * f
    return f


def outcomes(a: float, b: float, n: int) -> tuple[Any, ...]:
    """The answers that decide what is computed."""
    if a > 0:
        return True, a * b > 2, n
    return (False, True, n) if b < 0 else (False, False, n == 1, n)


numbers = st.sampled_from([-2.0, -0.5, 0.0, 0.5, 1.0, 3.0])
calls = st.lists(st.tuples(numbers, numbers, st.integers(0, 2)), min_size=1, max_size=12)


@given(calls, st.sampled_from(["jax", None]))
def test_recordings_are_as_many_as_outcomes(calls: Any, backend: Any) -> None:
    op = fj.field_operator(plain, backend=backend) if backend is None else fj.field_operator(plain)
    f = field()
    for a, b, n in calls:
        np.testing.assert_allclose(op(f, a, b, n).asnumpy(), plain(F, a, b, n))
    assert op.stats.recordings == len({outcomes(*call) for call in calls})
    if backend is None:
        assert op.stats.traces == 0


def test_outcomes_compile_once_and_values_never() -> None:
    op = fj.field_operator(plain)
    distinct = set()
    for a, b, n in itertools.product((-2.0, -1.0, 1.0, 4.0), (-1.0, 1.0, 2.0), (0, 1)):
        np.testing.assert_allclose(op(field(), a, b, n).asnumpy(), plain(F, a, b, n))
        distinct.add(outcomes(a, b, n))
    assert op.stats == (len(distinct),) * 3


def test_every_kind_of_scalar_is_asked() -> None:
    op = fj.field_operator(lambda f, n: sum([f] * int(n), 0.0))
    for n in (2, np.int32(2), np.array(2), jnp.asarray(2), jnp.int8(2), 2):
        np.testing.assert_allclose(op(field(), n).asnumpy(), 2 * F)
    index = fj.field_operator(lambda f, n: (f, 2 * f)[n])
    np.testing.assert_allclose(index(field(), 1).asnumpy(), 2 * F)
    assert index.stats.recordings == 1
    power = fj.field_operator(lambda f, x: f * float(x))
    for x in (2.0, 3.0, 2.0):
        np.testing.assert_allclose(power(field(), x).asnumpy(), x * F)
    assert power.stats.recordings == 2


def test_in_operators_that_are_called_inside_and_in_programs() -> None:
    inner = fj.field_operator(plain)

    @fj.field_operator
    def outer(f: Any, a: Any) -> Any:
        return inner(f, a, 3.0, 0) if a < 5 else inner(f, a - 9, 1.0, 0)

    @fj.program
    def program(f: Any, a: Any, end: Any, out: Any) -> None:
        if end > 1:
            inner(f, a, 3.0, 0, out=out, domain={Cell: (0, end), K: (0, 3)})

    for a in (0.5, 0.25, 1.0, 2.0, 7.0, 8.0, -1.0):
        expected = plain(F, a, 3.0, 0) if a < 5 else plain(F, a - 9, 1.0, 0)
        np.testing.assert_allclose(outer(field(), a).asnumpy(), expected)
        for end in (1, 2):
            out = fj.zeros({Cell: 2, K: 3})
            program(field(), a, end, out)
            np.testing.assert_allclose(out.asnumpy(), plain(F, a, 3.0, 0) if end == 2 else 0 * F)
    assert outer.stats.recordings == 4
    assert program.stats.recordings == 1 + 3


def stepped(f: Any, dt: Any) -> Any:
    """A derivative that is infinite at what isn't taken."""
    if dt > 0:
        return f * fj.sqrt(dt)
    return f


@pytest.mark.parametrize("compiler", [jax.jit, fj.jit])
@pytest.mark.parametrize("first", ["concrete", "traced"])
def test_a_traced_scalar_selects_whatever_was_called_before(compiler: Any, first: str) -> None:
    op = fj.field_operator(stepped)
    f = field(jnp.asarray)
    traced = compiler(lambda dt: jnp.sum(op(f, dt).ndarray))

    def concrete() -> None:
        for dt, factor in ((4.0, 2.0), (9.0, 3.0), (-1.0, 1.0), (-2.0, 1.0)):
            np.testing.assert_allclose(op(f, dt).asnumpy(), factor * F)

    if first == "concrete":
        concrete()
    for dt, factor in ((4.0, 2.0), (-1.0, 1.0)):
        np.testing.assert_allclose(traced(dt), factor * F.sum())
        np.testing.assert_allclose(jax.grad(traced)(dt), F.sum() / 4 if dt > 0 else 0)
    concrete()
    assert op.stats.recordings == 3


def test_a_traced_scalar_beside_concrete_ones() -> None:
    op = fj.field_operator(plain)
    run = jax.jit(lambda f, a: op(f, a, 2.0, 1))
    for a in (3.0, 0.5, -1.0):
        np.testing.assert_allclose(run(field(jnp.asarray), a).asnumpy(), plain(F, a, 2.0, 1))
        np.testing.assert_allclose(op(field(), a, 2.0, 1).asnumpy(), plain(F, a, 2.0, 1))
    assert op.stats.recordings == 1 + 3


def test_the_number_of_a_traced_scalar_is_an_error_also_where_numbers_were_recorded() -> None:
    op = fj.field_operator(plain)
    op(field(), 1.0, 1.0, 1)
    with pytest.raises(fj.FieldjaxError, match="Python needs the int of a scalar that JAX is tracing") as caught:
        jax.jit(lambda n: op(field(), 1.0, 1.0, n).ndarray)(1)
    assert "pass it as a static argument of the outer jit, or select with `where`" in caught.value.hints
