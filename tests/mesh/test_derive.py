"""Neighbour tables: what they hold, by definitions written out in Python sets."""

import numpy as np
import pytest

from fieldjax.errors import ArgumentError, ConnectivityError
from fieldjax.mesh import Grid, icosahedron
from fieldjax.mesh.derive import inverse
from fieldjax.mesh.names import LOCAL, Cell, Edge, Vertex, endpoints
from fieldjax.mesh.tables import check_table, index_table

WIDTHS = {
    "C2E": 3, "C2V": 3, "C2E2C": 3, "C2E2CO": 4, "C2E2C2E": 9, "C2E2C2E2C": 9,
    "E2C": 2, "E2V": 2, "E2C2V": 4, "E2C2E": 4, "E2C2EO": 5,
    "V2C": 6, "V2E": 6, "V2E2V": 6,
}  # fmt: skip
INVERSES = [("C2E", "E2C"), ("C2V", "V2C"), ("E2V", "V2E")]


def rows(table):
    return [[int(i) for i in row if i != -1] for row in table]


def sets(table):
    return [set(row) for row in rows(table)]


def test_widths_are_those_of_icon(r2b1):
    assert {name: r2b1.table(name).shape[1] for name in LOCAL} == WIDTHS


def test_every_row_starts_and_ends_where_the_name_says(any_grid):
    for name in LOCAL:
        start, end = endpoints(name)
        table = any_grid.table(name)
        assert len(table) == any_grid.sizes[start]
        assert -1 <= table.min() <= table.max() < any_grid.sizes[end]
        assert table.dtype == np.int32
        assert not table.flags.writeable


def test_no_row_names_a_neighbour_twice(any_grid):
    for name in LOCAL:
        assert all(len(row) == len(set(row)) for row in rows(any_grid.table(name))), name


@pytest.mark.parametrize(("there", "back"), INVERSES)
def test_core_tables_are_mutual_inverses(any_grid, there, back):
    forward = {(i, j) for i, row in enumerate(rows(any_grid.table(there))) for j in row}
    backward = {(i, j) for j, row in enumerate(rows(any_grid.table(back))) for i in row}
    assert forward == backward


@pytest.mark.parametrize("name", ["C2E2C", "V2E2V", "E2C2E", "C2E2C2E2C"])
def test_neighbours_are_symmetrical(any_grid, name):
    neighbours = sets(any_grid.table(name))
    assert all(i in neighbours[j] for i, row in enumerate(neighbours) for j in row)


def test_derived_tables_hold_what_their_names_say(any_grid):
    c2e, e2c, e2v, c2v, v2e = (sets(any_grid.table(n)) for n in ("C2E", "E2C", "E2V", "C2V", "V2E"))
    near = [set().union(*(e2c[e] for e in edges)) - {c} for c, edges in enumerate(c2e)]
    diamond = [set().union(*(c2e[c] for c in cells)) - {e} for e, cells in enumerate(e2c)]
    assert sets(any_grid.table("C2E2C")) == near
    assert sets(any_grid.table("C2E2CO")) == [{c} | row for c, row in enumerate(near)]
    assert sets(any_grid.table("C2E2C2E")) == [set().union(*(c2e[c] for c in row)) for row in near]
    ring = [row | set().union(*(near[n] for n in row)) - {c} for c, row in enumerate(near)]
    assert sets(any_grid.table("C2E2C2E2C")) == ring
    assert sets(any_grid.table("E2C2E")) == diamond
    assert sets(any_grid.table("E2C2EO")) == [{e} | row for e, row in enumerate(diamond)]
    assert sets(any_grid.table("E2C2V")) == [set().union(*(c2v[c] for c in cells)) for cells in e2c]
    assert sets(any_grid.table("V2E2V")) == [set().union(*(e2v[e] for e in edges)) - {v} for v, edges in enumerate(v2e)]


def test_self_comes_first_and_ends_before_opposites(any_grid):
    for name in ("C2E2CO", "E2C2EO"):
        table = any_grid.table(name)
        assert np.array_equal(table[:, 0], np.arange(len(table)))
    assert np.array_equal(any_grid.table("E2C2V")[:, :2], any_grid.table("E2V"))


def test_slots_of_paths_line_up_with_the_tables_they_go_through(any_grid):
    e2c, c2v = any_grid.table("E2C"), any_grid.table("C2V")
    opposite = any_grid.table("E2C2V")[:, 2:]
    missing = e2c == -1
    assert ((opposite == -1) == missing).all()
    assert ((c2v[e2c] == opposite[..., None]).any(axis=2) | missing).all()
    around = any_grid.table("E2C2E").reshape(-1, 2, 2)
    assert ((around == -1).all(axis=2) == missing).all()
    assert ((around == -1).any(axis=2) == missing).all()


def test_the_diamond_runs_on_round_each_cell(r2b1):
    c2e, e2c = r2b1.table("C2E"), r2b1.table("E2C")
    for edge, row in enumerate(r2b1.table("E2C2E")):
        for side in (0, 1):
            cell = c2e[e2c[edge, side]].tolist()
            turn = cell.index(edge)
            assert (cell[turn + 1 :] + cell[:turn]) == row[2 * side : 2 * side + 2].tolist()


@pytest.mark.parametrize("name", ["C2E", "C2V", "E2V"])
def test_a_boundary_never_leaves_skips_in_these(limited, name):
    assert (limited.table(name) != -1).all()


@pytest.mark.parametrize("name", ["E2C", "C2E2C", "V2C", "V2E", "E2C2V", "C2E2C2E", "E2C2EO"])
def test_a_boundary_leaves_skips_in_those(limited, name):
    assert (limited.table(name) == -1).any()


def test_pentagons_are_one_short(r2b1):
    short = (r2b1.table("V2C") == -1).sum(axis=1)
    assert np.bincount(short).tolist() == [150, 12]


def test_inverse_of_an_empty_table():
    assert inverse(np.full((2, 3), -1), 4).tolist() == [[-1]] * 4


def test_an_edge_that_is_none_of_its_cells_is_named():
    grid = icosahedron()
    e2c = grid.table("E2C").copy()
    e2c[3] = np.setdiff1d(np.arange(20), e2c[3])[:2]
    wrong = Grid({**grid.tables, "E2C": e2c}, grid.geometry)
    with pytest.raises(ConnectivityError, match="E2C and C2E disagree: edge 3 is none of cell"):
        wrong.table("E2C2E")


def test_raw_tables_are_shifted_and_checked():
    table = index_table(np.array([[3, 0, -1]], ">i4"), 3, base=1, missing=(0, -1), where="f: v")
    assert table.tolist() == [[2, -1, -1]]
    assert table.dtype == np.int32
    with pytest.raises(ConnectivityError, match="f: v, row 2, slot 1: index 4 is out of range") as caught:
        index_table([[1, 1], [4, 9]], 3, base=1, missing=(0, -1), where="f: v")
    assert "2 entries in 1 rows" in str(caught.value)
    with pytest.raises(ConnectivityError, match="row 1, slot 1: index -7"):
        index_table([[-7]], 3, base=1, missing=(0, -1), where="f: v")
    with pytest.raises(ConnectivityError, match="f: v holds float64"):
        index_table([[1.0]], 3, base=1, missing=(0, -1), where="f: v")


def test_huge_indices_do_not_wrap():
    with pytest.raises(ConnectivityError, match="out of range"):
        index_table(np.array([[2**32 + 1]]), 3, base=1, missing=(0, -1), where="f: v")
    with pytest.raises(ConnectivityError, match="out of range"):
        index_table(np.array([[2**64 - 1]], np.uint64), 3, base=1, missing=(0, -1), where="f: v")


def test_tables_of_the_wrong_shape_are_refused():
    with pytest.raises(ConnectivityError, match=r"t is int64\[2\]"):
        check_table(np.array([0, 1]), 2, 2, "t")
    with pytest.raises(ConnectivityError, match="t has 1 rows, expected 2"):
        check_table(np.array([[0, 1]]), 2, 2, "t")


def test_offsets_and_dimensions_agree():
    from fieldjax.mesh import names

    for name, local in LOCAL.items():
        start, end = endpoints(name)
        offset = getattr(names, name)
        assert offset.source == end
        assert tuple(offset.target) == (start, local)
        assert getattr(names, f"{name}Dim") is local
    assert endpoints("C2E2C2E2C") == (Cell, Cell)
    assert endpoints("E2C2EO") == (Edge, Edge)
    assert endpoints("V2C") == (Vertex, Cell)


def test_an_unknown_offset_is_answered_with_close_ones(r2b1):
    with pytest.raises(ArgumentError, match="there is no offset 'E2C2'") as caught:
        r2b1.table("E2C2")
    assert "did you mean" in str(caught.value)
