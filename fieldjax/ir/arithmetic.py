"""Python's arithmetic in terms of named pointwise functions, for fields and for recorded values alike."""

from __future__ import annotations

import abc
from typing import Any


class Arithmetic(abc.ABC):
    """Every operator is one pointwise function of `FUNCTIONS`; equality is elementwise.

    `_combine` returns NotImplemented for an operand that it doesn't know.
    """

    __slots__ = ()

    @abc.abstractmethod
    def _combine(self, function: str, *operands: Any) -> Any:
        """`function` of operands, one of which is `self`."""

    def __neg__(self) -> Any:
        return self._combine("negative", self)

    def __pos__(self) -> Any:
        return self._combine("positive", self)

    def __abs__(self) -> Any:
        return self._combine("abs", self)

    def __invert__(self) -> Any:
        return self._combine("invert", self)

    def __add__(self, other: Any) -> Any:
        return self._combine("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return self._combine("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return self._combine("subtract", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self._combine("subtract", other, self)

    def __mul__(self, other: Any) -> Any:
        return self._combine("multiply", self, other)

    def __rmul__(self, other: Any) -> Any:
        return self._combine("multiply", other, self)

    def __truediv__(self, other: Any) -> Any:
        return self._combine("divide", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._combine("divide", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return self._combine("floor_divide", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._combine("floor_divide", other, self)

    def __mod__(self, other: Any) -> Any:
        return self._combine("remainder", self, other)

    def __rmod__(self, other: Any) -> Any:
        return self._combine("remainder", other, self)

    def __pow__(self, other: Any) -> Any:
        return self._combine("power", self, other)

    def __rpow__(self, other: Any) -> Any:
        return self._combine("power", other, self)

    def __and__(self, other: Any) -> Any:
        return self._combine("bitwise_and", self, other)

    def __rand__(self, other: Any) -> Any:
        return self._combine("bitwise_and", other, self)

    def __or__(self, other: Any) -> Any:
        return self._combine("bitwise_or", self, other)

    def __ror__(self, other: Any) -> Any:
        return self._combine("bitwise_or", other, self)

    def __xor__(self, other: Any) -> Any:
        return self._combine("bitwise_xor", self, other)

    def __rxor__(self, other: Any) -> Any:
        return self._combine("bitwise_xor", other, self)

    def __lt__(self, other: Any) -> Any:
        return self._combine("less", self, other)

    def __le__(self, other: Any) -> Any:
        return self._combine("less_equal", self, other)

    def __gt__(self, other: Any) -> Any:
        return self._combine("greater", self, other)

    def __ge__(self, other: Any) -> Any:
        return self._combine("greater_equal", self, other)

    def __eq__(self, other: object) -> Any:
        return self._combine("equal", self, other)

    def __ne__(self, other: object) -> Any:
        return self._combine("not_equal", self, other)

    def __hash__(self) -> int:
        return id(self)
