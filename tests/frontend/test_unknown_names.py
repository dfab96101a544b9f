"""Names that nothing has, and errors of the language's values, are reported at the user's line."""

import math

import numpy as np
import pytest

import fieldjax as fj
from fieldjax.errors import DimensionError, UnknownNameError

Cell, K = fj.Dimension("Cell"), fj.Dimension("K", fj.DimensionKind.VERTICAL)


@pytest.fixture(params=["jax", None])
def backend(request):
    return request.param


@pytest.fixture
def f():
    return fj.as_field({Cell: 3}, np.ones(3, "float32"))


def test_a_misspelt_variable(f, backend):
    @fj.field_operator(backend=backend)
    def op(temperature):
        scaled = temperature * 2.0  # noqa: F841
        return scalde  # noqa: F821

    with pytest.raises(UnknownNameError) as caught:
        op(f)
    text = str(caught.value)
    assert text.startswith("there is no scalde\n")
    assert "return scalde" in text and "^^^^^^" in text
    assert "help: did you mean scaled?" in text
    assert isinstance(caught.value, NameError)


def test_a_misspelt_function_of_the_language(f):
    @fj.field_operator
    def op(f):
        return fj.sqroot(f)

    with pytest.raises(UnknownNameError) as caught:
        op(f)
    text = str(caught.value)
    assert text.startswith("fieldjax has no sqroot\n")
    assert "return fj.sqroot(f)" in text
    assert "sqrt" in caught.value.hints[0]


def test_a_misspelt_attribute_of_a_field(f):
    @fj.field_operator
    def op(f):
        return f.astyp("int32")

    with pytest.raises(UnknownNameError, match="a recorded field has no astyp") as caught:
        op(f)
    assert "astype" in caught.value.hints[0]


def test_in_programs_in_scans_and_in_operators_inside_operators(f):
    @fj.field_operator
    def inner(f):
        return f + gravity  # noqa: F821

    @fj.field_operator
    def outer(f):
        return inner(f)

    @fj.program
    def step(f):
        inner(f, out=forecast)  # noqa: F821

    @fj.scan_operator(axis=K, init=0.0)
    def body(above, f):
        return above + density * f  # noqa: F821

    for call, name in [
        (lambda: outer(f), "gravity"),
        (lambda: step(f), "forecast"),
        (lambda: body(fj.as_field({K: 3}, np.ones(3, "float32"))), "density"),
    ]:
        with pytest.raises(UnknownNameError, match=f"there is no {name}") as caught:
            call()
        assert caught.value.location is not None and caught.value.location.file == __file__


def test_a_variable_that_is_read_before_it_is_set(f):
    @fj.field_operator
    def op(f):
        g = f + later  # noqa: F821
        later = g
        return later

    with pytest.raises(UnknownNameError, match="later"):
        op(f)


def test_names_of_other_libraries_are_theirs_to_report(f):
    @fj.field_operator
    def op(f):
        return f * math.tau_squared

    with pytest.raises(AttributeError, match="module 'math' has no attribute 'tau_squared'"):
        op(f)


def test_a_wrong_shift_is_reported_where_it_is_written(f, backend):
    @fj.field_operator(backend=backend)
    def op(f):
        return f + f(Cell + 0.25)

    with pytest.raises(DimensionError, match=r"shifted by integers or halves, got 0\.25") as caught:
        op(f)
    assert "f(Cell + 0.25)\n" in str(caught.value)


def assigned(f):
    f[0] = 1
    return f


MISTAKES = {
    "too many arguments of a function": (lambda f: fj.sin(f, f), "sin() takes 1 positional argument but 2 were given"),
    "too few": (lambda f: fj.maximum(f), "maximum() missing 1 required positional argument"),
    "a reduction without its axis": (lambda f: fj.neighbor_sum(f), "missing 1 required positional argument: 'axis'"),
    "an axis that is no dimension": (lambda f: fj.neighbor_sum(f, axis=1), "runs over a local dimension, not 1"),
    "a level that is no integer": (lambda f: fj.concat_where(K > 1.5, f, f), "'>' not supported between"),
    "one dimension": (lambda f: fj.broadcast(f, Cell), "broadcast takes a tuple of dimensions, not Dimension('Cell')"),
    "no dimension": (lambda f: fj.broadcast(f, (Cell, 3)), "broadcast takes a tuple of dimensions, not (Dimension"),
    "a text beside a field": (lambda f: f + "1", "unsupported operand type(s) for +: 'Field' and 'str'"),
    "the length of a field": (lambda f: len(f), "object of type 'Field' has no len()"),
    "an assignment": (lambda f: assigned(f), "'Field' object does not support item assignment"),
    "a function as data": (lambda f: fj.astype(fj.sin, bool), "astype takes fields and scalars, not function"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_of_types_are_located(f, mistake):
    body, message = MISTAKES[mistake]
    with pytest.raises(fj.FieldjaxError) as caught:
        fj.field_operator(body)(f)
    assert message in str(caught.value)
    assert caught.value.location is not None and caught.value.location.file == __file__


def test_what_the_user_raises_stays_what_it_is(f):
    class MyError(TypeError):
        pass

    @fj.field_operator
    def op(f):
        raise MyError("mine")

    with pytest.raises(MyError, match="mine"):
        op(f)
