"""The dimensions and neighbour offsets that meshes speak of, named source-to-target as in ICON.

`E2C` is the offset of which a field on cells is read from edges; `E2CDim` is the LOCAL dimension that counts
an edge's cells. A local dimension has the name of its offset, so that an offset provider is found by either.
"""

from __future__ import annotations

from typing import Final

from fieldjax.connectivity import FieldOffset
from fieldjax.domain import Dimension, DimensionKind

Cell: Final = Dimension("Cell")
Edge: Final = Dimension("Edge")
Vertex: Final = Dimension("Vertex")
K: Final = Dimension("K", kind=DimensionKind.VERTICAL)

HORIZONTAL: Final = {"C": Cell, "E": Edge, "V": Vertex}


def _local(name: str) -> Dimension:
    return Dimension(name, kind=DimensionKind.LOCAL)


def endpoints(name: str) -> tuple[Dimension, Dimension]:
    """Where an offset starts and where it leads: (Edge, Cell) for "E2C", (Cell, Cell) for "C2E2CO".

    >>> endpoints("E2C2V")
    (Dimension('Edge'...), Dimension('Vertex'...))
    """
    return HORIZONTAL[name[0]], HORIZONTAL[name.removesuffix("O")[-1]]


def _offset(local: Dimension) -> FieldOffset:
    start, end = endpoints(local.value)
    return FieldOffset(local.value, source=end, target=(start, local))


E2CDim: Final = _local("E2C")
E2VDim: Final = _local("E2V")
C2EDim: Final = _local("C2E")
C2VDim: Final = _local("C2V")
V2CDim: Final = _local("V2C")
V2EDim: Final = _local("V2E")
C2E2CDim: Final = _local("C2E2C")
C2E2CODim: Final = _local("C2E2CO")
C2E2C2EDim: Final = _local("C2E2C2E")
C2E2C2E2CDim: Final = _local("C2E2C2E2C")
E2C2VDim: Final = _local("E2C2V")
E2C2EDim: Final = _local("E2C2E")
E2C2EODim: Final = _local("E2C2EO")
V2E2VDim: Final = _local("V2E2V")

E2C: Final = _offset(E2CDim)
E2V: Final = _offset(E2VDim)
C2E: Final = _offset(C2EDim)
C2V: Final = _offset(C2VDim)
V2C: Final = _offset(V2CDim)
V2E: Final = _offset(V2EDim)
C2E2C: Final = _offset(C2E2CDim)
C2E2CO: Final = _offset(C2E2CODim)
C2E2C2E: Final = _offset(C2E2C2EDim)
C2E2C2E2C: Final = _offset(C2E2C2E2CDim)
E2C2V: Final = _offset(E2C2VDim)
E2C2E: Final = _offset(E2C2EDim)
E2C2EO: Final = _offset(E2C2EODim)
V2E2V: Final = _offset(V2E2VDim)
Koff: Final = FieldOffset("Koff", source=K, target=(K,))

LOCAL: Final = {
    dim.value: dim
    for dim in (
        E2CDim,
        E2VDim,
        C2EDim,
        C2VDim,
        V2CDim,
        V2EDim,
        C2E2CDim,
        C2E2CODim,
        C2E2C2EDim,
        C2E2C2E2CDim,
        E2C2VDim,
        E2C2EDim,
        E2C2EODim,
        V2E2VDim,
    )
}
DIMENSIONS: Final = {dim.value: dim for dim in (Cell, Edge, Vertex, K)} | LOCAL
