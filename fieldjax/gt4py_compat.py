"""Names that programs written for gt4py.next import beyond fieldjax's front door.

`import fieldjax.gt4py_compat as gtx` stands in for `import gt4py.next as gtx`. The front door finds these
names too, so that changing the import suffices; people who start fresh need none of them.
"""

# The names that are imported here and not used are what this module is for.
# ruff: noqa: F401, F811
from __future__ import annotations

import enum
import functools
import sys
from builtins import bool, float, int, tuple  # noqa: UP029  (gt4py.next has them among its names)
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import numpy as np

from fieldjax import errors as _errors
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
from fieldjax.embedded.leaves import is_scalar
from fieldjax.frontend import field_operator, program, scan_operator
from fieldjax.frontend.annotations import Dims
from fieldjax.frontend.builtins import *  # noqa: F403  (the functions of the language, under their names)
from fieldjax.frontend.builtins import as_offset, concat_where

bool_, int8, int16, int32, int64 = np.bool_, np.int8, np.int16, np.int32, np.int64
uint8, uint16, uint32, uint64 = np.uint8, np.uint16, np.uint32, np.uint64
float16, float32, float64 = np.float16, np.float32, np.float64
IndexType = np.int32

# What annotations name, and nothing checks.
Allocator = Backend = NeighborTable = OffsetProvider = Scalar = Any
CUPY_DEVICE_TYPE = None

gtfn_cpu = gtfn_gpu = run_gtfn = run_gtfn_gpu = "jax"
itir_python = None

# `gtx.common.UnitRange`, `gtx.ffront.fbuiltins.where`: where a name stands there is of no interest here.
common = constructors = ffront = decorator = fbuiltins = experimental = typing = sys.modules[__name__]

errors = SimpleNamespace(
    **{name: getattr(_errors, name) for name in _errors.__all__},
    GT4PyError=_errors.FieldjaxError,
    DSLError=_errors.FieldjaxError,
    DSLTypeError=_errors.DtypeError,
    MissingArgumentError=_errors.ArgumentError,
    MissingAttributeError=_errors.UnknownNameError,
    UndefinedSymbolError=_errors.UnknownNameError,
    UnsupportedPythonFeatureError=_errors.TracingError,
)
"""What `except` clauses name. Errors are raised when an operator is first called, not where it is decorated."""


class GridType(enum.Enum):
    """What gt4py.next programs pass as `grid_type`; it has no effect here."""

    CARTESIAN = "cartesian"
    UNSTRUCTURED = "unstructured"


class DeviceType(enum.IntEnum):
    """Kinds of devices, by the numbers of DLPack."""

    CPU = 1
    CUDA = 2
    ROCM = 10


class Device(NamedTuple):
    """One device. Constructors accept it; where data lives is JAX's to decide (`allocator=`)."""

    device_type: DeviceType
    device_id: int = 0


class FieldConstructor:
    """Constructors that share an allocator: `FieldConstructor(allocator=jnp).zeros({Cell: 3})`."""

    def __init__(self, allocator: Any = None, aligned_index: Any = None, device: Any = None) -> None:
        for make in (empty, zeros, ones, full, as_field):
            setattr(self, make.__name__, functools.partial(make, allocator=allocator, device=device))


def wait_for_compilation() -> None:
    """Returns at once: what `compile` was asked for is compiled when it returns."""


def is_scalar_type(x: Any) -> bool:
    """Whether `x` is a number."""
    return is_scalar(x) and not isinstance(x, (np.ndarray, jax.Array))


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
    return as_connectivity(domain, codomain, data, skip_value=skip_value)
