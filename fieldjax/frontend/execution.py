"""Runs recordings: one recording per kind of call, one compiled program per plan, made once among threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax

from fieldjax.backend.keyed import Keyed
from fieldjax.backend.program import Program
from fieldjax.connectivity import Provider
from fieldjax.embedded.leaves import argument_of, array_of, check_elements, with_adjoints
from fieldjax.errors import ArgumentError, user_location
from fieldjax.frontend.guards import Guard
from fieldjax.frontend.recording import Call, Recording, Recordings
from fieldjax.frontend.scope import in_progress
from fieldjax.ir.arrays import NumpyArrays
from fieldjax.ir.evaluation import Evaluation
from fieldjax.ir.jax_arrays import JaxArrays
from fieldjax.ir.plan import Plan

EMBEDDED = None
JAX = "jax"
BACKENDS = (EMBEDDED, JAX)

Record = Callable[[], tuple[Recording, list[tuple[Guard, Any]]]]


class Stats(NamedTuple):
    """What was done so far: functions recorded, plans compiled, traces by JAX."""

    recordings: int
    plans: int
    traces: int


class Execution:
    """What an operator or a program has recorded and compiled so far. It goes when its owner goes.

    Raises ArgumentError for a backend that there isn't.
    """

    def __init__(self, backend: str | None) -> None:
        if backend not in BACKENDS:
            raise ArgumentError(
                f"{backend!r} isn't a backend", location=user_location(), hints=["None is embedded, 'jax' compiles"]
            )
        self.backend = backend
        self.recordings = Recordings()
        self.programs: Keyed[Program] = Keyed(size=256)
        self._recording: Keyed[Recording] = Keyed(size=0)

    @property
    def stats(self) -> Stats:
        """What was recorded and compiled so far."""
        programs = self.programs.values()
        return Stats(self.recordings.count, len(programs), sum(p.traces for p in programs))

    def recording(self, call: Call, provider: Provider, record: Record) -> Recording:
        """The recording for a call. Of several threads that want the same new one, one makes it."""

        def make() -> Recording:
            found = self.recordings.find(call, provider)
            if found is None:
                with in_progress():
                    found, asked = record()
                self.recordings.add(call, found, asked)
            return found

        found = self.recordings.find(call, provider)
        if found is not None:
            return found
        made = self._recording.get(call.key, make)
        return made if self.recordings.find(call, provider) in (made, None) else make()

    def run(
        self, recording: Recording, plan: Plan, inputs: Sequence[Any], numpy: bool
    ) -> tuple[Callable[..., Any] | None, tuple[Any, ...]]:
        """The compiled function (None when embedded), and what it gives for these inputs."""
        check_elements(inputs)
        if self.backend is EMBEDDED:
            arrays = NumpyArrays() if numpy else JaxArrays()
            data = with_adjoints(recording.graph.inputs, plan, inputs, [array_of(x, numpy) for x in inputs])
            return None, Evaluation(recording.graph, plan, arrays, data).run()
        data = _data(recording, plan, inputs, numpy)
        first: list[Any] = []

        def make() -> Program:
            program = Program(recording.graph, plan)
            first.append(program.run(*data))
            return program

        program = self.programs.get((recording.graph, plan.key), make)
        return program.run, first[0] if first else program.run(*data)

    def compile(self, recording: Recording, plan: Plan, inputs: Sequence[Any], numpy: bool) -> None:
        """Compiles without running. Of the inputs only shapes and dtypes are looked at."""
        data = _data(recording, plan, inputs, numpy)

        def make() -> Program:
            program = Program(recording.graph, plan)
            program.run.lower(*data).compile()  # JAX finds it again when `run` is called
            return program

        self.programs.get((recording.graph, plan.key), make)

    def is_compiled(self, recording: Recording, plan: Plan) -> bool:
        """Whether the program of a plan is there."""
        return self.programs.find((recording.graph, plan.key)) is not None

    def trace(self, recording: Recording, plan: Plan, inputs: Sequence[Any], numpy: bool) -> jax.stages.Traced:
        """What JAX makes of a plan, apart from what calls use."""
        return Program(recording.graph, plan).run.trace(*_data(recording, plan, inputs, numpy))


def _data(recording: Recording, plan: Plan, inputs: Sequence[Any], numpy: bool) -> list[Any]:
    """The arguments of the compiled program."""
    data = [argument_of(x, waits=numpy) for x in inputs]
    return with_adjoints(recording.graph.inputs, plan, inputs, data)
