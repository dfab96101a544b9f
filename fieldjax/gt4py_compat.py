"""Names that programs written for gt4py.next import beyond fieldjax's front door.

`import fieldjax.gt4py_compat as gtx` stands in for `import gt4py.next as gtx`. The front door finds these
names too, so that changing the import suffices; people who start fresh need none of them.
"""

# The names that are imported here and not used are what this module is for.
# ruff: noqa: F401, F811
from __future__ import annotations

import enum
from typing import Any

import numpy as np

from fieldjax.connectivity import CartesianConnectivity, Connectivity, FieldOffset, as_connectivity
from fieldjax.domain import (
    Dimension,
    DimensionKind,
    Domain,
    Infinity,
    NamedIndex,
    NamedRange,
    UnitRange,
    as_non_staggered,
    domain,
    flip_staggered,
    is_staggered,
    unit_range,
)
from fieldjax.embedded import Field, as_field, empty, full, ones, zeros
from fieldjax.frontend import field_operator, program, scan_operator
from fieldjax.frontend.annotations import Dims
from fieldjax.frontend.builtins import *  # noqa: F403  (the functions of the language, under their names)
from fieldjax.frontend.builtins import as_offset, concat_where

bool_, int8, int16, int32, int64 = np.bool_, np.int8, np.int16, np.int32, np.int64
uint8, uint16, uint32, uint64 = np.uint8, np.uint16, np.uint32, np.uint64
float16, float32, float64 = np.float16, np.float32, np.float64


class GridType(enum.Enum):
    """What gt4py.next programs pass as `grid_type`; it has no effect here."""

    CARTESIAN = "cartesian"
    UNSTRUCTURED = "unstructured"


def is_neighbor_table(x: Any) -> bool:
    """Whether `x` is a connectivity with a row and a local dimension."""
    return isinstance(x, Connectivity) and x.local_dimension is not None and x.domain.ndim == 2


def is_field(x: Any) -> bool:
    """Whether `x` is a field."""
    return isinstance(x, Field)


def _field(data: Any, *, domain: Any) -> Field:
    """A field over the data as it is (gt4py.next's `common._field`)."""
    return as_field(domain, data)


def _connectivity(data: Any, *, codomain: Dimension, domain: Any, skip_value: int | None = None) -> Connectivity:
    """A connectivity of the data (gt4py.next's `common._connectivity`)."""
    return as_connectivity(domain, codomain, data, skip_value)
