"""Recording: an operator's function on types instead of data, once per kind of call."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
from jax.core import Tracer

from fieldjax.connectivity import Provider, Table, TableView, is_table, resolve
from fieldjax.dtypes import x64_enabled
from fieldjax.embedded.field import Field
from fieldjax.embedded.leaves import LeafType, is_scalar, leaf_type, parameters, table_type
from fieldjax.errors import ArgumentError, user_location
from fieldjax.frontend.containers import flatten
from fieldjax.frontend.guards import Guard, Guards
from fieldjax.frontend.parameters import StaticScalar
from fieldjax.frontend.scope import Scope, Source, is_same_here
from fieldjax.frontend.traced import TracedField, TracedTable, value_of
from fieldjax.frontend.user_code import called
from fieldjax.ir.graph import Graph, Value
from fieldjax.ir.simplify import simplify
from fieldjax.ir.types import TableType


@dataclass(frozen=True)
class Call:
    """The arguments of a call: the data leaves, and everything else as a hashable shape."""

    leaves: tuple[Any, ...]
    tables: tuple[Table, ...]
    """The tables of the masks that field arguments carry."""
    kinds: tuple[LeafType, ...]
    shape: tuple[Hashable, ...]
    rebuild: Callable[[Sequence[Any]], tuple[tuple[Any, ...], dict[str, Any]]]

    @property
    def key(self) -> Hashable:
        """What a recording depends on besides the provider's tables and the guards."""
        return (self.kinds, tuple(table_type(t) for t in self.tables), self.shape, x64_enabled())


def read_call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    """Takes the arguments apart. Raises ArgumentError for one that is neither data nor hashable."""
    flat, tree = flatten((args, kwargs))
    data = [isinstance(x, Field) or is_table(x) or is_scalar(x) for x in flat]
    leaves = tuple(x for x, d in zip(flat, data, strict=True) if d)
    static = tuple(None if d else (type(x), _hashable(x)) for x, d in zip(flat, data, strict=True))
    tables: list[Table] = []
    kinds = tuple(leaf_type(x, tables) for x in leaves)

    def rebuild(replaced: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        pending = iter(replaced)
        return jax.tree_util.tree_unflatten(
            tree, [next(pending) if d else _plain(x) for x, d in zip(flat, data, strict=True)]
        )

    return Call(leaves, tuple(tables), kinds, (tree, static), rebuild)


def _plain(x: Any) -> Any:
    return x.value if isinstance(x, StaticScalar) else x


def _hashable(x: Any) -> Hashable:
    try:
        hash(x)
    except TypeError:
        hints = []
        if hasattr(x, "shape"):
            hints.append("wrap the array: `as_field(domain, array)`")
        if dataclasses.is_dataclass(x):
            hints.append(
                "tell JAX which of its members aren't data: "
                "`jax.tree_util.register_dataclass(cls, data_fields=[...], meta_fields=[...])`"
            )
        raise ArgumentError(
            f"an argument of type {type(x).__name__} is neither a field, a scalar, nor hashable",
            location=user_location(),
            hints=hints,
        ) from None
    return x


@dataclass(frozen=True, eq=False)
class Recording:
    """The graph of one kind of call, and where its inputs come from.

    Inputs of the graph: the leaves of the call, the tables of their masks, the provider's tables `names`,
    and what was `captured` from outside.
    """

    graph: Graph
    tree: Any
    names: tuple[str, ...]
    table_types: tuple[TableType, ...]
    captured: tuple[Any, ...]
    is_plain: bool
    """Whether nothing but the kinds of the arguments decided: no guards, nothing from outside."""
    targets: tuple[int, ...] = ()
    """For a program: the leaf that each output is assigned to."""
    same: tuple[tuple[Source, Source], ...] = ()
    """Tables from two sources that must be the same one."""

    def fits(self, call: Call, provider: Provider) -> bool:
        """Whether the provider's entries are of the kind that was recorded, and those tables the same that were."""
        return all(
            name in provider and table_type(provider[name]) == type_  # type: ignore[arg-type]
            for name, type_ in zip(self.names, self.table_types, strict=True)
        ) and all(is_same_here(self._table(a, call, provider), self._table(b, call, provider)) for a, b in self.same)

    def _table(self, source: Source, call: Call, provider: Provider) -> Table:
        kind, key = source
        by_kind: dict[str, Any] = {
            "leaf": call.leaves, "mask": call.tables, "provider": provider, "captured": self.captured,
        }  # fmt: skip
        return by_kind[kind][key]

    def inputs(self, call: Call, provider: Provider) -> list[Any]:
        """The data of the graph's inputs for one call."""
        inputs = (*call.leaves, *call.tables, *(provider[n] for n in self.names), *self.captured)
        return [resolve(x) if is_table(x) else x for x in inputs]  # type: ignore[arg-type]

    @property
    def keepable(self) -> bool:
        """Whether it may outlive the call: what it captured isn't being traced by somebody."""
        data = [x.ndarray if isinstance(x, Field) else x for x in self.captured]
        return not any(isinstance(x, (Tracer, TableView)) for x in data)


def record_call(
    function: Callable[..., Any], call: Call, provider: Provider
) -> tuple[Recording, list[tuple[Guard, Any]]]:
    """Runs the function on recorded values; the recording, and the guards that it passed."""
    draft = Draft(call, provider)
    args, kwargs = call.rebuild([_argument(v, draft.scope) for v in draft.values])
    outputs, tree = flatten_results(called(function, args, kwargs))
    return draft.finish(outputs, tree)


class Draft:
    """A recording that is being made: what stands for each leaf of the call, and the scope that they belong to."""

    def __init__(self, call: Call, provider: Provider) -> None:
        self._leaves, self._masked_by = parameters(call.kinds, [table_type(t) for t in call.tables])
        positions = {v: n for n, (v, x) in enumerate(zip(self._leaves, call.leaves, strict=True)) if is_scalar(x)}
        self._guards = Guards(call.leaves, positions)
        self.scope = Scope(provider, self._guards)
        for n, (table, value) in enumerate(zip(call.tables, self._masked_by, strict=True)):
            self.scope.standing(table, ("mask", n), value)
        self.values = [
            self.scope.standing(x, ("leaf", n), v) if is_table(x) else v  # type: ignore[arg-type]
            for n, (v, x) in enumerate(zip(self._leaves, call.leaves, strict=True))
        ]

    def finish(
        self, outputs: Sequence[Any], tree: Any, targets: tuple[int, ...] = ()
    ) -> tuple[Recording, list[tuple[Guard, Any]]]:
        """The recording with these outputs."""
        scope = self.scope
        results = tuple(value_of(x, scope) for x in outputs)
        captured = tuple(v for _, v in scope.captured)
        inputs = (*self._leaves, *self._masked_by, *scope.tables.values(), *captured)
        recording = Recording(
            graph=simplify(Graph(inputs, results)),
            tree=tree,
            names=tuple(scope.tables),
            table_types=tuple(v.table_type for v in scope.tables.values()),
            captured=tuple(data for data, _ in scope.captured),
            is_plain=not (self._guards.asked or scope.captured or scope.same),
            targets=targets,
            same=tuple(scope.same),
        )
        return recording, self._guards.asked


def _argument(value: Value, scope: Scope) -> TracedField | TracedTable:
    return TracedTable(value, scope) if value.is_table else TracedField(value, scope)


def flatten_results(result: Any) -> tuple[list[Any], Any]:
    """The fields and scalars of a result. Raises ArgumentError for anything else, and for nothing at all."""
    flat, tree = flatten(result)
    for x in flat:
        if not (isinstance(x, (TracedField, Field)) or is_scalar(x)):
            raise ArgumentError(
                f"an operator returns fields, scalars, or containers of them, not {type(x).__name__}",
                location=user_location(),
            )
    if not flat:
        raise ArgumentError("the operator returns nothing", location=user_location(), hints=["add a `return`"])
    return flat, tree


class Recordings:
    """The recordings of one operator: a small trie of guards for each kind of call."""

    def __init__(self) -> None:
        self.count = 0
        self._roots: dict[Hashable, _Node] = {}

    def find(self, call: Call, provider: Provider) -> Recording | None:
        """The recording that holds for this call, if there is one."""
        node = self._roots.get(call.key)
        while node is not None and node.guard is not None:
            node = node.branches.get(node.guard.outcome(call.leaves))
        return None if node is None else next((r for r in node.recordings if r.fits(call, provider)), None)

    def add(self, call: Call, recording: Recording, asked: Sequence[tuple[Guard, Any]]) -> None:
        """Keeps a recording under the guards that it passed."""
        self.count += 1
        if not recording.keepable:
            return
        node = self._roots.setdefault(call.key, _Node())
        for guard, answer in asked:
            if node.guard is None:
                node.guard = guard
            node = node.branches.setdefault(answer, _Node())
        node.recordings = (*node.recordings, recording)


class _Node:
    """Either a guard with a branch for each answer, or recordings that differ in the kinds of tables."""

    __slots__ = ("branches", "guard", "recordings")

    def __init__(self) -> None:
        self.guard: Guard | None = None
        self.branches: dict[Any, _Node] = {}
        self.recordings: tuple[Recording, ...] = ()
