"""Operator 7: fluxes limited so that no cell leaves the range of its neighbourhood."""

import numpy as np

import fieldjax as gtx
from fieldjax import max_over, maximum, min_over, minimum, neighbor_sum
from fieldjax.mesh import C2E, C2E2C, E2C, C2E2CDim, C2EDim, Cell, E2CDim, Edge, K
from tests.workload.checks import check
from tests.workload.data import CellC2E, CellK, EdgeK, Fields, neighbours, per_level


@gtx.field_operator
def allowed(flux: EdgeK, weight: CellC2E, q: CellK) -> CellK:
    highest = maximum(q, max_over(q(C2E2C), axis=C2E2CDim))
    lowest = minimum(q, min_over(q(C2E2C), axis=C2E2CDim))
    incoming = neighbor_sum(maximum(0.0, flux(C2E) * weight), axis=C2EDim)
    outgoing = neighbor_sum(maximum(0.0, -flux(C2E) * weight), axis=C2EDim)
    rise = minimum(1.0, (highest - q) / (incoming + 0.01))
    fall = minimum(1.0, (q - lowest) / (outgoing + 0.01))
    return minimum(rise, fall)


@gtx.field_operator
def limited_flux(flux: EdgeK, weight: CellC2E, q: CellK) -> EdgeK:
    share = allowed(flux, weight, q)
    return flux * min_over(share(E2C), axis=E2CDim)


def reference(grid, flux, weight, q):
    near = np.concatenate([q[:, None], neighbours(q, grid.table("C2E2C"))], axis=1)
    signed = flux[grid.table("C2E")] * per_level(weight)
    incoming, outgoing = np.maximum(signed, 0).sum(axis=1), np.maximum(-signed, 0).sum(axis=1)
    rise = np.clip((np.nanmax(near, axis=1) - q) / (incoming + 0.01), None, 1)
    fall = np.clip((q - np.nanmin(near, axis=1)) / (outgoing + 0.01), None, 1)
    return flux * np.nanmin(neighbours(np.minimum(rise, fall), grid.table("E2C")), axis=1)


def test_limited_flux(grid):
    field = Fields(grid)
    arguments = field(Edge, K), field.sparse(grid.table("C2E"), Cell, C2EDim), field(Cell, K)
    check(limited_flux, lambda *a: reference(grid, *a), *arguments, mesh=grid)
