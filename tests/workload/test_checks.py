"""The checks of this room find wrong values, wrong tangents and wrong adjoints."""

import jax
import numpy as np
import pytest

import fieldjax as fj
from fieldjax.mesh import K
from tests.workload.checks import assert_adjoint, check

FIELD = fj.as_field({K: 400}, np.linspace(-1.0, 1.0, 400))


@jax.custom_jvp
def bent(x):
    return x**3


@bent.defjvp
def _bent(primals, tangents):
    (x,), (t,) = primals, tangents
    return x**3, 3 * x**2 * t * 1.001


class Cubed:
    """An operator whose derivative is a little wrong, in tangents and adjoints alike."""

    def with_backend(self, backend):
        return self

    def __call__(self, f, offset_provider):
        return fj.as_field(f.domain, bent(f.ndarray))


@fj.field_operator
def cubed(f):
    return f**3


@fj.field_operator
def rectified(f):
    return fj.maximum(f, 0.0)


def test_what_is_right_passes():
    check(cubed, lambda f: f**3, FIELD, mesh={})
    check(rectified, lambda f: np.maximum(f, 0), FIELD, mesh={}, kinks=0.05)


@pytest.mark.parametrize("kinks", [0.0, 0.05])
def test_a_wrong_tangent_is_found(kinks):
    with pytest.raises(AssertionError):
        check(Cubed(), lambda f: f**3, FIELD, mesh={}, kinks=kinks)


@pytest.mark.parametrize("wrong", [lambda f: f**3 * (1 + 1e-8), lambda f: (f**3)[1:], lambda f: (f**3, f)])
def test_a_wrong_value_is_found(wrong):
    with pytest.raises(AssertionError):
        check(cubed, wrong, FIELD, mesh={})


def test_a_wrong_adjoint_is_found():
    rng = np.random.default_rng(0)
    matrix, dx, w = rng.random((4, 3)), rng.random(3), rng.random(4)
    assert_adjoint([matrix @ dx], [w], [dx], [w @ matrix])
    for bad in (w @ matrix * (1 + 1e-10), w @ matrix * np.nan):
        with pytest.raises(AssertionError):
            assert_adjoint([matrix @ dx], [w], [dx], [bad])
