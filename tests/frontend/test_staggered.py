"""Staggered dimensions: fields between the points of others, read at half a cell's distance."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fieldjax as fj
from fieldjax.errors import DimensionError
from tests.frontend.scans import everywhere

I = fj.Dimension("I")
K = fj.Dimension("K", fj.DimensionKind.VERTICAL)
IHalf, KHalf = fj.flip_staggered(I), fj.flip_staggered(K)


def position(dim: fj.Dimension, index: Any) -> Any:
    """Where an index is, in cells: a staggered one half a cell below its base."""
    return index - 0.5 if fj.is_staggered(dim) else index


def read(field: fj.Field, axis: int, dim: fj.Dimension, offset: float) -> dict[int, np.ndarray]:
    """By index of `dim`: the slice of a field at that position plus `offset`."""
    own, array = field.domain[axis], np.moveaxis(field.asnumpy(), axis, 0)
    slices = {float(position(own.dim, i)): array[n] for n, i in enumerate(own.unit_range)}
    found = {i: slices.get(float(position(dim, i)) + offset) for i in range(-30, 30)}
    return {i: x for i, x in found.items() if x is not None}


halves = st.integers(-5, 5).map(lambda n: n / 2)


@given(st.sampled_from([I, IHalf]), halves, st.integers(-3, 3), st.integers(1, 5))
def test_half_a_cell_leads_to_the_twin(dim: fj.Dimension, offset: float, start: int, size: int) -> None:
    source = dim if offset == int(offset) else fj.flip_staggered(dim)
    f = fj.as_field({source: (start, start + size)}, np.random.default_rng(size).random(size))
    found = f(dim + offset)
    expected = read(f, 0, dim, offset)
    assert found.domain == fj.domain({dim: (min(expected), max(expected) + 1)})
    np.testing.assert_array_equal(found.asnumpy(), np.stack([expected[i] for i in sorted(expected)]))
    op = fj.field_operator(lambda f: f(dim + offset))
    for result in (op(f), op.with_backend(None)(f)):
        assert result.domain == found.domain
        np.testing.assert_array_equal(result.asnumpy(), found.asnumpy())


@fj.field_operator
def slope(h: Any) -> Any:
    """Between the cells, from both sides."""
    return h(IHalf + 0.5) - h(IHalf - 0.5)


H = np.random.default_rng(0).random((7, 4))
W = np.random.default_rng(1).random((8, 5))


def fields() -> tuple[fj.Field, fj.Field]:
    return fj.as_field({I: (2, 9), K: 4}, H), fj.as_field({IHalf: (2, 10), KHalf: 5}, W)


@fj.field_operator
def upwards(h: Any) -> Any:
    return 0.5 * (h(KHalf + 0.5) + h(KHalf - 0.5))


def test_a_twin_stands_where_its_base_would() -> None:
    h, _ = fields()
    assert slope(h).domain == fj.domain({IHalf: (3, 9), K: (0, 4)})
    assert upwards(h).domain == fj.domain({I: (2, 9), KHalf: (1, 4)})


def test_a_staggered_grid_everywhere() -> None:
    h, w = fields()
    flux = np.diff(H, axis=0)[:, None, :]

    @fj.field_operator
    def on_interfaces(h: Any, w: Any) -> Any:
        return upwards(slope(h)) * w

    found = everywhere(on_interfaces, h, w)
    assert found.domain == fj.domain({IHalf: (3, 9), KHalf: (1, 4)})
    expected = 0.5 * (flux[:, 0, 1:] + flux[:, 0, :-1]) * W[1:7, 1:4]
    np.testing.assert_allclose(found.asnumpy(), expected)


def test_there_and_back() -> None:
    """Second differences through the interfaces are those of the cells."""
    h, _ = fields()
    found = everywhere(fj.field_operator(lambda h: slope(h)(I + 0.5) - slope(h)(I - 0.5)), h)
    assert found.domain == fj.domain({I: (3, 8), K: (0, 4)})
    np.testing.assert_allclose(found.asnumpy(), np.diff(H, n=2, axis=0))


@pytest.mark.parametrize("compiler", [lambda f: f, jax.jit, fj.jit], ids=["bare", "jax.jit", "fieldjax.jit"])
def test_gradients_are_transposes(compiler: Any) -> None:
    """<w, slope h> = <slope* w, h>, and slope* is the negative divergence with open ends."""
    w = np.random.default_rng(2).random((6, 4))

    def product(h: fj.Field) -> Any:
        return jnp.sum(slope(h).ndarray * w)

    h = fj.as_field({I: (2, 9), K: 4}, jnp.asarray(H))
    gradient = compiler(jax.grad(product))(h)
    assert gradient.domain == h.domain
    padded = np.concatenate([np.zeros((1, 4)), w, np.zeros((1, 4))])
    np.testing.assert_allclose(gradient.asnumpy(), -np.diff(padded, axis=0))


def test_out_and_domain_on_the_twin() -> None:
    h, _ = fields()
    out = fj.zeros({IHalf: (3, 9), K: 4})
    slope(h, out=out)
    np.testing.assert_allclose(out.asnumpy(), np.diff(H, axis=0))
    part = slope(h, domain={IHalf: (4, 6), K: (0, 4)})
    np.testing.assert_allclose(part.asnumpy(), np.diff(H, axis=0)[1:3])
    with pytest.raises(fj.FieldjaxError):
        slope(h, domain={IHalf: (2, 6), K: (0, 4)})


def test_scans_along_interfaces() -> None:
    total = fj.scan_operator(lambda above, w: above + w, axis=KHalf, init=0.0)
    _, w = fields()
    np.testing.assert_allclose(everywhere(total, w).asnumpy(), np.cumsum(W, axis=1))


def test_annotations_name_the_twin() -> None:
    @fj.field_operator
    def annotated(h: fj.Field[[IHalf, K], float]) -> Any:  # type: ignore[valid-type]
        return h

    with pytest.raises(DimensionError, match=r"h is annotated .*_StaggeredI.*, but has dimensions"):
        annotated(fields()[0])


def test_the_wrong_twin_is_an_error_that_says_which_one_is_meant() -> None:
    h, _ = fields()
    for run in (lambda: h(I + 0.5), lambda: fj.field_operator(lambda h: h(I + 0.5))(h)):
        with pytest.raises(DimensionError, match="can't be shifted along _StaggeredI") as caught:
            run()
        assert caught.value.location is not None
        assert caught.value.location.file == __file__
    assert "what is shifted is the dimension of the result: f(_StaggeredI + ...) reads I" in str(
        _error(lambda: h(I + 0.5))
    )
    with pytest.raises(DimensionError, match="a dimension and its staggered twin stand in one field"):
        h + fj.as_field({IHalf: 3, K: 4}, np.ones((3, 4)))


def _error(run: Any) -> Exception:
    try:
        run()
    except fj.FieldjaxError as error:
        return error
    raise AssertionError("nothing was raised")
