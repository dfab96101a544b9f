"""`field_operator`: a function on fields, recorded once per kind of call, compiled once per plan."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, overload

import jax

from fieldjax.backend.keyed import Keyed
from fieldjax.backend.program import Program
from fieldjax.connectivity import Provider, as_provider
from fieldjax.embedded.leaves import array_of, on_numpy, place_of
from fieldjax.errors import ArgumentError, FieldjaxError, user_location
from fieldjax.frontend.containers import flatten
from fieldjax.frontend.dispatch import Routes
from fieldjax.frontend.outputs import fill, new_fields, wanted_domains
from fieldjax.frontend.recording import Call, Recording, Recordings, read_call, record_call
from fieldjax.frontend.traced import TracedField
from fieldjax.ir.arrays import NumpyArrays
from fieldjax.ir.evaluation import Evaluation
from fieldjax.ir.inference import infer
from fieldjax.ir.jax_arrays import JaxArrays
from fieldjax.ir.plan import Plan

EMBEDDED = None
JAX = "jax"
BACKENDS = (EMBEDDED, JAX)


class FieldOperator:
    """A function on fields that runs embedded or compiled, under `jax.jit`, `jax.grad` and the rest.

    Call it as `op(*fields, offset_provider=mesh)`. It returns new fields; with `out=` it fills yours, with
    `domain=` it computes just that part. Called with recorded values, inside another operator, it becomes
    part of that recording.
    """

    def __init__(self, function: Callable[..., Any], backend: str | None = JAX) -> None:
        if backend not in BACKENDS:
            raise ArgumentError(
                f"{backend!r} isn't a backend", location=user_location(), hints=["None is embedded, 'jax' compiles"]
            )
        functools.update_wrapper(self, function)
        self.function, self.backend = function, backend
        self._recordings = Recordings()
        self._recording: Keyed[Recording] = Keyed(size=0)
        self._programs: Keyed[Program] = Keyed(size=256)
        self._routes = Routes()

    def with_backend(self, backend: str | None) -> FieldOperator:
        """The same operator on another backend: None (embedded) or 'jax'."""
        return FieldOperator(self.function, backend)

    def __call__(
        self, *args: Any, out: Any = None, domain: Any = None, offset_provider: Any = None, **kwargs: Any
    ) -> Any:
        if out is None and domain is None and not kwargs:
            result = self._routes.call(args, offset_provider)
            if result is not NotImplemented:
                return result
        if _is_recorded(args, kwargs):
            return self._inline(args, kwargs, out, domain)
        provider = as_provider(offset_provider)
        try:
            return self._run(args, kwargs, out, domain, provider, offset_provider)
        except FieldjaxError as error:
            where = user_location()
            raise (error if where is None else error.with_location(where)) from error.__cause__

    def _inline(self, args: Any, kwargs: Any, out: Any, domain: Any) -> Any:
        if out is not None or domain is not None:
            raise ArgumentError(
                f"{self.__name__} is called inside an operator and takes neither `out` nor `domain` there",
                location=user_location(),
            )
        return self.function(*args, **kwargs)

    def _run(self, args: Any, kwargs: Any, out: Any, domain: Any, provider: Provider, source: Any) -> Any:
        call = read_call(args, kwargs)
        recording = self._recordings.find(call, provider) or self._record(call, provider)
        inputs = recording.inputs(call, provider)
        wanted, fields = wanted_domains(recording, out, domain)
        plan = infer(recording.graph, [place_of(x) for x in inputs], wanted)
        numpy = on_numpy(inputs)
        run, arrays = self._evaluate(recording, plan, inputs, numpy)
        if fields is not None:
            fill(fields, [d for d in wanted if d is not None], arrays)
            return None
        results = new_fields(recording, plan, arrays, inputs, numpy)
        if run is not None and recording.is_plain and not kwargs and domain is None:
            self._routes.add(args, source, recording.names, results, run, numpy)
        return results

    def _record(self, call: Call, provider: Provider) -> Recording:
        """A new recording. Of several threads that want the same one, one makes it."""

        def make() -> Recording:
            found = self._recordings.find(call, provider)
            if found is None:
                found, asked = record_call(self.function, call, provider)
                self._recordings.add(call, found, asked)
            return found

        made = self._recording.get(call.key, make)
        return made if self._recordings.find(call, provider) in (made, None) else make()

    def _evaluate(
        self, recording: Recording, plan: Plan, inputs: list[Any], numpy: bool
    ) -> tuple[Callable[..., Any] | None, tuple[Any, ...]]:
        """The compiled function (None when embedded), and what it gives for these inputs."""
        if self.backend is EMBEDDED:
            arrays = NumpyArrays() if numpy else JaxArrays()
            data = [array_of(x, numpy) for x in inputs]
            return None, Evaluation(recording.graph, plan, arrays, data).run()
        data = [array_of(x, numpy=False) for x in inputs]
        first: list[Any] = []

        def make() -> Program:
            program = Program(recording.graph, plan)
            first.append(program.run(*data))
            return program

        program = self._programs.get((recording.graph, plan.key), make)
        return program.run, first[0] if first else program.run(*data)


def _is_recorded(args: Any, kwargs: Any) -> bool:
    if any(type(x) is TracedField for x in args):
        return True
    leaves, _ = flatten((args, kwargs))
    return any(isinstance(x, TracedField) for x in leaves)


@overload
def field_operator(function: Callable[..., Any], /) -> FieldOperator: ...
@overload
def field_operator(*, backend: str | None = ..., grid_type: Any = ...) -> Callable[..., FieldOperator]: ...
def field_operator(function: Any = None, /, *, backend: str | None = JAX, grid_type: Any = None) -> Any:
    """Makes a field operator of a function.

    `backend=None` runs embedded, operation by operation; `'jax'` compiles. `grid_type` is accepted for
    programs written for gt4py.next and has no effect.

    >>> import fieldjax as fj
    >>> Cell = fj.Dimension("Cell")
    >>> @fj.field_operator
    ... def double(f):
    ...     return 2 * f
    >>> double(fj.as_field({Cell: 3}, [1, 2, 3])).asnumpy().tolist()
    [2, 4, 6]
    """
    if function is None:
        return lambda f: FieldOperator(f, backend)
    return FieldOperator(function, backend)
