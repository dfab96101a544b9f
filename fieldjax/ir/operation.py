"""What every operation states, once: types, domains, demand, evaluation, derivatives, text."""

from __future__ import annotations

import abc
import functools
import operator
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from fieldjax.connectivity import TableQuestions
from fieldjax.domain import Dimension, Domain, DomainUnion, UnitRange
from fieldjax.dtypes import is_floating
from fieldjax.errors import UnsupportedError
from fieldjax.ir.graph import Mask, Node, Value
from fieldjax.ir.types import FieldType, Type

if TYPE_CHECKING:
    from fieldjax.ir.evaluation import At, Slots
    from fieldjax.ir.plan import Plan

Demand = Domain | DomainUnion | None
"""What is needed of an input: a box, several boxes, or nothing."""

Roots = Mapping[Dimension, UnitRange]
"""Along each dimension, the extent of the outputs (or assignments) that something is computed for.

Only of those that are asked for on a domain: where none is, something is computed as far as it is available.
"""

Place = Domain | TableQuestions
"""What inference knows of an input: where a field lives, or whom to ask about a table."""


class Operation(abc.ABC):
    """One operation with its attributes; subclasses are frozen dataclasses.

    Laws, held by tests/ir/test_operations.py for every subclass:

    - *domain*: every element of `available` can be computed from the inputs, and what `demand` asks of the
      inputs for a part of it suffices for that part.
    - *evaluation* on a part equals the part of the evaluation on the whole.
    - *derivatives*: `jvp` is the derivative of `evaluate`; `vjp` is the transpose of `jvp`.
    - *key*: everything that evaluation reads is in the attributes, the inputs or the domains.
    """

    joins: ClassVar[bool] = False
    """Whether operands meet element by element, and so must be under the same masks."""
    pure: ClassVar[bool] = True
    """Whether the results depend on the inputs alone, so that calls can be shared, moved and repeated."""
    once: ClassVar[bool] = False
    """Whether results are computed once, as a whole, also where they have local dimensions."""

    @abc.abstractmethod
    def types(self, *inputs: Type) -> tuple[Type, ...]:
        """The types of the results; raises a located-to-be error when the inputs don't fit."""

    def masks(self, *inputs: Value) -> tuple[tuple[Mask, ...], ...]:
        """The masks of the results: by default those of the inputs that still have their dimension."""
        carried = dict.fromkeys(mask for value in inputs for mask in value.masks)
        return tuple(
            tuple(m for m in carried if m.slot is not None or m.local is None or m.local in t.dims)
            for t in self.types(*(v.type for v in inputs))
        )

    @abc.abstractmethod
    def available(self, node: Node, places: Sequence[Place]) -> tuple[Domain, ...]:
        """The domain of each result, when the inputs live on `places`."""

    def bounds(self, node: Node, places: Sequence[Place]) -> tuple[Domain, ...]:
        """A domain that holds `available`, also where that isn't rectangular and raises NarrowingError."""
        return self.available(node, places)

    @abc.abstractmethod
    def demand(self, node: Node, wanted: Sequence[Domain | None], places: Sequence[Place]) -> tuple[Demand, ...]:
        """What each input must provide for the results on `wanted` (None: that result isn't wanted)."""

    def settle(
        self, node: Node, wanted: Sequence[Domain | None], places: Sequence[Place], roots: Roots
    ) -> Sequence[Domain | None]:
        """What is computed where `wanted` is asked for by outputs that extend over `roots`.

        By default just that. A scan computes the column of the outputs, whatever part of it is read.
        """
        return wanted

    def roots_of_inputs(self, node: Node, roots: Roots) -> Sequence[Roots]:
        """The extent of the outputs that each input is computed for: by default that of the results."""
        return [roots] * len(node.inputs)

    def nested(
        self, node: Node, places: Sequence[Place], adjoints: Mapping[Value, tuple[int, int] | None]
    ) -> tuple[Plan, ...]:
        """The plans of the graphs inside of the operation, for inputs as a whole; usually there are none.

        `adjoints` are the shapes of the transposes that are attached to tables.
        """
        return ()

    @abc.abstractmethod
    def evaluate(self, at: At, domain: Domain, slots: Slots) -> Any:
        """The array of the one result, laid out on `domain`, at the fixed local `slots`."""

    def evaluate_results(self, at: At, domains: Sequence[Domain | None]) -> tuple[Any, ...]:
        """The arrays of all results. Operations with several results override this one."""
        (domain,) = domains
        assert domain is not None
        return (self.evaluate(at, domain, {}),)

    def jvp(self, node: Node, tangents: Sequence[Value | None]) -> tuple[Value | None, ...]:
        """Tangents of the results as recorded values; None is a zero."""
        raise UnsupportedError(f"{self} states no forward derivative")

    def vjp(self, node: Node, cotangents: Sequence[Value | None]) -> tuple[Value | None, ...]:
        """Cotangents of the inputs as recorded values; None is a zero."""
        raise UnsupportedError(f"{self} states no reverse derivative")

    def pull_back(
        self, node: Node, cotangents: Sequence[Value | None], needed: Sequence[bool]
    ) -> tuple[Value | None, ...]:
        """`vjp`, of which only the cotangents of inputs that are `needed` matter."""
        return self.vjp(node, cotangents)

    @abc.abstractmethod
    def __str__(self) -> str:
        """The operation in the text form of a graph."""


class Linear(Operation):
    """An operation that is linear in its first input and carries no derivative in the others."""

    @abc.abstractmethod
    def transpose(self, node: Node, cotangent: Value) -> Value | None:
        """The transpose in the first input, applied to the cotangent of the one result."""

    def jvp(self, node: Node, tangents: Sequence[Value | None]) -> tuple[Value | None, ...]:
        if tangents[0] is None:
            return (None,)
        return record(self, tangents[0], *node.inputs[1:], location=node.location)

    def vjp(self, node: Node, cotangents: Sequence[Value | None]) -> tuple[Value | None, ...]:
        nothing = (None,) * (len(node.inputs) - 1)
        (cotangent,) = cotangents
        if cotangent is None or not is_floating(node.inputs[0].field_type.dtype):
            return (None, *nothing)
        return (self.transpose(node, cotangent), *nothing)


def record(operation: Operation, *inputs: Value, location: Any = None) -> tuple[Value, ...]:
    """A new node, checked, and its results."""
    types = operation.types(*(v.type for v in inputs))
    return Node(operation, inputs, types, operation.masks(*inputs), location).results()


def field_types(inputs: Sequence[Type]) -> tuple[FieldType, ...]:
    """The inputs' types where all of them are fields."""
    assert all(isinstance(t, FieldType) for t in inputs), inputs
    return tuple(inputs)  # type: ignore[return-value]


def field_domain(place: Place) -> Domain:
    """The place of an input that is a field."""
    assert isinstance(place, Domain), place
    return place


def common_domain(places: Sequence[Place]) -> Domain:
    """Where all of the inputs live; along a dimension that some lack, where the others do."""
    return functools.reduce(operator.and_, map(field_domain, places), Domain())


def is_endless(place: Place) -> bool:
    """Whether a value has no end along some dimension, so that there is no array of it."""
    return isinstance(place, Domain) and not place.is_finite()


def table_of(place: Place) -> TableQuestions:
    """The place of an input that is a table."""
    assert not isinstance(place, Domain), place
    return place
