"""A compiled function that runs on another device while a program waits for it: a call by way of the host.

A jitted function that runs inside of a callback on the device that waits for it can hang for ever, where JAX
dispatches asynchronously. Here it runs on another device, or not at all (docs/decisions/host-calls.md).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np

from fieldjax.errors import UnsupportedError
from fieldjax.ir.linear import linear

Function = Callable[..., tuple[Any, ...]]
"""From arrays to a tuple of arrays; traceable by JAX."""


def host_call(function: Function, arrays: tuple[Any, ...], device: Any = None) -> tuple[Any, ...]:
    """`function(*arrays)`, compiled and run on `device`, whatever program or transformation it is called in.

    Differentiable to any order in both directions, the derivatives run on the same device. `device` None is the
    second CPU device. Raises UnsupportedError where only the device that waits could run it.
    """
    return _call(function, device or other_device(), tuple(arrays))


def other_device() -> Any:
    """A device to run on while the first one waits. Raises UnsupportedError where there is none."""
    devices = jax.devices("cpu")
    if len(devices) > 1:
        return devices[1]
    return checked(devices[0])


def checked(device: Any) -> Any:
    """The device, where calling it from a program that waits can't hang. Raises UnsupportedError where it can."""
    waiting = jax.devices()[0]
    if device == waiting and device.platform == "cpu" and _is_asynchronous():
        raise UnsupportedError(
            "a host call would run on the device that waits for it, and could hang for ever",
            hints=[
                "give JAX a second CPU device before it starts: JAX_NUM_CPU_DEVICES=2",
                "or switch asynchronous dispatch off: jax.config.update('jax_cpu_enable_async_dispatch', False)",
            ],
        )
    return device


def _is_asynchronous() -> bool:
    return bool(jax.config.read("jax_cpu_enable_async_dispatch"))  # type: ignore[no-untyped-call]


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _call(function: Function, device: Any, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    shapes = jax.eval_shape(function, *arrays)
    ranks = [np.ndim(x) for x in arrays]

    def run(*given: Any) -> tuple[Any, ...]:
        placed = jax.device_put([np.asarray(x) for x in given], device)
        batched = placed[0].ndim - ranks[0] if placed else 0
        return tuple(np.asarray(x) for x in _compiled(function, batched)(*placed))

    return jax.pure_callback(run, shapes, *arrays, vmap_method="broadcast_all")


@_call.defjvp
def _call_jvp(function: Function, device: Any, primals: Any, tangents: Any) -> Any:
    ((arrays,), (moved,)) = primals, tangents
    results = _call(function, device, arrays)
    moving = tuple(n for n, t in enumerate(moved) if t.dtype != jax.dtypes.float0)
    floating = tuple(n for n, x in enumerate(results) if np.issubdtype(x.dtype, np.floating))
    pushed: Any = ()
    if moving and floating:
        forward, back = Tangent(function, device, moving, floating), Cotangent(function, device, moving, floating)
        pushed = linear(forward, back, [moved[n] for n in moving], arrays)
    found = dict(zip(floating, pushed, strict=False))
    return results, tuple(found[n] if n in found else _zero(x) for n, x in enumerate(results))


def _zero(x: Any) -> Any:
    """The tangent of what doesn't move."""
    is_floating = np.issubdtype(x.dtype, np.floating)
    return jax.numpy.zeros_like(x) if is_floating else np.zeros(x.shape, jax.dtypes.float0)


@dataclass(frozen=True)
class Tangent:
    """The derivative of a function along its `moving` inputs, on a device; of its `floating` outputs."""

    function: Function
    device: Any
    moving: tuple[int, ...]
    floating: tuple[int, ...]

    def __call__(self, inputs: tuple[Any, ...], residuals: tuple[Any, ...], /) -> tuple[Any, ...]:
        return _call(_tangent(self.function, self.moving, self.floating), self.device, (*residuals, *inputs))


@dataclass(frozen=True)
class Cotangent(Tangent):
    """Its transpose."""

    def __call__(self, inputs: tuple[Any, ...], residuals: tuple[Any, ...], /) -> tuple[Any, ...]:
        return _call(_cotangent(self.function, self.moving, self.floating), self.device, (*residuals, *inputs))


_derived: weakref.WeakKeyDictionary[Function, dict[Any, Any]] = weakref.WeakKeyDictionary()


def _kept(function: Function, key: Any, make: Callable[[], Any]) -> Any:
    """What belongs to a function, made once and kept as long as the function."""
    known = _derived.setdefault(function, {})
    if key not in known:
        known[key] = make()
    return known[key]


def _compiled(function: Function, batched: int) -> Function:
    def make() -> Function:
        # The function is held weakly: what is kept for it must not keep it.
        run = weakref.proxy(function)
        for _ in range(batched):
            run = jax.vmap(run)
        return jax.jit(lambda *arrays: run(*arrays))

    return _kept(function, ("compiled", batched, jax.config.jax_enable_x64), make)  # type: ignore[attr-defined]


def _of_moving(function: Function, moving: tuple[int, ...], floating: tuple[int, ...], arrays: Any) -> Function:
    def of_moving(*values: Any) -> tuple[Any, ...]:
        given = list(arrays)
        for n, x in zip(moving, values, strict=True):
            given[n] = x
        results = function(*given)
        return tuple(results[n] for n in floating)

    return of_moving


def _tangent(function: Function, moving: tuple[int, ...], floating: tuple[int, ...]) -> Function:
    def make() -> Function:
        inner = weakref.proxy(function)

        def tangent(*arrays: Any) -> tuple[Any, ...]:
            count = len(arrays) - len(moving)
            of_moving = _of_moving(inner, moving, floating, arrays[:count])
            return jax.jvp(of_moving, tuple(arrays[n] for n in moving), arrays[count:])[1]  # type: ignore[return-value]

        return tangent

    return _kept(function, ("tangent", moving, floating), make)


def _cotangent(function: Function, moving: tuple[int, ...], floating: tuple[int, ...]) -> Function:
    def make() -> Function:
        inner = weakref.proxy(function)

        def cotangent(*arrays: Any) -> tuple[Any, ...]:
            count = len(arrays) - len(floating)
            of_moving = _of_moving(inner, moving, floating, arrays[:count])
            return jax.vjp(of_moving, *(arrays[n] for n in moving))[1](arrays[count:])

        return cotangent

    return _kept(function, ("cotangent", moving, floating), make)
