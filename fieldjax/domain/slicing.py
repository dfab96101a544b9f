"""Slices of domains: relative ones that cut a domain, and those that cut its array."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fieldjax.domain.dimension import show_dims
from fieldjax.domain.unit_range import UnitRange
from fieldjax.errors import DimensionError, DomainError

if TYPE_CHECKING:
    from fieldjax.domain.domain import Domain


class SliceAt:
    """Cuts a domain at relative slices, one for each dimension: ``d.slice_at[2:3, 2:5]``."""

    __slots__ = ("_domain",)

    def __init__(self, domain: Domain) -> None:
        self._domain = domain

    def __getitem__(self, slices: slice | tuple[slice, ...]) -> Domain:
        given = slices if isinstance(slices, tuple) else (slices,)
        own = self._domain
        if not all(isinstance(part, slice) for part in given):
            raise TypeError(f"slice_at takes slices, got {given!r}")
        if len(given) != own.ndim:
            raise DomainError(f"{len(given)} slices do not match the number of dimensions of {own}")
        return own.with_ranges(tuple(rng[part] for rng, part in zip(own.ranges, given, strict=True)))


def slices_of(whole: Domain, sub: Domain) -> tuple[slice, ...]:
    """The slices that read `sub` from an array laid out on `whole`: see `Domain.slices_of`."""
    if sub.dims is not whole.dims and sub.dims != whole.dims:
        raise DimensionError(
            f"an array on {show_dims(whole.dims)} cannot be sliced by {show_dims(sub.dims)}",
            notes=[f"the array lives on {whole}", f"asked for: {sub}"],
        )
    _ = whole.shape  # raises where it is open: no array lives there
    if not all(map(UnitRange.__ge__, whole.ranges, sub.ranges)):
        raise _beyond(whole, sub)
    return tuple([_relative(own, rng) for own, rng in zip(whole.ranges, sub.ranges, strict=True)])


def _relative(own: UnitRange, rng: UnitRange) -> slice:
    # The empty range is (0, 0), wherever the array begins.
    return slice(rng.start - own.start, rng.stop - own.start) if rng.start != rng.stop else slice(0, 0)


def _beyond(whole: Domain, sub: Domain) -> DomainError:
    beyond = [
        f"{dim.value}{rng}"
        for dim, own, rng in zip(whole.dims, whole.ranges, sub.ranges, strict=True)
        if not rng <= own
    ]
    return DomainError(
        f"{' and '.join(beyond)} reaches beyond what is there",
        notes=[f"there: {whole}", f"asked for: {sub}"],
    )
