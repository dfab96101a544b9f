"""`program`: several operator calls on one set of fields, recorded as one graph and compiled as one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, overload

from fieldjax.connectivity import Provider, as_provider
from fieldjax.domain import Domain
from fieldjax.embedded.field import Field
from fieldjax.embedded.leaves import adjoint_shapes, on_numpy, place_of
from fieldjax.errors import ArgumentError, FieldjaxError, user_location
from fieldjax.frontend.annotations import check_arguments
from fieldjax.frontend.cells import Cell
from fieldjax.frontend.containers import flatten
from fieldjax.frontend.entry import EntryPoint, Planned
from fieldjax.frontend.execution import JAX
from fieldjax.frontend.guards import Guard
from fieldjax.frontend.handing_over import recorder_of
from fieldjax.frontend.options import CompilationOptions
from fieldjax.frontend.outputs import fill
from fieldjax.frontend.recording import Call, Draft, Recording, read_call
from fieldjax.frontend.traced import TracedField, TracedTable
from fieldjax.frontend.user_code import run
from fieldjax.ir.planning import plan_of


class FieldProgram(EntryPoint):
    """Operator calls with `out=`, on fields that are the arguments. It returns nothing.

    The caller's fields hold the new values afterwards: NumPy buffers are filled, JAX fields rebound, under
    `jax.jit` too, where their new arrays are to be returned. A call reads what earlier calls wrote. Bounds
    of domains may be computed from scalar arguments; each new bound compiles once.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        backend: str | None = JAX,
        options: CompilationOptions = CompilationOptions(),  # noqa: B008 (it is frozen)
    ) -> None:
        super().__init__(function, backend, options)

    def __call__(self, *args: Any, offset_provider: Any = None, enable_jit: bool | None = None, **kwargs: Any) -> None:
        """Runs the program; the fields among the arguments hold the results.

        `enable_jit`: whether this call may compile (None: as the options say).
        """
        args, kwargs = self._completed(args, kwargs)
        leaves, _ = flatten((args, kwargs))
        if (recorder := recorder_of((*leaves, offset_provider))) is not None:
            return recorder.call_program(self, args, kwargs, offset_provider)
        if any(isinstance(x, TracedField) for x in leaves):
            run(self.function, *args, **kwargs)
            return
        try:
            self._run(args, kwargs, as_provider(offset_provider), enable_jit)
        except FieldjaxError as error:
            where = user_location()
            raise (error if where is None else error.with_location(where)) from error.__cause__

    def _run(self, args: Any, kwargs: Any, provider: Provider, enable_jit: bool | None) -> None:
        planned = self.planned_call(args, kwargs, provider)
        for field in planned.fields or ():
            field.check_rebindable()
        if planned.fields:
            self._check_compiled(planned, provider, enable_jit)
            _, arrays = self._execution.run(*planned[:4])
            fill(planned.fields, [f.domain for f in planned.fields], arrays)

    def _planned(self, args: tuple[Any, ...], kwargs: dict[str, Any], provider: Provider) -> Planned:
        return self.planned_call(*self._completed(args, kwargs), provider)

    def planned_call(self, args: tuple[Any, ...], kwargs: dict[str, Any], provider: Provider) -> Planned:
        """A call with all its arguments, recorded and planned, not run."""
        args, kwargs, static = self._marked(args, kwargs)
        call = on_domains(read_call(args, kwargs))
        recording = self._execution.recording(call, provider, lambda: record_program(self.function, call, provider))
        fields = [call.leaves[n] for n in recording.targets]
        inputs = recording.inputs(call, provider)
        domains: list[Domain | None] = [f.domain for f in fields]
        plan = plan_of(recording.graph, [place_of(x) for x in inputs], domains, adjoint_shapes(inputs))
        return Planned(recording, plan, inputs, on_numpy(inputs), fields, domains, static)


def on_domains(call: Call) -> Call:
    """The call with the domains of its fields, and which of them are the same object, in its key."""
    first: dict[int, int] = {}
    same = tuple(first.setdefault(id(x), n) for n, x in enumerate(call.leaves) if isinstance(x, Field))
    domains = tuple(x.domain for x in call.leaves if isinstance(x, Field))
    return dataclasses.replace(call, shape=(*call.shape, domains, same))


def record_program(
    function: Callable[..., Any], call: Call, provider: Provider
) -> tuple[Recording, list[tuple[Guard, Any]]]:
    """Runs the function on cells; the recording of what they hold in the end."""
    draft = Draft(call, provider)
    cells: dict[int, tuple[int, Cell]] = {}
    arguments: list[Any] = []
    for n, (value, leaf) in enumerate(zip(draft.values, call.leaves, strict=True)):
        if isinstance(leaf, Field):
            arguments.append(cells.setdefault(id(leaf), (n, Cell(value, draft.scope, leaf.domain)))[1])
        else:
            arguments.append((TracedTable if value.is_table else TracedField)(value, draft.scope))
    args, kwargs = call.rebuild(arguments)
    check_arguments(function, args, kwargs)
    if run(function, *args, **kwargs) is not None:
        raise ArgumentError("a program returns nothing", location=user_location(), hints=["write results with `out=`"])
    changed = _changed(list(cells.values()))
    return draft.finish([c for _, c in changed], None, tuple(n for n, _ in changed))


def _changed(cells: Sequence[tuple[int, Cell]]) -> list[tuple[int, Cell]]:
    return [(n, c) for n, c in cells if c.value is not c.initial]


@overload
def program(function: Callable[..., Any], /) -> FieldProgram: ...
@overload
def program(
    *,
    backend: str | None = ...,
    grid_type: Any = ...,
    enable_jit: bool = ...,
    static_params: str | Sequence[str] | None = ...,
    connectivities: Any = ...,
    static_domains: bool = ...,
) -> Callable[..., FieldProgram]: ...
def program(function: Any = None, /, *, backend: str | None = JAX, grid_type: Any = None, **options: Any) -> Any:
    """Makes a program of a function that calls operators with `out=`.

    `backend`, `grid_type` and `options` as in `field_operator`. Conditions and domain bounds depend on scalars
    without their being static.

    >>> import fieldjax as fj
    >>> Cell = fj.Dimension("Cell")
    >>> @fj.field_operator
    ... def double(f):
    ...     return 2 * f
    >>> @fj.program
    ... def step(f, g, end):
    ...     double(f, out=g, domain={Cell: (0, end)})
    ...     double(g, out=f)
    >>> f, g = fj.as_field({Cell: 3}, [1, 2, 3]), fj.zeros({Cell: 3}, int)
    >>> step(f, g, 2)
    >>> f.asnumpy().tolist(), g.asnumpy().tolist()
    ([4, 8, 0], [2, 4, 0])
    """
    chosen = CompilationOptions.of(**options)
    if function is None:
        return lambda f: FieldProgram(f, backend, chosen)
    return FieldProgram(function, backend, chosen)
