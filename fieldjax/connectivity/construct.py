"""`as_connectivity`: the way from arrays to connectivities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import jax
import numpy as np

from fieldjax.connectivity.connectivity import Connectivity
from fieldjax.connectivity.entries import check_entries, check_shape, concrete, frozen, traced_table
from fieldjax.connectivity.host_table import host_table
from fieldjax.connectivity.placing import is_traced, place, placement
from fieldjax.connectivity.settling import settle
from fieldjax.connectivity.structure import Structure, structure_of
from fieldjax.domain import Dimension, Domain, DomainLike, UnitRange, domain
from fieldjax.dtypes import as_dtype
from fieldjax.errors import ConnectivityError


class _Unset:
    def __repr__(self) -> str:
        return "-1 where it occurs"


_UNSET = _Unset()
DEFAULT_SKIP_VALUE = -1

TableDomainLike: TypeAlias = "DomainLike | Sequence[Dimension]"


def as_connectivity(
    domain: TableDomainLike,
    codomain: Dimension,
    data: Any,
    dtype: Any = None,
    *,
    allocator: Any = None,
    device: Any = None,
    skip_value: int | _Unset | None = _UNSET,
) -> Connectivity:
    """A connectivity: at each point of `domain` an index along `codomain`.

    Args:
        domain: anything that `fieldjax.domain.domain` takes, or dimensions: their sizes are those of `data`.
        codomain: the dimension that the entries count.
        data: integers of the shape of `domain`; copied, so that later changes to it aren't seen. Masked
            entries of a masked array are skips.
        dtype: an integer dtype; by default int32, or int64 where an index doesn't fit.
        allocator: a `jax.Device` or `jax.sharding.Sharding` to place the table on; the allocators of
            gt4py.next are accepted and mean nothing here.
        device: the same as `allocator`, and wins.
        skip_value: the entry that stands for a missing neighbour, or None where none is missing. Left out, it
            is -1 where that occurs in `data`.

    >>> from fieldjax.domain import DimensionKind
    >>> Cell, Edge = Dimension("Cell"), Dimension("Edge")
    >>> E2CDim = Dimension("E2C", DimensionKind.LOCAL)
    >>> as_connectivity([Edge, E2CDim], Cell, [[0, 1], [1, -1]]).skip_value
    -1

    Raises:
        TracingError: `data` is traced.
        ConnectivityError: `data` has another shape than `domain`, isn't integer, or has a negative entry that
            isn't the skip value.
        DtypeError: an index doesn't fit int32, and x64 is off.
    """
    if not isinstance(codomain, Dimension):
        raise ConnectivityError(f"the codomain of a neighbour table is a Dimension, got {codomain!r}")
    if is_traced(data):
        raise traced_table()
    given = None if isinstance(skip_value, _Unset) else _as_skip_value(skip_value)
    array = concrete(data, given)
    if isinstance(skip_value, _Unset) and DEFAULT_SKIP_VALUE in array:
        given = DEFAULT_SKIP_VALUE
    where = _as_table_domain(domain, array.shape)
    check_shape(array.shape, where, codomain)
    entries = frozen(array, given, None if dtype is None else as_dtype(dtype))
    check_entries(entries, given, where, codomain)
    return _build(where, codomain, entries, given, _sharding(device, allocator, data))


def _build(
    domain: Domain, codomain: Dimension, entries: np.ndarray, skip_value: int | None, sharding: Any
) -> Connectivity:
    twin = host_table(entries, skip_value)
    table = place(twin.entries, sharding)
    twin.remember(table)
    structure = structure_of(domain, codomain, skip_value, twin.handle)
    return Connectivity._of(settle(structure, (table,)))


def restore(
    domain: Domain, codomain: Dimension, entries: np.ndarray, skip_value: int | None, has_adjoint: bool
) -> Connectivity:
    """The connectivity that was pickled."""
    made = as_connectivity(domain, codomain, entries, skip_value=skip_value, dtype=entries.dtype)
    return made.with_adjoint() if has_adjoint else made


def connectivity_of(structure: Structure) -> Connectivity:
    """A connectivity of this structure, from any live twin of its contents.

    Raises:
        ConnectivityError: every connectivity with these contents has been dropped.
    """
    twin = structure.handle.twin()
    table = twin.uploaded()
    if table is None:
        table = place(twin.entries, None)
        twin.remember(table)
    return Connectivity._of(settle(structure.replace(has_adjoint=False), (table,)))


def _as_skip_value(value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, (bool, np.bool_)) or not hasattr(type(value), "__index__"):
        raise ConnectivityError(
            f"a skip value is an integer or None, got {value!r}",
            hints=["the dtype of a table is given as dtype=..."],
        )
    return int(value)


def _as_table_domain(like: TableDomainLike, shape: tuple[int, ...]) -> Domain:
    if isinstance(like, Domain) or not isinstance(like, Sequence):
        return domain(like)
    if not all(isinstance(dim, Dimension) for dim in like):
        return domain(like)  # type: ignore[arg-type]  # pairs, or an error
    if len(like) != len(shape):
        raise ConnectivityError(f"{len(like)} dimensions don't match a table of shape {shape}")
    return Domain(dims=tuple(like), ranges=tuple(UnitRange(0, size) for size in shape))  # type: ignore[arg-type]


def _sharding(device: Any, allocator: Any, data: Any) -> Any:
    for choice in (device, allocator):
        if isinstance(choice, (jax.Device, jax.sharding.Sharding)):
            return choice
    return placement(data)
