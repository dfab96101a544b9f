"""What the body of a scan can touch, and what it can't."""

from typing import NamedTuple

import numpy as np
import pytest

import fieldjax as fj
from fieldjax.errors import ArgumentError, DimensionError, DtypeError, TracingError
from tests.frontend.scans import (
    C2E,
    COLUMNS,
    LEVELS,
    C2EDim,
    Cell,
    Edge,
    K,
    columns,
    everywhere,
    field,
    numbers,
    total,
)
from tests.refusals import refused


class Pair(NamedTuple):
    count: object
    rest: tuple


def test_operators_called_in_the_body_and_fields_from_outside():
    factor = field(numbers(COLUMNS), Cell)

    @fj.field_operator
    def add(x, y):
        return x + y

    @fj.scan_operator(axis=K, init=0.0)
    def outside(carry, f):
        return add(carry, factor * f)

    f = columns()
    expected = np.cumsum(factor.asnumpy()[:, None] * f, axis=1)
    np.testing.assert_allclose(everywhere(outside, field(f, Cell, K)).asnumpy(), expected)


def test_a_body_closes_over_recorded_values():
    @fj.field_operator
    def around(f, g, dt):
        weight = g * dt

        @fj.scan_operator(axis=K, init=0.0)
        def inner(carry, f):
            return carry + weight * f * dt

        return inner(f)

    f, g = columns(), numbers(COLUMNS, seed=1)
    got = everywhere(around, field(f, Cell, K), field(g, Cell), 2.0)
    np.testing.assert_allclose(got.asnumpy(), np.cumsum(4.0 * g[:, None] * f, axis=1))


def test_scalars_and_static_arguments_decide_while_recording():
    @fj.scan_operator(axis=K, init=0.0)
    def powered(carry, f, flag, mode):
        if flag:
            return carry + f
        return carry - f if mode == "minus" else carry

    f = columns()
    for flag, mode, sign in [
        (True, "minus", 1),
        (False, "minus", -1),
        (False, "keep", 0),
        (True, "minus", 1),
    ]:
        got = powered(field(f, Cell, K), flag, mode)
        np.testing.assert_allclose(got.asnumpy(), sign * np.cumsum(f, axis=1))
    assert powered.stats.recordings == 3


def test_neighbours_read_before_a_scan_and_from_its_result():
    table = np.random.default_rng(0).integers(0, COLUMNS, (5, 3))
    mesh = fj.Mesh(C2E=fj.as_connectivity({Cell: 5, C2EDim: 3}, Edge, table))
    edge_field, f = numbers(COLUMNS, LEVELS), None

    @fj.field_operator
    def gathered(f):
        return fj.neighbor_sum(total(f)(C2E), axis=C2EDim)

    @fj.field_operator
    def after(f):
        return total(fj.neighbor_sum(f(C2E), axis=C2EDim))

    f = field(edge_field, Edge, K)
    expected = np.cumsum(edge_field, axis=1)[table].sum(axis=1)
    np.testing.assert_allclose(everywhere(gathered, f, mesh=mesh).asnumpy(), expected)
    np.testing.assert_allclose(everywhere(after, f, mesh=mesh).asnumpy(), expected)


def test_a_scan_over_unreduced_neighbours():
    table = np.array([[0, 1, 2], [1, 2, -1], [-1, -1, -1]])
    mesh = fj.Mesh(C2E=fj.as_connectivity({Cell: 3, C2EDim: 3}, Edge, table, skip_value=-1))

    @fj.field_operator
    def summed(f):
        return fj.neighbor_sum(total(f(C2E)), axis=C2EDim)

    f = numbers(3, LEVELS)
    expected = np.where(table[..., None] >= 0, np.cumsum(f, axis=1)[table], 0).sum(axis=1)
    np.testing.assert_allclose(everywhere(summed, field(f, Edge, K), mesh=mesh).asnumpy(), expected)


def failing(body, *arguments, init=0.0, error, match):
    operator = fj.scan_operator(body, axis=K, init=init)
    with refused(match, error) as caught:
        operator(*(arguments or (field(columns(), Cell, K),)))
    assert caught.value.location is not None
    assert caught.value.location.file == __file__
    return str(caught.value)


def test_a_carry_of_another_structure():
    text = failing(lambda carry, f: (carry, f), error=ArgumentError, match="doesn't return what it carries")
    assert "it starts with a number" in text
    assert "it returns (a number, a number)" in text
    text = failing(lambda carry, f: carry.count, init=Pair(0.0, (1.0,)), error=ArgumentError, match="return")
    assert "Pair(a number, (a number))" in text
    failing(lambda carry, f: None, error=ArgumentError, match="doesn't return")


def test_a_carry_that_cannot_hold_its_initial_value():
    small = field(np.ones(LEVELS, "int8"), K)
    failing(
        lambda carry, f: carry + f,
        small,
        init=1000,
        error=DtypeError,
        match="can't hold its initial value 1000",
    )
    single = field(np.ones(LEVELS, "float32"), K)
    failing(lambda carry, f: carry + f, single, init=2**24 + 1, error=DtypeError, match="float32")


@pytest.mark.parametrize(
    "body",
    [
        lambda carry, f: carry + f(K + 1),
        lambda carry, f: fj.neighbor_sum(f, axis=C2EDim),
        lambda carry, f: f(C2E[0]),
        lambda carry, f: fj.broadcast(f, (K,)),
        lambda carry, f: fj.concat_where(K > 1, f, carry),
    ],
)
def test_a_body_works_on_numbers(body):
    text = failing(body, error=TracingError, match="inside the body of a scan values are numbers at one level")
    assert "`scan(f(K + 1))`" in text


def test_arguments_that_the_signature_or_an_annotation_refuses():
    def annotated(carry: np.float32, f: np.float32) -> np.float32:
        return carry + f

    failing(annotated, error=DtypeError, match="f is annotated float32, but is float64")
    failing(lambda carry, f, g: carry, error=ArgumentError, match="missing a required argument: 'g'")
    single = field(np.ones(LEVELS, "float32"), K)
    assert fj.scan_operator(annotated, axis=K)(single).dtype == "float32"


def test_a_scan_inside_of_a_body():
    failing(lambda carry, f: total(f), error=TracingError, match="inside the body of a scan")


def test_definitions_that_make_no_scan():
    with pytest.raises(DimensionError, match="not along"):
        fj.scan_operator(lambda carry: carry, axis=C2EDim)
    with pytest.raises(DimensionError, match="not along"):
        fj.scan_operator(lambda carry: carry, axis="K")
    with pytest.raises(ArgumentError, match="takes no carry"):
        fj.scan_operator(lambda: 1.0, axis=K)
    with pytest.raises(ArgumentError, match="starts from numbers"):
        fj.scan_operator(lambda carry: carry, axis=K, init="zero")
    with pytest.raises(ArgumentError, match="starts from numbers"):
        fj.scan_operator(lambda carry: carry, axis=K, init=())
    with pytest.raises(DimensionError, match="initial value"):
        fj.scan_operator(lambda carry, f: carry, axis=K, init=field(columns(), Cell, K))(field(columns(), Cell, K))


def test_names_and_backends_are_kept():
    assert total.__name__ == "total"
    assert isinstance(total, fj.ScanOperator)
    assert isinstance(total.with_backend(None), fj.ScanOperator)
    assert total.with_backend(None).backend is None


def test_a_scan_without_arguments_inside_operators_and_programs():
    source = field(numbers(LEVELS), K)

    @fj.scan_operator(axis=K, init=0.0)
    def captured(carry):
        return carry + source

    @fj.field_operator
    def scaled(f):
        return captured() * f

    @fj.program
    def filled(out):
        captured(out=out)

    expected = np.cumsum(source.asnumpy())
    np.testing.assert_allclose(everywhere(captured).asnumpy(), expected)
    np.testing.assert_allclose(everywhere(scaled, field(np.ones(COLUMNS), Cell)).asnumpy(), [expected] * COLUMNS)
    out = fj.zeros({K: LEVELS})
    filled(out)
    np.testing.assert_allclose(out.asnumpy(), expected)
