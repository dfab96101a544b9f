"""Distances, areas and directions on the surface that a mesh covers: a sphere, or a plane.

Points are (…, 3): unit vectors on a sphere, metres in a plane (z = 0). Results are in m and m².
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

EARTH_RADIUS = 6.371229e6  # metres, ICON's


class Surface(Protocol):
    """Law: the areas of triangles that tile a polygon add up to the polygon's, whatever their signs."""

    def distance(self, p: np.ndarray, q: np.ndarray) -> np.ndarray:
        """The length of the shortest path, metres."""
        ...

    def triangle_area(self, p: np.ndarray, q: np.ndarray, r: np.ndarray) -> np.ndarray:
        """The signed area of the triangle, positive where p, q, r run counterclockwise seen from above."""
        ...

    def step(self, p: np.ndarray, q: np.ndarray) -> np.ndarray:
        """The vector from p to the nearest image of q: ``q - p`` but for the periods of a plane."""
        ...

    def onto(self, p: np.ndarray) -> np.ndarray:
        """The point of the surface closest to p, which is a mean of points nearby."""
        ...

    def up(self, p: np.ndarray) -> np.ndarray:
        """The unit normal of the surface."""
        ...

    def components(self, p: np.ndarray, vector: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Eastward and northward (on a plane: along x and y) components of tangent vectors at p."""
        ...


@dataclass(frozen=True)
class Sphere:
    """A sphere of that radius in metres.

    >>> octant = [np.array(p) for p in ((1.0, 0, 0), (0, 1.0, 0), (0, 0, 1.0))]
    >>> bool(np.isclose(Sphere(1.0).triangle_area(*octant), np.pi / 2))
    True
    """

    radius: float = EARTH_RADIUS

    def distance(self, p: np.ndarray, q: np.ndarray) -> np.ndarray:
        """The great-circle arc; atan2(|p×q|, p·q) is exact for close and for opposite points alike."""
        return self.radius * np.arctan2(np.linalg.norm(np.cross(p, q), axis=-1), dot(p, q))

    def triangle_area(self, p: np.ndarray, q: np.ndarray, r: np.ndarray) -> np.ndarray:
        """tan(E/2) = p·(q×r) / (1 + p·q + q·r + r·p): Van Oosterom, Strackee, IEEE Trans. BME 30 (1983)."""
        below = 1.0 + dot(p, q) + dot(q, r) + dot(r, p)
        # p·(q×r) by differences: the plain product cancels for small triangles.
        above = dot(p, np.cross(q - p, r - p))
        return 2.0 * self.radius**2 * np.arctan2(above, below)

    def step(self, p: np.ndarray, q: np.ndarray) -> np.ndarray:
        """The chord."""
        return q - p

    def onto(self, p: np.ndarray) -> np.ndarray:
        """P normalised; for a mean of two points, the middle of their arc."""
        return unit(p)

    def up(self, p: np.ndarray) -> np.ndarray:
        """The unit vector itself."""
        return p

    def components(self, p: np.ndarray, vector: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Along east = (-sin lon, cos lon, 0) and north = p × east; a pole is at longitude 0."""
        lon, _ = to_lonlat(p)
        east = np.stack((-np.sin(lon), np.cos(lon), np.zeros_like(lon)), axis=-1)
        return dot(vector, east), dot(vector, np.cross(p, east))


@dataclass(frozen=True)
class Plane:
    """A plane of constant z, with periods along x and y, metres, infinite where there is none.

    >>> torus = Plane((100.0, np.inf))
    >>> float(torus.distance(np.array([1.0, 5.0, 0.0]), np.array([98.0, 5.0, 0.0])))
    3.0
    """

    periods: tuple[float, float] = (np.inf, np.inf)

    def step(self, p: np.ndarray, q: np.ndarray) -> np.ndarray:
        """To the nearest of all images of q."""
        period = np.array([*self.periods, np.inf])
        straight = q - p
        return straight - np.where(np.isinf(period), 0.0, period) * np.round(straight / period)

    def onto(self, p: np.ndarray) -> np.ndarray:
        """P itself, which may lie one period away."""
        return p

    def distance(self, p: np.ndarray, q: np.ndarray) -> np.ndarray:
        """The straight line."""
        return np.linalg.norm(self.step(p, q), axis=-1)

    def triangle_area(self, p: np.ndarray, q: np.ndarray, r: np.ndarray) -> np.ndarray:
        """Half the cross product of two sides."""
        return 0.5 * np.cross(self.step(p, q), self.step(p, r))[..., 2]

    def up(self, p: np.ndarray) -> np.ndarray:
        """Along z."""
        return np.broadcast_to(np.array([0.0, 0.0, 1.0]), p.shape)

    def components(self, p: np.ndarray, vector: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """X and y."""
        return vector[..., 0], vector[..., 1]


def dot(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The scalar product along the last axis."""
    return np.einsum("...i,...i->...", p, q)


def unit(p: np.ndarray) -> np.ndarray:
    """The vectors scaled to length one; a zero vector stays."""
    length = np.linalg.norm(p, axis=-1, keepdims=True)
    return p / np.where(length == 0, 1.0, length)


def from_lonlat(lon: Any, lat: Any) -> np.ndarray:
    """Unit vectors (…, 3) of longitudes and latitudes in radians."""
    lon, lat = np.asarray(lon), np.asarray(lat)
    return np.stack((np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)), axis=-1)


def to_lonlat(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Longitudes in -π … π and latitudes, radians."""
    return np.arctan2(p[..., 1], p[..., 0]), np.arctan2(p[..., 2], np.hypot(p[..., 0], p[..., 1]))
