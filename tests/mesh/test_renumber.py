"""Renumbering: the same mesh, with neighbours closer."""

import numpy as np
import pytest

from fieldjax.errors import ArgumentError
from fieldjax.mesh import Grid, icosahedral_grid, renumber
from fieldjax.mesh.names import LOCAL, Cell, Edge, Vertex, endpoints
from fieldjax.mesh.renumber import hilbert_index

SOURCES = {Cell: "source_cell", Edge: "source_edge", Vertex: "source_vertex"}
ORDERS = ["locality", "bandwidth"]


def spread(grid, name="C2E2C"):
    """How far, in the median, a neighbour's index is from one's own."""
    table = grid.table(name)
    return np.median(np.abs(table - np.arange(len(table))[:, None])[table != -1])


@pytest.mark.parametrize("by", ORDERS)
def test_it_is_a_permutation_of_the_same_mesh(any_grid, by):
    new = renumber(any_grid, by=by)
    assert new.sizes == any_grid.sizes
    for dim, source in SOURCES.items():
        assert np.array_equal(np.sort(new[source]), np.arange(any_grid.sizes[dim]))
    for name in LOCAL:
        start, end = endpoints(name)
        here, there = new.table(name), any_grid.table(name)[new[SOURCES[start]]]
        assert np.array_equal(np.where(here == -1, -1, new[SOURCES[end]][here]), there), name


@pytest.mark.parametrize("by", ORDERS)
def test_geometry_comes_along(any_grid, by):
    new = renumber(any_grid, by=by)
    for name in new:
        if name.startswith("source"):
            continue
        dims = new.variable(name).dims
        source = next(new[SOURCES[d]] for d in SOURCES if d.value == dims[0])
        assert np.array_equal(new[name], any_grid[name][source]), name


@pytest.mark.parametrize("by", ORDERS)
def test_neighbours_come_closer(by):
    grid = icosahedral_grid(2, 2)
    rng = np.random.default_rng(0)
    from fieldjax.mesh.selection import select

    mixed = select(grid, {dim: rng.permutation(grid.sizes[dim]) for dim in SOURCES}, "mixed")
    new = renumber(mixed, by=by)
    for name in ("C2E2C", "V2E2V", "E2C2E"):
        assert spread(new, name) < 0.15 * spread(mixed, name)
    # Edges and vertices go with the cells.
    apart = np.abs(new.table("C2E") / new.sizes[Edge] - np.arange(len(new.table("C2E")))[:, None] / new.sizes[Cell])
    assert np.median(apart) < 0.06


def test_any_numbering_leads_to_the_same_locality(r2b1, shuffled):
    assert np.array_equal(renumber(r2b1)["clat"], renumber(shuffled)["clat"])


def test_hilbert_curve_visits_neighbours_in_turn():
    side = 8
    points = np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij"), axis=-1).reshape(-1, 3).astype(np.uint64)
    index = hilbert_index(points)
    assert np.array_equal(np.sort(index), np.arange(side**3))
    steps = np.diff(points[np.argsort(index)].astype(int), axis=0)
    assert (np.abs(steps).sum(axis=1) == 1).all()


def test_bandwidth_needs_no_coordinates(r2b1):
    bare = Grid(r2b1.tables, r2b1.geometry.drop_vars([*r2b1]))
    assert renumber(bare, by="bandwidth").sizes == r2b1.sizes
    with pytest.raises(ArgumentError, match="needs the vertices' coordinates"):
        renumber(bare)


def test_unknown_orders_are_refused(r2b1):
    with pytest.raises(ArgumentError, match="can't renumber by 'colour'") as caught:
        renumber(r2b1, by="colour")
    assert "'locality', 'bandwidth'" in str(caught.value)
