"""Scan operators: what they compute in every way of running them, and what they carry."""

import dataclasses
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest

import fieldjax as fj
from fieldjax.errors import DomainError
from tests.frontend.scans import (
    COLUMNS,
    LEVELS,
    Cell,
    K,
    columns,
    everywhere,
    field,
    numbers,
    plain,
    solve,
    total,
    tridiagonal,
)


@fj.scan_operator(axis=K, forward=False, init=1.0)
def damped_from_below(carry, f):
    return 0.5 * carry * f


def test_forward():
    f = columns()
    np.testing.assert_allclose(everywhere(total, field(f, Cell, K)).asnumpy(), np.cumsum(f, axis=1))


def test_backward():
    f, carry, expected = columns(), np.ones(COLUMNS), np.zeros((COLUMNS, LEVELS))
    for k in reversed(range(LEVELS)):
        carry = expected[:, k] = 0.5 * carry * f[:, k]
    np.testing.assert_allclose(everywhere(damped_from_below, field(f, Cell, K)).asnumpy(), expected)


def test_arguments_without_the_axis_scalars_and_python_numbers():
    @fj.scan_operator(axis=K, init=0.0)
    def mixed(carry, by_level, by_column, everywhere_, number):
        return carry * number + by_level + by_column * everywhere_

    a, b, carry, expected = numbers(LEVELS), numbers(COLUMNS, seed=1), 0.0, np.zeros((COLUMNS, LEVELS))
    for k in range(LEVELS):
        carry = expected[:, k] = carry * 0.5 + a[k] + b * np.float64(3)
    got = everywhere(mixed, field(a, K), field(b, Cell), np.float64(3), 0.5)
    assert got.domain == fj.domain({Cell: COLUMNS, K: LEVELS})
    np.testing.assert_allclose(got.asnumpy(), expected)


def test_an_argument_that_the_body_ignores_still_says_where_the_result_lives():
    @fj.scan_operator(axis=K, init=0.0)
    def ignoring(carry, f, g):
        return carry + f

    got = everywhere(ignoring, field(numbers(LEVELS), K), fj.as_field({Cell: (1, 3), K: (0, 4)}, np.ones((2, 4))))
    assert got.domain == fj.domain({Cell: (1, 3), K: (0, 4)})


def test_the_result_lives_on_the_intersection():
    a = fj.as_field({Cell: (0, 3), K: (1, 5)}, np.ones((3, 4)))
    b = fj.as_field({Cell: (1, 4), K: (0, 4)}, np.ones((3, 4)))

    @fj.scan_operator(axis=K, init=0.0)
    def product(carry, x, y):
        return carry + x * y

    got = everywhere(product, a, b)
    assert got.domain == fj.domain({Cell: (1, 3), K: (1, 4)})
    assert got.asnumpy().tolist() == [[1, 2, 3]] * 2


def test_tridiagonal_solve():
    matrix, inputs = tridiagonal()
    expected = np.linalg.solve(matrix, inputs[3][..., None])[..., 0]
    got = everywhere(solve, *(field(x, Cell, K) for x in inputs))
    np.testing.assert_allclose(got.asnumpy(), expected, rtol=1e-12)


def test_pressure_from_the_top_with_a_flag_for_the_first_level():
    @fj.scan_operator(axis=K, init=(0.0, True))
    def pressure(carry, density, thickness, top):
        above, is_first = carry
        start = fj.where(is_first, top, above)
        return start + 9.81 * density * thickness, False

    rho, dz, top = columns(), columns(1), numbers(COLUMNS, seed=2)
    values, flags = everywhere(pressure, field(rho, Cell, K), field(dz, Cell, K), field(top, Cell))
    np.testing.assert_allclose(values.asnumpy(), top[:, None] + np.cumsum(9.81 * rho * dz, axis=1))
    assert flags.dtype == bool
    assert not flags.asnumpy().any()


class Pair(NamedTuple):
    count: object
    rest: tuple


@dataclasses.dataclass
class Water:
    vapour: object
    cloud: object


def test_a_named_tuple_with_a_tuple_inside():
    @fj.scan_operator(axis=K, init=Pair(0, (1.0, 2.0)))
    def nested(carry, f):
        return Pair(carry.count + 1, (carry.rest[0] * f, carry.rest[1] + carry.rest[0]))

    f = columns()
    got = everywhere(nested, field(f, Cell, K))
    assert isinstance(got, Pair)
    assert got.count.dtype == np.int64
    assert (got.count.asnumpy() == np.arange(1, LEVELS + 1)).all()
    products = np.cumprod(f, axis=1)
    np.testing.assert_allclose(got.rest[0].asnumpy(), products)
    before = np.concatenate([np.ones((COLUMNS, 1)), products[:, :-1]], axis=1)
    np.testing.assert_allclose(got.rest[1].asnumpy(), 2 + np.cumsum(before, axis=1))


def test_dataclasses_as_carry_and_argument():
    @fj.scan_operator(axis=K, init=Water(0.0, 0.0))
    def fall(carry, sources, factor):
        return Water(carry.vapour + sources.vapour, factor * carry.cloud + sources.cloud)

    f = columns()
    got = everywhere(fall, Water(field(f, Cell, K), field(f[:, 0], Cell)), 1.0)
    assert isinstance(got, Water)
    np.testing.assert_allclose(got.vapour.asnumpy(), np.cumsum(f, axis=1))
    np.testing.assert_allclose(got.cloud.asnumpy(), f[:, :1] * np.arange(1, LEVELS + 1))

    @fj.field_operator
    def of_one_part(sources):
        return fall(sources, factor=1.0).vapour

    np.testing.assert_allclose(
        everywhere(of_one_part, Water(field(f, Cell, K), field(f[:, 0], Cell))).asnumpy(), np.cumsum(f, 1)
    )


@pytest.mark.parametrize("leaves", [22, 28])
def test_many_values_are_carried_in_one_program(leaves):
    kind = NamedTuple("Species", [(f"s{n}", float) for n in range(leaves)])

    @fj.scan_operator(axis=K, init=kind(*np.arange(leaves, dtype=float)))
    def fall(carry, f):
        return kind(*(x * f + 0.5 * carry[n - 1] for n, x in enumerate(carry)))

    f = columns()
    fields = field(f, Cell, K)
    carry, expected = np.arange(leaves, dtype=float)[:, None] + np.zeros(COLUMNS), []
    for k in range(LEVELS):
        carry = carry * f[:, k] + 0.5 * np.roll(carry, 1, axis=0)
        expected.append(carry)
    got = fall(fields)
    np.testing.assert_allclose(np.stack(plain(got)), np.stack(expected, axis=-1))
    fall(field(columns(1), Cell, K))
    (program,) = fall._execution.programs.values()
    assert fall.stats.recordings == 1
    assert program.traces == 1


@pytest.mark.parametrize(
    ("init", "dtype", "expected"),
    [
        (0.0, "float32", "float32"),
        (0, "float32", "float32"),
        (np.float32(0), "float32", "float32"),
        (np.float64(0), "float32", "float64"),
        (0, "int32", "int32"),
        (0.0, "int32", "float64"),
        (False, "int8", "int8"),
    ],
)
def test_python_numbers_take_the_dtype_of_the_body(init, dtype, expected):
    operator = fj.scan_operator(lambda carry, f: carry + f, axis=K, init=init)
    got = everywhere(operator, field(np.arange(LEVELS).astype(dtype), K))
    assert got.dtype == expected
    assert got.asnumpy().tolist() == np.cumsum(np.arange(LEVELS)).tolist()


def test_a_carry_without_arguments_takes_its_extent_from_out():
    @fj.scan_operator(axis=K, forward=False, init=(1, (2, 3.0)))
    def count(carry):
        return carry[0] + 1, (carry[1][0] + 1, carry[1][1] + 1)

    for backend in (None, "jax"):
        out = fj.zeros({K: 3}, dtype="int64"), (fj.zeros({K: 3}, dtype="int64"), fj.zeros({K: 3}))
        count.with_backend(backend)(out=out)
        assert [x.tolist() for x in plain(out)] == [[4, 3, 2], [5, 4, 3], [6, 5, 4]]
    with pytest.raises(DomainError, match="without end"):
        count()


def test_the_initial_value_is_a_field_or_a_jax_scalar():
    z = numbers(COLUMNS)
    from_field = fj.scan_operator(lambda carry, f: carry + f, axis=K, init=field(z, Cell))
    from_scalar = fj.scan_operator(lambda carry, f: carry + f, axis=K, init=jnp.asarray(2.0))
    f = columns()
    np.testing.assert_allclose(from_field(field(f, Cell, K)).asnumpy(), z[:, None] + np.cumsum(f, axis=1))
    np.testing.assert_allclose(from_scalar(field(f, Cell, K)).asnumpy(), 2.0 + np.cumsum(f, axis=1))
