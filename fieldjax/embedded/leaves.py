"""The leaves of a call: fields, scalars and connectivities, as types for recording and as data for running."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from fieldjax.connectivity import Connectivity
from fieldjax.domain import Domain
from fieldjax.dtypes import of_literal, require_x64
from fieldjax.embedded.field import Field
from fieldjax.embedded.masks import FieldMask
from fieldjax.ir.graph import Mask, Value
from fieldjax.ir.operation import Place, record
from fieldjax.ir.operations.literal import Parameter
from fieldjax.ir.types import FieldType, TableType, Type

Leaf = Any
"""A Field, a scalar of Python, NumPy or JAX, or a Connectivity."""


class LeafType(NamedTuple):
    """What recording knows of a leaf. `masks` are (position among the call's tables, slot)."""

    type: Type
    masks: tuple[tuple[int, int | None], ...] = ()


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


def table_type(connectivity: Connectivity) -> TableType:
    """The type of a connectivity."""
    return TableType(connectivity.domain.dims, connectivity.codomain)


def leaf_type(leaf: Leaf, tables: list[Connectivity]) -> LeafType:
    """The type of a leaf; the tables of a field's masks are added to `tables`."""
    if isinstance(leaf, Field):
        masks = tuple((_position(m.connectivity, tables), m.slot) for m in leaf.masks)
        return LeafType(FieldType(leaf.dims, leaf.dtype), masks)
    if isinstance(leaf, Connectivity):
        return LeafType(table_type(leaf))
    return LeafType(scalar_type(leaf))


def _position(connectivity: Connectivity, tables: list[Connectivity]) -> int:
    for position, known in enumerate(tables):
        if known is connectivity or same_table(known, connectivity):
            return position
    tables.append(connectivity)
    return len(tables) - 1


def same_table(a: Connectivity, b: Connectivity) -> bool:
    """Whether two connectivities hold the same neighbours over the same positions."""
    return a.structure.replace(has_adjoint=False) is b.structure.replace(has_adjoint=False)


def parameter(name: str, type_: Type, masks: Sequence[Mask] = ()) -> Value:
    """An input of a graph."""
    return record(Parameter(name, type_, tuple(masks)))[0]


def parameters(types: Sequence[LeafType], tables: Sequence[TableType]) -> tuple[list[Value], list[Value]]:
    """Inputs for leaves of `types`, and for the tables that their masks name."""
    masked_by = [parameter(f"table{n}", t) for n, t in enumerate(tables)]
    leaves = [
        parameter(f"arg{n}", t.type, [Mask(masked_by[p], slot) for p, slot in t.masks])
        for n, t in enumerate(types)
    ]
    return leaves, masked_by


def place_of(leaf: Leaf) -> Place:
    """What inference is told about a leaf."""
    if isinstance(leaf, Field):
        return leaf.domain
    return Domain() if is_scalar(leaf) else leaf


def array_of(leaf: Leaf, numpy: bool) -> Any:
    """The data of a leaf, as NumPy's where everything runs on NumPy."""
    if isinstance(leaf, Field):
        return leaf.ndarray
    if isinstance(leaf, Connectivity):
        return leaf.asnumpy() if numpy else leaf.table
    return leaf


def on_numpy(leaves: Sequence[Leaf]) -> bool:
    """Whether every field is NumPy's and no scalar is JAX's."""
    return not any(isinstance(x.ndarray if isinstance(x, Field) else x, jax.Array) for x in leaves)


def masks_of(value: Value, bound: dict[Value, Connectivity]) -> tuple[FieldMask, ...]:
    """The masks of a result, on the connectivities of this call."""
    return tuple(FieldMask.of(bound[m.table], m.slot) for m in value.masks if m.table in bound)
