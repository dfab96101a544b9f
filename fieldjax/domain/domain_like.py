"""What may be written where a domain is wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from fieldjax.domain.dimension import Dimension
from fieldjax.domain.domain import Domain
from fieldjax.domain.unit_range import NamedRange, RangeLike, unit_range
from fieldjax.errors import DomainError

DomainLike: TypeAlias = (
    "Domain | Mapping[Dimension, RangeLike] | Sequence[NamedRange] | Sequence[tuple[Dimension, RangeLike]]"
)


def domain(domain_like: DomainLike) -> Domain:
    """A domain from a mapping or a sequence of dimensions and ranges, or a domain.

    >>> I, J = Dimension("I"), Dimension("J")
    >>> domain({I: 3, J: (1, 2)})
    Domain(I[0:3), J[1:2))
    >>> domain([(I, range(2, 4))])
    Domain(I[2:4))
    """
    if isinstance(domain_like, Domain):
        return domain_like
    if isinstance(domain_like, Mapping):
        return Domain(dims=tuple(domain_like), ranges=tuple(map(unit_range, domain_like.values())))
    if isinstance(domain_like, Sequence) and all(isinstance(p, tuple) and len(p) == 2 for p in domain_like):
        return Domain(*map(named_range, domain_like))
    raise DomainError(f"{domain_like!r} is not a domain", hints=["write domain({Cell: 10, K: (0, 5)})"])


def named_range(pair: tuple[Dimension, RangeLike]) -> NamedRange:
    """A `NamedRange` from a dimension and anything `unit_range` takes."""
    if isinstance(pair, NamedRange):
        return pair
    dim, range_like = pair
    return NamedRange(dim, unit_range(range_like))
