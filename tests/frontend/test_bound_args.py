"""Bound arguments: parameters that a call no longer has."""

from __future__ import annotations

import inspect
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fieldjax as fj
from fieldjax.errors import ArgumentError

Cell = fj.Dimension("Cell")
K = fj.Dimension("K", fj.DimensionKind.VERTICAL)
F = np.arange(12.0).reshape(4, 3)


def field(array: Any = F) -> fj.Field:
    return fj.as_field({Cell: 4, K: 3}, array)


@fj.field_operator
def combine(f: Any, flag: bool, g: Any, scale: float, shift: float = 1.0) -> Any:
    return f + scale * g - shift if flag else f


@fj.scan_operator(axis=K, init=0.0)
def decay(above: Any, f: Any, rate: float, weight: float) -> Any:
    return rate * above + weight * f


@fj.program
def step(f: Any, flag: bool, scale: float, out: Any, end: int = 4) -> None:
    combine(f, flag, f, scale, out=out, domain={Cell: (0, end), K: (0, 3)})


@pytest.mark.parametrize("backend", ["jax", None])
def test_bound_parameters_are_no_longer_there(backend: Any) -> None:
    bound = combine.with_backend(backend).with_bound_args(flag=True, scale=3.0)
    assert list(inspect.signature(bound).parameters) == ["f", "g", "shift"]
    expected = F + 6 * F - 1
    for result in (bound(field(), field(2 * F)), bound(g=field(2 * F), f=field()), bound(field(), field(2 * F), 1.0)):
        np.testing.assert_allclose(result.asnumpy(), expected)
    assert list(inspect.signature(combine).parameters) == ["f", "flag", "g", "scale", "shift"]


def test_a_bound_scalar_is_an_argument_like_others() -> None:
    """It isn't compiled in: one more value costs no compilation where it decides nothing."""
    lowered = combine.with_bound_args(flag=True, scale=3.0).lower(field(), field())
    assert len(lowered.jaxpr.jaxpr.invars) == len(combine.lower(field(), True, field(), 3.0).jaxpr.jaxpr.invars)


def test_calls_with_bound_arguments_take_the_short_way() -> None:
    bound = combine.with_bound_args(flag=True, scale=3.0)
    for n in (1.0, 2.0):
        np.testing.assert_allclose(bound(field(n * F), field()).asnumpy(), n * F + 3 * F - 1)
    assert bound.stats == (1, 1, 1)


def test_scans_with_bound_arguments() -> None:
    bound = decay.with_bound_args(rate=0.5)
    assert list(inspect.signature(bound).parameters) == ["f", "weight"]
    expected, carry = np.empty_like(F), np.zeros(4)
    for k in range(3):
        carry = expected[:, k] = 0.5 * carry + 2.0 * F[:, k]
    np.testing.assert_allclose(bound(field(), 2.0).asnumpy(), expected)
    np.testing.assert_allclose(bound(field(), weight=2.0).asnumpy(), expected)


def test_programs_with_bound_arguments() -> None:
    bound = step.with_bound_args(flag=True, end=2)
    out = field(np.zeros_like(F))
    bound(field(), 2.0, out)
    expected = np.concatenate([3 * F[:2] - 1, np.zeros((2, 3))])
    np.testing.assert_allclose(out.asnumpy(), expected)
    bound(field(), out=out, scale=1.0)
    np.testing.assert_allclose(out.asnumpy()[:2], 2 * F[:2] - 1)


def test_fields_may_be_bound_and_are_read_at_each_call() -> None:
    g = field(np.ones_like(F))
    bound = combine.with_bound_args(g=g, flag=True, scale=1.0, shift=0.0)
    np.testing.assert_allclose(bound(field()).asnumpy(), F + 1)
    g[...] = 5.0
    np.testing.assert_allclose(bound(field()).asnumpy(), F + 5)


def test_bound_inside_of_operators_and_programs() -> None:
    bound = combine.with_bound_args(flag=True, shift=0.0)
    outer = fj.field_operator(lambda f: bound(f, f, 2.0))
    np.testing.assert_allclose(outer(field()).asnumpy(), 3 * F)
    inner = step.with_bound_args(flag=True)
    whole = fj.program(lambda f, out: inner(f, 1.0, out))
    out = field(np.zeros_like(F))
    whole(field(), out)
    np.testing.assert_allclose(out.asnumpy(), 2 * F - 1)


def test_bound_under_transformations() -> None:
    bound = combine.with_bound_args(flag=True, scale=3.0)

    def loss(f: fj.Field) -> Any:
        return jnp.sum(bound(f, f).ndarray)

    for gradient in (jax.grad(loss), jax.jit(jax.grad(loss)), jax.grad(fj.jit(loss))):
        np.testing.assert_allclose(gradient(field(jnp.asarray(F))).asnumpy(), 4.0)


def test_bound_and_compiled_ahead() -> None:
    bound = step.with_compilation_options(enable_jit=False).with_bound_args(flag=True)
    bound.compile(scale=[1.0, 2.0], end=[4])
    out = field(np.zeros_like(F))
    bound(field(), 2.0, out)
    np.testing.assert_allclose(out.asnumpy(), 3 * F - 1)
    with pytest.raises(fj.FieldjaxError, match="isn't compiled for this call"):
        bound(field(), 3.0, out)
    static = step.with_static_params("flag", "scale").with_bound_args(flag=True).compile(scale=[1.0])
    static(field(), 1.0, out, enable_jit=False)
    np.testing.assert_allclose(out.asnumpy(), 2 * F - 1)


def test_a_name_that_is_no_parameter() -> None:
    with pytest.raises(ArgumentError, match="step has no parameter 'dt'") as caught:
        step.with_bound_args(dt=1.0)
    assert caught.value.notes == ("its parameters are f, flag, scale, out, end",)
    with pytest.raises(ArgumentError, match="decay has no parameter 'above'"):
        decay.with_bound_args(above=1.0)


def test_a_name_that_is_bound() -> None:
    bound = step.with_bound_args(flag=True)
    out = field(np.zeros_like(F))
    with pytest.raises(ArgumentError, match="the parameter 'flag' of step is bound already"):
        bound(field(), 1.0, out, flag=False)
    with pytest.raises(ArgumentError, match="the parameter 'flag' of step is bound already"):
        bound.with_bound_args(flag=False)
    with pytest.raises(ArgumentError, match="missing a required argument: 'out'") as caught:
        bound(field(), 1.0)
    assert caught.value.notes == ("bound are flag",)
    with pytest.raises(ArgumentError, match="too many positional arguments"):
        bound(field(), True, 1.0, out, 4)
