"""How fields appear to people: text, HTML, xarray; substitutes of skipped neighbours as missing."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax.core import Tracer

if TYPE_CHECKING:
    from fieldjax.embedded.field import Field


def missing(field: Field) -> np.ndarray:
    """Where the field holds a substitute because a table has no neighbour there; shape of the field."""
    found = np.zeros(field.shape, bool)
    for mask in field.masks:
        table = mask.connectivity
        if table.skip_value is None or mask.moved:
            continue
        absent = table.asnumpy() == table.skip_value  # type: ignore[union-attr]  # a field that is shown is concrete
        dims = list(table.domain.dims)
        local = table.local_dimension
        if mask.slot is not None and local is not None:
            axis = dims.index(local)
            absent = absent.take(mask.slot - int(table.domain.range_of(local).start), axis=axis)
            dims.remove(local)
        if not set(dims) <= set(field.dims):
            continue
        order = [dims.index(d) for d in field.dims if d in dims]
        own = field.domain.restrict(dims)
        absent = absent.transpose(order)[table.domain.restrict(dims).broadcast(own.dims).slices_of(own)]
        found |= absent[tuple(slice(None) if d in dims else None for d in field.dims)]
    return found


def statistics(field: Field) -> str:
    """Minimum, mean and maximum of a concrete field; empty for tracers and empty fields."""
    if isinstance(field.ndarray, Tracer):
        return "traced"
    if isinstance(field.ndarray, jax.ShapeDtypeStruct):
        return "abstract"
    values = np.ma.compressed(field.asnumpy(masked=bool(field.masks)))
    if values.size == 0:
        return "no elements"
    if values.dtype == bool:
        return f"{int(values.sum())} of {values.size} true"
    shown = values.astype(np.float64)
    return f"min {shown.min():.6g}, mean {shown.mean():.6g}, max {shown.max():.6g}"


def to_text(field: Field) -> str:
    """One line: domain, dtype, statistics."""
    dims = ", ".join(f"{d.value}[{r.start}:{r.stop})" for d, r in _extents(field))
    return f"Field({dims}{', ' if dims else ''}{field.dtype}; {statistics(field)})"


def _extents(field: Field) -> list[tuple[Any, Any]]:
    return list(zip(field.dims, field.domain.ranges, strict=True))


def to_html(field: Field) -> str:
    """A small table for notebooks."""
    rows = [(d.value, f"[{r.start}, {r.stop})") for d, r in _extents(field)]
    rows += [("dtype", str(field.dtype)), ("values", statistics(field))]
    cells = "".join(f"<tr><th>{html.escape(k)}</th><td>{html.escape(v)}</td></tr>" for k, v in rows)
    return f"<table><caption>Field</caption>{cells}</table>"


def to_xarray(field: Field, name: str | None = None) -> Any:
    """A DataArray over the field's positions; elements that are missing become NaN (integers: floats)."""
    import xarray

    values: Any = field.asnumpy()
    if field.masks and (absent := missing(field)).any():
        values = np.where(absent, np.nan, values)
    coordinates = {d.value: np.arange(int(r.start), int(r.stop)) for d, r in _extents(field)}
    return xarray.DataArray(values, coords=coordinates, dims=[d.value for d in field.dims], name=name)
