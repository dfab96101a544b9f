"""Dimensions, ranges, domains and their algebra: small immutable values, no arrays."""

from fieldjax.domain.conditions import Condition
from fieldjax.domain.dimension import (
    Dimension,
    DimensionKind,
    NamedIndex,
    Shift,
    as_non_staggered,
    canonical_dims,
    check_order,
    flip_staggered,
    is_staggered,
    promote_dims,
    show_dims,
)
from fieldjax.domain.domain import Domain
from fieldjax.domain.domain_like import DomainLike, domain, named_range
from fieldjax.domain.union import DomainUnion, complement, difference, unite
from fieldjax.domain.unit_range import EMPTY, INFINITE, Infinity, NamedRange, RangeLike, UnitRange, unit_range

__all__ = [
    "EMPTY",
    "INFINITE",
    "Condition",
    "Dimension",
    "DimensionKind",
    "Domain",
    "DomainLike",
    "DomainUnion",
    "Infinity",
    "NamedIndex",
    "NamedRange",
    "RangeLike",
    "Shift",
    "UnitRange",
    "as_non_staggered",
    "canonical_dims",
    "check_order",
    "complement",
    "difference",
    "domain",
    "flip_staggered",
    "is_staggered",
    "named_range",
    "promote_dims",
    "show_dims",
    "unit_range",
    "unite",
]
