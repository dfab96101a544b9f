"""Unit ranges against sets of integers."""

import math
import pickle

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldjax.domain import (
    EMPTY,
    INFINITE,
    Dimension,
    Infinity,
    NamedRange,
    UnitRange,
    named_range,
    unit_range,
)
from fieldjax.errors import DomainError, IndexOutOfBoundsError, TracingError

WINDOW = range(-9, 10)
bounds = st.integers(-5, 5)
finite_ranges = st.builds(UnitRange, bounds, bounds)
ranges = st.builds(UnitRange, bounds | st.just(-math.inf), bounds | st.just(math.inf))


def points(rng):
    """The integers of a range inside a window that is wider than every finite bound."""
    return {i for i in WINDOW if rng.start <= i < rng.stop}


class TestAlgebra:
    @given(ranges, ranges)
    def test_intersection(self, a, b):
        assert points(a & b) == points(a) & points(b)
        assert a & b == b & a
        if a <= b:
            assert a & b is a

    @given(ranges, ranges)
    def test_order_is_subset(self, a, b):
        assert (a <= b) == (b >= a) == (points(a) <= points(b))
        assert (a < b) == (b > a) == (points(a) < points(b))
        assert (a == b) == (points(a) == points(b))
        if a == b:
            assert hash(a) == hash(b)

    @given(ranges, ranges, ranges)
    def test_hull_is_the_smallest_range_around_both(self, a, b, c):
        hull = a.hull(b)
        assert a <= hull and b <= hull
        assert hull == b.hull(a)
        if a <= c and b <= c:
            assert hull <= c

    @given(ranges, st.integers(-3, 3), st.integers(-9, 9))
    def test_translation(self, a, offset, value):
        assert (value + offset in a + offset) == (value in a)
        assert a + offset - offset == a

    @given(ranges)
    def test_intersection_with_everything_and_nothing(self, a):
        assert a & INFINITE is a
        assert INFINITE & a == a
        assert a & EMPTY == EMPTY
        assert a.hull(EMPTY) == a


class TestSequence:
    @given(finite_ranges)
    def test_is_the_sequence_of_its_integers(self, a):
        elements = list(a)
        assert elements == sorted(points(a))
        assert list(reversed(a)) == elements[::-1]
        assert len(a) == len(elements)
        assert [a[i] for i in range(-len(a), len(a))] == 2 * elements
        assert [a.index(e) for e in elements] == list(range(len(a)))

    @given(finite_ranges, st.slices(8))
    def test_slices_like_its_list(self, a, where):
        if where.indices(len(a))[2] == 1:
            assert list(a[where]) == list(a)[where]
        else:
            with pytest.raises(DomainError, match="sliced with step 1, got"):
                a[where]

    @given(ranges, st.integers(-7, 7))
    def test_membership(self, a, value):
        assert (value in a) == (np.int64(value) in a) == (value in points(a))
        assert a.count(value) == (value in a)
        assert "s" not in a
        assert 0.5 not in a

    def test_outside(self):
        with pytest.raises(IndexOutOfBoundsError) as caught:
            UnitRange(-5, 5)[10]
        assert str(caught.value) == (
            "position 10 is outside the range [-5:5)\nnote: positions count from the start of the range: 0 to 9"
        )
        with pytest.raises(IndexError, match="position 0 is outside the range"):
            EMPTY[0]
        with pytest.raises(ValueError, match=r"7 is not in the range \[0:3\)"):
            UnitRange(0, 3).index(7)

    @pytest.mark.parametrize("a", [INFINITE, UnitRange(0, math.inf), UnitRange(-math.inf, 0)])
    def test_an_open_range_has_no_length(self, a):
        assert not a.is_finite()
        for question in (len, list, lambda a: a[0], lambda a: a[0:1]):
            with pytest.raises(ValueError, match=r"open range .* has no length"):
                question(a)


class TestConstruction:
    @given(st.integers(), st.integers())
    def test_there_is_one_empty_range(self, start, stop):
        a = UnitRange(start, stop)
        assert a.is_empty() == (stop <= start)
        if a.is_empty():
            assert (a.start, a.stop) == (0, 0)

    @given(ranges)
    def test_survives_pickling_and_repr(self, a):
        assert pickle.loads(pickle.dumps(a)) == a
        assert eval(repr(a), {"UnitRange": UnitRange, "inf": math.inf}) == a

    @given(ranges)
    def test_finiteness(self, a):
        assert a.is_finite() == UnitRange.is_finite(a) == (a.is_left_finite() and a.is_right_finite())

    def test_bounds_are_python_integers_or_infinite(self):
        a = UnitRange(np.int32(1), np.uint8(3))
        assert (type(a.start), type(a.stop)) == (int, int)
        assert UnitRange(np.float64(-math.inf), 3) == UnitRange(Infinity.NEGATIVE, 3)

    def test_shown(self):
        assert repr(UnitRange(-5, 5)) == "UnitRange(-5, 5)"
        assert [str(a) for a in (UnitRange(2, 5), UnitRange(2, math.inf), INFINITE)] == [
            "[2:5)",
            "[2:inf)",
            "(-inf:inf)",
        ]
        assert str(NamedRange(Dimension("K"), UnitRange(0, 3))) == "K[0:3)"

    def test_is_immutable(self):
        with pytest.raises(AttributeError, match="cannot assign to 'start'"):
            UnitRange(0, 1).start = 3
        with pytest.raises(AttributeError, match="cannot delete 'start'"):
            del UnitRange(0, 1).start

    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            ((2, 4), UnitRange(2, 4)),
            (range(2, 4), UnitRange(2, 4)),
            (UnitRange(2, 4), UnitRange(2, 4)),
            (4, UnitRange(0, 4)),
            (np.int64(4), UnitRange(0, 4)),
            ((None, None), INFINITE),
            ((2, None), UnitRange(2, math.inf)),
            ((None, 4), UnitRange(-math.inf, 4)),
            (None, INFINITE),
        ],
    )
    def test_range_like(self, given, expected):
        assert unit_range(given) == expected
        assert named_range((Dimension("I"), given)) == (Dimension("I"), expected)

    @pytest.mark.parametrize("given", ["ab", 1.5, (1, 2, 3), range(0, 6, 2), [1, 2], (1, "a"), (1.5, 3)])
    def test_not_range_like(self, given):
        with pytest.raises(DomainError, match=r"is not a range|must be an integer or ±math\.inf"):
            unit_range(given)

    def test_a_traced_bound(self):
        with pytest.raises(TracingError, match="a bound is traced by JAX"):
            jax.jit(lambda n: len(UnitRange(0, n)))(3)
