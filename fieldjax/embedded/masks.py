"""The masks of a field: which tables' skips make its elements substitutes."""

from __future__ import annotations

from dataclasses import dataclass
from fieldjax.connectivity import Connectivity, Structure, connectivity_of


@dataclass(frozen=True, slots=True)
class FieldMask:
    """A table whose skips are missing elements of a field; `slot` where one local position was chosen.

    Static data of a pytree: it holds the connectivity's interned structure, not its table.
    """

    structure: Structure
    slot: int | None

    @staticmethod
    def of(connectivity: Connectivity, slot: int | None) -> FieldMask:
        """The mask of a connectivity of this call."""
        return FieldMask(connectivity.structure.replace(has_adjoint=False), slot)

    @property
    def connectivity(self) -> Connectivity:
        """The connectivity, from any live twin of its table. Raises ConnectivityError when all are gone."""
        return connectivity_of(self.structure)
