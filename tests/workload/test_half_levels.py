"""Operator 5: values at half levels and their squares, the top from three levels below it."""

import numpy as np

import fieldjax as gtx
from fieldjax.mesh import Edge, K, Koff
from tests.workload.checks import check, filling
from tests.workload.data import EdgeField, EdgeK, Fields


@gtx.field_operator
def to_half_levels(f: EdgeK, w: EdgeK) -> tuple[EdgeK, EdgeK]:
    half = w * f + (1.0 - w) * f(Koff[-1])
    return half, half * half


@gtx.field_operator
def extrapolated(f: EdgeK, w1: EdgeField, w2: EdgeField, w3: EdgeField) -> tuple[EdgeK, EdgeK]:
    top = w1 * f + w2 * f(Koff[1]) + w3 * f(Koff[2])
    return top, top**2


@gtx.program
def half_levels(
    f: EdgeK, w: EdgeK, w1: EdgeField, w2: EdgeField, w3: EdgeField, edges: gtx.int32, half: EdgeK, square: EdgeK
):
    to_half_levels(f, w, out=(half[:, 1:], square[:, 1:]))
    extrapolated(f, w1, w2, w3, out=(half, square), domain={Edge: (0, edges), K: (0, 1)})


def reference(f, w, w1, w2, w3, _):
    half = f.copy()
    half[:, 1:] = w[:, 1:] * f[:, 1:] + (1 - w[:, 1:]) * f[:, :-1]
    half[:, 0] = w1 * f[:, 0] + w2 * f[:, 1] + w3 * f[:, 2]
    return half, half**2


def test_half_levels(grid):
    field = Fields(grid)
    weights = field(Edge, K, low=0, high=1), field(Edge), field(Edge), field(Edge)
    like = {Edge: grid.sizes[Edge], K: 6}
    edges = np.int32(grid.sizes[Edge])
    check(half_levels, reference, field(Edge, K), *weights, edges, mesh=grid, run=filling(like, like))
