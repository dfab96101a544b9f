"""From what a user gives as a neighbour table to validated, private, read-only entries."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from fieldjax.connectivity.questions.explain import show_rows, show_table
from fieldjax.domain import Dimension, Domain
from fieldjax.dtypes import require_x64
from fieldjax.errors import ConnectivityError, TracingError

INDEX = np.dtype(np.int32)
WIDE_INDEX = np.dtype(np.int64)


def concrete(data: Any, skip_value: int | None) -> np.ndarray:
    """`data` as a NumPy array of integers, possibly sharing memory; masked entries become skips.

    Raises:
        TracingError: `data` is, or holds, a traced value.
        ConnectivityError: `data` isn't an array of integers.
    """
    try:
        array = np.asarray(_filled(data, skip_value))
    except jax.errors.TracerArrayConversionError:
        raise traced_table() from None
    if array.size == 0 and array.dtype.kind == "f":  # what NumPy makes of []
        return array.astype(INDEX)
    if array.dtype.kind not in "iu":
        raise ConnectivityError(
            f"a neighbour table holds integers, got {array.dtype}",
            notes=["some entries are NaN"] if array.dtype.kind == "f" and np.isnan(array).any() else [],
            hints=["convert it with .astype(int), after replacing missing neighbours by the skip value"],
        )
    return array


def _filled(data: Any, skip_value: int | None) -> Any:
    if np.ma.isMaskedArray(data) and np.ma.is_masked(data):
        return data.filled(-1 if skip_value is None else skip_value)
    return data


def traced_table() -> TracingError:
    """What a table made of traced values raises."""
    return TracingError(
        "a neighbour table was built from a traced array",
        notes=["domains are inferred from the entries on the host, so they must be known when tracing"],
        hints=[
            "build the connectivity outside of jax.jit, vmap or scan and pass it in as an argument",
        ],
    )


def frozen(array: np.ndarray, skip_value: int | None, dtype: np.dtype | None) -> np.ndarray:
    """A C-contiguous, read-only copy: int32 unless that doesn't hold every entry and the skip value.

    Raises:
        DtypeError: int64 is needed, and x64 is off.
        ConnectivityError: `dtype` doesn't hold every entry and the skip value, or isn't an integer dtype.
    """
    lowest, highest = _limits(array, skip_value)
    chosen = dtype or (INDEX if _fits(lowest, highest, INDEX) else WIDE_INDEX)
    if chosen.kind not in "iu":
        raise ConnectivityError(f"a neighbour table holds integers, not {chosen}")
    if not _fits(lowest, highest, chosen):
        raise ConnectivityError(
            f"{chosen} doesn't hold the indices of this table",
            notes=[f"the smallest entry or skip value is {lowest}, the largest {highest}"],
        )
    require_x64(chosen, f"a neighbour table with entries and skip values from {lowest} to {highest}")
    copy = np.array(array, dtype=chosen, order="C", copy=True, subok=False)
    copy.flags.writeable = False
    return copy


def _limits(array: np.ndarray, skip_value: int | None) -> tuple[int, int]:
    skips = [] if skip_value is None else [skip_value]
    ends = [int(array.min()), int(array.max())] if array.size else []
    both = (*ends, *skips, 0)
    return min(both), max(both)


def _fits(lowest: int, highest: int, dtype: np.dtype) -> bool:
    limits = np.iinfo(dtype)
    return limits.min <= lowest and highest <= limits.max


def check_entries(entries: np.ndarray, skip_value: int | None, domain: Domain, codomain: Dimension) -> None:
    """Raise `ConnectivityError`, naming rows, where an entry is negative and not the skip value."""
    if entries.size == 0 or entries.min() >= 0:
        return
    negative = entries < 0
    if skip_value is not None:
        negative &= entries != skip_value
    if not negative.any():
        return
    first = int(entries[negative][0])
    meaning = "there is no skip value" if skip_value is None else f"the skip value is {skip_value}"
    raise ConnectivityError(
        f"the table {show_table(domain, codomain)} has negative entries",
        notes=[*show_rows(entries, negative, domain, codomain, skip_value), meaning],
        hints=[f"if it marks missing neighbours, pass skip_value={first}"],
    )


def check_shape(shape: tuple[int, ...], domain: Domain, codomain: Dimension) -> None:
    """Raise `ConnectivityError` where an array of `shape` can't be laid out on `domain`."""
    if not domain.ndim:
        raise ConnectivityError("a neighbour table needs at least one dimension")
    if not domain.is_finite():
        raise ConnectivityError(f"the domain of a neighbour table must be finite, got {domain}")
    if domain.shape != shape:
        raise ConnectivityError(
            f"the table {show_table(domain, codomain)} has shape {shape}, its domain {domain.shape}",
            notes=[f"the domain is {domain}"],
        )
