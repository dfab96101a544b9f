"""The masks of a field: which tables' skips make its elements substitutes."""

from __future__ import annotations

from dataclasses import dataclass

from fieldjax.connectivity import Structure, Table, TableView, connectivity_of, identity_of


@dataclass(frozen=True, slots=True)
class FieldMask:
    """A table whose skips are missing elements of a field; `slot` where one local position was chosen.

    Static data of a pytree: it holds the connectivity's interned structure, not its table.
    """

    identity: Structure | TableView
    slot: int | None
    moved: bool = False
    """Whether the rows were read elsewhere since (only where the table has no skips)."""

    @staticmethod
    def of(table: Table, slot: int | None, moved: bool = False) -> FieldMask:
        """The mask of a table of this call."""
        return FieldMask(identity_of(table), slot, moved)

    @property
    def connectivity(self) -> Table:
        """The table, from any live twin of its contents. Raises ConnectivityError when all are gone."""
        return self.identity if isinstance(self.identity, TableView) else connectivity_of(self.identity)
