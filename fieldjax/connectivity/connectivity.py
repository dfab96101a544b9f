"""`Connectivity`: a neighbour table as a JAX value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import numpy as np

from fieldjax.connectivity.handle import Handle
from fieldjax.connectivity.host_table import HostTable
from fieldjax.connectivity.placing import is_traced, place, placement
from fieldjax.connectivity.questions.boxes import local_axes
from fieldjax.connectivity.questions.explain import show_table
from fieldjax.connectivity.questions.protocol import TableFacts
from fieldjax.connectivity.settling import Settled, is_fresh, settle, slot_axis
from fieldjax.connectivity.structure import Structure
from fieldjax.connectivity.transpose import Transposed, is_transposable
from fieldjax.domain import Dimension, Domain, NamedRange, UnitRange
from fieldjax.errors import ConnectivityError, DimensionError, TracingError, UnsupportedError

Children: TypeAlias = tuple[Any, ...]


class Connectivity:
    """A neighbour table: an array of integers on a domain, each of which is an index along the codomain.

    A pytree: its table (and, after `with_adjoint`, its transposed slots) are leaves, the rest is static.
    Make one with `as_connectivity`. Immutable; equality is identity.

    Laws:

    - equal contents have equal structure: a function jitted for one connectivity is not traced again for
      another with the same contents, in whatever buffer, copied, pickled or made again.
    - questions are answered on the host, from the contents, also where the table is a tracer.
    - what a transformation made of the table (``jax.tree.map`` and the like) becomes the contents when the
      connectivity is next flattened or asked; what a transformation made of a *traced* table can't be seen.

    >>> from fieldjax.connectivity import as_connectivity
    >>> from fieldjax.domain import DimensionKind
    >>> Cell, Edge = Dimension("Cell"), Dimension("Edge")
    >>> E2CDim = Dimension("E2C", DimensionKind.LOCAL)
    >>> e2c = as_connectivity({Edge: 3, E2CDim: 2}, Cell, [[0, 1], [1, 0], [2, -1]], skip_value=-1)
    >>> e2c.inverse_image(UnitRange(0, 2))
    Domain(Edge[0:2), E2C[0:2))
    """

    __slots__ = ("__weakref__", "_adjoined", "_children", "_is_stale", "_structure", "_twin")

    _structure: Structure
    _children: Children
    _twin: HostTable | None
    _adjoined: Connectivity | None
    """This one with its transposed slots, once it was asked for."""
    _is_stale: Callable[[], bool]
    """Whether the table must be compared with its twin before it is used. Called on every dispatch."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise TypeError("make a connectivity with as_connectivity(domain, codomain, data, skip_value=...)")

    @classmethod
    def _of(cls, settled: Settled) -> Connectivity:
        made = object.__new__(cls)
        made._accept(settled)
        return made

    @classmethod
    def _unflatten(cls, structure: Structure, children: Any) -> Connectivity:
        # Children may be anything: None, specifications, tracers, whole fields. They are not looked at here.
        made = object.__new__(cls)
        made._structure, made._children = structure, tuple(children)
        made._twin, made._is_stale, made._adjoined = structure.handle.live(), is_fresh, None
        return made

    def _flatten(self) -> tuple[Children, Structure]:
        if self._is_stale():
            self._settle()
        return self._children, self._structure

    def _settle(self) -> None:
        self._accept(settle(self._structure, self._children))

    def _accept(self, settled: Settled) -> None:
        self._structure, self._children = settled.structure, settled.children
        self._twin, self._is_stale, self._adjoined = settled.twin, settled.is_stale, None

    def _asked(self) -> HostTable:
        """The twin, once it is sure that it is the table's."""
        if self._is_stale():
            self._settle()
        if self._is_stale is is_fresh:
            raise ConnectivityError(
                f"{self._children[0]!r:.80} stands where a neighbour table was",
                notes=[f"in the connectivity {show_table(self.domain, self.codomain)}"],
                hints=["connectivities hold integers and take no part in arithmetic on pytrees"],
            )
        return self._twin or self._structure.handle.twin()

    @property
    def table(self) -> Any:
        """The table: a JAX array, or a tracer; after transformations of pytrees, anything."""
        return self._children[0]

    ndarray = table

    @property
    def adjoint(self) -> Transposed | None:
        """The transposed slots, where `with_adjoint` attached them."""
        return Transposed(*self._children[1:]) if self._structure.has_adjoint else None

    @property
    def domain(self) -> Domain:
        """Where the table is defined."""
        return self._structure.domain

    @property
    def structure(self) -> Structure:
        """The static data of the pytree node: interned, so that equal structures are the same object."""
        self._flatten()
        return self._structure

    @property
    def codomain(self) -> Dimension:
        """The dimension that its entries count."""
        return self._structure.codomain

    @property
    def skip_value(self) -> int | None:
        """The entry that stands for a missing neighbour, or None."""
        return self._structure.skip_value

    @property
    def handle(self) -> Handle:
        """Stands for the contents in static data."""
        self._asked()
        return self._structure.handle

    @property
    def local_dimension(self) -> Dimension | None:
        """The (first) LOCAL dimension of the domain, if there is one."""
        axes = local_axes(self.domain)
        return self.domain.dims[axes[0]] if axes else None

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the table, and of the domain."""
        return self.domain.shape

    @property
    def dtype(self) -> np.dtype:
        """int32, unless the indices don't fit."""
        return self._asked().entries.dtype

    def asnumpy(self) -> np.ndarray:
        """The table as a read-only NumPy array, without a copy.

        Raises:
            TracingError: the table is traced.
        """
        if is_traced(self._children[0]):
            raise TracingError(
                f"the table {show_table(self.domain, self.codomain)} is traced: its entries aren't known",
                hints=["gather through .table, or read the entries before the trace and pass what you need"],
            )
        return self._asked().entries

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.asnumpy(), dtype=dtype, copy=copy)

    def inverse_image(self, image_range: UnitRange | NamedRange, within: Domain | None = None) -> Domain:
        """Where the table, restricted to entries in `image_range`, is fully defined. Cached.

        With `within`, what is asked about is that part of the table alone (one slot of it, say).

        Raises:
            NarrowingError: that is nowhere, or not a hyperrectangle.
        """
        if isinstance(image_range, NamedRange):
            image_range = self._range_along_codomain(image_range)
        return self._asked().inverse_image(self.domain, self.codomain, image_range, within)

    def _range_along_codomain(self, named: NamedRange) -> UnitRange:
        if named.dim != self.codomain:
            raise DimensionError(
                f"the table {show_table(self.domain, self.codomain)} was asked where it leads to {named}"
            )
        return named.unit_range

    def image(self, sub: Domain) -> UnitRange:
        """The smallest range with every valid entry of the part on `sub`; empty if there is none. Cached.

        A dimension that `sub` lacks is unrestricted; positions outside the table have no entries.
        """
        return self._asked().image(self.domain, sub)

    def facts(self, sub: Domain) -> TableFacts:
        """Skips and neighbours in the part on `sub`. Cached."""
        return self._asked().facts(self.domain, sub)

    @property
    def in_degree(self) -> int:
        """The largest number of entries that lead to one element: 0, 1, or rounded up to an even number."""
        return self._asked().degrees.padded

    @property
    def adjoint_pays(self) -> bool:
        """Whether the transpose exists and, padded, has at most 4 times the size of the table."""
        return self._asked().adjoint_pays(self.domain)

    def with_adjoint(self) -> Connectivity:
        """The same connectivity with its transposed slots attached, so that adjoints become gathers. Cached.

        Raises:
            TracingError: the table is traced.
            UnsupportedError: the table has several dimensions besides a LOCAL one.
        """
        twin = self._asked()
        if self._structure.has_adjoint:
            return self
        if is_traced(self._children[0]):
            raise TracingError(
                "the transpose of a traced table can't be attached",
                hints=["call with_adjoint() before you pass the connectivity into jax.jit"],
            )
        if not is_transposable(self.domain):
            raise UnsupportedError(
                f"the table {show_table(self.domain, self.codomain)} has no transpose",
                notes=["tables have one with one row dimension and at most one LOCAL dimension"],
            )
        if self._adjoined is None:
            table = self._children[0]
            slots = (place(part, placement(table)) for part in twin.transposed(slot_axis(self.domain)))
            structure = self._structure.replace(has_adjoint=True)
            self._adjoined = Connectivity._of(settle(structure, (table, *slots)))
        return self._adjoined

    def __repr__(self) -> str:
        return f"Connectivity({self._structure!r})"

    def __copy__(self) -> Connectivity:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Connectivity:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        from fieldjax.connectivity.construct import restore

        parts = (self.domain, self.codomain, self.asnumpy(), self.skip_value, self._structure.has_adjoint)
        return restore, parts


_KEYS = tuple(map(jax.tree_util.GetAttrKey, ("table", "adjoint.rows", "adjoint.slots")))


def _flatten_with_keys(connectivity: Connectivity) -> tuple[tuple[tuple[Any, Any], ...], Structure]:
    children, structure = connectivity._flatten()
    return tuple(zip(_KEYS, children, strict=False)), structure


jax.tree_util.register_pytree_with_keys(
    Connectivity, _flatten_with_keys, Connectivity._unflatten, Connectivity._flatten
)
