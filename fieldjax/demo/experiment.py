"""What the demo does with the model: an ocean on ICON's grid, two initial states, a misfit and its gradient."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import fieldjax
from fieldjax import Field, Mesh, as_field
from fieldjax.demo.shallow_water import Model, State, advance, gradient
from fieldjax.mesh import C2EDim, Cell, Edge, Grid

GRAVITY = 9.80616
"""m s⁻²"""
DEPTH = 4000.0
"""Of the ocean, m: waves travel at 198 m/s, in 12 hours as far as 77 degrees."""
CHUNKS = 12
"""A run is at least this many calls of one compiled loop, an hour at most each; a state is kept after each."""
DEGREE = 4
"""Of the spherical harmonic cos⁴(latitude) cos(4 longitude)."""

SOURCE = (-38.0, 0.0)
"""Where the wave begins: longitude and latitude, degrees."""
STATION = (38.0, 8.0)
"""The middle of where its height is observed at the end."""
SOURCE_RADIUS, STATION_RADIUS = 6.0, 10.0
"""Degrees."""


@dataclass(frozen=True)
class Experiment:
    """An ocean that covers the sphere, and the time it is predicted for."""

    grid: Grid
    model: Model
    mesh: Mesh
    hours: float
    chunks: int
    """How many calls of the compiled loop make a run."""
    steps: int
    """Time steps in one of them."""

    @property
    def name(self) -> str:
        """Of the grid, as ICON names it."""
        attrs = self.grid.geometry.attrs
        return f"R{attrs['grid_root']}B{attrs['grid_level']}"

    @property
    def interval(self) -> float:
        """From one kept state to the next, s."""
        return self.steps * self.model.dt

    def chunk(self, state: State) -> State:
        """The state one interval later."""
        return advance(state, self.model, self.mesh, steps=self.steps)

    def forecast(self, state: State) -> State:
        """The state at the end, by one loop: what is differentiated."""
        return advance(state, self.model, self.mesh, steps=self.chunks * self.steps)

    def at_rest(self, h: np.ndarray) -> State:
        """The state of height `h` without motion."""
        edges = self.grid.sizes[Edge]
        return State(on_cells(self.grid, h), as_field({Edge: edges}, np.zeros(edges)))

    def mode(self) -> State:
        """A standing wave of spherical-harmonic shape, 1 m high."""
        lon, lat = self.grid["clon"], self.grid["clat"]
        return self.at_rest(np.cos(lat) ** DEGREE * np.cos(DEGREE * lon))

    def wave(self) -> State:
        """A hill of water, 1 m high, about to fall."""
        return self.at_rest(np.exp(-((self.distance(SOURCE) / SOURCE_RADIUS) ** 2)))

    def distance(self, place: tuple[float, float]) -> np.ndarray:
        """From a place to each cell along the sphere, degrees."""
        lon, lat = np.radians(place)
        clon, clat = self.grid["clon"], self.grid["clat"]
        cosine = np.sin(lat) * np.sin(clat) + np.cos(lat) * np.cos(clat) * np.cos(clon - lon)
        return np.degrees(np.arccos(np.clip(cosine, -1, 1)))

    def observed(self) -> np.ndarray:
        """How much the final height of each cell counts: 1 at the station, 1/e at its radius."""
        return np.exp(-((self.distance(STATION) / STATION_RADIUS) ** 2))

    def misfit(self, observation: Field) -> Callable[[Field], tuple[Any, Field]]:
        """For an initial height, water at rest: how far its forecast is from the observation, and the gradient.

        The misfit is half the mean square (m²) around the station, as `observed` weighs it.
        """
        area = self.grid["cell_area"] * self.observed()
        weight = on_cells(self.grid, area / area.sum())
        u, steps = self.at_rest(np.zeros_like(area)).u, self.chunks * self.steps
        return lambda h: _misfit(h, u, observation, weight, self.model, self.mesh, steps=steps)

    def mass(self, state: State) -> float:
        """The volume above the mean, m³."""
        return float(np.sum(self.grid["cell_area"] * state.h.asnumpy()))

    def energy(self, state: State) -> float:
        """Half of ∫ g h² + H u·u', where u and u' are half a step before and after h, m⁵ s⁻².

        With this product instead of a square, the time step conserves it as exactly as the operators allow.
        """
        model = self.model
        slope = gradient(state.h, model.inverse_distance, offset_provider=self.mesh).asnumpy()
        before, h = state.u.asnumpy(), state.h.asnumpy()
        after = before - model.dt * model.gravity * slope
        edge_area = self.grid["edge_length"] * self.grid["dual_edge_length"]
        potential = model.gravity * np.sum(self.grid["cell_area"] * h**2)
        return float(potential + model.depth * np.sum(edge_area * before * after)) / 2


@partial(fieldjax.jit, static_argnames="steps")
@jax.value_and_grad
def _misfit(
    h: Field, u: Field, observation: Field, weight: Field, model: Model, mesh: Mesh, *, steps: int
) -> jax.Array:
    final = advance(State(h, u), model, mesh, steps=steps)
    return jnp.sum((0.5 * weight * (final.h - observation) ** 2).ndarray)


def prepare(grid: Grid, hours: float) -> Experiment:
    """The model on a grid, with half of the largest stable time step or a little less."""
    cells, edges = grid.sizes[Cell], grid.sizes[Edge]
    edge_of_cell = grid.table("C2E")
    weight = grid["orientation_of_normal"] * grid["edge_length"][edge_of_cell] / grid["cell_area"][:, None]
    inverse_distance = 1 / grid["dual_edge_length"]
    chunks = max(CHUNKS, int(np.ceil(hours)))
    interval = hours * 3600 / chunks
    steps = int(np.ceil(interval / (0.5 * largest_stable_step(weight, inverse_distance[edge_of_cell]))))
    model = Model(
        as_field({Edge: edges}, inverse_distance),
        as_field({Cell: cells, C2EDim: 3}, weight),
        GRAVITY,
        DEPTH,
        interval / steps,
    )
    return Experiment(grid, model, grid.mesh_of("C2E", "E2C"), hours, chunks, steps)


def largest_stable_step(weight: np.ndarray, inverse_distance: np.ndarray) -> float:
    """2 / ω of the fastest wave, s, where Gershgorin's theorem bounds ω² by the rows of -gH ∇·∇."""
    row_sums = 2 * np.sum(np.abs(weight) * inverse_distance, axis=1)
    return float(2 / np.sqrt(GRAVITY * DEPTH * row_sums.max()))


def on_cells(grid: Grid, values: np.ndarray) -> Field:
    """A field on all cells."""
    return as_field({Cell: grid.sizes[Cell]}, values)
