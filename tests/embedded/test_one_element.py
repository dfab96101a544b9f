"""A field without dimensions: what indexing every dimension leaves, and what it can be taken for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fieldjax as fj
from fieldjax.errors import ArgumentError, DimensionError, FieldjaxError, IndexOutOfBoundsError

Cell, K = fj.Dimension("Cell"), fj.Dimension("K", fj.DimensionKind.VERTICAL)
VALUES = np.arange(12, dtype="float32").reshape(3, 4)
DOMAIN = {Cell: (2, 5), K: (-1, 3)}


@pytest.fixture(params=[np, jnp], ids=["numpy", "jax"])
def f(request):
    return fj.as_field(DOMAIN, VALUES, allocator=request.param)


@given(st.integers(0, 2), st.integers(0, 3))
def test_relative_and_absolute_indices_leave_the_same_element(i, k):
    for library in (np, jnp):
        f = fj.as_field(DOMAIN, VALUES, allocator=library)
        for element in (f[i, k], f[i - 3, k - 4], f[Cell(2 + i), K(k - 1)], f[i][k], f.restrict((i, k))):
            assert isinstance(element, fj.Field)
            assert element.domain == fj.domain({})
            assert element.dtype == np.float32
            assert element.as_scalar() == VALUES[i, k]


def test_the_scalar_is_numpys(f):
    assert type(f[1, 2].as_scalar()) is np.float32
    assert type((f[1, 2] > 3).as_scalar()) is np.bool_


def test_it_is_a_number_to_python(f):
    assert float(f[1, 2]) == 6.0
    assert int(f[1, 2]) == 6
    assert f[1, 2] == 6.0
    assert not f[0, 0]
    assert 2 * f[1, 2] - f[0, 1] == 11.0
    assert repr(f[1, 2]) == "Field(float32; min 6, mean 6, max 6)"
    np.testing.assert_array_equal(np.asarray(f[1, 2]), 6.0)


@pytest.mark.parametrize(
    ("ask", "what"), [(bool, "truth value"), (float, "value as a float"), (int, "value as an int")]
)
def test_more_elements_are_no_number(f, ask, what):
    with pytest.raises(ArgumentError, match=f"a field has no {what}") as caught:
        ask(f)
    assert "it holds 12 elements" in caught.value.notes[0]
    with pytest.raises(ArgumentError):
        ask(f[:1, :1])


def test_it_combines_with_fields_and_goes_into_operators(f):
    @fj.field_operator
    def scaled(f, by):
        return f * by

    np.testing.assert_array_equal(scaled(f, f[0, 2]).asnumpy(), 2 * VALUES)
    np.testing.assert_array_equal((f + f[2, 3]).asnumpy(), VALUES + 11)


def test_outside_is_an_error(f):
    with pytest.raises(IndexOutOfBoundsError):
        f[3, 0]
    with pytest.raises(IndexOutOfBoundsError):
        f[Cell(1), K(0)]


def test_derivatives_of_one_element():
    gradient = jax.grad(lambda f: (f[1, 2] ** 2).as_scalar())(fj.as_field(DOMAIN, jnp.asarray(VALUES)))
    expected = np.zeros((3, 4))
    expected[1, 2] = 2 * VALUES[1, 2]
    np.testing.assert_allclose(gradient.asnumpy(), expected)


@pytest.mark.parametrize("name", ["gamma", "erf", "sqrt", "abs", "neg", "floor"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_of_a_numpy_scalar_are_numpy_scalars(name, dtype):
    with jax.enable_x64(True):
        x = np.dtype(dtype).type(0.5)
        assert type(getattr(fj, name)(x)) is type(x)
        assert type(fj.where(np.bool_(True), x, x)) is type(x)


@pytest.mark.parametrize("name", ["sin", "sqrt", "neg", "floor", "tanh"])
def test_functions_of_arrays_are_those_of_numpy_and_jax(name):
    function = getattr(fj, name)
    meaning = getattr(np, {"neg": "negative"}.get(name, name))
    assert type(function(VALUES)) is np.ndarray
    np.testing.assert_array_equal(function(VALUES), meaning(VALUES))
    for wrapped in (function, jax.jit(function), jax.vmap(function)):
        found = wrapped(jnp.asarray(VALUES))
        assert isinstance(found, jax.Array)
        np.testing.assert_allclose(found, meaning(VALUES), rtol=1e-6)
    np.testing.assert_array_equal(fj.where(VALUES > 3, VALUES, 0.0), np.where(VALUES > 3, VALUES, 0.0))
    np.testing.assert_array_equal(fj.maximum(VALUES, jnp.asarray(VALUES[:, ::-1])), np.maximum(VALUES, VALUES[:, ::-1]))
    with pytest.raises(FieldjaxError, match="takes fields, arrays and scalars, not str"):
        function("text")


def test_an_origin_of_another_dimension_is_an_error():
    assert fj.as_field([Cell, K], VALUES, origin={K: 1}).domain == fj.domain({Cell: 3, K: (-1, 3)})
    with pytest.raises(DimensionError, match=r"`origin` names K, the field has \(Cell\)"):
        fj.as_field([Cell], VALUES[0], origin={K: 1})
