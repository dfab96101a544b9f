"""Icosahedral grids, made rather than read: RnBk as in ICON, and the icosahedron that they all start from."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from fieldjax.errors import ArgumentError
from fieldjax.mesh.geometry import complete, formulas, with_variables
from fieldjax.mesh.grid import Grid
from fieldjax.mesh.icon import SLOTS, TABLES
from fieldjax.mesh.polygons import from_polygons, topology
from fieldjax.mesh.surface import EARTH_RADIUS, to_lonlat, unit


def icosahedral_grid(root: int, level: int, *, radius: float = EARTH_RADIUS, **options: Any) -> Grid:
    """The global grid R`root`B`level`: 20·n²·4ᵏ triangles, 30·n²·4ᵏ edges, 10·n²·4ᵏ + 2 vertices.

    Made by the package icon-grid-generator, with the variables that ICON's grid files have. One of them is
    computed here instead: `dual_area`, which the package approximates by half of edge_length ·
    dual_edge_length (0.06 % short of the sphere at R2B2), is summed from the exact triangles (cell centre,
    edge middle, vertex).

    Args:
        root: n, into how many parts the icosahedron's edges are cut first; at least 1.
        level: k, how often each triangle is then cut into four; at least 0.
        radius: of the sphere, metres.
        options: what `grid_generator.generate_grid` takes, `optimize_global=False` for an unrelaxed grid.

    Raises:
        ArgumentError: the package is missing, or root or level is out of range.

    >>> icosahedral_grid(2, 1)
    Grid: R2B1
      320 cells, 480 edges, 162 vertices
    ...
    """
    generator = _generator()
    if root < 1 or level < 0:
        raise ArgumentError(f"R{root}B{level}: the root must be at least 1 and the level at least 0")
    options = {"max_cells": None, "sphere_radius": radius} | options
    made = generator.generate_grid(f"R{root}B{level:02d}", **options)
    grid = Grid(
        {name: made.connectivity[variable] for name, (variable, _) in TABLES.items()},
        _dataset(made),
        source=f"R{root}B{level}",
    )
    return complete(with_variables(grid, {"dual_area": formulas(grid)["dual_area"]()}))


def icosahedron(level: int = 0, *, radius: float = EARTH_RADIUS) -> Grid:
    """R1B`level`, each edge halved `level` times, not relaxed afterwards; needs no other package.

    Cell centres are circumcentres: edges and dual edges are perpendicular.

    Raises:
        ArgumentError: the level is negative.

    >>> icosahedron().table("V2E").shape
    (12, 5)
    >>> icosahedron(3)
    Grid: icosahedron(3)
      1280 cells, 1920 edges, 642 vertices
    ...
    """
    if level < 0:
        raise ArgumentError(f"the level must be at least 0, got {level}")
    points, cells = _platonic()
    for _ in range(level):
        points, cells = _halved(points, cells)
    centres = unit(np.cross(points[cells[:, 1]] - points[cells[:, 0]], points[cells[:, 2]] - points[cells[:, 0]]))
    source = f"icosahedron({level})" if level else "icosahedron"
    return from_polygons(cells, *to_lonlat(points), centres=to_lonlat(centres), radius=radius, source=source)


def _platonic() -> tuple[np.ndarray, np.ndarray]:
    """The 12 corners, (12, 3), and the 20 counterclockwise faces, (20, 3)."""
    golden = (1 + np.sqrt(5)) / 2
    corners = [(0.0, a, b * golden) for a in (-1, 1) for b in (-1, 1)]
    points = unit(np.array([np.roll(corner, turn) for turn in range(3) for corner in corners]))
    distance = np.linalg.norm(points[:, None] - points, axis=2)
    near = np.isclose(distance, distance[distance > 0.1].min())
    faces = [t for t in combinations(range(12), 3) if all(near[a, b] for a, b in combinations(t, 2))]
    return points, np.array([t if np.linalg.det(points[list(t)]) > 0 else t[::-1] for t in faces])


def _halved(points: np.ndarray, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each triangle cut into four: three at its corners, one between its edges' middles."""
    tables = topology(cells, len(points), "icosahedron")
    middles = unit(points[tables["E2V"]].sum(axis=1))
    (v0, v1, v2), (m0, m1, m2) = cells.T, len(points) + tables["C2E"].T
    children = [(v0, m0, m2), (m0, v1, m1), (m2, m1, v2), (m0, m1, m2)]
    return np.concatenate((points, middles)), np.array(children).transpose(2, 0, 1).reshape(-1, 3)


def _generator() -> Any:
    try:
        import grid_generator
    except ImportError as error:
        raise ArgumentError(
            "icosahedral_grid needs the package icon-grid-generator", hints=["pip install 'fieldjax[demo]'"]
        ) from error
    return grid_generator


def _dataset(made: Any) -> Any:
    import xarray

    variables = _coordinates(made) | _measured(made.geometry) | _refinement(made.refinement)
    return xarray.Dataset(variables, attrs=dict(made.metadata))


def _coordinates(made: Any) -> dict[str, Any]:
    degrees = {
        "Cell": (("clon", made.lon), ("clat", made.lat)),
        "Edge": (("elon", made.edge_lon), ("elat", made.edge_lat)),
        "Vertex": (("vlon", made.vertex_lon), ("vlat", made.vertex_lat)),
    }
    return {
        name: (dim, np.radians(values), {"units": "radian"}) for dim, pairs in degrees.items() for name, values in pairs
    }


def _measured(geometry: Mapping[str, np.ndarray]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, values in geometry.items():
        if name == "edgequad_area":  # in files a multiple of the square radius, here not
            continue
        if name.endswith("_cartesian"):
            parts = {f"{name}_{axis}": values[:, i] for i, axis in enumerate("xyz")}
        else:
            parts = {name: values}
        found |= {part: (_dims(part, array), array, {"units": _units(part)}) for part, array in parts.items()}
    return found


def _dims(name: str, values: np.ndarray) -> tuple[str, ...]:
    start = "Cell" if name in ("cell_area", "orientation_of_normal") else "Edge"
    start = "Vertex" if name in ("dual_area", "edge_orientation") else start
    return (start, SLOTS[name]) if values.ndim == 2 else (start,)


def _units(name: str) -> str:
    if name.endswith("_area"):
        return "m2"
    return "m" if name.endswith(("_length", "_distance")) else "1"


def _refinement(refinement: Mapping[str, np.ndarray]) -> dict[str, Any]:
    zones = {"c": ("Cell", "cell_grf"), "e": ("Edge", "edge_grf"), "v": ("Vertex", "vert_grf")}
    found: dict[str, Any] = {}
    for letter, (dim, zone) in zones.items():
        found[f"parent_{dim.lower()}_index"] = (dim, refinement[f"parent_{dim.lower()}_index"])
        found[f"refin_{letter}_ctrl"] = (dim, refinement[f"refin_{letter}_ctrl"])
        for end in ("start", "end"):
            found[f"{end}_idx_{letter}"] = (("max_chdom", zone), refinement[f"{end}_idx_{letter}"])
    return found
