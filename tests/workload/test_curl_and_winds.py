"""Operator 4: curl at vertices and winds reconstructed from six edges, five at pentagons."""

import jax
import numpy as np

import fieldjax as gtx
from fieldjax import neighbor_sum, sqrt
from fieldjax.mesh import V2E, Edge, K, V2EDim, Vertex
from tests.workload.checks import check
from tests.workload.data import EdgeK, Fields, VertexK, VertexV2E, neighbours, per_level


@gtx.field_operator
def curl(vn: EdgeK, weight: VertexV2E) -> VertexK:
    return neighbor_sum(vn(V2E) * weight, axis=V2EDim)


@gtx.field_operator
def winds(vn: EdgeK, to_east: VertexV2E, to_north: VertexV2E) -> tuple[VertexK, VertexK]:
    east = neighbor_sum(vn(V2E) * to_east, axis=V2EDim)
    north = neighbor_sum(vn(V2E) * to_north, axis=V2EDim)
    return east, north


@gtx.field_operator
def roughness(vn: EdgeK, weight: VertexV2E) -> VertexK:
    return sqrt(neighbor_sum(sqrt(vn(V2E)) / weight, axis=V2EDim))


def summed(grid, vn, weight):
    return np.nansum(neighbours(vn, grid.table("V2E")) * per_level(weight), axis=1)


def test_curl(grid):
    field = Fields(grid)
    weight = field.sparse(grid.table("V2E"), Vertex, V2EDim)
    check(curl, lambda *a: summed(grid, *a), field(Edge, K), weight, mesh=grid)


def test_winds(grid):
    field = Fields(grid)
    weights = [field.sparse(grid.table("V2E"), Vertex, V2EDim) for _ in range(2)]
    check(winds, lambda vn, *w: tuple(summed(grid, vn, x) for x in w), field(Edge, K), *weights, mesh=grid)


def test_what_has_singular_points(grid):
    """Unused slots hold 0 here, where the quotient is infinite."""
    field, table = Fields(grid), grid.table("V2E")
    weight = gtx.as_field(
        [Vertex, V2EDim], np.where(table < 0, 0.0, field(Vertex, V2EDim, V2E=6, low=1, high=2).asnumpy())
    )

    def reference(vn, weight):
        return np.sqrt(np.nansum(np.sqrt(neighbours(vn, table)) / per_level(weight), axis=1))

    check(roughness, reference, field(Edge, K, low=0.5, high=1.5), weight, mesh=grid)


def test_unused_slots_of_weights_have_no_gradient(r2b3):
    field, table = Fields(r2b3), r2b3.table("V2E")
    vn, weight = field(Edge, K), field.sparse(table, Vertex, V2EDim)
    slope = jax.grad(lambda w: curl(vn, w, offset_provider=r2b3.mesh).ndarray.sum())(weight).asnumpy()
    expected = np.where(table < 0, 0.0, vn.asnumpy().sum(axis=1)[table])
    assert (table < 0).sum() == 12
    np.testing.assert_allclose(slope, expected, rtol=1e-12, atol=1e-14)
