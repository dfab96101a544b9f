"""`lower`: what a call becomes as text. Tables are arguments, nothing of a mesh is a constant."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fieldjax as fj

Cell, Edge = fj.Dimension("Cell"), fj.Dimension("Edge")
K = fj.Dimension("K", fj.DimensionKind.VERTICAL)
E2CDim = fj.Dimension("E2C", fj.DimensionKind.LOCAL)
E2C = fj.FieldOffset("E2C", source=Cell, target=(Edge, E2CDim))
CELLS, EDGES, LEVELS = 700, 1000, 3

TABLE = np.random.default_rng(0).integers(0, CELLS, (EDGES, 2)).astype("int32")
MESH = fj.Mesh(E2C=fj.as_connectivity({Edge: EDGES, E2CDim: 2}, Cell, TABLE))


@fj.field_operator
def summed(f: Any, factor: Any) -> Any:
    return factor * fj.neighbor_sum(f(E2C), axis=E2CDim)


@fj.scan_operator(axis=K, init=0.0)
def total(above: Any, f: Any) -> Any:
    return above + f


@fj.field_operator
def column(f: Any) -> Any:
    return total(fj.neighbor_sum(f(E2C), axis=E2CDim))


@fj.program
def steps(f: Any, g: Any, factor: Any) -> None:
    summed(f, factor, out=g)


jitted = fj.jit(lambda f, factor, mesh: jnp.sum(summed(f, factor, offset_provider=mesh).ndarray))


def field(dim: Any = Cell, size: int = CELLS, wrap: Any = np.asarray) -> fj.Field:
    return fj.as_field({dim: size, K: LEVELS}, wrap(np.ones((size, LEVELS))))


def lowered() -> dict[str, Any]:
    return {
        "operator": summed.lower(field(), 2.0, offset_provider=MESH),
        "operator with out": summed.lower(field(), 2.0, out=field(Edge, EDGES), offset_provider=MESH),
        "scan inside": column.lower(field(), offset_provider=MESH),
        "program": steps.lower(field(), field(Edge, EDGES), 2.0, offset_provider=MESH),
        "jit": jitted.lower(field(), 2.0, MESH),
    }


def constants(jaxpr: Any) -> list[Any]:
    """The arrays that a jaxpr holds: closed over, or standing as literals, in inner jaxprs too."""
    found = [c for c in jaxpr.consts if np.size(c) > 1]
    for eqn in jaxpr.jaxpr.eqns:
        found += [v.val for v in eqn.invars if hasattr(v, "val") and np.size(v.val) > 1]
        for parameter in jax.tree.leaves(list(eqn.params.values()), is_leaf=lambda x: hasattr(x, "jaxpr")):
            found += constants(parameter) if hasattr(parameter, "consts") else []
    return found


@pytest.mark.parametrize("name", list(lowered()))
def test_tables_are_arguments_and_nothing_is_a_constant(name: str) -> None:
    found = lowered()[name]
    assert constants(found.jaxpr) == []
    assert (EDGES, 2) in [v.aval.shape for v in found.jaxpr.jaxpr.invars]
    assert len(found.stablehlo) < 20_000
    assert f"tensor<{EDGES}x2xi32>" in found.stablehlo


def test_the_helper_of_these_tests_sees_constants() -> None:
    held = jnp.asarray(TABLE)
    inner = jax.jit(lambda f: f[held].sum())
    assert constants(jax.jit(lambda f: inner(f) + 1).trace(jnp.ones(CELLS)).jaxpr)


def test_the_graph_names_operations_and_source_lines() -> None:
    graph = lowered()["operator"].graph
    line = summed.function.__code__.co_firstlineno + 2
    assert "%E2C: table[Edge, E2C -> Cell]" in graph
    (product,) = [text for text in graph.splitlines() if "multiply" in text]
    assert f"test_lower.py:{line}" in product
    assert lowered()["jit"].graph is None


def test_all_of_it_as_one_text() -> None:
    found = lowered()["operator"]
    text = str(found)
    assert text.index("# graph\ngraph(") < text.index("# jaxpr\n{ lambda") < text.index("# StableHLO\nmodule")
    assert found.as_text() == found.stablehlo
    assert "# graph" not in str(lowered()["jit"])


def test_lowering_runs_and_compiles_nothing() -> None:
    operator = summed.with_backend("jax")
    operator.lower(field(), 2.0, offset_provider=MESH)
    assert operator.stats == (1, 0, 0)
    out = field(Edge, EDGES)
    steps.lower(field(), out, 2.0, offset_provider=MESH)
    assert (out.asnumpy() == 1).all()


def test_the_stage_compiles_to_what_the_call_gives() -> None:
    f = field()
    found = jitted.lower(f, 2.0, MESH)
    assert found.compile().cost_analysis() is not None
    result = summed.lower(f, 2.0, offset_provider=MESH).compile()(f.ndarray, 2.0, jnp.asarray(TABLE))
    np.testing.assert_allclose(result[0], 4.0)


def test_abstract_fields_will_do() -> None:
    abstract = fj.as_field({Cell: CELLS, K: LEVELS}, jax.ShapeDtypeStruct((CELLS, LEVELS), "float64"))
    assert repr(abstract) == f"Field(Cell[0:{CELLS}), K[0:{LEVELS}), float64; abstract)"
    mine, theirs = (summed.lower(f, 2.0, offset_provider=MESH) for f in (abstract, field()))
    assert mine.stablehlo == theirs.stablehlo
    from_jax = jax.eval_shape(lambda f, m: summed(f, 2.0, offset_provider=m), field(wrap=jnp.asarray), MESH)
    assert summed.lower(field(), 2.0, out=from_jax, offset_provider=MESH).stablehlo == theirs.stablehlo


def test_arguments_that_are_bound_are_among_those_lowered() -> None:
    bound = summed.with_bound_args(factor=2.0)
    assert bound.lower(field(), offset_provider=MESH).stablehlo == lowered()["operator"].stablehlo


def test_errors_of_a_call_are_errors_of_lower() -> None:
    with pytest.raises(fj.FieldjaxError, match="the offset provider has no entry 'E2C'") as caught:
        summed.lower(field(), 2.0, offset_provider={})
    assert caught.value.location is not None
    assert caught.value.location.file == __file__


@pytest.mark.parametrize("backend", ["jax", None])
def test_abstract_fields_are_for_nothing_else(backend: Any) -> None:
    abstract = fj.as_field({Cell: CELLS, K: LEVELS}, jax.ShapeDtypeStruct((CELLS, LEVELS), "float64"))
    operator = summed.with_backend(backend)
    for run in (lambda: operator(abstract, 2.0, offset_provider=MESH), lambda: 2.0 * abstract):
        with pytest.raises(fj.FieldjaxError, match="a field has no elements, only a shape and a dtype") as caught:
            run()
        assert caught.value.location is not None
        assert caught.value.location.file == __file__
    with pytest.raises(TypeError):
        abstract.asnumpy()
