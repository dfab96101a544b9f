"""Image, facts and degrees against naive Python."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldjax.connectivity import TableFacts, as_connectivity
from fieldjax.domain import DimensionKind, UnitRange, domain
from tests.connectivity.tables import Case, Cell, E2CDim, Edge, K, cases, e2c, parts


@given(st.data(), cases())
def test_image_is_the_hull_of_the_valid_entries(data, case: Case):
    sub = data.draw(parts(case.domain))
    entries = case.part(sub)
    expected = UnitRange(min(entries), max(entries) + 1) if entries else UnitRange(0, 0)
    assert case.build().image(sub) == expected
    whole = case.part(case.domain)
    assert (case.build().image(case.domain) == UnitRange(0, 0)) == (not whole)


@given(st.data(), cases())
def test_facts(data, case: Case):
    sub = data.draw(parts(case.domain))
    starts = [int(r.start) for r in case.domain.ranges]
    rows: dict[tuple, list[bool]] = {}
    for index in np.ndindex(case.table.shape):
        named = {d: s + i for d, s, i in zip(case.domain.dims, starts, index, strict=True)}
        if all(place in sub.range_of(dim) for dim, place in named.items() if dim in sub.dims):
            row = tuple(named[d] for d in case.domain.dims if d.kind is not DimensionKind.LOCAL)
            rows.setdefault(row, []).append(case.skip is not None and case.table[index] == case.skip)
    skips = [skip for row in rows.values() for skip in row]
    expected = TableFacts(any(skips), any(map(all, rows.values())), not all(skips))
    assert case.build().facts(sub) == expected


def test_facts_of_nothing():
    table = e2c([[0, -1]], -1)
    assert table.facts(domain({Edge: (5, 9)})) == TableFacts(False, False, False)


def test_a_skip_value_that_does_not_occur():
    assert e2c([[0, 1]], 7).facts(domain({Edge: 1, E2CDim: 2})) == TableFacts(False, False, True)


@given(cases(min_size=1))
def test_in_degree(case: Case):
    entries = case.part(case.domain)
    largest = max((entries.count(entry) for entry in entries), default=0)
    found = case.build().in_degree
    assert found in (largest, largest + 1)
    assert found <= 1 or found % 2 == 0


@pytest.mark.parametrize(
    ("entries", "pays"),
    [
        ([[0, 1], [1, 0]], True),
        ([[0, 0], [0, 0]], True),  # one element, four entries
        ([[0, 99]], False),  # mostly padding
        ([[0, 1], [0, 2], [0, 3], [0, 4], [0, 5], [0, 6], [0, 7], [0, 8], [0, 9]], False),  # one busy element
        ([[-1, -1]], True),
    ],
)
def test_adjoint_pays(entries, pays):
    assert e2c(entries, -1).adjoint_pays is pays


def test_entries_far_apart_take_no_memory():
    table = e2c([[0, 2**31 - 2]])
    assert table.in_degree == 1
    assert not table.adjoint_pays


def test_a_table_over_two_locations_has_no_transpose():
    assert not as_connectivity([Edge, K], Cell, [[0, 1]]).adjoint_pays
