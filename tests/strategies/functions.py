"""What every pointwise function means for one number, and where it is smooth."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.special

ANY = (-2.0, 2.0)


@dataclass(frozen=True)
class Meaning:
    """A function of Python numbers, the open intervals that its floating operands are taken from, and dtypes."""

    of: Callable[..., Any]
    intervals: tuple[tuple[float, float], ...]
    kinds: str = "fi"
    """f: floating, i: integer, b: bool operands."""
    whole: tuple[int, ...] = ()
    """Operands that are integers whatever the others are."""


def _unary(of: Callable[..., Any], low: float = ANY[0], high: float = ANY[1], **facts: Any) -> Meaning:
    return Meaning(of, ((low, high),), **facts)


def _binary(of: Callable[..., Any], first: Any = ANY, second: Any = ANY, **facts: Any) -> Meaning:
    return Meaning(of, (first, second), **facts)


def _sign(x: Any) -> Any:
    return (x > 0) - (x < 0)


def _polygamma(n: float, x: float) -> float:
    return float(scipy.special.polygamma(n, x))


def _floor_divide(x: Any, y: Any) -> Any:
    return math.floor(x / y) if isinstance(x, float) or isinstance(y, float) else x // y


MEANINGS: dict[str, Meaning] = {
    "add": _binary(lambda x, y: x + y),
    "subtract": _binary(lambda x, y: x - y),
    "multiply": _binary(lambda x, y: x * y),
    "divide": _binary(lambda x, y: x / y, second=(0.4, 2.0)),
    "floor_divide": _binary(_floor_divide, second=(0.4, 2.0)),
    "remainder": _binary(lambda x, y: x % y, second=(0.4, 2.0)),
    "fmod": _binary(math.fmod, second=(0.4, 2.0)),
    "power": _binary(lambda x, y: x**y, first=(0.3, 2.0), kinds="f"),
    "first": _binary(lambda x, y: x),
    "negative": _unary(lambda x: -x),
    "positive": _unary(lambda x: x),
    "abs": _unary(abs),
    "minimum": _binary(min),
    "maximum": _binary(max),
    "where": Meaning(lambda c, x, y: x if c else y, (ANY, ANY, ANY)),
    "less": _binary(lambda x, y: x < y),
    "less_equal": _binary(lambda x, y: x <= y),
    "greater": _binary(lambda x, y: x > y),
    "greater_equal": _binary(lambda x, y: x >= y),
    "equal": _binary(lambda x, y: x == y),
    "not_equal": _binary(lambda x, y: x != y),
    "bitwise_and": _binary(lambda x, y: x & y, kinds="ib"),
    "bitwise_or": _binary(lambda x, y: x | y, kinds="ib"),
    "bitwise_xor": _binary(lambda x, y: x ^ y, kinds="ib"),
    "left_shift": _binary(lambda x, y: x << y, kinds="i", second=(0, 3)),
    "right_shift": _binary(lambda x, y: x >> y, kinds="i", second=(0, 3)),
    "invert": _unary(lambda x: (not x) if isinstance(x, bool) else ~x, kinds="ib"),
    "logical_not": _unary(lambda x: not x, kinds="fib"),
    "isfinite": _unary(math.isfinite),
    "isinf": _unary(math.isinf),
    "isnan": _unary(math.isnan),
    "floor": _unary(math.floor),
    "ceil": _unary(math.ceil),
    "trunc": _unary(math.trunc),
    "round": _unary(round),
    "sign": _unary(_sign),
    "sin": _unary(math.sin),
    "cos": _unary(math.cos),
    "tan": _unary(math.tan, -1.2, 1.2),
    "arcsin": _unary(math.asin, -0.9, 0.9),
    "arccos": _unary(math.acos, -0.9, 0.9),
    "arctan": _unary(math.atan),
    "sinh": _unary(math.sinh),
    "cosh": _unary(math.cosh),
    "tanh": _unary(math.tanh),
    "arcsinh": _unary(math.asinh),
    "arccosh": _unary(math.acosh, 1.2, 3.0),
    "arctanh": _unary(math.atanh, -0.9, 0.9),
    "sqrt": _unary(math.sqrt, 0.2, 2.0),
    "cbrt": _unary(lambda x: math.copysign(abs(x) ** (1 / 3), x), 0.2, 2.0),
    "exp": _unary(math.exp),
    "expm1": _unary(math.expm1),
    "log": _unary(math.log, 0.2, 2.0),
    "log10": _unary(math.log10, 0.2, 2.0),
    "log1p": _unary(math.log1p, -0.8, 2.0),
    "arctan2": _binary(math.atan2, first=(0.2, 2.0)),
    "gamma": _unary(math.gamma, 0.5, 3.0),
    "polygamma": Meaning(_polygamma, ((0, 3), (0.5, 3.0)), kinds="f", whole=(0,)),
    "erf": _unary(math.erf),
}
"""One entry for each function in `fieldjax.ir.operations.functions`; a missing one fails the tests."""


def scalar(x: Any) -> Any:
    """A NumPy scalar as Python's number."""
    return x.item() if isinstance(x, np.generic) else x
