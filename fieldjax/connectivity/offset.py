"""Offsets: names for reading a field elsewhere, resolved by an offset provider."""

from __future__ import annotations

import operator
from dataclasses import dataclass

from fieldjax.domain import Dimension, DimensionKind, Shift
from fieldjax.errors import DimensionError


@dataclass(frozen=True)
class FieldOffset:
    """Reading a field on `source` from `target`: ``f(E2C)`` for a field `f` on cells lives on edges.

    `target` is the new dimension and, for a neighbour table, the LOCAL dimension that counts its slots. With
    one target dimension that is the source, the offset is Cartesian, and ``Ioff[1]`` is ``I + 1``.

    >>> Cell, Edge = Dimension("Cell"), Dimension("Edge")
    >>> E2C = FieldOffset("E2C", source=Cell, target=(Edge, Dimension("E2C", DimensionKind.LOCAL)))
    >>> E2C[1].slot
    1
    >>> FieldOffset("Coff", source=Cell, target=(Cell,))[1]
    Shift(dimension=Dimension('Cell'), offset=1)

    Raises:
        DimensionError: there are no or too many targets, or the second isn't LOCAL.
    """

    value: str
    source: Dimension
    target: tuple[Dimension, ...]

    def __post_init__(self) -> None:
        target = (self.target,) if isinstance(self.target, Dimension) else tuple(self.target)
        object.__setattr__(self, "target", target)
        if not 1 <= len(target) <= 2:
            raise DimensionError(f"the offset {self.value} has {len(target)} target dimensions, not 1 or 2")
        if len(target) == 2 and target[1].kind is not DimensionKind.LOCAL:
            raise DimensionError(
                f"the second target dimension of the offset {self.value} isn't LOCAL: {target[1].value}",
                hints=[f"Dimension({target[1].value!r}, kind=DimensionKind.LOCAL)"],
            )

    @property
    def name(self) -> str:
        """Under which an offset provider knows it."""
        return self.value

    @property
    def is_cartesian(self) -> bool:
        """Whether it shifts along its source dimension."""
        return self.target == (self.source,)

    @property
    def local_dimension(self) -> Dimension | None:
        """The LOCAL dimension that counts the slots of its table."""
        return self.target[1] if len(self.target) == 2 else None

    def __getitem__(self, index: int) -> SlotOffset | Shift:
        """One neighbour: a slot of the table, or a Cartesian shift.

        Raises:
            DimensionError: the offset has no slots, or `index` is negative for one that has.
        """
        try:
            index = operator.index(index)
        except TypeError:
            raise DimensionError(f"the offset {self.value} is indexed by an integer, got {index!r}") from None
        if self.is_cartesian:
            return Shift(self.source, index)
        if self.local_dimension is None:
            raise DimensionError(f"the offset {self.value} has no LOCAL dimension to index")
        if index < 0:
            raise DimensionError(f"{self.value}[{index}] is no neighbour: slots count from 0")
        return SlotOffset(self, index)


@dataclass(frozen=True, slots=True)
class SlotOffset:
    """One slot of an offset's table: ``E2C[1]``."""

    offset: FieldOffset
    slot: int

    def __str__(self) -> str:
        return f"{self.offset.value}[{self.slot}]"
