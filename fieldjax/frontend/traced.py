"""What an operator's function sees while it is recorded: fields and tables without data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

import jax

from fieldjax.connectivity import CartesianConnectivity, FieldOffset, SlotOffset, is_table
from fieldjax.domain import Dimension, DimensionKind, NamedIndex, Shift
from fieldjax.dtypes import as_dtype, is_floating
from fieldjax.embedded.field import Field
from fieldjax.embedded.index_offset import IndexOffset
from fieldjax.embedded.leaves import is_scalar
from fieldjax.errors import ArgumentError, FieldjaxError, TracingError, user_location
from fieldjax.frontend.handing_over import Handing, recorder_of
from fieldjax.frontend.predicates import conditions
from fieldjax.frontend.scope import Scope
from fieldjax.ir.arithmetic import Arithmetic
from fieldjax.ir.build import adopt_masks, pointwise
from fieldjax.ir.graph import Value
from fieldjax.ir.operation import Operation, record
from fieldjax.ir.operations.functions import FUNCTIONS
from fieldjax.ir.operations.gather import Gather
from fieldjax.ir.operations.indexed import IndexedShift
from fieldjax.ir.operations.layout import Shift as ShiftOperation
from fieldjax.ir.operations.pointwise import Cast
from fieldjax.ir.operations.slots import AtSlot


class TracedTable:
    """A connectivity that is an argument of the operator."""

    __slots__ = ("scope", "value")

    def __init__(self, value: Value, scope: Scope) -> None:
        self.value, self.scope = value, scope

    def __getitem__(self, slot: int) -> TracedSlot:
        return TracedSlot(self, slot)

    def __repr__(self) -> str:
        return f"TracedTable({self.value.type})"


class TracedSlot:
    """One local position of a connectivity that is an argument."""

    __slots__ = ("slot", "table")

    def __init__(self, table: TracedTable, slot: int) -> None:
        self.table, self.slot = table, slot


class TracedField(Arithmetic):
    """A field or scalar inside a recording. It has dimensions and a dtype; its domain comes with the call."""

    __slots__ = ("scope", "value")
    __array_priority__ = 1000

    def __init__(self, value: Value, scope: Scope) -> None:
        self.value, self.scope = value, scope

    @property
    def dims(self) -> tuple[Dimension, ...]:
        """The dimensions, in canonical order."""
        return self.value.dims

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.value.dims)

    @property
    def dtype(self) -> Any:
        """The element type."""
        return self.value.field_type.dtype

    def _wrap(self, value: Value) -> TracedField:
        return TracedField(value, self.scope)

    def _combine(self, function: str, *operands: Any) -> Any:
        known = all(isinstance(x, (TracedField, Field)) or is_scalar(x) for x in operands)
        return apply_pointwise(function, *operands) if known else NotImplemented

    def __call__(self, *offsets: Any) -> TracedField:
        """The field read at an offset; several are read one after another."""
        field = self
        for offset in offsets:
            field = field._read(offset)
        return field

    def premap(self, *connectivities: Any) -> TracedField:
        """The field read through one table, or through several at the same time."""
        tables, field = [], self
        for connectivity in connectivities:
            table = self._table_of(connectivity)
            if table is None:
                field = field._read(connectivity)
            else:
                tables.append(table)
        return field._record(Gather((None,) * len(tables)), *tables) if tables else field

    def _read(self, offset: Any) -> TracedField:
        if isinstance(offset, FieldOffset) and offset.is_cartesian:
            raise ArgumentError(
                f"{offset.value} is a Cartesian offset and needs a distance",
                location=user_location(),
                hints=[f"write f({offset.value}[1]), or f({offset.source.value} + 1)"],
            )
        table = self._table_of(offset)
        if table is not None:
            return self._record(Gather((None,)), table)
        if isinstance(offset, (SlotOffset, TracedSlot)):
            return self._read_slot(offset)
        if isinstance(offset, NamedIndex):
            return self._record(AtSlot(offset.dim, offset.value))
        if isinstance(offset, Shift):
            return self._record(ShiftOperation(offset.codomain, offset.index_offset, offset.dimension))
        if isinstance(offset, CartesianConnectivity):
            return self._record(ShiftOperation(offset.codomain, offset.offset, offset.dimension))
        if isinstance(offset, IndexOffset):
            return apply(IndexedShift(offset.dimension), self, offset.indices)
        raise ArgumentError(
            f"a field is read at an offset, not at {offset!r}",
            location=user_location(),
            hints=["write f(V2E), f(V2E[0]), f(K + 1), or f(connectivity)"],
        )

    def _read_slot(self, offset: SlotOffset | TracedSlot) -> TracedField:
        if isinstance(offset, TracedSlot):
            return self._record(Gather((offset.slot,)), offset.table.value)
        return self._record(Gather((offset.slot,)), located(lambda: self.scope.table(offset.offset)))

    def _table_of(self, offset: Any) -> Value | None:
        if isinstance(offset, FieldOffset):
            return located(lambda: self.scope.table(offset))
        if isinstance(offset, TracedTable):
            return offset.value
        return self.scope.capture(offset) if is_table(offset) else None

    def _record(self, operation: Operation, *others: Value) -> TracedField:
        location = user_location()
        self.scope.check(operation)
        return located(lambda: self._wrap(record(operation, self.value, *others, location=location)[0]))

    def astype(self, dtype: Any) -> TracedField:
        """The same elements in another dtype."""
        return self._record(Cast(located(lambda: as_dtype(dtype))))

    def _concrete(self, kind: type) -> Any:
        if self.scope.guards is None:
            raise TracingError(
                f"Python needs the {kind.__name__} of a value that differs from point to point",
                location=user_location(),
                notes=["both branches are selected from in functions whose source fieldjax can rewrite"],
                hints=["decorate this helper with `field_operator`, or select with `where`"],
            )
        return self.scope.guards.ask(self.value, kind)

    def __bool__(self) -> bool:
        return self._concrete(bool)

    def __int__(self) -> int:
        return self._concrete(int)

    def __index__(self) -> int:
        return self._concrete(int)

    def __float__(self) -> float:
        return self._concrete(float)

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise TracingError(
            "a recorded field has no elements yet",
            location=user_location(),
            hints=["use the functions of fieldjax (`fieldjax.sin`, `fieldjax.where`, ...) inside operators"],
        )

    def __iter__(self) -> NoReturn:
        raise TracingError("a field can't be iterated over inside an operator", location=user_location())

    def __getitem__(self, index: Any) -> TracedField:
        """One position of a local dimension: `sparse[C2EDim(0)]`."""
        if isinstance(index, NamedIndex) and index.dim.kind is DimensionKind.LOCAL:
            return self._read(index)
        raise TracingError(
            "a field can't be indexed inside an operator",
            location=user_location(),
            hints=["read neighbours with f(V2E[0]), f(K + 1); choose a part with `domain=` or `out=`"],
        )

    def __repr__(self) -> str:
        return f"TracedField({self.value.type})"


def located(make: Any) -> Any:
    """`make()`, its errors at the user's line."""
    try:
        return make()
    except FieldjaxError as error:
        where = user_location()
        raise (error if where is None else error.with_location(where)) from None


def is_traced(*operands: Any) -> bool:
    """Whether something here is recorded rather than computed."""
    return any(isinstance(x, (TracedField, Handing)) for x in operands)


def common_scope(operands: Iterable[Any]) -> Scope:
    """The recording that the operands belong to; constants join whatever they meet."""
    scopes = list(dict.fromkeys(x.scope for x in operands if isinstance(x, TracedField)))
    real = [s for s in scopes if not s.is_blank]
    real = [s for s in real if not any(s is other.outer for other in real)]
    if len(real) > 1:
        raise TracingError(
            "values of two recordings meet",
            location=user_location(),
            hints=["a value of one operator call can't be kept and used in another; pass it as an argument"],
        )
    scope = real[0] if real else scopes[0] if scopes else Scope()
    for other in scopes:
        if other is not scope and other.is_blank:
            scope.adopt(other)
    return scope


def value_of(x: Any, scope: Scope) -> Value:
    """An operand as a recorded value: fields from outside are captured, scalars are literals."""
    from fieldjax.ir.build import literal

    if isinstance(x, TracedField):
        if x.scope.is_blank and x.scope is not scope:
            scope.adopt(x.scope)
        return x.value if x.scope is scope else scope.brought(x.value)
    if isinstance(x, Field):
        return scope.capture(x)
    if not is_scalar(x):
        raise ArgumentError(f"{x!r} can't stand beside a field", location=user_location())
    if isinstance(x, jax.Array):
        return scope.capture(x)
    return literal(x)


def apply_pointwise(function: str, *operands: Any) -> Any:
    """`function` of recorded fields, fields from outside and scalars."""
    if (recorder := recorder_of(operands)) is not None:
        return recorder.pointwise(function, *operands)
    if conditions() and FUNCTIONS[function].safe is not None:
        operands = _safe(function, operands)
    location = user_location()
    scope = common_scope(operands)
    values = [located(lambda x=x: value_of(x, scope)) for x in operands]
    return TracedField(located(lambda: pointwise(function, *values, location=location)), scope)


def _safe(function: str, operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """Operands of a function with a singular point: its safe point where the branch isn't taken."""
    safe = FUNCTIONS[function].safe
    assert safe is not None
    holds = conditions()[0]
    for condition in conditions()[1:]:
        holds = holds & condition
    return tuple(
        apply_pointwise("where", holds, x, point if is_floating(x.dtype) else int(point))
        if isinstance(x, TracedField)
        else x
        for x, point in zip(operands, safe, strict=True)
    )


def apply(operation: Operation, *operands: Any) -> Any:
    """A recorded operation."""
    if (recorder := recorder_of(operands)) is not None:
        return recorder.apply(operation, *operands)
    location = user_location()
    scope = common_scope(operands)
    scope.check(operation)
    values = tuple(located(lambda x=x: value_of(x, scope)) for x in operands)
    if operation.joins:
        values = located(lambda: adopt_masks(values, location))
    return TracedField(located(lambda: record(operation, *values, location=location)[0]), scope)
