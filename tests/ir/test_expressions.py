"""Random operators on random meshes: every way of running them gives what the naive reference gives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldjax.errors import NarrowingError, UnsupportedError
from tests.ir.checks import assert_means, tolerance
from tests.strategies import Broken, Refused, cases, parts_of

DTYPES = ("float64", "float64", "float32", "int32")


def expected_or_error(case, runs):
    """The meaning; where there is none, every run must raise the error that says so."""
    try:
        return case.expected
    except (Broken, Refused) as reason:
        for run in runs:
            with pytest.raises(NarrowingError if isinstance(reason, Broken) else UnsupportedError):
                run()
        return None


@given(cases(dtypes=DTYPES))
def test_embedded_execution_gives_what_the_expression_means(case):
    expected = expected_or_error(case, [case.embedded])
    if expected is not None:
        assert_means(case.embedded(), expected, tolerance("float32"))


@given(cases(dtypes=DTYPES))
def test_compiled_programs_give_what_the_expression_means(case):
    expected = expected_or_error(case, [case.run])
    if expected is not None:
        assert_means(case.run(), expected, tolerance("float32"))
