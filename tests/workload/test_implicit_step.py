"""Operator 11: one vertically implicit step of a toy of sound: many outputs, switches, one program."""

import numpy as np
import pytest

import fieldjax as gtx
from fieldjax import broadcast, concat_where, neighbor_sum, where
from fieldjax.mesh import C2E, C2EDim, Cell, Edge, K, Koff
from tests.workload.checks import check, filling
from tests.workload.data import CellC2E, CellK, EdgeK, Fields, KField, per_level
from tests.workload.test_tridiagonal import dense, eliminate, substitute


@gtx.field_operator
def explicit_part(
    rho: CellK, theta: CellK, vn: EdgeK, weight: CellC2E, dt: gtx.float64, with_theta: bool
) -> tuple[CellK, CellK]:
    mass = rho - dt * neighbor_sum(vn(C2E) * weight, axis=C2EDim)
    heat = theta
    if with_theta:
        heat = theta - dt * theta * neighbor_sum(vn(C2E) * weight, axis=C2EDim)
    return mass, heat


@gtx.field_operator
def coefficients(
    mass: CellK, heat: CellK, dz: CellK, dt: gtx.float64, bottom: gtx.int32
) -> tuple[CellK, CellK, CellK, CellK]:
    pressure = mass * heat**1.4
    force = concat_where(K == 0, 0.0, dt * (pressure(Koff[-1]) - pressure) / dz)
    stiff = dt * dt * heat / dz
    a = concat_where(K == 0, broadcast(0.0, (Cell, K)), -stiff)
    c = concat_where(bottom == K, broadcast(0.0, (Cell, K)), -stiff)
    return a, 1.0 + 2.0 * stiff, c, force


@gtx.field_operator
def damped(w: CellK, damping: KField, dt: gtx.float64, lowest: gtx.int32) -> CellK:
    return concat_where(lowest > K, w / (1.0 + dt * damping), w)


@gtx.field_operator
def updated(mass: CellK, w: CellK, dz: CellK, dt: gtx.float64, bottom: gtx.int32) -> tuple[CellK, CellK]:
    below = concat_where(bottom == K, 0.0, w(Koff[1]))
    rho = mass - dt * (w - below) * mass / dz
    return rho, where(rho > 0.5, rho, 0.5)


@gtx.program
def implicit_step(
    rho: CellK,
    theta: CellK,
    w: CellK,
    vn: EdgeK,
    weight: CellC2E,
    dz: CellK,
    damping: KField,
    dt: gtx.float64,
    cells: gtx.int32,
    levels: gtx.int32,
    with_theta: bool,
    with_damping: bool,
    mass: CellK,
    heat: CellK,
    a: CellK,
    b: CellK,
    c: CellK,
    d: CellK,
    bounded: CellK,
):
    explicit_part(rho, theta, vn, weight, dt, with_theta, out=(mass, heat))
    coefficients(mass, heat, dz, dt, levels - 1, out=(a, b, c, d), domain={Cell: (0, cells), K: (0, levels)})
    eliminate(a, b, c, d, out=(c, d))
    substitute(c, d, out=w)
    if with_damping:
        damped(w, damping, dt, 2, out=w, domain={Cell: (0, cells), K: (0, levels // 2)})
    updated(mass, w, dz, dt, levels - 1, out=(rho, bounded), domain={Cell: (0, cells), K: (0, levels)})


def step(grid, rho, theta, _, vn, weight, dz, damping, dt, *switches):
    *_, with_theta, with_damping = switches
    flow = (vn[grid.table("C2E")] * per_level(weight)).sum(axis=1)
    mass, heat = rho - dt * flow, theta * (1 - dt * flow) if with_theta else theta
    p, stiff = mass * heat**1.4, dt**2 * heat / dz
    force = np.zeros_like(rho)
    force[:, 1:] = dt * (p[:, :-1] - p[:, 1:]) / dz[:, 1:]
    w = np.linalg.solve(dense(-stiff, 1 + 2 * stiff, -stiff), force[..., None])[..., 0]
    if with_damping:
        w[:, :2] /= 1 + dt * damping[:2]
    below = np.concatenate([w[:, 1:], np.zeros((len(w), 1))], axis=1)
    new = mass - dt * (w - below) * mass / dz
    between = np.full_like(rho, np.nan)  # what the elimination leaves in its fields
    return mass, heat, *[between] * 4, np.maximum(new, 0.5), new, w


@pytest.mark.parametrize(
    ("grid", "switches"),
    [("r2b3", (True, False)), ("limited", (True, True)), ("limited", (False, False))],
    indirect=["grid"],
)
def test_implicit_step(grid, switches):
    field, cells = Fields(grid), grid.sizes[Cell]
    arguments = (
        *(field(Cell, K, low=0.4, high=1.5), field(Cell, K, low=1, high=2), field(Cell, K)),
        *(field(Edge, K), field.sparse(grid.table("C2E"), Cell, C2EDim)),
        *(field(Cell, K, low=1, high=2), field(K, low=0, high=1)),
        *(0.1, np.int32(cells), np.int32(6), *switches),
    )
    run = filling(*[{Cell: cells, K: 6}] * 7, also=[0, 2])
    check(implicit_step, lambda *a: step(grid, *a), *arguments, mesh=grid, run=run, kinks=0.01)
