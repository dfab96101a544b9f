"""Running a recorded model: compiled as a schedule, or step by step."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from fieldjax.connectivity import Mesh, identity_of, is_table
from fieldjax.domain import Domain
from fieldjax.embedded.field import Field
from fieldjax.embedded.leaves import leaf_type, place_of
from fieldjax.errors import ArgumentError, DtypeError, user_location
from fieldjax.ir.graph import Graph, Value
from fieldjax.ir.links import TableArrays
from fieldjax.ir.operation import Operation, Place
from fieldjax.ir.operations.gather import Scatter
from fieldjax.ir.operations.literal import Parameter
from fieldjax.ir.planning import plan_of
from fieldjax.model.axes import is_array
from fieldjax.model.chains import chained
from fieldjax.model.executable import Executable, executable
from fieldjax.model.results import as_leaf, data_of, result_of
from fieldjax.model.schedule import Step, schedule
from fieldjax.model.stepwise import evaluate
from fieldjax.model.tidying import domains_of, places_in, tidied

if TYPE_CHECKING:
    from fieldjax.model.model import Model

MOST_MESHES = 16
"""Kinds of inputs (domains and meshes) for which the plans are kept."""


class CompiledModel:
    """A recorded model as it was when it was compiled, as a function.

    `run()` computes the outputs from the inputs' defaults, `run(x=data)` with other data: an array of the same
    shape and dtype, a field on the same or another domain, another mesh. Returns a dict of the outputs. What
    another mesh or domain doesn't change isn't compiled again.

    Raises ArgumentError for a name that isn't an input or data of another kind.
    """

    def __init__(self, model: Model) -> None:
        self.inputs, graph = dict(model.inputs), model.graph
        self._shapes = shapes_of(model)
        if not model.outputs:
            raise ArgumentError(
                "the model has no outputs", location=user_location(), hints=["name them: `model.output(name, value)`"]
            )
        used = set(graph.nodes)
        self._data = {v: x for v, x in model.data.items() if v.node in used or v in graph.outputs}
        self._graph, self._names = graph, tuple(model.outputs)
        self._schedules: dict[Any, Schedule] = {}
        self._bound: dict[Any, Bound] = {}
        self._scheduled(self._data)

    @property
    def steps(self) -> Sequence[Step]:
        """What runs for the default inputs, in order."""
        return self._scheduled(self._data).steps

    def __call__(self, **inputs: Any) -> dict[str, Any]:
        """The outputs by name, for these inputs and the defaults of all others."""
        data = {**self._data, **given(self.inputs, self._shapes, inputs)}
        signature = tuple(_signature(x) for x in data.values())
        bound = self._bound.get(signature)
        if bound is None:
            while len(self._bound) >= MOST_MESHES:
                self._bound.pop(next(iter(self._bound)), None)
            bound = self._bound[signature] = Bound(self._scheduled(data), data)
        arrays = bound.run(data)
        return {
            name: result_of(value, bound.domain(value), arrays[value], bound.places)
            for name, value in zip(self._names, bound.outputs, strict=True)
        }

    def _scheduled(self, data: Mapping[Value, Any]) -> Schedule:
        """The schedule for these inputs: one for all for which the values of the model live on the same domains."""
        places = places_of(self._graph, data)
        domains = domains_of(places)
        found = self._schedules.get(domains)
        if found is None:
            # The first is that of the defaults.
            while len(self._schedules) >= MOST_MESHES:
                self._schedules.pop(list(self._schedules)[1], None)
            found = self._schedules[domains] = Schedule.of(self._graph, places)
        return found

    def text(self, compiled: bool = False) -> list[str]:
        """The StableHLO text of each step, for the default inputs; `compiled`: what XLA made of it."""
        texts: list[str] = []
        bound = Bound(self._scheduled(self._data), self._data)
        bound.run(self._data, lambda function, arrays: texts.append(function.text(arrays, compiled)))
        return texts


@dataclass(frozen=True)
class Schedule:
    """A model for inputs on certain domains: its graph, chains of regions being loops, and what runs."""

    graph: Graph
    steps: Sequence[Step]

    @staticmethod
    def of(graph: Graph, places: dict[Value, Place]) -> Schedule:
        """The schedule of a graph. Which regions chain depends on where their values live."""
        graph = chained(tidied(graph, places), places)
        return Schedule(graph, schedule(graph, places))


class Bound:
    """The schedule for inputs on certain domains and meshes: every step with its compiled function."""

    def __init__(self, scheduled: Schedule, data: Mapping[Value, Any]) -> None:
        graph, steps = scheduled.graph, scheduled.steps
        self.places = places_of(graph, data)
        self.outputs = graph.outputs
        self._steps = [(step, self._compiled(step)) for step in steps]
        self._last = self._last_uses(steps)
        self._on_devices = any(step.options.device for step in steps)

    def domain(self, value: Value) -> Domain:
        """Where a value lives."""
        place = self.places[value]
        assert isinstance(place, Domain)
        return place

    def _compiled(self, step: Step) -> tuple[Executable, list[bool]]:
        places = [self.places[v] for v in step.inputs]
        tables = [p for p in places if not isinstance(p, Domain)]
        shapes = tuple(_transposed_shape(t) if scatters(step.body) else None for t in tables)
        attached = iter(shapes)
        plan = plan_of(step.body, places, step.wanted, shapes)
        return executable(step.body, plan, step.options), [
            v.is_table and next(attached) is not None for v in step.inputs
        ]

    def _last_uses(self, steps: Sequence[Step]) -> dict[Value, int]:
        last = {v: n for n, step in enumerate(steps) for v in step.inputs}
        return {v: n for v, n in last.items() if v not in self.outputs and not isinstance(v.node.operation, Parameter)}

    def run(self, data: Mapping[Value, Any], before: Callable[..., None] | None = None) -> dict[Value, Any]:
        """The arrays of the outputs; others are dropped as soon as nobody reads them any more."""
        known = {v: data_of(x) for v, x in data.items()}
        for n, (step, (function, attached)) in enumerate(self._steps):
            arrays = [
                TableArrays(known[v], data[v].with_adjoint().adjoint) if a else known[v]
                for v, a in zip(step.inputs, attached, strict=True)
            ]
            if self._on_devices and step.options.device is None:
                arrays = jax.device_put(arrays, jax.devices()[0])
            if before is not None:
                before(function, arrays)
            known.update(zip(step.outputs, function(arrays), strict=True))
            for value in step.inputs:
                if self._last.get(value) == n:
                    known.pop(value, None)
        return known


def places_of(graph: Graph, data: Mapping[Value, Any]) -> dict[Value, Place]:
    """Where every value of the graph lives, for these inputs."""
    return places_in(graph, {value: place_of(as_leaf(x)) for value, x in data.items()})


def run_stepwise(model: Model, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Runs the model operation by operation."""
    graph = model.graph
    data = {**model.data, **given(model.inputs, shapes_of(model), inputs)}
    places = places_of(graph, data)
    known: dict[Value, Any] = {}
    for node in graph.nodes:
        evaluate(node, places, known, data)
    results = {}
    for name, value in zip(model.outputs, graph.outputs, strict=True):
        domain = places[value]
        assert isinstance(domain, Domain)
        array = known[value] if value in known else data_of(data[value])
        results[name] = result_of(value, domain, array, places)
    return results


def shapes_of(model: Model) -> dict[Value, tuple[int, ...]]:
    """The shapes of the inputs that are plain arrays: the parts and broadcasts that are recorded hold for these."""
    return {v: model.domain(v).shape for v in model.inputs.values() if not v.is_table and is_array(v.dims)}


def given(
    inputs: Mapping[str, Value], shapes: Mapping[Value, tuple[int, ...]], data: Mapping[str, Any]
) -> dict[Value, Any]:
    """The data that a caller gives, by the values that it is for. Raises ArgumentError where it doesn't fit."""
    found: dict[Value, Any] = {}
    for name, x in data.items():
        if isinstance(x, Mesh):
            entries = {f"{name}.{key}": table for key, table in x.items() if is_table(table)}
            found.update(given(inputs, shapes, {key: table for key, table in entries.items() if key in inputs}))
            _check_tables(name, inputs, entries)
        elif name not in inputs:
            raise _unknown(name, inputs)
        else:
            found[inputs[name]] = x = _fitting(name, inputs[name], x)
            _check_shape(name, shapes.get(inputs[name]), x)
    return found


def _check_tables(name: str, inputs: Mapping[str, Value], entries: Mapping[str, Any]) -> None:
    """Raises ArgumentError for a mesh that would take the place of none, or only of some, of a mesh's tables."""
    if not any(key in inputs for key in entries):
        raise _unknown(name, inputs)
    missing = [
        key for key, value in inputs.items() if value.is_table and key.startswith(f"{name}.") and key not in entries
    ]
    if missing:
        raise ArgumentError(
            f"the mesh for {name!r} lacks {', '.join(key.removeprefix(f'{name}.') for key in missing)}",
            location=user_location(),
            hints=["give a mesh with all tables that the model was recorded with"],
        )


def _unknown(name: str, inputs: Mapping[str, Value]) -> ArgumentError:
    return ArgumentError(
        f"the model has no input {name!r}", location=user_location(), notes=[f"its inputs are {', '.join(inputs)}"]
    )


def _fitting(name: str, value: Value, x: Any) -> Any:
    """The data as the model takes it; a Python number takes the dtype of the input."""
    if isinstance(x, (bool, int, float)) and not value.dims and not value.is_table:
        return np.asarray(x, value.field_type.dtype)
    if not (isinstance(x, Field) or is_table(x) or (hasattr(x, "shape") and hasattr(x, "dtype"))):
        raise ArgumentError(f"{name!r} takes {value.type}, not {type(x).__name__}", location=user_location())
    kind = leaf_type(as_leaf(x), []).type
    if kind.dims != value.type.dims or value.is_table != is_table(x):
        raise ArgumentError(f"{name!r} takes {value.type}, not {kind}", location=user_location())
    if not value.is_table and kind.dtype != value.field_type.dtype:  # type: ignore[union-attr]
        raise DtypeError(
            f"{name!r} is {value.field_type.dtype}, not {kind.dtype}",  # type: ignore[union-attr]
            location=user_location(),
            hints=["convert it with `astype`"],
        )
    return x


def _check_shape(name: str, shape: tuple[int, ...] | None, x: Any) -> None:
    if shape is not None and x.shape != shape:
        raise ArgumentError(
            f"{name!r} is an array of shape {shape}, not {x.shape}",
            location=user_location(),
            hints=["record the model for this shape, or with a field, whose domain may change"],
        )


def _signature(x: Any) -> Any:
    if isinstance(x, Field):
        return x.domain
    return identity_of(x) if is_table(x) else x.shape


def scatters(graph: Graph) -> bool:
    """Whether sums over neighbours are transposed somewhere in a graph, so that transposed tables are of use."""
    return graph.derived("scatters", lambda: any(_scatters(n.operation) for n in graph.nodes))


def _scatters(operation: Operation) -> bool:
    attributes = (getattr(operation, f.name) for f in dataclasses.fields(operation))  # type: ignore[arg-type]
    return isinstance(operation, Scatter) or any(isinstance(a, Graph) and scatters(a) for a in attributes)


def _transposed_shape(table: Any) -> tuple[int, int] | None:
    if not table.adjoint_pays:
        return None
    return table.with_adjoint().adjoint.rows.shape
