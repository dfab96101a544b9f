"""What a recorded value is: a field, a scalar (a field without dimensions), or a neighbour table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fieldjax.domain import Dimension, DimensionKind


@dataclass(frozen=True, slots=True)
class FieldType:
    """Dimensions (in canonical order) and dtype of a field; `()` for a scalar.

    `weak` marks a value made of Python literals and scalars only: it takes the dtype of what it meets.
    """

    dims: tuple[Dimension, ...]
    dtype: np.dtype
    weak: bool = False

    @property
    def local_dims(self) -> tuple[Dimension, ...]:
        return tuple(d for d in self.dims if d.kind is DimensionKind.LOCAL)

    def __str__(self) -> str:
        dtype = f"{self.dtype}{'*' if self.weak else ''}"
        return f"{dtype}[{', '.join(d.value for d in self.dims)}]" if self.dims else dtype


@dataclass(frozen=True, slots=True)
class TableType:
    """A neighbour table: the dimensions that it is indexed by, the dimension that it points into."""

    dims: tuple[Dimension, ...]
    codomain: Dimension

    @property
    def local_dimension(self) -> Dimension | None:
        return next((d for d in self.dims if d.kind is DimensionKind.LOCAL), None)

    def __str__(self) -> str:
        return f"table[{', '.join(d.value for d in self.dims)} -> {self.codomain.value}]"


Type = FieldType | TableType
