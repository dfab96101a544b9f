"""`Field`: an array on a domain, over NumPy arrays, JAX arrays and tracers; a pytree whose leaf is the array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.core import Tracer
from jax.extend.core import get_opaque_trace_state

from fieldjax.connectivity import Connectivity
from fieldjax.domain import Dimension, Domain, check_order
from fieldjax.dtypes import require_x64
from fieldjax.embedded import eager
from fieldjax.embedded.annotation import FieldAnnotation, annotation_of
from fieldjax.embedded.masks import FieldMask
from fieldjax.embedded.number import Number
from fieldjax.embedded.unread import Unread
from fieldjax.errors import ArgumentError, DomainError, OwnershipError, user_location
from fieldjax.ir.arithmetic import Arithmetic


class FieldKind(NamedTuple):
    """Where a concrete field lives, its dtype, and which library its array is of. Interned."""

    domain: Domain
    dtype: np.dtype
    library: type

    __hash__ = object.__hash__
    __eq__ = object.__eq__


_kinds: dict[tuple[Domain, np.dtype, type], FieldKind] = {}
MOST_KINDS = 4096


def _interned(domain: Domain, dtype: np.dtype, library: type) -> FieldKind:
    """One object per kind; when there are too many, later ones are new objects, and nothing goes wrong."""
    kind = _kinds.get((domain, dtype, library))
    if kind is None:
        if len(_kinds) >= MOST_KINDS:
            _kinds.clear()
        kind = _kinds.setdefault((domain, dtype, library), FieldKind(domain, dtype, library))
    return kind


class Field(Arithmetic, Number):
    """An array laid out on a domain: `array[i - start, ...]` is the element at position `i`.

    Arithmetic lives on the intersection of the operands' domains; a dimension that one side lacks is
    broadcast. No operation writes into its operands; `field[...] = x` gives the field a new array.

    As a pytree a field has one leaf, its array; the domain is static.
    """

    __slots__ = ("__weakref__", "_array", "_domain", "_kind", "_masks", "_state", "_unread", "_whole")
    __array_priority__ = 100

    def __init__(self, array: Any, domain: Domain, masks: tuple[FieldMask, ...] = ()) -> None:
        check_order(domain.dims)
        if tuple(array.shape) != domain.shape:
            raise DomainError(
                f"an array of shape {tuple(array.shape)} doesn't fill {domain}",
                location=user_location(),
                notes=[f"the domain has shape {domain.shape}"],
            )
        require_x64(np.dtype(array.dtype), "a field")
        self._array, self._domain, self._masks = array, domain, masks
        self._state = get_opaque_trace_state()
        self._kind: FieldKind | None = None
        self._whole: Field | None = None
        self._unread: Unread | None = None

    def __class_getitem__(cls, parameters: Any) -> FieldAnnotation:
        """`Field[Dims[Cell, K], float]`, for annotations."""
        return annotation_of(parameters)

    @classmethod
    def _trusted(cls, array: Any, domain: Domain, masks: tuple[FieldMask, ...], state: Any) -> Field:
        """A field of parts that are known to fit: results of our own programs, and pytrees."""
        field = object.__new__(cls)
        field._array, field._domain, field._masks, field._state = array, domain, masks, state
        field._kind = field._whole = field._unread = None
        return field

    @classmethod
    def _of_kind(cls, array: Any, kind: FieldKind, masks: tuple[FieldMask, ...], state: Any) -> Field:
        """A field of a kind that is known."""
        field = object.__new__(cls)
        field._array, field._domain, field._masks, field._state = array, kind.domain, masks, state
        field._kind, field._whole, field._unread = kind, None, None
        return field

    @property
    def kind(self) -> FieldKind | None:
        """The kind of a concrete field; None for a tracer's, and for one masked along a dimension it has."""
        if self._kind is None and not isinstance(self._array, Tracer) and not self._is_masked():
            self._kind = _interned(self._domain, np.dtype(self._array.dtype), type(self._array))
        return self._kind

    @property
    def ndarray(self) -> Any:
        """The array, as it is: NumPy's, JAX's, or a tracer."""
        if self._unread is not None:
            self._unread.dismiss()
            self._unread = None
        return self._array

    @property
    def operand(self) -> Any:
        """The array as something to compute with. Raises DtypeError like `check`."""
        self.check()
        return self.ndarray

    def check(self) -> None:
        """Raises DtypeError for 64-bit NumPy data while x64 is off: JAX would truncate it without a word."""
        if isinstance(self._array, np.ndarray):
            require_x64(self._array.dtype, "a field")

    def _is_masked(self) -> bool:
        return any(m.slot is None for m in self._masks)

    @property
    def domain(self) -> Domain:
        """Where the field lives."""
        return self._domain

    @property
    def masks(self) -> tuple[FieldMask, ...]:
        """The tables whose skips make elements of this field substitutes."""
        return self._masks

    @property
    def dims(self) -> tuple[Dimension, ...]:
        """The dimensions, in canonical order."""
        return self._domain.dims

    @property
    def dtype(self) -> np.dtype:
        """The element type."""
        return np.dtype(self._array.dtype)

    @property
    def codomain(self) -> type:
        """The element type as a NumPy scalar type (gt4py.next's name)."""
        return self.dtype.type

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return self._domain.shape

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._domain.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    def asnumpy(self, masked: bool = False) -> np.ndarray:
        """The elements as a NumPy array; with `masked`, substitutes of skipped neighbours are masked out."""
        array = np.asarray(self._array, self._array.dtype)  # without elements: an error, not an object
        if not masked:
            return array
        from fieldjax.embedded.show import missing

        return np.ma.masked_array(array, mask=missing(self))

    def as_scalar(self) -> Any:
        """The one element of a field without dimensions, as NumPy's scalar (or a tracer).

        Raises ArgumentError for other fields.
        """
        if self.ndim:
            raise ArgumentError(f"a field on {self.domain} isn't a scalar", location=user_location())
        return self._array if isinstance(self._array, Tracer) else np.asarray(self._array)[()]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = np.asarray(self._array, dtype)
        return np.array(array) if copy else array

    def __reduce__(self) -> tuple[Any, ...]:
        """Copied and pickled, a field belongs to where it is made again."""
        return Field, (self.ndarray, self._domain, self._masks)

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()

    def to_xarray(self, name: str | None = None) -> Any:
        """An `xarray.DataArray` with positions as coordinates; substitutes of skipped neighbours are missing."""
        from fieldjax.embedded.show import to_xarray

        return to_xarray(self, name)

    def __repr__(self) -> str:
        from fieldjax.embedded.show import to_text

        return to_text(self)

    def _repr_html_(self) -> str:
        from fieldjax.embedded.show import to_html

        return to_html(self)

    def __call__(self, *offsets: Any) -> Field:
        """The field read at an offset: `f(V2E)`, `f(V2E[0])`, `f(K + 1)`; several are read one after another."""
        field = self
        for offset in offsets:
            field = eager.shifted(field, offset)
        return field

    def premap(self, *connectivities: Connectivity) -> Field:
        """The field read through one table, or through several at the same time."""
        return eager.premapped(self, connectivities)

    def __getitem__(self, index: Any) -> Any:
        from fieldjax.embedded.slicing import part

        return part(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        from fieldjax.embedded.slicing import with_part

        self.check_rebindable()
        self._rebind(with_part(self, index, value))

    def restrict(self, index: Any) -> Any:
        """`field[index]` under gt4py.next's name."""
        return self[index]

    def take(self, array: Any, domain: Domain) -> None:
        """Takes `array` as the elements on `domain`: what `out=` does.

        A concrete result fills the buffer of a NumPy field; otherwise the field gets a new array, and so
        does the field that it was cut from. Raises OwnershipError like `check_rebindable`.
        """
        self.check_rebindable()
        own, cuts = self._array, self._domain.slices_of(domain)
        if isinstance(own, np.ndarray) and not isinstance(array, Tracer):
            own[cuts] = array
        elif domain == self._domain and own.dtype == array.dtype:
            self._rebind(array)
        else:
            self._rebind(jax.numpy.asarray(own).at[cuts].set(array))

    def check_rebindable(self) -> None:
        """Raises OwnershipError where the field was made under another trace: a tracer would leak into it."""
        if self._state != get_opaque_trace_state():
            raise OwnershipError(
                "this field belongs to another trace and can't be changed here",
                location=user_location(),
                notes=["a change would leak a tracer into a field that outlives the trace"],
                hints=["return the new value, or pass the field as an argument to the traced function"],
            )

    def _rebind(self, array: Any) -> None:
        """Gives the field another array of the same shape and dtype, and the field that it is a part of."""
        assert tuple(array.shape) == self.shape and array.dtype == self._array.dtype, (array, self._domain)
        self._array, self._kind = array, None
        if self._whole is not None:
            self._whole.take(array, self._domain)
        else:
            self._unread = Unread(user_location()) if isinstance(array, Tracer) else None

    def _combine(self, function: str, *operands: Any) -> Any:
        return eager.pointwise(function, *operands) if all(map(eager.accepts, operands)) else NotImplemented

    def astype(self, dtype: Any) -> Field:
        """The same elements in another dtype."""
        return eager.cast(self, dtype)


def _flatten(field: Field) -> tuple[Sequence[Any], Any]:
    field.check()
    return (field.ndarray,), (field._domain, field._masks)


def _flatten_with_keys(field: Field) -> tuple[Any, Any]:
    children, static = _flatten(field)
    return ((jax.tree_util.GetAttrKey("ndarray"), children[0]),), static


def _unflatten(static: tuple[Domain, tuple[FieldMask, ...]], children: Sequence[Any]) -> Field:
    """Children aren't inspected: JAX passes None, specs, tracers and whole fields."""
    return Field._trusted(children[0], static[0], static[1], get_opaque_trace_state())


jax.tree_util.register_pytree_with_keys(Field, _flatten_with_keys, _unflatten, _flatten)  # type: ignore[arg-type]
