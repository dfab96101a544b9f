"""Fields with local dimensions: mean and product, single slots, several local dimensions at once, results."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fieldjax as fj
from fieldjax.mesh import (
    C2E,
    C2V,
    E2C,
    E2V,
    V2E,
    C2EDim,
    C2VDim,
    Cell,
    E2CDim,
    E2VDim,
    Edge,
    K,
    V2EDim,
    Vertex,
    cut,
    icosahedron,
)
from tests.frontend.scans import everywhere

GRID = cut(icosahedron(1), icosahedron(1)["clat"] > 0)
TABLES = {name: GRID.table(name) for name in ("C2E", "E2C", "V2E")}


def numbers(*dims, seed=0):
    sizes = {**GRID.sizes, K: 3, C2EDim: 3, E2CDim: 2, V2EDim: 6}
    return fj.as_field(dims, np.random.default_rng(seed).uniform(0.5, 1.5, [sizes[d] for d in dims]))


def sparse(name, *dims, seed=1):
    """NaN in unused slots."""
    field, table = numbers(*dims, seed=seed), TABLES[name]
    valid = (table >= 0).reshape(table.shape + (1,) * (field.ndim - 2))
    return fj.as_field(field.domain, np.where(valid, field.asnumpy(), np.nan))


def neighbours(values, name):
    table = TABLES[name]
    valid = (table >= 0).reshape(table.shape + (1,) * (values.ndim - 1))
    return np.where(valid, values[table], np.nan)


def assert_gives(operator, expected, *fields, **options):
    """In every mode, where `expected` isn't NaN; finite elsewhere; the adjoint is that of the tangents."""
    found = everywhere(operator, *fields, mesh=GRID.mesh, **options).asnumpy()
    known = ~np.isnan(expected)
    np.testing.assert_allclose(found[known], expected[known], rtol=1e-12, atol=1e-14)
    assert np.isfinite(found).all()
    on_jax = [fj.as_field(f.domain, jnp.asarray(f.asnumpy())) for f in fields]
    floating = [n for n, f in enumerate(on_jax) if f.dtype == np.float64]

    def value(*chosen):
        arguments = [chosen[floating.index(n)] if n in floating else f for n, f in enumerate(on_jax)]
        return operator(*arguments, offset_provider=GRID.mesh, **options).ndarray

    start = [on_jax[n] for n in floating]
    tangents = [fj.as_field(f.domain, jnp.asarray(np.random.default_rng(5).random(f.shape))) for f in start]
    tangent = jax.jvp(value, tuple(start), tuple(tangents))[1]
    cotangents = jax.vjp(value, *start)[1](tangent)
    assert all(np.isfinite(c.asnumpy()).all() for c in cotangents) and np.isfinite(tangent).all()
    right = sum(jnp.vdot(c.ndarray, t.ndarray) for c, t in zip(cotangents, tangents, strict=True))
    np.testing.assert_allclose(jnp.vdot(tangent, tangent), right, rtol=1e-12)


def test_the_mesh_has_all_kinds_of_rows():
    assert (TABLES["E2C"] < 0).any() and (TABLES["C2E"] >= 0).all()
    assert {int(n) for n in (TABLES["V2E"] >= 0).sum(axis=1)} >= {3, 4, 5, 6}


def test_mean_and_product_over_neighbours():
    @fj.field_operator
    def mean(f):
        return fj.neighbor_mean(f(V2E), axis=V2EDim)

    @fj.field_operator
    def product(f, w):
        return fj.neighbor_product(f(V2E) * w, axis=V2EDim)

    f, w = numbers(Edge, K), sparse("V2E", Vertex, V2EDim)
    at = neighbours(f.asnumpy(), "V2E")
    assert_gives(mean, np.nanmean(at, axis=1), f)
    assert_gives(product, np.nanprod(at * w.asnumpy()[..., None], axis=1), f, w)


def rows(*entries):
    """Offset, local dimension and connectivity of a table."""
    offset = fj.FieldOffset("Some", source=Cell, target=(Edge, E2CDim))
    return offset, fj.as_connectivity([Edge, E2CDim], Cell, np.array(entries), skip_value=-1)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_a_row_without_neighbours_has_mean_zero_and_product_one(dtype):
    offset, table = rows([0, 1], [-1, -1], [-1, 2])
    f = fj.as_field([Cell], np.array([3, 4, 5], dtype))

    @fj.field_operator
    def both(f):
        return fj.neighbor_mean(f(offset), axis=E2CDim), fj.neighbor_product(f(offset), axis=E2CDim)

    mean, product = everywhere(both, f, mesh={"Some": table})
    assert mean.asnumpy().tolist() == [3.5, 0.0, 5.0]
    assert product.asnumpy().tolist() == [12, 1, 5]
    assert product.dtype == f.dtype
    assert mean.dtype == jnp.mean(jnp.zeros(1, dtype)).dtype


def test_derivatives_of_a_product_hold_where_factors_are_zero():
    offset, table = rows([0, 1, 2, -1], [0, 1, 3, 4])
    values = np.array([0.0, 2.0, 3.0, 0.0, 5.0])

    @fj.field_operator
    def total(f):
        return fj.neighbor_product(f(offset), axis=E2CDim)

    def of(values):
        return total(fj.as_field([Cell], values), offset_provider={"Some": table}).ndarray

    np.testing.assert_array_equal(jax.jacobian(of)(values), [[6, 0, 0, 0, 0], [0, 0, 0, 0, 0]])
    second = jax.hessian(of)(values)
    assert second[1, 0, 3] == second[1, 3, 0] == 10
    assert second[0, 0, 1] == 3 and second[0, 1, 2] == 0


def test_outside_operators_too():
    f, w = numbers(Edge), sparse("V2E", Vertex, V2EDim)
    with GRID.mesh:
        mean, product = fj.neighbor_mean(f(V2E), axis=V2EDim), fj.neighbor_product(w, axis=V2EDim)
    np.testing.assert_allclose(mean.asnumpy(), np.nanmean(neighbours(f.asnumpy(), "V2E"), axis=1))
    np.testing.assert_allclose(product.asnumpy(), np.nanprod(w.asnumpy(), axis=1))


@pytest.mark.parametrize("reduce", [fj.neighbor_mean, fj.neighbor_product])
def test_only_local_dimensions_are_reduced(reduce):
    with pytest.raises(fj.FieldjaxError, match="Edge isn't a local dimension"):
        fj.field_operator(lambda f: reduce(f, axis=Edge))(numbers(Edge), offset_provider=GRID.mesh)


def test_a_slot_of_a_sparse_field():
    @fj.field_operator
    def second(w):
        return 2 * w[C2EDim(1)]

    w = sparse("C2E", Cell, C2EDim, K)
    assert_gives(second, 2 * w.asnumpy()[:, 1], w)


def test_a_slot_beside_a_neighbour_is_read_at_its_substitute():
    @fj.field_operator
    def second(f, w, mask):
        weight = 1 / (2 * w[E2CDim(1)])
        return fj.where(mask, f(E2C[1]) * weight, 0.0)

    f, w = numbers(Cell, K), sparse("E2C", Edge, E2CDim)
    valid = TABLES["E2C"][:, 1] >= 0
    expected = neighbours(f.asnumpy(), "E2C")[:, 1] / (2 * w.asnumpy()[:, 1, None])
    assert_gives(second, np.where(valid[:, None], expected, 0.0), f, w, fj.as_field([Edge], valid))


def test_a_slot_of_one_local_dimension_leaves_the_other():
    @fj.field_operator
    def in_one_slot(w):
        return fj.neighbor_sum(w[E2CDim(0)], axis=C2EDim)

    w = numbers(Cell, C2EDim, E2CDim)
    assert_gives(in_one_slot, w.asnumpy()[:, :, 0].sum(axis=1), w)


def test_tables_without_skips_may_stand_one_behind_the_other():
    @fj.field_operator
    def ends(f, w):
        return f(E2V)(C2E) * w

    @fj.field_operator
    def largest(f, w):
        return fj.max_over(fj.neighbor_sum(f(E2V)(C2E) * w, axis=C2EDim), axis=E2VDim)

    f, w = numbers(Vertex, K), numbers(Cell, C2EDim)
    at = f.asnumpy()[GRID.table("E2V")][TABLES["C2E"]]  # (Cell, C2E, E2V, K)
    product = at * w.asnumpy()[:, :, None, None]
    assert_gives(ends, product, f, w)
    assert_gives(largest, product.sum(axis=1).max(axis=1), f, w)


def test_an_outer_product_of_two_kinds_of_neighbours():
    @fj.field_operator
    def pairs(f, g):
        return f(C2E) * g(C2V)

    @fj.field_operator
    def total(f, g):
        return fj.neighbor_sum(fj.neighbor_mean(f(C2E) * g(C2V), axis=C2VDim), axis=C2EDim)

    f, g = numbers(Edge, K), numbers(Vertex)
    outer = f.asnumpy()[TABLES["C2E"]][:, :, None] * g.asnumpy()[GRID.table("C2V")][:, None, :, None]
    assert_gives(pairs, outer, f, g)
    assert_gives(total, outer.mean(axis=2).sum(axis=1), f, g)


def test_a_field_that_has_the_local_dimension_is_gathered_row_by_row():
    @fj.field_operator
    def along(w):
        return fj.neighbor_sum(w(C2E), axis=C2EDim)

    w = numbers(Edge, C2EDim)
    expected = np.take_along_axis(w.asnumpy()[TABLES["C2E"]], np.arange(3)[None, :, None], axis=2)[..., 0].sum(axis=1)
    assert_gives(along, expected, w)


def test_sparse_fields_are_results():
    @fj.field_operator
    def sorted_out(f, w):
        return f(V2E) * w

    f, w = numbers(Edge, K), sparse("V2E", Vertex, V2EDim)
    expected = neighbours(f.asnumpy(), "V2E") * w.asnumpy()[..., None]
    assert_gives(sorted_out, expected, f, w)
    shown = sorted_out(f, w, offset_provider=GRID.mesh).asnumpy(masked=True)
    assert (np.ma.getmaskarray(shown) == np.isnan(expected)).all()
    out = fj.zeros(numbers(Vertex, V2EDim, K).domain, "float64")
    sorted_out(f, w, out=out, offset_provider=GRID.mesh)
    np.testing.assert_array_equal(out.asnumpy(), shown.data)


def test_a_sparse_result_is_an_argument_again():
    @fj.field_operator
    def terms(f):
        return fj.sqrt(f(V2E))

    @fj.field_operator
    def total(terms):
        return fj.neighbor_sum(terms, axis=V2EDim)

    f = numbers(Edge, K)
    made = terms(f, offset_provider=GRID.mesh)
    expected = np.nansum(np.sqrt(neighbours(f.asnumpy(), "V2E")), axis=1)
    np.testing.assert_allclose(total(made, offset_provider=GRID.mesh).asnumpy(), expected)


@fj.field_operator
def read(f):
    return f(E2C) * 2.0


@fj.field_operator
def through_the_mesh(f, w):
    return fj.neighbor_sum(f(E2C) * w, axis=E2CDim)


@fj.field_operator
def through_an_argument(f, w, table):
    return fj.neighbor_sum(f(table) * w, axis=E2CDim)


def outside(f, w):
    @fj.field_operator
    def operator(f):
        return fj.neighbor_sum(f(E2C) * w, axis=E2CDim)

    return operator(f, offset_provider=GRID.mesh)


USES = {
    "the mesh": lambda f, w: through_the_mesh(f, w, offset_provider=GRID.mesh),
    "an argument": lambda f, w: through_an_argument(f, w, GRID.mesh["E2C"]),
    "from outside": outside,
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("wrap", [lambda f: f, fj.jit, jax.grad], ids=["eager", "jit", "grad"])
def test_what_another_operator_read_through_a_table_meets_what_is_read_through_it_here(use, wrap):
    def composed(f):
        summed = USES[use](f, read(f, offset_provider=GRID.mesh))
        return fj.as_field(summed.domain, summed.ndarray) if wrap is not jax.grad else summed.ndarray.sum()

    f = fj.as_field([Cell], jnp.asarray(numbers(Cell).asnumpy()))
    values, table = f.ndarray, jnp.asarray(TABLES["E2C"])

    def by_hand(values):
        return jnp.where(table >= 0, 2.0 * values[table] ** 2, 0.0).sum(1)

    want = jax.grad(lambda x: by_hand(x).sum())(values) if wrap is jax.grad else by_hand(values)
    np.testing.assert_allclose(wrap(composed)(f).asnumpy(), want, rtol=1e-13)


def test_what_was_read_through_another_table_of_the_same_kind_is_still_refused():
    numbered_otherwise = fj.Mesh(E2C=fj.as_connectivity([Edge, E2CDim], Cell, TABLES["E2C"][:, ::-1], skip_value=-1))
    f = numbers(Cell)
    for _ in range(2):
        through_the_mesh(f, read(f, offset_provider=GRID.mesh), offset_provider=GRID.mesh)
        with pytest.raises(fj.FieldjaxError, match="two tables meet along E2C"):
            through_the_mesh(f, read(f, offset_provider=numbered_otherwise), offset_provider=GRID.mesh)
    w = fj.as_field([Edge, E2CDim], np.where(TABLES["E2C"] >= 0, 1.0, np.nan))
    through_the_mesh(f, w, offset_provider=numbered_otherwise)
