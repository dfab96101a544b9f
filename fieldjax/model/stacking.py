"""Stacks of values that are elements of other stacks: parts of these, instead of one element after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fieldjax.domain import Domain, NamedRange, UnitRange
from fieldjax.ir.graph import Value
from fieldjax.ir.operation import record
from fieldjax.ir.operations.concat import Part
from fieldjax.ir.operations.layout import Shift, Union
from fieldjax.ir.operations.loop import Loop
from fieldjax.ir.operations.stack import Pick, Put, Stack
from fieldjax.model.loops import STEPS
from fieldjax.model.region import Region

MOST_RUNS = 3
"""Stacks of more runs are put together element by element."""


class Run(NamedTuple):
    """Values side by side; where `stack` is one, they are its elements from `start` on, in order."""

    values: tuple[Value, ...]
    stack: Value | None
    start: int


def runs_of(values: Sequence[Value]) -> list[Run]:
    """The values as few runs."""
    runs: list[Run] = []
    for value in values:
        stack, position = _picked(value)
        last = runs[-1] if runs else None
        if last is not None and stack is not None and stack == last.stack and position == last.start + len(last.values):
            runs[-1] = last._replace(values=(*last.values, value))
        else:
            runs.append(Run((value,), stack, position))
    return runs


def _picked(value: Value) -> tuple[Value | None, int]:
    operation = value.node.operation
    if isinstance(operation, Pick) and operation.axis == STEPS:
        return value.node.inputs[0], operation.position
    return None, 0


def stacked(runs: Sequence[Run]) -> Value:
    """The values of the runs side by side along `STEPS`."""
    if len(runs) > MOST_RUNS:
        values = [v for run in runs for v in run.values]
        return record(Stack(STEPS), *values, location=values[0].node.location)[0]
    pieces, offset = [], 0
    for run in runs:
        pieces.append(_piece(run, offset))
        offset += len(run.values)
    # Pieces lie side by side, so their sum, each being zero outside of its place, is all of them.
    return pieces[0] if len(pieces) == 1 else record(Union(), *pieces, location=pieces[0].node.location)[0]


def _piece(run: Run, offset: int) -> Value:
    """A run at the positions from `offset` on."""
    location, count = run.values[0].node.location, len(run.values)
    if run.stack is None:
        return record(Put(STEPS, offset), run.values[0], location=location)[0]
    piece = run.stack
    if (run.start, count) != (0, steps_of(run.stack)):
        box = Domain(NamedRange(STEPS, UnitRange(run.start, run.start + count)))
        piece = record(Part(box), piece, location=location)[0]
    return (
        piece if run.start == offset else record(Shift(STEPS, run.start - offset, STEPS), piece, location=location)[0]
    )


def steps_of(stack: Value) -> int | None:
    """How many elements the stack has that a region gives; None where it isn't known to be one."""
    operation = stack.node.operation
    if not isinstance(operation, Region):
        return None
    inner = operation.body.outputs[stack.port].node.operation
    return inner.length if isinstance(inner, Loop) else None
