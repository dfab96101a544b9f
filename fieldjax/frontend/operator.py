"""`field_operator`: a function on fields, recorded once per kind of call, compiled once per plan."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, overload

from fieldjax.connectivity import Provider, as_provider
from fieldjax.embedded.leaves import adjoint_shapes, on_numpy, place_of
from fieldjax.errors import ArgumentError, FieldjaxError, user_location
from fieldjax.frontend.annotations import check_arguments
from fieldjax.frontend.cells import assign
from fieldjax.frontend.containers import flatten
from fieldjax.frontend.dispatch import Routes
from fieldjax.frontend.execution import JAX, Execution, Stats
from fieldjax.frontend.outputs import fill, new_fields, wanted_domains
from fieldjax.frontend.recording import read_call, record_call
from fieldjax.frontend.scope import is_recording
from fieldjax.frontend.traced import TracedField
from fieldjax.frontend.user_code import run
from fieldjax.ir.inference import infer


class FieldOperator:
    """A function on fields that runs embedded or compiled, under `jax.jit`, `jax.grad` and the rest.

    Call it as `op(*fields, offset_provider=mesh)`. It returns new fields; with `out=` it fills yours, with
    `domain=` it computes just that part. Called with recorded values, inside another operator, it becomes
    part of that recording.
    """

    def __init__(self, function: Callable[..., Any], backend: str | None = JAX) -> None:
        self._execution = Execution(backend)
        functools.update_wrapper(self, function)
        self.function, self.backend = function, backend
        self._routes = Routes()

    @property
    def stats(self) -> Stats:
        """How often the function was recorded, planned and traced by JAX."""
        return self._execution.stats

    def with_backend(self, backend: str | None) -> FieldOperator:
        """The same operator on another backend: None (embedded) or 'jax'."""
        return FieldOperator(self.function, backend)

    def __call__(
        self, *args: Any, out: Any = None, domain: Any = None, offset_provider: Any = None, **kwargs: Any
    ) -> Any:
        """New fields; None with `out`, which then holds the result."""
        if out is None and domain is None and not kwargs:
            result = self._routes.call(args, offset_provider)
            if result is not NotImplemented:
                return result
        if _is_recorded((*args, out), kwargs):
            return self._inline(args, kwargs, out, domain)
        provider = as_provider(offset_provider)
        try:
            return self._run(args, kwargs, out, domain, provider, offset_provider)
        except FieldjaxError as error:
            where = user_location()
            raise (error if where is None else error.with_location(where)) from error.__cause__

    def _inline(self, args: Any, kwargs: Any, out: Any, domain: Any) -> Any:
        check_arguments(self.function, args, kwargs)
        results = run(self.function, *args, **kwargs)
        if out is None and domain is None:
            return results
        if out is None:
            raise ArgumentError(
                "an operator that is called inside another one takes no `domain`",
                location=user_location(),
                hints=["give the domain to the outer call"],
            )
        return assign(results, out, domain, reads=(args, kwargs))

    def _run(self, args: Any, kwargs: Any, out: Any, domain: Any, provider: Provider, source: Any) -> Any:
        call = read_call(args, kwargs)
        recording = self._execution.recording(call, provider, lambda: record_call(self.function, call, provider))
        inputs = recording.inputs(call, provider)
        wanted, fields = wanted_domains(recording, out, domain)
        plan = infer(recording.graph, [place_of(x) for x in inputs], wanted, adjoint_shapes(inputs))
        numpy = on_numpy(inputs)
        run, arrays = self._execution.run(recording, plan, inputs, numpy)
        if fields is not None:
            fill(fields, [d for d in wanted if d is not None], arrays)
            return None
        results = new_fields(recording, plan, arrays, inputs, numpy)
        if run is not None and recording.is_plain and not kwargs and domain is None:
            self._routes.add(args, source, recording.names, results, run, numpy)
        return results


def _is_recorded(args: Any, kwargs: Any) -> bool:
    if any(type(x) is TracedField for x in args):
        return True
    if not kwargs and all(x is None for x in args):
        return is_recording()
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
