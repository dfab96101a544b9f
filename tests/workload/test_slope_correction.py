"""Operator 9: pressure differences across an edge, at the level of each cell that lies at the edge's height."""

import numpy as np
import pytest

import fieldjax as gtx
from fieldjax import as_offset, neighbor_sum
from fieldjax.mesh import E2C, Cell, E2CDim, Edge, K, Koff
from tests.workload.checks import check
from tests.workload.data import CellK, EdgeField, EdgeK, Fields

Levels = gtx.Field[gtx.Dims[Edge, E2CDim, K], gtx.int32]
EdgeE2CK = gtx.Field[gtx.Dims[Edge, E2CDim, K], gtx.float64]


@gtx.field_operator
def slope_gradient(p: CellK, dp: CellK, distance: EdgeE2CK, level: Levels, inverse_length: EdgeField) -> EdgeK:
    p0 = p(E2C[0])(as_offset(Koff, level[E2CDim(0)]))
    p1 = p(E2C[1])(as_offset(Koff, level[E2CDim(1)]))
    dp0 = dp(E2C[0])(as_offset(Koff, level[E2CDim(0)]))
    dp1 = dp(E2C[1])(as_offset(Koff, level[E2CDim(1)]))
    return inverse_length * (p1 + dp1 * distance[E2CDim(1)] - p0 - dp0 * distance[E2CDim(0)])


@gtx.field_operator
def sum_at_height(p: CellK, distance: EdgeE2CK, level: Levels) -> EdgeK:
    return neighbor_sum(p(E2C)(as_offset(Koff, level)) * distance, axis=E2CDim)


@pytest.fixture
def arguments(grid):
    field, edges = Fields(grid), grid.sizes[Edge]
    target = np.random.default_rng(3).integers(0, 6, (edges, 2, 6))
    level = gtx.as_field([Edge, E2CDim, K], (target - np.arange(6)).astype(np.int32))
    p, dp, distance = field(Cell, K), field(Cell, K), field(Edge, E2CDim, K, E2C=2)
    return p, dp, distance, level, field(Edge, low=1, high=2)


def at_height(grid, p, level):
    table = grid.table("E2C")
    read = p[table[:, :, None], level + np.arange(p.shape[1])]
    return np.where(table[:, :, None] < 0, np.nan, read)


def test_slope_correction(grid, arguments):
    def reference(p, dp, distance, level, inverse_length):
        along = at_height(grid, p, level) + at_height(grid, dp, level) * distance
        return inverse_length[:, None] * (along[:, 1] - along[:, 0])

    check(slope_gradient, reference, *arguments, mesh=grid)


def test_all_neighbours_at_once(grid, arguments):
    p, _, distance, level, _ = arguments

    def reference(p, distance, level):
        return np.nansum(at_height(grid, p, level) * distance, axis=1)

    check(sum_at_height, reference, p, distance, level, mesh=grid)
