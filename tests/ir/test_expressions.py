"""Random operators on random meshes: every way of running them gives what the naive reference gives."""

import math

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fieldjax as fj
from fieldjax.errors import DimensionError, NarrowingError, UnsupportedError
from tests.ir.checks import assert_close, assert_means
from tests.strategies import FORMS, Absent, Broken, Refused, cases, parts_of
from tests.strategies.expressions import Widened

NO_MEANING = (Absent, Broken, Refused)
DTYPES = ("float64", "float64", "float32", "int32")


def assert_runs(case, *runs):
    """Each of `runs` gives the meaning of the case; where it has none, an error that says so."""
    try:
        case.expected
    except NO_MEANING:
        for run in runs:
            with pytest.raises((NarrowingError, UnsupportedError, DimensionError)):
                run()
    else:
        for run in runs:
            assert_means(run(), case)


def on_jax(case):
    return [jnp.asarray(a) for a in case.arrays]


@given(cases(dtypes=DTYPES))
def test_embedded_execution_gives_what_the_expression_means(case):
    assert_runs(case, case.embedded, lambda: case.embedded(on_jax(case)))


# Fields are finite and of a dtype of their own: neither endless nor weak.
@given(cases(dtypes=("float64", "float32"), forms=[f for f in FORMS if not isinstance(f, Widened)]))
def test_operations_one_at_a_time_give_what_the_expression_means(case):
    assert_runs(case, case.eager, lambda: case.eager(on_jax(case)))


@given(cases(dtypes=DTYPES))
def test_compiled_programs_give_what_the_expression_means(case):
    assert_runs(case, case.run)


@given(cases(dtypes=DTYPES))
def test_programs_inside_of_a_jit_give_what_the_expression_means(case):
    outer = jax.jit(lambda mesh, *arrays: case.run(arrays, mesh=mesh))
    lifting = fj.jit(lambda *arrays: case.run(arrays))
    assert_runs(case, lambda: outer(case.world.mesh, *on_jax(case)), lambda: lifting(*on_jax(case)))


@given(cases(dtypes=DTYPES, wild=True))
def test_narrowing_gives_what_the_expression_means(case):
    assert_runs(case, case.embedded, case.run)


@given(cases(), st.data())
def test_a_part_is_the_part_of_the_whole(case, data):
    try:
        expected = case.expected
    except NO_MEANING:
        return
    part = data.draw(parts_of(expected.domain))
    cuts = expected.domain.slices_of(part)
    specified, values = expected.specified()[cuts], expected.values()[cuts]
    for found in (case.run(domain=part), case.embedded(domain=part)):
        assert found.domain == part
        assert_close(found.asnumpy()[specified], values[specified], case)


@given(cases(), st.data())
def test_what_is_not_read_may_hold_anything(case, data):
    """NaN wherever no asked-for element depends on it: the demand of `domain=`, element by element."""
    try:
        expected = case.expected
    except NO_MEANING:
        return
    part = data.draw(parts_of(expected.domain))
    cuts = expected.domain.slices_of(part)
    specified, values = expected.specified()[cuts], expected.values()[cuts]
    planted = case.planted(expected.reads(part), math.nan)
    for found in (case.run(planted, domain=part), case.embedded(planted, domain=part)):
        assert_close(found.asnumpy()[specified], values[specified], case)
