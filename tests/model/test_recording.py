"""Recorded models: what is recorded, what runs, and what is refused."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fieldjax as fj
from tests.model.models import Cell, K, chain, heights, mesh, smooth, smooth_reference
from tests.refusals import refused


def test_arrays_broadcast_like_numpy() -> None:
    rng = np.random.default_rng(0)
    shapes = [(), (4,), (1,), (3, 4), (3, 1), (2, 3, 4), (2, 1, 1)]
    for first in shapes:
        for second in shapes:
            a, b = rng.normal(size=first), rng.normal(size=second)
            with fj.record() as model:
                model.output("c", model.input("a", a) * model.input("b", b) - 0.5)
            np.testing.assert_allclose(model.run()["c"], a * b - 0.5)


def test_arrays_are_cut_summed_and_multiplied_like_numpy() -> None:
    a, b, v = np.arange(12.0).reshape(3, 4), np.arange(8.0).reshape(4, 2), np.arange(4.0)
    cases: dict[str, Any] = {
        "whole": lambda m, a, b, v: a[...],
        "row": lambda m, a, b, v: a[1],
        "last column": lambda m, a, b, v: a[:, -1],
        "part": lambda m, a, b, v: a[1:, 1:3],
        "element": lambda m, a, b, v: a[2, 3],
        "of a part": lambda m, a, b, v: a[1:][1, 2:] * v[2:],
        "sum": lambda m, a, b, v: m.sum(a),
        "sum over an axis": lambda m, a, b, v: m.sum(a, axis=0) * v,
        "sum over the last axis": lambda m, a, b, v: m.sum(a, axis=1) + v[1:],
        "sum over an axis in the middle": lambda m, a, b, v: m.sum(a[:, :, ...] + b[0, 0] * v, axis=-1) * v[:3],
        "sums of sums": lambda m, a, b, v: m.sum(m.sum(b, axis=(-1,)) * a, axis=1) @ a,
        "sum over axes": lambda m, a, b, v: m.sum(a, axis=(0, 1)),
        "matrix times matrix": lambda m, a, b, v: a @ b,
        "matrix times vector": lambda m, a, b, v: a @ v,
        "vector times matrix": lambda m, a, b, v: v @ b,
        "vector times vector": lambda m, a, b, v: v @ v,
    }
    for name, case in cases.items():
        with fj.record() as model:
            given = [model.input(n, x) for n, x in zip("abv", (a, b, v), strict=True)]
            model.output("y", case(fj, *given))
        for backend in ("jax", None):
            np.testing.assert_allclose(model.run(backend)["y"], case(np, a, b, v), err_msg=name)


def test_operators_programs_and_scans_are_recorded() -> None:
    @fj.scan_operator(axis=K, init=0.0)
    def total(above, f):
        return above + f

    @fj.program
    def add_twice(f, g, h):
        smooth(f, 0.5, out=h)
        smooth(h, 0.5, out=g)

    column = fj.as_field({Cell: 6, K: 3}, jnp.arange(18.0).reshape(6, 3))
    with fj.record() as model:
        m, f, c = model.input("mesh", mesh()), model.input("f", heights()), model.input("c", column)
        g = model.input("g", fj.zeros({Cell: 6}))
        model.output("total", total(c) * f)
        add_twice(f, g, model.input("h", fj.zeros({Cell: 6})), offset_provider=m)
        model.output("twice", g)
        part = f[Cell(1) : Cell(4)]
        model.output("part", part + 1.0)
    x = jnp.linspace(0.2, 1.0, 6)
    for backend in ("jax", None):
        result = model.run(backend)
        np.testing.assert_allclose(result["total"].asnumpy(), np.cumsum(column.asnumpy(), 1) * x[:, None])
        want = smooth_reference(smooth_reference(x, 0.5), 0.5)
        np.testing.assert_allclose(result["twice"].asnumpy(), want)
        assert result["part"].domain == fj.domain({Cell: (1, 4)})


def test_another_mesh_of_equal_plan_compiles_nothing() -> None:
    with fj.record() as model:
        m, f, a = model.input("mesh", mesh()), model.input("f", heights()), model.input("a", 0.5)
        g = smooth(f, a, offset_provider=m)
        model.output("g", g)
        model.output("slope", fj.derivative(fj.sum(g), f))
    run = model.compile()
    x = jnp.linspace(0.2, 1.0, 6)
    np.testing.assert_allclose(run()["g"].asnumpy(), smooth_reference(x, 0.5))
    other, _ = mesh(7), run()
    with _no_compilation():
        result = run(mesh=other, a=0.25)
    np.testing.assert_allclose(result["g"].asnumpy(), smooth_reference(x, 0.25, 7))
    slope = jax.grad(lambda x: jnp.sum(smooth_reference(x, 0.25, 7)))(x)
    np.testing.assert_allclose(result["slope"].asnumpy(), slope)


class _no_compilation:
    """Fails when JAX traces a function meanwhile."""

    def __enter__(self) -> None:
        self._traced: list[str] = []
        jax.monitoring.register_event_duration_secs_listener(self._listen)

    def _listen(self, event: str, duration: float, **_: Any) -> None:
        if "backend_compile" in event:
            self._traced.append(event)

    def __exit__(self, *_: Any) -> None:
        jax.monitoring.unregister_event_duration_listener(self._listen)
        assert not self._traced


def test_a_model_that_runs_again_compiles_nothing_until_it_changes() -> None:
    model, values, p = chain(4)
    model.output("middle", values[2])
    first = model.run()["middle"]
    compiled = model.compile()
    with _no_compilation():
        again, other = model.run()["middle"], model.run(p=0.1)["middle"]
    np.testing.assert_array_equal(again, first)
    assert not np.array_equal(other, first)
    assert model.compile() is compiled
    model.output("end", values[4])
    assert set(model.run()) == {"middle", "end"} and set(compiled()) == {"middle"}
    op = fj.compress([values[0], p], values[1], mode="segment")
    np.testing.assert_allclose(model.run()["middle"], first, rtol=1e-14)
    assert op.stats.calls > 0


def test_another_domain_plans_again() -> None:
    with fj.record() as model:
        f = model.input("f", heights())
        model.output("g", f * 2.0)
    run = model.compile()
    longer = fj.as_field({Cell: (3, 12)}, jnp.arange(9.0))
    assert run(f=longer)["g"].domain == longer.domain
    np.testing.assert_allclose(run(f=longer)["g"].asnumpy(), 2 * np.arange(9.0))
    np.testing.assert_allclose(run()["g"].asnumpy(), 2 * np.linspace(0.2, 1.0, 6))


def test_what_is_captured_is_read_when_the_model_runs() -> None:
    outside = fj.as_field({Cell: 6}, jnp.ones(6))
    with fj.record() as model:
        f = model.input("f", heights())
        captured = f * outside + jnp.asarray(3.0)
        model.output("g", captured)
    text = str(model)
    assert "literal" not in text and "%p0" in text
    np.testing.assert_allclose(model.run()["g"].asnumpy(), np.linspace(0.2, 1.0, 6) + 3)


@fj.field_operator
def grow(f, a):
    return f * a


def test_scalars_of_jax_yield_to_other_dtypes_as_they_do_elsewhere() -> None:
    """A weak scalar takes the dtype of what it meets; one that is an input has a dtype of its own."""
    weak, strong = jnp.asarray(2.0), jnp.asarray(2.0, "float64")
    for dtype in ("float32", "float64"):
        field = fj.as_field({Cell: 3}, np.ones(3, dtype))
        with fj.record() as model:
            f, a, b = model.input("f", field), model.input("a", weak), model.parameter(weak)
            same = {"weak": f * weak, "operator": grow(f, weak), "number": grow(f, 2.0)}
            wider = {"strong": f * strong, "input": f * a, "operator on input": grow(f, a), "parameter": grow(f, b)}
            for name, value in (same | wider).items():
                model.output(name, value)
            model.output("slope", fj.derivative(fj.sum(grow(f, a)), a))
        result = model.run()
        assert {result[n].dtype for n in same} == {(field * weak).dtype, grow(field, weak).dtype} == {np.dtype(dtype)}
        assert {result[n].dtype for n in wider} == {np.dtype("float64")}
        assert result["slope"] == 3.0
        assert model.run(a=jnp.asarray(3.0))["input"].asnumpy().tolist() == [3.0] * 3


def test_arrays_from_outside_are_taken_as_they_are_when_they_are_met() -> None:
    """Whether they are written to afterwards, or dropped, so that others come to stand at their address."""
    with fj.record() as model:
        x, w = model.input("x", np.zeros(3)), np.array([1.0, np.nan, 3.0])
        first, again = x + w, x + w
        w[0] = 5.0
        model.output("first", first)
        model.output("again", again)
        model.output("later", x + w)
        total = x
        for n in range(50):
            total = total + np.full(3, float(n))
        model.output("total", total)
    result = model.run()
    np.testing.assert_array_equal(result["first"], [1.0, np.nan, 3.0])
    np.testing.assert_array_equal(result["later"], [5.0, np.nan, 3.0])
    np.testing.assert_array_equal(result["total"], np.full(3, 50 * 49 / 2))
    assert first.value.node.inputs == again.value.node.inputs


def test_inline_recording_evaluates_as_it_goes() -> None:
    with fj.record(inline=True) as model:
        m, f, x = model.input("mesh", mesh()), model.input("f", heights()), model.input("x", np.array([1.0, 2.0]))
        g = smooth(f, 0.5, offset_provider=m)
        y = fj.sum(x * x)
        slope = fj.derivative(y, x)
    np.testing.assert_allclose(g.data.asnumpy(), smooth_reference(jnp.linspace(0.2, 1.0, 6), 0.5))
    assert float(y.data) == 5.0
    np.testing.assert_allclose(slope.asnumpy(), [2.0, 4.0])


def test_a_scalar_condition_selects_as_under_a_foreign_jit() -> None:
    @fj.field_operator
    def limited(f, a):
        if a > 1.0:
            return f * 2.0
        return f

    with fj.record() as model:
        model.output("g", limited(model.input("f", heights()), model.input("a", 2.0)))
    x = np.linspace(0.2, 1.0, 6)
    np.testing.assert_allclose(model.run()["g"].asnumpy(), 2 * x)
    np.testing.assert_allclose(model.run(a=0.5)["g"].asnumpy(), x)


def test_the_text_names_inputs_operations_and_lines() -> None:
    with fj.record() as model:
        m, f = model.input("mesh", mesh()), model.input("height", heights())
        model.output("g", smooth(f, 0.5, offset_provider=m))
    text = str(model)
    for part in ("%height: float64[Cell]", "smooth %height", "gather", "test_recording.py"):
        assert part in text
    assert repr(f) == "Variable(height: Domain(Cell[0:6)))"


ERRORS: dict[str, tuple[Any, str]] = {
    "shapes": (lambda m, x, f: x * np.ones(3), r"arrays of shapes \(5,\) and \(3,\) don't fit together"),
    "array and field": (lambda m, x, f: x * f, "an array meets a field"),
    "truth": (lambda m, x, f: bool(x), "isn't a truth value yet"),
    "number": (lambda m, x, f: float(x), "isn't a number yet"),
    "numpy": (lambda m, x, f: np.asarray(x), "isn't an array yet"),
    "data": (lambda m, x, f: (x + 1).data, "no data before the model runs"),
    "name twice": (lambda m, x, f: m.input("x", 1.0), "has an input 'x' already"),
    "output twice": (lambda m, x, f: [m.output("y", x), m.output("y", x)], "has an output 'y' already"),
    "not data": (lambda m, x, f: m.input("z", "text"), "isn't a field, an array, a scalar"),
    "not a constant": (lambda m, x, f: m.constant(np.ones(3)), "a constant is a scalar, not ndarray"),
    "index": (lambda m, x, f: x[7], "no position 7 among 5"),
    "step": (lambda m, x, f: x[::2], "cut in steps of one"),
    "product": (lambda m, x, f: x @ np.ones((3, 2)), r"shapes \(5,\) and \(3, 2\) have no product"),
    "array to an operator": (lambda m, x, f: smooth(x, 0.5, offset_provider=mesh()), "not a plain array"),
    "foreign out": (
        lambda m, x, f: smooth(f, 0.5, out=heights(), offset_provider=mesh()),
        "`out` isn't made of values",
    ),
    "nothing to run": (lambda m, x, f: m.compile(), "the model has no outputs"),
    "axis": (lambda m, x, f: fj.sum(x, axis=1), "no axis 1 among 1"),
    "axis twice": (lambda m, x, f: fj.sum(x, axis=(0, -1)), r"an axis is given twice: \(0, -1\)"),
    "axis of a field": (lambda m, x, f: fj.sum(f, axis=0), "the axes of a field are dimensions"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    do, message = ERRORS[name]
    with fj.record() as model:
        x, f = model.input("x", np.arange(5.0)), model.input("f", heights())
    nodes = list(model.nodes)
    with refused(message) as caught:
        do(model, x, f)
    assert "test_recording.py" in str(caught.value)
    assert list(model.nodes)[: len(nodes)] == nodes


RUN_ERRORS: dict[str, tuple[dict[str, Any], str]] = {
    "unknown": ({"z": 1.0}, "the model has no input 'z'"),
    "rank": ({"x": np.ones((2, 5))}, "'x' takes float64"),
    "shape": ({"x": np.ones(6)}, r"'x' is an array of shape \(5,\), not \(6,\)"),
    "length one": ({"x": np.ones(1)}, r"'x' is an array of shape \(5,\), not \(1,\)"),
    "dtype": ({"x": np.ones(5, "float32")}, "'x' is float64, not float32"),
    "kind": ({"x": heights()}, "'x' takes float64"),
    "no data": ({"x": "text"}, "'x' takes float64.*not str"),
    "mesh": ({"x": mesh()}, "the model has no input 'x'"),
}


@pytest.mark.parametrize("name", RUN_ERRORS)
def test_errors_when_it_runs(name: str) -> None:
    inputs, message = RUN_ERRORS[name]
    with fj.record() as model:
        model.output("y", model.input("x", np.arange(5.0)) * 2.0)
    for backend in ("jax", None):
        with refused(message) as caught:
            model.run(backend, **inputs)
        assert "test_recording.py" in str(caught.value)


def test_a_mesh_replaces_all_tables_of_a_mesh_or_none() -> None:
    with fj.record() as model:
        m, f = model.input("mesh", mesh()), model.input("f", heights())
        model.output("g", smooth(f, 0.3, offset_provider=m))
    part = fj.Mesh(E2C=mesh(1)["E2C"])
    for backend in ("jax", None):
        with pytest.raises(fj.FieldjaxError, match="the mesh for 'mesh' lacks C2E"):
            model.run(backend, mesh=part)


def test_values_of_two_models_do_not_meet() -> None:
    with fj.record() as one, fj.record() as other:
        x, y = one.input("x", 1.0), other.input("y", 1.0)
        with pytest.raises(fj.FieldjaxError, match="values of two recorded models meet"):
            x * y
