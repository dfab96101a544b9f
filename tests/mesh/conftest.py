"""Grids that the tests of this room share."""

import numpy as np
import pytest

from fieldjax.mesh import Grid, cut, icosahedral_grid, icosahedron
from fieldjax.mesh.names import Cell, Edge, Vertex
from fieldjax.mesh.selection import select


@pytest.fixture(scope="session")
def r2b1() -> Grid:
    """320 cells, 480 edges, 162 vertices."""
    return icosahedral_grid(2, 1)


@pytest.fixture(scope="session")
def limited(r2b1) -> Grid:
    """The cells within 40 degrees of a point, and so a boundary."""
    return cut(r2b1, r2b1["clat"] > np.radians(50))


@pytest.fixture(scope="session")
def shuffled(r2b1) -> Grid:
    """The same grid, numbered at random."""
    rng = np.random.default_rng(0)
    return select(r2b1, {dim: rng.permutation(r2b1.sizes[dim]) for dim in (Cell, Edge, Vertex)}, "shuffled")


@pytest.fixture(params=["icosahedron", "r2b1", "limited", "shuffled"])
def any_grid(request) -> Grid:
    """Each of these."""
    return icosahedron() if request.param == "icosahedron" else request.getfixturevalue(request.param)


@pytest.fixture(params=["icosahedron", "bisected", "r2b1", "shuffled"])
def global_grid(request) -> Grid:
    """Those that cover the sphere."""
    levels = {"icosahedron": 0, "bisected": 2}
    if request.param in levels:
        return icosahedron(levels[request.param])
    return request.getfixturevalue(request.param)
