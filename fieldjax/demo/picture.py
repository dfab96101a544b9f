"""demo.png: the height at the end and the gradient of the misfit, on the sphere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fieldjax.demo.experiment import SOURCE, STATION, STATION_RADIUS
from fieldjax.demo.output import sensitivity
from fieldjax.demo.run import Results
from fieldjax.mesh import plot
from fieldjax.mesh.surface import from_lonlat

VIEW = (0.0, 15.0)
"""Longitude and latitude that face the viewer: between source and station."""


def draw(results: Results, path: Path) -> None:
    """Two globes side by side."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 6), layout="constrained", dpi=150)
    left, right = figure.subplots(1, 2)
    hours, grid = results.experiment.hours, results.experiment.grid
    height = 100 * results.states[-1].h.asnumpy()
    _globe(left, height, grid, "RdBu_r", f"height after {hours:g} h", "cm")
    _globe(right, sensitivity(results), grid, "PuOr_r", "gradient of the misfit by the initial height", "m")
    figure.suptitle(f"Linear shallow water on {results.experiment.name}, and the adjoint of its forecast")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    figure.savefig(path)


def _globe(ax: Any, values: np.ndarray, grid: Any, colours: str, title: str, units: str) -> None:
    most = max(float(np.quantile(np.abs(values), 0.999)), np.finfo(float).tiny)
    drawn = plot(values, grid, ax, view=VIEW, colorbar=False, cmap=colours, clim=(-most, most))
    ax.figure.colorbar(drawn, ax=ax, label=units, location="bottom", shrink=0.6, aspect=30, extend="both")
    ax.set_title(title)
    _mark(ax)


def _mark(ax: Any) -> None:
    """Where the wave began, where it is observed, and the limb."""
    ax.plot(*_circle(SOURCE, 0.0)[:, :1], "k*", markersize=9, linestyle="none", label="the wave began here")
    ax.plot(*_circle(STATION, STATION_RADIUS), "k-", linewidth=1, label="its height is observed here at the end")
    ax.plot(*_circle(VIEW, 90.0), color="0.3", linewidth=0.8)


def _circle(place: tuple[float, float], radius: float) -> np.ndarray:
    """The points `radius` degrees from a place, (2, 73), as the viewer sees them."""
    angle, radius = np.linspace(0, 2 * np.pi, 73), np.radians(radius)
    around = np.stack((np.sin(radius) * np.cos(angle), np.sin(radius) * np.sin(angle), np.cos(radius) + 0 * angle))
    return _axes(VIEW)[:2] @ _axes(place).T @ around


def _axes(place: tuple[float, float]) -> np.ndarray:
    """East, north and up of a place, as rows."""
    up = from_lonlat(*np.radians(place))
    east = from_lonlat(np.radians(place[0] + 90), 0.0)
    return np.stack((east, np.cross(up, east), up))
