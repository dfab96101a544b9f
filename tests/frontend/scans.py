"""What the tests of scan operators share: fields, operators, and all ways of running one."""

import jax
import jax.numpy as jnp
import numpy as np

import fieldjax as fj

Cell, Edge = fj.Dimension("Cell"), fj.Dimension("Edge")
K = fj.Dimension("K", fj.DimensionKind.VERTICAL)
C2EDim = fj.Dimension("C2E", fj.DimensionKind.LOCAL)
C2E = fj.FieldOffset("C2E", source=Edge, target=(Cell, C2EDim))
COLUMNS, LEVELS = 4, 6


def numbers(*shape, seed=0, low=0.5, high=1.5):
    return np.random.default_rng(seed).uniform(low, high, shape)


def field(array, *dims):
    return fj.as_field(dict(zip(dims, np.shape(array), strict=True)), array)


def columns(seed=0, **options):
    return numbers(COLUMNS, LEVELS, seed=seed, **options)


def plain(tree):
    return jax.tree.map(
        np.asarray, [f.asnumpy() for f in jax.tree.leaves(tree, is_leaf=lambda x: isinstance(x, fj.Field))]
    )


def everywhere(operator, *fields, mesh=None, **options):
    """What the operator gives, after all ways of running it agreed."""
    embedded = operator.with_backend(None)
    on_jax = jax.tree.map(lambda x: jnp.asarray(x) if isinstance(x, np.ndarray) else x, fields)

    def call(mesh, *fields):
        return operator(*fields, offset_provider=mesh, **options)

    runs = [
        embedded(*fields, offset_provider=mesh, **options),
        call(mesh, *fields),
        embedded(*on_jax, offset_provider=mesh, **options),
        jax.jit(call)(mesh, *on_jax),
        fj.jit(call)(mesh, *on_jax),
    ]
    first, *others = runs
    for other in others:
        assert type(other) is type(first)
        for mine, theirs in zip(plain(first), plain(other), strict=True):
            assert mine.dtype == theirs.dtype
            np.testing.assert_allclose(mine, theirs, rtol=1e-13, atol=1e-300)
    return first


@fj.scan_operator(axis=K, init=0.0)
def total(carry, f):
    return carry + f


@fj.scan_operator(axis=K, init=(0.0, 0.0))
def eliminate(carry, a, b, c, d):
    pivot = b - a * carry[0]
    return c / pivot, (d - a * carry[1]) / pivot


@fj.scan_operator(axis=K, forward=False, init=0.0)
def substitute(below, c, d):
    return d - c * below


@fj.field_operator
def solve(a, b, c, d):
    c, d = eliminate(a, b, c, d)
    return substitute(c, d)


def tridiagonal():
    a, b, c, d = (columns(seed) + 3.0 * (seed == 1) for seed in range(4))
    matrix, k = np.zeros((COLUMNS, LEVELS, LEVELS)), np.arange(LEVELS)
    matrix[:, k, k], matrix[:, k[1:], k[:-1]], matrix[:, k[:-1], k[1:]] = b, a[:, 1:], c[:, :-1]
    return matrix, [a, b, c, d]
