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
from fieldjax.frontend.outputs import fill, new_fields, wanted_domains
from fieldjax.frontend.recording import Recording, Recordings, is_leaf, read_call, record_call
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
        self._making: Keyed[Recording] = Keyed(size=1024)
        self._programs: Keyed[Program] = Keyed(size=256)

    def with_backend(self, backend: str | None) -> FieldOperator:
        """The same operator on another backend: None (embedded) or 'jax'."""
        return FieldOperator(self.function, backend)

    def __call__(
        self, *args: Any, out: Any = None, domain: Any = None, offset_provider: Any = None, **kwargs: Any
    ) -> Any:
        if _is_recorded(args, kwargs):
            return self._inline(args, kwargs, out, domain)
        provider = as_provider(offset_provider)
        try:
            return self._run(args, kwargs, out, domain, provider)
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

    def _run(self, args: Any, kwargs: Any, out: Any, domain: Any, provider: Provider) -> Any:
        call = read_call(args, kwargs)
        recording = self._recordings.find(call, provider) or self._record(call, provider)
        inputs = recording.inputs(call, provider)
        wanted, fields = wanted_domains(recording, out, domain)
        plan = infer(recording.graph, [place_of(x) for x in inputs], wanted)
        numpy = on_numpy(inputs)
        arrays = self._evaluate(recording, plan, inputs, numpy)
        if fields is None:
            return new_fields(recording, plan, arrays, inputs, numpy)
        fill(fields, [d for d in wanted if d is not None], arrays)
        return None

    def _record(self, call: Any, provider: Provider) -> Recording:
        def make() -> Recording:
            found = self._recordings.find(call, provider)
            if found is None:
                found, asked = record_call(self.function, call, provider)
                self._recordings.add(call, found, asked)
            return found

        return make()

    def _evaluate(self, recording: Recording, plan: Plan, inputs: list[Any], numpy: bool) -> tuple[Any, ...]:
        if self.backend is EMBEDDED:
            arrays = NumpyArrays() if numpy else JaxArrays()
            return Evaluation(recording.graph, plan, arrays, [array_of(x, numpy) for x in inputs]).run()
        program = self._programs.get((recording.graph, plan.key), lambda: Program(recording.graph, plan))
        return program.run(*(array_of(x, numpy=False) for x in inputs))


def _is_recorded(args: Any, kwargs: Any) -> bool:
    if any(type(x) is TracedField for x in args):
        return True
    leaves = jax.tree_util.tree_leaves((args, kwargs), is_leaf=is_leaf)
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
