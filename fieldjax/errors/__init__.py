"""Errors as data: every kind that fieldjax raises, each with its repair.

An error carries a message (what went wrong), a location, labels on offending expressions, notes (the facts
at hand: domains, dtypes, shapes) and hints (what to do). Code raises it tersely; the public function that
the user called adds what only it knows.

Law: ``str(error) == render(error)``, and an error survives pickling with all its parts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from fieldjax.errors.location import Label, Location, user_location
from fieldjax.errors.rendering import render

__all__ = [
    "ArgumentError",
    "ConnectivityError",
    "DimensionError",
    "DomainError",
    "DtypeError",
    "FieldjaxError",
    "FieldjaxWarning",
    "IndexOutOfBoundsError",
    "Label",
    "Location",
    "MissingDimensionError",
    "NarrowingError",
    "OffsetProviderError",
    "OwnershipError",
    "TracingError",
    "UnsupportedError",
    "render",
    "user_location",
]

_Error = TypeVar("_Error", bound="FieldjaxError")


class FieldjaxError(Exception):
    """What every error of fieldjax is.

    >>> error = FieldjaxError("the halves differ", notes=["left: 3"], hints=["cut in the middle"])
    >>> print(error)
    the halves differ
    note: left: 3
    help: cut in the middle
    """

    message: str
    location: Location | None
    labels: tuple[Label, ...]
    notes: tuple[str, ...]
    hints: tuple[str, ...]

    def __init__(
        self,
        message: str,
        *,
        location: Location | None = None,
        labels: Iterable[Label] = (),
        notes: Iterable[str] = (),
        hints: Iterable[str] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.location = location
        self.labels = tuple(labels)
        self.notes = tuple(notes)
        self.hints = tuple(hints)

    def __str__(self) -> str:
        return render(self)

    def with_location(self: _Error, location: Location | None) -> _Error:
        """Set the location where there is none yet: the innermost one wins. Returns the same error."""
        if self.location is None:
            self.location = location
        return self


class FieldjaxWarning(UserWarning):
    """What every warning of fieldjax is: one category to silence, or to turn into errors."""


class DimensionError(FieldjaxError, ValueError):
    """Dimensions are doubled, in the wrong order, don't match, or aren't dimensions.

    Wrong:

    >>> from fieldjax.domain import Dimension, DimensionKind, check_order
    >>> Cell, K = Dimension("Cell"), Dimension("K", DimensionKind.VERTICAL)
    >>> check_order((K, Cell))
    Traceback (most recent call last):
    ...
    fieldjax.errors.DimensionError: dimensions (K, Cell) are not in canonical order
    note: HORIZONTAL comes before LOCAL, LOCAL before VERTICAL; then by name
    help: write (Cell, K)

    Fixed:

    >>> check_order((Cell, K))
    """


class MissingDimensionError(DimensionError, KeyError):
    """A domain was asked for a dimension that it lacks.

    Wrong:

    >>> from fieldjax.domain import Dimension, domain
    >>> Cell, Edge = Dimension("Cell"), Dimension("Edge")
    >>> domain({Cell: 10})[Edge]
    Traceback (most recent call last):
    ...
    fieldjax.errors.MissingDimensionError: dimension 'Edge' is not in Domain(Cell[0:10))

    Fixed:

    >>> print(domain({Cell: 10, Edge: 15})[Edge])
    Edge[0:15)
    """


class DomainError(FieldjaxError, ValueError):
    """A range or a domain isn't what the operation needs.

    Wrong, since Python turns the chain into an ``and``, which keeps its last part alone:

    >>> from fieldjax.domain import Dimension
    >>> K = Dimension("K")
    >>> 2 <= K < 5
    Traceback (most recent call last):
    ...
    fieldjax.errors.DomainError: a condition on a dimension has no truth value: Domain(K[2:inf))
    note: a chained comparison such as 2 <= K < 5 asks for one; so do if, and, or, not
    help: join conditions with & and |: (2 <= K) & (K < 5)

    Fixed:

    >>> (2 <= K) & (K < 5)
    Domain(K[2:5))
    """


class IndexOutOfBoundsError(DomainError, IndexError):
    """An index lies outside the range that it indexes.

    Wrong:

    >>> from fieldjax.domain import UnitRange
    >>> UnitRange(2, 5)[3]
    Traceback (most recent call last):
    ...
    fieldjax.errors.IndexOutOfBoundsError: position 3 is outside the range [2:5)
    note: positions count from the start of the range: 0 to 2

    Fixed:

    >>> UnitRange(2, 5)[2]
    4
    """


class NarrowingError(DomainError):
    """The table entries that fall into a field's range aren't a hyperrectangle, or there are none.

    Wrong, since the edge between vertices 1 and 2 would read beyond the field:

    >>> from fieldjax.connectivity import as_connectivity
    >>> from fieldjax.domain import Dimension, DimensionKind, UnitRange
    >>> Edge, Vertex = Dimension("Edge"), Dimension("Vertex")
    >>> E2VDim = Dimension("E2V", DimensionKind.LOCAL)
    >>> E2V = as_connectivity({Edge: 3, E2VDim: 2}, Vertex, [[0, 1], [1, 2], [2, 3]])
    >>> E2V.inverse_image(UnitRange(0, 2))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    fieldjax.errors.NarrowingError: ...

    Fixed: a field that covers what the table reads.

    >>> E2V.inverse_image(UnitRange(0, 4))
    Domain(Edge[0:3), E2V[0:2))
    """


class DtypeError(FieldjaxError, TypeError):
    """A dtype is unknown, doesn't match, or would be truncated.

    Wrong while x64 is off:

    >>> import jax
    >>> import numpy as np
    >>> from fieldjax.dtypes import of_literal
    >>> with jax.enable_x64(False):
    ...     of_literal(np.float64(0.5))
    Traceback (most recent call last):
    ...
    fieldjax.errors.DtypeError: the NumPy scalar 0.5 is float64, which JAX would truncate to float32
    help: run this before anything else: jax.config.update("jax_enable_x64", True)
    help: or ask for 32 bits: dtype="float32"

    Fixed: x64 enabled, 32 bits, or a Python scalar, which takes the dtype of what it meets.

    >>> of_literal(np.float32(0.5))
    (dtype('float32'), False)
    """


class ConnectivityError(FieldjaxError, ValueError):
    """A neighbour table is malformed, or not the table that it should be.

    Wrong, since -9 is not a vertex, nor was it said to mean "no neighbour":

    >>> from fieldjax.connectivity import as_connectivity
    >>> from fieldjax.domain import Dimension, DimensionKind
    >>> Edge, Vertex = Dimension("Edge"), Dimension("Vertex")
    >>> E2VDim = Dimension("E2V", DimensionKind.LOCAL)
    >>> as_connectivity({Edge: 2, E2VDim: 2}, Vertex, [[0, 1], [1, -9]])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    fieldjax.errors.ConnectivityError: ...

    Fixed:

    >>> E2V = as_connectivity({Edge: 2, E2VDim: 2}, Vertex, [[0, 1], [1, -9]], skip_value=-9)
    """


class OffsetProviderError(FieldjaxError, LookupError):
    """An offset has no entry in the offset provider, or one of the wrong sort.

    Wrong:

    >>> smooth(vertex_field, offset_provider={})  # doctest: +SKIP

    Fixed:

    >>> smooth(vertex_field, offset_provider={"E2V": E2V})  # doctest: +SKIP
    """


class TracingError(FieldjaxError, TypeError):
    """Python asked a traced value something that only a concrete value can answer.

    Wrong: domains are static, and under ``jit`` a size is a traced value.

    >>> import jax
    >>> from fieldjax.domain import Dimension, domain
    >>> Cell = Dimension("Cell")
    >>> try:
    ...     jax.jit(lambda size: domain({Cell: size}).size)(10)
    ... except TracingError as error:
    ...     print(error)  # doctest: +ELLIPSIS
    domains are static, but an index or a bound is traced by JAX
    note: it is int...[]
    help: make it a static argument, or compute everywhere and select with where

    Fixed:

    >>> int(jax.jit(lambda size: domain({Cell: size}).size, static_argnums=0)(10))
    10
    """


class ArgumentError(FieldjaxError, TypeError):
    """An operator was called with the wrong number or kind of arguments.

    Wrong, for an operator of two fields:

    >>> difference(a)  # doctest: +SKIP

    Fixed:

    >>> difference(a, b)  # doctest: +SKIP
    """


class OwnershipError(FieldjaxError, RuntimeError):
    """A field was rebound under another trace than the one that it was made under.

    Wrong, since the tracer would leak into `field`:

    >>> @jax.jit  # doctest: +SKIP
    ... def step():
    ...     field[...] = field + 1.0

    Fixed: a new value, returned.

    >>> @jax.jit  # doctest: +SKIP
    ... def step(field):
    ...     return field + 1.0
    """


class UnsupportedError(FieldjaxError):
    """A construct that fieldjax does not implement.

    Wrong, inside an operator:

    >>> while f > 0.0:  # doctest: +SKIP
    ...     f = f - 1.0

    Fixed: say it with what exists, here a selection.

    >>> f = where(f > 0.0, f % 1.0, f)  # doctest: +SKIP
    """
