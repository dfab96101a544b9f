"""Programs: assignments by `out=`, parts, domains from scalars, aliases, and what the caller sees."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fieldjax as fj
from tests.refusals import refused

Cell = fj.Dimension("Cell")
K = fj.Dimension("K", fj.DimensionKind.VERTICAL)
SHAPE = (4, 6)
BACKENDS = ["jax", None]


@fj.field_operator
def from_above(f: Any) -> Any:
    return fj.concat_where(K == 0, 0.0, f(K - 1))


@fj.field_operator
def mean(f: Any) -> Any:
    return 0.5 * (f + f(K - 1))


@fj.field_operator
def double(f: Any) -> Any:
    return 2 * f


@fj.field_operator
def both(f: Any) -> Any:
    return f + 1, 3 * f


@fj.program
def model(f: Any, g: Any, h: Any, end: int) -> None:
    from_above(f, out=g)
    mean(g, out=h[:, 1:])
    both(h, out=(f, g), domain=({Cell: (0, 4), K: (0, end)}, {Cell: (1, 3), K: (2, 2 * end - 1)}))
    double(f, out=f)


def reference(f: np.ndarray, g: np.ndarray, h: np.ndarray, end: int) -> list[np.ndarray]:
    f, g, h = f.copy(), g.copy(), h.copy()
    g = np.concatenate([np.zeros((4, 1)), f[:, :-1]], axis=1)
    h[:, 1:] = 0.5 * (g[:, 1:] + g[:, :-1])
    f[:, :end] = h[:, :end] + 1
    g[1:3, 2 : 2 * end - 1] = 3 * h[1:3, 2 : 2 * end - 1]
    return [2 * f, g, h]


def arrays() -> list[np.ndarray]:
    return [np.random.default_rng(n).random(SHAPE) for n in range(3)]


def fields(values: Any, wrap: Any = np.asarray) -> list[fj.Field]:
    return [fj.as_field({Cell: 4, K: 6}, wrap(v)) for v in values]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("wrap", [np.asarray, jnp.asarray])
def test_a_program_assigns_to_the_callers_fields(backend: Any, wrap: Any) -> None:
    own = fields(arrays(), wrap)
    model.with_backend(backend)(*own, 3)
    for field, expected in zip(own, reference(*arrays(), 3), strict=True):
        np.testing.assert_allclose(field.asnumpy(), expected)


def test_numpy_buffers_are_filled_in_place() -> None:
    own = fields(arrays())
    buffers = [f.ndarray for f in own]
    model(*own, 3)
    for buffer, expected in zip(buffers, reference(*arrays(), 3), strict=True):
        np.testing.assert_allclose(buffer, expected)


def run(values: Any) -> list[Any]:
    own = [fj.as_field({Cell: 4, K: 6}, v) for v in values]
    model(*own, 3)
    return [f.ndarray for f in own]


def test_under_jit_and_fieldjax_jit() -> None:
    values = [jnp.asarray(v) for v in arrays()]
    for compiled in (jax.jit(run), fj.jit(run)):
        for found, expected in zip(compiled(values), reference(*arrays(), 3), strict=True):
            np.testing.assert_allclose(found, expected)
    own = fields(arrays(), jnp.asarray)
    fj.jit(lambda f, g, h: model(f, g, h, 3))(*own)
    for field, expected in zip(own, reference(*arrays(), 3), strict=True):
        np.testing.assert_allclose(field.asnumpy(), expected)


def test_gradients_are_those_of_the_whole_program() -> None:
    values = [jnp.asarray(v) for v in arrays()]

    def loss(values: Any) -> Any:
        return sum(jnp.sum(a**3) for a in run(values))

    direction = [jnp.asarray(np.random.default_rng(9).random(SHAPE)) for _ in values]
    slope = sum(jnp.vdot(g, d) for g, d in zip(jax.grad(loss)(values), direction, strict=True))
    ahead, behind = (loss([v + s * 1e-6 * d for v, d in zip(values, direction, strict=True)]) for s in (1, -1))
    np.testing.assert_allclose(slope, (ahead - behind) / 2e-6, rtol=1e-7)


def test_a_bound_compiles_once() -> None:
    bounded = fj.program(model.function)
    for end in (3, 3, 2, 3, 2):
        bounded(*fields(arrays()), end)
    assert (bounded.stats.recordings, bounded.stats.plans) == (2, 2)


def test_programs_call_programs() -> None:
    @fj.program
    def twice(f: Any, g: Any) -> None:
        double(f, out=g)
        again(g, f)

    @fj.program
    def again(f: Any, g: Any) -> None:
        double(f, out=g)

    f, g, _ = fields(arrays())
    twice(f, g)
    np.testing.assert_allclose(f.asnumpy(), 4 * arrays()[0])


def test_one_object_twice_is_one_field() -> None:
    @fj.program
    def add(f: Any, g: Any) -> None:
        double(f, out=g)
        double(f, out=g)

    f, *_ = fields(arrays())
    add(f, f)
    np.testing.assert_allclose(f.asnumpy(), 4 * arrays()[0])


def test_elements_that_are_written_may_be_read_in_place_only() -> None:
    @fj.program
    def shifted(f: Any) -> None:
        from_above(f, out=f)

    @fj.program
    def apart(f: Any) -> None:
        from_above(f, out=f[:, 5:], domain={Cell: (0, 4), K: (5, 6)})

    f, *_ = fields(arrays())
    with pytest.raises(fj.FieldjaxError, match="also reads at other positions"):
        shifted(f)
    np.testing.assert_array_equal(f.asnumpy(), arrays()[0])
    apart(f)
    np.testing.assert_allclose(f.asnumpy()[:, 5], arrays()[0][:, 4])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f, g: both(f, out=g), "structure of the result"),
        (lambda f, g: double(f, out=g, domain={Cell: 4, K: 7}), "leaves `out`"),
        (lambda f, g: double(f, out=g, domain={Cell: 4}), "has dimensions"),
        (lambda f, g: double(f, out=3), "structure of the result"),
        (lambda f, g: f, "returns nothing"),
        (lambda f, g: double(f(K + 1), out=g), "doesn't hold all that is needed"),
    ],
)
def test_what_does_not_fit_is_an_error_and_changes_nothing(call: Any, message: str) -> None:
    f, g, _ = fields(arrays())
    with refused(message):
        fj.program(call)(f, g)
    np.testing.assert_array_equal(g.asnumpy(), arrays()[1])


def test_an_output_keeps_its_dtype() -> None:
    whole = fj.as_field({Cell: 3}, np.zeros(3, np.int32))
    with pytest.raises(fj.FieldjaxError, match="`out` is int32"):
        fj.program(lambda f, g: double(f, out=g))(fj.as_field({Cell: 3}, np.ones(3)), whole)


def test_operators_without_arguments_belong_to_the_program() -> None:
    @fj.field_operator
    def nothing() -> Any:
        return fj.broadcast(0.0, (Cell, K))

    @fj.field_operator
    def cleared(f: Any) -> Any:
        return f, nothing()

    f, g, h = fields(arrays())
    fj.program(lambda f, g, h: cleared(f, out=(g, h)))(f, g, h)
    assert (h.asnumpy() == 0).all()
