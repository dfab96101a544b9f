"""The linear-operation primitive under every transformation of JAX, against plain indexing."""

import gc
import weakref
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType, PartitionSpec

from fieldjax.ir.linear import Batched, linear, linear_p

EDGES, VERTICES, LEVELS = 12, 7, 3


@dataclass(frozen=True)
class Read:
    """Vertices to the two ends of each edge."""

    def __call__(self, inputs, residuals):
        (x,), (ends, _, _) = inputs, residuals
        return (x[ends],)


@dataclass(frozen=True)
class ReadBack:
    """Its transpose, by a gather through the transposed table."""

    def __call__(self, inputs, residuals):
        (y,), (_, places, used) = inputs, residuals
        return (jnp.where(used[..., None], y.reshape(-1, y.shape[-1])[places], 0).sum(1),)


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng(0)
    ends = rng.integers(0, VERTICES, (EDGES, 2)).astype(np.int32)
    degree = np.bincount(ends.ravel(), minlength=VERTICES)
    used = np.arange(degree.max()) < degree[:, None]
    places = np.zeros(used.shape, np.int32)
    places[used] = np.argsort(ends.ravel(), kind="stable")
    return jnp.asarray(ends), jnp.asarray(places), jnp.asarray(used)


def through_primitive(x, *tables):
    return linear(Read(), ReadBack(), [x], tables)[0]


def plain(x, ends, *_):
    return x[ends]


X = jnp.asarray(np.random.default_rng(1).random((VERTICES, LEVELS)) + 1.0)
V = jnp.asarray(np.random.default_rng(2).standard_normal((VERTICES, LEVELS)))


class Uses:
    """What the tests do with one way of reading: a loss of two reads with logarithms between, and steps."""

    def __init__(self, read, tables):
        self.tables = tables
        self.read = lambda x: read(x, *tables)
        self.full = lambda x, *t: jnp.sum(jnp.sin(read(jnp.log(read(x, *t).sum(1)[:VERTICES]), *t)) ** 2)
        self.loss = lambda x: self.full(x, *tables)
        self.step = lambda c: jnp.log(self.read(c).sum(1)[:VERTICES]) + 2

    def looped(self, x):
        return lax.scan(lambda c, _: (self.step(c), None), x, None, length=4)[0].sum()

    def counted(self, x):
        return lax.fori_loop(0, 4, lambda _, c: self.step(c), x).sum()

    def sharded(self, stacked, shared):
        mesh = jax.make_mesh((2,), ("r",), axis_types=(AxisType.Auto,))
        here, everywhere = PartitionSpec("r"), PartitionSpec()

        def local(stacked, shared, *tables):
            return jax.vmap(lambda x: self.full(x + shared, *tables))(stacked)

        specs = (here, everywhere, *(everywhere for _ in self.tables))
        return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=here)(stacked, shared, *self.tables)


STACK = jnp.stack([X, X + 1, X * 2, X * 3])
ZERO = jnp.zeros_like(X)

CASES = {
    "value": lambda u: u.loss(X),
    "jit": lambda u: jax.jit(u.full)(X, *u.tables),
    "grad": lambda u: jax.grad(u.full)(X, *u.tables),
    "jit of grad": lambda u: jax.jit(jax.grad(u.full))(X, *u.tables),
    "grad of jit": lambda u: jax.grad(jax.jit(u.full))(X, *u.tables),
    "jvp": lambda u: jax.jvp(u.loss, (X,), (V,)),
    "jit of jvp": lambda u: jax.jit(lambda x, v: jax.jvp(u.loss, (x,), (v,)))(X, V),
    "linearize": lambda u: jax.linearize(u.loss, X)[1](V),
    "linearize of jit": lambda u: jax.linearize(jax.jit(u.loss), X)[1](V),
    "linear_transpose": lambda u: jax.linear_transpose(u.read, X)(jnp.ones((EDGES, 2, LEVELS))),
    "vmap": lambda u: jax.vmap(u.loss)(STACK),
    "vmap of grad": lambda u: jax.vmap(jax.grad(u.loss))(STACK),
    "grad of vmap": lambda u: jax.grad(lambda s: jax.vmap(u.loss)(s).sum())(STACK),
    "vmap of another axis": lambda u: jax.vmap(u.loss, 2)(jnp.moveaxis(STACK, 0, 2)),
    "vmap of vmap of grad": lambda u: jax.vmap(jax.vmap(jax.grad(u.loss)))(STACK.reshape(2, 2, *X.shape)),
    "jacrev": lambda u: jax.jacrev(u.read)(X),
    "jacfwd": lambda u: jax.jacfwd(u.read)(X),
    "hessian": lambda u: jax.hessian(u.loss)(X),
    "reverse of reverse": lambda u: jax.jacrev(jax.jacrev(u.loss))(X),
    "reverse of forward": lambda u: jax.jacrev(jax.jacfwd(u.loss))(X),
    "forward of reverse": lambda u: jax.jvp(jax.grad(u.loss), (X,), (V,))[1],
    "third order": lambda u: jax.grad(lambda x: jax.jvp(jax.grad(u.loss), (x,), (V,))[1].sum())(X),
    "grad of scan": lambda u: jax.grad(u.looped)(X),
    "jvp of scan": lambda u: jax.jvp(u.looped, (X,), (V,)),
    "grad of remat": lambda u: jax.grad(jax.checkpoint(u.loss))(X),
    "grad of cond": lambda u: jax.grad(lambda x: lax.cond(x[0, 0] > 0, u.loss, lambda _: 0.0, x))(X),
    "jvp of while": lambda u: jax.jvp(u.counted, (X,), (V,)),
    "shard_map": lambda u: u.sharded(STACK, ZERO),
    "grad of shard_map": lambda u: jax.grad(lambda s: u.sharded(s, ZERO).sum())(STACK),
    "grad of shard_map, shared": lambda u: jax.grad(lambda z: u.sharded(STACK, z).sum())(ZERO),
    "jit of grad of shard_map": lambda u: jax.jit(jax.grad(lambda s: u.sharded(s, ZERO).sum()))(STACK),
    "float32": lambda u: jax.grad(u.loss)(X.astype("f4")),
}


@pytest.mark.parametrize("case", CASES)
def test_it_transforms_like_plain_indexing(case, tables):
    found, expected = (CASES[case](Uses(read, tables)) for read in (through_primitive, plain))
    rounding = 1e-5 if case == "float32" else 1e-12
    for f, e in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert f.dtype == e.dtype
        np.testing.assert_allclose(f, e, rtol=rounding, atol=rounding)


def test_no_scatter_is_left_in_the_gradient(tables):
    text = jax.jit(jax.grad(lambda x: (through_primitive(x, *tables) ** 2).sum())).lower(X).as_text()
    assert "scatter" not in text


@dataclass(frozen=True)
class Rotate:
    """Two inputs to two outputs with the matrix [[a, -b], [b, a]], or its transpose."""

    turn: int = 1

    def __call__(self, inputs, residuals):
        (x, y), (a, b) = inputs, residuals
        return a * x - self.turn * b * y, self.turn * b * x + a * y


def rotated(x, y, a, b):
    return linear(Rotate(), Rotate(-1), [x, y], [a, b])


def rotated_plainly(x, y, a, b):
    return Rotate()((x, y), (a, b))


def checked(transform, *args):
    found, expected = (transform(f)(*args) for f in (rotated, rotated_plainly))
    jax.tree.map(lambda f, e: np.testing.assert_allclose(f, e, rtol=1e-12), found, tuple(expected))


def total(f):
    return lambda *args: sum((n + 1) * jnp.sum(y**2) for n, y in enumerate(f(*args)))


ARGUMENTS = tuple(jnp.asarray(np.random.default_rng(3).random((4, 5))))


def test_several_inputs_and_outputs_and_derivatives_along_residuals():
    everything = (0, 1, 2, 3)
    checked(lambda f: f, *ARGUMENTS)
    checked(lambda f: jax.grad(total(f), everything), *ARGUMENTS)
    checked(lambda f: jax.jacfwd(f, everything), *ARGUMENTS)
    checked(lambda f: jax.jacrev(f, everything), *ARGUMENTS)
    checked(lambda f: jax.hessian(total(f), everything), *ARGUMENTS)


STACKED = [(0, None, None, None), (None, None, 0, None), (None, 1, 0, 1), (1, 0, 1, 0)]


@pytest.mark.parametrize("stacked", STACKED)
def test_vmap_over_some_inputs_and_residuals(stacked):
    rng = np.random.default_rng(4)
    shapes = [(5,) if s is None else (6, 5) if s == 0 else (5, 6) for s in stacked]
    args = [jnp.asarray(rng.random(shape)) for shape in shapes]
    checked(lambda f: jax.vmap(f, stacked), *args)
    checked(lambda f: jax.vmap(jax.grad(total(f), (0, 1, 2, 3)), stacked), *args)


def test_an_output_that_nobody_uses_and_an_input_that_is_known():
    x, y, a, b = ARGUMENTS
    checked(lambda f: jax.grad(lambda *args: (f(*args)[1] ** 3).sum(), (0, 3)), *ARGUMENTS)
    for f in (rotated, rotated_plainly):
        transposed = jax.linear_transpose(lambda x, f=f: f(x, jnp.zeros_like(y), a, b)[0], x)
        np.testing.assert_allclose(transposed(x)[0], a * x)


def test_inputs_that_are_the_same_on_all_devices_beside_residuals_that_are_not():
    mesh = jax.make_mesh((2,), ("r",), axis_types=(AxisType.Auto,))
    here, everywhere = PartitionSpec("r"), PartitionSpec()
    x, y = ARGUMENTS[:2]
    a, b = jnp.asarray(np.random.default_rng(5).random((2, 4, 5)))

    def over(f):
        def local(x, y, a, b):
            return tuple(f(x, y, a, b))

        specs = (everywhere, everywhere, here, here)
        return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=(here, here))

    def each(f):
        return lambda x, y, a, b: f(jnp.tile(x, (2, 1)), jnp.tile(y, (2, 1)), a, b)

    x, y = x[None].repeat(2, 0), y[None].repeat(2, 0)
    found = jax.grad(total(over(rotated)), (0, 1, 2, 3))(x, y, a, b)
    expected = jax.grad(total(each(rotated_plainly)), (0, 1, 2, 3))(x, y, a, b)
    jax.tree.map(lambda f, e: np.testing.assert_allclose(f, e, rtol=1e-12), found, expected)


def test_maps_compare_by_value_so_that_equal_ones_share_what_is_compiled(tables):
    assert Batched(Read(), (None, 0)) == Batched(Read(), (None, 0)) != Batched(ReadBack(), (None, 0))
    traced = []

    @dataclass(frozen=True)
    class Noted:
        def __call__(self, inputs, residuals):
            traced.append(inputs)
            return inputs

    linear(Noted(), Noted(), [X])
    count = len(traced)
    again = linear(Noted(), Noted(), [X + 1])
    assert len(traced) == count
    np.testing.assert_array_equal(again[0], X + 1)


def test_residuals_are_no_constants_of_the_jaxpr_and_are_not_kept_alive():
    weights = jnp.asarray(np.random.default_rng(6).random((VERTICES, LEVELS)))
    alive = weakref.ref(weights)

    def scaled(x, w):
        return linear(Rotate(), Rotate(-1), [x, x], [w, w])[0].sum()

    closed = jax.make_jaxpr(jax.jit(jax.grad(scaled)))(X, weights)
    assert not closed.consts
    jax.grad(scaled)(X, weights)
    del weights, closed
    gc.collect()
    assert alive() is None


def test_it_is_one_primitive_in_the_jaxpr(tables):
    jaxpr = jax.make_jaxpr(through_primitive)(X, *tables)
    assert [eqn.primitive for eqn in jaxpr.eqns] == [linear_p]
