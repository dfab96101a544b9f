"""demo.nc: the run as UGRID, which xugrid, QGIS and ParaView open."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from fieldjax.demo.run import Results
from fieldjax.mesh import Grid

FACE, EDGE, NODE = "mesh_face", "mesh_edge", "mesh_node"


def write_netcdf(results: Results, path: Path) -> None:
    """Heights, velocities and the gradient, on their mesh."""
    dataset(results).to_netcdf(path, engine="h5netcdf")


def dataset(results: Results) -> xr.Dataset:
    """The run as a UGRID dataset: height over time and faces, velocity over time and edges."""
    experiment = results.experiment
    hours = experiment.interval / 3600 * np.arange(len(results.states))
    area = experiment.grid["cell_area"]
    return ugrid(experiment.grid).assign(
        time=("time", hours, {"long_name": "time since the start", "units": "h"}),
        height=_on(FACE, [s.h for s in results.states], "m", "height above the mean"),
        velocity=_on(EDGE, [s.u for s in results.states], "m s-1", "velocity along the edge's normal"),
        cell_area=_on(FACE, area, "m2", "area of the cell"),
        observed=_on(FACE, experiment.observed(), "1", "weight of the final height in the misfit"),
        gradient=_on(FACE, results.gradient, "m", "derivative of the misfit by the initial height of the cell"),
        sensitivity=_on(FACE, sensitivity(results), "m", "that derivative per area, times the sphere's area"),
    )


def sensitivity(results: Results) -> np.ndarray:
    """The gradient per area, so that it doesn't depend on the mesh, times the sphere's area."""
    area = results.experiment.grid["cell_area"]
    return results.gradient.asnumpy() * (area.sum() / area)


def ugrid(grid: Grid) -> xr.Dataset:
    """The mesh by the UGRID conventions, coordinates in degrees."""
    coordinates = {
        f"{dim}_{axis}": _angle(grid[name], dim, axis)
        for dim, pair in ((FACE, ("clon", "clat")), (EDGE, ("elon", "elat")), (NODE, ("vlon", "vlat")))
        for axis, name in zip(("lon", "lat"), pair, strict=True)
    }
    topology = {
        "cf_role": "mesh_topology",
        "topology_dimension": 2,
        "face_node_connectivity": "mesh_face_nodes",
        "edge_node_connectivity": "mesh_edge_nodes",
        **{f"{dim.removeprefix('mesh_')}_coordinates": f"{dim}_lon {dim}_lat" for dim in (FACE, EDGE, NODE)},
        **{f"{dim.removeprefix('mesh_')}_dimension": dim for dim in (FACE, EDGE)},
    }
    tables = {
        "mesh": ((), np.int32(0), topology),
        "mesh_face_nodes": (
            (FACE, "face_corner"),
            grid.table("C2V"),
            _TABLE | {"cf_role": "face_node_connectivity"},
        ),
        "mesh_edge_nodes": (
            (EDGE, "edge_end"),
            grid.table("E2V"),
            _TABLE | {"cf_role": "edge_node_connectivity"},
        ),
    }
    attrs = {"Conventions": "CF-1.8 UGRID-1.0", "title": "fieldjax demo: linear shallow water"}
    return xr.Dataset(tables, coords=coordinates, attrs=attrs)


_TABLE = {"start_index": np.int32(0)}


def _angle(radians: np.ndarray, dim: str, axis: str) -> tuple[str, np.ndarray, dict[str, str]]:
    name, units = {"lon": ("longitude", "degrees_east"), "lat": ("latitude", "degrees_north")}[axis]
    return dim, np.degrees(radians), {"standard_name": name, "units": units}


def _on(dim: str, values: Any, units: str, name: str) -> tuple[Sequence[str], np.ndarray, dict[str, str]]:
    array = np.asarray(values)
    location = {"mesh": "mesh", "location": dim.removeprefix("mesh_")}
    dims = ("time", dim) if array.ndim == 2 else (dim,)
    return dims, array, {"long_name": name, "units": units} | location
