"""Random fields on a grid, neighbours in plain NumPy, and annotations as models write them."""

from __future__ import annotations

import numpy as np

import fieldjax as gtx
from fieldjax.mesh import C2EDim, Cell, E2C2VDim, Edge, Grid, K, V2EDim, Vertex

LEVELS = 6

CellField = gtx.Field[gtx.Dims[Cell], gtx.float64]
EdgeField = gtx.Field[gtx.Dims[Edge], gtx.float64]
EdgeMask = gtx.Field[gtx.Dims[Edge], gtx.bool_]
KField = gtx.Field[gtx.Dims[K], gtx.float64]
CellK = gtx.Field[gtx.Dims[Cell, K], gtx.float64]
EdgeK = gtx.Field[gtx.Dims[Edge, K], gtx.float64]
VertexK = gtx.Field[gtx.Dims[Vertex, K], gtx.float64]
CellC2E = gtx.Field[gtx.Dims[Cell, C2EDim], gtx.float64]
CellC2EK = gtx.Field[gtx.Dims[Cell, C2EDim, K], gtx.float64]
EdgeE2C2V = gtx.Field[gtx.Dims[Edge, E2C2VDim], gtx.float64]
VertexV2E = gtx.Field[gtx.Dims[Vertex, V2EDim], gtx.float64]


class Fields:
    """Random fields on a grid, each by a seed of its own: `Fields(grid)(Cell, K)`."""

    def __init__(self, grid: Grid) -> None:
        self.sizes = {**grid.sizes, K: LEVELS}
        self._rng = np.random.default_rng(0)

    def __call__(self, *dims: gtx.Dimension, low: float = -1.0, high: float = 1.0, **sizes: int) -> gtx.Field:
        """Uniform numbers on these dimensions; the sizes of some may be given by name."""
        domain = {d: sizes.get(d.value, self.sizes.get(d)) for d in dims}
        return gtx.as_field(domain, self._rng.uniform(low, high, [int(n or 0) for n in domain.values()]))

    def sparse(self, table: np.ndarray, row: gtx.Dimension, local: gtx.Dimension) -> gtx.Field:
        """A number for each neighbour, NaN where there is none."""
        numbers = self._rng.uniform(-1.0, 1.0, table.shape)
        return gtx.as_field([row, local], np.where(table < 0, np.nan, numbers))


def neighbours(values: np.ndarray, table: np.ndarray) -> np.ndarray:
    """`values[table]`, NaN where there is no neighbour."""
    valid = (table >= 0).reshape(table.shape + (1,) * (values.ndim - 1))
    return np.where(valid, values[table], np.nan)


def per_level(values: np.ndarray) -> np.ndarray:
    """The array with an axis for levels at the end."""
    return values[..., None]
