"""Conditions on a dimension, such as ``K > 3``: domains that refuse to be used as a truth value."""

from __future__ import annotations

import math
from typing import NoReturn

from fieldjax.domain.dimension import Dimension
from fieldjax.domain.domain import Domain
from fieldjax.domain.unit_range import UnitRange
from fieldjax.errors import DomainError


class Condition(Domain):
    """The domain where a comparison of a dimension with an integer holds.

    Equal to the plain domain in every respect but one: ``bool`` raises, because ``2 <= K < 5`` asks for it
    and would silently drop its first half.
    """

    __slots__ = ()

    def __bool__(self) -> NoReturn:
        raise no_truth_value(str(self))


def no_truth_value(shown: str) -> DomainError:
    """What `bool` of a condition raises."""
    return DomainError(
        f"a condition on a dimension has no truth value: {shown}",
        notes=["a chained comparison such as 2 <= K < 5 asks for one; so do if, and, or, not"],
        hints=["join conditions with & and |: (2 <= K) & (K < 5)"],
    )


def condition(dim: Dimension, start: int | None, stop: int | None) -> Condition:
    """``start <= dim < stop``; None leaves a side open."""
    lower = -math.inf if start is None else start
    upper = math.inf if stop is None else stop
    return Condition(dims=(dim,), ranges=(UnitRange(lower, upper),))
