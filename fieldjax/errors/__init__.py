"""Every kind of error that fieldjax raises, each with its repair.

Code raises them tersely; the public function that the user called adds what only it knows.
"""

from __future__ import annotations

from fieldjax.errors.base import FieldjaxError, FieldjaxWarning
from fieldjax.errors.location import Label, Location, error_location, raised_in_user_code, user_location
from fieldjax.errors.rendering import render
from fieldjax.errors.warning import warn

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
    "NotCompiledError",
    "OffsetProviderError",
    "OwnershipError",
    "TracingError",
    "UnknownNameError",
    "UnsupportedError",
    "error_location",
    "raised_in_user_code",
    "render",
    "user_location",
    "warn",
]


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
    >>> E2V.inverse_image(UnitRange(0, 2))
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
    >>> as_connectivity({Edge: 2, E2VDim: 2}, Vertex, [[0, 1], [1, -9]])
    Traceback (most recent call last):
    ...
    fieldjax.errors.ConnectivityError: ...

    Fixed:

    >>> E2V = as_connectivity({Edge: 2, E2VDim: 2}, Vertex, [[0, 1], [1, -9]], skip_value=-9)
    """


class OffsetProviderError(FieldjaxError, LookupError):
    """An offset has no entry in the offset provider, or one of the wrong sort.

    Wrong:

    >>> from fieldjax import Dimension, DimensionKind, FieldOffset, as_connectivity, as_field, field_operator
    >>> Edge, Vertex = Dimension("Edge"), Dimension("Vertex")
    >>> E2VDim = Dimension("E2V", DimensionKind.LOCAL)
    >>> E2V = FieldOffset("E2V", source=Vertex, target=(Edge, E2VDim))
    >>> table = as_connectivity({Edge: 2, E2VDim: 2}, Vertex, [[0, 1], [1, 2]])
    >>> first_vertex = field_operator(lambda f: f(E2V[0]))
    >>> f = as_field({Vertex: 3}, [1.0, 2.0, 3.0])
    >>> first_vertex(f, offset_provider={"V2E": table})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    fieldjax.errors.OffsetProviderError: the offset provider has no entry 'E2V'...

    Fixed:

    >>> first_vertex(f, offset_provider={"E2V": table}).asnumpy().tolist()
    [1.0, 2.0]
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
    ...     print(error)
    domains are static, but an index or a bound is traced by JAX
    note: it is ~int32[]
    help: make it a static argument, or compute everywhere and select with where

    Fixed:

    >>> int(jax.jit(lambda size: domain({Cell: size}).size, static_argnums=0)(10))
    10
    """


class ArgumentError(FieldjaxError, TypeError):
    """An operator or a function was given, or gave back, something of the wrong kind or number.

    Wrong, since without ``return`` a function returns None:

    >>> from fieldjax import Dimension, as_field, field_operator
    >>> f = as_field({Dimension("Cell"): 2}, [1.0, 2.0])
    >>> @field_operator
    ... def double(f):
    ...     2.0 * f
    >>> double(f, offset_provider={})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    fieldjax.errors.ArgumentError: the operator returns nothing...

    Fixed:

    >>> @field_operator
    ... def double(f):
    ...     return 2.0 * f
    >>> double(f, offset_provider={}).asnumpy().tolist()
    [2.0, 4.0]
    """


class UnknownNameError(FieldjaxError, NameError):
    """An operator uses a name that nothing has.

    Wrong:

    >>> import fieldjax as fj
    >>> f = fj.as_field({fj.Dimension("Cell"): 2}, [0.0, 0.0])
    >>> @fj.field_operator
    ... def wave(f):
    ...     return fj.cosine(f)
    >>> wave(f)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    fieldjax.errors.UnknownNameError: fieldjax has no cosine...

    Fixed:

    >>> @fj.field_operator
    ... def wave(f):
    ...     return fj.cos(f)
    >>> wave(f).asnumpy().tolist()
    [1.0, 1.0]
    """


class OwnershipError(FieldjaxError, RuntimeError):
    """A field was rebound under another trace than the one that it was made under.

    Wrong, since the tracer would leak into `field`:

    >>> import jax
    >>> from fieldjax import Dimension, as_field
    >>> field = as_field({Dimension("Cell"): 2}, [1.0, 2.0])
    >>> def step():
    ...     field[...] = field + 1.0
    >>> try:
    ...     jax.jit(step)()
    ... except OwnershipError as error:
    ...     print(error.message)
    this field belongs to another trace and can't be changed here

    Fixed: a new value, returned.

    >>> def step(field):
    ...     return field + 1.0
    >>> jax.jit(step)(field).asnumpy().tolist()
    [2.0, 3.0]
    """


class NotCompiledError(FieldjaxError, RuntimeError):
    """A call would have to compile, and `enable_jit` says that calls don't.

    Wrong, since only `n=1` was compiled:

    >>> from fieldjax import Dimension, as_field, field_operator
    >>> f = as_field({Dimension("Cell"): 2}, [1.0, 2.0])
    >>> @field_operator(enable_jit=False)
    ... def power(f, n):
    ...     return f**n
    >>> _ = power.compile(offset_provider={}, n=[1])
    >>> power(f, 2, offset_provider={})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    fieldjax.errors.NotCompiledError: power isn't compiled for this call, and `enable_jit` is off...

    Fixed: compile what is called.

    >>> power.compile(offset_provider={}, n=[2])(f, 2, offset_provider={}).asnumpy().tolist()
    [1.0, 4.0]
    """


class UnsupportedError(FieldjaxError):
    """A construct that fieldjax doesn't implement.

    Wrong, since adjoints by gathers exist for tables with one dimension besides the neighbours:

    >>> from fieldjax import Dimension, as_connectivity
    >>> I, J, Vertex = Dimension("I"), Dimension("J"), Dimension("Vertex")
    >>> as_connectivity({I: 2, J: 2}, Vertex, [[0, 1], [2, 3]]).with_adjoint()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    fieldjax.errors.UnsupportedError: ... has no transpose...

    Fixed: number the rows along one dimension.

    >>> table = as_connectivity({Dimension("Row"): 4}, Vertex, [0, 1, 2, 3]).with_adjoint()
    """
