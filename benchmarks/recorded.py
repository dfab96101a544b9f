"""The recorded models that `benchmarks.compress` measures, and the same by hand in JAX."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import fieldjax as fj

REGION = 100
"""Layers in a region."""

Run = Callable[[], Any]


class Layers(NamedTuple):
    """A recorded chain of layers: its inputs, and the values at the ends of regions, the first and last included."""

    model: fj.Model
    x: Any
    p: Any
    ends: list[Any]


def layers_of(layers: int, by: str = "vector") -> Layers:
    """Layers h ← tanh(sin(h p) + 0.1) on 1000 elements."""
    with fj.record() as model:
        h = x = model.input("x", np.linspace(0.1, 1.0, 1000))
        p = model.input("p", 0.7 if by == "scalar" else np.linspace(0.3, 0.9, 1000))
        ends = [x]
        for n in range(1, layers + 1):
            h = fj.tanh(fj.sin(h * p) + 0.1)
            if n % REGION == 0:
                ends.append(h)
    return Layers(model, x, p, ends)


def chain(layers: int, by: str = "vector", mode: str | None = None, repeats: bool = False, **options: Any) -> Run:
    """The sum of the last layer and its gradient with respect to "x" (p a vector), to a "vector" or "scalar" p.

    `mode=None` compresses nothing.
    """
    model, x, p, ends = layers_of(layers, by)
    if mode is not None:
        compressed(ends, p, repeats, mode=mode, **options)
    s = fj.sum(ends[-1])
    model.output("s", s)
    model.output("gradient", fj.derivative(s, x if by == "x" else p))
    return model.compile()


def compressed(ends: list[Any], p: Any, repeats: bool, **options: Any) -> None:
    """Makes regions of what lies between `ends`: one by one, or all that repeat the first."""
    pairs = list(itertools.pairwise(ends))
    for start, end in pairs[:1] if repeats else pairs:
        fj.compress([start, p], end, find_repeats=repeats, **options)


def chain_by_hand(layers: int, by: str = "vector") -> Run:
    """The same as a `lax.scan` over the layers, in plain JAX."""
    import jax
    import jax.numpy as jnp

    def total(x: jax.Array, p: jax.Array) -> jax.Array:
        def layer(h: jax.Array, _: None) -> tuple[jax.Array, None]:
            return jnp.tanh(jnp.sin(h * p) + 0.1), None

        return jnp.sum(jax.lax.scan(layer, x, None, layers)[0])

    x, p = jnp.linspace(0.1, 1.0, 1000), jnp.asarray(0.7) if by == "scalar" else jnp.linspace(0.3, 0.9, 1000)
    function = jax.jit(jax.value_and_grad(total, 0 if by == "x" else 1))
    return lambda: function(x, p)


def wave(ocean: Any, steps: int, gradient: bool, mode: str | None = None) -> Run:
    """Unrolled time steps of the demo's shallow-water model; its energy, or the gradient by the first height."""
    from fieldjax.demo.shallow_water import forward_backward

    with fj.record() as model:
        mesh = model.input("mesh", ocean.mesh)
        h, u = (model.input(name, value) for name, value in zip("hu", first_state(ocean), strict=True))
        rest = [model.input(name, value) for name, value in ocean.model._asdict().items()]
        first, states = (h, u), []
        for _ in range(steps):
            h, u = forward_backward(h, u, *rest, offset_provider=mesh)
            states.append((h, u))
        if mode is not None:
            fj.compress([*first, *rest], list(states[0]), mode=mode, find_repeats=True)
        energy = fj.sum(h * h)
        model.output("result", fj.derivative(energy, first[0]) if gradient else energy)
    return model.compile()


def wave_by_hand(ocean: Any, steps: int, gradient: bool) -> Run:
    """The same as a `lax.scan` over the operator."""
    import jax

    from fieldjax.demo.shallow_water import forward_backward

    def energy(h: fj.Field, u: fj.Field, model: Any, mesh: fj.Mesh) -> jax.Array:
        def step(state: Any, _: None) -> tuple[Any, None]:
            return forward_backward(*state, *model, offset_provider=mesh), None

        (h, _), _ = jax.lax.scan(step, (h, u), None, steps)
        return (h.ndarray**2).sum()

    function = jax.jit(jax.grad(energy) if gradient else energy)
    h, u = first_state(ocean)
    return lambda: function(h, u, ocean.model, ocean.mesh)


def first_state(ocean: Any) -> tuple[fj.Field, fj.Field]:
    """Waves in the height, nothing in the velocity."""
    from fieldjax.mesh import Cell, Edge

    cells, edges = (len(ocean.mesh[n].domain.range_of(d)) for n, d in (("C2E", Cell), ("E2C", Edge)))
    h = fj.as_field({Cell: cells}, np.sin(np.arange(cells) / 100.0))
    return h, fj.as_field({Edge: edges}, np.zeros(edges))


def an_ocean() -> Any:
    """The demo's model on R2B4: 20480 cells."""
    from fieldjax.demo.experiment import prepare
    from fieldjax.mesh import icosahedral_grid

    return prepare(icosahedral_grid(2, 4), hours=12.0)
