"""`CartesianConnectivity`: a neighbour table that need not be stored, because it is affine."""

from __future__ import annotations

from dataclasses import dataclass

import jax

from fieldjax.connectivity.questions.protocol import TableFacts
from fieldjax.domain import INFINITE, Dimension, Domain, NamedRange, Shift, UnitRange
from fieldjax.errors import DimensionError


@jax.tree_util.register_static
@dataclass(frozen=True)
class CartesianConnectivity:
    """Leads from index `i` along `dimension` to ``i + offset`` along `codomain` (by default the same).

    >>> I = Dimension("I")
    >>> CartesianConnectivity(I, 2).inverse_image(UnitRange(0, 5))
    Domain(I[-2:3))
    """

    dimension: Dimension
    offset: int = 0
    codomain: Dimension = None  # type: ignore[assignment]  # set to `dimension` below

    def __post_init__(self) -> None:
        if self.codomain is None:
            object.__setattr__(self, "codomain", self.dimension)

    @classmethod
    def for_translation(cls, dimension: Dimension, offset: int) -> CartesianConnectivity:
        """Shifted along one dimension."""
        return cls(dimension, offset)

    @classmethod
    def for_relocation(cls, old: Dimension, new: Dimension) -> CartesianConnectivity:
        """Makes a field on `old` one on `new`, index by index."""
        return cls(new, codomain=old)

    @classmethod
    def from_shift(cls, shift: Shift) -> CartesianConnectivity:
        """What ``I + 1`` or ``I - 0.5`` means."""
        return cls(shift.dimension, shift.index_offset, shift.codomain)

    @property
    def domain_dim(self) -> Dimension:
        """`dimension`, as gt4py.next calls it."""
        return self.dimension

    @property
    def domain(self) -> Domain:
        """Unbounded."""
        return Domain(dims=(self.dimension,), ranges=(INFINITE,))

    @property
    def skip_value(self) -> None:
        """None: nothing is missing."""
        return None

    @property
    def in_degree(self) -> int:
        """1: no two indices lead to the same one."""
        return 1

    @property
    def adjoint_pays(self) -> bool:
        """False: the adjoint of a shift is the opposite shift."""
        return False

    def inverse_image(self, image_range: UnitRange | NamedRange) -> Domain:
        """The range, moved back.

        Raises:
            DimensionError: a named range isn't along the codomain.
        """
        if isinstance(image_range, NamedRange):
            if image_range.dim != self.codomain:
                raise DimensionError(f"{self} doesn't lead to {image_range}")
            image_range = image_range.unit_range
        return Domain(dims=(self.dimension,), ranges=(image_range - self.offset,))

    def image(self, sub: Domain) -> UnitRange:
        """The range of `sub` along the dimension, moved; unbounded where `sub` lacks it."""
        known = sub.dim_index(self.dimension) is not None
        return sub.range_of(self.dimension) + self.offset if known else INFINITE

    def facts(self, sub: Domain) -> TableFacts:
        """There are no skips."""
        return TableFacts(False, False, not sub.restrict((self.dimension,)).is_empty())
