"""What must hold: conservation and wave speed against theory, tangent-linear and adjoint against each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from fieldjax import Field, as_field
from fieldjax.demo.shallow_water import State


@dataclass(frozen=True)
class Check:
    """A measured number, and the bound that it has to keep (none: it is only reported)."""

    name: str
    value: float
    at_most: float | None = None
    at_least: float | None = None

    @property
    def passed(self) -> bool:
        """Whether the bound is kept; NaN keeps none."""
        low = self.at_least is None or self.value >= self.at_least
        high = self.at_most is None or self.value <= self.at_most
        return low and high and bool(np.isfinite(self.value))

    @property
    def bound(self) -> str:
        """The bound in words."""
        if self.at_most is not None:
            return f"at most {self.at_most:g}"
        return "reported" if self.at_least is None else f"at least {self.at_least:g}"


def mass_drift(masses: Sequence[float], scale: float) -> Check:
    """The largest change of mass (m³) relative to `scale`, the volume that moves."""
    return Check("mass drift, relative", _largest_change(masses) / scale, at_most=1e-12)


def energy_drift(energies: Sequence[float]) -> Check:
    """The largest change of energy relative to the first; reported, not bounded."""
    return Check("energy drift, relative", _largest_change(energies) / energies[0])


def _largest_change(values: Sequence[float]) -> float:
    return float(np.max(np.abs(np.asarray(values) - values[0])))


def frequency_error(amplitudes: Sequence[float], interval: float, degree: int, speed: float, radius: float) -> Check:
    """A mode's measured frequency against √(gH l(l+1)) / a, relative.

    Args:
        amplitudes: of the mode, one each `interval` seconds, three at least.
        interval: seconds, less than half a period.
        degree: l of the spherical harmonic.
        speed: √(gH), m s⁻¹.
        radius: a, m.
    """
    expected = speed * np.sqrt(degree * (degree + 1)) / radius
    measured = _frequency(np.asarray(amplitudes)) / interval
    return Check(f"frequency of mode {degree}, error", float(abs(measured / expected - 1)), at_most=0.02)


def _frequency(a: np.ndarray) -> float:
    """Radians per sample: a[n+1] + a[n-1] = 2 cos(ω) a[n] for any oscillation, by least squares (Prony)."""
    cosine = np.sum(a[1:-1] * (a[2:] + a[:-2])) / (2 * np.sum(a[1:-1] ** 2))
    return float(np.arccos(cosine))


def dot_product(
    forecast: Callable[[State], State],
    state: State,
    *,
    adjoint: Callable[[State], State] | None = None,
    impedance: float = 1.0,
) -> Check:
    """⟨M x, y⟩ against ⟨x, Mᵀ y⟩ for random x and y, relative: M by jax.jvp, Mᵀ by jax.vjp or given.

    `impedance` is the ratio of a velocity to a height of equal energy, s⁻¹; it makes both matter.
    """
    rng = np.random.default_rng(0)
    x, y = _random_like(state, rng, impedance), _random_like(state, rng, 1 / impedance)
    forward = jax.jvp(forecast, (state,), (x,))[1]
    backward = jax.vjp(forecast, state)[1](y)[0] if adjoint is None else adjoint(y)
    one, other = inner(forward, y), inner(x, backward)
    return Check("dot-product test, error", abs(one - other) / max(abs(one), abs(other)), at_most=1e-12)


def _random_like(state: State, rng: np.random.Generator, impedance: float) -> State:
    scaled = rng.standard_normal(state.h.shape), impedance * rng.standard_normal(state.u.shape)
    return State(*(as_field(f.domain, a) for f, a in zip(state, scaled, strict=True)))


def inner(x: Any, y: Any) -> float:
    """The sum of products over all elements of two equal structures of fields."""
    pairs = zip(jax.tree.leaves(x), jax.tree.leaves(y), strict=True)
    return float(sum(np.vdot(np.asarray(a), np.asarray(b)) for a, b in pairs))


def taylor_order(misfit: Callable[[Field], float], h: Field, gradient: Field) -> Check:
    """The order in ε of J(h + ε d) - J(h) - ε ⟨∇J, d⟩, d random: 2 for a right gradient, 1 for a wrong one.

    The lowest over ε from 1 m to 1 mm: the smaller ε is, the smaller an error of the gradient it shows.
    """
    direction = as_field(h.domain, np.random.default_rng(1).standard_normal(h.shape))
    start, slope = misfit(h), inner(gradient, direction)
    steps = [0.25**n for n in range(6)]
    rest = np.array([abs(misfit(h + step * direction) - start - step * slope) for step in steps])
    return Check("Taylor test, order", float(np.min(np.log2(rest[:-1] / rest[1:]))) / 2, at_least=1.99)
