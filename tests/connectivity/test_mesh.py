"""A mesh: one pytree node of many connectivities."""

import copy
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fieldjax.connectivity import Mesh, as_connectivity
from fieldjax.domain import UnitRange
from fieldjax.errors import ConnectivityError
from tests.connectivity.tables import Cell, E2CDim, Edge, K, Vertex, e2c, ring


@pytest.fixture
def mesh():
    return Mesh({"E2C": ring(8)}, A=ring(8, 3).with_adjoint(), Koff=K)


def test_entries(mesh):
    assert list(mesh) == ["A", "E2C", "Koff"]
    assert mesh["E2C"] is mesh.E2C
    assert mesh.Koff == K
    assert dict(mesh.items()).keys() == {"A", "E2C", "Koff"}
    assert len(mesh) == 3
    assert "E2C" in mesh
    assert "Koff" in dir(mesh)
    with pytest.raises(KeyError):
        mesh["E2V"]
    with pytest.raises(AttributeError, match="the mesh has no E2V; it has A, E2C, Koff"):
        mesh.E2V
    assert Mesh({**mesh, "E2C": ring(4)}).E2C.shape == (4, 2)


def test_a_name_that_means_something_else(mesh):
    odd = Mesh(items=ring(8))
    assert odd["items"] is dict(odd.items())["items"]


def test_it_is_immutable_and_equal_to_itself_only(mesh):
    with pytest.raises(AttributeError):
        mesh.E2C = ring(3)
    assert mesh == mesh
    assert mesh != Mesh(mesh)
    assert len({mesh, Mesh(mesh)}) == 2


def test_repr(mesh):
    assert repr(Mesh()) == "Mesh()"
    assert "E2C: Domain(Edge[0:8), E2C[0:2)) -> Cell" in repr(mesh)


def test_one_node_one_structure(mesh):
    leaves, structure = jax.tree.flatten(mesh)
    assert [leaf.shape for leaf in leaves] == [(8, 2), (8, 2), (8, 2), (8, 2)]
    other = Mesh(A=mesh.A, Koff=K, E2C=ring(8))
    assert mesh._flatten()[1] is other._flatten()[1]
    assert structure != jax.tree.structure(Mesh(A=mesh.A, Koff=Vertex, E2C=ring(8)))
    assert structure.num_nodes == len(leaves) + 1
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(mesh)]
    assert paths == ["['A']", "['A.rows']", "['A.slots']", "['E2C']"]


@pytest.mark.parametrize(
    "carry",
    [
        copy.copy,
        copy.deepcopy,
        lambda m: pickle.loads(pickle.dumps(m)),
        jax.device_put,
        jax.device_get,
        jax.jit(lambda m: m),
        jax.jit(lambda m: m, donate_argnums=0),
        lambda m: jax.tree.map(jnp.array, m),
        lambda m: jax.lax.scan(lambda m, _: (m, None), m, length=2)[0],
        lambda m: jax.vmap(lambda m, x: m, in_axes=(None, 0), out_axes=None)(m, jnp.ones(2)),
    ],
)
def test_copies(mesh, carry):
    static = mesh._flatten()[1]
    again = carry(mesh)
    assert list(again) == list(mesh)
    assert again._flatten()[1] is static
    assert again.E2C.inverse_image(UnitRange(0, 8)) == mesh.E2C.domain
    assert again.A.adjoint is not None


def test_traces():
    traces = []

    @jax.jit
    def run(mesh):
        traces.append(mesh.E2C.image(mesh.E2C.domain))
        return mesh.E2C.table.sum()

    run(Mesh(E2C=ring(9), K=K))
    run(Mesh(K=K, E2C=ring(9)))
    assert len(traces) == 1
    run(Mesh(E2C=ring(9, 2), K=K))
    assert len(traces) == 2


def test_a_changed_table(mesh):
    changed = jax.tree.map(lambda leaf: leaf[::-1], mesh)
    assert changed.E2C.asnumpy().tolist() == mesh.E2C.asnumpy()[::-1].tolist()
    assert changed._flatten()[1] is not mesh._flatten()[1]
    assert changed.A.handle.twin().transposed(1).rows.tolist() == changed.A.adjoint.rows.tolist()
    restored = jax.tree.map(lambda leaf: leaf[::-1], changed)
    assert restored._flatten()[1] is mesh._flatten()[1]


def test_stacked_meshes_are_errors(mesh):
    with pytest.raises(ConnectivityError, match="stacked"):
        jax.tree.leaves(jax.tree.map(lambda *leaves: jnp.stack(leaves), mesh, mesh))


def test_unflattening_looks_at_nothing(mesh):
    structure = jax.tree.structure(mesh)
    for filling in (None, "spec", object()):
        again = jax.tree.unflatten(structure, [filling] * 4)
        assert again.E2C.table is filling
        assert again._flatten()[0] == (filling,) * 4


def test_the_adjoint_goes_where_it_pays():
    mesh = Mesh(good=ring(8), bad=e2c([[0, 99]]), over=as_connectivity([Edge, K], Cell, [[0]]), K=K).with_adjoint()
    assert mesh.good.adjoint is not None
    assert mesh.bad.adjoint is None
    assert mesh.over.adjoint is None
    assert mesh.K == K


@pytest.mark.parametrize("entry", [np.zeros((2, 2), int), None, "E2C"])
def test_what_is_refused(entry):
    with pytest.raises(ConnectivityError, match="E2C in a mesh must be a connectivity or a dimension"):
        Mesh(E2C=entry)
    with pytest.raises(ConnectivityError, match="named by strings, got 3"):
        Mesh({3: ring(3)})  # type: ignore[dict-item]


def test_half_made_meshes_have_no_attributes():
    with pytest.raises(AttributeError):
        object.__new__(Mesh)._entries


def test_in_vmap_over_fields():
    mesh, fields = Mesh(E2C=ring(4)), jnp.arange(12.0).reshape(3, 4)
    summed = jax.vmap(lambda m, x: x[m.E2C.table].sum(axis=1), in_axes=(None, 0))(mesh, fields)
    assert summed.shape == (3, 4)
    assert E2CDim in mesh.E2C.domain.dims
