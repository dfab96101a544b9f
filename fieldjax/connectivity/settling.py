"""Brings a table and what is said about it back together, whatever a transformation made of the table.

`tree_flatten` is the last moment at which a table is concrete; afterwards only its handle answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from fieldjax.connectivity.entries import check_entries, concrete, frozen
from fieldjax.connectivity.host_table import HostTable, host_table
from fieldjax.connectivity.placing import is_concrete, is_readable, is_traced, place, placement
from fieldjax.connectivity.questions.boxes import local_axes
from fieldjax.connectivity.questions.explain import show_table
from fieldjax.connectivity.structure import Structure
from fieldjax.domain import Domain
from fieldjax.errors import ConnectivityError


@dataclass(frozen=True, slots=True)
class Settled:
    """A structure and children that belong together; `twin` answers for both (None: only a handle does)."""

    structure: Structure
    children: tuple[Any, ...]
    twin: HostTable | None
    is_stale: Callable[[], bool]


def is_fresh() -> bool:
    """For children that were never looked at, or hold no table: look whenever there is need."""
    return True


def is_never_stale() -> bool:
    """For a tracer: it stays what it is."""
    return False


def settle(structure: Structure, children: tuple[Any, ...]) -> Settled:
    """What belongs to `children`, which once had this structure.

    A concrete table that differs from the twin's becomes the contents of a new one; a donated one is uploaded
    again; what isn't an array of integers (a cotangent, a specification, None) is passed through.

    Raises:
        ConnectivityError: the table has another shape (stacked, scanned or mapped over), or invalid entries.
    """
    table, twin = children[0], structure.handle.live()
    if not _is_table(table):
        return Settled(structure, children, twin, is_fresh)
    if table.shape != structure.domain.shape:
        raise _other_shape(structure, table)
    if is_traced(table):
        return Settled(structure, children, twin, is_never_stale)
    return _settle_concrete(structure, children, twin)


def _is_table(child: Any) -> bool:
    return (is_traced(child) or is_concrete(child)) and np.dtype(child.dtype).kind in "iu"


def _settle_concrete(structure: Structure, children: tuple[Any, ...], twin: HostTable | None) -> Settled:
    table = children[0]
    if isinstance(table, jax.Array) and table.is_deleted():
        return _hosted(structure, twin or structure.handle.twin(), (None,) * len(children), table)
    if twin is None or not _same(table, twin.entries, twin):
        return _hosted(structure, _rehost(structure, table), (None,) * len(children), table)
    return _hosted(structure, twin, children, table)


def _hosted(structure: Structure, twin: HostTable, children: tuple[Any, ...], like: Any) -> Settled:
    """The children that agree with `twin`; the others are replaced, placed where `like` is."""
    expected = (twin.entries,)
    if structure.has_adjoint:
        expected += tuple(twin.transposed(slot_axis(structure.domain)))
    kept = tuple(_agreeing(c, e, twin, like) for c, e in zip(children, expected, strict=True))
    settled = structure if structure.handle is twin.handle else structure.replace(handle=twin.handle)
    return Settled(settled, kept, twin, kept[0].is_deleted)


def _agreeing(child: Any, expected: np.ndarray, twin: HostTable, like: Any) -> jax.Array:
    if isinstance(child, jax.Array) and _same(child, expected, twin):
        return child
    # NumPy arrays are replaced too: their owner may change them.
    placed = place(expected, placement(like))
    twin.remember(placed)
    return placed


def _same(child: Any, expected: np.ndarray, twin: HostTable) -> bool:
    if is_traced(child) or twin.recognises(child):
        return True
    if not is_concrete(child) or child.dtype != expected.dtype or child.shape != expected.shape:
        return False
    # What other processes hold can't be compared.
    if is_readable(child) and not np.array_equal(np.asarray(child), expected):
        return False
    if isinstance(child, jax.Array):
        twin.remember(child)
    return True


def _rehost(structure: Structure, table: Any) -> HostTable:
    skip_value = structure.skip_value
    try:
        entries = frozen(concrete(table, skip_value), skip_value, np.dtype(table.dtype))
        check_entries(entries, skip_value, structure.domain, structure.codomain)
    except ConnectivityError as error:
        error.notes += ("a transformation of the connectivity as a pytree made this table",)
        raise
    return host_table(entries, skip_value)


def slot_axis(domain: Domain) -> int:
    """The axis that the transpose counts as slots."""
    axes = local_axes(domain)
    return axes[0] if axes and domain.ndim > 1 else domain.ndim


def _other_shape(structure: Structure, table: Any) -> ConnectivityError:
    domain, codomain = structure.domain, structure.codomain
    return ConnectivityError(
        f"the table {show_table(domain, codomain)} has shape {table.shape}, its domain {domain.shape}",
        notes=["it was stacked, scanned or mapped over, but a connectivity is one whole"],
        hints=[
            "vmap: pass in_axes=None for the connectivity, or close over it",
            "scan: close over the connectivity instead of scanning over it",
        ],
    )
