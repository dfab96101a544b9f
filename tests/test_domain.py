"""Domains and their unions against sets of points."""

import itertools
import math
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fieldjax
from fieldjax.domain import (
    INFINITE,
    Dimension,
    DimensionKind,
    Domain,
    DomainUnion,
    NamedRange,
    UnitRange,
    canonical_dims,
    complement,
    difference,
    domain,
    unite,
)
from fieldjax.errors import DimensionError, DomainError, IndexOutOfBoundsError, MissingDimensionError
from tests.refusals import refused

I, J = Dimension("I"), Dimension("J")
K = Dimension("K", DimensionKind.VERTICAL)
ALL = (I, J, K)

# Bounds lie inside the window with room to spare: outside of it nothing changes any more.
WINDOW = range(-4, 5)
bounds = st.integers(-2, 3)
finite_ranges = st.builds(UnitRange, bounds, bounds)
ranges = st.builds(UnitRange, bounds | st.just(-math.inf), bounds | st.just(math.inf))
some_dims = st.permutations(ALL).flatmap(lambda dims: st.integers(0, 3).map(lambda n: tuple(dims[:n])))


def domains(dims=some_dims, ranges=ranges):
    return dims.flatmap(
        lambda dims: st.tuples(*[ranges] * len(dims)).map(lambda chosen: Domain(dims=dims, ranges=chosen))
    )


finite_domains = domains(ranges=finite_ranges)
regions = st.lists(domains(), min_size=1, max_size=4).map(unite).filter(lambda region: region.dims)


def points(region):
    """The points (i, j, k) of a window, which a domain is unbounded in along every dimension it lacks."""
    parts = region.domains if isinstance(region, DomainUnion) else (region,)
    return {point for point in itertools.product(*[WINDOW] * 3) if any(_holds(part, point) for part in parts)}


def _holds(part, point):
    place = dict(zip(ALL, point, strict=True))
    return all(place[dim] in rng for dim, rng in part)


class TestIntersection:
    @given(domains(), domains())
    def test_holds_the_points_in_both_in_canonical_order(self, d, e):
        both = d & e
        assert points(both) == points(d) & points(e)
        assert both.dims == canonical_dims(d.dims + e.dims)

    @given(domains(), domains(), domains())
    def test_laws(self, d, e, f):
        assert d & e == e & d
        assert (d & e) & f == d & (e & f)
        assert d & Domain() == Domain() & d == d & d == d.canonical()

    @given(domains(), domains())
    def test_is_the_left_operand_where_equal_to_it(self, d, e):
        if d & e == d:
            assert d & e is d
        d = d.canonical()
        assert d & d is d
        assert d & Domain(dims=d.dims, ranges=d.ranges) is d

    def test_with_something_else(self):
        with pytest.raises(TypeError):
            Domain() & 3  # pyright: ignore[reportOperatorIssue]


class TestUnion:
    @given(st.lists(domains(), min_size=1, max_size=4))
    def test_holds_the_points_of_any(self, parts):
        assert points(unite(parts)) == set().union(*map(points, parts))

    @given(domains(), domains(), domains())
    def test_laws(self, d, e, f):
        assert d | e == e | d
        assert (d | e) | f == d | (e | f)
        assert d | d == d.canonical() or d.is_empty()

    @given(regions)
    def test_parts_are_disjoint_and_more_than_one(self, region):
        if isinstance(region, Domain):
            return
        assert len(region) > 1
        for one, other in itertools.combinations(region, 2):
            assert (one & other).is_empty()
        assert all(not part.is_empty() and part.dims == region.dims for part in region)

    @given(st.lists(domains(dims=st.just(ALL)), min_size=1, max_size=4), st.data())
    def test_equal_exactly_where_the_points_are(self, parts, data):
        """Any other way to cut the same set gives an equal, equally hashed union."""
        region = unite(parts)
        cut = data.draw(st.integers(-2, 3))
        dim = data.draw(st.sampled_from(ALL))
        again = unite([part & side for part in parts for side in (dim < cut, dim >= cut)])
        assert again == region
        assert hash(again) == hash(region)

    @given(regions, regions)
    def test_algebra_of_sets(self, a, b):
        assert points(a & b) == points(a) & points(b)
        assert points(a | b) == points(a) | points(b)
        assert points(difference(a, b)) == points(a) - points(b)
        assert points(a - b) == points(a) - points(b)

    @given(regions)
    def test_complement(self, a):
        assert points(~a) == set(itertools.product(*[WINDOW] * 3)) - points(a)
        assert ~~a == a or a.is_empty()

    def test_complement_of_everything(self):
        assert (~domain({I: None})).is_empty()
        with pytest.raises(DomainError, match="without dimensions there is no empty domain"):
            complement(Domain())

    def test_where_it_is_a_hyperrectangle(self):
        assert (I < 3) | (I >= 3) == domain({I: None})
        assert (I < 3) | (I < 5) == (I < 5)
        assert domain({I: (0, 5), J: (0, 2)}) | domain({I: (0, 5), J: (2, 4)}) == domain({I: 5, J: 4})
        assert (I != 3) | (I == 3) == domain({I: None})

    def test_where_it_is_not(self):
        assert repr((I < 2) | (J > 4)) == ("DomainUnion(Domain(I(-inf:2), J(-inf:inf)), Domain(I[2:inf), J[5:inf)))")

    def test_answers(self):
        union = I != 3
        assert isinstance(union, DomainUnion)
        assert (union.dims, union.ndim, union.is_empty(), union.is_finite()) == ((I,), 1, False, False)
        assert union[0] == (I < 3)
        assert union == pickle.loads(pickle.dumps(union))
        assert (union & domain({I: 5})).is_finite()
        assert union & domain({I: 3}) == domain({I: 3})
        assert domain({I: 5}) & union == union & domain({I: 5})
        assert domain({I: 5}) - union == domain({I: (3, 4)})
        assert domain({I: (3, 4)}) | union == domain({I: None})

    @pytest.mark.parametrize("operator", ["__or__", "__and__", "__sub__"])
    def test_with_something_else(self, operator):
        for left in (I < 3, I != 3):
            assert getattr(left, operator)(3) is NotImplemented


class TestSetQuestions:
    @given(domains(), domains())
    def test_contains(self, d, e):
        assert d.contains(e) == (points(e) <= points(d))

    @given(domains(), domains(), domains())
    def test_hull_is_the_smallest_domain_around_both(self, d, e, f):
        hull = d.hull(e)
        assert hull.contains(d) and hull.contains(e)
        assert hull == e.hull(d)
        assert hull.hull(f) == d.hull(e.hull(f))
        assert hull.is_empty() == (d.is_empty() and e.is_empty())
        if f.contains(d) and f.contains(e):
            assert f.contains(hull)
        if hull == d:
            assert hull is d

    @given(domains())
    def test_emptiness_and_finiteness(self, d):
        assert d.is_empty() == (not points(d))
        assert d.is_finite() == Domain.is_finite(d) == all(rng.is_finite() for rng in d.ranges)

    @given(finite_domains)
    def test_shape_and_size(self, d):
        assert d.shape == tuple(len(rng) for rng in d.ranges)
        assert d.size == math.prod(d.shape)
        assert d.ndim == len(d) == len(d.dims)

    def test_an_open_domain_has_no_shape(self):
        assert (I > 3).size is None
        with pytest.raises(DomainError, match=r"open range \[4:inf\) has no length"):
            _ = (I > 3).shape

    @given(domains(), st.sampled_from(ALL), st.integers(-2, 2))
    def test_translate(self, d, dim, offset):
        if dim in d.dims:
            moved = d.translate(dim, offset)
            assert moved.range_of(dim) == d.range_of(dim) + offset
            assert moved.without(dim) == d.without(dim)
        else:
            with pytest.raises(MissingDimensionError, match=f"dimension '{dim.value}' is not in Domain"):
                d.translate(dim, offset)


class TestSlices:
    @given(finite_domains, st.data())
    def test_read_the_sub_domain_from_an_array(self, d, data):
        within = [st.tuples(*[st.integers(rng.start, rng.stop)] * 2).map(sorted) for rng in d.ranges]
        sub = Domain(dims=d.dims, ranges=[UnitRange(*data.draw(pair)) for pair in within])
        held = np.array(list(itertools.product(*d.ranges)), int).reshape(*d.shape, d.ndim)
        wanted = np.array(list(itertools.product(*sub.ranges)), int).reshape(*sub.shape, d.ndim)
        assert np.array_equal(held[d.slices_of(sub)], wanted)

    def test_beyond(self):
        d = domain({I: 5, J: 5})
        with pytest.raises(DomainError) as caught:
            d.slices_of(domain({I: (1, 3), J: (2, 7)}))
        assert str(caught.value) == (
            "J[2:7) reaches beyond what is there\n"
            "note: there: Domain(I[0:5), J[0:5))\n"
            "note: asked for: Domain(I[1:3), J[2:7))"
        )

    def test_other_dimensions(self):
        with pytest.raises(DimensionError, match=r"an array on \(I\) cannot be sliced by \(J\)"):
            domain({I: 5}).slices_of(domain({J: 5}))

    def test_of_an_open_domain(self):
        with pytest.raises(DomainError, match="open range"):
            (I > 3).slices_of(domain({I: (5, 6)}))

    @given(finite_domains, st.data())
    def test_slice_at_slices_every_range(self, d, data):
        slices = tuple(data.draw(st.builds(slice, bounds, bounds)) for _ in d.dims)
        assert d.slice_at[slices].ranges == tuple(rng[s] for rng, s in zip(d.ranges, slices, strict=True))

    def test_slice_at_of_one_dimension(self):
        assert domain({I: (5, 15)}).slice_at[2:-1] == domain({I: (7, 14)})

    def test_slice_at_refuses(self):
        with pytest.raises(TypeError, match="slice_at takes slices"):
            domain({I: 5}).slice_at[3]  # pyright: ignore[reportArgumentType]
        with pytest.raises(ValueError, match="not match the number of dimensions"):
            domain({I: 5, J: 5}).slice_at[1:2]


class TestParts:
    @given(domains())
    def test_is_the_sequence_of_its_named_ranges(self, d):
        named = list(zip(d.dims, d.ranges, strict=True))
        assert list(d) == named
        assert all(pair in d for pair in d)
        assert [d[i] for i in range(-d.ndim, d.ndim)] == 2 * named
        assert [d[dim] for dim in d.dims] == named
        assert [d.range_of(dim) for dim in d.dims] == list(d.ranges)
        assert [d.dim_index(dim) for dim in d.dims] == list(range(d.ndim))
        assert (I, UnitRange(77, 78)) not in d

    @given(domains(), st.slices(3))
    def test_slices_to_domains(self, d, where):
        assert list(d[where]) == list(d)[where]

    @given(domains(), st.sets(st.sampled_from(ALL)))
    def test_restrict_and_without_split_it(self, d, chosen):
        kept, dropped = d.restrict(chosen), d.without(*chosen)
        assert set(kept.dims) == set(d.dims) & chosen
        assert set(dropped.dims) == set(d.dims) - chosen
        assert (kept & dropped) == d.canonical()
        assert list(kept) == [named for named in d if named.dim in chosen]

    @given(domains(), st.data())
    def test_insert_then_pop_is_nothing(self, d, data):
        where = data.draw(st.integers(0, d.ndim))
        named = NamedRange(Dimension("New"), UnitRange(0, 3))
        longer = d.insert(where, named)
        assert longer[where] == named
        assert longer.pop(where) == longer.pop(Dimension("New")) == d

    @given(domains(dims=st.just(ALL)), st.integers(-3, 2))
    def test_replace(self, d, where):
        new = [NamedRange(Dimension(name), UnitRange(0, 3)) for name in "XY"]
        expected = list(d)
        expected[where : where + 1 or None] = new
        assert list(d.replace(where, *new)) == list(d.replace(d.dims[where], *new)) == expected

    def test_missing(self):
        d = domain({I: 3})
        assert d.dim_index(J) is None
        for ask in (d.range_of, d.__getitem__, d.pop, lambda j: d.dim_index(j, allow_missing=False)):
            with pytest.raises(MissingDimensionError) as caught:
                ask(J)
            assert isinstance(caught.value, KeyError)
            assert str(caught.value) == "dimension 'J' is not in Domain(I[0:3))"
        for position in (1, -2):
            with pytest.raises(IndexOutOfBoundsError, match=f"position {position} is out of bounds"):
                d.replace(position)
        with pytest.raises(DomainError, match="by position, slice or dimension, got 'foo'"):
            d["foo"]  # pyright: ignore[reportArgumentType]

    @given(domains(), some_dims)
    def test_broadcast(self, d, dims):
        if set(d.dims) <= set(dims):
            wide = d.broadcast(dims)
            assert wide.dims == dims
            assert points(wide) == points(d)
        else:
            with pytest.raises(DimensionError, match=r"cannot be broadcast to .* it lacks \("):
                d.broadcast(dims)

    def test_with_ranges(self):
        assert domain({I: 3}).with_ranges((INFINITE,)) == domain({I: None})
        with pytest.raises(DomainError, match=r"dimensions in \(I\) doesn't match the ranges \(\)"):
            domain({I: 3}).with_ranges(())


class TestConstruction:
    @given(domains())
    def test_all_forms_agree(self, d):
        parts = dict(zip(d.dims, d.ranges, strict=True))
        pairs = [(dim, (rng.start, rng.stop)) for dim, rng in d]
        for same in (
            Domain(*d),
            domain(d),
            domain(parts),
            domain(list(d)),
            domain(pairs),
            domain(tuple(pairs)),
        ):
            assert same == d
            assert hash(same) == hash(d)

    @given(domains(), domains())
    def test_equality_is_that_of_dims_and_ranges(self, d, e):
        assert (d == e) == (list(d) == list(e))
        assert d != "a domain"

    def test_sizes(self):
        assert repr(domain({I: 3, J: (1, 2), K: None})) == "Domain(I[0:3), J[1:2), K(-inf:inf))"
        assert repr(Domain()) == "Domain()"

    def test_any_order_is_accepted(self):
        assert domain({K: 1, I: 1}).dims == (K, I)
        assert domain({K: 1, I: 1}) != domain({I: 1, K: 1})

    def test_is_immutable(self):
        with pytest.raises(AttributeError, match="cannot assign to 'dims'"):
            Domain().dims = ()

    @pytest.mark.parametrize(
        ("build", "error", "text"),
        [
            (
                lambda: Domain(dims=(I, J, I), ranges=(INFINITE,) * 3),
                DimensionError,
                r"occurs twice in \(I, J, I\)",
            ),
            (
                lambda: Domain(dims=(I, J), ranges=(INFINITE,)),
                DomainError,
                r"dimensions in \(I, J\) doesn't match the ranges \(\(-inf:inf\)\)",
            ),
            (
                lambda: Domain(dims=("I",), ranges=(INFINITE,)),
                DimensionError,
                "must be instances of Dimension",
            ),
            (lambda: Domain(dims=(I,), ranges=(3,)), DomainError, "must be instances of UnitRange"),
            (lambda: Domain(dims=(I,)), DomainError, "of named ranges, or of both dims= and ranges="),
            (lambda: Domain(3), DomainError, "made of named ranges, got"),
            (lambda: domain(3), DomainError, "3 is not a domain\nhelp: write domain"),
            (lambda: domain("I"), DomainError, "'I' is not a domain"),
            (lambda: domain({"I": 3}), DimensionError, "must be instances of Dimension"),
            (lambda: domain({I: "x"}), DomainError, "'x' is not a range"),
        ],
    )
    def test_refusals(self, build, error, text):
        with refused(text, error):
            build()

    @given(domains())
    def test_survives_pickling(self, d):
        hash(d)
        assert pickle.loads(pickle.dumps(d)) == d

    def test_a_condition_survives_pickling(self):
        condition = pickle.loads(pickle.dumps(I > 3))
        assert condition == (I > 3)
        with pytest.raises(DomainError, match="no truth value"):
            bool(condition)

    def test_the_cached_hash_does_not_travel(self):
        """Hashes of strings differ between processes: a domain from elsewhere hashes as one made here."""
        made = domain({I: 3})
        hash(made)
        program = (
            "import pickle, sys; from fieldjax.domain import *;"
            f"travelled = pickle.loads({pickle.dumps(made)!r});"
            "sys.exit(hash(travelled) != hash(domain({Dimension('I'): 3})))"
        )
        assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0

    def test_needs_neither_jax_nor_numpy(self):
        """Nor does errors: stand-in packages leave out what fieldjax/__init__.py imports."""
        program = (
            "import sys, types; package = sys.modules['fieldjax'] = types.ModuleType('fieldjax');"
            f"package.__path__ = {list(fieldjax.__path__)!r};"
            "import fieldjax.domain; sys.exit(bool({'jax', 'numpy'} & set(sys.modules)))"
        )
        assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
