"""Limited areas."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldjax.embedded import as_field
from fieldjax.errors import ArgumentError
from fieldjax.mesh import cut, icosahedron
from fieldjax.mesh.names import LOCAL, Cell, Edge, Vertex, endpoints
from tests.refusals import refused

SOURCES = {Cell: "source_cell", Edge: "source_edge", Vertex: "source_vertex"}


def assert_restricts(part, whole):
    """Every slot holds the whole grid's neighbour, or -1."""
    for name in ("C2E", "C2V", "E2C", "E2V", "V2C", "V2E", "C2E2C"):
        start, end = endpoints(name)
        here = part.table(name)
        there = whole.table(name)[part[SOURCES[start]]]
        assert np.array_equal(part[SOURCES[end]][here][here != -1], there[here != -1]), name


@given(st.lists(st.booleans(), min_size=20, max_size=20).filter(any))
def test_any_part_restricts_every_table(mask):
    whole = icosahedron()
    part = cut(whole, np.array(mask))
    assert part.sizes[Cell] == sum(mask)
    assert_restricts(part, whole)
    for name in ("C2E", "C2V", "E2V"):
        assert (part.table(name) != -1).all()
    for name in ("E2C", "V2E", "V2C"):
        assert (part.table(name) != -1).any(axis=1).all(), f"{name}: an element that belongs to nothing"
    assert all(len(part.table(name)) == part.sizes[endpoints(name)[0]] for name in LOCAL)


def test_what_is_cut_off_leaves_skips_where_it_was(r2b1, limited):
    assert_restricts(limited, r2b1)
    kept = np.zeros(r2b1.sizes[Cell], bool)
    kept[limited["source_cell"]] = True
    before = kept[r2b1.table("E2C")][limited["source_edge"]]
    assert np.array_equal(limited.table("E2C") != -1, before)


def test_geometry_comes_along(r2b1, limited):
    for name in ("clat", "cell_area"):
        assert np.array_equal(limited[name], r2b1[name][limited["source_cell"]])
    for name in ("edge_length", "zonal_normal_primal_edge", "dual_edge_length"):
        assert np.array_equal(limited[name], r2b1[name][limited["source_edge"]])
    assert limited.variable("clat").attrs == r2b1.variable("clat").attrs
    assert limited["edge_orientation"].dtype == r2b1["edge_orientation"].dtype
    assert not any(name.startswith(("refin", "start_idx", "end_idx")) for name in limited)
    assert "parent_cell_index" in limited


def test_the_whole_is_the_whole(r2b1):
    same = cut(r2b1, np.ones(320, bool))
    assert all(np.array_equal(same.table(name), r2b1.table(name)) for name in LOCAL)


def test_the_mask_may_be_a_field(r2b1):
    mask = r2b1["clat"] > 0
    assert cut(r2b1, as_field({Cell: 320}, mask)).sizes == cut(r2b1, mask).sizes


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (np.zeros(20, bool), "holds for no cell"),
        (np.ones(19, bool), r"must be 20 booleans, got bool\[19\]"),
        (np.arange(20), r"must be 20 booleans, got int64\[20\]"),
    ],
)
def test_masks_that_are_none(mask, message):
    with refused(message, ArgumentError):
        cut(icosahedron(), mask)
