"""Named collections: named tuples, dataclasses and other pytrees as arguments, results, carries and choices."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fieldjax as fj

I = fj.Dimension("I")
K = fj.Dimension("K", fj.DimensionKind.VERTICAL)
A, B = np.arange(6.0).reshape(2, 3), np.arange(6.0)[::-1].reshape(2, 3) ** 2


class AsNamedTuple(NamedTuple):
    u: Any
    v: Any


@dataclasses.dataclass
class AsDataclass:
    u: Any
    v: Any


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class AsFrozen:
    u: Any
    v: Any


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class AsRegistered:
    u: Any
    v: Any
    name: str = dataclasses.field(default="wind", metadata={"static": True})


@dataclasses.dataclass
class AsOptional:
    u: Any
    v: Any
    w: Any = None


@jax.tree_util.register_pytree_node_class
class AsPytree:
    def __init__(self, u: Any, v: Any) -> None:
        self.u, self.v = u, v

    def tree_flatten(self) -> Any:
        return (self.u, self.v), None

    @classmethod
    def tree_unflatten(cls, _: Any, children: Any) -> AsPytree:
        return cls(*children)


KINDS = [AsNamedTuple, AsDataclass, AsFrozen, AsRegistered, AsOptional, AsPytree]


def field(array: Any = A, wrap: Any = np.asarray) -> fj.Field:
    return fj.as_field({I: 2, K: 3}, wrap(array))


@pytest.fixture(params=KINDS, ids=lambda k: k.__name__)
def kind(request: Any) -> Any:
    return request.param


@pytest.fixture(params=["jax", None], ids=["compiled", "embedded"])
def backend(request: Any) -> Any:
    return request.param


@pytest.fixture(params=[np.asarray, jnp.asarray], ids=["NumPy", "JAX"])
def wrap(request: Any) -> Any:
    return request.param


def assert_holds(found: Any, kind: Any, u: Any, v: Any) -> None:
    assert type(found) is kind
    np.testing.assert_allclose(found.u.asnumpy(), u)
    np.testing.assert_allclose(found.v.asnumpy(), v)


def turned_of(kind: Any) -> Any:
    @fj.field_operator
    def turned(wind: Any, factor: Any) -> Any:
        return kind(v=wind.u - wind.v, u=factor * (wind.u + wind.v))

    return turned


def test_arguments_and_results(kind: Any, backend: Any, wrap: Any) -> None:
    turned = turned_of(kind).with_backend(backend)
    wind = kind(u=field(A, wrap), v=field(B, wrap))
    assert_holds(turned(wind, 2.0), kind, 2 * (A + B), A - B)
    assert_holds(turned(kind(u=wind.u, v=3.0), 2.0), kind, 2 * (A + 3), A - 3)
    assert turned.stats.recordings == 2


def test_out_is_filled_member_by_member(kind: Any, backend: Any, wrap: Any) -> None:
    turned = turned_of(kind).with_backend(backend)
    wind, out = kind(u=field(A, wrap), v=field(B, wrap)), kind(u=field(0 * A, wrap), v=field(0 * A, wrap))
    assert turned(wind, 1.0, out=out) is None
    assert_holds(out, kind, A + B, A - B)
    turned(wind, 2.0, out=out, domain=({I: 2, K: (0, 2)}, {I: (1, 2), K: 3}))
    u, v = 2 * (A + B), A - B
    u[:, 2] /= 2
    assert_holds(out, kind, u, v)


def test_programs_fill_members_of_their_arguments(kind: Any, backend: Any, wrap: Any) -> None:
    turned = turned_of(kind)

    @fj.program(backend=backend)
    def step(wind: Any, out: Any) -> None:
        turned(wind, 1.0, out=out)
        turned(out, 0.5, out=wind)

    wind, out = kind(u=field(A, wrap), v=field(B, wrap)), kind(u=field(0 * A, wrap), v=field(0 * A, wrap))
    step(wind, out)
    assert_holds(out, kind, A + B, A - B)
    assert_holds(wind, kind, A, 2 * B)


def test_both_choices_take_containers(kind: Any, backend: Any, wrap: Any) -> None:
    @fj.field_operator(backend=backend)
    def by_value(mask: Any, a: Any, b: Any) -> Any:
        return fj.where(mask, a, b)

    @fj.field_operator(backend=backend)
    def by_place(a: Any, b: Any) -> Any:
        return fj.concat_where(K < 1, a, b)

    a, b = kind(u=field(A, wrap), v=field(B, wrap)), kind(u=field(-A, wrap), v=field(-B, wrap))
    mask, first = A > 2, np.arange(3) < 1
    for found in (by_value(field(mask, wrap), a, b), fj.where(field(mask, wrap), a, b)):
        assert_holds(found, kind, np.where(mask, A, -A), np.where(mask, B, -B))
    for found in (by_place(a, b), fj.concat_where(K < 1, a, b)):
        assert_holds(found, kind, np.where(first, A, -A), np.where(first, B, -B))
    assert_holds(by_value(field(mask, wrap), a, 7.0), kind, np.where(mask, A, 7), np.where(mask, B, 7))
    assert fj.astype(a, "float32").u.dtype == fj.astype(a, "float32").v.dtype == np.float32


def test_carries_of_scans(kind: Any, backend: Any) -> None:
    @fj.scan_operator(axis=K, init=kind(u=0.0, v=1.0), backend=backend)
    def scan(carry: Any, wind: Any, factor: Any) -> Any:
        if wind.u > 1:
            return kind(u=carry.u + factor.u * wind.u, v=carry.v * 2.0)
        return kind(u=carry.u, v=carry.v + wind.v)

    u, v = np.empty_like(A), np.empty_like(A)
    above, double = np.zeros(2), np.ones(2)
    for k in range(3):
        taken = A[:, k] > 1
        above = u[:, k] = np.where(taken, above + 3 * A[:, k], above)
        double = v[:, k] = np.where(taken, double * 2, double + B[:, k])
    assert_holds(scan(kind(u=field(A), v=field(B)), kind(u=3.0, v=None)), kind, u, v)


@pytest.mark.parametrize("compiler", [lambda f: f, jax.jit, fj.jit], ids=["bare", "jax.jit", "fieldjax.jit"])
def test_under_transformations(kind: Any, compiler: Any) -> None:
    turned = turned_of(kind)
    wind = kind(u=field(A, jnp.asarray), v=field(B, jnp.asarray))
    turned(wind, 2.0)  # from here on JAX knows the dataclass
    assert_holds(compiler(lambda wind: turned(wind, 2.0))(wind), kind, 2 * (A + B), A - B)

    def loss(wind: Any) -> Any:
        found = turned(wind, 2.0)
        return jnp.sum(found.u.ndarray * found.v.ndarray)

    assert_holds(compiler(jax.grad(loss))(wind), kind, 4 * A, -4 * B)


def test_fieldjax_jit_rebinds_members(kind: Any) -> None:
    turned = turned_of(kind)
    out = kind(u=field(0 * A, jnp.asarray), v=field(0 * A, jnp.asarray))
    wind = kind(u=field(A, jnp.asarray), v=field(B, jnp.asarray))
    fj.jit(lambda wind, out: turned(wind, 1.0, out=out))(wind, out)
    assert_holds(out, kind, A + B, A - B)


def test_scalars_in_a_container_are_guarded_and_selected_like_others(kind: Any) -> None:
    @fj.field_operator
    def scaled(f: Any, options: Any) -> Any:
        return f * options.u if options.v > 0 else f

    for factor, switch in ((2.0, 1.0), (3.0, 2.0), (4.0, -1.0), (5.0, -2.0)):
        expected = A * factor if switch > 0 else A
        np.testing.assert_allclose(scaled(field(), kind(u=factor, v=switch)).asnumpy(), expected)
    assert scaled.stats.recordings == 2
    traced = jax.jit(lambda options: scaled(field(A, jnp.asarray), options).ndarray)
    np.testing.assert_allclose(traced(kind(u=2.0, v=1.0)), 2 * A)
    np.testing.assert_allclose(traced(kind(u=2.0, v=-1.0)), A)
    assert scaled.stats.recordings == 3


@dataclasses.dataclass
class Nested:
    a: tuple[Any, AsNamedTuple]
    b: tuple[AsDataclass, Any]


@pytest.mark.parametrize("compiler", [lambda f: f, jax.jit, fj.jit], ids=["bare", "jax.jit", "fieldjax.jit"])
def test_nested_and_mixed(backend: Any, compiler: Any) -> None:
    @fj.field_operator(backend=backend)
    def swapped(x: Any) -> Any:
        nested, f = x
        (p, tuple_), (data, q) = nested.a, nested.b
        return f, Nested(a=(q, AsNamedTuple(data.u, data.v)), b=(AsDataclass(v=tuple_.v, u=tuple_.u), p))

    f = [field(n * A, jnp.asarray) for n in range(7)]
    nested = Nested(a=(f[1], AsNamedTuple(f[2], f[3])), b=(AsDataclass(f[4], f[5]), f[6]))
    swapped((nested, f[0]))  # from here on JAX knows the dataclasses
    g, found = compiler(lambda x: swapped(x))((nested, f[0]))
    order = [g, found.a[0], *found.a[1], found.b[0].u, found.b[0].v, found.b[1]]
    for n, member in zip((0, 6, 4, 5, 2, 3, 1), order, strict=True):
        np.testing.assert_allclose(member.asnumpy(), n * A)


@dataclasses.dataclass
class Labelled:
    u: Any
    name: str


def test_containers_must_match_and_hold_data() -> None:
    with pytest.raises(fj.FieldjaxError, match="where chooses between containers of different structures") as caught:
        fj.where(field(A > 1), AsNamedTuple(field(), field()), (field(), field()))
    assert "the other (field, field)" in caught.value.notes[0]
    with pytest.raises(fj.FieldjaxError, match=r"where takes fields and scalars|can't stand|is not a scalar"):
        fj.where(field(A > 1), None, field())
    with pytest.raises(fj.FieldjaxError, match="`out` isn't structured like the result"):
        turned_of(AsNamedTuple)(AsNamedTuple(field(), field()), 1.0, out=(field(), field()))
    with pytest.raises(fj.FieldjaxError, match=r"help: tell JAX .*register_dataclass"):
        fj.field_operator(lambda x: x.u)(Labelled(field(), "name"))
