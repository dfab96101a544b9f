"""Operator 8: values at the faces between levels by piecewise parabolas."""

import numpy as np

import fieldjax as gtx
from fieldjax import concat_where
from fieldjax.mesh import Cell, K, Koff
from tests.workload.checks import calling, check
from tests.workload.data import CellK, Fields


@gtx.field_operator
def slope(q: CellK, dz: CellK, bottom: gtx.int32) -> CellK:
    below = (q(Koff[1]) - q) / (dz(Koff[1]) + dz)
    above = (q - q(Koff[-1])) / (dz + dz(Koff[-1]))
    inner = (
        dz / (dz(Koff[-1]) + dz + dz(Koff[1])) * ((2.0 * dz(Koff[-1]) + dz) * below + (dz + 2.0 * dz(Koff[1])) * above)
    )
    return concat_where((K == 0) | (bottom == K), 0.0, inner)


@gtx.field_operator
def parabolic_faces(q: CellK, dz: CellK, levels: gtx.int32) -> CellK:
    s = slope(q, dz, levels - 1)
    linear = (q(Koff[-1]) * dz + q * dz(Koff[-1])) / (dz + dz(Koff[-1]))
    wide = dz(Koff[-2]) + dz(Koff[-1]) + dz + dz(Koff[1])
    steep = (dz(Koff[-1]) + dz) / wide * (q - q(Koff[-1]))
    curved = linear + steep / 5.0 + (dz * s(Koff[-1]) - dz(Koff[-1]) * s) / wide
    inside = concat_where((K == 1) | (levels - 1 == K), linear, curved)
    return concat_where(K == 0, q, concat_where(levels == K, q(Koff[-1]), inside))


def reference(q, dz, levels):
    s = np.zeros_like(q)
    for k in range(1, levels - 1):
        d0, d1, d2 = dz[:, k - 1], dz[:, k], dz[:, k + 1]
        below, above = (q[:, k + 1] - q[:, k]) / (d2 + d1), (q[:, k] - q[:, k - 1]) / (d1 + d0)
        s[:, k] = d1 / (d0 + d1 + d2) * ((2 * d0 + d1) * below + (d1 + 2 * d2) * above)
    faces = np.empty((len(q), levels + 1))
    faces[:, 0], faces[:, levels] = q[:, 0], q[:, -1]
    for k in range(1, levels):
        d0, d1 = dz[:, k - 1], dz[:, k]
        faces[:, k] = (q[:, k - 1] * d1 + q[:, k] * d0) / (d0 + d1)
        if 1 < k < levels - 1:
            wide = dz[:, k - 2 : k + 2].sum(axis=1)
            faces[:, k] += (d0 + d1) / wide * (q[:, k] - q[:, k - 1]) / 5
            faces[:, k] += (d1 * s[:, k - 1] - d0 * s[:, k]) / wide
    return faces


def test_faces(grid):
    field = Fields(grid)
    domain = {Cell: grid.sizes[Cell], K: 7}
    arguments = field(Cell, K), field(Cell, K, low=1, high=2), np.int32(6)
    check(parabolic_faces, reference, *arguments, mesh=grid, run=calling(domain=domain))
