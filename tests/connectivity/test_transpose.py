"""The transposed slots: every entry once, in the order of the table."""

import numpy as np
import pytest
from hypothesis import given

from fieldjax.connectivity import as_connectivity
from fieldjax.connectivity import transpose as room
from fieldjax.connectivity.transpose import is_transposable
from fieldjax.domain import DimensionKind
from fieldjax.errors import UnsupportedError
from tests.connectivity.tables import Case, Cell, E2CDim, Edge, K, cases, e2c


def reference(case: Case):
    """For each element, the (row, slot) that lead to it."""
    local = [dim.kind is DimensionKind.LOCAL for dim in case.domain.dims]
    table = case.table.T if case.table.ndim == 2 and local[0] else case.table
    leads: dict[int, list[tuple[int, int]]] = {}
    for index in np.ndindex(table.shape):
        if case.skip is None or table[index] != case.skip:
            leads.setdefault(int(table[index]), []).append((index[0], index[1] if len(index) > 1 else 0))
    return table.shape[0], leads


@pytest.mark.parametrize("compiled", [False, True])
@given(case=cases(max_ndim=2).filter(lambda case: is_transposable(case.domain)))
def test_transposed(compiled, case: Case):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "COMPILED_FROM", 0 if compiled else 10**9)
        connectivity = case.build()
        # The twin remembers its transpose: make this one's anew.
        connectivity.handle.twin()._essence._kept.clear()
        connectivity = connectivity.with_adjoint()
    rows, leads = reference(case)
    assert connectivity.adjoint is not None
    found = np.asarray(connectivity.adjoint.rows), np.asarray(connectivity.adjoint.slots)
    assert found[0].shape == found[1].shape == (max(leads, default=-1) + 1, connectivity.in_degree)
    for element, (row, slot) in enumerate(zip(*found, strict=True)):
        here = leads.get(element, [])
        assert list(zip(row, slot, strict=True))[: len(here)] == here
        assert all(row[len(here) :] == rows)
        assert not any(slot[len(here) :])


def test_both_ways_of_filling_agree():
    random = np.random.default_rng(0)
    table = random.integers(-1, 500, (3000, 6))
    degrees = room.degrees_of(table, -1)
    shape = (degrees.elements, degrees.padded)
    filled = []
    for fill in (room._fill, room._fill_compiled):
        rows, slots = np.full(shape, -5), np.full(shape, -5)
        fill(table, -1, rows, slots)
        filled.append((rows, slots))
    np.testing.assert_array_equal(filled[0], filled[1])


def test_the_adjoint_of_a_gather():
    table = e2c([[0, 1], [1, 2], [2, -1]], -1).with_adjoint()
    weights = np.arange(1.0, 4.0)
    assert table.adjoint is not None
    padded = np.append(weights, 0.0)  # the row that marks padding
    np.testing.assert_array_equal(padded[np.asarray(table.adjoint.rows)].sum(axis=1), [1, 3, 5])


def test_attaching_twice_changes_nothing():
    table = e2c([[0, 1]]).with_adjoint()
    assert table.with_adjoint() is table
    assert e2c([[0, 1]]).adjoint is None
    assert e2c([[0, 1]]).handle is table.handle


def test_the_host_transpose_is_shared_and_read_only():
    first, second = e2c([[0, 1]]), e2c([[0, 1]])
    assert first.handle.twin().transposed(1) is second.handle.twin().transposed(1)
    with pytest.raises(ValueError, match="read-only"):
        first.handle.twin().transposed(1).rows[0] = 3


def test_several_row_dimensions_have_none():
    with pytest.raises(UnsupportedError, match=r"the table \(Edge, K\) -> Cell has no transpose"):
        as_connectivity([Edge, K], Cell, [[0, 1]]).with_adjoint()


def test_local_dimension_first():
    table = as_connectivity([E2CDim, Edge], Cell, [[0, 1, 1], [1, 2, 0]]).with_adjoint()
    assert table.adjoint is not None
    assert np.asarray(table.adjoint.rows).tolist() == [[0, 2, 3, 3], [0, 1, 2, 3], [1, 3, 3, 3]]
    assert np.asarray(table.adjoint.slots).tolist() == [[0, 1, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]]
