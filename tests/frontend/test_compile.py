"""Compiling ahead of calls: static parameters and their combinations, and what `enable_jit=False` refuses."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fieldjax as fj
from fieldjax.errors import ArgumentError, DtypeError, NotCompiledError, TracingError
from tests.refusals import refused

Cell, Edge = fj.Dimension("Cell"), fj.Dimension("Edge")
K = fj.Dimension("K", fj.DimensionKind.VERTICAL)
E2CDim = fj.Dimension("E2C", fj.DimensionKind.LOCAL)
E2C = fj.FieldOffset("E2C", source=Cell, target=(Edge, E2CDim))
F = np.arange(12.0).reshape(4, 3)


def field(array: Any = F, first: Any = Cell) -> fj.Field:
    return fj.as_field({first: array.shape[0], K: array.shape[1]}, array)


def abstract(*shape: int) -> fj.Field:
    return fj.as_field([Cell, K][: len(shape)], jax.ShapeDtypeStruct(shape, "float64"))


def mesh(skip: bool = False) -> dict[str, Any]:
    table = [[0, 1], [1, 2], [2, -1 if skip else 3]]
    return {"E2C": fj.as_connectivity({Edge: 3, E2CDim: 2}, Cell, table, skip_value=-1 if skip else None)}


def plain(f: Any, scale: float, n: int, flag: bool) -> Any:
    for _ in range(n):
        f = f * scale if flag else f - scale
    return f


def expected(scale: float, n: int, flag: bool) -> np.ndarray:
    return F * scale**n if flag else F - n * scale


operator = fj.field_operator(plain)


@fj.scan_operator(axis=K, init=0.0)
def scan(above: Any, f: Any, scale: float, n: int, flag: bool) -> Any:
    return above + plain(f, scale, n, flag)


@fj.program
def program(f: Any, scale: float, n: int, flag: bool, out: Any) -> None:
    operator(f, scale, n, flag, out=out)


KINDS: dict[str, Any] = {"operator": operator, "program": program, "scan": scan}
VALUES = {"scale": [2.0, 3.0], "n": [1, 2], "flag": [True, False]}


def run(entry: Any, **options: Any) -> np.ndarray:
    """What an entry point gives, whatever kind it is."""
    if isinstance(entry, fj.FieldProgram):
        out = field(np.zeros_like(F))
        entry(field(), out=out, **options)
        return out.asnumpy()
    result = entry(field(), **options).asnumpy()
    return np.diff(result, axis=1, prepend=0.0) if isinstance(entry, fj.ScanOperator) else result


def example(entry: Any) -> dict[str, Any]:
    return {"out": abstract(4, 3)} if isinstance(entry, fj.FieldProgram) else {}


def combinations() -> list[dict[str, Any]]:
    return [dict(zip(VALUES, values, strict=True)) for values in itertools.product(*VALUES.values())]


@pytest.fixture(params=list(KINDS))
def entry(request: Any) -> Any:
    """One of each kind, that doesn't compile at calls."""
    return KINDS[request.param].with_compilation_options(enable_jit=False)


def test_all_combinations_are_compiled_where_the_fields_are_given(entry: Any) -> None:
    assert entry.compile(abstract(4, 3), **example(entry), **VALUES) is entry
    assert entry.stats == (8, 8, 8)
    for values in combinations():
        np.testing.assert_allclose(run(entry, **values), expected(**values))
    assert entry.stats == (8, 8, 8)
    with pytest.raises(NotCompiledError, match="isn't compiled for this call, and `enable_jit` is off"):
        run(entry, scale=2.0, n=3, flag=True)


def test_what_was_compiled_ahead_is_not_compiled_by_the_call() -> None:
    compiled: list[str] = []
    own = fj.field_operator(lambda f: jnp.pi * f).compile(abstract(4, 3))

    def listen(name: str, *_: Any, **__: Any) -> None:
        compiled.append(name)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        own(field())
        assert not [name for name in compiled if "compile" in name]
        own(field(F[:3]))
        assert [name for name in compiled if "compile" in name]
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


def test_without_fields_combinations_are_admitted_for_any_domain(entry: Any) -> None:
    entry.compile(offset_provider={}, **VALUES)
    assert entry.stats == (0, 0, 0)
    for n, values in enumerate(combinations(), 1):
        np.testing.assert_allclose(run(entry, **values), expected(**values))
        assert entry.stats == (n, n, n)


def test_scalars_are_compared_by_value(entry: Any) -> None:
    entry.compile(n=[1, 2], scale=[2.0], flag=[True])
    values = {"scale": np.float64(2.0), "n": np.int64(2), "flag": np.bool_(True)}
    np.testing.assert_allclose(run(entry, **values), expected(2.0, 2, True))


def test_the_refusal_lists_what_was_compiled() -> None:
    own = program.with_compilation_options(enable_jit=False).compile(n=[1, 2], scale=[2.0], flag=[True])
    with pytest.raises(NotCompiledError) as caught:
        run(own, scale=2.0, n=3, flag=False)
    assert str(caught.value).splitlines()[0] == "program isn't compiled for this call, and `enable_jit` is off"
    assert caught.value.notes == (
        "the call is flag=False, n=3, scale=2.0",
        "compiled ahead for any fields are:\n  flag=True, n=1, scale=2.0\n  flag=True, n=2, scale=2.0",
    )
    assert "compile it ahead: `compile(offset_provider=..., ...)`" in caught.value.hints
    assert isinstance(caught.value, RuntimeError)


def test_a_call_may_allow_itself_to_compile(entry: Any) -> None:
    entry.compile(scale=[2.0], n=[1], flag=[True])
    values = {"scale": 3.0, "n": 2, "flag": False}
    with pytest.raises(NotCompiledError):
        run(entry, **values)
    np.testing.assert_allclose(run(entry, **values, enable_jit=True), expected(**values))
    np.testing.assert_allclose(run(entry, **values), expected(**values))


def test_a_call_may_forbid_itself_to_compile() -> None:
    own = operator.with_backend("jax")
    with pytest.raises(NotCompiledError, match="nothing else was compiled"):
        own(field(), 2.0, 1, True, enable_jit=False)
    own(field(), 2.0, 1, True)
    own(field(), 3.0, 1, True, enable_jit=False)


def test_a_static_scalar_compiles_for_each_value_and_type() -> None:
    own = fj.field_operator(lambda f, dt: f * dt, static_params=("dt",))
    for dt in (1.0, 2.0, 2.0, np.float64(2.0), 0.0, -0.0, 0.0):
        np.testing.assert_array_equal(own(field(), dt).asnumpy(), F * dt)
    assert own.stats.recordings == 5
    assert np.signbit(own(field(), -0.0).asnumpy()).all()
    lowered = own.lower(field(), 2.0)
    assert len(lowered.jaxpr.jaxpr.invars) == 1


def test_scalars_that_are_not_static_do_not_compile_again() -> None:
    own = fj.field_operator(lambda f, dt, n: f * dt + n, static_params="n")
    for dt in (1.0, 2.0, 3.0):
        np.testing.assert_array_equal(own(field(), dt, 1).asnumpy(), F * dt + 1)
    assert own.stats == (1, 1, 1)


def test_compile_declares_what_is_static() -> None:
    own = operator.with_backend("jax")
    run(own, scale=2.0, n=1, flag=True)
    own.compile(scale=[2.0])
    for scale in (2.0, 3.0, 4.0):
        np.testing.assert_allclose(run(own, scale=scale, n=1, flag=True), expected(scale, 1, True))
    assert own.stats.recordings == 1 + 3


def test_later_compilations_may_make_more_parameters_static() -> None:
    own = operator.with_compilation_options(enable_jit=False).compile(n=[1])
    np.testing.assert_allclose(run(own, scale=5.0, n=1, flag=True), 5 * F)
    own.compile(n=[2], scale=[3.0])
    np.testing.assert_allclose(run(own, scale=7.0, n=1, flag=True), 7 * F)
    np.testing.assert_allclose(run(own, scale=3.0, n=2, flag=True), 9 * F)
    with pytest.raises(NotCompiledError, match=r"n=2, scale=7\.0"):
        run(own, scale=7.0, n=2, flag=True)


def test_static_parameters_may_be_set_anew() -> None:
    own = operator.with_compilation_options(static_params=("scale",)).compile(scale=[2.0])
    generic = own.with_static_params(None)
    for scale in (2.0, 3.0):
        np.testing.assert_allclose(run(generic, scale=scale, n=1, flag=True), expected(scale, 1, True))
    assert generic.stats.recordings == 1
    other = own.with_static_params("n", "flag").with_compilation_options(enable_jit=False)
    other.compile(n=[2], flag=[False])
    np.testing.assert_allclose(run(other, scale=5.0, n=2, flag=False), expected(5.0, 2, False))
    with pytest.raises(NotCompiledError):
        run(other, scale=5.0, n=2, flag=True)


def test_options_and_what_is_compiled_belong_to_the_new_object() -> None:
    own = operator.with_compilation_options(enable_jit=False)
    assert operator.options.enable_jit and not own.options.enable_jit
    assert own.with_grid_type("unstructured") is own
    other = own.compile(scale=[2.0], n=[1], flag=[True]).with_backend("jax")
    assert not other.options.enable_jit
    with pytest.raises(NotCompiledError):
        run(other, scale=2.0, n=1, flag=True)


class Pair(NamedTuple):
    a: Any
    b: Any


def test_a_static_parameter_may_be_a_container() -> None:
    own = fj.program(lambda f, pair, out: operator(f, pair[0], pair[1], True, out=out), enable_jit=False)
    own.compile(pair=[(2.0, 1), Pair(3.0, 2)])
    out = field(np.zeros_like(F))
    own(field(), (2.0, 1), out)
    np.testing.assert_allclose(out.asnumpy(), 2 * F)
    own(field(), Pair(3.0, 2), out)
    np.testing.assert_allclose(out.asnumpy(), 9 * F)
    with pytest.raises(NotCompiledError, match=r"the call is pair=\(3.0, 1\)"):
        own(field(), (3.0, 1), out)


def test_kinds_of_tables_belong_to_a_variant() -> None:
    own = fj.field_operator(lambda f: fj.neighbor_sum(f(E2C), axis=E2CDim), enable_jit=False)
    own.compile(offset_provider=mesh(skip=True))
    reduced = F[:3] + np.concatenate([F[1:3], np.zeros((1, 3))])
    np.testing.assert_allclose(own(field(), offset_provider=mesh(skip=True)).asnumpy(), reduced)
    with pytest.raises(NotCompiledError) as caught:
        own(field(), offset_provider=mesh())
    assert caught.value.notes[0] == "the call is E2C: Edge×E2C -> Cell, 2 neighbours"
    assert "E2C: Edge×E2C -> Cell, 2 neighbours with skips" in caught.value.notes[1]
    own.compile(offset_provider=[mesh(), mesh(skip=True)])
    np.testing.assert_allclose(own(field(), offset_provider=mesh()).asnumpy(), F[:3] + F[1:])


def test_unused_tables_do_not_matter() -> None:
    own = operator.with_compilation_options(enable_jit=False)
    own.compile(scale=[2.0], n=[1], flag=[True], offset_provider=mesh())
    for provider in (mesh(skip=True), {}, {"V2E": None, **mesh()}):
        np.testing.assert_allclose(run(own, scale=2.0, n=1, flag=True, offset_provider=provider), 2 * F)


def test_connectivities_are_what_compile_takes() -> None:
    own = fj.field_operator(lambda f: f(E2C[0]), enable_jit=False, connectivities=mesh())
    own.compile(abstract(4, 3))
    assert own.stats.traces == 1
    np.testing.assert_allclose(own(field(), offset_provider=mesh()).asnumpy(), F[:3])


def test_embedded_nothing_is_compiled_and_nothing_is_refused(entry: Any) -> None:
    embedded = entry.with_backend(None)
    assert embedded.compile(**VALUES).compile(abstract(4, 3), **example(entry), **VALUES) is embedded
    np.testing.assert_allclose(run(embedded, scale=7.0, n=3, flag=True), expected(7.0, 3, True))
    assert embedded.stats.traces == 0


def test_compiled_variants_under_transformations() -> None:
    own = operator.with_compilation_options(enable_jit=False).compile(scale=[2.0], n=[3], flag=[True])

    def loss(f: fj.Field) -> Any:
        return jnp.sum(own(f, 2.0, 3, True).ndarray)

    for gradient in (jax.grad(loss), jax.jit(jax.grad(loss)), fj.jit(jax.grad(loss))):
        np.testing.assert_allclose(gradient(field(jnp.asarray(F))).asnumpy(), 8.0)


def test_inside_of_another_operator_options_do_not_matter() -> None:
    inner = operator.with_compilation_options(enable_jit=False, static_params=("scale",))
    outer = fj.field_operator(lambda f, scale: inner(f, scale, 2, True))
    for scale in (2.0, 3.0):
        np.testing.assert_allclose(outer(field(), scale).asnumpy(), expected(scale, 2, True))
    assert outer.stats.recordings == 1


MISUSES: list[Any] = [
    (lambda: program.with_backend("jax").compile(m=[1]), ArgumentError, "program has no parameter 'm'"),
    (lambda: program.with_static_params("m"), ArgumentError, "program has no parameter 'm'"),
    (lambda: program.with_static_params("n").compile(n=[1], flag=[True]), ArgumentError, "isn't a static parameter"),
    (lambda: program.with_static_params("n", "flag").compile(n=[1]), ArgumentError, "static parameter flag"),
    (lambda: program.with_backend("jax").compile(n=3), ArgumentError, "takes a list of values"),
    (lambda: program.with_backend("jax").compile(n=[1.5]), DtypeError, "n is annotated int, but is a Python float"),
    (lambda: program.with_backend("jax").compile(f=[field()]), ArgumentError, "the static parameter 'f' is a field"),
    (lambda: program.with_compilation_options(jit=True), ArgumentError, "'jit' isn't a compilation option"),
    (lambda: fj.field_operator(lambda f: f, static_params="g"), ArgumentError, "has no parameter 'g'"),
    (lambda: operator.with_backend("jax").compile(abstract(4, 3)), ArgumentError, "missing a required argument"),
]


@pytest.mark.parametrize(("call", "error", "message"), MISUSES)
def test_misuse_is_a_located_error(call: Any, error: Any, message: str) -> None:
    with refused(message, error) as caught:
        call()
    assert caught.value.location is not None
    assert caught.value.location.file == __file__


def test_a_static_scalar_that_is_traced_is_an_error() -> None:
    own = operator.with_static_params("scale")
    with pytest.raises(TracingError, match="static parameter 'scale' is a scalar that JAX is tracing"):
        jax.jit(lambda scale: own(field(), scale, 1, True).ndarray)(2.0)
