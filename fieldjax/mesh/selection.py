"""Some elements of a grid, in a new order: what cutting and renumbering have in common."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from hashlib import sha1

import numpy as np

from fieldjax.domain import Dimension
from fieldjax.mesh.grid import Grid
from fieldjax.mesh.names import endpoints
from fieldjax.mesh.tables import SKIP

# Ranges of indices by refinement zone: they hold for the file's own numbering only.
_ZONES = tuple(f"{end}_idx_{letter}" for end in ("start", "end") for letter in "cev")


def select(grid: Grid, chosen: Mapping[Dimension, np.ndarray], source: str) -> Grid:
    """The grid of the chosen elements, in that order.

    Neighbours that weren't chosen become -1 in their slots. `source_cell`, `source_edge` and `source_vertex`
    hold the indices into `grid`, so ``values[selected["source_cell"]]`` takes data along. Index ranges of
    refinement zones go, and the grid gets a `uuidOfHGrid` of its own, made from its tables.
    """
    places = {dim: _places(grid.sizes[dim], indices) for dim, indices in chosen.items()}
    tables = {
        name: places[endpoints(name)[1]][table[chosen[endpoints(name)[0]]]] for name, table in grid.tables.items()
    }
    geometry = grid.geometry.drop_vars(_ZONES, errors="ignore")
    geometry = geometry.isel({d.value: i for d, i in chosen.items() if d.value in geometry.dims})
    origins = {f"source_{dim.value.lower()}": (dim.value, indices) for dim, indices in chosen.items()}
    return Grid(tables, geometry.assign(origins).assign_attrs(_identity(tables, geometry.attrs)), source)


def _places(size: int, indices: np.ndarray) -> np.ndarray:
    """Where each old index is now; the last entry, which -1 reads, stays -1."""
    places = np.full(size + 1, SKIP, np.int64)
    places[indices] = np.arange(len(indices))
    return places.astype(np.int32) if len(indices) <= np.iinfo(np.int32).max else places


def _identity(tables: Mapping[str, np.ndarray], attrs: Mapping[object, object]) -> dict[str, str]:
    if "uuidOfHGrid" not in attrs:
        return {}
    digest = sha1(str(attrs["uuidOfHGrid"]).encode())
    for name in sorted(tables):
        digest.update(tables[name].tobytes())
    return {"uuidOfHGrid": str(uuid.UUID(bytes=digest.digest()[:16], version=5))}
