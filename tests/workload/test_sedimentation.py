"""Operator 12: falling precipitation, a scan whose carry is 22 numbers with names, and one of 28 with 31 branches."""

from typing import Any, NamedTuple

import jax
import numpy as np

import fieldjax as gtx
from fieldjax import where
from fieldjax.mesh import Cell, K
from tests.workload.checks import calling, check
from tests.workload.data import CellField, CellK, Fields

KINDS = ("rain", "snow", "ice", "graupel", "hail")


class Kind(NamedTuple):
    """What falls of one kind: four numbers."""

    mass: Any
    flux: Any
    speed: Any
    melted: Any


class Column(NamedTuple):
    """What a level hands to the one below: 22 numbers."""

    rain: Kind
    snow: Kind
    ice: Kind
    graupel: Kind
    hail: Kind
    total: Any
    is_wet: Any


NOTHING = Kind(0.0, 0.0, 0.0, 0.0)


@gtx.field_operator
def fallen(above: Kind, q: gtx.float64, t: gtx.float64, rho: gtx.float64, exponent: gtx.float64) -> Kind:
    content = q * rho + above.flux * 0.5
    if content > 0.3:
        speed = content**exponent
    elif content > 0.1:
        speed = 0.5 * content
    else:
        speed = 0.0
    flux = content * speed / (1.0 + speed)
    melted = (t - 0.5) * flux if t > 0.5 else 0.0
    return Kind((content - 0.5 * flux) / rho, flux - 0.1 * melted, speed, above.melted + melted)


@gtx.scan_operator(axis=K, forward=True, init=Column(NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, 0.0, False))
def sedimentation(
    above: Column,
    q1: gtx.float64,
    q2: gtx.float64,
    q3: gtx.float64,
    q4: gtx.float64,
    q5: gtx.float64,
    t: gtx.float64,
    rho: gtx.float64,
) -> Column:
    rain = fallen(above.rain, q1, t, rho, 0.2)
    snow = fallen(above.snow, q2, t, rho, 0.3)
    ice = fallen(above.ice, q3, t, rho, 0.4)
    graupel = fallen(above.graupel, q4, t, rho, 0.5)
    hail = fallen(above.hail, q5, t, rho, 0.6)
    total = rain.flux + snow.flux + ice.flux + graupel.flux + hail.flux
    is_wet = above.is_wet or (t > 0.5 and total > 0.2)
    if is_wet:
        total = total + 0.1 * t
    return Column(rain, snow, ice, graupel, hail, total, is_wet)


class Contents(NamedTuple):
    """The content of each kind."""

    rain: CellK
    snow: CellK
    ice: CellK
    graupel: CellK
    hail: CellK


@gtx.field_operator
def precipitation(q: Contents, t: CellK, rho: CellK, frozen: CellField) -> tuple[Contents, CellK, CellK]:
    column = sedimentation(q.rain, q.snow, q.ice, q.graupel, q.hail, t, rho)
    new = Contents(column.rain.mass, column.snow.mass, column.ice.mass, column.graupel.mass, column.hail.mass)
    warm = where(frozen > 0.0, new, q.rain * 0.1)
    return warm, column.total, column.rain.melted + column.snow.melted


def fallen_reference(content, above_melted, t, exponent):
    with np.errstate(all="ignore"):
        speed = np.where(content > 0.3, content**exponent, np.where(content > 0.1, 0.5 * content, 0.0))
    flux = content * speed / (1 + speed)
    melted = np.where(t > 0.5, (t - 0.5) * flux, 0.0)
    return content - 0.5 * flux, flux - 0.1 * melted, above_melted + melted


def reference(q, t, rho, frozen):
    cells, levels = t.shape
    mass, melted = np.zeros((5, cells, levels)), np.zeros((5, cells, levels))
    flux, total, wet = np.zeros((5, cells)), np.zeros((cells, levels)), np.zeros(cells, bool)
    for k in range(levels):
        for n, (kind, exponent) in enumerate(zip(q, (0.2, 0.3, 0.4, 0.5, 0.6), strict=True)):
            content = kind[:, k] * rho[:, k] + flux[n] * 0.5
            before = melted[n, :, k - 1] if k else 0.0
            held, flux[n], melted[n, :, k] = fallen_reference(content, before, t[:, k], exponent)
            mass[n, :, k] = held / rho[:, k]
        wet |= (t[:, k] > 0.5) & (flux.sum(axis=0) > 0.2)
        total[:, k] = flux.sum(axis=0) + np.where(wet, 0.1 * t[:, k], 0.0)
    warm = [np.where(frozen[:, None] > 0, m, q[0] * 0.1) for m in mass]
    return *(w[:, 1:] for w in warm), total[:, -1:], (melted[0] + melted[1])[10:20]


def test_precipitation(grid):
    field, cells = Fields(grid), grid.sizes[Cell]
    arguments = (
        Contents(*(field(Cell, K, low=0, high=1) for _ in KINDS)),
        *(field(Cell, K, low=0, high=1), field(Cell, K, low=0.8, high=1.2), field(Cell)),
    )
    inner, bottom, some = {Cell: cells, K: (1, 6)}, {Cell: cells, K: (5, 6)}, {Cell: (10, 20), K: 6}
    run = calling(domain=(Contents(*[inner] * 5), bottom, some))
    check(precipitation, reference, *arguments, mesh=grid, run=run, kinks=0.01)


def test_its_carry_has_22_numbers():
    assert len(jax.tree.leaves(sedimentation.init)) == 22


@gtx.field_operator
def passed_on(carried: gtx.float64, q: gtx.float64, limit: gtx.float64) -> gtx.float64:
    if carried + q > limit:
        return 0.5 * (carried + q)
    return carried + 0.1 * q * q


@gtx.scan_operator(axis=K, init=(0.0,) * 28)
def many(above, q, t):
    values = []
    for n in range(28):
        values.append(passed_on(above[n], q * (n + 1) / 28, 0.03 * (n + 1)))
    if t > 0.5:
        values[0] = values[0] * t
    elif t > 0.25:
        values[0] = values[0] + values[27]
    else:
        values[1] = t
    return tuple(values)


def many_reference(q, t):
    found = np.zeros((28, *q.shape))
    for k in range(q.shape[1]):
        for n in range(28):
            carried = found[n, :, k - 1] if k else np.zeros(len(q))
            part = q[:, k] * (n + 1) / 28
            over = carried + part > 0.03 * (n + 1)
            found[n, :, k] = np.where(over, 0.5 * (carried + part), carried + 0.1 * part * part)
        warm, mild = t[:, k] > 0.5, (t[:, k] > 0.25) & (t[:, k] <= 0.5)
        first = np.where(mild, found[0, :, k] + found[27, :, k], found[0, :, k])
        found[0, :, k] = np.where(warm, found[0, :, k] * t[:, k], first)
        found[1, :, k] = np.where(warm | mild, found[1, :, k], t[:, k])
    return tuple(found)


def test_a_carry_of_28_numbers_with_31_branches(limited):
    field = Fields(limited)
    check(
        many, many_reference, field(Cell, K, low=0, high=0.1), field(Cell, K, low=0, high=1), mesh=limited, kinks=0.05
    )


def test_such_a_carry_compiles_once(limited):
    field = Fields(limited)
    scan = gtx.scan_operator(many.definition, axis=K, init=many.init)
    for _ in range(3):
        scan(field(Cell, K, low=0, high=0.1), field(Cell, K, low=0, high=1))
    assert (scan.stats.recordings, scan.stats.plans, scan.stats.traces) == (1, 1, 1)
