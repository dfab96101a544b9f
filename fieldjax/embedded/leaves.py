"""The leaves of a call: fields, scalars and connectivities, as types for recording and as data for running."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from fieldjax.connectivity import Table, TableView, identity_of, is_differentiating, is_table
from fieldjax.domain import Domain
from fieldjax.dtypes import of_literal, require_x64
from fieldjax.embedded.field import Field
from fieldjax.embedded.masks import FieldMask
from fieldjax.errors import ArgumentError, user_location
from fieldjax.ir.graph import Mask, Value
from fieldjax.ir.links import TableArrays
from fieldjax.ir.operation import Place, record
from fieldjax.ir.operations.literal import Parameter
from fieldjax.ir.plan import Plan
from fieldjax.ir.types import FieldType, TableType, Type

Leaf = Any
"""A Field, a scalar of Python, NumPy or JAX, or a Connectivity."""


class LeafType(NamedTuple):
    """What recording knows of a leaf.

    `masks` are (position among the call's tables, slot, moved): those along dimensions that the field still has.
    Of a field that was read at one slot, missing elements are for people to see; arithmetic takes their values.
    """

    type: Type
    masks: tuple[tuple[int, int | None, bool], ...] = ()


def is_scalar(x: Any) -> bool:
    """Whether `x` can be a scalar operand: a number, or an array without dimensions."""
    if isinstance(x, (bool, int, float, np.generic)):
        return not isinstance(x, (np.str_, np.bytes_, np.datetime64, np.timedelta64, np.complexfloating))
    return isinstance(x, (np.ndarray, jax.Array)) and x.ndim == 0


def scalar_type(x: Any) -> FieldType:
    """The type of a scalar. Raises DtypeError for a 64-bit NumPy scalar while x64 is off."""
    if isinstance(x, (jax.Array, np.ndarray)):
        require_x64(np.dtype(x.dtype), "a scalar")
        return FieldType((), np.dtype(x.dtype), bool(getattr(x, "weak_type", False)))
    dtype, weak = of_literal(x)
    return FieldType((), dtype, weak)


def table_type(table: Table) -> TableType:
    """The type of a connectivity."""
    return TableType(table.domain.dims, table.codomain)


def leaf_type(leaf: Leaf, tables: list[Table]) -> LeafType:
    """The type of a leaf; the tables of a field's masks are added to `tables`."""
    if isinstance(leaf, Field):
        masks = tuple((_position(m.connectivity, tables), m.slot, m.moved) for m in leaf.masks if m.slot is None)
        return LeafType(FieldType(leaf.dims, leaf.dtype), masks)
    if is_table(leaf):
        return LeafType(table_type(leaf))
    return LeafType(scalar_type(leaf))


def _position(table: Table, tables: list[Table]) -> int:
    for position, known in enumerate(tables):
        if identity_of(known) is identity_of(table):
            return position
    tables.append(table)
    return len(tables) - 1


def parameter(name: str, type_: Type, masks: Sequence[Mask] = ()) -> Value:
    """An input of a graph."""
    return record(Parameter(name, type_, tuple(masks)))[0]


def parameters(types: Sequence[LeafType], tables: Sequence[TableType]) -> tuple[list[Value], list[Value]]:
    """Inputs for leaves of `types`, and for the tables that their masks name."""
    masked_by = [parameter(f"table{n}", t) for n, t in enumerate(tables)]
    leaves = [
        parameter(f"arg{n}", t.type, [Mask(masked_by[p], slot, moved) for p, slot, moved in t.masks])
        for n, t in enumerate(types)
    ]
    return leaves, masked_by


def place_of(leaf: Leaf) -> Place:
    """What inference is told about a leaf."""
    if isinstance(leaf, Field):
        return leaf.domain
    return Domain() if is_scalar(leaf) else leaf


def adjoint_shapes(leaves: Sequence[Leaf]) -> list[tuple[int, int] | None]:
    """For each table the shape of its transpose, where a derivative may be taken and that makes it cheaper.

    A concrete call can't be differentiated. One with traced fields can; there, tables that are themselves traced
    have what was attached to them before (`fieldjax.jit` begins its trace again to attach it).
    """
    traced = any(isinstance(_data(x), Tracer) for x in leaves if not is_table(x))
    return [_adjoint_shape(x) if traced else None for x in leaves if is_table(x)]


def _adjoint_shape(table: Table) -> tuple[int, int] | None:
    known = table.adjoint
    if known is None:
        concrete = not isinstance(table.table, Tracer)
        if not (concrete or (isinstance(table, TableView) and is_differentiating())) or not table.adjoint_pays:
            return None
        known = table.with_adjoint().adjoint
    return None if known is None else known.rows.shape


def with_adjoints(inputs: Sequence[Value], plan: Plan, leaves: Sequence[Leaf], data: Sequence[Any]) -> list[Any]:
    """The data of the leaves, tables with their transposes where the plan of these inputs counts on them."""
    attached = (v.is_table and plan.table(v).adjoint is not None for v in inputs)
    return [
        TableArrays(x.table, x.with_adjoint().adjoint) if a else array
        for x, a, array in zip(leaves, attached, data, strict=True)
    ]


def array_of(leaf: Leaf, numpy: bool) -> Any:
    """The data of a leaf, as NumPy's where everything runs on NumPy."""
    if isinstance(leaf, Field):
        return leaf.operand if numpy else steady(leaf.operand)
    if is_table(leaf):
        return leaf.asnumpy() if numpy else leaf.table
    return leaf


def argument_of(leaf: Leaf, waits: bool) -> Any:
    """The data of a leaf for a compiled program, which the caller waits for or not."""
    return leaf.operand if waits and isinstance(leaf, Field) else array_of(leaf, numpy=False)


def steady(array: Any) -> Any:
    """The array, copied where somebody may write to it (`out=`) while JAX, which doesn't copy, still reads."""
    return jnp.array(array) if isinstance(array, np.ndarray) and array.flags.writeable else array


def on_numpy(leaves: Sequence[Leaf]) -> bool:
    """Whether every field is NumPy's, no scalar is JAX's, and no table is being traced."""
    return not any(isinstance(x.table, Tracer) if is_table(x) else isinstance(_data(x), jax.Array) for x in leaves)


def check_elements(leaves: Sequence[Leaf]) -> None:
    """Raises ArgumentError where a field was made of a `jax.ShapeDtypeStruct`: there is nothing to compute with."""
    if any(isinstance(_data(x), jax.ShapeDtypeStruct) for x in leaves if not is_table(x)):
        raise ArgumentError(
            "a field has no elements, only a shape and a dtype",
            location=user_location(),
            hints=["such fields are for `compile` and `lower`"],
        )


def _data(leaf: Leaf) -> Any:
    return leaf._array if isinstance(leaf, Field) else leaf


def masks_of(value: Value, plan: Plan, bound: dict[Value, Table]) -> tuple[FieldMask, ...]:
    """The masks of a result on the tables of this call; tables without skips mask nothing."""
    return tuple(
        FieldMask.of(bound[m.table], m.slot, m.moved)
        for m in value.masks
        if plan.facts(m.table).has_skips or (m.slot is None and m.local is not None)
    )
