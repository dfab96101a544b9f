"""Narrowing: the naive reference, the scan, the compiled scan and the bounds say the same."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldjax.connectivity import as_connectivity
from fieldjax.connectivity.questions import compiled, narrowing
from fieldjax.connectivity.questions.bounds import bounds_of
from fieldjax.domain import UnitRange, domain
from fieldjax.errors import DimensionError, NarrowingError
from tests.connectivity.tables import (
    Case,
    Cell,
    E2CDim,
    Edge,
    Vertex,
    cases,
    e2c,
    parts,
    ranges,
    reference_box,
)

RANGES = [(lower, upper) for lower in range(4) for upper in range(lower + 1, 5)]
OPEN = [(-math.inf, math.inf), (1, math.inf), (-math.inf, 2), (2, 2)]
# Per shape, every table over an alphabet; the skip value is outside of every range, or inside of some.
FAMILIES = [
    ((2, 2), (0, 1, 2, 3), None),
    ((2, 2), (-1, 0, 1, 2), -1),
    ((2, 2), (0, 1, 2, 3), 1),
    ((2, 2), (0, 1, 2), 0),
    ((3, 2), (0, 1, 2), 1),
    ((3, 2), (-1, 0, 1), -1),
    ((4,), (-1, 0, 1, 2), -1),
    ((4,), (0, 1, 2, 3), 2),
]


def small_tables():
    for shape, alphabet, skip in FAMILIES:
        for entries in itertools.product(alphabet, repeat=math.prod(shape)):
            yield np.array(entries, np.int32).reshape(shape), skip


@pytest.fixture(scope="module")
def pairs():
    """Every small table with every range, and the naive answer."""
    found = []
    for table, skip in small_tables():
        order = (1, 0) if table.ndim == 2 else (0,)
        for lower, upper in (*RANGES, *OPEN):
            found.append((table, skip, lower, upper, order, reference_box(table, skip, lower, upper, order)))
    assert len(found) >= 18_458
    return found


def disagreements(pairs, scan):
    """How many pairs a scan answers otherwise than the reference; scans are asked where a valid entry is."""
    wrong = 0
    for table, skip, lower, upper, order, expected in pairs:
        if (table != skip).any() and math.isfinite(lower) and math.isfinite(upper):
            wrong += scan(table, skip, lower, upper, order) != expected
    return wrong


def test_the_scan_is_the_reference(pairs):
    assert disagreements(pairs, narrowing.scan) == 0


def test_the_compiled_scan_is_the_reference(pairs):
    nonempty = [pair for pair in pairs if pair[2] < pair[3]]
    assert disagreements(nonempty, compiled.scan) == 0


def counts_skips(entries, skip_value, lower, upper):
    """The mistake: a skip value inside the range passes for a neighbour."""
    return (entries >= lower) & (entries < upper)


def never_grows(table, skip, lower, upper, order):
    """The other mistake: what gt4py.next does, the smallest hyperrectangle."""
    return narrowing.scan(table, skip, lower, upper, ())


@pytest.mark.parametrize(
    "mutant",
    [
        lambda *asked: narrowing.scan(*asked, inside=counts_skips),
        never_grows,
        lambda table, skip, lower, upper, order: narrowing.scan(table, skip, lower, upper, order[::-1]),
    ],
    ids=["in-range skips are neighbours", "no growth", "LOCAL dimensions last"],
)
def test_a_faulty_scan_is_detected(pairs, mutant):
    assert disagreements(pairs, mutant) > 0


def test_the_bounds_never_differ_from_the_scan(pairs, monkeypatch):
    def not_asked(*_):
        raise AssertionError

    answered = dict.fromkeys(["covering", "covering with the skip value in range", "nowhere"], 0)
    for table, skip, lower, upper, order, expected in pairs:
        bounds = bounds_of(table, skip)
        assert narrowing.narrow(table, skip, bounds, lower, upper, order) == expected
        with monkeypatch.context() as context:
            context.setattr(narrowing, "scan", not_asked)
            try:
                assert narrowing.narrow(table, skip, bounds, lower, upper, order) == expected
            except AssertionError:
                continue
        answered["nowhere" if expected is None else "covering"] += 1
        answered["covering with the skip value in range"] += (
            expected is not None and skip in table and lower <= skip < upper
        )
    assert min(answered.values()) > 100, answered


@given(cases(), ranges())
def test_inverse_image_is_the_reference_on_any_domain(case: Case, asked: UnitRange):
    expected = reference_box(case.table, case.skip, asked.start, asked.stop, case.order)
    connectivity = case.build()
    if expected is None:
        with pytest.raises(NarrowingError):
            connectivity.inverse_image(asked)
        return
    found = connectivity.inverse_image(asked)
    origins = [int(r.start) for r in case.domain.ranges]
    shifted = [UnitRange(o + a, o + b) for o, (a, b) in zip(origins, expected, strict=True)]
    assert (found.dims, list(found.ranges)) == (case.domain.dims, shifted)


@given(st.data(), cases(), ranges())
def test_within_asks_about_a_part_of_the_table(data, case: Case, asked: UnitRange):
    part = data.draw(parts(case.domain))
    spans = [part.range_of(d) & r if d in part.dims else r for d, r in case.domain]
    starts = [int(r.start) for r in case.domain.ranges]
    index = tuple(slice(int(s.start) - o, int(s.stop) - o) for s, o in zip(spans, starts, strict=True))
    if any(span.is_empty() for span in spans):
        return
    alone = Case(domain(dict(zip(case.domain.dims, spans, strict=True))), case.table[index], case.skip)
    try:
        expected = alone.build().inverse_image(asked)
    except NarrowingError:
        with pytest.raises(NarrowingError):
            case.build().inverse_image(asked, part)
    else:
        assert case.build().inverse_image(asked, part) == expected


@given(st.integers(0, 2**32 - 1), st.sampled_from([None, -1, 0, 7, 150]))
def test_large_tables_take_the_compiled_scan(seed, skip):
    random = np.random.default_rng(seed)
    table = np.sort(random.integers(0, 200, 30_000)).reshape(-1, 1) + random.integers(0, 2, (30_000, 2))
    if skip is not None:
        table[random.random(table.shape) < 0.3] = skip
        table[random.integers(0, 30_000) :][:50] = skip
    assert narrowing.scan_for(table) is compiled.scan
    bounds = bounds_of(table, skip)
    for lower, upper in ((0, 100), (50, 120), (100, 300), (7, 8)):
        narrow = narrowing.narrow(table, skip, bounds, lower, upper, (1, 0))
        assert narrow == narrowing.scan(table, skip, lower, upper, (1, 0))


def test_the_compiled_scan_reaches_the_limits_of_the_dtype():
    table = np.array([[2**64 - 1, 2**64 - 2], [5, 6]], np.uint64)
    assert compiled.scan(table, None, 2**64 - 2, 2**64, (1, 0)) == ((0, 1), (0, 2))
    assert compiled.scan(table, None, 2**64 - 1, 2**64, (1, 0)) == ((0, 1), (0, 1))


def test_half_a_mesh():
    edges = np.arange(120_000)
    table = as_connectivity([Edge, E2CDim], Vertex, np.stack([edges // 2, edges // 2], axis=1))
    assert table.inverse_image(UnitRange(0, 30_000)) == domain({Edge: 60_000, E2CDim: 2})


def test_a_row_and_a_column_without_neighbours_are_kept():
    table = e2c([[0, 1, -1], [-1, -1, -1], [2, 0, -1]], -1)
    assert table.inverse_image(UnitRange(0, 3)) == table.domain
    assert table.inverse_image(UnitRange(0, 9)) is table.domain


def test_local_dimensions_grow_first():
    # Along E2C first, the extent takes the skip beside 0; the row below then holds the entry 5 and stays out.
    table = e2c([[0, -1], [-1, 5]], -1)
    assert table.inverse_image(UnitRange(0, 3)) == domain({Edge: 1, E2CDim: 2})


def test_a_table_of_skips_is_defined_everywhere():
    table = e2c([[7, 7], [7, 7]], 7)
    for asked in (UnitRange(0, 1), UnitRange(7, 8), UnitRange(0, 0)):
        assert table.inverse_image(asked) == table.domain


def test_an_empty_table_is_defined_everywhere():
    assert e2c(np.zeros((0, 2), int)).inverse_image(UnitRange(0, 5)).is_empty()


def test_named_ranges_must_run_along_the_codomain():
    table = e2c([[0, 1]])
    named = domain({Cell: 2})[0]
    assert table.inverse_image(named) == table.domain
    with pytest.raises(DimensionError, match="was asked where it leads to Vertex"):
        table.inverse_image(domain({Vertex: 2})[0])


def test_broken_narrowing_shows_the_rows():
    table = as_connectivity(
        {Edge: (10, 16), E2CDim: 2}, Cell, [[0, 1], [1, 9], [-1, 8], [2, 0], [9, 9], [3, 3]], skip_value=-1
    )
    with pytest.raises(NarrowingError) as caught:
        table.inverse_image(UnitRange(0, 4))
    assert str(caught.value) == (
        "the table (Edge, E2C) -> Cell restricted to Cell[0:4) is not defined on a hyperrectangle\n"
        "note: entries in Cell[0:4) span Edge[10:16), E2C[0:2), but not all entries there lie in it\n"
        "note: Edge 11 leads to Cell 1, 9\n"
        "note: Edge 12 leads to Cell skip, 8\n"
        "note: Edge 14 leads to Cell 9, 9\n"
        "help: pass a field that covers more of Cell\n"
        "help: ask for less with domain= or out=: only what that needs must be there"
    )


def test_broken_narrowing_counts_the_rows_it_does_not_show():
    table = as_connectivity([Edge], Cell, [0, 9, 9, 9, 9, 9, 9, 0])
    with pytest.raises(NarrowingError, match="and 2 more of 8 rows"):
        table.inverse_image(UnitRange(0, 1))


def test_nowhere_says_where_the_table_points():
    with pytest.raises(NarrowingError) as caught:
        e2c([[3, 4]]).inverse_image(UnitRange(0, 2))
    assert "no entry of the table (Edge, E2C) -> Cell lies in Cell[0:2)" in str(caught.value)
    assert "its entries lie in Cell[3:5)" in str(caught.value)


def test_each_error_is_a_new_one():
    table = e2c([[3, 4]])
    raised = []
    for _ in range(2):
        with pytest.raises(NarrowingError) as caught:
            table.inverse_image(UnitRange(0, 2))
        raised.append(caught.value)
    assert raised[0] is not raised[1]


def test_answers_are_kept_within_bounds(monkeypatch):
    table = e2c([[3, 4]])
    scans = []
    monkeypatch.setattr(narrowing, "scan", lambda *asked: scans.append(asked) or ((0, 1), (0, 2)))
    for _ in range(3):
        table.inverse_image(UnitRange(3, 4))
    assert len(scans) == 1
    for stop in range(10, 2000):
        table.inverse_image(UnitRange(0, stop))
    assert len(table.handle.twin()._answers) <= 512
