"""Results of a call: new fields, or the caller's own through `out=` and `domain=`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.core import Tracer
from jax.extend.core import get_opaque_trace_state

from fieldjax.connectivity import is_table
from fieldjax.domain import Domain
from fieldjax.domain import domain as as_domain
from fieldjax.embedded.field import Field
from fieldjax.embedded.leaves import masks_of
from fieldjax.errors import ArgumentError, DimensionError, DomainError, DtypeError, user_location
from fieldjax.frontend.containers import flatten, show_structure
from fieldjax.frontend.recording import Recording
from fieldjax.ir.graph import Value
from fieldjax.ir.plan import Plan


def wanted_domains(recording: Recording, out: Any, domain: Any) -> tuple[list[Domain | None], list[Field] | None]:
    """The domain that each output is asked for (None: all there is), and the fields that take them.

    Raises ArgumentError where `out` or `domain` isn't structured like the result, DimensionError and
    DtypeError where a field of `out` can't hold it, DomainError where `domain` leaves `out`.
    """
    count = len(recording.graph.outputs)
    fields = None if out is None else _fields(recording, out)
    if domain is None:
        asked: list[Domain | None] = [None] * count if fields is None else [f.domain for f in fields]
    else:
        asked = list(_domains(recording, domain, count))
    for value, want in zip(recording.graph.outputs, asked, strict=True):
        if want is not None and set(want.dims) != set(value.dims):
            raise DimensionError(
                f"the result has dimensions ({', '.join(d.value for d in value.dims)}), asked for is {want}",
                location=user_location(),
            )
    if fields is not None:
        for field, value, want in zip(fields, recording.graph.outputs, asked, strict=True):
            _check_out(field, value, want)
    return [None if a is None else a.canonical() for a in asked], fields


def _fields(recording: Recording, out: Any) -> list[Field]:
    fields, tree = flatten(out)
    if tree != recording.tree or not all(isinstance(f, Field) for f in fields):
        raise ArgumentError(
            "`out` isn't structured like the result",
            location=user_location(),
            notes=[f"the result is {show_structure(recording.tree)}", f"`out` is {show_structure(tree)}"],
        )
    return fields


def _domains(recording: Recording, domain: Any, count: int) -> Sequence[Domain]:
    """One domain for all outputs, or a container of them like the result."""
    if isinstance(domain, (tuple, list)) and not isinstance(domain, Domain) and count > 1:
        parts = jax.tree_util.tree_leaves(domain, is_leaf=lambda x: isinstance(x, (Domain, dict)))
        if len(parts) != count:
            raise ArgumentError(f"{len(parts)} domains for {count} results", location=user_location())
        return [as_domain(p) for p in parts]
    return [as_domain(domain)] * count


def _check_out(field: Field, value: Value, want: Domain | None) -> None:
    if field.dims != value.dims:
        raise DimensionError(
            f"`out` has dimensions ({', '.join(d.value for d in field.dims)}), the result has "
            f"({', '.join(d.value for d in value.dims)})",
            location=user_location(),
        )
    if field.dtype != value.field_type.dtype and not value.field_type.weak:
        raise DtypeError(
            f"`out` is {field.dtype}, the result is {value.field_type.dtype}",
            location=user_location(),
            hints=[f"convert the result with `astype`, or make `out` of {value.field_type.dtype}"],
        )
    if want is not None and not field.domain.contains(want):
        raise DomainError(
            f"`domain` leaves `out`: {want}",
            location=user_location(),
            notes=[f"`out` lives on {field.domain}"],
        )
    field.check_rebindable()


def new_fields(recording: Recording, plan: Plan, arrays: Sequence[Any], inputs: Sequence[Any], numpy: bool) -> Any:
    """The results as new fields, in the structure that the function returned."""
    state = get_opaque_trace_state()
    bound = {v: x for v, x in zip(recording.graph.inputs, inputs, strict=True) if is_table(x)}
    fields = []
    for value, domain, array in zip(recording.graph.outputs, plan.outputs, arrays, strict=True):
        data = np.asarray(array) if numpy and not isinstance(array, Tracer) else array
        fields.append(Field._trusted(data, domain, masks_of(value, plan, bound), state))
    return jax.tree_util.tree_unflatten(recording.tree, fields)


def fill(fields: Sequence[Field], domains: Sequence[Domain], arrays: Sequence[Any]) -> None:
    """Puts the results into the caller's fields: NumPy buffers are filled, others are rebound."""
    for field, domain, array in zip(fields, domains, arrays, strict=True):
        field.take(array, domain)
