"""Unions, differences and complements of domains.

They are computed on boxes: tuples of ranges over the same dimensions in canonical order.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from fieldjax.domain.alignment import Box, is_empty_box
from fieldjax.domain.conditions import no_truth_value
from fieldjax.domain.dimension import Dimension, promote_dims
from fieldjax.domain.domain import Domain
from fieldjax.domain.unit_range import EMPTY, UnitRange
from fieldjax.errors import DomainError

Region: TypeAlias = "Domain | DomainUnion"


@dataclass(frozen=True, slots=True)
class DomainUnion:
    """A set of points that is not a hyperrectangle, as disjoint domains over the same dimensions.

    Law: two unions over the same dimensions are equal exactly where they hold the same points. `domains` is
    the canonical partition: maximal slabs along the first dimension, each partitioned along the next.

    >>> I = Dimension("I")
    >>> (I < 2) | (I > 4)
    DomainUnion(Domain(I(-inf:2)), Domain(I[5:inf)))
    """

    domains: tuple[Domain, ...]

    @property
    def dims(self) -> tuple[Dimension, ...]:
        """The dimensions, the same in every part."""
        return self.domains[0].dims

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.dims)

    def __iter__(self) -> Iterator[Domain]:
        return iter(self.domains)

    def __len__(self) -> int:
        return len(self.domains)

    def __getitem__(self, index: int) -> Domain:
        return self.domains[index]

    def __repr__(self) -> str:
        return f"DomainUnion({', '.join(map(repr, self.domains))})"

    def __bool__(self) -> NoReturn:
        raise no_truth_value(repr(self))

    def is_empty(self) -> bool:
        """False: the empty set is a hyperrectangle, hence a `Domain`."""
        return False

    def is_finite(self) -> bool:
        """Whether no range is open."""
        return all(part.is_finite() for part in self.domains)

    def __or__(self, other: Region) -> Region:
        return unite((*self.domains, *_parts(other))) if _is_region(other) else NotImplemented

    __ror__ = __or__

    def __and__(self, other: Region) -> Region:
        if not _is_region(other):
            return NotImplemented
        return unite(left & right for left in self.domains for right in _parts(other))

    __rand__ = __and__

    def __sub__(self, other: Region) -> Region:
        return difference(self, other) if _is_region(other) else NotImplemented

    def __rsub__(self, other: Domain) -> Region:
        return difference(other, self) if _is_region(other) else NotImplemented

    def __invert__(self) -> Region:
        return complement(self)


def unite(domains: Iterable[Domain]) -> Region:
    """The union of one or more domains: a `Domain` where that is a hyperrectangle.

    A dimension that one domain lacks is unbounded there, as for ``&``.
    """
    parts = tuple(domains)
    dims = promote_dims(*(part.dims for part in parts))
    return _from_boxes(dims, [part.broadcast(dims).ranges for part in parts])


def difference(left: Domain | DomainUnion, right: Region) -> Region:
    """The points of `left` that are not in `right`.

    >>> I = Dimension("I")
    >>> difference(I >= 0, I == 3)
    DomainUnion(Domain(I[0:3)), Domain(I[4:inf)))
    """
    dims = promote_dims(left.dims, right.dims)
    boxes = [part.broadcast(dims).ranges for part in _parts(left)]
    for part in _parts(right):
        removed = part.broadcast(dims).ranges
        boxes = [piece for box in boxes for piece in _subtract(box, removed)]
    return _from_boxes(dims, boxes)


def complement(domain: Region) -> Region:
    """Every point that is not in `domain`."""
    return difference(Domain(), domain)


def _is_region(value: object) -> bool:
    return isinstance(value, (Domain, DomainUnion))


def _parts(domain: Region) -> tuple[Domain, ...]:
    return domain.domains if isinstance(domain, DomainUnion) else (domain,)


def _from_boxes(dims: tuple[Dimension, ...], boxes: list[Box]) -> Region:
    domains = tuple(Domain(dims=dims, ranges=ranges) for ranges in _partition(boxes))
    if len(domains) > 1:
        return DomainUnion(domains)
    if domains:
        return domains[0]
    if not dims:
        raise DomainError("nothing is left, and without dimensions there is no empty domain")
    return Domain(dims=dims, ranges=(EMPTY,) * len(dims))


def _partition(boxes: list[Box]) -> tuple[Box, ...]:
    """The canonical partition of a union of boxes: slabs of constant, partitioned cross-section."""
    boxes = [box for box in boxes if not is_empty_box(box)]
    if not boxes or not boxes[0]:
        return tuple(boxes[:1])
    slabs: list[tuple[UnitRange, tuple[Box, ...]]] = []
    cuts = sorted({cut for box in boxes for cut in (box[0].start, box[0].stop)})
    for start, stop in itertools.pairwise(cuts):
        slab = UnitRange(start, stop)
        section = _partition([box[1:] for box in boxes if slab <= box[0]])
        if slabs and slabs[-1][0].stop == start and slabs[-1][1] == section:
            slab = slabs.pop()[0].hull(slab)
        slabs.append((slab, section))
    return tuple((slab, *rest) for slab, section in slabs for rest in section)


def _subtract(box: Box, removed: Box) -> Iterator[Box]:
    """Disjoint boxes that hold the points of `box` outside `removed`: peel dimension after dimension."""
    for axis, (rng, cut) in enumerate(zip(box, removed, strict=True)):
        inside = rng & cut
        if inside.is_empty():
            yield box
            return
        for rest in (UnitRange(rng.start, inside.start), UnitRange(inside.stop, rng.stop)):
            if not rest.is_empty():
                yield (*box[:axis], rest, *box[axis + 1 :])
        box = (*box[:axis], inside, *box[axis + 1 :])
