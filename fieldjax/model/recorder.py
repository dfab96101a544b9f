"""What is recorded: the graph of a model or of a loop's body, where its values live, and what they stand for."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from fieldjax.connectivity import Table, identity_of, is_table
from fieldjax.domain import Domain
from fieldjax.embedded.field import Field
from fieldjax.embedded.leaves import is_scalar, leaf_type, parameter, place_of
from fieldjax.errors import ArgumentError, FieldjaxError, TracingError, user_location
from fieldjax.ir.build import adopt_masks, literal, pointwise
from fieldjax.ir.graph import Mask, Node, Value
from fieldjax.ir.operation import Operation, Place, record
from fieldjax.ir.operations.literal import Parameter
from fieldjax.model.axes import check_shapes, is_array
from fieldjax.model.broadcasting import stretched
from fieldjax.model.growing import GrowingGraph, Replacement
from fieldjax.model.results import as_leaf
from fieldjax.model.variable import Variable


class Recording(GrowingGraph):
    """A graph that grows, the data behind its parameters, and the variables that stand for its values.

    `data` is what parameters stand for: the inputs that were given, and all that operations met from outside.
    """

    depth = 0
    inside: Recording | None = None
    """The body of a loop that is being recorded in this recording now: it takes in all that is recorded meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.data: dict[Value, Any] = {}
        self.moved: dict[Value, str] = {}
        """Values that left the graph, and the operation that they are in."""
        self.regions: list[Any] = []
        """The regions that `compress` made here, in order."""
        self._known: dict[Any, tuple[Any, Value]] = {}
        """What was met from outside, held so that nothing else comes to its address, and what it is here."""
        self._variables: weakref.WeakSet[Variable] = weakref.WeakSet()
        self._count = itertools.count()

    @property
    def innermost(self) -> Recording:
        """Where what is done with its variables is recorded now."""
        return self if self.inside is None else self.inside.innermost

    # What the front end asks of a recorder.

    def pointwise(self, function: str, *operands: Any) -> Variable:
        """Records `function` of variables, fields, arrays and scalars."""
        values = self._aligned([self.value(x) for x in operands])
        return self.add(pointwise(function, *values, location=user_location()))

    def apply(self, operation: Operation, *operands: Any) -> Variable:
        """Records an operation on variables, fields, arrays and scalars."""
        values = tuple(self.value(x) for x in operands)
        if operation.joins:
            values = adopt_masks(values, user_location())
        return self.add(record(operation, *values, location=user_location())[0])

    def call_operator(self, operator: Any, args: Any, kwargs: Any, out: Any, domain: Any, provider: Any) -> Any:
        """Records a call of a field operator or scan operator as one operation."""
        from fieldjax.model.calls import call_operator

        return call_operator(self, operator, args, kwargs, out, domain, provider)

    def call_program(self, program: Any, args: Any, kwargs: Any, provider: Any) -> None:
        """Records a call of a program as one operation; its variables hold the new values."""
        from fieldjax.model.calls import call_program

        call_program(self, program, args, kwargs, provider)

    # Values.

    def value(self, x: Any) -> Value:
        """What `x` is in this graph: a variable's value, a literal for a scalar, a parameter for anything else.

        Raises ArgumentError for what isn't data, TracingError for a variable of another recording.
        """
        if isinstance(x, Variable):
            x.home.settle()
            self.settle()
            return self.unsettled(x)
        if isinstance(x, Value):
            return x
        if isinstance(x, (bool, int, float, np.generic)) and is_scalar(x):
            value = literal(x)
            self.adopt([value])
            return value
        if not (isinstance(x, Field) or is_table(x) or hasattr(x, "shape")):
            raise ArgumentError(f"{x!r} can't stand beside recorded values", location=user_location())
        return self.known(x)

    def unsettled(self, variable: Variable) -> Value:
        """What a variable is in this graph as long as nothing that is pending was carried out."""
        value = variable.unsettled
        if value in self.moved:
            raise TracingError(
                f"this value is inside of the {self.moved[value]} now",
                location=user_location(),
                hints=["give it to `compress` as an output, or expose it with `intermediates='all'`"],
            )
        variable.recorder  # noqa: B018  # raises for a variable of a body that has ended
        if variable.home is not self:
            return self._from_other(variable)
        return value

    def _from_other(self, variable: Variable) -> Value:
        raise TracingError(
            "values of two recorded models meet",
            location=user_location(),
            hints=["give the data to this model with `model.input`"],
        )

    def known(self, x: Any) -> Value:
        """The parameter for a field, an array or a connectivity from outside: one for each.

        An array of NumPy is taken as it is now: one that was written to since it was met is another.
        """
        value = self.known_value(x)
        if value is None:
            value = self.new_parameter(f"p{next(self._count)}", x)
            self.stands_for(x, value)
        return value

    def known_value(self, x: Any) -> Value | None:
        """The parameter for something from outside that was met before, and is now what it was then."""
        value = self._known.get(_key(x), (None, None))[1]
        changed = value is not None and isinstance(x, np.ndarray) and not _equal(x, self.data[value])
        return None if changed else value

    def stands_for(self, x: Any, value: Value) -> None:
        """From now on `value` is what `x` is here."""
        self._known[_key(x)] = (x, value)

    def new_parameter(self, name: str, x: Any) -> Value:
        """A parameter that stands for `x`."""
        tables: list[Table] = []
        x = x if isinstance(x, Field) or is_table(x) else as_array(x)
        leaf = as_leaf(x)
        kind, place = leaf_type(leaf, tables), place_of(leaf)
        masks = [Mask(self.known(tables[position]), slot, moved) for position, slot, moved in kind.masks]
        value = parameter(name, kind.type, masks)
        self.enter(value.node, [place])
        self.data[value] = x
        return value

    def variable(self, x: Any) -> Variable:
        """`x` as a variable of this recording."""
        return x if isinstance(x, Variable) and x.home is self else self.variable_of(self.value(x))

    def variable_of(self, value: Value) -> Variable:
        """A new variable that stands for a value of this graph."""
        made = Variable(value, self)
        self._variables.add(made)
        return made

    def assign(self, variable: Variable, value: Value) -> None:
        """From now on the variable stands for another value of this graph."""
        variable.value = value

    @property
    def variables(self) -> list[Variable]:
        """The variables that somebody holds."""
        return list(self._variables)

    def add(self, value: Value) -> Variable:
        """The variable of a value that was just recorded."""
        return self.add_all([value])[0]

    def add_all(self, values: Sequence[Value]) -> list[Variable]:
        """The variables of values that were just recorded. Nothing is added when one of them can't be computed."""
        self.adopt(values)
        return [self.variable_of(v) for v in values]

    def adopt(self, values: Iterable[Value]) -> None:
        """Adds nodes that aren't known yet, with all that they read. All or none of them."""
        new = self.unknown_nodes([v.node for v in values])
        places: dict[Value, Place] = {}
        for node in new:
            given = [places[v] if v in places else self.places[v] for v in node.inputs]
            places.update(zip(node.results(), self._places(node, given), strict=True))
        for node in new:
            self.enter(node, [places[v] for v in node.results()])
            self.on_new(node)

    def unknown_nodes(self, roots: Sequence[Node]) -> list[Node]:
        """What is behind these nodes, themselves included, and not in the graph yet; each after what it reads."""
        found: dict[Node, None] = {}
        stack = [(n, iter(n.inputs)) for n in reversed(roots) if n not in self.number]
        while stack:
            node, pending = stack[-1]
            step = next((v.node for v in pending if v.node not in self.number and v.node not in found), None)
            if step is not None:
                stack.append((step, iter(step.inputs)))
            else:
                stack.pop()
                found[node] = None
        return list(found)

    def _places(self, node: Node, given: Sequence[Place]) -> Sequence[Domain]:
        assert not isinstance(node.operation, Parameter), node
        try:
            return node.operation.available(node, given)
        except FieldjaxError as error:
            raise (error if node.location is None else error.with_location(node.location)) from None

    def on_new(self, node: Node) -> None:
        """Called for each new node."""

    def domain(self, value: Value) -> Domain:
        """Where a value lives."""
        place = self.places[value]
        assert isinstance(place, Domain), place
        return place

    def kept(self) -> frozenset[Value]:
        """Values that are wanted whoever reads them: the outputs."""
        return frozenset()

    def replace(self, replacements: Sequence[Replacement]) -> None:
        """Each operation takes the place of its nodes; their values but for the outputs are inside of it."""
        super().replace(replacements)
        for replacement in replacements:
            inner = {v for node in replacement.nodes for v in node.results()}.difference(replacement.outputs)
            self.moved.update(dict.fromkeys(inner, str(replacement.operation)))

    def on_replaced(self, new: Mapping[Value, Value]) -> None:
        """Variables follow their values."""
        for variable in self.variables:
            value = variable.unsettled
            variable.value = new.get(value, value)

    def name_of(self, value: Value) -> str | None:
        """The name of a value that has one."""
        return None

    def result(self, value: Value) -> Any:
        """The data of a value."""
        raise TracingError(
            "a recorded value has no data before the model runs",
            location=user_location(),
            hints=["`model.compile()` gives a function that returns the outputs; `record(inline=True)` evaluates"],
        )

    def _aligned(self, values: list[Value]) -> list[Value]:
        """Values that can meet: axes of length one are dropped where another array has more."""
        arrays = [v for v in values if is_array(v.dims)]
        if not arrays:
            return values
        if any(v.dims and not is_array(v.dims) for v in values):
            raise ArgumentError(
                "an array meets a field",
                location=user_location(),
                hints=["wrap the array: `as_field(domain, array)`"],
            )
        shapes = [self.domain(v).shape for v in arrays]
        check_shapes(shapes)
        return values if len(set(shapes)) == 1 else [stretched(self, v, shapes) for v in values]


def _key(x: Any) -> Any:
    return identity_of(x) if is_table(x) else id(x)


def _equal(x: np.ndarray, taken: np.ndarray) -> bool:
    """Whether an array still holds what was taken of it, NaN for NaN."""
    return bool(((x == taken) | ((x != x) & (taken != taken))).all())


def as_array(x: Any) -> Any:
    """Something with a shape as an array that JAX takes; its dtype yields to others where it is a weak scalar of JAX.

    Raises DtypeError for 64 bits while x64 is off.
    """
    from fieldjax.dtypes import require_x64

    require_x64(np.dtype(x.dtype), "an array")
    if not isinstance(x, jax.Array):
        return np.array(x)
    return with_strong_dtype(x) if x.ndim else x


def with_strong_dtype(x: Any) -> Any:
    """An array of JAX whose dtype yields to no other; anything else as it is."""
    return jax.lax.convert_element_type(x, x.dtype) if isinstance(x, jax.Array) and x.weak_type else x
