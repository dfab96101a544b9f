"""The meshes that the twelve operators run on: a whole sphere with its pentagons, and a limited area."""

import numpy as np
import pytest

from fieldjax.mesh import Grid, cut, icosahedral_grid


@pytest.fixture(scope="session")
def r2b3() -> Grid:
    """5120 cells, 7680 edges, 2562 vertices, 12 of them pentagons."""
    pytest.importorskip("grid_generator", reason="the demo extra isn't installed")
    return icosahedral_grid(2, 3)


@pytest.fixture(scope="session")
def limited(r2b3: Grid) -> Grid:
    """580 cells around the pole: skips in E2C, C2E2C, C2E2CO, E2C2V, V2E and V2C."""
    return cut(r2b3, r2b3["clat"] > np.radians(50))


@pytest.fixture(params=["r2b3", "limited"])
def grid(request: pytest.FixtureRequest) -> Grid:
    """Each of these."""
    return request.getfixturevalue(request.param)
