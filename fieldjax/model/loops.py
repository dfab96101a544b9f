"""`loop`: steps that are recorded once and run many times."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fieldjax.domain import Dimension, Domain
from fieldjax.embedded.leaves import parameter
from fieldjax.errors import ArgumentError, user_location
from fieldjax.frontend.containers import flatten, unflatten
from fieldjax.frontend.handing_over import recorder_of
from fieldjax.ir.graph import Graph, Value
from fieldjax.ir.joined_loops import join_loops
from fieldjax.ir.operation import record
from fieldjax.ir.operations.layout import Shift
from fieldjax.ir.operations.loop import Loop, index_type
from fieldjax.ir.operations.pointwise import Cast
from fieldjax.model.axes import AXES, has_axes
from fieldjax.model.body import BodyRecording
from fieldjax.model.checkpoints import checkpointed, sizes_of
from fieldjax.model.recorder import Recording
from fieldjax.model.variable import Variable

STEPS = Dimension("#step")
"""The dimension of stacks inside of the graph: the first one of every array."""

STEP = Dimension("step")


@dataclass(frozen=True)
class Body:
    """A recorded body: its graph on (step, carries, what it reads), and these inputs but for the step."""

    graph: Graph
    starts: tuple[Value, ...]
    read: tuple[Value, ...]
    assigned: tuple[Variable, ...]
    """The variables from outside that are the last carries."""
    emitted: Any
    """The structure of what a step emits; None where it emits nothing."""


def loop(
    body: Callable[..., Any],
    init: Any = (),
    length: int | None = None,
    *,
    axis: Dimension = STEP,
    checkpoint: int | Sequence[int] | None = None,
    recorder: Recording | None = None,
) -> Any:
    """Runs `carry = body(carry)`, or `body(carry, step)`, `length` times: one operation of the recorded model.

    `body` gets the carry of the step before, structured like `init`, and the number of the step; it returns the new
    carry, or the carry and what the step emits. It may read any value of the model. Returns the last carry, or the
    last carry and what was emitted, stacked: fields along `axis`, arrays and scalars along a new first axis.

    Variables from outside that operators and programs assign to in the body (`out=`) are carried too: the next step
    reads what this one assigned, and after the loop they hold what the last step did. A body that carries nothing else
    takes no carry: `model.loop(body, length=n)` calls `body()` or `body(step)`, which returns nothing, or what the
    step emits.

    The derivative of a loop is a loop that keeps the carries of all steps. With `checkpoint=c` it keeps every c-th
    and computes the others again, c at a time; with `checkpoint=(100, 10)` every 100th, and among the hundred that it
    computes again every 10th. What is emitted is emitted all the same.

    Raises ArgumentError where nothing belongs to a recorded model, where `length` isn't a positive integer or
    `checkpoint` neither one nor several that decrease, where the carry changes its structure, or where the loop does
    nothing; DtypeError and DomainError where a carry changes its dtype or domain. The model is then as it was.

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
    outer: Any = recorder_of(leaves) if recorder is None else recorder.innermost
    if outer is None:
        raise ArgumentError(
            "a loop is recorded, and no value of a recorded model is among its initial carry",
            location=user_location(),
            hints=["call `model.loop(...)`, or use `jax.lax.scan` on data"],
        )
    length, sizes = _positive(length), sizes_of(checkpoint)
    recorded = _record(body, outer, [strong(outer, outer.value(x)) for x in leaves], tree)
    found = outer.add_all(_looped(recorded, length, sizes))
    carried, stacks = found[: len(recorded.starts)], found[len(recorded.starts) :]
    for variable, result in zip(recorded.assigned, carried[len(leaves) :], strict=True):
        outer.assign(variable, result.value)
    last = unflatten(tree, carried[: len(leaves)]) if leaves else None
    if recorded.emitted is None:
        return last
    emitted = unflatten(recorded.emitted, [_placed(outer, v, axis) for v in stacks])
    return (last, emitted) if leaves else emitted


def _positive(length: Any) -> int:
    if not isinstance(length, int) or isinstance(length, bool) or length < 1:
        raise ArgumentError(f"`length` is a positive integer, not {length!r}", location=user_location())
    return length


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
    given = [unflatten(tree, [v if v.is_table else inner.variable_of(v) for v in carries])] if starts else []
    with inner.opened("a loop"):
        result = body(*given, *([inner.variable_of(step)] if _takes_step(body, len(given)) else []))
        new, emitted = _taken_apart(result, tree) if starts else ([], result)
        outputs = [inner.fitting(x, v) for x, v in zip(new, carries, strict=True)]
        assigned = inner.assigned
        outputs += [inner.fitting(now, start) for start, now in assigned.values()]
        given_off, emitted_tree = flatten(emitted)
        outputs += [inner.value(x) for x in given_off]
    if not outputs:
        raise ArgumentError("a loop carries nothing and emits nothing", location=user_location())
    reads = inner.reads()
    carries += [start for start, _ in assigned.values()]
    graph = join_loops(Graph((step, *carries, *reads), tuple(outputs)))
    return Body(
        graph,
        (*starts, *(outer.value(v) for v in assigned)),
        tuple(reads.values()),
        tuple(assigned),
        None if emitted is None else emitted_tree,
    )


def _takes_step(body: Callable[..., Any], carries: int) -> bool:
    """Whether a function has one more parameter than the carry."""
    try:
        parameters = inspect.signature(body).parameters.values()
    except (TypeError, ValueError):
        return False
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    positional = [p for p in parameters if p.kind in kinds and p.default is inspect.Parameter.empty]
    return len(positional) > carries or any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters)


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


def _looped(body: Body, length: int, sizes: Sequence[int]) -> tuple[Value, ...]:
    """The results of a loop, by segments of `sizes` steps where it is longer than these."""
    values, carries = (*body.starts, *body.read), len(body.starts)
    shorter = [size for size in sizes if size < length]
    if shorter:
        return checkpointed(body.graph, values, carries, length, shorter, STEPS)
    return record(Loop(body.graph, length, carries, 0, STEPS), *values, location=user_location())


def _placed(outer: Recording, stack: Variable, axis: Dimension) -> Variable:
    """A stack along the dimension that its user sees."""
    others = [d for d in stack.dims if d != STEPS]
    to = axis if others and not has_axes(others) else AXES[len(AXES) - len(others) - 1]
    return outer.apply(Shift(STEPS, 0, to), stack)
