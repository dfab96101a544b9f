"""Containers of fields and scalars: what JAX takes apart, and dataclasses, which it is told about here."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax

from fieldjax.connectivity import Mesh, MeshView, is_table
from fieldjax.embedded.field import Field
from fieldjax.embedded.leaves import is_scalar
from fieldjax.frontend.traced import TracedField, TracedTable


def is_leaf(x: Any) -> bool:
    """Whether something is taken as one piece, although JAX would look inside."""
    return is_table(x) or isinstance(x, (Field, TracedField, TracedTable, Mesh, MeshView))


def is_data(x: Any) -> bool:
    """Whether something is a field, a scalar or a connectivity, recorded or not."""
    return isinstance(x, (Field, TracedField, TracedTable)) or is_table(x) or is_scalar(x)


def flatten(x: Any) -> tuple[list[Any], Any]:
    """The leaves of `x`, and how they make it up: tuples, lists, dicts, named tuples, dataclasses of data."""
    leaves, tree = jax.tree_util.tree_flatten(x, is_leaf=is_leaf)
    if new := {type(leaf) for leaf in leaves if _is_new_container(leaf)}:
        for kind in new:
            _register(kind)
        return flatten(x)
    return leaves, tree


def is_container(x: Any) -> bool:
    """Whether something has leaves of its own: a tuple, a dataclass of fields, and what JAX knows as such."""
    if isinstance(x, (tuple, list)):
        return True
    return x is not None and not is_data(x) and not jax.tree_util.treedef_is_leaf(flatten(x)[1])


def show_structure(tree: Any) -> str:
    """A structure as text: `(field, field)`."""
    return str(tree).removeprefix("PyTreeDef(").removesuffix(")").replace("*", "field")


def unflatten(tree: Any, leaves: Any) -> Any:
    """The container with other leaves."""
    return jax.tree_util.tree_unflatten(tree, leaves)


def _is_new_container(x: Any) -> bool:
    """Whether `x` is a dataclass, not known to JAX, that holds data, containers of data and None, no more."""
    if not dataclasses.is_dataclass(x) or isinstance(x, type) or is_leaf(x):
        return False
    fields = dataclasses.fields(x)
    leaves = jax.tree_util.tree_leaves([getattr(x, f.name) for f in fields], is_leaf=is_leaf)
    return all(f.init for f in fields) and bool(leaves) and all(is_data(y) or _is_new_container(y) for y in leaves)


def _register(kind: type) -> None:
    names = [f.name for f in dataclasses.fields(kind)]
    jax.tree_util.register_dataclass(kind, data_fields=names, meta_fields=[])
