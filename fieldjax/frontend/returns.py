"""What a function under `fieldjax.jit` returns and rebinds: arrays out of the trace, objects to the caller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
from jax.extend.core import get_opaque_trace_state

from fieldjax.connectivity import MeshView, Table, TableView, identity_of
from fieldjax.embedded.field import Field
from fieldjax.embedded.leaves import is_scalar
from fieldjax.embedded.masks import FieldMask
from fieldjax.errors import ArgumentError
from fieldjax.frontend.arguments import ArraySpec, FieldSpec, MeshSpec, Spec, TableSpec, is_whole


@dataclass(frozen=True)
class Returned:
    """The structure of a result, and which field arguments were rebound. It holds no data."""

    tree: Any
    specs: tuple[Spec, ...]
    rebound: tuple[int, ...]


def take_apart(
    result: Any, fields: Sequence[Field], given: Sequence[Any], views: Sequence[TableView]
) -> tuple[list[Any], Returned]:
    """The arrays that leave the trace, and how to put the result together from them.

    `given` are the arrays that the field arguments `fields` came with. Raises ArgumentError for a result that
    is neither data nor a mesh of the caller.
    """
    flat, tree = jax.tree_util.tree_flatten(result, is_leaf=is_whole)
    slots = {view: n for n, view in enumerate(views)}
    arrays: list[Any] = []
    specs = tuple(_spec(x, slots, arrays) for x in flat)
    rebound = tuple(n for n, (f, a) in enumerate(zip(fields, given, strict=True)) if f._array is not a)
    arrays += [fields[n].ndarray for n in rebound]
    return arrays, Returned(tree, specs, rebound)


def _spec(x: Any, slots: dict[TableView, int], arrays: list[Any]) -> Spec:
    if isinstance(x, Field):
        arrays.append(x.ndarray)
        own = [m for m in x.masks if m.identity in slots]
        return FieldSpec(x.domain, tuple((slots[m.identity], m.slot, m.moved) for m in own))  # type: ignore[index]
    if isinstance(x, TableView) and x in slots:
        return TableSpec(slots[x])
    if isinstance(x, MeshView):
        return MeshSpec(tuple((n, slots[e] if isinstance(e, TableView) else e) for n, e in x.items()))
    if isinstance(x, jax.Array) or is_scalar(x) or hasattr(x, "__array__"):
        arrays.append(x)
        return ArraySpec(None)
    raise ArgumentError(
        f"a function under fieldjax.jit returns data, not {type(x).__name__}",
        hints=["return fields, arrays, numbers, the mesh that came as an argument, or containers of them"],
    )


def hand_back(returned: Returned, arrays: Sequence[Any], fields: Sequence[Field], tables: Sequence[Table]) -> Any:
    """The result for the caller; the caller's rebound fields get their new arrays."""
    state, pending = get_opaque_trace_state(), iter(arrays)

    def one(spec: Spec) -> Any:
        if isinstance(spec, FieldSpec):
            masks = tuple(FieldMask(identity_of(tables[n]), slot, moved) for n, slot, moved in spec.masks)
            return Field._trusted(next(pending), spec.domain, masks, state)
        if isinstance(spec, ArraySpec):
            return next(pending)
        if isinstance(spec, TableSpec):
            return tables[spec.slot]
        assert isinstance(spec, MeshSpec)
        return _mesh(spec, tables)

    result = jax.tree_util.tree_unflatten(returned.tree, [one(s) for s in returned.specs])
    for n in returned.rebound:
        fields[n].check_rebindable()
    for n in returned.rebound:
        fields[n].take(next(pending), fields[n].domain)
    return result


def _mesh(spec: MeshSpec, tables: Sequence[Table]) -> Any:
    from fieldjax.connectivity import Mesh

    return Mesh({name: tables[e] if isinstance(e, int) else e for name, e in spec.entries})  # type: ignore[misc]
