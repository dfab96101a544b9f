"""One operation at a time on fields: the same graph, inference and evaluation, immediately."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from fieldjax.connectivity import (
    CartesianConnectivity,
    FieldOffset,
    SlotOffset,
    Table,
    as_provider,
    is_table,
    resolve,
)
from fieldjax.domain import Domain, DomainUnion, NamedIndex, Shift
from fieldjax.dtypes import as_dtype
from fieldjax.embedded.index_offset import IndexOffset
from fieldjax.errors import ArgumentError, FieldjaxError, user_location
from fieldjax.ir.arrays import NumpyArrays
from fieldjax.ir.build import adopt_masks, literal
from fieldjax.ir.evaluation import Evaluation
from fieldjax.ir.graph import Graph, Value
from fieldjax.ir.inference import infer
from fieldjax.ir.jax_arrays import JaxArrays
from fieldjax.ir.operation import Operation, record
from fieldjax.ir.operations.concat import ConcatWhere, boxes_of
from fieldjax.ir.operations.gather import Gather
from fieldjax.ir.operations.indexed import IndexedShift
from fieldjax.ir.operations.layout import Broadcast
from fieldjax.ir.operations.layout import Shift as ShiftOperation
from fieldjax.ir.operations.pointwise import Cast, Pointwise
from fieldjax.ir.operations.slots import AtSlot, Substitute
from fieldjax.ir.types import TableType

if TYPE_CHECKING:
    from fieldjax.embedded.field import Field
    from fieldjax.embedded.leaves import LeafType


def accepts(x: Any) -> bool:
    """Whether `x` can stand beside a field in arithmetic."""
    from fieldjax.embedded.field import Field
    from fieldjax.embedded.leaves import is_scalar

    return isinstance(x, Field) or is_scalar(x)


def pointwise(function: str, *operands: Any) -> Field:
    """`function` of fields and scalars, on the intersection of their domains."""
    return apply(Pointwise(function), *operands)


def cast(field: Field, dtype: Any) -> Field:
    """The same elements in another dtype."""
    return apply(Cast(as_dtype(dtype)), field)


def broadcast(x: Any, dims: Any) -> Field:
    """The field on more dimensions."""
    return apply(Broadcast(tuple(dims)), x)


def shifted(field: Field, offset: Any) -> Field:
    """The field read at an offset; a named offset is looked up in the mesh in force (`with mesh:`)."""
    if isinstance(offset, NamedIndex):
        return apply(AtSlot(offset.dim, offset.value), field)
    if isinstance(offset, CartesianConnectivity):
        return apply(ShiftOperation(offset.codomain, offset.offset, offset.dimension), field)
    if isinstance(offset, Shift):
        return apply(ShiftOperation(offset.codomain, offset.index_offset, offset.dimension), field)
    if is_table(offset):
        return premapped(field, (offset,))
    if isinstance(offset, IndexOffset):
        return apply(IndexedShift(offset.dimension), field, offset.indices)
    if isinstance(offset, FieldOffset):
        return shifted(field, as_provider()[offset])
    if isinstance(offset, SlotOffset):
        return apply(Gather((offset.slot,)), field, as_provider()[offset.offset])
    raise ArgumentError(
        f"a field is read at an offset, not at {offset!r}",
        location=user_location(),
        hints=["write f(V2E), f(V2E[0]), f(K + 1), or f(connectivity)"],
    )


def premapped(field: Field, connectivities: Sequence[Any]) -> Field:
    """The field read through tables at the same time; affine shifts one after another."""
    tables = [c for c in connectivities if is_table(c)]
    for other in connectivities:
        if not is_table(other):
            field = shifted(field, other)
    return apply(Gather((None,) * len(tables)), field, *tables) if tables else field


def concat_where(condition: Domain | DomainUnion, inside: Any, outside: Any) -> Field:
    """`inside` where the position lies in the condition, `outside` elsewhere."""
    for box in boxes_of(condition):
        outside = apply(ConcatWhere(box), inside, outside)
    return outside


def over_neighbours(field: Field, axis: Any) -> Field:
    """The field with a mask along `axis`: its own, or that of the table in force."""
    if any(m.slot is None and axis in m.connectivity.domain.dims for m in field.masks):
        return field
    _, found = as_provider().find_local(axis)
    return apply(Substitute(axis), field, found)


def apply(operation: Operation, *operands: Any) -> Field:
    """The result of one operation on fields, scalars and connectivities."""
    from fieldjax.embedded.field import Field
    from fieldjax.embedded.leaves import array_of, check_elements, leaf_type, masks_of, on_numpy, place_of, table_type

    location = user_location()
    try:
        tables: list[Table] = []
        key = tuple(_key(x, tables, leaf_type) for x in operands)
        graph = _graph(operation, key, tuple(table_type(t) for t in tables))
        data = [x for x, k in zip(operands, key, strict=True) if not isinstance(k, _Constant)]
        leaves = [resolve(x) if is_table(x) else x for x in (*data, *tables)]
        plan = infer(graph, [place_of(x) for x in leaves], [None])
        check_elements(leaves)
        numpy = on_numpy(leaves)
        arrays = NumpyArrays() if numpy else JaxArrays()
        (result,) = Evaluation(graph, plan, arrays, [array_of(x, numpy) for x in leaves]).run()
    except FieldjaxError as error:
        raise error.with_location(location) if location is not None else error from None
    (output,) = graph.outputs
    bound = {v: x for v, x in zip(graph.inputs, leaves, strict=True) if is_table(x)}
    return Field(result, plan.outputs[0], masks_of(output, plan, bound))


class _Constant:
    """A scalar written in the source: part of the graph, equal only to its own type and bits."""

    __slots__ = ("operation",)

    def __init__(self, x: Any) -> None:
        self.operation = literal(x).node.operation

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Constant) and self.operation == other.operation

    def __hash__(self) -> int:
        return hash(self.operation)


def _key(x: Any, tables: list[Table], leaf_type: Any) -> LeafType | _Constant:
    return _Constant(x) if isinstance(x, (bool, int, float)) else leaf_type(x, tables)


@lru_cache(maxsize=1024)
def _graph(operation: Operation, key: tuple[LeafType | _Constant, ...], tables: tuple[TableType, ...]) -> Graph:
    from fieldjax.embedded.leaves import parameters

    leaves, masked_by = parameters([k for k in key if not isinstance(k, _Constant)], tables)
    pending = iter(leaves)
    values: tuple[Value, ...] = tuple(
        record(k.operation)[0] if isinstance(k, _Constant) else next(pending) for k in key
    )
    if operation.joins:
        values = adopt_masks(values)
    return Graph((*leaves, *masked_by), record(operation, *values))
