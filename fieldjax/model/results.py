"""Values of a recorded model as their user sees them: fields, plain arrays and scalars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fieldjax.connectivity import is_table
from fieldjax.domain import Domain
from fieldjax.embedded.field import Field
from fieldjax.embedded.masks import FieldMask
from fieldjax.ir.graph import Value
from fieldjax.ir.operation import Place
from fieldjax.model.axes import array_domain, is_array


def result_of(value: Value, domain: Domain, array: Any, places: Mapping[Value, Place]) -> Any:
    """An array on `domain` as a field; as it is where the value is a plain array or a scalar."""
    if not value.dims or is_array(value.dims):
        return array
    from jax.extend.core import get_opaque_trace_state

    masks = tuple(FieldMask.of(places[m.table], m.slot, m.moved) for m in value.masks)  # type: ignore[arg-type]
    return Field._trusted(array, domain, masks, get_opaque_trace_state())


def data_of(x: Any) -> Any:
    """The array behind a field, a table, an array or a scalar."""
    if isinstance(x, Field):
        return x.operand
    return getattr(x, "table", x)


def as_leaf(x: Any) -> Any:
    """A plain array as a field on its axes; anything else as it is."""
    is_plain = not (isinstance(x, Field) or is_table(x)) and x.ndim
    return Field._trusted(x, array_domain(x.shape), (), None) if is_plain else x
