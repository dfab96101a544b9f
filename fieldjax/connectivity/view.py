"""A connectivity inside one recording that outlives it: its table is a tracer, its answers are noted.

Not a pytree: under `lax.cond` and the like a view would be compared before anything was asked of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn, TypeAlias

from fieldjax.connectivity.ambient import put_in_force, withdraw
from fieldjax.connectivity.connectivity import Connectivity
from fieldjax.connectivity.lifting import want_adjoints
from fieldjax.connectivity.questions.boxes import local_axes
from fieldjax.connectivity.questions.protocol import TableFacts
from fieldjax.connectivity.structure import Structure
from fieldjax.connectivity.traces import is_differentiating
from fieldjax.connectivity.transpose import Transposed
from fieldjax.domain import Dimension, Domain, UnitRange
from fieldjax.errors import UnsupportedError, user_location

Ask: TypeAlias = Callable[[str, tuple[Any, ...]], Any]
"""Answers `question(*arguments)` for the table of this call, and notes the answer."""


class TableView:
    """What stands for a connectivity while `fieldjax.jit` traces a function.

    The same view serves every mesh of equal answers: nothing about the contents is in it.
    """

    __slots__ = ("_ask", "adjoint", "codomain", "domain", "skip_value", "table")

    def __init__(self, kind: Any, table: Any, adjoint: Transposed | None, ask: Ask) -> None:
        self.table, self.adjoint, self._ask = table, adjoint, ask
        self.domain, self.codomain, self.skip_value = kind.domain, kind.codomain, kind.skip_value

    def with_adjoint(self) -> TableView:
        """The view with its transposed slots, if a derivative is being taken: the trace then begins again."""
        if self.adjoint is None and is_differentiating():
            want_adjoints()
        return self

    @property
    def ndarray(self) -> Any:
        """The traced table."""
        return self.table

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the table, and of the domain."""
        return self.domain.shape

    @property
    def local_dimension(self) -> Dimension | None:
        """The (first) LOCAL dimension of the domain, if there is one."""
        axes = local_axes(self.domain)
        return self.domain.dims[axes[0]] if axes else None

    @property
    def in_degree(self) -> int:
        """As for a connectivity."""
        return self._ask("in_degree", ())

    @property
    def adjoint_pays(self) -> bool:
        """As for a connectivity."""
        return self._ask("adjoint_pays", ())

    def inverse_image(self, image_range: UnitRange, within: Domain | None = None) -> Domain:
        """As for a connectivity. Raises NarrowingError."""
        return self._ask("inverse_image", (image_range, within))

    def image(self, sub: Domain) -> UnitRange:
        """As for a connectivity."""
        return self._ask("image", (sub,))

    def facts(self, sub: Domain) -> TableFacts:
        """As for a connectivity."""
        return self._ask("facts", (sub,))

    @property
    def __jax_array__(self) -> NoReturn:
        raise _no_data("connectivity")

    def __repr__(self) -> str:
        return f"TableView({self.domain} -> {self.codomain.value})"


Table: TypeAlias = Connectivity | TableView
"""A connectivity, or what stands for one while `fieldjax.jit` traces."""


def is_table(x: Any) -> bool:
    """Whether `x` is a connectivity or stands for one."""
    return isinstance(x, (Connectivity, TableView))


def identity_of(table: Table) -> Structure | TableView:
    """What is the same object for tables of the same contents over the same positions."""
    return table if isinstance(table, TableView) else table.structure.replace(has_adjoint=False)


class MeshView(Mapping[str, Any]):
    """What stands for a mesh while `fieldjax.jit` traces: its names, each with a view. Not a pytree."""

    __slots__ = ("entries",)

    def __init__(self, entries: Mapping[str, TableView | Dimension]) -> None:
        self.entries = dict(entries)

    def __getitem__(self, name: str) -> Any:
        return self.entries[name]

    def __getattr__(self, name: str) -> Any:
        try:
            return self.entries[name]
        except KeyError:
            raise AttributeError(f"the mesh has no {name}; it has {', '.join(self)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def __jax_array__(self) -> NoReturn:
        raise _no_data("mesh")

    def __enter__(self) -> MeshView:
        put_in_force(self)
        return self

    def __exit__(self, *_: object) -> None:
        withdraw()


def _no_data(what: str) -> UnsupportedError:
    """JAX asks a view for `__jax_array__` when it meets one among the arguments of a transformation."""
    return UnsupportedError(
        f"inside fieldjax.jit a {what} can't be an argument of a transformation of JAX",
        location=user_location(),
        hints=[f"let the inner function close over the {what}", "or make the inner function a fieldjax.jit"],
    )
