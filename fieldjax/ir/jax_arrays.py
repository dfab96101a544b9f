"""JAX as evaluation sees it: the values of NumPy, with the derivative rules that design.md states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from fieldjax.dtypes import is_floating
from fieldjax.ir.arrays import Step, masked_extremum

if TYPE_CHECKING:
    from fieldjax.ir.links import TableArrays
    from fieldjax.ir.operations.custom import Rule
    from fieldjax.ir.pairs import PairSum


class JaxArrays:
    """Arrays of JAX, concrete or traced. Indices are in bounds by construction, and JAX is told so.

    A parameter of jaxprs, and therefore equal to others of its class.
    """

    xp: Any = jnp

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))

    def cast(self, array: Any, dtype: np.dtype) -> Any:
        return jax.lax.convert_element_type(array, dtype)

    def index(self, array: Any, indices: tuple[Any, ...]) -> Any:
        return array.at[indices].get(mode="promise_in_bounds")

    def scatter_add(self, shape: tuple[int, ...], indices: tuple[Any, ...], values: Any) -> Any:
        return jnp.zeros(shape, values.dtype).at[indices].add(values, mode="promise_in_bounds")

    def guard(self, array: Any, mask: Any) -> Any:
        """XLA folds the select away: its branches hold the same value."""
        if not is_floating(np.dtype(array.dtype)):
            return array
        return jnp.where(mask, array, jax.lax.stop_gradient(array))

    def extremum(self, parts: Sequence[Any], masks: Sequence[Any] | None, largest: bool) -> Any:
        parts = jnp.broadcast_arrays(*parts)
        if not is_floating(np.dtype(parts[0].dtype)):
            return masked_extremum(jnp, parts, masks, largest)
        return _extremum(largest, tuple(parts), None if masks is None else tuple(masks))

    def pair_sum(self, of: PairSum, operands: tuple[Any, ...], tables: TableArrays) -> Any:
        from fieldjax.ir.pair_rules import pair_sum

        return pair_sum(self, of, operands, tables)

    def hold(self, array: Any) -> Any:
        return array

    def scan(
        self, step: Step, carries: tuple[Any, ...], levels: tuple[Any, ...], count: int, forward: bool
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return jax.lax.scan(step, carries, levels, length=count, reverse=not forward)

    def batch(self, step: Step, levels: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return (), jax.vmap(lambda *level: step((), level)[1])(*levels)

    def call(self, rule: Rule, inputs: Sequence[Any], shapes: Sequence[Any]) -> Sequence[Any]:
        from fieldjax.ir.operations.custom import checked

        def on_host(*arrays: Any) -> Any:
            return tuple(checked(rule.compute(*map(np.asarray, arrays)), shapes, rule.name))

        if rule.on_host:
            return jax.pure_callback(on_host, tuple(shapes), *inputs, vmap_method="sequential")
        return checked(rule.compute(*inputs), shapes, rule.name)

    def compiled(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return jax.jit(function)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _extremum(largest: bool, parts: tuple[Any, ...], masks: tuple[Any, ...] | None) -> Any:
    return masked_extremum(jnp, parts, masks, largest)


@_extremum.defjvp
def _extremum_jvp(largest: bool, primals: tuple[Any, Any], tangents: tuple[Any, Any]) -> tuple[Any, Any]:
    """Ties share evenly: chained `jnp.maximum` would give .25, .25, .5 to three equal neighbours."""
    parts, masks = primals
    result = _extremum(largest, parts, masks)
    attains = [part == result for part in parts]
    if masks is not None:
        attains = [a & m for a, m in zip(attains, masks, strict=True)]
    zero = jnp.zeros((), result.dtype)
    count = sum(a.astype(result.dtype) for a in attains)
    total = sum(jnp.where(a, t, zero) for a, t in zip(attains, tangents[0], strict=True))
    return result, total / jnp.maximum(count, 1)
