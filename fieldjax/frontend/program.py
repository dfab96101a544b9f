"""`program`: several operator calls on one set of fields, recorded as one graph and compiled as one."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, overload

from fieldjax.connectivity import Provider, as_provider
from fieldjax.embedded.field import Field
from fieldjax.embedded.leaves import adjoint_shapes, on_numpy, place_of
from fieldjax.errors import ArgumentError, FieldjaxError, user_location
from fieldjax.frontend.annotations import check_arguments
from fieldjax.frontend.cells import Cell
from fieldjax.frontend.containers import flatten
from fieldjax.frontend.execution import JAX, Execution, Stats
from fieldjax.frontend.guards import Guard
from fieldjax.frontend.outputs import fill
from fieldjax.frontend.recording import Call, Draft, Recording, read_call
from fieldjax.frontend.traced import TracedField, TracedTable
from fieldjax.frontend.user_code import run
from fieldjax.ir.inference import infer


class FieldProgram:
    """Operator calls with `out=`, on fields that are the arguments. It returns nothing.

    The caller's fields hold the new values afterwards: NumPy buffers are filled, JAX fields rebound, under
    `jax.jit` too, where their new arrays are to be returned. A call reads what earlier calls wrote. Bounds
    of domains may be computed from scalar arguments; each new bound compiles once.
    """

    def __init__(self, function: Callable[..., Any], backend: str | None = JAX) -> None:
        self._execution = Execution(backend)
        functools.update_wrapper(self, function)
        self.function, self.backend = function, backend

    @property
    def stats(self) -> Stats:
        """How often the function was recorded, planned and traced by JAX."""
        return self._execution.stats

    def with_backend(self, backend: str | None) -> FieldProgram:
        """The same program on another backend: None (embedded) or 'jax'."""
        return FieldProgram(self.function, backend)

    def __call__(self, *args: Any, offset_provider: Any = None, **kwargs: Any) -> None:
        """Runs the program; the fields among the arguments hold the results."""
        if any(isinstance(x, TracedField) for x in flatten((args, kwargs))[0]):
            run(self.function, *args, **kwargs)
            return
        try:
            self._run(args, kwargs, as_provider(offset_provider))
        except FieldjaxError as error:
            where = user_location()
            raise (error if where is None else error.with_location(where)) from error.__cause__

    def _run(self, args: Any, kwargs: Any, provider: Provider) -> None:
        call = _on_domains(read_call(args, kwargs))
        recording = self._execution.recording(call, provider, lambda: _record(self.function, call, provider))
        fields = [call.leaves[n] for n in recording.targets]
        for field in fields:
            field.check_rebindable()
        if not fields:
            return
        inputs = recording.inputs(call, provider)
        domains = [f.domain for f in fields]
        plan = infer(recording.graph, [place_of(x) for x in inputs], domains, adjoint_shapes(inputs))
        _, arrays = self._execution.run(recording, plan, inputs, on_numpy(inputs))
        fill(fields, domains, arrays)


def _on_domains(call: Call) -> Call:
    """The call with the domains of its fields, and which of them are the same object, in its key."""
    first: dict[int, int] = {}
    same = tuple(first.setdefault(id(x), n) for n, x in enumerate(call.leaves) if isinstance(x, Field))
    domains = tuple(x.domain for x in call.leaves if isinstance(x, Field))
    return dataclasses.replace(call, shape=(*call.shape, domains, same))


def _record(function: Callable[..., Any], call: Call, provider: Provider) -> tuple[Recording, list[tuple[Guard, Any]]]:
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
    *, backend: str | None = ..., grid_type: Any = ..., static_params: Any = ...
) -> Callable[..., FieldProgram]: ...
def program(
    function: Any = None, /, *, backend: str | None = JAX, grid_type: Any = None, static_params: Any = ()
) -> Any:
    """Makes a program of a function that calls operators with `out=`.

    `backend` and `grid_type` as in `field_operator`. `static_params` names scalars that the program depends on
    by value; conditions and domain bounds do so anyhow.

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
    if function is None:
        return lambda f: FieldProgram(f, backend)
    return FieldProgram(function, backend)
