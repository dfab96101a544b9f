"""What a call costs that was made before: 10 fields and 10 connectivities, against bare `jax.jit`.

python -m benchmarks.dispatch
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import fieldjax as fj
from benchmarks.measure import interleaved, ratio_table

COUNT = 10
Cell, Edge = fj.Dimension("Cell"), fj.Dimension("Edge")
LOCAL = [fj.Dimension(f"L{n}", fj.DimensionKind.LOCAL) for n in range(COUNT)]
OFFSETS = [fj.FieldOffset(d.value, source=Cell, target=(Edge, d)) for d in LOCAL]


@fj.field_operator
def total(*fields: Any) -> Any:
    """The sum of ten fields, each read through its own table."""
    result: Any = 0.0
    for field, offset in zip(fields, OFFSETS, strict=True):
        result = result + field(offset[0])
    return result


@jax.jit
def bare(*arrays: Any) -> Any:
    """The same on arrays."""
    result: Any = 0.0
    for array, table in zip(arrays[:COUNT], arrays[COUNT:], strict=True):
        result = result + array[table[:, 0]]
    return result


def main() -> None:
    """Prints the ratios."""
    rng = np.random.default_rng(0)
    mesh = fj.Mesh({d.value: fj.as_connectivity({Edge: 60, d: 2}, Cell, rng.integers(0, 40, (60, 2))) for d in LOCAL})
    fields = [fj.as_field({Cell: 40}, jnp.asarray(rng.random(40, dtype=np.float32))) for _ in range(COUNT)]
    arrays = [*(f.ndarray for f in fields), *(mesh[d.value].table for d in LOCAL)]
    separate = dict(mesh)
    calls: dict[str, Callable[[], Any]] = {
        "bare jax.jit, 20 arrays": lambda: bare(*arrays),
        "operator, mesh": lambda: total(*fields, offset_provider=mesh),
        "operator, dict of 10 connectivities": lambda: total(*fields, offset_provider=separate),
    }
    print(ratio_table(interleaved(calls), base="bare jax.jit, 20 arrays"))


if __name__ == "__main__":
    main()
