"""Types of fields in annotations: `Field[Dims[Cell, K], float]`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from fieldjax.domain import Dimension


@dataclass(frozen=True, slots=True)
class Dims:
    """The dimensions of an annotated field: `Dims[Cell, K]`."""

    dims: tuple[Dimension, ...]

    def __class_getitem__(cls, dims: Any) -> Dims:
        return cls(tuple(dims) if isinstance(dims, (tuple, list)) else (dims,))


@dataclass(frozen=True, slots=True, repr=False)
class FieldAnnotation:
    """What `Field[dims, dtype]` is. A type variable in it is filled in by subscription: `CellField[float]`.

    `dims` is None where the annotation says nothing of them. Type variables may stand in for dimensions.
    """

    dims: tuple[Dimension, ...] | None
    dtype: Any

    def has_dims(self, dims: tuple[Dimension, ...]) -> bool:
        """Whether the annotation admits a field with these dimensions."""
        if self.dims is None or not all(isinstance(d, Dimension) for d in self.dims):
            return True
        return set(self.dims) == set(dims)

    def __getitem__(self, dtype: Any) -> FieldAnnotation:
        return FieldAnnotation(self.dims, dtype) if isinstance(self.dtype, TypeVar) else self

    def __or__(self, other: Any) -> Any:
        return Any

    __ror__ = __or__

    def __call__(self, *_: Any, **__: Any) -> Any:
        """Always raises TypeError: annotations make no fields."""
        raise TypeError("Field[...] is for annotations; make fields with as_field")

    def __repr__(self) -> str:
        dims = "..." if self.dims is None else f"[{', '.join(getattr(d, 'value', str(d)) for d in self.dims)}]"
        return f"Field[{dims}, {getattr(self.dtype, '__name__', self.dtype)}]"


def annotation_of(parameters: Any) -> FieldAnnotation:
    """The annotation `Field[parameters]`."""
    dims, dtype = parameters if isinstance(parameters, tuple) and len(parameters) == 2 else (parameters, Any)
    if isinstance(dims, Dims):
        return FieldAnnotation(dims.dims, dtype)
    if isinstance(dims, (list, tuple)) and all(isinstance(d, Dimension) for d in dims):
        return FieldAnnotation(tuple(dims), dtype)
    return FieldAnnotation((dims,) if isinstance(dims, Dimension) else None, dtype)
