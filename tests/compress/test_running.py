"""How regions run and what stays equal: D2, D4, D5, E1, E2, E3, E4 and E5 of the specification."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fieldjax as fj
from fieldjax.backend.host_call import checked
from fieldjax.ir.operations.loop import Loop
from fieldjax.model.region import Region
from tests.model import models
from tests.model.models import Cell, Edge, chain, chain_reference, heights, layer, mesh, smooth, smooth_reference
from tests.refusals import refused

X, P = jnp.linspace(0.1, 1.0, 5), jnp.asarray(0.7)
MODES = ("auto", "segment", "scan", "call", "callback", "inline")
LAYERS = 6


def sums(x: Any, p: Any) -> jax.Array:
    return jnp.sum(chain_reference(LAYERS)(x, p))


WANT = {
    "s": sums(X, P),
    "by x": jax.grad(sums)(X, P),
    "by p": jax.grad(sums, 1)(X, P),
    "jacobian": jax.jacobian(chain_reference(LAYERS))(X, P),
    "hessian": jax.hessian(sums)(X, P),
    "second": jax.grad(jax.grad(sums, 1), 1)(X, P),
    "tangent": jax.jacobian(chain_reference(LAYERS), 1)(X, P),
}


@pytest.mark.parametrize("mode", [None, *MODES], ids=str)
@pytest.mark.parametrize(("inline", "loop"), list(itertools.product((False, True), repeat=2)), ids=str)
def test_d4_compressed_equals_uncompressed(mode: str | None, inline: bool, loop: bool) -> None:
    """Values and gradients to 1e-12, Hessians to 1e-10: compiled, op by op, and as recorded inline."""
    model, values, p = chain(LAYERS, inline=inline)
    if mode is not None:
        op = fj.compress([values[0], p], values[2], find_repeats=True, mode=mode)
        assert len(op.repeats) == 2
    y, x = values[-1], values[0]
    s = fj.sum(y)
    found = {
        "s": s,
        "by x": fj.derivative(s, x),
        "by p": fj.derivative(s, p),
        "jacobian": fj.derivative(y, x, loop=loop),
        "hessian": fj.hessian(s, x, loop=loop),
        "second": fj.derivative(fj.derivative(s, p), p),
        "tangent": fj.jvp(y, p, 1.0),
    }
    for name, value in found.items():
        model.output(name, value)
    runs = [model.run("jax"), model.run(None), *([{n: v.data for n, v in found.items()}] if inline else [])]
    for result in runs:
        for name, value in WANT.items():
            rtol = 1e-10 if name in ("hessian", "second") else 1e-12
            np.testing.assert_allclose(result[name], value, rtol=rtol, atol=1e-14, err_msg=name)


def test_d4_finite_differences_agree() -> None:
    model, values, p = chain(LAYERS)
    fj.compress([values[0], p], values[2], find_repeats=True)
    s = fj.sum(values[-1])
    model.output("s", s)
    model.output("by p", fj.derivative(s, p))
    run, h = model.compile(), 1e-6
    slope = (run(p=0.7 + h)["s"] - run(p=0.7 - h)["s"]) / (2 * h)
    np.testing.assert_allclose(run()["by p"], slope, rtol=1e-8)


def test_d2_the_derivative_of_a_region_is_a_region_with_its_options() -> None:
    model, values, p = chain(2)
    fj.compress([values[0], p], values[2], mode="segment", fusion=False, jit_kwargs={"inline": True})
    s = fj.sum(values[2])
    first = fj.derivative(s, p)
    fj.derivative(first, p)
    found = [n.operation for n in model.nodes if isinstance(n.operation, Region)]
    assert len(found) > 2
    assert {r.options for r in found} == {found[0].options}
    assert found[0].options.fusion is False


@fj.compressed
@fj.field_operator
def apart(f, a, table):
    g = fj.neighbor_sum(f.premap(table) * f.premap(table), axis=E2C)
    return f + a * fj.neighbor_sum(fj.sin(g.premap(table)), axis=E2C)


E2C = fj.Dimension("C2C", fj.DimensionKind.LOCAL)
AROUND = np.array([[1, 2], [2, 0], [0, -1], [4, 3], [3, 5], [5, 1]])
TABLE = fj.as_connectivity({Cell: 6, E2C: 2}, Cell, AROUND, skip_value=-1)


def apart_reference(x: Any, a: Any) -> Any:
    valid, index = AROUND >= 0, np.where(AROUND >= 0, AROUND, 0)
    g = jnp.sum(jnp.where(valid, x[index] ** 2, 0.0), -1)
    return x + a * jnp.sum(jnp.where(valid, jnp.sin(g[index]), 0.0), -1)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"mode": "callback"}, {"device": "cpu:1"}, {"mode": "inline"}], ids=str)
def test_d5_jax_differentiates_through_a_compressed_operator(options: dict[str, Any]) -> None:
    operator = fj.compressed(apart.function, **options)

    def loss(f: fj.Field, a: Any, table: fj.Connectivity) -> jax.Array:
        return jnp.sum(operator(operator(f, a, table), a, table).ndarray ** 2)

    def reference(x: Any, a: Any) -> jax.Array:
        return jnp.sum(apart_reference(apart_reference(x, a), a) ** 2)

    f, a, x = heights(), jnp.asarray(0.3), jnp.linspace(0.2, 1.0, 6)
    ones = fj.as_field(f.domain, jnp.ones(6))
    want = jax.grad(reference)(x, a)
    np.testing.assert_allclose(jax.jit(loss)(f, a, TABLE), reference(x, a), rtol=1e-13)
    np.testing.assert_allclose(jax.jit(jax.grad(loss))(f, a, TABLE).asnumpy(), want, rtol=1e-12)
    np.testing.assert_allclose(jax.grad(loss, 1)(f, a, TABLE), jax.grad(reference, 1)(x, a), rtol=1e-12)
    along = jax.jvp(lambda f: loss(f, a, TABLE), (f,), (ones,))[1]
    np.testing.assert_allclose(along, want.sum(), rtol=1e-12)
    np.testing.assert_allclose(jax.linearize(lambda f: loss(f, a, TABLE), f)[1](ones), want.sum(), rtol=1e-12)
    hessian = jax.hessian(lambda f: loss(f, a, TABLE))(f).ndarray.ndarray
    np.testing.assert_allclose(hessian, jax.hessian(reference)(x, a), rtol=1e-10, atol=1e-12)
    several = jnp.array([0.1, 0.2, 0.3])
    batched = jax.vmap(lambda a: loss(f, a, TABLE))(several)
    np.testing.assert_allclose(batched, [reference(x, b) for b in several], rtol=1e-13)


OPTIONS_UNDER_A_TRACE: dict[str, tuple[dict[str, Any], str]] = {
    "fusion": ({"fusion": False}, "a call under a trace of JAX can't honour `fusion`"),
    "jit_kwargs": ({"jit_kwargs": {"inline": True}}, "a call under a trace of JAX can't honour `jit_kwargs`"),
    "mode": ({"mode": "fast"}, "`mode` is one of 'auto', .*not 'fast'"),
    "name": ({"modus": "call"}, "`compressed` has no option 'modus'"),
}


@pytest.mark.parametrize("name", OPTIONS_UNDER_A_TRACE)
def test_r6_options_of_compressed_are_honoured_or_refused_under_a_trace(name: str) -> None:
    options, message = OPTIONS_UNDER_A_TRACE[name]
    with refused(message) as caught:
        jax.jit(fj.compressed(apart.function, **options))(heights(), 0.3, TABLE)
    assert "test_running.py" in str(caught.value)


@pytest.mark.parametrize(("options", "calls"), [({}, True), ({"compile_separately": False}, False)], ids=str)
def test_r7_not_compiled_separately_is_inline_under_a_trace(options: dict[str, Any], calls: bool) -> None:
    @fj.field_operator
    def product(f: Any) -> Any:
        return f * fj.sin(f)

    text = jax.jit(fj.compressed(product, **options)).lower(heights()).as_text()
    assert ("inlineable" in text) == calls


def test_e1_auto_is_a_loop_where_repeats_chain_and_segments_elsewhere() -> None:
    model, values, p = chain(LAYERS)
    fj.compress([values[0], p], values[1], find_repeats=True)
    model.output("y", values[-1])
    assert len(model.compile().steps) == 1

    with fj.record() as other:
        x, q = other.input("x", X), other.input("p", P)
        ends = [layer(x * float(n), q, fj) for n in range(3)]
        for end in ends:
            fj.compress([x, q], end)
        other.output("y", ends[0] + ends[1] + ends[2])
    assert len(other.compile().steps) == 4


def test_e1_a_chain_with_other_inputs_and_outputs_on_the_way() -> None:
    with fj.record() as model:
        h, weights = model.input("x", X), [model.input(f"w{n}", 0.1 * n + 0.5) for n in range(5)]
        start, states = h, []
        for w in weights:
            h = fj.tanh(h * w) + 0.1
            states.append(h)
        op = fj.compress([start, weights[0]], states[0], find_repeats=True)
        model.output("y", h)
        model.output("third", states[2] * 2.0)
        s = fj.sum(h * states[1])
        slopes = fj.derivative(s, [start, *weights])
        for n, v in enumerate(slopes.values()):
            model.output(f"slope{n}", v)
    assert len(op.repeats) == 4

    def run(x: Any, *ws: Any) -> list[jax.Array]:
        out = []
        for w in ws:
            x = jnp.tanh(x * w) + 0.1
            out.append(x)
        return out

    ws = [jnp.asarray(0.1 * n + 0.5) for n in range(5)]
    compiled = model.compile()
    result = compiled()
    np.testing.assert_allclose(result["y"], run(X, *ws)[-1], rtol=1e-14)
    np.testing.assert_allclose(result["third"], 2 * run(X, *ws)[2], rtol=1e-14)
    wants = jax.grad(lambda a: jnp.sum(run(*a)[-1] * run(*a)[1]))((X, *ws))
    for n, want in enumerate(wants):
        np.testing.assert_allclose(result[f"slope{n}"], want, rtol=1e-12)
    assert sum("loop" in str(node.operation) for step in compiled.steps for node in step.body.nodes) == 2


def test_e1_repeats_over_different_meshes_are_no_loop() -> None:
    """Tables have no stack of which a loop could take one after another."""
    meshes = [mesh(0), mesh(2)]

    def run(x: Any, step: Any) -> Any:
        for n in range(6):
            x = step(x, n % 2)
        return x

    with fj.record() as model:
        f = model.input("f", heights())
        first = smooth(f, 0.3, offset_provider=meshes[0])
        g = run(f, lambda x, n: first if x is f else smooth(x, 0.3, offset_provider=meshes[n]))
        op = fj.compress(f, first, find_repeats=True)
        model.output("g", g)
        model.output("by f", fj.derivative(fj.sum(g), f))
    assert len(op.repeats) == 5
    result, reference = model.run(), lambda x: run(x, lambda x, n: smooth_reference(x, 0.3, 2 * n))
    x = heights().ndarray
    np.testing.assert_allclose(result["g"].asnumpy(), reference(x), rtol=1e-13)
    np.testing.assert_allclose(result["by f"].asnumpy(), jax.grad(lambda x: jnp.sum(reference(x)))(x), rtol=1e-12)


@pytest.mark.parametrize("mode", [None, "auto", "segment", "scan"], ids=str)
def test_e1_a_chain_on_other_domains(mode: str | None) -> None:
    """Where the first region gives less than it reads, the regions aren't steps of one loop any more."""
    with fj.record() as model:
        values = [model.input("f", heights())]
        w = model.input("w", heights())
        for _ in range(4):
            values.append(fj.sin(values[-1] * w))
        s = fj.sum(values[-1])
        if mode is not None:
            fj.compress([values[0], w], values[1], mode=mode, find_repeats=True)
        model.output("g", values[-1])
        model.output("by f", fj.derivative(s, values[0]))
        model.output("by w", fj.derivative(s, w))
    run = model.compile()

    def reference(x: Any, w: Any) -> Any:
        for _ in range(4):
            x = jnp.sin(x * w)
        return x

    long, short = jnp.linspace(0.5, 1.5, 9), jnp.linspace(0.5, 0.8, 3)
    for _ in range(2):
        for f, start in ((long, 0), (short, 2)):
            result = run(f=fj.as_field({Cell: (start, start + len(f))}, f))
            n = min(len(f), 6)
            w6 = heights().ndarray
            x, y = f[:n], w6[start : start + n]
            by_x, by_y = jax.grad(lambda x, y: jnp.sum(reference(x, y)), (0, 1))(x, y)
            np.testing.assert_allclose(result["g"].asnumpy(), reference(x, y), rtol=1e-13)
            np.testing.assert_allclose(result["by f"].asnumpy(), jnp.zeros(len(f)).at[:n].set(by_x), rtol=1e-12)
            np.testing.assert_allclose(
                result["by w"].asnumpy(), jnp.zeros(6).at[start : start + n].set(by_y), rtol=1e-12
            )


@fj.field_operator
def wave(h, u, dt):
    u = u - dt * (h(models.E2C[1]) - h(models.E2C[0]))
    return h + dt * fj.neighbor_sum(u(models.C2E), axis=models.C2EDim), u


def full_mesh() -> tuple[fj.Mesh, np.ndarray, np.ndarray]:
    """The mesh of the models with two cells for each edge, and its tables."""
    edge_cells, cell_edges = models.tables()
    edge_cells = np.where(edge_cells < 0, 0, edge_cells)
    m = fj.Mesh(
        E2C=fj.as_connectivity({Edge: 9, models.E2CDim: 2}, Cell, edge_cells),
        C2E=fj.as_connectivity({Cell: 6, models.C2EDim: 3}, Edge, cell_edges),
    )
    return m, edge_cells, cell_edges


@fj.field_operator
def bent(h, u, dt):
    u = u - dt * fj.sin(h(models.E2C[1]) * u - h(models.E2C[0]))
    return h + dt * fj.neighbor_sum(u(models.C2E), axis=models.C2EDim), u


def test_e1_adjoints_chain_over_states_that_were_read_at_one_slot() -> None:
    """Derivatives that read states which carry the masks of `f(E2C[0])`: these are stacked like others."""
    m, edge_cells, cell_edges = full_mesh()
    start = jnp.linspace(0.1, 0.5, 9)
    with fj.record() as model:
        mesh_, first = model.input("mesh", m), model.input("h", heights())
        u = model.input("u", fj.as_field([Edge], start))
        dt, states = model.input("dt", 0.1), [(first, u)]
        for _ in range(6):
            states.append(bent(*states[-1], dt, offset_provider=mesh_))
        fj.compress([*states[0], dt], list(states[1]), find_repeats=True)
        model.output("by h", fj.derivative(fj.sum(states[-1][0]) + fj.sum(states[-1][1]), first))
    compiled = model.compile()
    loops = [n.operation for step in compiled.steps for n in step.body.nodes if isinstance(n.operation, Loop)]
    assert any(loop.sliced for loop in loops if isinstance(loop, Loop))

    def run(h: Any) -> jax.Array:
        u = start
        for _ in range(6):
            u = u - 0.1 * jnp.sin(h[edge_cells[:, 1]] * u - h[edge_cells[:, 0]])
            h = h + 0.1 * u[cell_edges].sum(1)
        return h.sum() + u.sum()

    np.testing.assert_allclose(compiled()["by h"].asnumpy(), jax.grad(run)(jnp.linspace(0.2, 1.0, 6)), rtol=1e-12)


def test_e1_the_adjoint_of_linear_steps_reads_no_state() -> None:
    """What a derivative asked for its domain alone isn't read: the forward chain keeps no states for it."""
    m, edge_cells, cell_edges = full_mesh()
    with fj.record() as model:
        mesh_, first, u = model.input("mesh", m), model.input("h", heights()), model.input("u", fj.zeros({Edge: 9}))
        dt, states = model.input("dt", 0.1), [(first, u)]
        for _ in range(5):
            states.append(wave(*states[-1], dt, offset_provider=mesh_))
        op = fj.compress([*states[0], dt], list(states[1]), find_repeats=True)
        model.output("by h", fj.derivative(fj.sum(states[-1][0]) + fj.sum(states[-1][1]), first))
    compiled = model.compile()
    loops = [n for step in compiled.steps for n in step.body.nodes if isinstance(n.operation, Loop)]
    assert len(op.repeats) == 4 and loops
    for node in loops:
        assert isinstance(node.operation, Loop)
        assert not node.operation.sliced and len(node.types) == node.operation.carries

    def run(h: Any) -> jax.Array:
        u = jnp.zeros(9)
        for _ in range(5):
            u = u - 0.1 * (h[edge_cells[:, 1]] - h[edge_cells[:, 0]])
            h = h + 0.1 * u[cell_edges].sum(1)
        return h.sum() + u.sum()

    np.testing.assert_allclose(compiled()["by h"].asnumpy(), jax.grad(run)(jnp.linspace(0.2, 1.0, 6)), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1_000_000 // 8, 16_000_000 // 8], ids=["1 MB", "16 MB"])
def test_e2_callbacks_do_not_hang(size: int) -> None:
    """Calls with asynchronous dispatch on and other work queued. Five hundred of them in the deep profile."""
    from hypothesis import settings

    calls = 500 if settings.default.max_examples >= 1000 else 20
    slow = jax.jit(lambda x: jax.lax.fori_loop(0, 20, lambda _, y: jnp.sin(y), x))
    region = fj.compressed(lambda x: jnp.cos(x) + 1.0, mode="callback")
    run = jax.jit(lambda x: region(x * 2.0).sum())
    x = jnp.ones(size)
    want = float(run(x))
    results = []
    for _ in range(calls):
        slow(x)
        results.append(run(x))
    assert {float(r) for r in results} == {want}


def test_e2_callbacks_refuse_where_they_could_hang() -> None:
    with pytest.raises(fj.FieldjaxError, match="would run on the device that waits") as caught:
        checked(jax.devices()[0])
    assert "JAX_NUM_CPU_DEVICES=2" in str(caught.value)
    assert checked(jax.devices()[1]) == jax.devices()[1]


def test_e2_one_device_without_asynchronous_dispatch_is_enough(run_python: Any) -> None:
    source = """
import jax, jax.numpy as jnp
import fieldjax as fj
jax.config.update("jax_cpu_enable_async_dispatch", False)
region = fj.compressed(lambda x: jnp.cos(x) + 1.0, mode="callback")
print(len(jax.devices()), float(jax.jit(lambda x: region(x))(0.0)))
"""
    assert run_python(source, JAX_NUM_CPU_DEVICES="1").split() == ["1", "2.0"]


def test_e3_fusion_is_an_option_of_a_region() -> None:
    def fusions(fusion: bool | None) -> int:
        model, values, p = chain(4, width=100_000)
        fj.compress([values[0], p], values[4], mode="segment", fusion=fusion)
        model.output("y", values[4])
        run = model.compile()
        np.testing.assert_allclose(run()["y"][:5], chain_reference(4)(jnp.linspace(0.1, 1.0, 100_000), P)[:5])
        text = run.text(compiled=True)[-1].splitlines()
        return sum(" fusion(" in line and "calls=%wrapped_" not in line for line in text)

    assert fusions(None) == fusions(True) > 0
    assert fusions(False) == 0


def test_e4_op_by_op_a_region_calls_its_function_and_nothing_else_is_compiled() -> None:
    model, values, p = chain(4)
    op = fj.compress([values[0], p], values[2], mode="segment", share_compiled=False)
    model.output("y", values[4])
    before = op.stats.compiled
    result = model.run(None)
    assert op.stats.compiled == before + 1
    model.run(None)
    assert op.stats.compiled == before + 1
    np.testing.assert_allclose(result["y"], chain_reference(4)(X, P), rtol=1e-13)


def test_e4_inline_regions_are_not_compiled_at_all() -> None:
    model, values, p = chain(4)
    op = fj.compress([values[0], p], values[2], mode="inline")
    model.output("y", values[4])
    before = op.stats.compiled
    np.testing.assert_allclose(model.run(None)["y"], chain_reference(4)(X, P), rtol=1e-13)
    assert op.stats.compiled == before


SECOND_PROCESS = """
import jax, jax.numpy as jnp
jax.config.update("jax_compilation_cache_dir", {cache!r})
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
import fieldjax as fj
misses = []
jax.monitoring.register_event_listener(lambda e, **_: misses.append(e) if "cache_misses" in e else None)
with fj.record() as model:
    x, p = model.input("x", jnp.linspace(0.1, 1.0, 5)), model.input("p", 0.7)
    h = x
    for n in range(4):
        before, h = h, fj.tanh(fj.sin(h * p) + 0.1)
        fj.compress([before, p], h, mode="segment")
    s = fj.sum(h)
    model.output("s", s)
    model.output("g", fj.derivative(s, p))
model.run()
print(len(misses))
"""


def test_e5_a_second_process_compiles_nothing_anew(run_python: Any, tmp_path: Any) -> None:
    source = SECOND_PROCESS.format(cache=str(tmp_path))
    first, second = int(run_python(source)), int(run_python(source))
    assert first > 0
    assert second == 0


def test_programs_are_compressed_too() -> None:
    @fj.compressed
    @fj.program
    def step(f, g, a):
        smooth(f, a, out=g)

    with fj.record() as model:
        m, f, g = model.input("mesh", mesh()), model.input("f", heights()), model.input("g", fj.zeros({Cell: 6}))
        a = model.input("a", 0.5)
        step(f, g, a, offset_provider=m)
        step(g, f, a, offset_provider=m)
        model.output("f", f)
    assert [op.name for op in model.compressed_operations] == ["step", "step"]
    x = jnp.linspace(0.2, 1.0, 6)
    want = smooth_reference(smooth_reference(x, 0.5), 0.5)
    np.testing.assert_allclose(model.run()["f"].asnumpy(), want, rtol=1e-13)
