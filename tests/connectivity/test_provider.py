"""What an offset provider gives, and where a mesh in force may be read."""

import threading

import jax
import jax.numpy as jnp
import pytest

from fieldjax.connectivity import (
    CartesianConnectivity,
    FieldOffset,
    Mesh,
    ambient,
    as_connectivity,
    as_provider,
)
from fieldjax.errors import OffsetProviderError
from tests.connectivity.tables import C2EDim, Cell, E2CDim, Edge, K, Vertex, e2c, ring
from tests.refusals import refused

E2C = FieldOffset("E2C", source=Cell, target=(Edge, E2CDim))


@pytest.mark.parametrize("wrap", [dict, Mesh, as_provider])
def test_lookup(wrap):
    table = ring(3)
    provider = as_provider(wrap({"E2C": table, "Koff": K}))
    assert provider["E2C"] is table
    assert provider[E2C] is table
    assert provider["Koff"] == K
    assert provider[FieldOffset("Koff", source=K, target=(K,))] == K
    assert provider.find_local(E2CDim) == ("E2C", table)
    assert (len(provider), set(provider), "E2C" in provider) == (2, {"E2C", "Koff"}, True)
    assert "E2C" in repr(provider)
    assert as_provider(provider) is provider


def test_it_is_a_snapshot():
    entries = {"E2C": ring(3)}
    provider = as_provider(entries)
    entries.clear()
    assert "E2C" in provider
    assert provider == provider
    assert provider != as_provider(dict(provider))
    assert len({provider, as_provider({})}) == 2


def test_unused_entries_may_be_anything():
    provider = as_provider({"E2C": ring(3), "broken": 3, "none": None})
    assert provider["E2C"].shape == (3, 2)
    with pytest.raises(OffsetProviderError, match="no connectivity under 'broken', but int"):
        provider["broken"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("E2C2V", "has no entry 'E2C2V'\nnote: it has: E2C, Koff\nhelp: did you mean 'E2C'?"),
        (
            "Vertices",
            "has no entry 'Vertices'\nnote: it has: E2C, Koff\nhelp: pass offset_provider=",
        ),
    ],
)
def test_missing_entries(name, message):
    with refused(message, OffsetProviderError):
        as_provider({"E2C": ring(3), "Koff": K})[name]


def test_nothing_is_provided():
    with pytest.raises(OffsetProviderError, match="no entry 'E2C'\nnote: it is empty"):
        as_provider(None)["E2C"]
    assert ambient() is None


@pytest.mark.parametrize("source", [3, [("E2C", None)], "E2C"])
def test_what_is_no_provider(source):
    with pytest.raises(OffsetProviderError, match="is not an offset provider"):
        as_provider(source)


@pytest.mark.parametrize(
    ("entry", "shown"),
    [
        (as_connectivity([Edge, C2EDim], Cell, [[0]]), r"a table \(Edge, C2E\) -> Cell"),
        (as_connectivity([Edge, E2CDim], Vertex, [[0]]), r"a table \(Edge, E2C\) -> Vertex"),
        (Edge, "the dimension Edge"),
        (CartesianConnectivity(Edge, 1), r"a table \(Edge\) -> Edge"),
    ],
)
def test_an_entry_must_fit_its_offset(entry, shown):
    with pytest.raises(OffsetProviderError, match="doesn't fit the offset\n") as caught:
        as_provider({"E2C": entry})[E2C]
    assert caught.match(r"the offset leads from \(Edge, E2C\) to Cell")
    assert caught.match(f"the entry is {shown}")


def test_cartesian_connectivities_are_provided():
    shift = CartesianConnectivity(K, 1)
    assert as_provider({"Koff": shift})[FieldOffset("Koff", source=K, target=(K,))] is shift


def test_local_dimensions():
    one, same, other = ring(3), ring(3), ring(3, 2)
    assert as_provider({"A": one, "B": same, "K": K}).find_local(E2CDim) == ("A", one)
    assert as_provider({"A": one, "E2C": other}).find_local(E2CDim) == ("E2C", other)
    with pytest.raises(OffsetProviderError, match="several connectivities have the local dimension E2C: A, B"):
        as_provider({"A": one, "B": other}).find_local(E2CDim)
    with pytest.raises(OffsetProviderError, match="no connectivity with the local dimension C2E"):
        as_provider({"A": one, "C2E": K}).find_local(C2EDim)


def test_a_view_answers_for_a_table():
    class View:
        """Counts what it is asked."""

        domain, codomain, asked = e2c([[0]]).domain, Cell, 0

        @property
        def in_degree(self):
            View.asked += 1
            return 1

        def inverse_image(self, image_range):
            raise AssertionError

    view = View()
    assert as_provider({"E2C": view})[E2C] is view
    assert as_provider({"E2C": view}).find_local(E2CDim) == ("E2C", view)
    assert View.asked == 0


def test_the_innermost_mesh_is_in_force():
    outer, inner = Mesh(E2C=ring(3)), Mesh(E2C=ring(4))
    with outer:
        with inner, inner:
            assert as_provider()["E2C"] is inner.E2C
        assert as_provider()["E2C"] is outer.E2C
        assert as_provider({"E2C": inner.E2C})["E2C"] is inner.E2C
        with pytest.raises(ValueError, match="left"), inner:
            raise ValueError("left by an error")
        assert as_provider()["E2C"] is outer.E2C
    assert ambient() is None


def test_threads_have_their_own():
    seen = []
    with Mesh(E2C=ring(3)):
        thread = threading.Thread(target=lambda: seen.append(ambient()))
        thread.start()
        thread.join()
    assert seen == [None]


def total(x):
    return (x[as_provider()["E2C"].table] ** 2).sum()


X = jnp.arange(4.0)
AT_ONCE = {
    "nothing": total,
    "grad": jax.grad(total),
    "jvp": lambda x: jax.jvp(total, (x,), (x,)),
    "vmap": lambda x: jax.vmap(total)(jnp.stack([x, x])),
    "linearize": lambda x: jax.linearize(total, x)[0],
    "grad of grad": lambda x: jax.grad(lambda x: jax.grad(total)(x).sum())(x),
}
RECORDED = {
    "jit": jax.jit(total),
    "grad of jit": jax.grad(jax.jit(total)),
    "jit of grad": jax.jit(jax.grad(total)),
    "scan": lambda x: jax.lax.scan(lambda c, _: (c, total(c)), x, length=2),
    "cond": lambda x: jax.lax.cond(x[0] > 0, total, total, x),
    "checkpoint": jax.checkpoint(total),
    "eval_shape": lambda x: jax.eval_shape(total, x),
    "make_jaxpr": lambda x: jax.make_jaxpr(total)(x),
}


@pytest.mark.parametrize("name", AT_ONCE)
def test_what_runs_at_once_reads_the_mesh_in_force(name):
    with Mesh(E2C=ring(4)):
        AT_ONCE[name](X)


@pytest.mark.parametrize("name", RECORDED)
def test_what_is_recorded_does_not(name):
    with (
        Mesh(E2C=ring(4)),
        pytest.raises(OffsetProviderError, match="in force outside of the function") as caught,
    ):
        RECORDED[name](X)
    assert "use fieldjax.jit instead of jax.jit" in str(caught.value)


@pytest.mark.parametrize("name", AT_ONCE)
def test_a_mesh_put_in_force_inside_of_the_trace(name):
    @jax.jit
    def run(mesh, x):
        with mesh:
            return AT_ONCE[name](x)

    run(Mesh(E2C=ring(4)), X)


def picked(x, _=None):
    read = x[as_provider()["E2C"].table].reshape(-1)
    return x, (read * jnp.arange(read.size)).sum()


def test_what_is_recorded_inside_of_such_a_trace_reads_that_mesh_and_no_other():
    @jax.jit
    def run(mesh, x):
        with mesh:
            return jax.lax.scan(picked, x, None, length=2)[1]

    turned = ring(4).asnumpy()[::-1]
    other = as_connectivity(ring(4).domain, ring(4).codomain, turned)
    for connectivity in (ring(4), other, ring(4)):
        expected = (X[connectivity.table].reshape(-1) * jnp.arange(connectivity.table.size)).sum()
        assert run(Mesh(E2C=connectivity), X).tolist() == [expected, expected]


def test_asking_nothing_of_a_mesh_in_force_is_fine():
    with Mesh(E2C=ring(4)):
        assert jax.jit(lambda x: x * len(as_provider()))(2) == 2


def test_a_mesh_that_outlives_its_trace():
    def leak(mesh):
        leaked.__enter__()
        return mesh.E2C.table

    leaked = Mesh(E2C=ring(4))
    jax.jit(leak)(Mesh(E2C=ring(4)))
    try:
        with pytest.raises(OffsetProviderError, match="in force outside"):
            as_provider()["E2C"]
    finally:
        leaked.__exit__(None, None, None)
