"""Puts tables on devices."""

from __future__ import annotations

from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer


def place(array: np.ndarray, sharding: Any = None) -> jax.Array:
    """A concrete device array of a frozen host array, also while something is being traced.

    `sharding`: a `jax.Device` or `jax.sharding.Sharding`; None leaves it to JAX.
    """
    with jax.ensure_compile_time_eval():
        return jnp.asarray(array) if sharding is None else jax.device_put(array, sharding)


def placement(array: Any) -> Any:
    """The sharding of a concrete JAX array, or None for anything else."""
    return array.sharding if is_concrete(array) and isinstance(array, jax.Array) else None


def is_traced(value: Any) -> bool:
    """Whether `value` is a tracer."""
    return isinstance(value, Tracer)


def is_concrete(value: Any) -> bool:
    """Whether `value` is an array whose entries are known now."""
    return isinstance(value, (jax.Array, np.ndarray)) and not is_traced(value)


def is_readable(array: Any) -> bool:
    """Whether this process can read all of a concrete array."""
    return not isinstance(array, jax.Array) or array.is_fully_addressable or array.is_fully_replicated
