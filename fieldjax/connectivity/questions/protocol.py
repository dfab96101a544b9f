"""What inference may ask of a table, whoever answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from fieldjax.domain import Dimension, Domain, UnitRange


@dataclass(frozen=True, slots=True)
class TableFacts:
    """What lowering reads about a part of a table besides its entries; all False where the part is empty."""

    has_skips: bool
    has_all_skip_row: bool
    """Whether some index over the dimensions that aren't LOCAL has only skips."""
    has_valid: bool


class TableQuestions(Protocol):
    """Something that answers for a table: a connectivity, traced or not, or a view that records the answers.

    Positions are absolute. Not for `isinstance`, which would ask everything. A view that records must not be
    a pytree: it would slip through `lax.cond`.
    """

    @property
    def domain(self) -> Domain:
        """Where the table is defined."""
        ...

    @property
    def codomain(self) -> Dimension:
        """The dimension that it points into."""
        ...

    @property
    def skip_value(self) -> int | None:
        """The entry that stands for a missing neighbour, if any does."""
        ...

    @property
    def in_degree(self) -> int:
        """The largest number of entries that point to one element, rounded up to an even number (1 stays)."""
        ...

    @property
    def adjoint_pays(self) -> bool:
        """Whether the table can be transposed and the padded transpose isn't more than 4 times its size."""
        ...

    def inverse_image(self, image_range: UnitRange, within: Domain | None = None, /) -> Domain:
        """Where the table, restricted to entries in `image_range`, is fully defined.

        With `within`, what is asked about is that part of the table alone.

        Raises:
            NarrowingError: that is nowhere, or not a hyperrectangle.
        """
        ...

    def image(self, sub: Domain, /) -> UnitRange:
        """The smallest range with every valid entry of the part of the table on `sub`; empty if none."""
        ...

    def facts(self, sub: Domain, /) -> TableFacts:
        """What is in the part of the table on `sub`."""
        ...
