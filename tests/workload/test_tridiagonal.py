"""Operator 10: a tridiagonal solve by two scans, against dense solves; pressure integrated downwards."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fieldjax as gtx
from fieldjax.mesh import Cell, K
from tests.workload.checks import check, filling
from tests.workload.data import CellField, CellK, Fields


@gtx.scan_operator(axis=K, forward=True, init=(0.0, 0.0))
def eliminate(
    above: tuple[gtx.float64, gtx.float64], a: gtx.float64, b: gtx.float64, c: gtx.float64, d: gtx.float64
) -> tuple[gtx.float64, gtx.float64]:
    c_above, d_above = above
    pivot = 1.0 / (b - a * c_above)
    return c * pivot, (d - a * d_above) * pivot


@gtx.scan_operator(axis=K, forward=False, init=0.0)
def substitute(below: gtx.float64, c: gtx.float64, d: gtx.float64) -> gtx.float64:
    return d - c * below


@gtx.field_operator
def solved(a: CellK, b: CellK, c: CellK, d: CellK) -> CellK:
    upper, right = eliminate(a, b, c, d)
    return substitute(upper, right)


@gtx.program
def solve_in_steps(a: CellK, b: CellK, c: CellK, d: CellK, upper: CellK, right: CellK, x: CellK):
    eliminate(a, b, c, d, out=(upper, right))
    substitute(upper, right, out=x)


@gtx.scan_operator(axis=K, forward=True, init=(0.0, 0.0, True))
def half_pressures(
    above: tuple[gtx.float64, gtx.float64, bool], top: gtx.float64, rho: gtx.float64, dz: gtx.float64
) -> tuple[gtx.float64, gtx.float64, bool]:
    _, lower_above, first = above
    upper = top if first else lower_above
    lower = upper + 9.81 * rho * dz
    return gtx.sqrt(upper * lower), lower, False


@gtx.field_operator
def pressure(top: CellField, rho: CellK, dz: CellK) -> CellK:
    middle, _, _ = half_pressures(top, rho, dz)
    return middle


@pytest.fixture
def system(grid):
    field = Fields(grid)
    return field(Cell, K), field(Cell, K, low=3, high=4), field(Cell, K), field(Cell, K)


def dense(a, b, c):
    levels = np.arange(b.shape[1])
    matrix = np.zeros((*b.shape, b.shape[1]))
    matrix[:, levels, levels] = b
    matrix[:, levels[1:], levels[:-1]] = a[:, 1:]
    matrix[:, levels[:-1], levels[1:]] = c[:, :-1]
    return matrix


def reference(a, b, c, d):
    return np.linalg.solve(dense(a, b, c), d[..., None])[..., 0]


def test_the_solve_is_the_dense_solve(grid, system):
    check(solved, reference, *system, mesh=grid)


def test_its_adjoint_is_the_transposed_dense_solve(grid, system):
    a, b, c, d = system
    weights = Fields(grid)(Cell, K).asnumpy()
    solution = lambda d: jnp.vdot(solved(a, b, c, d).ndarray, weights)  # noqa: E731
    on_jax = gtx.as_field(d.domain, jnp.asarray(d.asnumpy()))
    matrix = dense(*(f.asnumpy() for f in (a, b, c)))
    expected = np.linalg.solve(matrix.transpose(0, 2, 1), weights[..., None])[..., 0]
    np.testing.assert_allclose(jax.grad(solution)(on_jax).asnumpy(), expected, rtol=1e-11, atol=1e-13)


def test_the_solve_in_a_program(limited):
    field, cells = Fields(limited), limited.sizes[Cell]
    a, b, c, d = field(Cell, K), field(Cell, K, low=3, high=4), field(Cell, K), field(Cell, K)

    def with_factors(a, b, c, d):
        x = reference(a, b, c, d)
        upper, right = np.zeros_like(b), np.zeros_like(b)
        for k in range(b.shape[1]):
            pivot = b[:, k] - (a[:, k] * upper[:, k - 1] if k else 0)
            upper[:, k] = c[:, k] / pivot
            right[:, k] = (d[:, k] - (a[:, k] * right[:, k - 1] if k else 0)) / pivot
        return upper, right, x

    like = {Cell: cells, K: 6}
    check(solve_in_steps, with_factors, a, b, c, d, mesh=limited, run=filling(like, like, like))


def test_pressure_from_the_top_down(grid):
    def integrated(top, rho, dz):
        lower = top[:, None] + np.cumsum(9.81 * rho * dz, axis=1)
        upper = np.concatenate([top[:, None], lower[:, :-1]], axis=1)
        return np.sqrt(upper * lower)

    field = Fields(grid)
    check(
        pressure,
        integrated,
        *(field(Cell, low=1, high=2), field(Cell, K, low=1, high=2), field(Cell, K, low=0.1, high=0.2)),
        mesh=grid,
    )
