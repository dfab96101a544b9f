"""Operator 6: ∇⁴ of the wind, weaker in a zone of edges, added to the wind itself."""

import numpy as np
import pytest

import fieldjax as gtx
from fieldjax import concat_where, neighbor_sum, where
from fieldjax.mesh import E2C2V, V2E, E2C2VDim, Edge, K, V2EDim, Vertex
from tests.workload.checks import check, filling
from tests.workload.data import EdgeE2C2V, EdgeField, EdgeK, EdgeMask, Fields, VertexK, VertexV2E, neighbours, per_level


@gtx.field_operator
def at_vertices(vn: EdgeK, to_east: VertexV2E, to_north: VertexV2E) -> tuple[VertexK, VertexK]:
    return neighbor_sum(vn(V2E) * to_east, axis=V2EDim), neighbor_sum(vn(V2E) * to_north, axis=V2EDim)


@gtx.field_operator
def laplacian(
    vn: EdgeK,
    to_east: VertexV2E,
    to_north: VertexV2E,
    east: EdgeE2C2V,
    north: EdgeE2C2V,
    along: EdgeField,
    across: EdgeField,
    inside: EdgeMask,
) -> EdgeK:
    u, v = at_vertices(vn, to_east, to_north)
    d0 = u(E2C2V[0]) * east[E2C2VDim(0)] + v(E2C2V[0]) * north[E2C2VDim(0)] - vn
    d1 = u(E2C2V[1]) * east[E2C2VDim(1)] + v(E2C2V[1]) * north[E2C2VDim(1)] - vn
    d2 = u(E2C2V[2]) * east[E2C2VDim(2)] + v(E2C2V[2]) * north[E2C2VDim(2)] - vn
    d3 = u(E2C2V[3]) * east[E2C2VDim(3)] + v(E2C2V[3]) * north[E2C2VDim(3)] - vn
    return where(inside, 4.0 * ((d0 + d1) * along**2 + (d2 + d3) * across**2), 0.0)


@gtx.field_operator
def diffused(vn: EdgeK, nabla2: EdgeK, nabla4: EdgeK, strength: gtx.float64, zone: gtx.int32, nudged: bool) -> EdgeK:
    if nudged:
        return concat_where(Edge < zone, vn + 0.1 * strength * nabla2, vn - strength * nabla4)
    return vn - strength * nabla4


@gtx.program
def diffusion(
    vn: EdgeK,
    to_east: VertexV2E,
    to_north: VertexV2E,
    east: EdgeE2C2V,
    north: EdgeE2C2V,
    along: EdgeField,
    across: EdgeField,
    inside: EdgeMask,
    strength: gtx.float64,
    zone: gtx.int32,
    nudged: bool,
    nabla2: EdgeK,
    nabla4: EdgeK,
):
    laplacian(vn, to_east, to_north, east, north, along, across, inside, out=nabla2)
    laplacian(nabla2, to_east, to_north, east, north, along, across, inside, out=nabla4)
    diffused(vn, nabla2, nabla4, strength, zone, nudged, out=vn)


def laplacian_reference(grid, vn, to_east, to_north, east, north, along, across, inside):
    at = neighbours(vn, grid.table("V2E"))
    u, v = (np.nansum(at * per_level(w), axis=1) for w in (to_east, to_north))
    table = grid.table("E2C2V")
    projected = neighbours(u, table) * per_level(east) + neighbours(v, table) * per_level(north) - vn[:, None]
    ends, opposite = projected[:, :2].sum(axis=1), projected[:, 2:].sum(axis=1)
    return np.where(inside[:, None], 4 * (ends * along[:, None] ** 2 + opposite * across[:, None] ** 2), 0.0)


@pytest.mark.parametrize(("grid", "nudged"), [("r2b3", False), ("limited", True)], indirect=["grid"])
def test_diffusion(grid, nudged):
    field, zone = Fields(grid), 300

    def reference(vn, *others):
        nabla2 = laplacian_reference(grid, vn, *others[:-3])
        nabla4 = laplacian_reference(grid, nabla2, *others[:-3])
        new = vn - 0.2 * nabla4
        if nudged:
            new[:zone] = vn[:zone] + 0.1 * 0.2 * nabla2[:zone]
        return nabla2, nabla4, new

    v2e, e2c2v = grid.table("V2E"), grid.table("E2C2V")
    arguments = (
        *(field(Edge, K), *(field.sparse(v2e, Vertex, V2EDim) for _ in range(2))),
        *(field.sparse(e2c2v, Edge, E2C2VDim) for _ in range(2)),
        *(field(Edge), field(Edge), gtx.as_field([Edge], (e2c2v >= 0).all(axis=1))),
        *(0.2, np.int32(zone), nudged),
    )
    like = {Edge: grid.sizes[Edge], K: 6}
    check(diffusion, reference, *arguments, mesh=grid, run=filling(like, like, also=[0]))


def test_the_outcome_of_the_switch_compiles_not_its_value(limited):
    field = Fields(limited)
    vn, nabla2, nabla4 = (field(Edge, K) for _ in range(3))
    operator = gtx.field_operator(diffused.function)
    for strength, nudged in [(0.1, True), (0.2, True), (0.3, False), (0.4, False)]:
        operator(vn, nabla2, nabla4, strength, np.int32(300), nudged)
    assert (operator.stats.recordings, operator.stats.plans) == (2, 2)
