"""Dtypes in operators: JAX's promotion table and JAX's values in every mode, for every dtype of fields."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fieldjax as fj
from tests.refusals import refused

I = fj.Dimension("I")
Edge, E2CDim = fj.Dimension("Edge"), fj.Dimension("E2C", fj.DimensionKind.LOCAL)
E2C = fj.FieldOffset("E2C", source=I, target=(Edge, E2CDim))
TABLE = np.array([[0, 1], [1, 2], [3, 3]])
MESH = fj.Mesh(E2C=fj.as_connectivity({Edge: 3, E2CDim: 2}, I, TABLE))

few = settings(max_examples=max(3, settings.default.max_examples // 8))

INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
DTYPES = ["bool", *INTEGERS, *FLOATS]

BINARY: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "+": (operator.add, jnp.add),
    "-": (operator.sub, jnp.subtract),
    "*": (operator.mul, jnp.multiply),
    "/": (operator.truediv, jnp.true_divide),
    "//": (operator.floordiv, jnp.floor_divide),
    "%": (operator.mod, jnp.remainder),
    "**": (operator.pow, jnp.power),
    "<": (operator.lt, jnp.less),
    "==": (operator.eq, jnp.equal),
    "&": (operator.and_, jnp.bitwise_and),
    "|": (operator.or_, jnp.bitwise_or),
    "^": (operator.xor, jnp.bitwise_xor),
    "minimum": (fj.minimum, jnp.minimum),
    "maximum": (fj.maximum, jnp.maximum),
    "fmod": (fj.fmod, jnp.fmod),
    "power": (fj.power, jnp.power),
    "arctan2": (fj.arctan2, jnp.arctan2),
}
"""Beside each the function of JAX that has its meaning."""

UNARY: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "~": (operator.invert, jnp.invert),
    "gamma": (fj.gamma, jax.scipy.special.gamma),
    "erf": (fj.erf, jax.scipy.special.erf),
    "neg": (fj.neg, jnp.negative),
    "round": (fj.round, lambda x: x if x.dtype == bool else jnp.round(x)),  # JAX fails on bools
    **{
        name: (getattr(fj, name), getattr(jnp, name))
        for name in (
            *("abs", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh"),
            *("arccosh", "arctanh", "sqrt", "exp", "log", "cbrt", "floor", "ceil", "trunc", "isfinite", "isinf"),
            *("isnan", "log10", "log1p", "expm1", "sign"),
        )
    },
}


def values(dtype: str, *numbers: float) -> np.ndarray:
    return np.array(numbers).astype(jnp.dtype(dtype))


def on(wrap: Any) -> Callable[[Any], Any]:
    """Arrays as fields; numbers as they are."""
    return lambda x: fj.as_field({I: x.shape[0]}, wrap(x)) if isinstance(x, np.ndarray) else x


def runs(function: Callable[..., Any], *operands: Any) -> dict[str, Callable[[], Any]]:
    """All modes."""
    op = fj.field_operator(lambda *args: function(*args))
    numpy, jax_ = on(np.asarray), on(jnp.asarray)
    arrays = [x for x in operands if isinstance(x, np.ndarray)]

    def put(fields: Any) -> list[Any]:
        pending = iter(fields)
        return [next(pending) if isinstance(x, np.ndarray) else x for x in operands]

    return {
        "one by one": lambda: function(*map(numpy, operands)),
        "one by one on JAX": lambda: function(*map(jax_, operands)),
        "embedded": lambda: op.with_backend(None)(*map(numpy, operands)),
        "embedded on JAX": lambda: op.with_backend(None)(*map(jax_, operands)),
        "compiled": lambda: op(*map(numpy, operands)),
        "inside a jit": lambda: jax.jit(lambda *fields: op(*put(fields)))(*map(jax_, arrays)),
    }


def assert_like_jax(
    function: Callable[..., Any], twin: Callable[..., Any], *operands: Any, is_single: bool = True
) -> None:
    """Every mode gives what JAX gives, in its dtype; what JAX refuses is an error of ours.

    Fields have a dtype of their own: one by one, what is weak within an expression isn't afterwards.
    """
    every = runs(function, *operands)
    modes = every if is_single else {name: run for name, run in every.items() if not name.startswith("one by one")}
    arrays = [jnp.asarray(x) if isinstance(x, np.ndarray) else x for x in operands]
    try:
        expected = twin(*arrays)
    except (TypeError, ValueError):
        for name, run in modes.items():
            with pytest.raises((fj.FieldjaxError, TypeError)):
                pytest.fail(f"{name} gives {run()}")
        return
    rounding = 4 * float(jnp.finfo(expected.dtype).eps) if jnp.issubdtype(expected.dtype, jnp.floating) else 0
    for name, run in modes.items():
        found = run()
        assert found.dtype == expected.dtype, name
        mine, theirs = (np.asarray(x).astype("float64") for x in (found.ndarray, expected))
        np.testing.assert_allclose(mine, theirs, rounding, rounding, err_msg=name)


literals = st.sampled_from([2, 3, 0.5, 2.0])
arrays = st.builds(values, st.sampled_from(DTYPES), st.integers(1, 3), st.integers(1, 3))


@pytest.mark.parametrize("name", list(BINARY))
@few
@given(arrays, st.one_of(arrays, literals), st.booleans())
def test_binary_operations_promote_as_jax(name: str, x: Any, y: Any, swap: bool) -> None:
    assert_like_jax(*BINARY[name], *((y, x) if swap else (x, y)))


@pytest.mark.parametrize("name", list(UNARY))
@few
@given(st.sampled_from(DTYPES))
def test_functions_keep_or_promote_as_jax(name: str, dtype: str) -> None:
    low = {"arccosh": 1.0, "arctanh": 0.25, "log": 1.0}.get(name, 0.5)
    assert_like_jax(*UNARY[name], values(dtype, low, low) if dtype in FLOATS else values(dtype, 1, 1))


@few
@given(arrays, arrays, arrays)
def test_where_promotes_its_choices_alone(condition: Any, x: Any, y: Any) -> None:
    mask = condition > 1
    assert_like_jax(fj.where, jnp.where, mask, x, y)
    assert_like_jax(fj.where, jnp.where, mask, x, 2)
    assert_like_jax(fj.where, jnp.where, mask, 0.5, y)


@few
@given(arrays, arrays, st.one_of(arrays, literals))
def test_literals_stay_weak_through_expressions(x: Any, y: Any, z: Any) -> None:
    def expression(a: Any, b: Any, c: Any) -> Any:
        return 2 * a + 3 * b * c

    assert_like_jax(expression, expression, x, y, z, is_single=False)


@few
@given(st.sampled_from(DTYPES), st.sampled_from(DTYPES))
def test_casts_are_numpy_casts(dtype: str, target: str) -> None:
    x = values(dtype, 0, 1, 3)
    for run in runs(lambda f: fj.astype(f, target), x).values():
        found = run()
        assert found.dtype == jnp.dtype(target)
        np.testing.assert_array_equal(found.asnumpy(), x.astype(jnp.dtype(target)))


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
@pytest.mark.parametrize("wrap", [np.asarray, jnp.asarray])
def test_reductions_and_scans_keep_the_dtype(dtype: str, wrap: Any) -> None:
    f = fj.as_field({I: 4}, wrap(values(dtype, 1, 2, 3, 4)))

    @fj.field_operator
    def reduced(f: Any) -> Any:
        near = f(E2C)
        return tuple(r(near, axis=E2CDim) for r in (fj.neighbor_sum, fj.max_over, fj.min_over))

    scan = fj.scan_operator(lambda above, f: above + f, axis=I, init=0)
    near = np.array([1, 2, 3, 4])[TABLE]
    for backend in ("jax", None):
        found = reduced.with_backend(backend)(f, offset_provider=MESH)
        for result, expected in zip(found, (near.sum(1), near.max(1), near.min(1)), strict=True):
            assert result.dtype == f.dtype
            np.testing.assert_array_equal(result.asnumpy().astype(int), expected)
        total = scan.with_backend(backend)(f)
        assert total.dtype == f.dtype
        np.testing.assert_array_equal(total.asnumpy().astype(int), [1, 3, 6, 10])


@pytest.mark.parametrize("dtype", FLOATS)
def test_gradients_have_the_dtype_of_the_field(dtype: str) -> None:
    f = fj.as_field({I: 3}, jnp.asarray(values(dtype, 1, 2, 3)))
    op = fj.field_operator(lambda f: 0.5 * f**2 + 2 ** (0 * f))
    gradient = jax.grad(lambda f: jnp.sum(op(f).ndarray))(f)
    assert gradient.dtype == f.dtype
    np.testing.assert_allclose(gradient.asnumpy().astype(float), [1, 2, 3], rtol=1e-2)


def test_annotations_are_optional_and_checked() -> None:
    def plain(f, n, x):  # type: ignore[no-untyped-def]
        return f * n + x

    def annotated(f: fj.Field[[I], np.float32], n: int, x: float) -> Any:  # type: ignore[valid-type]
        return f * n + x

    f = fj.as_field({I: 2}, np.ones(2, "float32"))
    free, checked = fj.field_operator(plain), fj.field_operator(annotated)
    for op in (free, checked):
        assert op(f, 2, 1).dtype == np.float32
        assert op(f, 2, 0.5).dtype == np.float32
    assert free(f, 2.5, 1).dtype == np.float32
    for arguments, message in (
        ((f, 2.5, 1.0), "n is annotated int, but is a Python float"),
        ((f, True, 1.0), "n is annotated int, but is bool"),
        ((f, 2, np.float32(1)), "x is annotated float, but is float32"),
        ((f.astype("float64"), 2, 1.0), r"f is annotated Field\[.*float32\], but is float64"),
    ):
        with refused(message):
            checked(*arguments)
    with pytest.raises(fj.FieldjaxError, match=r"f is annotated .*, but has dimensions"):
        checked(fj.as_field({Edge: 2}, np.ones(2, "float32")), 2, 1.0)
