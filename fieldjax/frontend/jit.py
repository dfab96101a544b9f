"""`fieldjax.jit`: `jax.jit` for functions that use meshes. Another mesh is another argument, not another trace."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, overload

import jax

from fieldjax.backend.keyed import Keyed
from fieldjax.connectivity import (
    Connectivity,
    Table,
    TableView,
    Transposed,
    identity_of,
    is_differentiating,
    lifting,
    resolve,
)
from fieldjax.frontend.arguments import Arguments, Layout, Reader, mesh_view, rebuilt
from fieldjax.frontend.questions import Log, Trie
from fieldjax.frontend.returns import Returned, hand_back, take_apart
from fieldjax.frontend.shortcut import Shortcuts


class Jitted:
    """A function compiled by JAX, with the meshes that it uses as run-time arguments.

    `traces` counts how often the function was traced.
    """

    def __init__(
        self, function: Callable[..., Any], static_argnums: Sequence[int], static_argnames: Sequence[str]
    ) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.traces = 0
        self._reader = Reader(function, static_argnums, static_argnames)
        self._tries: dict[Hashable, Trie[_Plan]] = {}
        self._plans: Keyed[_Plan] = Keyed(size=256)
        self._captured: tuple[Connectivity, ...] = ()
        self._differentiates = False
        self._shortcuts = Shortcuts()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        everything = None if self._differentiates else self._reader.everything(args, kwargs, self._captured)
        if everything is not None:
            result = self._shortcuts.call(everything)
            if result is not NotImplemented:
                return result
        while True:
            call = self._reader.read(args, kwargs, self._captured)
            try:
                return self._run(call, everything)
            except Again as wanted:
                if wanted.owner is not self:
                    raise
                self._captured = (*self._captured, *wanted.capture)
                self._differentiates |= wanted.adjoints

    def _run(self, call: Arguments, everything: Any) -> Any:
        tables = [resolve(t) for t in call.tables]
        if self._differentiates or _is_differentiated(call):
            tables = [t.with_adjoint() if t.adjoint_pays else t for t in tables]
        parts = [(t.table, *(t.adjoint or ())) for t in tables]
        key = (call.key, tuple(map(len, parts)))
        contents = (key, tuple(identity_of(t) for t in tables))
        traced: list[Any] = []
        plan = self._plans.find(contents)
        if plan is None:
            plan = self._plans.get(contents, lambda: self._plan(call, key, tables, parts, traced))
        arrays = traced[0] if traced else plan.run(call.arrays, parts)
        assert plan.returned is not None
        if everything is not None:
            self._shortcuts.add(everything, plan.run, call.arrays, tables, plan.returned)
        return hand_back(plan.returned, arrays, call.fields, tables)

    def _plan(
        self, call: Arguments, key: Hashable, tables: Sequence[Table], parts: Sequence[Any], traced: list[Any]
    ) -> _Plan:
        """The plan for these tables: a known one with the same answers, or that of a new trace."""
        trie = self._tries.setdefault(key, Trie())
        known = trie.find(tables)
        if known is not None:
            return known
        plan = _Plan(self, call, tables)
        traced.append(plan.run(call.arrays, parts))
        plan.seal()
        return trie.add(plan.log, plan)

    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"fieldjax.jit({getattr(self.function, '__qualname__', self.function)})"


class Again(BaseException):
    """Abandons the trace of `owner`, which is to begin again with more arguments.

    Not for the user's `except Exception`.
    """

    def __init__(self, owner: Jitted, capture: tuple[Connectivity, ...] = (), adjoints: bool = False) -> None:
        super().__init__("fieldjax.jit begins the trace again")
        self.owner, self.capture, self.adjoints = owner, capture, adjoints


class _Plan:
    """One trace of a function: what it asked, what it returns, and its own `jax.jit` object."""

    __slots__ = ("__weakref__", "_identities", "_jitted", "_layout", "log", "returned", "run")

    def __init__(self, jitted: Jitted, call: Arguments, tables: Sequence[Table]) -> None:
        self._jitted = jitted
        self._layout = Layout(call.tree, call.specs, call.in_force, call.kinds)
        self._identities = [identity_of(t) for t in tables]
        self.log = Log(tables)
        self.returned: Returned | None = None
        self.run = jax.jit(self._trace)

    def seal(self) -> None:
        """Keeps nothing of the tables that the trace was made with."""
        self.log.seal()

    def _trace(self, arrays: Sequence[Any], parts: Sequence[Any]) -> list[Any]:
        self._jitted.traces += 1
        views = [self._view(n, part) for n, part in enumerate(parts)]
        args, kwargs, fields = rebuilt(self._layout, arrays, views)
        given = [f._array for f in fields]
        with lifting(_Lifter(self._jitted, dict(zip(self._identities, views, strict=True)))), self._in_force(views):
            result = self._jitted.function(*args, **kwargs)
        outputs, self.returned = take_apart(result, fields, given, views)
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

    def __init__(self, owner: Jitted, known: dict[Any, TableView]) -> None:
        self._owner, self._known = owner, known

    def lift(self, connectivity: Connectivity) -> TableView:
        view = self._known.get(identity_of(connectivity))
        if view is None:
            raise Again(self._owner, capture=(connectivity,))
        return view

    def attach(self) -> None:
        raise Again(self._owner, adjoints=True)


def _is_differentiated(call: Arguments) -> bool:
    return any(isinstance(x, jax.core.Tracer) for x in call.arrays) and is_differentiating()


@overload
def jit(function: Callable[..., Any], /) -> Jitted: ...
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
