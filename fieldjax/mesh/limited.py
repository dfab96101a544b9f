"""`cut`: a limited area of a grid, with skips at its boundary."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fieldjax.errors import ArgumentError
from fieldjax.mesh.derive import DERIVATIONS
from fieldjax.mesh.grid import CORE, Grid
from fieldjax.mesh.names import Cell, Edge, Vertex
from fieldjax.mesh.selection import select
from fieldjax.mesh.tables import SKIP


def cut(grid: Grid, cell_mask: Any) -> Grid:
    """The cells where `cell_mask` holds, with their edges and vertices, all in their old order.

    At the boundary E2C, C2E2C, V2C, V2E and what is derived from them hold -1, in the slot where the
    neighbour was: orientations and normals stay valid. Values per slot (`edge_orientation`, …) are 0 there;
    other geometry stays that of the whole grid, dual areas of boundary vertices included. `source_cell`,
    `source_edge` and `source_vertex` say where everything came from. The markers `refin_*_ctrl`, which
    count rows from another boundary, are left out.

    Args:
        grid: any grid.
        cell_mask: (Cell,) booleans, an array or a field.

    Raises:
        ArgumentError: the mask isn't one boolean per cell, or holds nowhere.

    >>> from fieldjax.mesh import icosahedron
    >>> grid = icosahedron()
    >>> north = cut(grid, grid["clat"] > 0)
    >>> north.sizes[Cell], bool((north.table("E2C") == -1).any()), bool((north.table("C2E") == -1).any())
    (8, True, False)
    """
    mask = np.asarray(cell_mask)
    if mask.dtype != bool or mask.shape != (grid.sizes[Cell],):
        raise ArgumentError(f"cell_mask must be {grid.sizes[Cell]} booleans, got {mask.dtype}{list(mask.shape)}")
    if not mask.any():
        raise ArgumentError("cell_mask holds for no cell: nothing would be left")
    cells = np.flatnonzero(mask)
    chosen = {Cell: cells, Edge: _reached(grid, "C2E", cells), Vertex: _reached(grid, "C2V", cells)}
    selected = select(grid, chosen, f"cut of {grid.source}")
    return _without_leftovers(selected)


def _reached(grid: Grid, name: str, cells: np.ndarray) -> np.ndarray:
    found = np.unique(grid.tables[name][cells])
    return found[found != SKIP]


def _without_leftovers(grid: Grid) -> Grid:
    """Takes out neighbours reached through a cell or edge that is gone, and values in empty slots."""
    tables = {name: _still_reached(grid, name, table) for name, table in grid.tables.items()}
    geometry = grid.geometry.drop_vars([f"refin_{letter}_ctrl" for letter in "cev"], errors="ignore")
    emptied = {
        name: variable.where(tables[str(variable.dims[1])] != SKIP, 0).astype(variable.dtype)
        for name, variable in geometry.data_vars.items()
        if variable.ndim == 2 and variable.dims[1] in tables
    }
    return replace(grid, tables=tables, geometry=geometry.assign(emptied))


def _still_reached(grid: Grid, name: str, table: np.ndarray) -> np.ndarray:
    if name in CORE:
        return table
    reached = DERIVATIONS[name](grid.tables.__getitem__)
    among = (table[:, :, None] == reached[:, None, :]).any(axis=2)
    return np.where(among, table, SKIP)
