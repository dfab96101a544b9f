"""A connectivity under everything that JAX does to pytrees."""

import copy
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.sharding import Mesh as DeviceMesh
from jax.sharding import NamedSharding, PartitionSpec

from fieldjax.connectivity import Connectivity, Mesh
from fieldjax.domain import UnitRange, domain
from fieldjax.errors import ConnectivityError, NarrowingError, TracingError
from tests.connectivity.tables import Case, E2CDim, Edge, cases, e2c, ring


def leaves_everything(table: Connectivity) -> None:
    """What must hold of a connectivity that came from wherever."""
    (leaf, *_), structure = table._flatten()
    np.testing.assert_array_equal(np.asarray(leaf), table.asnumpy())
    assert structure is table.structure
    assert table.handle.twin().entries is table.asnumpy()


COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda t: pickle.loads(pickle.dumps(t)),
    "tree_map": lambda t: jax.tree.map(lambda leaf: leaf, t),
    "tree_map to a new buffer": lambda t: jax.tree.map(lambda leaf: leaf + 0, t),
    "device_get": jax.device_get,
    "device_put": jax.device_put,
    "device_put elsewhere": lambda t: jax.device_put(t, jax.devices()[1]),
    "jit": jax.jit(lambda t: t),
    "donated": jax.jit(lambda t: t, donate_argnums=0),
    "remat": jax.checkpoint(lambda t: t),
    "cond": lambda t: jax.lax.cond(jnp.bool_(True), lambda t: t, lambda t: t, t),
    "scan carry": lambda t: jax.lax.scan(lambda t, _: (t, None), t, length=2)[0],
    "while": lambda t: jax.lax.fori_loop(0, 2, lambda _, t: t, t),
    "vmap": lambda t: jax.vmap(lambda t, x: t, in_axes=(None, 0), out_axes=None)(t, jnp.ones(3)),
    "jvp": lambda t: jax.jvp(lambda x: (x, t), (1.0,), (1.0,))[0][1],
    "twice": lambda t: jax.jit(lambda t: jax.jit(lambda t: t)(t))(jax.tree.map(jnp.array, t)),
}


@pytest.mark.parametrize("name", COPIES)
@pytest.mark.parametrize("with_adjoint", [False, True])
def test_copies_are_the_same_connectivity(name, with_adjoint):
    table = e2c([[0, 1], [1, 2], [2, -1]], -1)
    table = table.with_adjoint() if with_adjoint else table
    structure, again = table.structure, COPIES[name](table)
    leaves_everything(again)
    assert again.structure is structure
    assert again.inverse_image(UnitRange(0, 3)) == again.domain
    if with_adjoint:
        assert [np.asarray(part).tolist() for part in again.adjoint] == [
            part.tolist() for part in table.handle.twin().transposed(1)
        ]


def test_a_donated_connectivity_still_works():
    table, mesh = ring(30).with_adjoint(), Mesh(A=ring(30, 2), B=ring(30, 3))
    add = jax.jit(lambda t: jax.tree.map(lambda leaf: leaf + 1, t), donate_argnums=0)
    add(jax.tree.map(jnp.array, table))
    for tree in (table, mesh):
        leaves = jax.tree.leaves(tree)
        add(tree)
        assert all(leaf.is_deleted() for leaf in leaves)
        assert not any(leaf.is_deleted() for leaf in jax.tree.leaves(tree))
    leaves_everything(table)
    leaves_everything(mesh.B)
    assert mesh.B.asnumpy()[0].tolist() == [0, 3]


def test_moved_tables_keep_their_place():
    device = jax.devices()[1]
    moved = jax.device_put(ring(4).with_adjoint(), device)
    assert {d for leaf in jax.tree.leaves(moved) for d in leaf.devices()} == {device}
    replicated = NamedSharding(DeviceMesh(np.array(jax.devices()), ("d",)), PartitionSpec())
    table = jax.device_put(ring(4), replicated)
    assert jax.tree.leaves(table)[0].sharding == replicated
    assert table.handle is ring(4).handle
    changed = jax.tree.map(lambda leaf: leaf[::-1], table)
    assert jax.tree.leaves(changed)[0].sharding.is_equivalent_to(replicated, 2)


@given(cases(min_size=1), st.sampled_from(["reversed", "zeros", "plus one", "rolled"]))
def test_a_changed_table_is_hosted_anew(case: Case, change):
    changes = {
        "reversed": lambda t: t[::-1],
        "zeros": lambda t: t * 0,
        "plus one": lambda t: jnp.where(t == case.skip, t, t + 1) if case.skip is not None else t + 1,
        "rolled": lambda t: jnp.roll(t, 1),
    }
    table = case.build()
    changed = jax.tree.map(changes[change], table)
    expected = Case(case.domain, np.asarray(changes[change](table.table)), case.skip).build()
    assert changed.handle is expected.handle
    assert changed.structure is expected.structure
    leaves_everything(changed)
    assert changed.image(case.domain) == expected.image(case.domain)


def test_a_changed_table_answers_for_itself():
    table = e2c([[0, 1], [5, 6]]).with_adjoint()
    changed = jax.tree.map(lambda leaf: leaf[::-1], table)
    assert table.inverse_image(UnitRange(0, 2)) == domain({Edge: 1, E2CDim: 2})
    assert changed.inverse_image(UnitRange(0, 2)) == domain({Edge: (1, 2), E2CDim: 2})
    assert changed.asnumpy().tolist() == [[5, 6], [0, 1]]
    # The transposed slots follow the table, whatever was done to them.
    rows = jax.tree.leaves(changed)[1]
    assert rows.tolist() == changed.handle.twin().transposed(1).rows.tolist()
    assert rows[0, 0] == 1


def test_spoiled_slots_are_replaced():
    table = ring(6).with_adjoint()
    leaves, structure = jax.tree.flatten(table)
    again = jax.tree.unflatten(structure, [leaves[0], leaves[1] * 0, None])
    assert [leaf.tolist() for leaf in jax.tree.leaves(again)] == [leaf.tolist() for leaf in leaves]


def test_another_dtype_is_another_table():
    narrow = jax.tree.map(lambda leaf: leaf.astype(jnp.int8), e2c([[0, 1]]))
    assert narrow.dtype == narrow.table.dtype == np.int8
    assert narrow.handle is not e2c([[0, 1]]).handle


def test_a_changed_table_is_checked():
    changed = jax.tree.map(lambda leaf: -leaf, e2c([[0, 1]]))
    with pytest.raises(ConnectivityError, match=r"Edge 0 leads to Cell 0, -1\n(.*\n)*.*a transformation of the"):
        jax.tree.leaves(changed)


def test_the_handle_is_found_after_all_connectivities_went():
    leaves, structure = jax.tree.flatten(ring(12, 5))
    again = jax.tree.unflatten(structure, leaves)
    assert again.image(again.domain) == UnitRange(0, 12)
    assert again.handle is ring(12, 5).handle
    assert jax.tree.structure(again) == structure


def test_numpy_leaves_become_device_arrays():
    leaf = np.array([[0, 1]], np.int32)
    table = jax.tree.unflatten(jax.tree.structure(e2c([[0, 1]])), [leaf])
    (found,) = jax.tree.leaves(table)
    assert isinstance(found, jax.Array)
    leaf[:] = 7
    assert found.tolist() == [[0, 1]]


@pytest.mark.parametrize(
    "child",
    [None, "spec", 3, 2.5, PartitionSpec("x"), jax.ShapeDtypeStruct((1, 2), jnp.int32), object(), (1, 2)],
)
def test_unflattening_looks_at_nothing(child):
    structure = jax.tree.structure(e2c([[0, 1]]))
    table = jax.tree.unflatten(structure, [child])
    assert table.table is child
    assert table._flatten()[0][0] is child
    with pytest.raises(ConnectivityError, match="stands where a neighbour table was"):
        table.inverse_image(UnitRange(0, 2))
    repr(table)


def test_cotangents_and_other_arrays_pass_through():
    table = e2c([[0, 1]])
    grads = jax.grad(lambda t, x: (x[t.table] ** 2).sum(), argnums=0, allow_int=True)(table, jnp.ones(2))
    assert jax.tree.leaves(grads)[0].dtype == jax.dtypes.float0
    floats = jax.tree.map(lambda leaf: leaf * 0.5, table)
    assert jax.tree.leaves(floats)[0].dtype.kind == "f"
    with pytest.raises(ConnectivityError, match="hold integers"):
        jax.jit(lambda t: t.inverse_image(UnitRange(0, 2)) and 1)(floats)


def test_jvp_and_grad_beside_a_connectivity():
    table = ring(5)

    def energy(x, t):
        return (x[t.table] ** 2).sum()

    x = jnp.arange(5.0)
    expected = 4 * x
    np.testing.assert_allclose(jax.grad(energy)(x, table), expected)
    np.testing.assert_allclose(jax.jit(jax.grad(energy))(x, table), expected)
    zero = np.zeros(table.shape, jax.dtypes.float0)
    tangent = jax.tree.unflatten(jax.tree.structure(table), [zero])
    assert jax.jvp(energy, (x, table), (x, tangent))[1] == pytest.approx(float(2 * (2 * x * x).sum()))


def test_abstract_evaluation():
    table = ring(5)
    shape = jax.eval_shape(lambda t: t.table + t.in_degree, table)
    assert shape.shape == (5, 2)
    abstract = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), table)
    assert jax.jit(lambda t: t.table + t.in_degree).lower(abstract).compile()(table).shape == (5, 2)


STACKED = {
    "stacked": lambda t: jax.tree.leaves(jax.tree.map(lambda *leaves: jnp.stack(leaves), t, t)),
    "stacked and mapped": lambda t: jax.vmap(lambda t: t.table.sum())(jax.tree.map(lambda leaf: leaf[None], t)),
    "mapped over its rows": lambda t: jax.vmap(lambda t: t.inverse_image(UnitRange(0, 9)) and 1)(t),
    "scanned over": lambda t: jax.lax.scan(lambda c, t: (c + len(t.inverse_image(UnitRange(0, 9))), None), 0, t),
    "scanned and handed on": lambda t: jax.lax.scan(lambda c, t: (c, t), 0, t),
    "sliced": lambda t: jax.jit(lambda t: t)(jax.tree.map(lambda leaf: leaf[:2], t)),
    "broadcast by vmap": lambda t: jax.vmap(lambda x: t)(jnp.ones(3)).inverse_image(UnitRange(0, 9)),
}


@pytest.mark.parametrize("name", STACKED)
def test_stacked_tables_are_errors(name):
    with pytest.raises(ConnectivityError, match="it was stacked, scanned or mapped over") as caught:
        STACKED[name](ring(5))
    assert "close over the connectivity" in str(caught.value)


def test_mixing_two_tables_is_a_structure_error():
    with pytest.raises((ValueError, TypeError)):
        jax.tree.map(lambda a, b: a, ring(5), ring(5, 2))
    with pytest.raises(TypeError):
        jax.lax.cond(jnp.bool_(True), lambda: ring(5), lambda: ring(5, 2))


def test_questions_to_a_traced_table():
    table = e2c([[0, 1], [1, 2], [2, -1]], -1)
    asked = {}

    @jax.jit
    def trace(t):
        for name in (
            "domain",
            "codomain",
            "skip_value",
            "shape",
            "dtype",
            "handle",
            "in_degree",
            "adjoint_pays",
        ):
            asked[name] = getattr(t, name)
        asked["image"] = t.image(domain({Edge: 1}))
        asked["facts"] = t.facts(t.domain)
        asked["inverse"] = t.inverse_image(UnitRange(0, 3))
        with pytest.raises(NarrowingError):
            t.inverse_image(UnitRange(0, 2))
        with pytest.raises(TracingError, match=r"the table \(Edge, E2C\) -> Cell is traced"):
            t.asnumpy()
        with pytest.raises(TracingError, match="before you pass the connectivity"):
            t.with_adjoint()
        return t.table.sum()

    assert int(trace(table)) == 5
    for name, answer in asked.items():
        if hasattr(table, name) and not callable(getattr(table, name)):
            assert answer == getattr(table, name)
    assert asked["image"] == UnitRange(0, 2)
    assert asked["inverse"] == table.domain


@pytest.mark.parametrize("transform", [jax.jit, jax.vmap, jax.grad, jax.checkpoint, jax.linearize])
def test_closed_over_it_stays_concrete(transform):
    table = ring(5)

    def energy(x):
        assert table.asnumpy().shape == (5, 2)
        return (x * jnp.arange(5.0)[table.table].sum() ** 2).sum()

    arguments = (jnp.ones(3),)
    transform(energy, *arguments) if transform is jax.linearize else transform(energy)(*arguments)


def test_tables_are_arguments_of_what_is_compiled():
    table = ring(5000).with_adjoint()
    run = jax.jit(lambda t, x: x[t.table].sum() + x[t.adjoint.rows % 5].sum())
    assert not jax.make_jaxpr(run)(table, jnp.ones(5000)).consts
    assert len(run.lower(table, jnp.ones(5000)).as_text()) < 10_000


def test_key_paths():
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(ring(3).with_adjoint())]
    assert paths == [".table", ".adjoint.rows", ".adjoint.slots"]


def test_shard_map_with_a_replicated_table():
    devices = jax.make_mesh((2,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    table = ring(6)

    def body(t, x):
        return x * t.in_degree + jnp.arange(6.0)[t.table].sum()

    run = jax.shard_map(
        body, mesh=devices, in_specs=(PartitionSpec(), PartitionSpec("d")), out_specs=PartitionSpec("d")
    )
    assert run(table, jnp.ones(4)).tolist() == jax.jit(run)(table, jnp.ones(4)).tolist() == [32.0] * 4
