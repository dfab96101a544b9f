"""`concat_where` and `as_offset`: choosing by position, and reading at positions that are data."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fieldjax as fj
from fieldjax.embedded.leaves import place_of
from fieldjax.ir.arrays import NumpyArrays
from fieldjax.ir.derivative import vjp
from fieldjax.ir.evaluation import Evaluation
from fieldjax.ir.inference import infer

Cell = fj.Dimension("Cell")
K = fj.Dimension("K", fj.DimensionKind.VERTICAL)
Koff = fj.FieldOffset("Koff", source=K, target=(K,))
N = 6

CONDITIONS: list[tuple[Any, Any]] = [
    (K == 2, lambda c, k: k == 2),
    (K != 2, lambda c, k: k != 2),
    (K < 3, lambda c, k: k < 3),
    ((K == 0) | (K > 3), lambda c, k: (k == 0) | (k > 3)),
    ((K >= 1) & (Cell < 2), lambda c, k: (k >= 1) & (c < 2)),
    ((K == 1) | (Cell == 3), lambda c, k: (k == 1) | (c == 3)),
    (K > 100, lambda c, k: k > 100),
]


def field(seed: int = 0) -> fj.Field:
    return fj.as_field({Cell: 4, K: N}, np.random.default_rng(seed).random((4, N)) + 0.5)


@pytest.mark.parametrize(("condition", "holds"), CONDITIONS)
@pytest.mark.parametrize("backend", ["jax", None])
def test_each_position_has_its_field(condition: Any, holds: Any, backend: Any) -> None:
    @fj.field_operator(backend=backend)
    def chosen(f: Any, g: Any) -> Any:
        return fj.concat_where(condition, 2 * f, fj.sqrt(g))

    f, g = field(0), field(1)
    cells, levels = np.ogrid[:4, :N]
    expected = np.where(holds(cells, levels), 2 * f.asnumpy(), np.sqrt(g.asnumpy()))
    np.testing.assert_allclose(chosen(f, g, domain={Cell: 4, K: N}).asnumpy(), expected)
    np.testing.assert_allclose(fj.concat_where(condition, 2 * f, fj.sqrt(g)).asnumpy(), expected)


@pytest.mark.parametrize(("condition", "holds"), CONDITIONS)
def test_derivatives_go_where_the_values_came_from(condition: Any, holds: Any) -> None:
    @fj.field_operator
    def chosen(f: Any, g: Any) -> Any:
        return fj.concat_where(condition, f * f, 1 / g)

    f, g = field(0), field(1)
    cells, levels = np.ogrid[:4, :N]
    inside = np.broadcast_to(holds(cells, levels), (4, N))
    expected = np.where(inside, 2 * f.asnumpy(), 0), np.where(inside, 0, -1 / g.asnumpy() ** 2)
    found = jax.grad(lambda fs: chosen(*fs, domain={Cell: 4, K: N}).ndarray.sum())((f, g))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a.asnumpy(), b)
    for a, b in zip(recorded_vjp(chosen, f, g), expected, strict=True):
        np.testing.assert_allclose(a, b)


def recorded_vjp(operator: Any, *fields: fj.Field) -> Any:
    """The cotangents of a sum over the whole of `fields`' domain, by the recorded derivative."""
    (root,) = operator._execution.recordings._roots.values()
    graph = root.recordings[0].graph
    back = vjp(graph, range(len(fields)))
    seed = fj.ones(fields[0].domain)
    inputs = [*fields, seed]
    plan = infer(back, [place_of(x) for x in inputs], [None] * len(fields))
    return Evaluation(back, plan, NumpyArrays(), [x.asnumpy() for x in inputs]).run()


def test_what_is_not_used_need_not_exist_nor_be_finite() -> None:
    @fj.field_operator
    def lower(f: Any) -> Any:
        return fj.concat_where(K == 0, 0.0, fj.log(f(K - 1)))

    values = field().asnumpy().copy()
    values[:, -1] = -1.0
    f = fj.as_field({Cell: 4, K: N}, jnp.asarray(values))
    found = lower(f, domain={Cell: 4, K: N})
    np.testing.assert_allclose(found.asnumpy()[:, 1:], np.log(values[:, :-1]))
    slope = jax.grad(lambda g: lower(g, domain={Cell: 4, K: N}).ndarray.sum())(f)
    np.testing.assert_allclose(slope.asnumpy()[:, -1], 0)


def test_tuples_are_chosen_leaf_by_leaf_and_containers_must_match() -> None:
    f, g = field(0), field(1)
    a, b = fj.concat_where(K < 2, (f, g), (g, f))
    np.testing.assert_allclose(a.asnumpy()[:, :2], f.asnumpy()[:, :2])
    np.testing.assert_allclose(b.asnumpy()[:, :2], g.asnumpy()[:, :2])
    with pytest.raises(fj.FieldjaxError, match="containers of different structures"):
        fj.concat_where(K < 2, (f, g), (f,))


def test_a_hole_between_the_parts_is_an_error_unless_it_is_not_asked_for() -> None:
    low = fj.as_field({Cell: 4, K: (0, 2)}, np.zeros((4, 2)))
    high = fj.as_field({Cell: 4, K: (4, 6)}, np.ones((4, 2)))

    @fj.field_operator
    def joined(a: Any, b: Any) -> Any:
        return fj.concat_where(K < 3, a, b)

    with pytest.raises(fj.FieldjaxError, match="don't fill a rectangular domain"):
        joined(low, high)
    assert joined(low, high, domain={Cell: 4, K: (4, 6)}).asnumpy().sum() == 8


def test_a_condition_is_a_position() -> None:
    with pytest.raises(fj.FieldjaxError, match="chooses by position"):
        fj.concat_where(field() > 1, field(), field())


@given(seed=st.integers(0, 1000))
def test_a_field_is_read_where_the_offsets_say(seed: int) -> None:
    rng = np.random.default_rng(seed)
    f = fj.as_field({Cell: (2, 6), K: (3, 3 + N)}, rng.random((4, N)))
    where = rng.integers(0, N, (4, N)).astype(np.int32)
    offsets = fj.as_field(f.domain, where - np.arange(N, dtype=np.int32))

    @fj.field_operator
    def read(f: Any, offsets: Any) -> Any:
        return f(fj.as_offset(Koff, offsets))

    expected = np.take_along_axis(f.asnumpy(), where, 1)
    for operator in (read, read.with_backend(None)):
        np.testing.assert_array_equal(operator(f, offsets).asnumpy(), expected)
    weights = rng.random((4, N))
    counts = np.zeros((4, N))
    np.add.at(counts, (np.arange(4)[:, None], where), weights)
    found = jax.grad(lambda g: jnp.sum(read(g, offsets).ndarray * weights))(f)
    np.testing.assert_allclose(found.asnumpy(), counts)


def test_reads_outside_are_an_error_embedded_and_harmless_compiled() -> None:
    @fj.field_operator
    def read(f: Any, offsets: Any) -> Any:
        return f(fj.as_offset(Koff, offsets))

    f = field()
    offsets = fj.as_field(f.domain, np.full((4, N), 2, np.int32))
    with pytest.raises(fj.FieldjaxError, match="8 offsets lead outside"):
        read.with_backend(None)(f, offsets)
    slope = jax.grad(lambda g: read(g, offsets).ndarray.sum())(f).asnumpy()
    np.testing.assert_array_equal(slope, np.array([0.0, 0, 1, 1, 1, 1]) * np.ones((4, 1)))
    with pytest.raises(fj.FieldjaxError, match="offsets are integers"):
        read(f, f)
    with pytest.raises(fj.FieldjaxError, match="takes a Cartesian offset"):
        fj.as_offset("Koff", offsets)  # type: ignore[arg-type]
