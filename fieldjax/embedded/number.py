"""What a field without dimensions can be taken for: one number of Python."""

from __future__ import annotations

import abc
from typing import Any, NoReturn

from fieldjax.domain import Domain
from fieldjax.errors import ArgumentError, user_location


class Number(abc.ABC):
    """`bool(f)`, `float(f)` and `int(f)` of a field without dimensions. For others they are errors."""

    __slots__ = ()

    @property
    @abc.abstractmethod
    def domain(self) -> Domain:
        """Where the field lives."""

    @abc.abstractmethod
    def as_scalar(self) -> Any:
        """The one element of a field without dimensions."""

    def __bool__(self) -> bool:
        return bool(self._only("truth value", "choose element by element: `where(condition, a, b)`"))

    def __float__(self) -> float:
        return float(self._only("value as a float", "take one element: `f[0]`, `f[Cell(3)]`"))

    def __int__(self) -> int:
        return int(self._only("value as an int", "take one element: `f[0]`, `f[Cell(3)]`"))

    def _only(self, what: str, hint: str) -> Any:
        return self._none_has(what, hint) if self.domain.ndim else self.as_scalar()

    def _none_has(self, what: str, hint: str) -> NoReturn:
        raise ArgumentError(
            f"a field has no {what}",
            location=user_location(),
            notes=[f"it holds {self.domain.size} elements on {self.domain}"],
            hints=[hint],
        )
