"""What lives how long: tables, plans and programs; and who makes them when several ask at once."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fieldjax as fj

Cell, Edge = fj.Dimension("Cell"), fj.Dimension("Edge")
E2CDim = fj.Dimension("E2C", fj.DimensionKind.LOCAL)
E2C = fj.FieldOffset("E2C", source=Cell, target=(Edge, E2CDim))


def table_of(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 6, (9, 2))


def mesh_of(seed: int) -> fj.Mesh:
    return fj.Mesh(E2C=fj.as_connectivity({Edge: 9, E2CDim: 2}, Cell, table_of(seed)))


def field(wrap: Any = jnp.asarray) -> fj.Field:
    return fj.as_field({Cell: 6}, wrap(np.arange(6.0)))


def expected(seed: int) -> np.ndarray:
    return np.arange(6.0)[table_of(seed)].sum(1)


def function(f: Any) -> Any:
    return fj.neighbor_sum(f(E2C), axis=E2CDim)


operator = fj.field_operator(function)
jitted = fj.jit(lambda f, m: operator(f, offset_provider=m))
bare = jax.jit(lambda f, m: operator(f, offset_provider=m))
gradient = jax.grad(lambda f, m: jnp.sum(operator(f, offset_provider=m).ndarray ** 2))
jitted_gradient = jax.grad(fj.jit(lambda f, m: jnp.sum(operator(f, offset_provider=m).ndarray ** 2)))
in_force = fj.jit(lambda f: operator(f))


def under(mesh: fj.Mesh) -> Any:
    with mesh:
        return in_force(field())


USES: dict[str, Callable[[fj.Mesh], Any]] = {
    "operator": lambda m: operator(field(), offset_provider=m),
    "operator on NumPy": lambda m: operator(field(np.asarray), offset_provider=m),
    "operator with a dict": lambda m: operator(field(), offset_provider=dict(m)),
    "embedded": lambda m: operator.with_backend(None)(field(), offset_provider=m),
    "eager": lambda m: fj.neighbor_sum(field().premap(m.E2C), axis=E2CDim),
    "fieldjax.jit": lambda m: jitted(field(), m),
    "the mesh in force": under,
    "jax.jit": lambda m: bare(field(), m),
    "jax.grad": lambda m: gradient(field(), m),
    "grad of fieldjax.jit": lambda m: jitted_gradient(field(), m),
}


@pytest.mark.parametrize("use", USES)
def test_six_replaced_meshes_leave_no_table_alive(use: str) -> None:
    seen = []
    for seed in range(6):
        mesh = mesh_of(1000 + seed)
        USES[use](mesh)
        USES[use](mesh)
        seen += [weakref.ref(mesh.E2C._twin), weakref.ref(mesh.E2C.table)]
        del mesh
    gc.collect()
    assert [r() for r in seen] == [None] * 12


@pytest.mark.parametrize("seed", range(4))
def test_a_dropped_mesh_answers_for_no_other(seed: int) -> None:
    for use in ("operator", "fieldjax.jit", "jax.jit", "the mesh in force", "embedded"):
        np.testing.assert_allclose(USES[use](mesh_of(seed)).asnumpy(), expected(seed))


def test_an_equal_mesh_is_answered_by_what_was_compiled_for_a_dropped_one() -> None:
    count = 0

    @jax.jit
    def counted(f: Any, mesh: Any) -> Any:
        nonlocal count
        count += 1
        return operator(f, offset_provider=mesh)

    for _ in range(3):
        np.testing.assert_allclose(counted(field(), mesh_of(7)).asnumpy(), expected(7))
        gc.collect()
    assert count == 1
    counted(field(), mesh_of(8))
    assert count == 2


def test_a_second_mesh_of_equal_plan_traces_nothing() -> None:
    def loss(f: Any, m: Any) -> Any:
        return jnp.sum(own(f, offset_provider=m).ndarray ** 2)

    own = fj.field_operator(function)
    compiled = fj.jit(loss)
    for call in (lambda m: own(field(), offset_provider=m), lambda m: compiled(field(), m)):
        call(mesh_of(1))
        before = (own.stats, compiled.traces)
        call(mesh_of(2))
        assert (own.stats, compiled.traces) == before
    for slope in (jax.grad(loss), jax.grad(compiled)):
        slope(field(), mesh_of(1))
        before = (own.stats, compiled.traces)
        slope(field(), mesh_of(2))
        assert (own.stats, compiled.traces) == before


def test_another_narrowing_traces_once() -> None:
    own = fj.field_operator(lambda f: f(E2C[0]))
    compiled = fj.jit(lambda f, m: own(f, offset_provider=m))

    def narrow(stop: int) -> fj.Mesh:
        rows = np.where(np.arange(9) < stop, np.arange(9) % 6, 8)
        return fj.Mesh(E2C=fj.as_connectivity({Edge: 9, E2CDim: 1}, Cell, rows[:, None]))

    for stop in (4, 4, 5, 4, 5):
        assert own(field(), offset_provider=narrow(stop)).domain == fj.domain({Edge: stop})
        assert compiled(field(), narrow(stop)).domain == fj.domain({Edge: stop})
    assert compiled.traces == 2
    assert own.stats.plans == 2


@pytest.mark.parametrize(
    "make", [fj.field_operator, lambda f: fj.program(lambda f_, g: fj.field_operator(f)(f_, out=g))]
)
def test_a_dropped_operator_leaves_no_program(make: Any) -> None:
    own = make(function)
    if isinstance(own, fj.FieldOperator):
        own(field(), offset_provider=mesh_of(0))
    else:
        own(field(), fj.as_field({Edge: 9}, jnp.zeros(9)), offset_provider=mesh_of(0))
    (program,) = own._execution.programs.values()
    seen = [weakref.ref(program), weakref.ref(own)]
    del program, own
    gc.collect()
    assert [r() for r in seen] == [None, None]


def test_a_dropped_compiled_function_leaves_no_plan() -> None:
    own = fj.jit(lambda f, m: operator(f, offset_provider=m))
    own(field(), mesh_of(0))
    (plan,) = own._plans.values()
    seen = [weakref.ref(plan)]
    del plan, own
    gc.collect()
    assert seen[0]() is None


def in_threads(count: int, work: Callable[[int], Any]) -> list[Any]:
    results: list[Any] = [None] * count
    start = threading.Barrier(count)

    def run(n: int) -> None:
        start.wait()
        results[n] = work(n)

    threads = [threading.Thread(target=run, args=(n,), daemon=True) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "deadlock"
    return results


def test_four_threads_that_call_first_record_and_trace_once() -> None:
    own = fj.field_operator(function)
    compiled = fj.jit(lambda f, m: 2 * own(f, offset_provider=m))
    mesh = mesh_of(3)
    for result in in_threads(4, lambda _: own(field(), offset_provider=mesh)):
        np.testing.assert_allclose(result.asnumpy(), expected(3))
    assert own.stats == (1, 1, 1)
    for result in in_threads(4, lambda _: compiled(field(), mesh)):
        np.testing.assert_allclose(result.asnumpy(), 2 * expected(3))
    assert compiled.traces == 1


def test_functions_that_call_each_other_do_not_deadlock() -> None:
    ping = fj.jit(lambda f, n: f + 1.0 if n == 0 else pong(2.0 * f, n - 1), static_argnums=1)
    pong = fj.jit(lambda f, n: f - 1.0 if n == 0 else ping(3.0 * f, n - 1), static_argnums=1)
    first, second = in_threads(2, lambda k: (ping, pong)[k](field(), 3))
    np.testing.assert_allclose(first.asnumpy(), 12 * np.arange(6.0) - 1)
    np.testing.assert_allclose(second.asnumpy(), 18 * np.arange(6.0) + 1)
