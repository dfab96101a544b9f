"""What a region is: R1, R2, R3, R4, R5, R6, R7, R8, R9 and R10 of the specification."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fieldjax as fj
from fieldjax.ir.operations.loop import Loop
from fieldjax.ir.operations.pointwise import Pointwise
from fieldjax.model.region import Region
from tests.model.models import Cell, chain, chain_reference, heights, layer, mesh, smooth, smooth_reference, state
from tests.refusals import refused

X, P = jnp.linspace(0.1, 1.0, 5), jnp.asarray(0.7)


def regions(model: fj.Model) -> list[Region]:
    return [n.operation for n in model.nodes if isinstance(n.operation, Region)]


def operations(model: fj.Model) -> list[str]:
    return [str(n.operation) for n in model.nodes if n.inputs]


def test_r1_a_region_takes_the_place_of_its_operations_and_keeps_its_outputs() -> None:
    model, values, p = chain(4)
    model.output("middle", values[2])
    downstream = values[2] * 2.0
    op = fj.compress([values[0], p], values[2], name="first")
    assert [str(r) for r in regions(model)] == ["region first"]
    assert values[2].value == op.outputs[0].value
    assert operations(model).count("sin") == 2
    model.output("downstream", downstream)
    model.output("end", values[4])
    result, run = model.run(), chain_reference(2)
    np.testing.assert_allclose(result["middle"], run(X, P), rtol=1e-14)
    np.testing.assert_allclose(result["downstream"], 2 * run(X, P), rtol=1e-14)
    np.testing.assert_allclose(result["end"], chain_reference(4)(X, P), rtol=1e-14)


def test_r1_what_nothing_else_uses_leaves_the_graph_and_says_so() -> None:
    model, values, p = chain(2)
    fj.compress([values[0], p], values[2], name="both")
    with pytest.raises(fj.FieldjaxError, match="inside of the region both now") as caught:
        values[1] * 2.0
    assert "intermediates='all'" in str(caught.value)


def test_r2_everything_else_is_an_input_that_is_read_when_it_runs() -> None:
    outside = jnp.asarray([1.0, 2.0, 3.0, 4.0, 5.0])
    with fj.record() as model:
        x, w = model.input("x", X), model.input("w", 2.0)
        scaled = w * 3.0
        y = fj.sin(x) * outside + scaled + model.constant(0.5)
        op = fj.compress(x, y)
        model.output("y", y)
        model.output("by w", fj.derivative(fj.sum(y), w))
    assert len(op.inputs) == 3
    assert "0.5" in str(model) and "3.0" in str(model)
    for value in (2.0, -1.0):
        result = model.run(w=value)
        np.testing.assert_allclose(result["y"], jnp.sin(X) * outside + 3 * value + 0.5)
        assert float(result["by w"]) == 15.0


def test_r3_feeders_are_absorbed_when_nobody_else_uses_them() -> None:
    for absorb in (False, True):
        with fj.record() as model:
            x, w = model.input("x", X), model.input("w", 2.0)
            only = fj.exp(w * 3.0)
            shared = w + 1.0
            y = x * only + shared
            model.output("shared", shared * 2.0)
            fj.compress(x, y, absorb_feeders=absorb)
            model.output("y", y)
        assert ("exp" in operations(model)) != absorb
        assert "add" in operations(model)
        np.testing.assert_allclose(model.run()["y"], X * np.exp(6.0) + 3.0)


@pytest.mark.parametrize("intermediates", ["none", "used", "all"])
def test_r4_inner_values_that_are_used_elsewhere(intermediates: str) -> None:
    model, values, p = chain(3)
    model.output("inner", values[1])
    before = state(model)
    if intermediates == "none":
        with pytest.raises(fj.FieldjaxError, match="values inside of the region are used elsewhere: 'inner'"):
            fj.compress([values[0], p], values[3])
        assert state(model) == before
        return
    op = fj.compress([values[0], p], values[3], intermediates=intermediates)
    assert len(op.outputs) == (2 if intermediates == "used" else 12)
    model.output("end", values[3])
    result = model.run()
    np.testing.assert_allclose(result["inner"], chain_reference(1)(X, P), rtol=1e-14)
    np.testing.assert_allclose(result["end"], chain_reference(3)(X, P), rtol=1e-14)


def test_r5_regions_run_on_their_devices_and_so_do_their_derivatives() -> None:
    with fj.record() as model:
        x, p = model.input("x", X), model.input("p", P)
        h = layer(x, p, fj)
        y = layer(h, p, fj)
        first = fj.compress([x, p], h, device="cpu:1")
        fj.compress([h, p], y, device=jax.devices()[0])
        model.output("h", h)
        model.output("y", y)
        model.output("by x", fj.derivative(fj.sum(y), x))
        model.output("by p", fj.derivative(fj.sum(y), p))
    devices = {(n.operation.options.device, n.operation.name) for n in model.nodes if isinstance(n.operation, Region)}
    assert {d for d, name in devices if "cotangent" in name} == {"cpu:0", "cpu:1"}
    result, run = model.run(), chain_reference(2)
    assert result["h"].devices() == {jax.devices()[1]}
    assert first.options.device == "cpu:1"
    np.testing.assert_allclose(result["y"], run(X, P), rtol=1e-14)
    np.testing.assert_allclose(result["by x"], jax.grad(lambda x: jnp.sum(run(x, P)))(X), rtol=1e-13)
    np.testing.assert_allclose(result["by p"], jax.grad(lambda p: jnp.sum(run(X, p)))(P), rtol=1e-13)


def test_r6_options_that_a_mode_cannot_honour_are_errors() -> None:
    model, values, p = chain(2)
    for mode, option in (
        ("inline", {"fusion": False}),
        ("call", {"device": "cpu:1"}),
        ("call", {"jit_kwargs": {"inline": True}}),
    ):
        with pytest.raises(fj.FieldjaxError, match=f"`mode='{mode}'` can't honour `{next(iter(option))}`"):
            fj.compress([values[0], p], values[2], mode=mode, **option)
    fj.compress(
        [values[0], p], values[2], jit_kwargs={"compiler_options": {"xla_cpu_enable_fast_math": False}}, fusion=True
    )
    model.output("y", values[2])
    np.testing.assert_allclose(model.run()["y"], chain_reference(2)(X, P), rtol=1e-14)


@pytest.mark.parametrize("mode", ["auto", "segment", "scan", "call", "inline"])
def test_r7_who_contains_the_operations(mode: str) -> None:
    """Apart, the region has an executable of its own; in a call its operations are in a function of the program."""
    model, values, p = chain(3)
    fj.compress([values[0], p], values[2], mode=mode)
    model.output("y", values[3])
    run = model.compile()
    run()
    assert len(run.steps) == (1 if mode in ("call", "inline") else 2)
    text = run.text()
    assert text[-1].count("stablehlo.tanh") == {"inline": 3, "call": 3}.get(mode, 1)
    assert ("inlineable" in text[-1]) == (mode == "call")
    np.testing.assert_allclose(run()["y"], chain_reference(3)(X, P), rtol=1e-14)


def test_r7_not_compiled_separately_is_inline() -> None:
    model, values, p = chain(2)
    op = fj.compress([values[0], p], values[2], compile_separately=False)
    assert op.options.mode == "inline"
    with pytest.raises(fj.FieldjaxError, match="`compile_separately=False` means `mode='inline'`, not 'segment'"):
        fj.compress([values[0], p], values[2], compile_separately=False, mode="segment")


@dataclass(frozen=True)
class Dice(Pointwise):
    """An operation whose result differs from call to call."""

    function: str = "sin"
    pure: ClassVar[bool] = False


def test_r8_impure_operations_are_refused() -> None:
    with fj.record() as model:
        x = model.input("x", X)
        y = model.apply(Dice(), x) * 2.0
        before = state(model)
        with pytest.raises(fj.FieldjaxError, match="isn't a function of its inputs alone") as caught:
            fj.compress(x, y)
    assert "test_regions.py" in str(caught.value)
    assert state(model) == before


@pytest.mark.parametrize("mode", ["auto", "call", "inline"])
def test_r9_regions_nest(mode: str) -> None:
    model, values, p = chain(6)
    inner = fj.compress([values[1], p], values[2], mode=mode, find_repeats=True)
    fj.compress([values[0], p], values[4], mode=mode)
    model.output("y", values[6])
    model.output("by x", fj.derivative(fj.sum(values[6]), values[0]))
    assert len(inner.repeats) == 5
    result, run = model.run(), chain_reference(6)
    np.testing.assert_allclose(result["y"], run(X, P), rtol=1e-14)
    np.testing.assert_allclose(result["by x"], jax.grad(lambda x: jnp.sum(run(x, P)))(X), rtol=1e-13)


@fj.field_operator
def turned(f, p, shift):
    return fj.tanh(fj.sin(f * p) + 0.1) + 0.1 * shift


@pytest.mark.parametrize("mode", ["auto", "call", "inline"])
@pytest.mark.parametrize("with_step", [False, True])
@pytest.mark.parametrize("carries", ["explicit", "inferred"])
def test_r9_regions_inside_of_loops(mode: str, with_step: bool, carries: str) -> None:
    def step(f: Any, n: Any = 0.0) -> Any:
        g = turned(f, p, n)
        fj.compress([f, p], g, mode=mode)
        return g * 0.9

    def assigning(n: Any = 0.0) -> None:
        before = turned(f, p, n)
        fj.compress([f, p], before, mode=mode, name="inner")
        scaled(before, out=f)

    @fj.field_operator
    def scaled(f):
        return f * 0.9

    with fj.record() as model:
        f, p = model.input("f", heights()), model.input("p", P)
        x = model.variable_of(f.value)
        if carries == "explicit":
            f = fj.loop((lambda c, n: step(c, n)) if with_step else (lambda c: step(c)), f, 4)
        else:
            model.loop((lambda n: assigning(n)) if with_step else (lambda: assigning()), length=4)
        model.output("f", f)
        model.output("by x", fj.derivative(fj.sum(f), x))
        model.output("by p", fj.derivative(fj.sum(f), p))

    def run(x: Any, p: Any) -> jax.Array:
        for n in range(4):
            x = 0.9 * (layer(x, p, jnp) + (0.1 * n if with_step else 0.0))
        return x

    result, x0 = model.run(), jnp.linspace(0.2, 1.0, 6)
    np.testing.assert_allclose(result["f"].asnumpy(), run(x0, P), rtol=1e-14)
    by_x, by_p = jax.grad(lambda x, p: jnp.sum(run(x, p)), (0, 1))(x0, P)
    np.testing.assert_allclose(result["by x"].asnumpy(), by_x, rtol=1e-13)
    np.testing.assert_allclose(result["by p"], by_p, rtol=1e-13)


def test_r9_a_region_around_a_loop_that_assigns_and_the_region_in_its_body() -> None:
    with fj.record() as model:
        f, p = model.input("f", heights()), model.input("p", P)
        x = model.variable_of(f.value)

        def body() -> None:
            turned(f, p, 0.0, out=f)
            fj.compress(p, f, name="in the body")

        model.loop(body, length=3)
        (loop,) = (n.operation for n in model.nodes if isinstance(n.operation, Loop))
        assert [str(n.operation) for n in loop.body.nodes if n.inputs] == ["region in the body"]
        fj.compress([x, p], f, name="around")
        model.output("f", f)
        model.output("by p", fj.derivative(fj.sum(f), p))
    assert [r.name for r in regions(model)] == ["around", "cotangent of around"]
    run, x0 = chain_reference(3), jnp.linspace(0.2, 1.0, 6)
    result = model.run()
    np.testing.assert_allclose(result["f"].asnumpy(), run(x0, P), rtol=1e-14)
    np.testing.assert_allclose(result["by p"], jax.grad(lambda p: jnp.sum(run(x0, p)))(P), rtol=1e-13)


@fj.field_operator
def inner_operator(f, p):
    return fj.tanh(fj.sin(f * p) + 0.1)


def test_r9_operators_made_of_operators() -> None:
    """Regions over a composed operator, and over one that is compressed itself, called by another."""
    small = fj.compressed(inner_operator)

    @fj.field_operator
    def composed(f, p):
        return inner_operator(inner_operator(f, p), p)

    @fj.compressed
    @fj.field_operator
    def around(f, p):
        return small(small(f, p), p)

    for operator, made in ((composed, 0), (around, 1)):
        with fj.record() as model:
            f, p = model.input("f", heights()), model.input("p", P)
            g = operator(f, p)
            h = operator(g, p)
            fj.compress([f, p], h, name="all")
            model.output("h", h)
            model.output("by p", fj.derivative(fj.sum(h), p))
        assert [r.name for r in regions(model)] == ["all", "cotangent of all"]
        nested = [n.operation for n in regions(model)[0].body.nodes if isinstance(n.operation, Region)]
        assert len(nested) == 2 * made
        run, x0 = chain_reference(4), jnp.linspace(0.2, 1.0, 6)
        result = model.run()
        np.testing.assert_allclose(result["h"].asnumpy(), run(x0, P), rtol=1e-14)
        np.testing.assert_allclose(
            result["by p"], jax.grad(lambda p, x=x0: jnp.sum(chain_reference(4)(x, p)))(P), rtol=1e-13
        )


def test_r9_loops_implicit_and_custom_operations_inside_of_regions() -> None:
    double = fj.custom_operation(lambda x: 2.0 * x, vjp=lambda i, c: (2.0 * c[0],), host=True, like=np.zeros(5))
    with fj.record() as model:
        x, p = model.input("x", X), model.input("p", P)
        a = fj.loop(lambda c: layer(c, p, fj), x, 3)
        b = fj.implicit(lambda y: y + 0.1 * fj.sin(y) - a, a)
        y = double(b) * p
        fj.compress([x, p], y)
        model.output("y", y)
        model.output("by x", fj.derivative(fj.sum(y), x))
        model.output("by p", fj.derivative(fj.sum(y), p))
    assert len(regions(model)) == 3

    def run(x: Any, p: Any) -> jax.Array:
        a = chain_reference(3)(x, p)
        y = a
        for _ in range(30):
            y = a - 0.1 * jnp.sin(y)
        return 2.0 * y * p

    result = model.run()
    np.testing.assert_allclose(result["y"], run(X, P), rtol=1e-12)
    np.testing.assert_allclose(result["by x"], jax.grad(lambda x: jnp.sum(run(x, P)))(X), rtol=1e-10)
    np.testing.assert_allclose(result["by p"], jax.grad(lambda p: jnp.sum(run(X, p)))(P), rtol=1e-10)


def test_regions_over_operators_on_meshes() -> None:
    with fj.record() as model:
        m, f, a = model.input("mesh", mesh()), model.input("f", heights()), model.input("a", 0.3)
        values = [f]
        for _ in range(3):
            values.append(smooth(values[-1], a, offset_provider=m))
        op = fj.compress([f, a], values[1], find_repeats=True, mode="segment")
        s = fj.sum(values[3])
        model.output("g", values[3])
        model.output("by f", fj.derivative(s, f))
    run = model.compile()

    def reference(x: Any, a: float, seed: int) -> jax.Array:
        for _ in range(3):
            x = smooth_reference(x, a, seed)
        return x

    x = jnp.linspace(0.2, 1.0, 6)
    for seed, factor in ((0, 0.3), (4, 0.2)):
        result = run(mesh=mesh(seed), a=factor)
        np.testing.assert_allclose(result["g"].asnumpy(), reference(x, factor, seed), rtol=1e-13)
        want = jax.grad(lambda x, a=factor, s=seed: jnp.sum(reference(x, a, s)))(x)
        np.testing.assert_allclose(result["by f"].asnumpy(), want, rtol=1e-12)
    assert len(op.repeats) == 2 and op.stats.compiled == op.stats.traces == 1
    assert [row.stats.compiled for row in model.report().rows] == [1, 1]


ERRORS: dict[str, tuple[Any, str]] = {
    "input twice": (lambda m, v, p: fj.compress([v[0], v[0]], v[2]), "an input is given twice: 'x'"),
    "output twice": (lambda m, v, p: fj.compress(v[0], [v[2], v[2]]), "an output is given twice"),
    "both": (lambda m, v, p: fj.compress([v[0], v[2]], v[2]), "is an input and an output"),
    "cycle": (lambda m, v, p: fj.compress([v[0], v[2]], [v[1], v[4]]), "depends on a value inside of the region"),
    "no path": (lambda m, v, p: fj.compress(v[3], v[1]), "no path leads from the inputs to"),
    "another model": (lambda m, v, p: fj.compress(chain(1).values[0], v[1]), "values of two recorded models meet"),
    "not a value": (lambda m, v, p: fj.compress([v[0], 3.0], v[1]), "isn't a value of the model"),
    "nothing": (lambda m, v, p: fj.compress([], v[1]), "a region lies between values of a recorded model"),
    "mode": (lambda m, v, p: fj.compress(v[0], v[1], mode="fast"), "`mode` is one of 'auto', .*not 'fast'"),
    "fusion": (
        lambda m, v, p: fj.compress(v[0], v[1], fusion="yes"),
        "`fusion` is one of None, True, False, not 'yes'",
    ),
    "intermediates": (lambda m, v, p: fj.compress(v[0], v[1], intermediates="some"), "`intermediates` is one of"),
    "device": (lambda m, v, p: fj.compress(v[0], v[1], device="cpu:7"), "there is no device 'cpu:7' here"),
    "negative device": (lambda m, v, p: fj.compress(v[0], v[1], device="cpu:-1"), "there is no device 'cpu:-1' here"),
    "no device": (lambda m, v, p: fj.compress(v[0], v[1], device=3), "`device` is a name like 'cpu:1' or a device"),
    "number as fusion": (lambda m, v, p: fj.compress(v[0], v[1], fusion=0), "`fusion` is one of None, True, False"),
    "list as jit_kwargs": (lambda m, v, p: fj.compress(v[0], v[1], jit_kwargs=[1]), "`jit_kwargs` is a dict"),
    "donation": (
        lambda m, v, p: fj.compress(v[0], v[1], jit_kwargs={"donate_argnums": 0}),
        "`jit_kwargs` takes compiler_options, inline, keep_unused, not 'donate_argnums'",
    ),
    "compiler option": (
        lambda m, v, p: fj.compress(v[0], v[1], jit_kwargs={"compiler_options": {"xla_nonsense": 1}}),
        "(?s)JAX doesn't take `jit_kwargs=.*xla_nonsense",
    ),
    "share_with": (lambda m, v, p: fj.compress(v[0], v[1], share_with="x"), "`share_with` is a region, not 'x'"),
    "inner fusion": (lambda m, v, p: _around(v, p, fusion=False), "region inner is .* where its `fusion` can't be"),
    "inner options": (
        lambda m, v, p: _around(v, p, jit_kwargs={"keep_unused": True}),
        "region inner is inside of the region, where its `jit_kwargs` can't be honoured",
    ),
    "fusion in a loop": (
        lambda m, v, p: fj.loop(lambda c: _compressed_inside(c, p), v[0], 2),
        "a region inside of a loop can't honour `fusion`",
    ),
    "kind of device": (lambda m, v, p: fj.compress(v[0], v[1], device="abacus"), "there is no device 'abacus' here"),
    "used elsewhere": (lambda m, v, p: fj.compress(v[0], v[3]), "used elsewhere"),
    "not the same": (lambda m, v, p: _unlike(v, p), "the region isn't the same as one"),
}


def _around(v: list[Any], p: Any, **options: Any) -> None:
    other = chain(4)
    fj.compress([other.values[0], other.p], other.values[1], name="inner", **options)
    fj.compress([other.values[0], other.p], other.values[2])


def _compressed_inside(c: Any, p: Any) -> Any:
    d = layer(c, p, fj)
    fj.compress([c, p], d, fusion=False)
    return d


def _unlike(v: list[Any], p: Any) -> None:
    other = chain(1)
    one = fj.compress([other.values[0], other.p], other.values[1], name="one")
    fj.compress([v[0], p], v[2], share_with=one)


@pytest.mark.parametrize("name", ERRORS)
def test_r10_errors_leave_the_graph_exactly_as_it_was(name: str) -> None:
    do, message = ERRORS[name]
    model, values, p = chain(4)
    model.output("third", values[3])
    model.output("second", values[2]) if name == "used elsewhere" else None
    before = state(model)
    with refused(message):
        do(model, values, p)
    assert state(model) == before


def test_options_of_inner_regions_that_the_outer_one_has_too() -> None:
    model, values, p = chain(4)
    fj.compress([values[1], p], values[2], fusion=False, jit_kwargs={"keep_unused": True})
    fj.compress([values[0], p], values[3], fusion=False, jit_kwargs={"keep_unused": True})
    model.output("y", values[4])
    np.testing.assert_allclose(model.run()["y"], chain_reference(4)(X, P), rtol=1e-14)


def test_a_region_calls_no_host_from_a_device_that_waits() -> None:
    model, values, p = chain(4)
    fj.compress([values[1], p], values[2], device="cpu:1", name="inner")
    for options in ({"device": "cpu:1"}, {"device": "cpu:0"}, {"mode": "callback"}):
        with refused("region inner is inside of the region, where its `device` can't be honoured"):
            fj.compress([values[0], p], values[3], **options)
    fj.compress([values[0], p], values[3])
    model.output("y", values[4])
    np.testing.assert_allclose(model.run()["y"], chain_reference(4)(X, P), rtol=1e-14)


def test_r10_an_input_may_depend_on_another() -> None:
    model, values, p = chain(3)
    fj.compress([values[0], values[1], p], values[3])
    model.output("y", values[3])
    np.testing.assert_allclose(model.run()["y"], chain_reference(3)(X, P), rtol=1e-14)


@given(data=st.data())
def test_r10_whatever_is_asked_the_model_still_does_what_it_did(data: st.DataObject) -> None:
    """Regions between random values of a graph with branches: made, or refused with nothing changed."""
    with fj.record() as model:
        x, p = model.input("x", X), model.input("p", P)
        values = [x, p]
        for _ in range(6):
            i, j = (data.draw(st.integers(0, len(values) - 1)) for _ in range(2))
            values.append(fj.sin(values[i]) * values[j] + 0.1)
        model.output("y", values[-1])
        model.output("z", values[-3])
        s = fj.sum(values[-1])
        model.output("by x", fj.derivative(s, x))
    want = model.run()
    for _ in range(3):
        pick = st.lists(st.sampled_from(values), min_size=1, max_size=2)
        options = {
            "intermediates": data.draw(st.sampled_from(["none", "used", "all"])),
            "mode": data.draw(st.sampled_from(["auto", "call", "inline"])),
            "absorb_feeders": data.draw(st.booleans()),
            "find_repeats": data.draw(st.booleans()),
        }
        before = state(model)
        try:
            fj.compress(data.draw(pick), data.draw(pick), **options)
        except fj.FieldjaxError:
            assert state(model) == before
    for name, value in model.run().items():
        np.testing.assert_allclose(value, want[name], rtol=1e-12, atol=1e-14)


@given(data=st.data())
def test_looking_at_the_graph_between_two_regions_changes_nothing(data: st.DataObject) -> None:
    """What a region replaces is made anew when somebody looks. Whether somebody did can't be seen."""
    size = 6
    operands = [tuple(data.draw(st.integers(0, n + 1)) for _ in range(2)) for n in range(size)]
    ends = st.lists(st.integers(0, size + 1), min_size=1, max_size=2)
    asked = [(data.draw(ends), data.draw(ends), data.draw(st.sampled_from(["none", "used"]))) for _ in range(3)]

    def text(look: bool) -> str:
        with fj.record() as model:
            values = [model.input("x", X), model.input("p", P)]
            for i, j in operands:
                values.append(fj.sin(values[i]) * values[j])
            model.output("y", values[-1])
        for n, (inputs, outputs, intermediates) in enumerate(asked):
            try:
                fj.compress(
                    [values[i] for i in inputs],
                    [values[i] for i in outputs],
                    name=f"r{n}",
                    intermediates=intermediates,
                    mode="call",
                )
            except fj.FieldjaxError:
                continue
            if look:
                list(model.nodes)
        return str(model)

    assert text(False) == text(True)


PENDING: dict[str, Any] = {
    # A region, and another one that has it inside, depends on itself by way of it, or lies beside it on a path.
    "inside": (["x"], ["a"], ["x"], ["c"]),
    "input behind": (["a", "q"], ["b", "d"], ["x", "d"], ["f"]),
    "beside": (["x", "q"], ["a", "d"], ["x"], ["e"]),
}


@pytest.mark.parametrize("name", PENDING)
def test_a_region_meets_another_the_same_way_whether_somebody_looked_or_not(name: str) -> None:
    def text(look: bool) -> str:
        with fj.record() as model:
            v: dict[str, Any] = {"x": model.input("x", X), "q": model.input("q", P)}
            v["a"] = fj.sin(v["x"])
            v["b"] = fj.cos(v["a"])
            v["c"] = v["b"] * 2.0
            v["d"] = fj.exp(v["q"])
            v["e"] = v["d"] * v["x"]
            v["f"] = v["d"] * v["a"]
            for output in "cef":
                model.output(output, v[output])
        first_in, first_out, then_in, then_out = ([v[n] for n in names] for names in PENDING[name])
        fj.compress(first_in, first_out, name="first", mode="call", intermediates="used")
        if look:
            list(model.nodes)
        try:
            fj.compress(then_in, then_out, name="then", mode="call", intermediates="used")
        except fj.FieldjaxError as error:
            return f"{error}"
        return str(model)

    assert text(False) == text(True)


def test_fields_of_other_domains_go_through_regions() -> None:
    with fj.record() as model:
        f = model.input("f", heights())
        g = fj.sin(f[Cell(1) : Cell(4)]) + f
        fj.compress(f, g)
        model.output("g", g)
    result = model.run()["g"]
    assert result.domain == fj.domain({Cell: (1, 4)})
    x = np.linspace(0.2, 1.0, 6)[1:4]
    np.testing.assert_allclose(result.asnumpy(), np.sin(x) + x)


def test_what_has_no_end_is_computed_where_it_is_read() -> None:
    with fj.record() as model:
        f, p = model.input("f", heights()), model.input("p", P)
        wide = fj.broadcast(p * 2.0, (Cell,))
        g = fj.sin(f) + wide
        fj.compress(f, g)
        model.output("g", g)
        model.output("by p", fj.derivative(fj.sum(g), p))
        with pytest.raises(fj.FieldjaxError, match="the output 'wide' extends without end"):
            model.output("wide", wide)
    for backend in ("jax", None):
        result = model.run(backend)
        np.testing.assert_allclose(result["g"].asnumpy(), np.sin(np.linspace(0.2, 1.0, 6)) + 1.4)
        assert float(result["by p"]) == 12.0
