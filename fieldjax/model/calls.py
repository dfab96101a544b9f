"""Calls of operators and programs on recorded values: one operation each, with the graph that the call has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import jax
from jax.extend.core import get_opaque_trace_state

from fieldjax.connectivity import Provider, as_provider
from fieldjax.domain import Domain
from fieldjax.embedded.field import Field
from fieldjax.embedded.masks import FieldMask
from fieldjax.errors import ArgumentError, FieldjaxError, user_location
from fieldjax.frontend.containers import flatten, unflatten
from fieldjax.frontend.entry import Planned
from fieldjax.frontend.recording import Recording as CallRecording
from fieldjax.ir.build import adopt_masks
from fieldjax.ir.graph import Value
from fieldjax.ir.operation import record
from fieldjax.ir.operations.call import Call
from fieldjax.ir.operations.overlay import Overlay
from fieldjax.model.axes import has_axes
from fieldjax.model.variable import Variable

if TYPE_CHECKING:
    from fieldjax.model.recorder import Recording


def call_operator(
    recording: Recording, operator: Any, args: Any, kwargs: Any, out: Any, domain: Any, provider: Any
) -> Any:
    """Records a call of an operator: its results as variables, or in the variables of `out`."""
    standing = StandIns(recording)
    targets, _ = flatten(out)
    if not all(isinstance(t, Variable) for t in targets):
        raise ArgumentError(
            "`out` isn't made of values of the recorded model",
            location=user_location(),
            hints=["leave `out` away: the call returns its results"],
        )

    def plan() -> Planned:
        given, named, fields = standing.replace(args), standing.replace(kwargs), standing.replace(out)
        return operator.planned_call(given, {**named, "out": fields, "domain": domain}, _provider(provider))

    planned = standing.located(plan)
    made, wanted = planned.recording, planned.domains
    results = _record(recording, made, [standing.value(x) for x in planned.inputs], wanted, operator)
    if out is None:
        return unflatten(made.tree, results)
    for target, result in zip(targets, results, strict=True):
        _assign(recording, target, result)
    return None


def call_program(recording: Recording, program: Any, args: Any, kwargs: Any, provider: Any) -> None:
    """Records a call of a program: the variables that it assigns to hold the new values."""
    standing = StandIns(recording)

    def plan() -> Planned:
        return program.planned_call(standing.replace(args), standing.replace(kwargs), _provider(provider))

    planned = standing.located(plan)
    targets = [standing.variable(f) for f in planned.fields or ()]
    inputs = [standing.value(x) for x in planned.inputs]
    results = _record(recording, planned.recording, inputs, planned.domains, program)
    for target, result in zip(targets, results, strict=True):
        recording.assign(target, result.value)


class StandIns:
    """What stands for variables while an operator is recorded for them: fields and scalars that JAX traces."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._variables: dict[int, Variable] = {}
        self._leaves: dict[Variable, Any] = {}

    def located(self, function: Callable[[], Any]) -> Any:
        """`function()`; its errors are at the user's line."""
        try:
            return function()
        except FieldjaxError as error:
            where = user_location()
            raise (error if where is None else error.with_location(where)) from error.__cause__

    def replace(self, container: Any) -> Any:
        """The container with stand-ins."""
        leaves, tree = flatten(container)
        new = dict.fromkeys(x for x in leaves if isinstance(x, Variable) and x not in self._leaves)
        self._add(list(new))
        return unflatten(tree, [self._leaves[x] if isinstance(x, Variable) else x for x in leaves])

    def _add(self, variables: Sequence[Variable]) -> None:
        values = [self.recording.value(v) for v in variables]
        tracers = _tracers(tuple(map(self._shape, values)))
        for variable, value, array in zip(variables, values, tracers, strict=True):
            leaf = self._leaves[variable] = self._made(value, array)
            self._variables[id(leaf)] = variable

    def _shape(self, value: Value) -> jax.ShapeDtypeStruct:
        if has_axes(value.dims):
            raise ArgumentError(
                "an operator takes fields and scalars, not a plain array",
                location=user_location(),
                hints=["wrap the array where it comes from: `as_field(domain, array)`"],
            )
        kind = value.field_type
        return jax.ShapeDtypeStruct(self.recording.domain(value).shape, kind.dtype, weak_type=kind.weak)

    def _made(self, value: Value, array: Any) -> Any:
        if not value.dims:
            return array
        masks = [FieldMask.of(self.recording.places[m.table], m.slot, m.moved) for m in value.masks]  # type: ignore[arg-type]
        return Field._trusted(array, self.recording.domain(value), tuple(masks), get_opaque_trace_state())

    def variable(self, leaf: Any) -> Variable:
        """The variable that a stand-in stands for. Raises ArgumentError for a field that isn't one."""
        if id(leaf) not in self._variables:
            raise ArgumentError(
                "a program in a recorded model assigns to a field that isn't part of it",
                location=user_location(),
                hints=["make it an input: `model.input(name, field)`"],
            )
        return self._variables[id(leaf)]

    def value(self, leaf: Any) -> Value:
        """What a leaf of the call is in the recording."""
        known = self._variables.get(id(leaf))
        return self.recording.value(leaf if known is None else known)


@lru_cache(maxsize=256)
def _tracers(shapes: tuple[jax.ShapeDtypeStruct, ...]) -> tuple[Any, ...]:
    """Tracers that nobody computes with: recording reads their types, and that they are tracers."""
    made: list[Any] = []
    jax.make_jaxpr(lambda *tracers: made.extend(tracers))(*shapes)
    return tuple(made)


def _provider(provider: Any) -> Provider:
    """The tables of a call, where those of the model stand for themselves."""
    return as_provider(getattr(provider, "mesh", provider))


def _record(
    recording: Recording, made: CallRecording, inputs: list[Value], wanted: Sequence[Domain | None], called: Any
) -> list[Variable]:
    operation = Call(made.graph, tuple(wanted), getattr(called, "__name__", "call"))
    return recording.add_all(record(operation, *inputs, location=user_location()))


def _assign(recording: Recording, target: Variable, result: Variable) -> None:
    """The target stands for the result from now on, in the part of its domain that was computed."""
    if result.domain == target.domain:
        recording.assign(target, result.value)
        return
    over = Overlay(result.domain)
    values = adopt_masks((result.value, recording.value(target)), user_location())
    recording.assign(target, recording.add(record(over, *values, location=user_location())[0]).value)
