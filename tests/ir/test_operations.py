"""The laws of `fieldjax.ir.operation.Operation`, for every operation there is."""

import importlib
import inspect
import pkgutil

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fieldjax.ir
from fieldjax.errors import NarrowingError
from fieldjax.ir.operation import Operation
from fieldjax.ir.operations.call import Call
from fieldjax.ir.operations.custom import Cotangents, Custom
from fieldjax.ir.operations.functions import FUNCTIONS
from fieldjax.ir.operations.implicit import Implicit, LinearSolve
from fieldjax.ir.operations.loop import Loop
from fieldjax.ir.operations.scan import Scan
from fieldjax.model.region import Region
from tests.ir.checks import tolerance
from tests.ir.derivatives import assert_derivatives
from tests.strategies import (
    Broken,
    parts_of,
    stacking,  # noqa: F401 (it declares cases)
)
from tests.strategies.functions import MEANINGS
from tests.strategies.graphs import compiled, on_jax, on_numpy
from tests.strategies.operations import CASES, pointwise_cases

few = settings(max_examples=max(4, settings.default.max_examples // 5))


def every_operation():
    for module in pkgutil.walk_packages(fieldjax.ir.__path__, "fieldjax.ir."):
        importlib.import_module(module.name)
    found, pending = set(), [Operation]
    while pending:
        kind = pending.pop()
        pending += kind.__subclasses__()
        if not inspect.isabstract(kind) and kind.__module__.startswith("fieldjax."):
            found.add(kind)
    return sorted(found, key=lambda kind: kind.__name__)


OPERATIONS = pytest.mark.parametrize("kind", sorted(CASES, key=lambda k: k.__name__), ids=lambda k: k.__name__)
POINTWISE = pytest.mark.parametrize("function", sorted(MEANINGS))


# The column of a scan follows from what is asked for, so that a part isn't the part of the whole:
# tests/ir/test_scan_cases.py holds the laws that it has.
# Operations with graphs or somebody's code inside compute everything at once: tests/model and tests/compress hold
# their values and derivatives, in all ways of running.
ELSEWHERE = {Scan, Call, Region, Loop, Custom, Cotangents, Implicit, LinearSolve}


def test_every_operation_has_cases():
    assert set(every_operation()) == set(CASES) | ELSEWHERE


def test_every_pointwise_function_has_a_meaning():
    assert set(FUNCTIONS) == set(MEANINGS)


def meaning_of(case):
    try:
        return case.expected
    except Broken:
        with pytest.raises(NarrowingError):
            on_numpy(case.graph, case.places, case.arrays)
        return None


def assert_values(case):
    expected = meaning_of(case)
    if expected is None:
        return
    assert case.graph.outputs[0].field_type.dtype == expected.dtype
    specified, values = expected.specified(), expected.values()
    rounding = tolerance(expected.dtype, *(a.dtype for a in case.arrays))
    wanted = [case.wanted]
    outer = jax.jit(compiled(case.graph, case.places, wanted))
    runs = {
        "NumPy": on_numpy(case.graph, case.places, case.arrays, wanted),
        "JAX": on_jax(case.graph, case.places, list(map(jax.numpy.asarray, case.arrays)), wanted),
        "compiled": compiled(case.graph, case.places, wanted)(*case.arrays),
        "under jit": outer(*case.arrays),
    }
    for name, (found,) in runs.items():
        found = np.asarray(found)
        assert (found.shape, found.dtype) == (values.shape, values.dtype), name
        np.testing.assert_allclose(found[specified], values[specified], rounding, rounding, err_msg=name)


def assert_parts(case, data):
    """A part is the part of the whole; what wasn't asked of the inputs may hold anything."""
    expected = meaning_of(case)
    if expected is None:
        return
    part = data.draw(parts_of(expected.domain))
    cuts = expected.domain.slices_of(part)
    specified, values = expected.specified()[cuts], expected.values()[cuts]
    rounding = tolerance(expected.dtype, *(a.dtype for a in case.arrays))
    for arrays in (case.arrays, case.planted(part)):
        (found,) = on_numpy(case.graph, case.places, arrays, [part])
        np.testing.assert_allclose(found[specified], values[specified], rounding, rounding)


def assert_derives(case):
    expected = meaning_of(case)
    if expected is None or not case.differentiable or expected.dtype.kind != "f":
        return
    assert_derivatives(case.graph, case.places, case.arrays, case.differentiable, expected.specified(), case.wanted)


@OPERATIONS
@few
@given(st.data())
def test_all_ways_of_evaluation_give_what_the_operation_means(kind, data):
    assert_values(data.draw(CASES[kind]()))


@OPERATIONS
@given(st.data())
def test_part_of_the_evaluation_is_evaluation_of_the_part(kind, data):
    assert_parts(data.draw(CASES[kind]()), data)


@OPERATIONS
@few
@given(st.data())
def test_derivatives(kind, data):
    assert_derives(data.draw(CASES[kind]()))


@POINTWISE
@few
@given(st.data())
def test_all_ways_of_evaluation_give_what_the_function_means(function, data):
    assert_values(data.draw(pointwise_cases(function)))


@POINTWISE
@few
@given(st.data())
def test_derivatives_of_functions(function, data):
    assert_derives(data.draw(pointwise_cases(function)))
