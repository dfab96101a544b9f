"""Hyperrectangles of a table by position: what connects domains (absolute) with arrays (counted from 0)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from fieldjax.domain import Dimension, DimensionKind, Domain, UnitRange

Box: TypeAlias = tuple[tuple[int, int], ...]
"""(start, stop) for each axis."""


def whole(shape: Sequence[int]) -> Box:
    """All of an array."""
    return tuple((0, size) for size in shape)


def slices(box: Box) -> tuple[slice, ...]:
    """What reads the box from an array."""
    return tuple(slice(start, stop) for start, stop in box)


def box_of(sub: Domain, domain: Domain) -> Box:
    """The part of `sub` in `domain`. What `sub` lacks is unrestricted, what it adds is ignored."""
    return tuple(_positions(sub, dim, own) for dim, own in zip(domain.dims, domain.ranges, strict=True))


def _positions(sub: Domain, dim: Dimension, own: UnitRange) -> tuple[int, int]:
    part = own if sub.dim_index(dim) is None else own & sub.range_of(dim)
    if part.is_empty():
        return 0, 0
    return int(part.start - own.start), int(part.stop - own.start)


def domain_of(box: Box, domain: Domain) -> Domain:
    """The absolute domain of a box; `domain` itself where the box is all of it."""
    if box == whole(domain.shape):
        return domain
    origins = (int(own.start) for own in domain.ranges)
    ranges = tuple(UnitRange(o + start, o + stop) for o, (start, stop) in zip(origins, box, strict=True))
    return Domain(dims=domain.dims, ranges=ranges)


def part_of(sub: Domain, domain: Domain) -> Domain:
    """The part of `domain` that `sub` asks about, over the dimensions of `domain`."""
    return domain_of(box_of(sub, domain), domain)


def local_axes(domain: Domain) -> tuple[int, ...]:
    """The axes of LOCAL dimensions."""
    return tuple(axis for axis, dim in enumerate(domain.dims) if dim.kind is DimensionKind.LOCAL)


def growth_order(domain: Domain) -> tuple[int, ...]:
    """All axes, LOCAL dimensions first, then the others in domain order."""
    local = local_axes(domain)
    return (*local, *(axis for axis in range(domain.ndim) if axis not in local))
