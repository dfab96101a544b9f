"""Offsets and affine connectivities."""

import copy
import pickle

import jax
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldjax.connectivity import CartesianConnectivity, FieldOffset, SlotOffset, TableFacts
from fieldjax.domain import INFINITE, Domain, UnitRange, domain, flip_staggered
from fieldjax.errors import DimensionError
from tests.connectivity.tables import Cell, E2CDim, Edge, K, Vertex

E2C = FieldOffset("E2C", source=Cell, target=(Edge, E2CDim))
Koff = FieldOffset("Koff", source=K, target=(K,))


def test_names_and_kinds():
    assert (E2C.name, E2C.value, E2C.local_dimension, E2C.is_cartesian) == ("E2C", "E2C", E2CDim, False)
    assert (Koff.local_dimension, Koff.is_cartesian) == (None, True)
    assert FieldOffset("Koff", K, K) == Koff  # type: ignore[arg-type]  # one target needs no tuple
    assert FieldOffset("E2C", Cell, [Edge, E2CDim]) == E2C  # type: ignore[arg-type]


def test_one_neighbour():
    assert E2C[1] == SlotOffset(E2C, 1)
    assert str(E2C[1]) == "E2C[1]"
    assert Koff[-2] == K - 2
    for value in (E2C, E2C[1]):
        assert pickle.loads(pickle.dumps(value)) == copy.deepcopy(value) == value
        assert hash(copy.copy(value)) == hash(value)


@pytest.mark.parametrize("index", [-1, 1.5, "a", None, slice(0, 1)])
def test_indices_that_are_refused(index):
    with pytest.raises(DimensionError, match=r"no neighbour|indexed by an integer"):
        E2C[index]


def test_a_table_without_slots_has_no_slots():
    with pytest.raises(DimensionError, match="has no LOCAL dimension to index"):
        FieldOffset("E2V", source=Vertex, target=(Edge,))[0]


@pytest.mark.parametrize("target", [(), (Edge, E2CDim, K), (Edge, K)])
def test_targets_that_are_refused(target):
    with pytest.raises(DimensionError, match="target dimension"):
        FieldOffset("E2C", source=Cell, target=target)


@given(st.integers(-5, 5), st.integers(-5, 5), st.integers(0, 5))
def test_affine_questions(offset, start, size):
    shift = CartesianConnectivity(K, offset, Cell)
    asked = UnitRange(start, start + size)
    found = shift.inverse_image(asked)
    assert found == domain({K: asked - offset})
    assert shift.image(found) == asked
    assert shift.facts(found) == TableFacts(False, False, size > 0)


def test_affine_attributes():
    shift = CartesianConnectivity(K, 2)
    assert (shift.codomain, shift.domain_dim, shift.skip_value) == (K, K, None)
    assert (shift.in_degree, shift.adjoint_pays) == (1, False)
    assert shift.domain == Domain(dims=(K,), ranges=(INFINITE,))
    assert shift.image(domain({Cell: 3})) == INFINITE
    assert shift.inverse_image(domain({K: 3})[0]) == domain({K: (-2, 1)})
    with pytest.raises(DimensionError, match=r"doesn't lead to Cell\[0:3\)"):
        shift.inverse_image(domain({Cell: 3})[0])


def test_ways_to_make_one():
    half = flip_staggered(K)
    assert CartesianConnectivity.for_translation(K, 3) == CartesianConnectivity(K, 3)
    assert CartesianConnectivity.for_relocation(Cell, Edge) == CartesianConnectivity(Edge, 0, Cell)
    assert CartesianConnectivity.from_shift(K + 0.5) == CartesianConnectivity(K, 1, half)
    assert CartesianConnectivity.from_shift(K - 1) == CartesianConnectivity(K, -1)


def test_it_is_static_under_jit():
    traces = []
    run = jax.jit(lambda shift, x: traces.append(shift) or x + shift.offset)
    assert [int(run(CartesianConnectivity(K, i), 1)) for i in (2, 2, 3)] == [3, 3, 4]
    assert len(traces) == 2
