"""`fieldjax.jit`: `jax.jit` for functions that use meshes. Another mesh is another argument, not another trace."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, overload

import jax
from jax.core import Tracer

from fieldjax.backend.keyed import Keyed
from fieldjax.connectivity import (
    Connectivity,
    Table,
    TableView,
    Transposed,
    fenced,
    identity_of,
    is_differentiating,
    lifting,
    resolve,
)
from fieldjax.frontend.arguments import Arguments, Layout, Reader, TableKind, mesh_view, rebuilt
from fieldjax.frontend.lowering import Lowered
from fieldjax.frontend.questions import Log, Trie
from fieldjax.frontend.reach import way_to
from fieldjax.frontend.returns import Returned, hand_back, take_apart
from fieldjax.frontend.shortcut import LongWay, Shortcuts


class Jitted:
    """A function compiled by JAX, with the meshes that it uses as run-time arguments.

    `traces` counts how often the function was traced to its end.
    """

    def __init__(
        self, function: Callable[..., Any], static_argnums: Sequence[int], static_argnames: Sequence[str]
    ) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.traces = 0
        self._reader = Reader(function, static_argnums, static_argnames)
        self._families: Keyed[_Family] = Keyed(size=256)
        self._plans: Keyed[_Plan] = Keyed(size=256)
        self._tracing: Keyed[_Plan] = Keyed(size=0)
        self._shortcuts = Shortcuts()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compiles on the first call of a kind, then runs."""
        everything = self._reader.everything(args, kwargs)
        if everything is not None:
            result = self._shortcuts.call(everything)
            if result is not NotImplemented:
                return result
        call, plan, arrays = self._planned(args, kwargs)
        assert plan.returned is not None
        if everything is not None:
            self._shortcuts.add(everything, plan.run, call.arguments.arrays, call.tables, plan.returned)
        return hand_back(plan.returned, arrays, call.arguments.fields, call.tables)

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The program of a call: its jaxpr, StableHLO, and stage of JAX. It is run once to be found."""
        call, plan, _ = self._planned(args, kwargs)
        with _running(call):
            return Lowered.of(None, plan.run.trace(call.arguments.arrays, call.parts))

    def _planned(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[_Call, _Plan, list[Any]]:
        """A call, its plan, and the arrays that the plan gives for it."""
        while True:
            call = _Call.of(self, self._reader.read(args, kwargs))
            try:
                with _running(call):
                    return call, *self._run(call)
            except Again as wanted:
                if wanted.call is not call:
                    raise
                self._learn(call, wanted)

    def _learn(self, call: _Call, wanted: Again) -> None:
        """From now on passes the tables that a trace met, with what a derivative in it wanted."""
        call.family.differentiates |= wanted.table is None
        if wanted.table is not None:
            way = way_to(call.arguments.roots, wanted.table)
            if way is None or not self._reader.add(way):
                call.family.constants += (wanted.table,)

    def _run(self, call: _Call) -> tuple[_Plan, list[Any]]:
        traced: list[list[Any]] = []
        if any(isinstance(t, TableView) for t in call.tables):
            plan = self._plan(call, traced)  # views of a trace around this one aren't worth keeping
        else:
            contents = (call.key, call.identities)
            plan = self._plans.find(contents) or self._plans.get(contents, lambda: self._plan(call, traced))
        return plan, traced[0] if traced else plan.run(call.arguments.arrays, call.parts)

    def _plan(self, call: _Call, traced: list[list[Any]]) -> _Plan:
        """The plan for these tables: a known one with the same answers, or that of a new trace."""
        trie = call.family.tries.setdefault(call.key, Trie())

        def make() -> _Plan:
            known = trie.find(call.tables)
            if known is not None:
                return known
            plan = _Plan(self, call)
            traced.append(plan.run(call.arguments.arrays, call.parts))
            plan.log.seal()
            trie.add(plan.log, plan)
            return plan

        return trie.find(call.tables) or self._tracing.get(call.key, make)

    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"fieldjax.jit({getattr(self.function, '__qualname__', self.function)})"


class _Family:
    """What calls that differ in run-time data only have in common."""

    def __init__(self) -> None:
        self.constants: tuple[Connectivity, ...] = ()
        """Tables that the function came by in a way that isn't known: passed as they were when it was traced."""
        self.differentiates = False
        """Whether the function takes derivatives, which want the transposed slots."""
        self.tries: dict[Hashable, Trie[_Plan]] = {}


@dataclass(frozen=True, eq=False)
class _Call:
    """One call, with the tables as the trace around it (if there is one) may use them."""

    arguments: Arguments
    family: _Family
    own: tuple[Table, ...]
    """The tables as the function finds them."""
    tables: tuple[Table, ...]

    @classmethod
    def of(cls, jitted: Jitted, arguments: Arguments) -> _Call:
        family = jitted._families.get(arguments.key, _Family)
        own = (*arguments.tables, *family.constants)
        tables = tuple(map(resolve, own))
        if family.differentiates or _is_differentiated(arguments):
            tables = tuple(t.with_adjoint() if t.adjoint_pays else t for t in tables)
        return cls(arguments, family, own, tables)

    @functools.cached_property
    def parts(self) -> list[tuple[Any, ...]]:
        """The tables' data, with the transposed slots that are attached."""
        return [(t.table, *(t.adjoint or ())) for t in self.tables]

    @functools.cached_property
    def key(self) -> Hashable:
        """The static part."""
        return (self.arguments.key, tuple(map(len, self.parts)))

    @property
    def identities(self) -> tuple[Any, ...]:
        """What is equal for tables of equal contents."""
        return tuple(map(identity_of, self.tables))

    def views_of(self, views: Sequence[TableView]) -> dict[Any, TableView]:
        """The view for each table that the function may come by."""
        both = ((identity_of(t), v) for ts in (self.tables, self.own) for t, v in zip(ts, views, strict=True))
        return dict(both)


_call: ContextVar[_Call | None] = ContextVar("fieldjax_call", default=None)


@contextmanager
def _running(call: _Call) -> Iterator[None]:
    token = _call.set(call)
    try:
        yield
    finally:
        _call.reset(token)


class Again(BaseException):
    """Abandons the trace of a call, to begin again with one table more, or (None) with transposed slots.

    Not for the user's `except Exception`.
    """

    def __init__(self, call: _Call, table: Connectivity | None) -> None:
        super().__init__("fieldjax.jit begins the trace again")
        self.call, self.table = call, table


class _Plan:
    """One trace of a function: what it asked, what it returns, and its own `jax.jit` object."""

    __slots__ = ("__weakref__", "_jitted", "_layout", "log", "returned", "run")

    def __init__(self, jitted: Jitted, call: _Call) -> None:
        arguments, kinds = call.arguments, call.arguments.kinds + tuple(map(TableKind.of, call.family.constants))
        self._jitted = jitted
        self._layout = Layout(arguments.tree, arguments.specs, arguments.in_force, kinds)
        self.log = Log(call.tables)
        self.returned: Returned | None = None
        self.run = jax.jit(self._trace)

    def _trace(self, arrays: Sequence[Any], parts: Sequence[Any]) -> list[Any]:
        call = _call.get()
        if call is None:  # JAX forgot the trace (`jax.clear_caches()`), and this is the short way
            raise LongWay
        views = [self._view(n, part) for n, part in enumerate(parts)]
        args, kwargs, fields = rebuilt(self._layout, arrays, views)
        given = [f._array for f in fields]
        with fenced(), lifting(_Lifter(call, call.views_of(views))), self._in_force(views):  # type: ignore[arg-type]
            result = self._jitted.function(*args, **kwargs)
        outputs, self.returned = take_apart(result, fields, given, views)
        self._jitted.traces += 1
        return outputs

    def _view(self, slot: int, part: Sequence[Any]) -> TableView:
        adjoint = Transposed(*part[1:]) if len(part) > 1 else None
        return TableView(self._layout.kinds[slot], part[0], adjoint, functools.partial(self.log.ask, slot))

    @contextmanager
    def _in_force(self, views: Sequence[TableView]) -> Iterator[None]:
        if self._layout.in_force is None:
            yield
        else:
            with mesh_view(self._layout.in_force, views):
                yield


class _Lifter:
    """Views for the connectivities of one trace; one that isn't among them begins the trace again."""

    def __init__(self, call: _Call, known: dict[Any, TableView]) -> None:
        self._call, self._known = call, known

    def lift(self, table: Table) -> Table:
        is_traced = isinstance(table.table, Tracer)
        if isinstance(table, Connectivity) and is_traced:
            return table  # the argument of a transformation inside
        view = self._known.get(identity_of(table))
        if view is None and isinstance(table, Connectivity):
            raise Again(self._call, table)
        return table if view is None else view

    def attach(self) -> None:
        raise Again(self._call, None)


def _is_differentiated(call: Arguments) -> bool:
    return any(isinstance(x, Tracer) for x in call.arrays) and is_differentiating()


@overload
def jit(
    function: Callable[..., Any],
    /,
    *,
    static_argnums: int | Sequence[int] = ...,
    static_argnames: str | Sequence[str] = ...,
) -> Jitted: ...
@overload
def jit(
    *, static_argnums: int | Sequence[int] = ..., static_argnames: str | Sequence[str] = ...
) -> Callable[[Callable[..., Any]], Jitted]: ...
def jit(
    function: Any = None,
    /,
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
) -> Any:
    """`jax.jit` for functions of fields, arrays and meshes.

    Every connectivity that the function uses is a run-time argument of the compiled program: those among its
    arguments, in the mesh in force (`with mesh:`), in closures and globals. Another mesh of equal shapes and equal
    domains is answered without a trace. Field arguments that the function rebinds (`out=`, `f[...] = x`) are
    rebound for the caller. Arguments that are neither data nor meshes are static.

    Transforms like `jax.jit`: `jax.grad(fieldjax.jit(f))` and the rest work.

    >>> import fieldjax as fj, jax.numpy as jnp
    >>> Cell = fj.Dimension("Cell")
    >>> total = fj.jit(lambda f: jnp.sum((2 * f).ndarray))
    >>> float(total(fj.as_field({Cell: 3}, [1.0, 2.0, 3.0])))
    12.0
    """
    nums = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
    if function is None:
        return lambda f: Jitted(f, nums, names)
    return Jitted(function, nums, names)
