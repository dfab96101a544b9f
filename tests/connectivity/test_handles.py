"""Handles: one per contents, answered by any live twin, keeping nothing alive."""

import copy
import gc
import pickle
import threading
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldjax.connectivity import HostTable, Mesh, as_connectivity, connectivity_of, host_table
from fieldjax.connectivity.handle import Handle
from fieldjax.domain import UnitRange
from fieldjax.errors import ConnectivityError
from tests.connectivity.tables import Case, Cell, Edge, Vertex, cases, e2c, ring


@given(cases(), cases())
def test_equal_handles_mean_equal_contents(one: Case, other: Case):
    same = one.table.shape == other.table.shape and one.skip == other.skip and (one.table == other.table).all()
    first, second = one.build(), other.build()
    assert (first.handle is second.handle) == same
    assert first.handle is one.build().handle
    assert (first.structure is second.structure) == (same and one.domain == other.domain)


def test_the_skip_value_and_the_dtype_are_contents():
    assert len({e2c([[0, 1]], skip, dtype=dtype).handle for skip in (None, 7) for dtype in ("int8", "int32")}) == 4


def test_one_digest_for_two_contents(monkeypatch):
    monkeypatch.setattr(host_table, "digest_of", lambda *_: b"the same for all")
    tables = [e2c([[0, i]]) for i in range(3)]
    assert len({table.handle for table in tables}) == 3
    assert [table.image(table.domain).stop for table in tables] == [1, 2, 3]
    assert tables[2].handle is e2c([[0, 2]]).handle


def test_a_handle_is_answered_by_a_twin_made_later():
    traces = []

    @jax.jit
    def where(table, x):
        traces.append(table.inverse_image(UnitRange(0, 50)))
        return x + table.table.sum()

    table = ring(50)
    where(table, 1)
    handle, twin = table.handle, weakref.ref(table.handle.twin())
    del table
    assert twin() is None
    assert handle.live() is None
    with pytest.raises(ConnectivityError, match="the host table behind a traced connectivity is gone"):
        handle.twin()
    again = ring(50)
    assert again.handle is handle
    assert handle.twin() is again.handle.twin()
    where(again, 1)
    assert len(traces) == 1


def test_traces():
    traces = []

    @jax.jit
    def run(table):
        traces.append(table.domain)
        return table.table.sum()

    table = ring(20)
    run(table)
    run(jax.tree.unflatten(jax.tree.structure(table), jax.tree.leaves(table)))  # same buffer, new wrapper
    assert len(traces) == 1
    for same in (ring(20), copy.deepcopy(table), pickle.loads(pickle.dumps(table)), jax.device_put(table)):
        run(same)  # same contents, new buffer
    assert len(traces) == 1
    run(ring(20, step=2))  # other contents
    assert len(traces) == 2
    assert int(run(ring(20, step=2))) == int(run(table)) == 380
    assert len(traces) == 2


def test_reused_identities_never_alias():
    run = jax.jit(lambda table, x: x[table.table[:, 1]])
    x = jnp.arange(30.0)
    for step in (1, 2, 3, 4, 5) * 4:
        found = run(ring(30, step), x)
        assert found.tolist() == [(i + step) % 30 for i in range(30)]


def test_replaced_meshes_leave_nothing_behind():
    step = jax.jit(lambda mesh, x: x + mesh.E2C.table.sum() + mesh.E2C.in_degree)
    alone = jax.jit(lambda table, x: jax.grad(lambda y: (y[table.table] ** 2).sum())(x))
    watched = []
    for number in range(1, 7):
        mesh = Mesh(E2C=ring(40, number)).with_adjoint()
        step(mesh, 1.0)
        alone(mesh.E2C, jnp.ones(40))
        jax.linearize(lambda x, mesh=mesh: step(mesh, x), 1.0)
        with mesh:
            mesh.E2C.inverse_image(UnitRange(0, 40))
        twin = mesh.E2C.handle.twin()
        watched += [weakref.ref(twin), weakref.ref(mesh.E2C.table), weakref.ref(mesh.E2C.adjoint.rows)]
        del mesh, twin
    gc.collect()
    assert [ref() for ref in watched] == [None] * 18


def test_a_dropped_table_goes_at_once():
    table = ring(40)
    table.inverse_image(UnitRange(0, 40))
    jax.jit(lambda t: t.table + 1)(table)
    gc.disable()
    try:
        watched = weakref.ref(table.handle.twin())
        del table
        assert watched() is None
    finally:
        gc.enable()


def test_handles_and_structures_survive_pickling():
    table = e2c([[0, 1]], -1)
    for static in (table.handle, table.structure, Mesh(E2C=table)._flatten()[1]):
        assert pickle.loads(pickle.dumps(static)) is static
        assert copy.deepcopy(static) is static
    assert repr(Handle(b"abcdef")) == "Handle(616263646566)"


def test_another_process_finds_the_same_contents(run_python, tmp_path):
    table = ring(10).with_adjoint()
    (tmp_path / "table").write_bytes(pickle.dumps(table))
    printed = run_python(f"""
import pickle, pathlib
table = pickle.loads(pathlib.Path({str(tmp_path / "table")!r}).read_bytes())
print(table.handle.digest.hex(), table.adjoint.rows.shape)
""")
    assert printed.split() == [table.handle.digest.hex(), "(10,", "2)"]


@pytest.mark.parametrize("keep", [True, False])
def test_threads_agree(keep):
    start = threading.Barrier(8)
    found: list[tuple] = []
    run = jax.jit(lambda table: table.table.sum() + table.in_degree)

    def work():
        start.wait()
        for step in range(1, 30):
            table = ring(64, step % 5 + 1)
            answer = table.inverse_image(UnitRange(0, 64)), table.facts(table.domain), int(run(table))
            found.append((step % 5, table.handle if keep else None, answer))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 * 29
    assert len(set(found)) == 5


@given(st.integers(0, 3), st.integers(1, 4))
def test_twins_know_their_contents(skip, width):
    entries = np.arange(4 * width, dtype=np.int32).reshape(4, width)
    table = e2c(entries, skip)
    twin = table.handle.twin()
    assert isinstance(twin, HostTable)
    assert twin.holds(entries, skip)
    assert not twin.holds(entries, skip + 1)
    assert not twin.holds(entries.astype(np.int64), skip)
    assert not twin.holds(entries + 1, skip)
    assert repr(twin) == f"HostTable(int32[4, {width}], skip_value={skip})"


def test_codomains_share_a_twin():
    to_cell, to_vertex = (as_connectivity([Edge], dim, [0, 1]) for dim in (Cell, Vertex))
    assert to_cell.handle is to_vertex.handle
    assert to_cell.structure is not to_vertex.structure


def test_a_structure_finds_a_connectivity():
    table = e2c([[0, 1]], -1).with_adjoint()
    found = connectivity_of(table.structure)
    assert found.handle is table.handle
    assert found.domain == table.domain
    structure = ring(17, 3).structure
    with pytest.raises(ConnectivityError, match="is gone"):
        connectivity_of(structure)
