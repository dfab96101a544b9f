"""The short way of `fieldjax.jit`: the same results as the long way, whatever changes between calls."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import fieldjax as fj

Cell, Edge = fj.Dimension("Cell"), fj.Dimension("Edge")
E2CDim = fj.Dimension("E2C", fj.DimensionKind.LOCAL)
E2C = fj.FieldOffset("E2C", source=Cell, target=(Edge, E2CDim))


def mesh_of(seed: int) -> fj.Mesh:
    table = np.random.default_rng(seed).integers(0, 5, (8, 2))
    return fj.Mesh(E2C=fj.as_connectivity({Edge: 8, E2CDim: 2}, Cell, table))


def cells(seed: int) -> fj.Field:
    return fj.as_field({Cell: 5}, jnp.asarray(np.random.default_rng(seed).random(5)))


@fj.field_operator
def difference(f: Any, g: Any) -> Any:
    return f(E2C[1]) - 2 * g(E2C[0])


def expected(f: fj.Field, g: fj.Field, mesh: fj.Mesh) -> np.ndarray:
    table = mesh.E2C.asnumpy()
    return f.asnumpy()[table[:, 1]] - 2 * g.asnumpy()[table[:, 0]]


@pytest.fixture
def compiled() -> Any:
    return fj.jit(lambda f, g, mesh: difference(f, g, offset_provider=mesh))


def test_arguments_that_were_the_same_object_may_differ_later(compiled: Any) -> None:
    f, g, mesh = cells(0), cells(1), mesh_of(0)
    compiled(f, f, mesh)
    np.testing.assert_allclose(compiled(f, g, mesh).asnumpy(), expected(f, g, mesh))
    np.testing.assert_allclose(compiled(g, f, mesh).asnumpy(), expected(g, f, mesh))
    assert compiled.traces == 2  # one object twice is one field, as for `out=`


def test_the_short_way_is_taken_and_asks_nothing(compiled: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled(cells(0), cells(1), mesh_of(0))
    monkeypatch.setattr(compiled, "_run", lambda *_: pytest.fail("the long way"))
    mesh = mesh_of(0)
    compiled(cells(3), cells(4), mesh)


def test_another_mesh_answers_for_itself(compiled: Any) -> None:
    f, g = cells(0), cells(1)
    for seed in (0, 1, 0, 2, 1):
        mesh = mesh_of(seed)
        np.testing.assert_allclose(compiled(f, g, mesh).asnumpy(), expected(f, g, mesh))


def test_arguments_of_another_kind_take_the_long_way() -> None:
    scaled = fj.jit(lambda f, factor: f * factor)
    f = cells(0)
    for factor in (2, 2.0, 3, True, np.float32(2), jnp.asarray(2.0), np.arange(1.0, 2.0)[0]):
        np.testing.assert_allclose(scaled(f, factor).asnumpy(), f.asnumpy() * factor)
    onto = fj.as_field({Cell: 5}, np.arange(5, dtype=np.int32))
    assert scaled(onto, 2).dtype == np.int32
    assert scaled(onto, 2.0).dtype != np.int32


def test_the_mesh_in_force_is_an_argument() -> None:
    both = fj.jit(lambda f: difference(f, f))
    f = cells(0)
    for seed in (0, 1, 0):
        with mesh_of(seed) as mesh:
            np.testing.assert_allclose(both(f).asnumpy(), expected(f, f, mesh))


def test_a_closure_that_comes_to_hold_another_mesh_is_seen() -> None:
    mesh = mesh_of(0)
    both = fj.jit(lambda f: difference(f, f, offset_provider=mesh))
    f = cells(0)
    np.testing.assert_allclose(both(f).asnumpy(), expected(f, f, mesh))
    mesh = mesh_of(1)
    np.testing.assert_allclose(both(f).asnumpy(), expected(f, f, mesh))


def test_results_of_any_structure_and_masks_come_back() -> None:
    table = np.array([[0, 1], [2, -1]])
    mesh = fj.Mesh(E2C=fj.as_connectivity({Edge: 2, E2CDim: 2}, Cell, table, skip_value=-1))

    @fj.field_operator
    def second(f: Any) -> Any:
        return f(E2C[1])

    several = fj.jit(lambda f, m: {"field": second(f, offset_provider=m), "sum": jnp.sum(f.ndarray)})
    for _ in range(3):
        result = several(cells(0), mesh)
        assert result["field"].asnumpy(masked=True).mask.tolist() == [False, True]
        np.testing.assert_allclose(result["sum"], cells(0).asnumpy().sum())


def test_rebound_arguments_are_written_back_every_time() -> None:
    out = fj.as_field({Edge: 8}, np.zeros(8))

    @fj.jit
    def fill(f: Any, out: Any, mesh: Any) -> None:
        difference(f, f, out=out, offset_provider=mesh)

    mesh = mesh_of(0)
    for seed in range(3):
        fill(cells(seed), out, mesh)
        np.testing.assert_allclose(out.asnumpy(), expected(cells(seed), cells(seed), mesh))
