"""Meshes: made, read from ICON, MPAS and UGRID files, cut, renumbered and drawn."""

from fieldjax.mesh.geometry import complete
from fieldjax.mesh.grid import Grid
from fieldjax.mesh.icon import open_icon, write_icon
from fieldjax.mesh.icosahedral import icosahedral_grid, icosahedron
from fieldjax.mesh.limited import cut
from fieldjax.mesh.mpas import open_mpas
from fieldjax.mesh.plot import plot
from fieldjax.mesh.polygons import from_polygons
from fieldjax.mesh.renumber import renumber
from fieldjax.mesh.ugrid import open_ugrid

__all__ = [
    "Grid",
    "complete",
    "cut",
    "from_polygons",
    "icosahedral_grid",
    "icosahedron",
    "open_icon",
    "open_mpas",
    "open_ugrid",
    "plot",
    "renumber",
    "write_icon",
]
