"""The linear shallow-water equations on an icosahedral C-grid, as field operators and one compiled time loop.

Height perturbation h in the cells (m), velocity u along the edges' normals (m s⁻¹), depth H, gravity g:

    ∂u/∂t = -g ∇h          ∂h/∂t = -H ∇·u

Gradient by finite difference across an edge, divergence by Gauss's theorem over a cell; they are adjoint to
each other in the areas of cells and edges (length × dual length), which conserves energy. Forward-backward in
time: h is stepped with the new u.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax

import fieldjax
from fieldjax import Field, field_operator, neighbor_sum
from fieldjax.mesh import C2E, E2C, C2EDim


@field_operator
def gradient(h: Field, inverse_distance: Field) -> Field:
    """∂h/∂n on Edge, from the edge's first cell to its second."""
    return (h(E2C[1]) - h(E2C[0])) * inverse_distance


@field_operator
def divergence(u: Field, weight: Field) -> Field:
    """∇·u on Cell; `weight` on (Cell, C2E) is ± edge length / cell area, + where the normal leaves the cell."""
    return neighbor_sum(u(C2E) * weight, axis=C2EDim)


@field_operator
def forward_backward(
    h: Field, u: Field, inverse_distance: Field, weight: Field, gravity: float, depth: float, dt: float
) -> tuple[Field, Field]:
    """One time step: u with the old h, then h with the new u."""
    u = u - dt * gravity * gradient(h, inverse_distance)
    return h - dt * depth * divergence(u, weight), u


class State(NamedTuple):
    """What the model predicts."""

    h: Field
    """Height above the mean, m, on Cell."""
    u: Field
    """Velocity along the normal, m s⁻¹, on Edge, half a step before h."""


class Model(NamedTuple):
    """What the operators need besides the state: a pytree, so that it is data to the compiled loop."""

    inverse_distance: Field
    """1 / dual edge length, m⁻¹, on Edge."""
    weight: Field
    """± edge length / cell area, m⁻¹, on (Cell, C2E)."""
    gravity: float
    """m s⁻²"""
    depth: float
    """m"""
    dt: float
    """s"""


@partial(fieldjax.jit, static_argnames="steps")
def advance(state: State, model: Model, mesh: Any, *, steps: int) -> State:
    """The state `steps` time steps later: one compiled loop, with the fields in its carry."""

    def step(now: State, _: None) -> tuple[State, None]:
        return State(*forward_backward(*now, *model, offset_provider=mesh)), None

    return jax.lax.scan(step, state, length=steps)[0]
