"""fieldjax: field operators on icosahedral meshes, compiled and differentiated by JAX."""

from fieldjax.connectivity import (
    CartesianConnectivity,
    Connectivity,
    FieldOffset,
    Mesh,
    as_connectivity,
)
from fieldjax.domain import (
    Dimension,
    DimensionKind,
    Domain,
    UnitRange,
    domain,
    unit_range,
)
from fieldjax.embedded import Field, as_field, empty, full, ones, zeros
from fieldjax.errors import FieldjaxError, FieldjaxWarning
from fieldjax.frontend import (
    FieldOperator,
    FieldProgram,
    ScanOperator,
    field_operator,
    jit,
    program,
    scan_operator,
)
from fieldjax.frontend.builtins import (
    abs,
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctan2,
    arctanh,
    as_offset,
    astype,
    broadcast,
    cbrt,
    ceil,
    clip,
    concat_where,
    cos,
    cosh,
    erf,
    exp,
    expm1,
    floor,
    fmod,
    gamma,
    isfinite,
    isinf,
    isnan,
    log,
    log1p,
    log10,
    max_over,
    maximum,
    min_over,
    minimum,
    neg,
    neighbor_sum,
    power,
    round,
    sign,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
    trunc,
    where,
)

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """Names that only programs written for gt4py.next ask for."""
    from importlib import import_module

    if not name.startswith("__"):
        compat = import_module("fieldjax.gt4py_compat")
        if hasattr(compat, name):
            return getattr(compat, name)
    raise AttributeError(f"module 'fieldjax' has no attribute {name!r}")
