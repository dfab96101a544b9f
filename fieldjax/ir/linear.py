"""The linear-operation primitive: a linear map whose transpose is given rather than derived.

JAX transposes a gather into scatter-adds. Here the transpose of a map is a parameter, and every
transformation of JAX keeps the pair together: jvp and linearize apply the map, grad applies its transpose,
the transpose of that is the map again, vmap batches both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

Arrays = tuple[Any, ...]


class Map(Protocol):
    """A function `(inputs, residuals) -> outputs` of tuples of arrays, linear in `inputs`.

    Maps are parameters of jaxprs: they must be hashable, small and free of arrays, and equal where they do
    the same, so that what was traced and compiled for one serves the other. A frozen dataclass is.

    Law: for a map and its transpose, ``Σ forward(x, r) · y == Σ x · transpose(y, r)`` for all x, y and r.
    A map is also differentiated in its residuals, by JAX, as it is written.
    """

    def __call__(self, inputs: Arrays, residuals: Arrays, /) -> Arrays:
        """The outputs."""
        ...

    def __hash__(self) -> int: ...


def linear(forward: Map, transpose: Map, inputs: Sequence[Any], residuals: Sequence[Any] = ()) -> Arrays:
    """`forward(inputs, residuals)`, with `transpose(cotangents, residuals)` as its transpose in `inputs`.

    >>> @dataclass(frozen=True)
    ... class Scale:
    ...     def __call__(self, inputs, residuals):
    ...         return tuple(residuals[0] * x for x in inputs)
    >>> jax.grad(lambda x: linear(Scale(), Scale(), [x], [3.0])[0])(1.0)
    Array(3., dtype=float32, weak_type=True)
    """
    inputs = _varying_like(inputs, residuals)
    return tuple(linear_p.bind(*inputs, *residuals, forward=forward, transpose=transpose, count=len(inputs)))


linear_p = Primitive("fieldjax_linear")
linear_p.multiple_results = True


@dataclass(frozen=True)
class Batched:
    """A map on stacked inputs; `axes` says where the residuals are stacked, None where they aren't."""

    map: Map
    axes: tuple[int | None, ...]

    def __call__(self, inputs: Arrays, residuals: Arrays, /) -> Arrays:
        return jax.vmap(self.map, in_axes=(0, self.axes))(inputs, residuals)


def _apply(*arrays: Any, forward: Map, transpose: Map, count: int) -> list[Any]:
    return list(forward(arrays[:count], arrays[count:]))


@partial(jax.jit, static_argnames=("forward", "transpose", "count"))
def _compiled(*arrays: Any, forward: Map, transpose: Map, count: int) -> list[Any]:
    return _apply(*arrays, forward=forward, transpose=transpose, count=count)


def _avals(*avals: Any, **static: Any) -> list[Any]:
    return jax.make_jaxpr(partial(_apply, **static))(*avals).out_avals


def _jvp(primals: Arrays, tangents: Arrays, *, count: int, **static: Any) -> tuple[list[Any], list[Any]]:
    bind = partial(linear_p.bind, count=count, **static)
    inputs, residuals = primals[:count], primals[count:]
    parts = []
    if any(not _is_zero(t) for t in tangents[:count]):
        parts.append(bind(*map(ad.instantiate_zeros, tangents[:count]), *residuals))
    live = [n for n in range(count, len(primals)) if not _is_zero(tangents[n])]
    if live:

        def along(*moved: Any) -> list[Any]:
            known = dict(zip(live, moved, strict=True))
            return _apply(*(known.get(n, p) for n, p in enumerate(primals)), count=count, **static)

        parts.append(jax.jvp(along, [primals[n] for n in live], [tangents[n] for n in live])[1])
    return bind(*inputs, *residuals), [_sum(terms) for terms in zip(*parts, strict=True)]


def _transpose(cotangents: Sequence[Any], *arrays: Any, forward: Map, transpose: Map, count: int) -> list[Any]:
    inputs, residuals = arrays[:count], arrays[count:]
    if all(map(_is_zero, cotangents)):
        found: Sequence[Any] = [ad.Zero(x.aval.to_ct_aval()) for x in inputs if ad.is_undefined_primal(x)]
    else:
        seeds = map(ad.instantiate_zeros, cotangents)
        outputs = linear_p.bind(*seeds, *residuals, forward=transpose, transpose=forward, count=len(cotangents))
        found = [y for y, x in zip(outputs, inputs, strict=True) if ad.is_undefined_primal(x)]
    pending = iter(found)
    return [next(pending) if ad.is_undefined_primal(x) else None for x in arrays]


def _batch(
    arrays: Arrays, axes: Sequence[Any], *, forward: Map, transpose: Map, count: int
) -> tuple[list[Any], list[int]]:
    size = next(x.shape[a] for x, a in zip(arrays, axes, strict=True) if a is not None)
    inputs = [
        jnp.broadcast_to(x, (size, *x.shape)) if a is None else jnp.moveaxis(x, a, 0)
        for x, a in zip(arrays[:count], axes[:count], strict=True)
    ]
    stacked = tuple(axes[count:])
    outputs = linear_p.bind(
        *inputs,
        *arrays[count:],
        forward=Batched(forward, stacked),
        transpose=Batched(transpose, stacked),
        count=count,
    )
    return outputs, [0] * len(outputs)


def _is_zero(x: Any) -> bool:
    return isinstance(x, ad.Zero)


def _sum(terms: Sequence[Any]) -> Any:
    return terms[0] if len(terms) == 1 else terms[0] + terms[1]


def _varying_like(inputs: Sequence[Any], residuals: Sequence[Any]) -> list[Any]:
    """Inside shard_map: the inputs vary over every mesh axis that a residual varies over.

    The transpose of an input that is the same everywhere is a sum over devices; JAX knows that of the cast.
    """
    axes = frozenset().union(*map(_varying, (*inputs, *residuals)))
    missing = [tuple(axes - _varying(x)) for x in inputs]
    return [jax.lax.pcast(x, m, to="varying") if m else x for x, m in zip(inputs, missing, strict=True)]


def _varying(x: Any) -> frozenset[Any]:
    aval = jax.typeof(x)
    kind = getattr(aval, "manual_axis_type", None)  # before JAX 0.10: `vma`
    return frozenset(getattr(aval, "vma", ()) if kind is None else kind.varying)


linear_p.def_impl(_compiled)
linear_p.def_abstract_eval(_avals)
ad.primitive_jvps[linear_p] = _jvp
ad.primitive_transposes[linear_p] = _transpose
batching.primitive_batchers[linear_p] = _batch
mlir.register_lowering(linear_p, mlir.lower_fun(_apply, multiple_results=True))
