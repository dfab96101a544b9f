"""The body of a scan while it is recorded: a graph on numbers at one level."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from fieldjax.connectivity import FieldOffset, is_table
from fieldjax.domain import Dimension
from fieldjax.dtypes import result_type
from fieldjax.embedded.field import Field
from fieldjax.embedded.leaves import parameter
from fieldjax.errors import ArgumentError, DtypeError, Location, TracingError, user_location
from fieldjax.frontend.containers import flatten, is_data, unflatten
from fieldjax.frontend.scope import Scope
from fieldjax.frontend.traced import TracedField, TracedTable, value_of
from fieldjax.frontend.user_code import called
from fieldjax.ir.graph import Graph, Value
from fieldjax.ir.operation import Operation, record
from fieldjax.ir.operations.literal import Literal
from fieldjax.ir.operations.pointwise import Cast, Pointwise
from fieldjax.ir.simplify import simplify
from fieldjax.ir.types import FieldType


class BodyScope(Scope):
    """The recording of a body. What it touches of the recording around it enters as one more argument."""

    def __init__(self, outer: Scope) -> None:
        super().__init__()
        self._outer = outer
        self.arguments: dict[Value, Value] = {}

    @property
    def outer(self) -> Scope:
        """The recording that the scan belongs to."""
        return self._outer

    def brought(self, value: Value) -> Value:
        """A value of the recording around the scan as it stands at one level."""
        if value.is_table:
            _no_place("take a connectivity")
        if value not in self.arguments:
            type_ = FieldType((), value.field_type.dtype, value.field_type.weak)
            self.arguments[value] = parameter(f"at_level{len(self.arguments)}", type_)
        return self.arguments[value]

    def capture(self, data: Any) -> Value:
        """A field or scalar from outside, at one level."""
        if is_table(data):
            _no_place("read neighbours")
        return self.brought(self.outer.capture(data))

    def adopt(self, other: Scope) -> None:
        """What constants captured is captured by the recording around."""
        if other is not self.outer:
            self.outer.adopt(other)

    def table(self, offset: FieldOffset) -> Value:
        """There are no neighbours here."""
        _no_place("read neighbours")

    def table_over(self, local: Dimension) -> Value:
        """There are no neighbours here."""
        _no_place("reduce over neighbours")

    def check(self, operation: Operation) -> None:
        """Only arithmetic has a place here."""
        if not isinstance(operation, (Cast, Pointwise)):
            _no_place("be shifted, reduced or broadcast")


def _no_place(what: str) -> NoReturn:
    raise TracingError(
        f"inside the body of a scan values are numbers at one level: they can't {what}",
        location=user_location(),
        hints=["do it where the scan is called, and pass the result: `scan(f(K + 1))`"],
    )


@dataclass(frozen=True)
class Body:
    """The graph from carries and arguments to new carries, twice: each is emitted; and the arguments."""

    graph: Graph
    arguments: tuple[Value, ...]


@dataclass(frozen=True)
class Definition:
    """A body as it is written, and the initial carry: leaves, their values, and how they are put together."""

    function: Callable[..., Any]
    leaves: tuple[Any, ...]
    initial: tuple[Value, ...]
    tree: Any

    @property
    def location(self) -> Location | None:
        """Where the function is defined."""
        code = getattr(self.function, "__code__", None)
        return None if code is None else Location(code.co_filename, code.co_firstlineno, function=code.co_name)

    def record(self, args: Any, kwargs: Any, outer: Scope) -> Body:
        """The body on carries of the types that it gives them.

        Raises ArgumentError where it doesn't return a carry, DtypeError where a carry can't start with its
        initial value.
        """
        return self._record(
            [FieldType((), v.field_type.dtype, v.field_type.weak) for v in self.initial], args, kwargs, outer
        )

    def _record(self, types: Sequence[FieldType], args: Any, kwargs: Any, outer: Scope) -> Body:
        """The body on carries of these types, or larger ones that it takes them to (at most float64)."""
        scope = BodyScope(outer)
        carries = [parameter(f"carry{n}", t) for n, t in enumerate(types)]
        new = self._results(carries, args, kwargs, scope)
        joined = [_joined(t, v.field_type) for t, v in zip(types, new, strict=True)]
        if joined != types:
            return self._record(joined, args, kwargs, outer)
        self._check_initial(types)
        new = [
            v if v.field_type.dtype == t.dtype else record(Cast(t.dtype), v)[0] for v, t in zip(new, types, strict=True)
        ]
        graph = simplify(Graph((*carries, *scope.arguments.values()), (*new, *new)))
        return Body(graph, tuple(scope.arguments))

    def _results(self, carries: Sequence[Value], args: Any, kwargs: Any, scope: BodyScope) -> list[Value]:
        carry = unflatten(self.tree, [TracedField(v, scope) for v in carries])
        leaves, tree = flatten((args, kwargs))
        args, kwargs = unflatten(tree, [_at_level(x, scope) for x in leaves])
        result = called(self.function, (carry, *args), kwargs)
        flat, tree = flatten(result)
        if tree != self.tree or not all(is_data(x) and not isinstance(x, TracedTable) for x in flat):
            self._wrong_structure(result)
        values = [value_of(x, scope) for x in flat]
        if wide := next((v for v in values if v.dims), None):
            raise TracingError(
                f"the body of a scan returns numbers at one level, not {wide.type}",
                location=wide.node.location or self.location,
            )
        return values

    def _wrong_structure(self, result: Any) -> NoReturn:
        raise ArgumentError(
            "the body of the scan doesn't return what it carries",
            location=self.location,
            notes=[
                f"it starts with {_shape(unflatten(self.tree, self.leaves))}",
                f"it returns {_shape(result)}",
            ],
            hints=["return the new carry, structured like `init`"],
        )

    def _check_initial(self, types: Sequence[FieldType]) -> None:
        for value, type_ in zip(self.initial, types, strict=True):
            operation = value.node.operation
            if isinstance(operation, Literal) and operation.dtype.kind in "iu":
                scalar = int(operation.scalar)
                with_new = type_.dtype.type(scalar) if _fits(scalar, type_) else None
                if with_new is None or int(with_new) != scalar:
                    raise DtypeError(
                        f"the scan carries {type_.dtype}, which can't hold its initial value {scalar}",
                        location=self.location,
                        hints=["give an initial value of the type that the body returns"],
                    )


def _fits(scalar: int, type_: FieldType) -> bool:
    import numpy as np

    if type_.dtype.kind not in "iu":
        return True
    limits = np.iinfo(type_.dtype)
    return int(limits.min) <= scalar <= int(limits.max)


def _joined(known: FieldType, new: FieldType) -> FieldType:
    dtype, weak = result_type((known.dtype, known.weak), (new.dtype, new.weak))
    return FieldType((), dtype, weak)


def _at_level(x: Any, scope: BodyScope) -> Any:
    """An argument of the scan as the body sees it. Scalars stay what they are: `if flag:` is decided once."""
    if isinstance(x, TracedTable):
        _no_place("take a connectivity")
    if isinstance(x, Field):
        return TracedField(scope.capture(x), scope)
    if isinstance(x, TracedField) and x.dims:
        return TracedField(scope.brought(x.value), scope)
    return x


def _shape(x: Any) -> str:
    """A container in words: `(number, (number, number))`."""
    if is_data(x):
        return "a number"
    if isinstance(x, (tuple, list)):
        named = type(x).__name__ if hasattr(x, "_fields") else ""
        left, right = "[]" if isinstance(x, list) else "()"
        return f"{named}{left}{', '.join(_shape(p) for p in x)}{right}"
    return f"a {type(x).__name__}"
