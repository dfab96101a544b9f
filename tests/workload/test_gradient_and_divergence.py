"""Operators 1 to 3: time tendency, gradient along the normal of an edge, divergence."""

import numpy as np

import fieldjax as gtx
from fieldjax import neighbor_sum
from fieldjax.mesh import C2E, E2C, C2EDim, Cell, Edge, K
from tests.workload.checks import check, filling
from tests.workload.data import CellC2E, CellC2EK, CellK, EdgeField, EdgeK, Fields, neighbours, per_level


@gtx.field_operator
def tendency(new: EdgeK, old: EdgeK, dt: gtx.float64) -> EdgeK:
    return (new - old) / dt


@gtx.field_operator
def edge_gradient(p: CellK, inverse_length: EdgeField) -> EdgeK:
    return (p(E2C[1]) - p(E2C[0])) * inverse_length


@gtx.field_operator
def divergence(flux: EdgeK, weight: CellC2E) -> CellK:
    return neighbor_sum(flux(C2E) * weight, axis=C2EDim)


@gtx.field_operator
def flux_shares(flux: EdgeK, weight: CellC2E) -> CellC2EK:
    return flux(C2E) * weight


@gtx.program(grid_type=gtx.GridType.UNSTRUCTURED)
def divergence_of(flux: EdgeK, weight: CellC2E, cells: gtx.int32, levels: gtx.int32, total: CellK, shares: CellC2EK):
    divergence(flux, weight, out=total, domain={Cell: (0, cells), K: (1, levels - 1)})
    flux_shares(flux, weight, out=shares)


def test_time_tendency(grid):
    field = Fields(grid)
    check(tendency, lambda new, old, dt: (new - old) / dt, field(Edge, K), field(Edge, K), 0.25, mesh=grid)


def test_edge_gradient(grid):
    def reference(p, inverse_length):
        at = neighbours(p, grid.table("E2C"))
        return (at[:, 1] - at[:, 0]) * per_level(inverse_length)

    field = Fields(grid)
    check(edge_gradient, reference, field(Cell, K), field(Edge, low=1, high=2), mesh=grid)


def shares_reference(grid, flux, weight):
    return flux[grid.table("C2E")] * per_level(weight)


def test_divergence_and_its_terms(grid):
    field = Fields(grid)
    arguments = field(Edge, K), field.sparse(grid.table("C2E"), Cell, C2EDim)
    check(divergence, lambda *a: shares_reference(grid, *a).sum(axis=1), *arguments, mesh=grid)
    check(flux_shares, lambda *a: shares_reference(grid, *a), *arguments, mesh=grid)


def test_a_program_writes_both(grid):
    cells, levels = grid.sizes[Cell], 6

    def reference(flux, weight, *_):
        shares = shares_reference(grid, flux, weight)
        total = np.zeros((cells, levels))
        total[:, 1:-1] = shares.sum(axis=1)[:, 1:-1]
        return total, shares

    field = Fields(grid)
    arguments = field(Edge, K), field.sparse(grid.table("C2E"), Cell, C2EDim)
    run = filling({Cell: cells, K: levels}, {Cell: cells, C2EDim: 3, K: levels})
    check(divergence_of, reference, *arguments, np.int32(cells), np.int32(levels), mesh=grid, run=run)
