"""Recorded derivatives, to any order and in both directions, against JAX's of the same function.

The requirement that a test shows (D1, D3, ...) is the one of the specification of `compress`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fieldjax as fj
from fieldjax.domain import Domain
from fieldjax.ir.graph import Graph
from fieldjax.ir.operations.loop import Loop
from fieldjax.ir.simplify import simplify
from fieldjax.model.loops import STEPS
from fieldjax.model.running import places_of
from tests.model.models import (
    E2C,
    Cell,
    E2CDim,
    Edge,
    chain,
    chain_reference,
    heights,
    layer,
    mesh,
    smooth,
    smooth_reference,
)
from tests.refusals import refused

BACKENDS = pytest.mark.parametrize("backend", ["jax", None], ids=["compiled", "op by op"])
X, P = jnp.linspace(0.1, 1.0, 5), jnp.asarray(0.7)


def total(layers: int) -> Callable[[Any, Any], jax.Array]:
    run = chain_reference(layers)
    return lambda x, p: jnp.sum(run(x, p))


@BACKENDS
def test_d1_reverse_mode_of_scalars_and_arrays(backend: Any) -> None:
    model, values, p = chain(3)
    y, x = values[-1], values[0]
    s = fj.sum(y)
    found = {
        "s by x": fj.derivative(s, x),
        "s by p": fj.derivative(s, p),
        "y by x": fj.derivative(y, x),
        "y by x at once": fj.derivative(y, x, loop=False),
        "y by p": fj.derivative(y, p),
        "diagonal": fj.derivative(y, x, elementwise=True),
        "hessian": fj.hessian(s, x),
        "hessian at once": fj.hessian(s, x, loop=False),
        "mixed": fj.derivative(fj.derivative(s, p), x),
    }
    run, sums = chain_reference(3), total(3)
    jacobian = jax.jacobian(run)(X, P)
    want = {
        "s by x": jax.grad(sums)(X, P),
        "s by p": jax.grad(sums, 1)(X, P),
        "y by x": jacobian,
        "y by x at once": jacobian,
        "y by p": jax.jacobian(run, 1)(X, P),
        "diagonal": jnp.diag(jacobian),
        "hessian": jax.hessian(sums)(X, P),
        "hessian at once": jax.hessian(sums)(X, P),
        "mixed": jax.grad(jax.grad(sums, 1))(X, P),
    }
    for name, value in found.items():
        assert value.shape == want[name].shape, name
        model.output(name, value)
    result = model.run(backend)
    for name, value in want.items():
        np.testing.assert_allclose(result[name], value, rtol=1e-12, atol=1e-14, err_msg=name)


@BACKENDS
def test_d1_sums_of_sums_in_two_steps(backend: Any) -> None:
    """A cotangent that is one number stands for an array, which then meets one of more axes."""
    w = jnp.linspace(0.1, 1.0, 12).reshape(3, 4)

    def run(m: Any, sin: Any, w: Any, axis: int) -> Any:
        return m.sum(m.sum(sin(w), axis=axis) * 2.0)

    with fj.record() as model:
        x = model.input("w", w)
        for axis in (0, 1):
            s = run(fj, fj.sin, x, axis)
            model.output(f"by w, {axis}", fj.derivative(s, x))
            model.output(f"twice, {axis}", fj.hessian(s, x, loop=False))
            model.output(f"along, {axis}", fj.jvp(s, x, x))
    result = model.run(backend)
    for axis in (0, 1):
        want = lambda w, axis=axis: run(jnp, jnp.sin, w, axis)  # noqa: E731
        np.testing.assert_allclose(result[f"by w, {axis}"], jax.grad(want)(w), rtol=1e-14)
        np.testing.assert_allclose(result[f"twice, {axis}"], jax.hessian(want)(w), rtol=1e-13, atol=1e-15)
        np.testing.assert_allclose(result[f"along, {axis}"], jax.jvp(want, (w,), (w,))[1], rtol=1e-14)


def test_d1_lists_give_dicts_and_no_path_is_zero() -> None:
    with fj.record() as model:
        x, y, z = (model.input(n, v) for n, v in (("x", 2.0), ("y", 3.0), ("z", np.ones(2))))
        a, b = x * y, x * x
        rows = {
            "by two": fj.derivative(a, [x, y]),
            "of two": fj.derivative([a, b], x),
            "all": fj.derivative([a, b], [x, z]),
        }
        assert list(rows["by two"]) == [x, y] and list(rows["of two"]) == [a, b]
        assert list(rows["all"]) == [(a, x), (a, z), (b, x), (b, z)]
        for name, found in rows.items():
            for n, value in enumerate(found.values()):
                model.output(f"{name} {n}", value)
    result = {name: np.asarray(value).tolist() for name, value in model.run().items()}
    assert [result[f"by two {n}"] for n in range(2)] == [3.0, 2.0]
    assert [result[f"of two {n}"] for n in range(2)] == [3.0, 4.0]
    assert [result[f"all {n}"] for n in range(4)] == [3.0, [0.0, 0.0], 4.0, [0.0, 0.0]]


@BACKENDS
def test_d1_forward_mode_and_the_dot_product(backend: Any) -> None:
    model, values, p = chain(3)
    y, x = values[-1], values[0]
    direction, weight = np.cos(np.arange(5.0)), np.sin(1 + np.arange(5.0))
    d, w = model.input("d", direction), model.input("w", weight)
    model.output("tangent", fj.jvp(y, x, d))
    model.output("both", fj.jvp(y, [x, p], [d, 2.0]))
    model.output("cotangent", fj.vjp(y, w, x))
    model.output("second", fj.jvp(fj.derivative(fj.sum(y), x), x, d))
    result = model.run(backend)
    run = chain_reference(3)
    np.testing.assert_allclose(result["tangent"], jax.jvp(lambda x: run(x, P), (X,), (direction,))[1], rtol=1e-13)
    np.testing.assert_allclose(result["both"], jax.jvp(run, (X, P), (direction, jnp.asarray(2.0)))[1], rtol=1e-13)
    np.testing.assert_allclose(result["tangent"] @ weight, direction @ result["cotangent"], rtol=1e-13)
    hessian = jax.hessian(total(3))(X, P)
    np.testing.assert_allclose(result["second"], hessian @ direction, rtol=1e-12)


SEEDS: dict[str, tuple[Any, str]] = {
    "too long": (lambda x, y: fj.jvp(y, x, jnp.ones(7)), r"a seed of .* is like it, or a scalar; not .*float64\[7\]"),
    "one element": (lambda x, y: fj.vjp(y, jnp.ones(1), x), "a seed of .* is like it, or a scalar"),
    "more axes": (lambda x, y: fj.jvp(y, x, jnp.ones((2, 5))), "a seed of .* is like it, or a scalar"),
    "too few": (lambda x, y: fj.jvp(y, [x, y], [x]), "there are 2 values for 1 seeds"),
    "too many": (lambda x, y: fj.vjp(y, [y, y], x), "there are 1 outputs for 2 seeds"),
    "of nothing": (lambda x, y: fj.derivative([], x), "no value is given to differentiate"),
    "by nothing": (lambda x, y: fj.derivative(y, []), "no value is given to differentiate"),
}


@pytest.mark.parametrize("name", SEEDS)
def test_errors_of_seeds(name: str) -> None:
    do, message = SEEDS[name]
    model, values, _ = chain(2)
    with refused(message) as caught:
        do(values[0], values[2])
    assert "test_derivatives.py" in str(caught.value)
    model.output("by x", fj.jvp(values[2], values[0], 1.0))
    assert model.run()["by x"].shape == (5,)


@pytest.mark.parametrize("mode", [None, "segment", "inline"], ids=str)
def test_what_stands_for_a_skip_does_not_move(mode: str | None) -> None:
    """Tangents are JAX's, and transposes of the cotangents, also where a neighbour is missing."""

    @fj.field_operator
    def difference(p: Any, w: Any) -> Any:
        return p(E2C[1]) * w[E2CDim(1)] - p(E2C[0]) * w[E2CDim(0)]

    sparse = {Edge: 9, E2CDim: 2}
    arguments = heights(), fj.as_field(sparse, jnp.linspace(1.0, 2.0, 18).reshape(9, 2))
    along = fj.as_field({Cell: 6}, jnp.arange(1.0, 7.0)), fj.as_field(sparse, jnp.arange(2.0, 20.0).reshape(9, 2))
    weights = jnp.linspace(-1.0, 3.0, 9)
    with fj.record() as model:
        m, p, w = model.input("mesh", mesh()), model.input("p", arguments[0]), model.input("w", arguments[1])
        y = difference(p, w, offset_provider=m)
        if mode is not None:
            fj.compress([p, w], y, mode=mode)
        model.output("tangent", fj.jvp(y, [p, w], along))
        cotangents = fj.vjp(y, fj.as_field({Edge: 9}, weights), [p, w])
        model.output("by p", cotangents[p])
        model.output("by w", cotangents[w])
    result = model.run()
    tangent = jax.jvp(lambda *a: difference(*a, offset_provider=mesh()).ndarray, arguments, along)[1]
    np.testing.assert_allclose(result["tangent"].asnumpy(), tangent, rtol=1e-14, atol=1e-15)
    back = sum(jnp.vdot(d.ndarray, result[n].ndarray) for d, n in zip(along, ("by p", "by w"), strict=True))
    np.testing.assert_allclose(back, jnp.vdot(tangent, weights), rtol=1e-13)


@BACKENDS
def test_fields_on_meshes(backend: Any) -> None:
    with fj.record() as model:
        m, f, a = model.input("mesh", mesh()), model.input("f", heights()), model.input("a", 0.5)
        g = smooth(smooth(f, a, offset_provider=m), a, offset_provider=m)
        s = fj.sum(g * g)
        model.output("by f", fj.derivative(s, f))
        model.output("by a", fj.derivative(s, a))
        model.output("jacobian", fj.derivative(g, f))
        model.output("hessian", fj.hessian(s, f))

    def run(x: Any, a: Any) -> jax.Array:
        return smooth_reference(smooth_reference(x, a), a)

    def sums(x: Any, a: Any) -> jax.Array:
        return jnp.sum(run(x, a) ** 2)

    x, result = jnp.linspace(0.2, 1.0, 6), model.run(backend)
    assert result["by f"].domain == fj.domain({Cell: 6})
    np.testing.assert_allclose(result["by f"].asnumpy(), jax.grad(sums)(x, 0.5), rtol=1e-12)
    np.testing.assert_allclose(result["by a"], jax.grad(sums, 1)(x, 0.5), rtol=1e-12)
    np.testing.assert_allclose(result["jacobian"], jax.jacobian(run)(x, 0.5), rtol=1e-12)
    np.testing.assert_allclose(result["hessian"], jax.hessian(sums)(x, 0.5), rtol=1e-11)


@BACKENDS
@pytest.mark.parametrize("checkpoint", [None, 1, 3, 7, (4, 2, 1)], ids=str)
def test_d3_loops(backend: Any, checkpoint: Any) -> None:
    def body(m: Any) -> Callable[[Any, Any, Any], Any]:
        return lambda c, p, i: layer(c, p, m) + 0.1 * i

    with fj.record() as model:
        x, p = model.input("x", X), model.input("p", P)
        last = fj.loop(lambda c, i: body(fj)(c, p, i), x, 7, checkpoint=checkpoint)
        s = fj.sum(last)
        model.output("value", last)
        model.output("by x", fj.derivative(s, x))
        model.output("by p", fj.derivative(s, p))
        model.output("tangent", fj.jvp(last, p, 1.0))
        model.output("hessian", fj.hessian(s, x))
        model.output("second", fj.derivative(fj.derivative(s, p), p))

    def run(x: Any, p: Any) -> jax.Array:
        for i in range(7):
            x = body(jnp)(x, p, i)
        return x

    def sums(x: Any, p: Any) -> jax.Array:
        return jnp.sum(run(x, p))

    result = model.run(backend)
    want = {
        "value": run(X, P),
        "by x": jax.grad(sums)(X, P),
        "by p": jax.grad(sums, 1)(X, P),
        "tangent": jax.jacobian(run, 1)(X, P),
        "hessian": jax.hessian(sums)(X, P),
        "second": jax.grad(jax.grad(sums, 1), 1)(X, P),
    }
    for name, value in want.items():
        np.testing.assert_allclose(result[name], value, rtol=1e-11, atol=1e-14, err_msg=name)


@BACKENDS
def test_d3_loops_over_fields_that_emit(backend: Any) -> None:
    with fj.record() as model:
        m, f, a = model.input("mesh", mesh()), model.input("f", heights()), model.input("a", 0.3)
        last, (history, sums) = fj.loop(lambda c, i: (smooth(c, a, offset_provider=m), (c * 2.0, fj.sum(c) * i)), f, 4)
        loss = fj.sum(history * history) + fj.sum(sums) + fj.sum(last)
        model.output("history", history)
        model.output("sums", sums)
        model.output("by f", fj.derivative(loss, f))
        model.output("by a", fj.derivative(loss, a))

    def run(x: Any, a: Any) -> Any:
        states, sums = [], []
        for i in range(4):
            states.append(2 * x)
            sums.append(jnp.sum(x) * i)
            x = smooth_reference(x, a)
        return jnp.stack(states), jnp.stack(sums), x

    def loss_of(x: Any, a: Any) -> jax.Array:
        states, sums, last = run(x, a)
        return jnp.sum(states**2) + jnp.sum(sums) + jnp.sum(last)

    x, result = jnp.linspace(0.2, 1.0, 6), model.run(backend)
    step = fj.Dimension("step")
    assert result["history"].domain == fj.domain({Cell: 6, step: 4})
    np.testing.assert_allclose(result["history"].asnumpy(), run(x, 0.3)[0].T, rtol=1e-13)
    np.testing.assert_allclose(result["sums"], run(x, 0.3)[1], rtol=1e-13)
    np.testing.assert_allclose(result["by f"].asnumpy(), jax.grad(loss_of)(x, 0.3), rtol=1e-12)
    np.testing.assert_allclose(result["by a"], jax.grad(loss_of, 1)(x, 0.3), rtol=1e-12)


def emitting(m: Any, smooth: Any, loop: Callable[..., Any], f: Any, x: Any) -> dict[str, Any]:
    """Seven steps that carry a field and an array, and emit a field, an array, a scalar and an integer."""

    def step(c: Any, i: Any) -> Any:
        field, array = c["field"], c["array"]
        total = m.sum(array * array)
        carry = {"field": smooth(field, 0.1 * total), "array": layer(array, 0.5, m) + 0.1 * i}
        return carry, {"field": field * total, "array": array * i, "scalar": m.sum(field) * total, "number": i * 2}

    last, stacks = loop(step, {"field": f, "array": x}, 7)
    return {"last": m.sum(last["field"]) * m.sum(last["array"]), **stacks}


def loss_of(m: Any, found: dict[str, Any]) -> Any:
    """A scalar to which some steps of a stack don't contribute."""
    part = found["array"][2:5]
    return found["last"] + m.sum(m.sin(found["field"])) + m.sum(part * part) + m.sum(m.cos(found["scalar"]))


def unrolled(step: Callable[[Any, Any], Any], carry: Any, length: int) -> Any:
    rows = []
    for i in range(length):
        carry, row = step(carry, i)
        rows.append(row)
    return carry, jax.tree.map(lambda *x: jnp.stack([jnp.asarray(a) for a in x]), *rows)


@BACKENDS
@pytest.mark.slow
@pytest.mark.parametrize(
    ("checkpoint", "region"), [(2, False), (3, True), ((5, 3), False)], ids=["2", "3 in a region", "5 and 3"]
)
def test_d3_loops_with_checkpoints_emit(backend: Any, checkpoint: Any, region: bool) -> None:
    with fj.record() as model:
        mesh_, f, x = model.input("mesh", mesh()), model.input("f", heights()), model.input("x", X)
        found = emitting(
            fj,
            lambda f, a: smooth(f, a, offset_provider=mesh_),
            lambda body, init, length: fj.loop(body, init, length, checkpoint=checkpoint),
            f,
            x,
        )
        if region:
            fj.compress([f, x], list(found.values()))
        loss = loss_of(fj, found)
        for name, value in found.items():
            model.output(name, value)
        model.output("by f", fj.derivative(loss, f))
        model.output("by x", fj.derivative(loss, x))
        model.output("hessian", fj.hessian(loss, x))
        model.output("tangent", fj.jvp(found["scalar"], x, 1.0))
        model.output("jacobian", fj.derivative(found["scalar"], x))

    def run(f: Any, x: Any) -> dict[str, Any]:
        return emitting(jnp, smooth_reference, unrolled, f, x)

    def loss_reference(f: Any, x: Any) -> jax.Array:
        return loss_of(jnp, run(f, x))

    f, result = jnp.linspace(0.2, 1.0, 6), model.run(backend)
    jacobian = jax.jacobian(lambda x: run(f, x)["scalar"])(X)
    want = {
        **run(f, X),
        "by f": jax.grad(loss_reference)(f, X),
        "by x": jax.grad(loss_reference, 1)(f, X),
        "hessian": jax.hessian(loss_reference, 1)(f, X),
        "tangent": jacobian.sum(1),
        "jacobian": jacobian,
    }
    assert result["field"].domain == fj.domain({Cell: 6, fj.Dimension("step"): 7})
    assert result["number"].tolist() == [0, 2, 4, 6, 8, 10, 12]
    result["field"] = result["field"].asnumpy().T
    result["by f"] = result["by f"].asnumpy()
    for name, value in want.items():
        np.testing.assert_allclose(result[name], value, rtol=1e-10, atol=1e-11, err_msg=name)


def loops_in(graph: Graph, depth: int = 0) -> list[tuple[int, Loop]]:
    """Every loop of a graph and of the graphs inside of it, with how deep inside it is."""
    found: list[tuple[int, Loop]] = []
    for operation in (node.operation for node in graph.nodes):
        found += [(depth, operation)] if isinstance(operation, Loop) else []
        for body in (getattr(operation, a.name) for a in dataclasses.fields(operation)):  # type: ignore[arg-type]
            found += loops_in(body, depth + isinstance(operation, Loop)) if isinstance(body, Graph) else []
    return found


def run_layers(x: Any, count: int) -> Any:
    """Layers, and the sums before each."""
    sums = []
    for _ in range(count):
        sums.append(jnp.sum(x))
        x = layer(x, 0.5, jnp)
    return x, jnp.stack(sums)


@pytest.mark.parametrize(
    ("checkpoint", "lengths"), [(None, [{14}]), (4, [{3, 2}, {4}]), ((6, 2), [{2}, {3}, {2}])], ids=str
)
def test_d3_loops_with_checkpoints_keep_some_carries(checkpoint: Any, lengths: list[set[int]]) -> None:
    """The derivative's stacks of carries have an element for each segment, however much is emitted."""
    with fj.record() as model:
        x = model.input("x", X)
        last, sums = fj.loop(lambda c, i: (layer(c, 0.5, fj), fj.sum(c) * i), x, 14, checkpoint=checkpoint)
        model.output("slope", fj.derivative(fj.sum(last) + fj.sum(sums * sums), x))

    def loss(x: Any) -> jax.Array:
        last, sums = run_layers(x, 14)
        return jnp.sum(last) + jnp.sum((sums * jnp.arange(14)) ** 2)

    np.testing.assert_allclose(model.run()["slope"], jax.grad(loss)(X), rtol=1e-12)
    loops = loops_in(model.graph)
    for depth, length in enumerate(lengths):
        assert {loop.length for d, loop in loops if d == depth} == length
    assert max(depth for depth, _ in loops) == len(lengths) - 1
    places = places_of(model.graph, model.data)
    stacks = [p for v, p in places.items() if STEPS in v.dims and x.value.dims[0] in v.dims]
    assert {len(p.range_of(STEPS)) for p in stacks if isinstance(p, Domain)} == lengths[0]


@pytest.mark.parametrize("wrapped", ["plain", "region", "derivative of a region", "body"])
def test_d3_a_loop_and_its_derivative_take_each_step_once(wrapped: str) -> None:
    def both(x: Any) -> Any:
        last, sums = fj.loop(lambda c: (layer(c, 0.5, fj), fj.sum(c)), x, 7)
        s = fj.sum(last) + fj.sum(sums * sums)
        if wrapped == "derivative of a region":
            s = fj.sin(s)
            fj.compress(x, [s, last], mode="inline")
        return s, last, sums, fj.derivative(s, x)

    with fj.record() as model:
        x = model.input("x", X)
        if wrapped == "body":
            _, stacks = fj.loop(lambda c: (c, both(c)), x, 1)
            found = [stack[0] for stack in stacks]
        else:
            found = list(both(x))
            if wrapped == "region":
                fj.compress(x, found)
        names = ["s", "slope"] if wrapped == "derivative of a region" else ["s", "last", "sums", "slope"]
        for name, value in zip(names, (found[0], found[3]) if len(names) == 2 else found, strict=True):
            model.output(name, value)

    def sums_of(x: Any) -> jax.Array:
        last, sums = run_layers(x, 7)
        s = jnp.sum(last) + jnp.sum(sums**2)
        return jnp.sin(s) if wrapped == "derivative of a region" else s

    result, (last, sums) = model.run(), run_layers(X, 7)
    for name, value in {"s": sums_of(X), "last": last, "sums": sums, "slope": jax.grad(sums_of)(X)}.items():
        if name in names:
            np.testing.assert_allclose(result[name], value, rtol=1e-12, err_msg=name)
    directions = sorted(loop.reverse for _, loop in loops_in(model.graph) if loop.length == 7)
    # The derivative of a region computes again what it needs: for the cosine, and for the carries, in one loop.
    assert directions == ([False, False, True] if wrapped == "derivative of a region" else [False, True])
    if wrapped == "plain":
        (text,) = model.compile().text(compiled=True)
        assert text.count(" while(") == 2


def test_d3_loops_that_differ_stay_apart() -> None:
    with fj.record() as model:
        x = model.input("x", X)
        for name, length, factor in (("a", 3, 0.5), ("b", 4, 0.5), ("c", 3, 0.7)):
            model.output(name, fj.loop(lambda c, factor=factor: c * factor, x, length))
    graph = model.graph
    assert len(loops_in(graph)) == 3
    assert simplify(graph) is graph
    result = model.run()
    for name, factor in (("a", 0.5**3), ("b", 0.5**4), ("c", 0.7**3)):
        np.testing.assert_allclose(result[name], X * factor, rtol=1e-14)


def test_cotangents_of_a_part_are_those_of_the_part() -> None:
    """What the transposed derivative puts on the whole array isn't the weight's."""
    with fj.record() as model:
        x, w = model.input("x", X), model.input("w", 2.0)
        pulled = fj.vjp(fj.sum(x[1:]), w, x)
        model.output("slope", fj.derivative(fj.sum(pulled), w))
    assert model.run()["slope"] == 4.0


def test_d3_loops_in_loops_and_structured_carries() -> None:
    with fj.record() as model:
        x = model.input("x", X)
        outer = fj.loop(
            lambda c, i: {"a": fj.loop(lambda d, j: fj.sin(d) + 0.1 * i * j, c["a"], 3), "b": c["b"] + c["a"]},
            {"a": x, "b": x * 0.0},
            2,
        )
        model.output("b", outer["b"])
        model.output("slope", fj.derivative(fj.sum(outer["b"]), x))

    def run(x: Any) -> jax.Array:
        a, b = x, 0 * x
        for i in range(2):
            start = a
            for j in range(3):
                a = jnp.sin(a) + 0.1 * i * j
            b = b + start
        return b

    result = model.run()
    np.testing.assert_allclose(result["b"], run(X), rtol=1e-13)
    np.testing.assert_allclose(result["slope"], jax.grad(lambda x: jnp.sum(run(x)))(X), rtol=1e-12)


LOOP_ERRORS: dict[str, tuple[Any, str]] = {
    "nothing recorded": (lambda x: fj.loop(lambda c: c, 1.0, 3), "no value of a recorded model"),
    "length": (lambda x: fj.loop(lambda c: c, x, 0), "`length` is a positive integer, not 0"),
    "structure": (lambda x: fj.loop(lambda c: (c, c, c), x, 3), "a carry of another structure"),
    "dtype": (lambda x: fj.loop(lambda c: c.astype("float32"), x, 3), "begins as float64.*becomes float32"),
    "domain": (lambda x: fj.loop(lambda c: c[1:], x, 3), "changes its domain from step to step"),
    "checkpoint": (
        lambda x: fj.loop(lambda c: c, x, 3, checkpoint=0),
        "`checkpoint` is a positive integer, or several from the largest to the smallest, not 0",
    ),
    "checkpoints": (
        lambda x: fj.loop(lambda c: c, x, 9, checkpoint=(2, 4)),
        r"the largest to the smallest, not \(2, 4\)",
    ),
    "equal checkpoints": (lambda x: fj.loop(lambda c: c, x, 9, checkpoint=[3, 3]), r"not \[3, 3\]"),
}


@pytest.mark.parametrize("name", LOOP_ERRORS)
def test_errors_of_loops(name: str) -> None:
    do, message = LOOP_ERRORS[name]
    with fj.record() as model:
        x = model.input("x", X)
    before = list(model.nodes)
    with refused(message):
        do(x)
    assert list(model.nodes) == before


@BACKENDS
@pytest.mark.parametrize("solver", ["newton", "fixed point", "own"])
def test_d3_implicit_values_follow_their_equation(backend: Any, solver: str) -> None:
    def own(residual: Any, start: Any) -> Any:
        return jax.lax.fori_loop(0, 200, lambda _, y: y - 0.5 * residual(y), start)

    with fj.record() as model:
        x, p = model.input("x", X), model.input("p", P)
        root = fj.implicit(
            lambda y: y - (0.4 * fj.cos(y * p) + x), x, solver=own if solver == "own" else solver, steps=200
        )
        s = fj.sum(root * root)
        model.output("root", root)
        model.output("jacobian", fj.derivative(root, x))
        model.output("by p", fj.derivative(s, p))
        model.output("tangent", fj.jvp(root, p, 1.0))
        model.output("second", fj.derivative(fj.derivative(s, p), p))
        model.output("hessian", fj.hessian(s, x))

    def solve(x: Any, p: Any) -> jax.Array:
        y = x
        for _ in range(60):
            y = 0.4 * jnp.cos(y * p) + x
        return y

    def sums(x: Any, p: Any) -> jax.Array:
        return jnp.sum(solve(x, p) ** 2)

    result = model.run(backend)
    want = {
        "root": solve(X, P),
        "jacobian": jax.jacobian(solve)(X, P),
        "by p": jax.grad(sums, 1)(X, P),
        "tangent": jax.jacobian(solve, 1)(X, P),
        "second": jax.grad(jax.grad(sums, 1), 1)(X, P),
        "hessian": jax.hessian(sums)(X, P),
    }
    for name, value in want.items():
        np.testing.assert_allclose(result[name], value, rtol=1e-9, atol=1e-12, err_msg=name)


def test_an_equation_that_is_not_solved_gives_nan() -> None:
    with fj.record() as model:
        x = model.input("x", 1.0)
        model.output("root", fj.implicit(lambda y: y * y + x, x))
        model.output("slow", fj.implicit(lambda y: (y - x) * 0.001 + 1.0, x, solver="fixed point", steps=3))
    result = model.run()
    assert np.isnan(result["root"]) and np.isnan(result["slow"])


def test_an_unknown_solver_is_an_error() -> None:
    with fj.record() as model:
        x = model.input("x", 1.0)
        with pytest.raises(fj.FieldjaxError, match="`solver` is one of 'newton', 'fixed point' or a function"):
            fj.implicit(lambda y: y - x, x, solver="magic")


def host(x: np.ndarray, p: np.ndarray) -> np.ndarray:
    assert isinstance(x, np.ndarray)
    return np.sin(x) * p


RULES: dict[str, Any] = {
    "both": {
        "vjp": lambda i, c: (np.cos(i[0]) * i[1] * c[0], (np.sin(i[0]) * c[0]).sum()),
        "jvp": lambda i, t: (np.cos(i[0]) * i[1] * t[0] + np.sin(i[0]) * t[1],),
    },
    "jacobian": {"jacobian": lambda x, p: (np.diag(np.cos(x)) * p, np.sin(x))},
}


@BACKENDS
@pytest.mark.parametrize("rule", RULES)
def test_d3_host_operations_use_their_own_derivatives(backend: Any, rule: str) -> None:
    operation = fj.custom_operation(host, host=True, like=np.zeros(5), **RULES[rule])
    with fj.record() as model:
        x, p = model.input("x", X), model.input("p", P)
        y = operation(x, p)
        s = fj.sum(y * y)
        model.output("y", y)
        model.output("by x", fj.derivative(s, x))
        model.output("by p", fj.derivative(s, p))
        model.output("tangent", fj.jvp(y, [x, p], [x, 1.0]))

    def run(x: Any, p: Any) -> jax.Array:
        return jnp.sin(x) * p

    result = model.run(backend)
    np.testing.assert_allclose(result["y"], run(X, P))
    np.testing.assert_allclose(result["by x"], jax.grad(lambda x: jnp.sum(run(x, P) ** 2))(X))
    np.testing.assert_allclose(result["by p"], jax.grad(lambda p: jnp.sum(run(X, p) ** 2))(P))
    np.testing.assert_allclose(result["tangent"], jax.jvp(run, (X, P), (X, jnp.asarray(1.0)))[1])


def test_d3_a_missing_direction_is_one_error() -> None:
    one_way = fj.custom_operation(host, host=True, like=np.zeros(5), vjp=RULES["both"]["vjp"], name="host")
    other = fj.custom_operation(host, host=True, like=np.zeros(5), jvp=RULES["both"]["jvp"], name="host")
    with fj.record() as model:
        x, p = model.input("x", X), model.input("p", P)
        with pytest.raises(fj.FieldjaxError, match="host has no forward derivative") as caught:
            fj.jvp(one_way(x, p), x, x)
        assert "custom_operation(..., jvp=...)" in str(caught.value)
        with pytest.raises(fj.FieldjaxError, match="host has no reverse derivative"):
            fj.derivative(fj.sum(other(x, p)), x)
        first = fj.derivative(fj.sum(one_way(x, p)), x)
        with pytest.raises(fj.FieldjaxError, match="cotangent of host has no reverse derivative"):
            fj.derivative(fj.sum(first), x)


def test_d3_traceable_operations_are_differentiated_by_jax_to_any_order() -> None:
    cumulate = fj.custom_operation(lambda x, p: jnp.cumsum(x) * p)
    with fj.record() as model:
        x, p = model.input("x", X), model.input("p", P)
        y = cumulate(x, p)
        s = fj.sum(y * y * y)
        model.output("hessian", fj.hessian(s, x))
        model.output("tangent", fj.jvp(y, x, x))

    result = model.run()
    want = jax.hessian(lambda x: jnp.sum((jnp.cumsum(x) * P) ** 3))(X)
    np.testing.assert_allclose(result["hessian"], want, rtol=1e-12)
    np.testing.assert_allclose(result["tangent"], np.cumsum(X) * P)


def test_a_custom_operation_that_gives_something_else_is_an_error() -> None:
    wrong = fj.custom_operation(lambda x: x[:2], like=np.zeros(5), name="wrong")
    with fj.record() as model:
        model.output("y", wrong(model.input("x", X)))
    with pytest.raises(fj.FieldjaxError, match="wrong gives arrays of other shapes") as caught:
        model.run()
    assert "stated: float64[5]" in str(caught.value) and "given:  float64[2]" in str(caught.value)


@st.composite
def programs(draw: Any) -> list[tuple[str, int, int]]:
    """Lines of a random program: a function and which of the values so far it takes."""
    length = draw(st.integers(2, 8))
    functions = st.sampled_from(["add", "multiply", "sin", "tanh", "square", "divide", "where", "sum"])
    lines = []
    for n in range(length):
        take = st.integers(0, n + 1)
        lines.append((draw(functions), draw(take), draw(take)))
    return lines


def run_lines(lines: list[tuple[str, int, int]], x: Any, p: Any, m: Any) -> Any:
    values = [x, p]
    for function, i, j in lines:
        a, b = values[i], values[j]
        made = {
            "add": lambda a=a, b=b: a + b,
            "multiply": lambda a=a, b=b: a * b,
            "sin": lambda a=a: m.sin(a),
            "tanh": lambda a=a, b=b: m.tanh(a) - b,
            "square": lambda a=a: a * a,
            "divide": lambda a=a, b=b: a / (2.0 + b * b),
            "where": lambda a=a, b=b: m.where(a > b, a * 2.0, b),
            "sum": lambda a=a, b=b: m.sum(a) * b,
        }[function]
        values.append(made())
    return m.sum(values[-1] * x)


@pytest.mark.slow
@given(lines=programs())
def test_random_models_have_jax_derivatives(lines: list[tuple[str, int, int]]) -> None:
    with fj.record() as model:
        x, p = model.input("x", X), model.input("p", P)
        s = run_lines(lines, x, p, fj)
        model.output("s", s)
        model.output("by x", fj.derivative(s, x))
        model.output("by p", fj.derivative(s, p))
        model.output("hessian", fj.hessian(s, x))
        model.output("tangent", fj.jvp(s, x, x))

    def run(x: Any, p: Any) -> jax.Array:
        return run_lines(lines, x, p, jnp)

    result = model.run()
    want = {
        "s": run(X, P),
        "by x": jax.grad(run)(X, P),
        "by p": jax.grad(run, 1)(X, P),
        "hessian": jax.hessian(run)(X, P),
        "tangent": jax.jvp(lambda x: run(x, P), (X,), (X,))[1],
    }
    for name, value in want.items():
        np.testing.assert_allclose(result[name], value, rtol=1e-10, atol=1e-10, err_msg=name)


@pytest.mark.parametrize("loop", [True, False])
def test_rows_are_those_of_the_domain_that_was_recorded(loop: bool) -> None:
    """A Jacobian has a row for each element that there was; its columns follow the domain."""

    def field(start: int, stop: int) -> fj.Field:
        return fj.as_field({Cell: (start, stop)}, jnp.arange(float(stop - start)))

    with fj.record() as model:
        f = model.input("f", field(0, 6))
        model.output("all", fj.derivative(fj.sin(f), f, loop=loop))
    np.testing.assert_allclose(model.run()["all"], np.diag(np.cos(np.arange(6.0))), rtol=1e-14)
    for other in (field(0, 8), field(1, 7), field(0, 5)):
        with pytest.raises(fj.FieldjaxError, match=r"what was recorded for Domain\(Cell\[0:6\)\) is asked for"):
            model.run(f=other)
    with fj.record() as part:
        f = part.input("f", field(0, 6))
        part.output("two", fj.derivative(fj.sin(f)[Cell(2) : Cell(4)], f, loop=loop))
    for start, stop in ((0, 6), (1, 8)):
        rows = np.zeros((2, stop - start))
        for n in range(2):
            rows[n, 2 + n - start] = np.cos(2.0 + n - start)
        np.testing.assert_allclose(part.run(f=field(start, stop))["two"], rows, rtol=1e-14)
