"""Dimensions: order, staggering, shifts, and what comparisons make."""

# ruff: noqa: SIM300  (K is a dimension here, not a constant)

import itertools
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldjax.domain import (
    Dimension,
    DimensionKind,
    NamedIndex,
    Shift,
    as_non_staggered,
    canonical_dims,
    check_order,
    domain,
    flip_staggered,
    is_staggered,
    promote_dims,
)
from fieldjax.errors import DimensionError, DomainError, TracingError

Cell, Edge = Dimension("Cell"), Dimension("Edge")
K, KHalf = Dimension("K", DimensionKind.VERTICAL), flip_staggered(Dimension("K", DimensionKind.VERTICAL))
C2E = Dimension("C2E", DimensionKind.LOCAL)

dimensions = st.builds(Dimension, st.sampled_from("ABC"), st.sampled_from(DimensionKind)).flatmap(
    lambda dim: st.sampled_from([dim, flip_staggered(dim)])
)


class TestDimension:
    def test_kind_is_horizontal_unless_said(self):
        assert Cell.kind is DimensionKind.HORIZONTAL
        assert Dimension("K", kind="vertical") == K  # pyright: ignore[reportArgumentType]

    def test_equality_is_name_and_kind(self):
        assert Dimension("K") != K
        assert Dimension("Cell") == Cell
        assert Cell != "Cell"
        assert Cell is not None and Cell != None  # noqa: E711

    def test_shown(self):
        assert repr(Cell) == "Dimension('Cell')"
        assert repr(K) == "Dimension('K', DimensionKind.VERTICAL)"
        assert (str(K), str(C2E)) == ("K[vertical]", "C2E[local]")

    @given(dimensions)
    def test_survives_pickling_and_eval(self, dim):
        assert pickle.loads(pickle.dumps(dim)) == dim
        assert eval(repr(dim)) == dim
        assert hash(pickle.loads(pickle.dumps(dim))) == hash(dim)

    def test_name_must_be_a_string(self):
        with pytest.raises(DimensionError, match="must be a string, got 3"):
            Dimension(3)  # pyright: ignore[reportArgumentType]

    def test_is_immutable(self):
        with pytest.raises(AttributeError):
            Cell.value = "Other"  # pyright: ignore[reportAttributeAccessIssue]

    def test_index(self):
        assert Cell(np.int32(3)) == NamedIndex(Cell, 3)
        assert type(Cell(np.int32(3)).value) is int
        assert str(Cell(3)) == "Cell(3)"
        with pytest.raises(DomainError, match=r"must be an integer, got 0\.5"):
            Cell(0.5)  # pyright: ignore[reportArgumentType]


class TestComparison:
    @pytest.mark.parametrize("integer", [int, np.int64, jnp.int32], ids=["python", "numpy", "jax"])
    def test_makes_the_half_open_domain(self, integer):
        n = integer(3)
        assert (K > n) == (n < K) == domain({K: (4, None)})
        assert (K >= n) == (n <= K) == domain({K: (3, None)})
        assert (K < n) == (n > K) == domain({K: (None, 3)})
        assert (K <= n) == (n >= K) == domain({K: (None, 4)})
        assert (K == n) == (n == K) == domain({K: (3, 4)})

    @pytest.mark.parametrize("integer", [int, np.int64, jnp.int32], ids=["python", "numpy", "jax"])
    def test_not_equal_is_a_union_of_two(self, integer):
        n = integer(3)
        assert tuple(K != n) == tuple(n != K) == (domain({K: (None, 3)}), domain({K: (4, None)}))

    @pytest.mark.parametrize("other", [1.5, "K", None])
    def test_with_anything_else_is_pythons(self, other):
        assert (K == other) is False
        assert (K != other) is True
        with pytest.raises(TypeError, match="not supported between"):
            _ = K < other

    def test_with_an_array_is_not_a_condition(self):
        assert (K == np.zeros(3, int)) is False

    @pytest.mark.parametrize(
        ("use", "shown"),
        [
            (lambda: 2 <= K < 5, r"Domain\(K\[2:inf\)\)"),
            (lambda: K > 2 and K < 5, r"Domain\(K\[3:inf\)\)"),
            (lambda: bool(K == 3), r"Domain\(K\[3:4\)\)"),
            (lambda: 1 if K != 3 else 2, r"DomainUnion\("),
            (lambda: K in [3, 4], r"Domain\(K\[3:4\)\)"),
        ],
    )
    def test_has_no_truth_value(self, use, shown):
        with pytest.raises(DomainError, match=f"has no truth value: {shown}[^$]*use .*& and|: {shown}") as caught:
            use()
        assert caught.value.hints == ("join conditions with & and |: (2 <= K) & (K < 5)",)

    def test_joined_conditions_are_plain_domains(self):
        assert bool((2 <= K) & (K < 5))

    def test_with_a_traced_value_says_that_domains_are_static(self):
        with pytest.raises(TracingError, match="a bound is traced by JAX\nnote: it is ~int64"):
            jax.jit(lambda n: (K < n).ndim)(3)


class TestOrder:
    @given(st.lists(dimensions))
    def test_canonical_is_sorted_unique_and_idempotent(self, dims):
        ordered = canonical_dims(dims)
        assert set(ordered) == set(dims)
        assert len(ordered) == len(set(dims))
        assert canonical_dims(ordered) == ordered
        assert canonical_dims(reversed(dims)) == ordered

    def test_local_stands_between_horizontal_and_vertical(self):
        for dims in itertools.permutations((Cell, Edge, C2E, K)):
            assert canonical_dims(dims) == (Cell, Edge, C2E, K)

    def test_a_twin_stands_where_its_base_would(self):
        half = flip_staggered(Dimension("D"))
        assert canonical_dims((Edge, half, Cell)) == (Cell, half, Edge)

    @given(st.lists(st.lists(dimensions)))
    def test_promote_unites(self, groups):
        assert promote_dims(*groups) == canonical_dims([dim for group in groups for dim in group])

    def test_several_local_dimensions_are_fine(self):
        check_order((Cell, C2E, Dimension("E2V", DimensionKind.LOCAL), K))

    @pytest.mark.parametrize(
        ("dims", "text"),
        [
            (
                (K, C2E, Cell),
                "dimensions (K, C2E, Cell) are not in canonical order\n"
                "note: HORIZONTAL comes before LOCAL, LOCAL before VERTICAL; then by name\n"
                "help: write (Cell, C2E, K)",
            ),
            (
                (Cell, K, KHalf),
                "a dimension and its staggered twin stand in one field: (Cell, K, _StaggeredK)\n"
                "note: they name different places of the grid\n"
                "help: bring one to the other first: f(I + 0.5)",
            ),
            ((Cell, Cell), "a dimension occurs twice in (Cell, Cell)"),
        ],
    )
    def test_check_order_says_what_is_wrong(self, dims, text):
        with pytest.raises(DimensionError) as caught:
            check_order(dims)
        assert str(caught.value) == text

    def test_check_order_takes_a_domain(self):
        check_order(domain({Cell: 1, K: 1}))
        with pytest.raises(DimensionError, match="help: write \\(Cell, K\\)"):
            check_order(domain({K: 1, Cell: 1}))  # pyright: ignore[reportArgumentType]


class TestStaggering:
    @given(dimensions)
    def test_flipping_twice_is_nothing(self, dim):
        assert flip_staggered(flip_staggered(dim)) == dim
        assert is_staggered(flip_staggered(dim)) != is_staggered(dim)
        assert flip_staggered(dim).kind is dim.kind

    @given(dimensions)
    def test_base(self, dim):
        assert not is_staggered(as_non_staggered(dim))
        assert as_non_staggered(dim) in (dim, flip_staggered(dim))


class TestShift:
    @staticmethod
    def position(dim, index):
        """Where an index is, in units of the grid: a staggered one half a cell below its base."""
        return index - 0.5 if is_staggered(dim) else index

    @given(dimensions, st.integers(-9, 9).map(lambda n: n / 2), st.integers(-9, 9))
    def test_moves_by_the_offset_in_space(self, dim, offset, index):
        shift = dim + offset
        target = self.position(shift.codomain, index + shift.index_offset)
        assert target == self.position(dim, index) + offset

    def test_forms(self):
        assert K + 1 == 1 + K == K + 1.0 == K + np.int32(1) == Shift(K, 1)
        assert K - 1 == Shift(K, -1)
        assert type((K + 2.0).offset) is int
        assert (K + 1).codomain == K
        assert (K - 0.5).codomain == KHalf
        assert (KHalf + 0.5).codomain == K

    @pytest.mark.parametrize("offset", [0.3, "1", None, 1j, float("inf"), float("nan")])
    def test_other_offsets_are_refused(self, offset):
        with pytest.raises(DimensionError, match="by integers or halves, got"):
            Shift(K, offset)
