"""`loop`: steps that are recorded once and run many times."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fieldjax.connectivity import is_table
from fieldjax.domain import Dimension, Domain
from fieldjax.embedded.leaves import parameter
from fieldjax.errors import ArgumentError, DomainError, DtypeError, user_location
from fieldjax.frontend.containers import flatten, unflatten
from fieldjax.frontend.handing_over import recorder_of
from fieldjax.ir.graph import Graph, Mask, Value
from fieldjax.ir.joined_loops import join_loops
from fieldjax.ir.operation import record
from fieldjax.ir.operations.layout import Shift
from fieldjax.ir.operations.loop import Loop, index_type
from fieldjax.ir.operations.pointwise import Cast
from fieldjax.model.axes import AXES, has_axes
from fieldjax.model.checkpoints import checkpointed, sizes_of
from fieldjax.model.recorder import Recording
from fieldjax.model.variable import Variable

STEPS = Dimension("#step")
"""The dimension of stacks inside of the graph: the first one of every array."""

STEP = Dimension("step")


class BodyRecording(Recording):
    """What the body of a loop records: what it reads of the recording around it becomes an input."""

    def __init__(self, outer: Recording) -> None:
        super().__init__()
        self.outer, self.depth = outer, outer.depth + 1
        self.read: dict[Value, Value] = {}
        """What is read of the outer recording, and what it is here."""

    def new_input(self, name: str, like: Value, place: Any) -> Value:
        """An input of the body like a value of the recording around it."""
        masks = [Mask(self._brought(m.table), m.slot, m.moved) for m in like.masks]
        value = parameter(name, like.type, masks)
        self.enter(value.node, [place])
        return value

    def known(self, x: Any) -> Value:
        """A field, an array or a connectivity from outside."""
        return self._brought(self.outer.known(x))

    def _from_other(self, variable: Variable) -> Value:
        return self._brought(self.outer.value(variable))

    def _brought(self, value: Value) -> Value:
        if value not in self.read:
            self.read[value] = self.new_input(f"read{len(self.read)}", value, self.outer.places[value])
        return self.read[value]


@dataclass(frozen=True)
class Body:
    """A recorded body: its graph on (step, carries, what it reads), and what it reads."""

    graph: Graph
    read: tuple[Value, ...]
    emitted: Any
    """The structure of what a step emits."""


def loop(
    body: Callable[..., Any],
    init: Any,
    length: int,
    *,
    axis: Dimension = STEP,
    checkpoint: int | Sequence[int] | None = None,
    recorder: Recording | None = None,
) -> Any:
    """Runs `carry = body(carry)`, or `body(carry, step)`, `length` times: one operation of the recorded model.

    `body` gets the carry of the step before, structured like `init`, and the number of the step; it returns the new
    carry, or the carry and what the step emits. It may read any value of the model. Returns the last carry, or the
    last carry and what was emitted, stacked: fields along `axis`, arrays and scalars along a new first axis.

    The derivative of a loop is a loop that keeps the carries of all steps. With `checkpoint=c` it keeps every c-th
    and computes the others again, c at a time; with `checkpoint=(100, 10)` every 100th, and among the hundred that it
    computes again every 10th. What is emitted is emitted all the same.

    Raises ArgumentError where nothing belongs to a recorded model, where `length` isn't a positive integer or
    `checkpoint` neither one nor several that decrease, or where the carry changes its structure; DtypeError and
    DomainError where it changes its dtype or domain.

    >>> import fieldjax as fj
    >>> with fj.record() as model:
    ...     x = model.input("x", 1.0)
    ...     last, all_of_them = fj.loop(lambda c, step: (c * 0.5 + step, c), x, 3)
    ...     model.output("last", last)
    ...     model.output("all", all_of_them)
    >>> result = model.run()
    >>> float(result["last"]), result["all"].tolist()
    (2.625, [1.0, 0.5, 1.25])
    """
    leaves, tree = flatten(init)
    outer: Any = recorder or recorder_of(leaves)
    if outer is None:
        raise ArgumentError(
            "a loop is recorded, and no value of a recorded model is among its initial carry",
            location=user_location(),
            hints=["call `model.loop(...)`, or use `jax.lax.scan` on data"],
        )
    _check_length(length)
    sizes = [size for size in sizes_of(checkpoint) if size < length]
    starts = [strong(outer, outer.value(x)) for x in leaves]
    recorded = _record(body, outer, starts, tree)
    values = [*starts, *recorded.read]
    if sizes:
        results = checkpointed(recorded.graph, values, len(starts), length, sizes, STEPS)
    else:
        results = _run(recorded.graph, values, len(starts), length)
    found = outer.add_all(results)
    last = unflatten(tree, found[: len(starts)])
    if recorded.emitted is None:
        return last
    return last, unflatten(recorded.emitted, [_placed(outer, v, axis) for v in found[len(starts) :]])


def _check_length(length: Any) -> None:
    if not isinstance(length, int) or isinstance(length, bool) or length < 1:
        raise ArgumentError(f"`length` is a positive integer, not {length!r}", location=user_location())


def strong(outer: Recording, value: Value) -> Value:
    """A start whose dtype doesn't yield to others'."""
    if value.is_table or not value.field_type.weak:
        return value
    return outer.add(record(Cast(value.field_type.dtype), value, location=user_location())[0]).value


def _record(body: Callable[..., Any], outer: Recording, starts: Sequence[Value], tree: Any) -> Body:
    inner = BodyRecording(outer)
    step = parameter("step", index_type())
    inner.enter(step.node, [Domain()])
    carries = [inner.new_input(f"carry{n}", v, outer.places[v]) for n, v in enumerate(starts)]
    given = unflatten(tree, [v if v.is_table else inner.variable_of(v) for v in carries])
    result = body(given, inner.variable_of(step)) if _takes_step(body) else body(given)
    new, emitted = _taken_apart(result, tree)
    outputs = [fitting(inner, x, v) for x, v in zip(new, carries, strict=True)]
    given_off, emitted_tree = flatten(emitted)
    outputs += [inner.variable(x).value for x in given_off]
    graph = join_loops(Graph((step, *carries, *inner.read.values()), tuple(outputs)))
    return Body(graph, tuple(inner.read), None if emitted is None else emitted_tree)


def _takes_step(body: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(body).parameters.values()
    except (TypeError, ValueError):
        return False
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    positional = [p for p in parameters if p.kind in kinds and p.default is inspect.Parameter.empty]
    return len(positional) > 1 or any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters)


def _taken_apart(result: Any, tree: Any) -> tuple[list[Any], Any]:
    """The leaves of the new carry, and what the step emits."""
    leaves, found = flatten(result)
    if found == tree:
        return leaves, None
    if isinstance(result, tuple) and len(result) == 2:
        leaves, found = flatten(result[0])
        if found == tree:
            return leaves, result[1]
    raise ArgumentError(
        "the body of a loop returns a carry of another structure",
        location=user_location(),
        notes=[f"it was {tree}", f"it is  {found}"],
        hints=["return the carry, or the carry and what the step emits"],
    )


def fitting(inner: BodyRecording, x: Any, carry: Value) -> Value:
    """What the body gives, like the carry that it replaces.

    Raises DtypeError or DomainError where it is of another dtype or lives elsewhere, ArgumentError for a table.
    """
    value = inner.variable(x).value if not is_table(x) else inner.value(x)
    if value.is_table or carry.is_table:
        raise ArgumentError("a table can't be carried: read it from the model", location=user_location())
    if value.field_type.weak:
        value = inner.add(record(Cast(carry.field_type.dtype), value, location=user_location())[0]).value
    if value.field_type.dtype != carry.field_type.dtype:
        raise DtypeError(
            f"the carry begins as {carry.type} and becomes {value.type}",
            location=user_location(),
            hints=["convert one of them with `astype`"],
        )
    if value.dims != carry.dims or inner.domain(value) != inner.domain(carry):
        raise DomainError(
            "the carry changes its domain from step to step",
            location=user_location(),
            notes=[f"it begins on  {inner.domain(carry)}", f"it becomes    {inner.domain(value)}"],
        )
    return value


def _run(graph: Graph, values: Sequence[Value], carries: int, length: int) -> tuple[Value, ...]:
    return record(Loop(graph, length, carries, 0, STEPS), *values, location=user_location())


def _placed(outer: Recording, stack: Variable, axis: Dimension) -> Variable:
    """A stack along the dimension that its user sees."""
    others = [d for d in stack.dims if d != STEPS]
    to = axis if others and not has_axes(others) else AXES[len(AXES) - len(others) - 1]
    return outer.apply(Shift(STEPS, 0, to), stack)
