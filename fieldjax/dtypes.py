"""The dtypes of fields, JAX's promotion between them, and the guard against silent truncation.

Promotion works on pairs (dtype, weak): a Python literal is weak, it takes the dtype of what it meets.
"""

from __future__ import annotations

import functools
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

from fieldjax.errors import DtypeError

bool_ = np.bool_
int8, int16, int32, int64 = np.int8, np.int16, np.int32, np.int64
uint8, uint16, uint32, uint64 = np.uint8, np.uint16, np.uint32, np.uint64
float16, float32, float64 = np.float16, np.float32, np.float64
bfloat16 = ml_dtypes.bfloat16

Operand: TypeAlias = tuple[np.dtype, bool]  # (dtype, whether it is weak)

_BOOL = np.dtype(bool_)
_INTEGERS = tuple(map(np.dtype, (int8, int16, int32, int64, uint8, uint16, uint32, uint64)))
_FLOATS = tuple(map(np.dtype, (float16, bfloat16, float32, float64)))
_SUPPORTED = frozenset({_BOOL, *_INTEGERS, *_FLOATS})
_KNOWN: dict[Any, np.dtype | type] = {
    **{name: dtype for dtype in _SUPPORTED for name in (dtype, dtype.type, dtype.name)},
    **{name: kind for kind in (bool, int, float) for name in (kind, kind.__name__)},
}
# What stands for a weak operand in JAX's own promotion: a Python scalar.
_WEAK_SCALARS: dict[int, Any] = {0: False, 1: 0, 2: 0.0}

# Its options are attributes that no stub declares.
_config: Any = jax.config

ENABLE_X64 = 'jax.config.update("jax_enable_x64", True)'


def as_dtype(dtype_like: Any) -> np.dtype:
    """The NumPy dtype that a name, a Python type, or a NumPy, JAX or ml_dtypes type stands for.

    ``bool``, ``int`` and ``float`` mean JAX's default of that kind, under whatever x64 says now. An explicit
    64-bit dtype is returned as such: see `require_x64`.

    >>> as_dtype("float32"), as_dtype(jnp.bfloat16)
    (dtype('float32'), dtype(bfloat16))
    >>> as_dtype(complex)
    Traceback (most recent call last):
    ...
    fieldjax.errors.DtypeError: complex is not a dtype of fields
    note: these are: bool, int8 … int64, uint8 … uint64, float16, bfloat16, float32, float64

    Raises:
        DtypeError: for anything else (complex, strings, objects, None).
    """
    try:
        known = _KNOWN.get(dtype_like)
    except TypeError:  # unhashable
        known = None
    if known is not None:
        return known if isinstance(known, np.dtype) else _default_of(known, x64_enabled())
    dtype = _explicit(dtype_like)
    if dtype is None:
        raise DtypeError(
            f"{getattr(dtype_like, '__name__', None) or repr(dtype_like)} is not a dtype of fields",
            notes=["these are: bool, int8 … int64, uint8 … uint64, float16, bfloat16, float32, float64"],
        )
    return dtype


def _explicit(dtype_like: Any) -> np.dtype | None:
    """A supported dtype in native byte order, or None."""
    if dtype_like is None or isinstance(dtype_like, (np.ndarray, np.generic, jax.Array)):
        return None  # np.dtype(None) is float64, and np.dtype of an array is its dtype
    try:
        dtype = np.dtype(dtype_like).newbyteorder("=")
    except (TypeError, ValueError):
        return None
    return dtype if dtype in _SUPPORTED else None


@functools.cache
def _default_of(python_type: type, x64: bool) -> np.dtype:
    if python_type is bool:
        return _BOOL
    wide, narrow = (int64, int32) if python_type is int else (float64, float32)
    return np.dtype(wide if x64 else narrow)


def default_int() -> np.dtype:
    """JAX's integer dtype now: int64 with x64, else int32."""
    return _default_of(int, x64_enabled())


def default_float() -> np.dtype:
    """JAX's floating dtype now: float64 with x64, else float32."""
    return _default_of(float, x64_enabled())


def x64_enabled() -> bool:
    """Whether JAX keeps 64-bit dtypes now (a context manager may have set it for this thread)."""
    return bool(_config.jax_enable_x64)


def require_x64(dtype: np.dtype, what: str) -> None:
    """Raise `DtypeError` where `dtype` has 64 bits and JAX would truncate it; `what` names the culprit.

    >>> with jax.enable_x64(False):
    ...     require_x64(np.dtype("float64"), "the field")
    Traceback (most recent call last):
    ...
    fieldjax.errors.DtypeError: the field is float64, which JAX would truncate to float32
    help: run this before anything else: jax.config.update("jax_enable_x64", True)
    help: or ask for 32 bits: dtype="float32"
    """
    if dtype.itemsize < 8 or x64_enabled():
        return
    narrow = dtype.name.replace("64", "32")
    raise DtypeError(
        f"{what} is {dtype.name}, which JAX would truncate to {narrow}",
        hints=[f"run this before anything else: {ENABLE_X64}", f'or ask for 32 bits: dtype="{narrow}"'],
    )


def result_type(*operands: Operand) -> Operand:
    """The (dtype, weak) of an operation on operands of these, by JAX's promotion table.

    Laws: equal to the dtype and weak type of the JAX operation on such arrays; the result is weak where no
    strong operand is of its kind (bool, integer, floating). A bool is never weak.

    >>> result_type((np.dtype("float32"), False), of_literal(0.5))
    (dtype('float32'), False)
    >>> result_type((np.dtype("int8"), False), of_literal(0.5))[1]
    True

    Raises:
        DtypeError: an operand has 64 bits while x64 is off, or JAX's strict promotion forbids it.
    """
    return _result_type(operands, x64_enabled(), _config.jax_numpy_dtype_promotion)


# What JAX answers depends on its configuration: the key holds the options that it reads.
@functools.lru_cache(maxsize=4096)
def _result_type(operands: tuple[Operand, ...], x64: bool, promotion: Any) -> Operand:
    del x64, promotion
    for dtype, _ in operands:
        require_x64(dtype, "an operand")
    strong = [dtype for dtype, weak in operands if not weak]
    # Among weak operands alone JAX joins their dtypes as if they were strong, and weakens the result.
    asked = [_WEAK_SCALARS[_kind(dtype)] if weak and strong else dtype for dtype, weak in operands]
    dtype = _ask_jax(asked)
    weak = all(_kind(other) < _kind(dtype) for other in strong) and dtype != _BOOL
    return dtype, weak


def _ask_jax(asked: list[Any]) -> np.dtype:
    try:
        return np.dtype(jnp.result_type(*asked))
    except (TypeError, ValueError) as error:
        raise DtypeError(f"JAX does not promote these dtypes: {error}") from error


def of_literal(value: Any) -> Operand:
    """The (dtype, weak) of a Python or NumPy scalar: Python integers and floats are weak.

    >>> of_literal(np.float32(1)), of_literal(True)
    ((dtype('float32'), False), (dtype('bool'), False))

    Raises:
        DtypeError: not such a scalar, or it would lose bits: a 64-bit NumPy scalar while x64 is off, an
            integer that JAX's default integer can't hold.
    """
    if isinstance(value, np.generic):
        dtype = as_dtype(value.dtype)
        require_x64(dtype, f"the NumPy scalar {value}")
        return dtype, False
    if isinstance(value, bool):
        return _BOOL, False
    if isinstance(value, int):
        return _fitting_int(value), True
    if isinstance(value, float):
        return default_float(), True
    raise DtypeError(f"{value!r} is not a scalar that a field operator can hold", notes=[f"its type: {type(value)}"])


def _fitting_int(value: int) -> np.dtype:
    dtype = default_int()
    if minimum_of(dtype) <= value <= maximum_of(dtype):
        return dtype
    raise DtypeError(
        f"the literal {value} does not fit into {dtype.name}",
        hints=["write it as a float"] if x64_enabled() else [f"run this before anything else: {ENABLE_X64}"],
    )


def is_floating(dtype: np.dtype) -> bool:
    """Whether it is float16, bfloat16, float32 or float64."""
    return dtype in _FLOATS


def is_integer(dtype: np.dtype) -> bool:
    """Whether it is a signed or unsigned integer."""
    return dtype in _INTEGERS


def is_bool(dtype: np.dtype) -> bool:
    """Whether it is bool."""
    return dtype == _BOOL


def _kind(dtype: np.dtype) -> int:
    """0 for bool, 1 for integers, 2 for floating dtypes."""
    return 2 if dtype in _FLOATS else int(dtype in _INTEGERS)


@functools.cache
def minimum_of(dtype: np.dtype) -> Any:
    """The identity of ``max``, as a NumPy scalar: -inf, the smallest integer, or False.

    >>> minimum_of(np.dtype("int8"))
    np.int8(-128)
    """
    if is_floating(dtype):
        return dtype.type(-np.inf)
    return dtype.type(np.iinfo(dtype).min if is_integer(dtype) else False)


@functools.cache
def maximum_of(dtype: np.dtype) -> Any:
    """The identity of ``min``, as a NumPy scalar: +inf, the largest integer, or True."""
    if is_floating(dtype):
        return dtype.type(np.inf)
    return dtype.type(np.iinfo(dtype).max if is_integer(dtype) else True)
