"""`field_operator`: a function on fields, recorded once per kind of call, compiled once per plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

from fieldjax.connectivity import Provider, as_provider
from fieldjax.embedded.leaves import adjoint_shapes, on_numpy, place_of
from fieldjax.errors import ArgumentError, FieldjaxError, user_location
from fieldjax.frontend.cells import assign
from fieldjax.frontend.containers import flatten
from fieldjax.frontend.dispatch import Routes
from fieldjax.frontend.entry import EntryPoint, Planned
from fieldjax.frontend.execution import JAX
from fieldjax.frontend.handing_over import recorder_of
from fieldjax.frontend.options import CompilationOptions
from fieldjax.frontend.outputs import fill, new_fields, wanted_domains
from fieldjax.frontend.recording import read_call, record_call
from fieldjax.frontend.scope import is_recording
from fieldjax.frontend.traced import TracedField
from fieldjax.frontend.user_code import called
from fieldjax.ir.planning import plan_of


class FieldOperator(EntryPoint):
    """A function on fields that runs embedded or compiled, under `jax.jit`, `jax.grad` and the rest.

    Call it as `op(*fields, offset_provider=mesh)`. It returns new fields; with `out=` it fills yours, with
    `domain=` it computes just that part. Called with recorded values, inside another operator, it becomes
    part of that recording.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        backend: str | None = JAX,
        options: CompilationOptions = CompilationOptions(),  # noqa: B008 (it is frozen)
    ) -> None:
        super().__init__(function, backend, options)

    def _renew(self) -> None:
        super()._renew()
        self._routes = Routes()

    def _make_static(self, names: tuple[str, ...]) -> None:
        if names != self._static:
            self._routes.clear()
        super()._make_static(names)

    def __call__(
        self,
        *args: Any,
        out: Any = None,
        domain: Any = None,
        offset_provider: Any = None,
        enable_jit: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """New fields; None with `out`, which then holds the result.

        `enable_jit`: whether this call may compile (None: as the options say).
        """
        if self._bound:
            args, kwargs = self._completed(args, kwargs)
        if out is None and domain is None and not kwargs:
            result = self._routes.call(args, offset_provider)
            if result is not NotImplemented:
                return result
        leaves, _ = flatten((args, kwargs, out))
        if (recorder := recorder_of((*leaves, offset_provider))) is not None:
            return recorder.call_operator(self, args, kwargs, out, domain, offset_provider)
        if any(isinstance(x, TracedField) for x in leaves) or (is_recording() and all(x is None for x in leaves)):
            return self._inline(args, kwargs, out, domain)
        provider = as_provider(offset_provider)
        try:
            return self._run(args, {**kwargs, "out": out, "domain": domain}, provider, offset_provider, enable_jit)
        except FieldjaxError as error:
            where = user_location()
            raise (error if where is None else error.with_location(where)) from error.__cause__

    def _inline(self, args: Any, kwargs: Any, out: Any, domain: Any) -> Any:
        results = called(self.function, args, kwargs)
        if out is None and domain is None:
            return results
        if out is None:
            raise ArgumentError(
                "a call inside an operator or a program takes a `domain` only together with `out`",
                location=user_location(),
                hints=["in a program, give `out`", "in an operator, give the domain to the outer call"],
            )
        return assign(results, out, domain, reads=(args, kwargs))

    def _run(self, args: Any, kwargs: Any, provider: Provider, source: Any, enable_jit: bool | None) -> Any:
        planned = self.planned_call(args, kwargs, provider)
        self._check_compiled(planned, provider, enable_jit)
        recording, plan, inputs, numpy = planned[:4]
        run, arrays = self._execution.run(recording, plan, inputs, numpy)
        if planned.fields is not None:
            fill(planned.fields, [d for d in planned.domains if d is not None], arrays)
            return None
        results = new_fields(recording, plan, arrays, inputs, numpy)
        is_plain = recording.is_plain and not planned.static and set(kwargs) == {"out", "domain"}
        if run is not None and is_plain and kwargs["domain"] is None:
            self._routes.add(args, source, recording.names, results, run, numpy)
        return results

    def _planned(self, args: tuple[Any, ...], kwargs: dict[str, Any], provider: Provider) -> Planned:
        named = {n: x for n, x in kwargs.items() if n not in ("out", "domain")}
        args, named = self._completed(args, named)
        return self.planned_call(args, {**named, "out": kwargs.get("out"), "domain": kwargs.get("domain")}, provider)

    def planned_call(self, args: tuple[Any, ...], kwargs: dict[str, Any], provider: Provider) -> Planned:
        """A call with all its arguments, recorded and planned, not run."""
        named = {n: x for n, x in kwargs.items() if n not in ("out", "domain")}
        args, named, static = self._marked(args, named)
        call = read_call(args, named)
        recording = self._execution.recording(call, provider, lambda: record_call(self.function, call, provider))
        inputs = recording.inputs(call, provider)
        wanted, fields = wanted_domains(recording, kwargs["out"], kwargs["domain"])
        plan = plan_of(recording.graph, [place_of(x) for x in inputs], wanted, adjoint_shapes(inputs))
        return Planned(recording, plan, inputs, on_numpy(inputs), fields, wanted, static)


@overload
def field_operator(function: Callable[..., Any], /) -> FieldOperator: ...
@overload
def field_operator(
    *,
    backend: str | None = ...,
    grid_type: Any = ...,
    enable_jit: bool = ...,
    static_params: str | Sequence[str] | None = ...,
    connectivities: Any = ...,
    static_domains: bool = ...,
) -> Callable[[Callable[..., Any]], FieldOperator]: ...
def field_operator(function: Any = None, /, *, backend: str | None = JAX, grid_type: Any = None, **options: Any) -> Any:
    """Makes a field operator of a function.

    `backend=None` runs embedded, operation by operation; `'jax'` compiles. `grid_type` is accepted for
    programs written for gt4py.next and has no effect. `options`: see `FieldOperator.with_compilation_options`.

    >>> import fieldjax as fj
    >>> Cell = fj.Dimension("Cell")
    >>> @fj.field_operator
    ... def double(f):
    ...     return 2 * f
    >>> double(fj.as_field({Cell: 3}, [1, 2, 3])).asnumpy().tolist()
    [2, 4, 6]
    """
    chosen = CompilationOptions.of(**options)
    if function is None:
        return lambda f: FieldOperator(f, backend, chosen)
    return FieldOperator(function, backend, chosen)
