"""What is asked of each of the twelve operators: values in every mode, tangents, adjoints.

`check(operator, reference, *arguments, mesh=...)`: the reference is plain NumPy on the arguments' arrays. It
gives NaN where a result is unspecified, because a neighbour that it reads is missing; a field is finite there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import fieldjax as gtx

Run = Callable[..., Any]
"""`run(operator, mesh, arguments)`: fields."""


def calling(**options: Any) -> Run:
    """Calls an operator and takes what it returns."""
    return lambda operator, mesh, arguments: operator(*arguments, offset_provider=mesh, **options)


def filling(*domains: Any, also: Sequence[int] = (), **options: Any) -> Run:
    """Calls a program on the arguments and new fields on `domains`.

    The results are these, then the arguments at the positions `also`, which it overwrites.
    """

    def run(operator: Any, mesh: Any, arguments: Sequence[Any]) -> Any:
        xp = np if all(isinstance(x, np.ndarray) for x in arrays(arguments)) else jnp
        own = jax.tree.map(_fresh, arguments, is_leaf=is_field)
        out = [gtx.as_field(d, xp.zeros(gtx.domain(d).shape)) for d in domains]
        operator(*own, *out, offset_provider=mesh, **options)
        return (*out, *(own[n] for n in also))

    return run


def _fresh(x: Any) -> Any:
    return gtx.as_field(x.domain, x.ndarray.copy()) if is_field(x) else x


def is_field(x: Any) -> bool:
    return isinstance(x, gtx.Field)


def fields(tree: Any) -> list[gtx.Field]:
    return [x for x in jax.tree.leaves(tree, is_leaf=is_field) if is_field(x)]


def arrays(tree: Any) -> list[Any]:
    return [f.ndarray for f in fields(tree)]


def check(
    operator: Any,
    reference: Callable[..., Any],
    *arguments: Any,
    mesh: Any,
    run: Run | None = None,
    kinks: float = 0.0,
) -> None:
    """Values against the reference in every mode, tangents against its differences, adjoints against tangents.

    `kinks`: the part of the elements that may take another branch a small step further.
    """
    run = run or calling()
    split = Split(arguments)
    expected = flat(split.reference(reference, split.start))
    tables = getattr(mesh, "mesh", mesh)
    for result in (
        run(operator.with_backend(None), tables, split.around(split.start)),
        run(operator, tables, split.around(split.start)),
        run(operator, tables, split.around(split.on_jax)),
    ):
        assert_values(fields(result), expected)
    direction = split.direction()
    value, tangent, weights, cotangent = derivatives(operator, run, split, tables, direction)
    assert_arrays(value, expected)
    assert_adjoint(tangent, weights, direction, cotangent)
    assert_tangent(lambda at: flat(split.reference(reference, at)), split.start, direction, tangent, kinks)


class Split:
    """Arguments, and among their fields the floating-point ones, with respect to which all is differentiated."""

    def __init__(self, arguments: Any) -> None:
        self.leaves, self._tree = jax.tree.flatten(arguments, is_leaf=is_field)
        self._varied = [n for n, x in enumerate(self.leaves) if is_field(x) and x.dtype == np.float64]
        self.start = [self.leaves[n].asnumpy() for n in self._varied]

    @property
    def on_jax(self) -> list[Any]:
        return [jnp.asarray(a) for a in self.start]

    def around(self, values: Sequence[Any]) -> Any:
        """The arguments over other arrays; fields of other dtypes join their library."""
        xp = np if all(isinstance(v, np.ndarray) for v in values) else jnp
        varied = dict(zip(self._varied, values, strict=True))
        leaves = [
            gtx.as_field(x.domain, varied[n] if n in varied else xp.asarray(x.asnumpy())) if is_field(x) else x
            for n, x in enumerate(self.leaves)
        ]
        return jax.tree.unflatten(self._tree, leaves)

    def reference(self, function: Callable[..., Any], values: Sequence[np.ndarray]) -> Any:
        """The reference on these arrays."""
        plain = [x.asnumpy() if is_field(x) else x for x in jax.tree.leaves(self.around(values), is_leaf=is_field)]
        with np.errstate(all="ignore"):
            return function(*jax.tree.unflatten(self._tree, plain))

    def direction(self) -> list[np.ndarray]:
        rng = np.random.default_rng(42)
        return [rng.uniform(-1.0, 1.0, a.shape) for a in self.start]


def flat(result: Any) -> list[np.ndarray]:
    return [np.asarray(a) for a in jax.tree.leaves(result)]


def assert_values(found: Sequence[gtx.Field], expected: Sequence[np.ndarray]) -> None:
    """The values; and what is missing of fields that operators made is what the reference leaves open."""
    assert_arrays([f.asnumpy() for f in found], expected)
    for field, want in zip(found, expected, strict=True):
        missing = np.ma.getmaskarray(field.asnumpy(masked=True))
        assert (np.isnan(want) | ~missing).all()


def assert_arrays(found: Sequence[Any], expected: Sequence[np.ndarray]) -> None:
    assert len(found) == len(expected)
    for mine, want in zip(found, expected, strict=True):
        assert mine.shape == want.shape
        assert np.isfinite(mine).all()
        known = ~np.isnan(want)
        scale = np.abs(want[known]).max(initial=0.0)
        np.testing.assert_allclose(np.asarray(mine)[known], want[known], rtol=1e-10, atol=1e-12 * scale)


def derivatives(operator: Any, run: Run, split: Split, mesh: Any, direction: Sequence[Any]) -> Any:
    """Value, tangents along `direction`, weights of the tangents, cotangents for these: under one jit."""
    rng = np.random.default_rng(7)

    @jax.jit
    def compute(mesh: Any, values: Any, direction: Any) -> Any:
        def value_at(values: Any) -> Any:
            return arrays(run(operator, mesh, split.around(values)))

        value, tangent = jax.jvp(value_at, (values,), (direction,))
        # Weights along the tangent, so that their product isn't a small difference of large numbers.
        weights = [t * rng.uniform(0.5, 1.5, t.shape) for t in tangent]
        (cotangent,) = jax.vjp(value_at, values)[1](weights)
        return value, tangent, weights, cotangent

    return compute(mesh, split.on_jax, [jnp.asarray(d) for d in direction])


def assert_adjoint(tangent: Any, weights: Any, direction: Any, cotangent: Any) -> None:
    """⟨J dx, w⟩ = ⟨dx, Jᵀ w⟩, and all finite."""
    assert all(np.isfinite(a).all() for a in (*tangent, *cotangent))
    left = sum(np.vdot(t, w) for t, w in zip(tangent, weights, strict=True))
    right = sum(np.vdot(d, c) for d, c in zip(direction, cotangent, strict=True))
    assert left > 0
    np.testing.assert_allclose(right, left, rtol=1e-12)


def assert_tangent(reference: Any, start: Any, direction: Any, tangent: Any, kinks: float) -> None:
    """Taylor: reference(x + h dx) − reference(x) − h J dx vanishes like h², or altogether."""
    steps = [2.0**-n for n in range(8, 14)]
    before, slope = _joined(reference(start)), _joined(tangent)
    known = ~np.isnan(before)
    after = [_joined(reference([x + h * d for x, d in zip(start, direction, strict=True)])) for h in steps]
    residuals = np.array([np.abs(a - before - h * slope)[known] for a, h in zip(after, steps, strict=True)])
    if kinks:
        rough = (residuals[1:] > 0.3 * residuals[:-1]) & (residuals[1:] > 1e-12)
        smooth = ~rough.any(axis=0)
        assert smooth.mean() > 1 - kinks
        residuals = residuals[:, smooth]
    norms = np.linalg.norm(residuals, axis=1)
    if (norms < 1e-10 * np.array(steps) * np.linalg.norm(slope)).all():
        return
    orders = np.log2(norms[:-1] / norms[1:])
    assert max(orders) >= 1.9, f"orders {orders} of the residuals {norms}"


def _joined(parts: Sequence[Any]) -> np.ndarray:
    return np.concatenate([np.asarray(p).reshape(-1) for p in parts])
