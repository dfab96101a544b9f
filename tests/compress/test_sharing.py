"""Who shares what is compiled: S1, S2, S3, S4, S5, S6, S7 and S8 of the specification."""

from __future__ import annotations

import dataclasses
import gc
import weakref
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fieldjax as fj
from fieldjax.domain import Dimension, DimensionKind, Domain
from fieldjax.ir.graph import Graph
from fieldjax.ir.key import structural_key
from fieldjax.ir.operation import Operation
from fieldjax.ir.operations.blocks import Merge, Split
from fieldjax.model.interning import _bodies
from fieldjax.model.region import Region
from tests.model.models import chain, chain_reference, layer
from tests.refusals import refused

X, P = jnp.linspace(0.1, 1.0, 5), jnp.asarray(0.7)


def blocks(layers: int, size: int, **options: Any) -> tuple[fj.Model, list[Any], list[Any], Any]:
    """A chain whose blocks of `size` layers are regions, one after another."""
    model, values, p = chain(layers)
    ops = [fj.compress([values[n], p], values[n + size], **options) for n in range(0, layers, size)]
    return model, values, ops, p


def traces(model: fj.Model) -> list[int]:
    """How often each distinct region was traced."""
    return [row.stats.traces for row in model.report().rows]


def fresh() -> None:
    """Forgets bodies that no model holds any more."""
    gc.collect()


@pytest.mark.parametrize("mode", ["segment", "scan"])
def test_s1_s8_identical_regions_compile_once_and_their_derivatives_once(mode: str) -> None:
    fresh()
    model, values, ops, p = blocks(12, 2, mode=mode)
    s = fj.sum(values[-1])
    model.output("s", s)
    slopes = fj.derivative(s, [p, values[0]])
    model.output("by p", slopes[p])
    model.output("by x", slopes[values[0]])
    run = model.compile()
    result = run()
    run(x=np.ones(5))
    assert model.compressed_operations == tuple(ops)
    assert len({id(op.body) for op in ops}) == 1
    assert ops[0].stats.compiled == 1
    assert [row.stats.compiled for row in model.report().rows] == [1, 1]
    assert model.report().regions == 12
    np.testing.assert_allclose(result["s"], jnp.sum(chain_reference(12)(X, P)), rtol=1e-14)
    want = jax.grad(lambda p: jnp.sum(chain_reference(12)(X, p)))(P)
    np.testing.assert_allclose(result["by p"], want, rtol=1e-13)


def test_s1_across_models_in_the_process_until_nobody_holds_them() -> None:
    fresh()
    first, _, ops, _ = blocks(4, 2, mode="segment")
    first.output("y", first.compressed_operations[-1].outputs[0])
    first.run()
    second, _, others, _ = blocks(6, 2, mode="segment")
    second.output("y", second.compressed_operations[-1].outputs[0])
    second.run()
    assert others[0].body is ops[0].body and others[0].stats.compiled == 1
    body = weakref.ref(ops[0].body)
    del first, second, ops, others, _
    gc.collect()
    assert body() is None


@pytest.mark.parametrize("option", [{"fusion": False}, {"device": "cpu:1"}, {"jit_kwargs": {"inline": True}}], ids=str)
def test_s1_another_way_of_running_is_another_executable(option: dict[str, Any]) -> None:
    fresh()
    model, values, p = chain(2)
    first = fj.compress([values[0], p], values[1], mode="segment")
    second = fj.compress([values[1], p], values[2], mode="segment", **option)
    model.output("y", values[2])
    result = model.run()
    assert first.body is second.body and first.stats.compiled == 2
    np.testing.assert_allclose(result["y"], chain_reference(2)(X, P), rtol=1e-14)


def test_s1_not_shared_when_asked_not_to() -> None:
    fresh()
    model, values, ops, p = blocks(3, 1, share_compiled=False, mode="segment")
    model.output("y", values[-1])
    model.run()
    assert len({id(op.body) for op in ops}) == 3
    assert [op.stats.compiled for op in ops] == [1, 1, 1]


def test_s2_input_order_does_not_matter_and_names_do_not() -> None:
    with fj.record() as model:
        a, b, c, d = (model.input(n, np.full(3, v)) for n, v in (("a", 1.0), ("b", 2.0), ("c", 3.0), ("d", 4.0)))
        y, z = a - fj.sin(b), c - fj.sin(d)
        first, second = fj.compress([a, b], y, mode="segment"), fj.compress([d, c], z, mode="segment")
        model.output("y", y)
        model.output("z", z)
    assert first.body is second.body
    result = model.run()
    np.testing.assert_allclose(result["y"], 1 - np.sin(2.0) * np.ones(3))
    np.testing.assert_allclose(result["z"], 3 - np.sin(4.0) * np.ones(3))


PAIRS: dict[str, tuple[Any, Any]] = {
    "x * x and x * y": (lambda x, y: x * x + 0.0 * y, lambda x, y: x * y + 0.0 * y),
    "a shared and a repeated subexpression": (lambda x, y: _shared(x, y), lambda x, y: fj.sin(x) * fj.sin(y)),
    "a literal": (lambda x, y: x + 1.0 * y, lambda x, y: x + 2.0 * y),
    "an exponent": (lambda x, y: x**2 * y, lambda x, y: x**3 * y),
    "the order of operands": (lambda x, y: x - y * x, lambda x, y: y * x - x),
    "an attribute": (lambda x, y: x[1:] * y[1:], lambda x, y: x[:-1] * y[:-1]),
    "the dtype of a literal": (lambda x, y: x * np.float64(2) * y, lambda x, y: x * 2.0 * y),
}


def _shared(x: Any, y: Any) -> Any:
    s = fj.sin(x)
    return s * s * y


@pytest.mark.parametrize("name", PAIRS)
def test_s2_s3_regions_that_differ_do_not_share(name: str) -> None:
    first, second = PAIRS[name]
    with fj.record() as model:
        given = [model.input(n, np.linspace(1.0, 2.0, 4)) for n in "abcd"]
        y, z = first(*given[:2]), second(*given[2:])
        one, other = fj.compress(given[:2], y), fj.compress(given[2:], z)
        again = fj.compress([given[0], given[3]], first(given[0], given[3]))
    assert one.body is not other.body
    assert one.body is again.body


def test_s3_a_value_of_an_input_is_shared_a_shape_is_not() -> None:
    with fj.record() as model:
        x, y, z = model.input("x", np.ones(3)), model.input("y", np.zeros(3)), model.input("z", np.ones(4))
        ops = [fj.compress(v, fj.sin(v) * 2.0) for v in (x, y, z)]
    assert ops[0].body is ops[1].body is not ops[2].body


CHANGES: dict[type, Any] = {
    int: lambda x: x + 1,
    bool: lambda x: not x,
    str: lambda x: x + "'",
    bytes: lambda x: x + b"'",
    float: lambda x: x + 1.0,
    np.dtype: lambda x: np.dtype("int8") if x != np.dtype("int8") else np.dtype("int16"),
    Dimension: lambda x: Dimension(x.value + "'", x.kind),
    DimensionKind: lambda x: next(k for k in DimensionKind if k is not x),
    Domain: lambda x: fj.domain({Dimension("other"): 3}),
}


def _changed(value: Any) -> Any:
    """Another value of the same kind, or None where this test knows none."""
    if isinstance(value, tuple):
        return (*value, *value[:1]) if value else None
    change = next(
        (c for k, c in CHANGES.items() if type(value) is k or (k is np.dtype and isinstance(value, np.dtype))), None
    )
    return None if change is None else change(value)


def test_s2_every_attribute_of_every_operation_is_in_the_key() -> None:
    """Operations of recorded models and of the operators in them, their attributes changed one at a time."""
    seen: set[tuple[type, str]] = set()
    for operation in _many_operations():
        text = _text(operation)
        for attribute in dataclasses.fields(operation):  # type: ignore[arg-type]
            if not attribute.compare:
                continue
            changed = _changed(getattr(operation, attribute.name))
            if changed is not None:
                other = dataclasses.replace(operation, **{attribute.name: changed})  # type: ignore[type-var]
                assert _text(other) != text, (operation, attribute.name)
                seen.add((type(operation), attribute.name))
    assert len(seen) > 20
    assert {(k, a) for k in (Merge, Split) for a in ("axis", "inner", "size")} <= seen


def _text(operation: Operation) -> str:
    from fieldjax.ir.key import canonical

    return canonical(operation)


def _many_operations() -> list[Operation]:
    from tests.model.models import heights, mesh, smooth

    found: dict[Any, Operation] = {}

    def collect(graph: Graph) -> None:
        for node in graph.nodes:
            operation = node.operation
            if node.inputs:
                found.setdefault((type(operation), str(operation)), operation)
            for attribute in dataclasses.fields(operation):  # type: ignore[arg-type]
                inner = getattr(operation, attribute.name)
                if isinstance(inner, Graph):
                    collect(inner)

    K = fj.Dimension("K", DimensionKind.VERTICAL)

    @fj.scan_operator(axis=K, init=0.0)
    def total(above, f):
        return above + f

    @fj.field_operator
    def shifted(f):
        return fj.concat_where(K == 0, f, f(K - 1)) + fj.broadcast(1.0, f.dims)

    with fj.record() as model:
        m, f = model.input("mesh", mesh()), model.input("f", heights())
        column = model.input("c", fj.as_field({K: 4}, np.ones(4)))
        x = model.input("x", X)
        g = smooth(f, 0.5, offset_provider=m)
        y = fj.loop(lambda c, i: layer(c, i * 0.1, fj), x, 3)
        z = fj.implicit(lambda u: u * u - y, y)
        _, emitted = fj.loop(lambda c, i: (c * 0.5, c), x, 5, checkpoint=2)
        s = (
            fj.sum(emitted * emitted)
            + fj.sum(g)
            + fj.sum(shifted(total(column)))
            + fj.sum(z[1:])
            + fj.sum(x.astype("float32")).astype("float64")
        )
        s = s + fj.sum(emitted * emitted)
        model.output("s", s)
        for n, w in enumerate((f, column, x)):
            model.output(f"d{n}", fj.derivative(s, w))
        model.output("J", fj.derivative(y, x))
    collect(model.graph)
    return list(found.values())


def test_s2_equal_keys_give_equal_jaxprs() -> None:
    def jaxpr(model: fj.Model) -> str:
        return str(jax.make_jaxpr(lambda x, p: list(model.run(x=x, p=p).values()))(X, P))

    first, second = (_random_like(7, name) for name in ("a", "b"))
    assert structural_key(first.graph) == structural_key(second.graph)
    assert jaxpr(first) == jaxpr(second)


def _random_like(layers: int, name: str) -> fj.Model:
    model, values, p = chain(layers)
    model.output(name, values[-1] * p)
    return model


def custom(name: str, factor: float) -> Any:
    return fj.custom_operation(
        lambda x: factor * x, vjp=lambda i, c: (factor * c[0],), host=True, like=np.zeros(5), name=name
    )


@pytest.mark.parametrize("assume", [False, True])
def test_s4_custom_operations_match_only_when_that_is_asserted(assume: bool) -> None:
    one, other, third = custom("twice", 2.0), custom("twice", 2.0), custom("thrice", 3.0)
    with fj.record() as model:
        x = model.input("x", X)
        a, b, c = fj.sin(one(x)), fj.sin(other(x)), fj.sin(third(x))
        ops = [fj.compress(x, v, assume_custom_ops_match=assume) for v in (a, b, c)]
        model.output("b", b)
    assert (ops[0].body is ops[1].body) == assume
    assert ops[0].body is not ops[2].body
    np.testing.assert_allclose(model.run()["b"], np.sin(2 * X))


@pytest.mark.parametrize("assume", [False, True])
def test_s4_repeats_with_custom_operations(assume: bool) -> None:
    double = custom("double", 2.0)
    with fj.record() as model:
        values = [model.input("x", X)]
        for _ in range(4):
            values.append(fj.sin(double(values[-1])))
        op = fj.compress(values[0], values[1], find_repeats=True, assume_custom_ops_match=assume)
    assert len(op.repeats) == (3 if assume else 0)


def test_s5_share_with_asserts_that_two_regions_are_the_same() -> None:
    first, second = custom("a", 2.0), custom("a", 2.0)
    with fj.record() as model:
        x = model.input("x", X)
        a, b, c = fj.sin(first(x)), fj.sin(second(x)), fj.cos(first(x))
        one = fj.compress(x, a, name="one")
        two = fj.compress(x, b, share_with=one)
        assert two.body is one.body
        before = list(model.nodes)
        with pytest.raises(fj.FieldjaxError, match="isn't the same as one") as caught:
            fj.compress(x, c, share_with=one)
        assert "sin" in str(caught.value) and "cos" in str(caught.value)
        assert list(model.nodes) == before


def test_s5_share_with_a_region_that_is_inside_of_another_now() -> None:
    model, values, p = chain(6)
    one = fj.compress([values[0], p], values[1], name="one")
    fj.compress([values[0], p], values[2], name="around")
    two = fj.compress([values[2], p], values[3], share_with=one)
    assert two.body is one.body
    wide, others, q = chain(6, width=7)
    with refused("an input lives on .*5.* there, on .*7.* here"):
        fj.compress([others[0], q], others[1], share_with=one)
    model.output("y", values[6])
    np.testing.assert_allclose(model.run()["y"], chain_reference(6)(X, P), rtol=1e-14)


@pytest.mark.parametrize(("size", "repeats"), [(1, 5), (2, 2), (3, 1), (4, 0)])
def test_s6_repeats_along_a_chain_of_six(size: int, repeats: int) -> None:
    model, values, p = chain(6)
    op = fj.compress([values[0], p], values[size], find_repeats=True)
    assert len(op.repeats) == repeats
    model.output("y", values[-1])
    model.output("by p", fj.derivative(fj.sum(values[-1]), p))
    result = model.run()
    np.testing.assert_allclose(result["y"], chain_reference(6)(X, P), rtol=1e-14)
    want = jax.grad(lambda p: jnp.sum(chain_reference(6)(X, p)))(P)
    np.testing.assert_allclose(result["by p"], want, rtol=1e-13)


def test_s6_the_given_region_comes_first_wherever_it_is() -> None:
    model, values, p = chain(6)
    op = fj.compress([values[3], p], values[5], find_repeats=True)
    assert len(op.repeats) == 1
    model.output("y", values[-1])
    np.testing.assert_allclose(model.run()["y"], chain_reference(6)(X, P), rtol=1e-14)


def test_s6_copies_whose_inner_values_escape_are_skipped_and_independent_paths_found() -> None:
    with fj.record() as model:
        x, p = model.input("x", X), model.input("p", P)
        paths = []
        for factor in (1.0, 2.0, 3.0, 4.0):
            inner = fj.sin(x * factor * p)
            paths.append((inner, fj.tanh(inner) + 0.5))
        model.output("escapes", paths[2][0])
        for n, (_, y) in enumerate(paths):
            model.output(f"y{n}", y)
        start = paths[0][0].value.node.inputs[0]
        op = fj.compress(model.variable(start), paths[0][1], find_repeats=True)
    assert len(op.repeats) == 2
    result = model.run()
    for n in range(4):
        np.testing.assert_allclose(result[f"y{n}"], jnp.tanh(jnp.sin(X * (n + 1.0) * P)) + 0.5)


def test_s6_a_copy_that_would_run_before_itself_is_skipped() -> None:
    """The second copy's other input depends on what is inside of it."""
    with fj.record() as model:
        x, p = model.input("x", X), model.input("p", P)

        def pair(a: Any, between: Any) -> tuple[Any, Any]:
            u = fj.sin(a)
            v = between(u)
            return u, fj.cos(u) * v

        u0, y0 = pair(x, lambda u: p)
        u1, y1 = pair(p, lambda u: fj.exp(u) + x)
        model.output("u0", u0)
        model.output("u1", u1)
        model.output("y0", y0)
        model.output("y1", y1)
        op = fj.compress([x, p], [u0, y0], find_repeats=True)
    assert op.repeats == ()
    np.testing.assert_allclose(model.run()["y1"], jnp.cos(jnp.sin(P)) * (jnp.exp(jnp.sin(P)) + X))


def test_s6_several_outputs() -> None:
    with fj.record() as model:
        x, p = model.input("x", X), model.input("p", P)
        h, outputs = x, []
        for _ in range(4):
            a = fj.sin(h * p)
            b = fj.cos(h) + p
            outputs.append((h, a, b))
            h = a * b
        op = fj.compress([outputs[0][0], p], [outputs[0][1], outputs[0][2]], find_repeats=True)
        model.output("h", h)
    assert len(op.repeats) == 3
    want = X
    for _ in range(4):
        want = jnp.sin(want * P) * (jnp.cos(want) + P)
    np.testing.assert_allclose(model.run()["h"], want, rtol=1e-14)


def test_s7_derivatives_are_shared_by_seeds_and_inputs_and_higher_orders_start_from_them() -> None:
    fresh()
    model, values, ops, p = blocks(4, 1, mode="segment")
    s = fj.sum(values[-1])
    first = fj.derivative(s, p)
    bodies = {n.operation.body for n in model.nodes if isinstance(n.operation, Region)}
    fj.derivative(fj.sum(values[-1]) * 2.0, p)
    assert {n.operation.body for n in model.nodes if isinstance(n.operation, Region)} == bodies
    assert len(bodies) == 3  # forward; cotangents of both inputs; of the parameter alone, where the chain begins
    second = fj.derivative(first, p)
    model.output("second", second)
    result = model.run()
    sums = lambda p: jnp.sum(chain_reference(4)(X, p))  # noqa: E731
    np.testing.assert_allclose(result["second"], jax.grad(jax.grad(sums))(P), rtol=1e-11)
    assert max(traces(model)) == 1


def test_s8_a_report_shows_what_is_shared() -> None:
    fresh()
    model, values, ops, p = blocks(6, 2, mode="segment", name="block")
    model.output("y", values[-1] * 2.0)
    model.run()
    report = model.report()
    assert (report.regions, report.compiled, report.outside) == (3, 1, 1)
    assert report.rows[0].operations == 8
    lines = str(report).splitlines()
    assert lines[1].split()[:4] == ["block", "3", "8", "1"]
    assert lines[-1] == "1 operations are in no region"


@given(st.integers(0, 2**32 - 1))
def test_random_regions_match_themselves_in_another_model_only(seed: int) -> None:
    """The same random program recorded twice shares; with one function changed it doesn't."""

    def build(change: bool) -> Any:
        rng = np.random.default_rng(seed)
        with fj.record() as model:
            values = [model.input("x", X), model.input("p", P)]
            length = int(rng.integers(2, 8))
            swapped = int(rng.integers(0, length))
            for n in range(length):
                a, b = (values[int(rng.integers(0, len(values)))] for _ in range(2))
                function = [fj.sin, fj.cos, fj.tanh, fj.exp][(int(rng.integers(0, 4)) + (change and n == swapped)) % 4]
                values.append(function(a) * b + values[-1])
            return fj.compress(values[:2], values[-1], intermediates="used").body, model

    (one, m1), (other, m2), (changed, m3) = build(False), build(False), build(True)
    assert one is other is not changed
    del m1, m2, m3


def test_bodies_are_forgotten_with_their_models() -> None:
    gc.collect()
    before = len(_bodies)
    model, *_ = blocks(4, 2)
    del model, _
    gc.collect()
    assert len(_bodies) <= before
