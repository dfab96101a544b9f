"""The barrier is the identity under every transformation, and keeps XLA from computing a producer again."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fieldjax as fj
from fieldjax.backend.barrier import materialise

X = jnp.arange(1.0, 7.0).reshape(2, 3)


def through(x: Any) -> Any:
    return jnp.sin(materialise(x * x))


def plain(x: Any) -> Any:
    return jnp.sin(x * x)


TRANSFORMED = {
    "value": lambda f: f(X),
    "jit": lambda f: jax.jit(f)(X),
    "grad": lambda f: jax.grad(lambda x: f(x).sum())(X),
    "jit of grad": lambda f: jax.jit(jax.grad(lambda x: f(x).sum()))(X),
    "jvp": lambda f: jax.jvp(f, (X,), (X,)),
    "linearize": lambda f: jax.linearize(f, X)[1](X),
    "vjp": lambda f: jax.vjp(f, X)[1](X)[0],
    "hessian": lambda f: jax.hessian(lambda x: f(x).sum())(X),
    "vmap": lambda f: jax.vmap(f)(X),
    "scan": lambda f: jax.lax.scan(lambda c, _: (f(c), None), X, None, length=3)[0],
    "remat": lambda f: jax.grad(lambda x: jax.checkpoint(f)(x).sum())(X),
    "cond": lambda f: jax.lax.cond(X[0, 0] > 0, f, lambda x: x, X),
    "scalar": lambda f: f(X[0, 0]),
    "integers": lambda f: jnp.asarray(f(jnp.arange(3))),
    "empty": lambda f: f(X[:0]),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_it_is_the_identity(name: str) -> None:
    found, expected = TRANSFORMED[name](through), TRANSFORMED[name](plain)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)


def test_it_is_the_identity_on_several_devices() -> None:
    mesh = jax.make_mesh((2,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("d"))
    found = jax.jit(through)(jax.device_put(X, sharding))
    np.testing.assert_allclose(found, plain(X))
    assert found.sharding.is_equivalent_to(sharding, 2)


def test_it_can_be_exported() -> None:
    exported = jax.export.export(jax.jit(through))(jax.ShapeDtypeStruct(X.shape, X.dtype))
    np.testing.assert_allclose(exported.call(X), plain(X))


def flops(stages: int) -> float:
    """What XLA says that a chain of nonlinear gather-reduce stages costs."""
    cell, local = fj.Dimension("Cell"), fj.Dimension("C2C", fj.DimensionKind.LOCAL)
    offset = fj.FieldOffset("C2C", source=cell, target=(cell, local))
    table = (np.arange(64)[:, None] + np.array([1, 7, 11])) % 64
    mesh = fj.Mesh(C2C=fj.as_connectivity([cell, local], cell, table))

    @fj.field_operator
    def chain(f: Any) -> Any:
        for _ in range(stages):
            f = fj.neighbor_sum(f(offset), axis=local) * 0.25 + f * f
        return f

    f = fj.as_field([cell], jnp.ones(64))
    lowered = jax.jit(lambda f, m: chain(f, offset_provider=m).ndarray).lower(f, mesh)
    cost = lowered.compile().cost_analysis()
    return float((cost[0] if isinstance(cost, list) else cost)["flops"])


def test_work_grows_with_the_number_of_stages_not_with_its_power() -> None:
    four, eight = flops(4), flops(8)
    assert four > 0
    assert eight < 3 * four
