"""The pointwise functions: how each computes, its derivative, and a point where both are finite."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Scale = Callable[..., Any]
"""`scale(build, t, result, *operands)`: t times one partial derivative, as recorded values.

A diagonal map is its own transpose, so the same rule serves tangents and cotangents.
"""


@dataclass(frozen=True)
class Function:
    """A function of aligned arrays. `symbol` is its infix form, `safe` a point away from singularities."""

    name: str
    scales: tuple[Scale | None, ...]
    compute: Callable[..., Any] | None = None
    symbol: str | None = None
    inexact: bool = False
    keeps_literals: bool = False
    safe: tuple[float, ...] | None = None
    apart: tuple[int, ...] = ()
    """Operands that keep their own dtype: the condition of a selection, the order of a derivative."""

    @property
    def arity(self) -> int:
        return len(self.scales)

    def __call__(self, xp: Any, *operands: Any) -> Any:
        return (self.compute or (lambda xp, *a: getattr(xp, self.name)(*a)))(xp, *operands)


FUNCTIONS: dict[str, Function] = {}


def define(name: str, *scales: Scale | None, **facts: Any) -> None:
    """Adds a function; None for an operand that carries no derivative."""
    FUNCTIONS[name] = Function(name, scales, **facts)


def special(name: str) -> Callable[..., Any]:
    """A function from scipy.special, or from its JAX twin when the arrays are JAX's."""

    def compute(xp: Any, *operands: Any) -> Any:
        if xp.__name__ == "numpy":
            import numpy as np
            import scipy.special

            return np.asarray(getattr(scipy.special, name)(*operands))
        import jax.scipy.special

        return getattr(jax.scipy.special, name)(*operands)

    return compute


define("add", lambda b, t, r, x, y: t, lambda b, t, r, x, y: t, symbol="+")
define("subtract", lambda b, t, r, x, y: t, lambda b, t, r, x, y: -t, symbol="-")
define("multiply", lambda b, t, r, x, y: t * y, lambda b, t, r, x, y: t * x, symbol="*")
define(
    "divide",
    lambda b, t, r, x, y: t / y,
    lambda b, t, r, x, y: -(t * r / y),
    symbol="/",
    inexact=True,
    safe=(1.0, 1.0),
)
define("floor_divide", None, None, symbol="//", safe=(1.0, 1.0))
define(
    "remainder",
    lambda b, t, r, x, y: t,
    lambda b, t, r, x, y: -(t * b("floor", x / y)),
    symbol="%",
    safe=(1.0, 1.0),
)
define(
    "fmod",
    lambda b, t, r, x, y: t,
    lambda b, t, r, x, y: -(t * b("trunc", x / y)),
    safe=(1.0, 1.0),
)
define(
    "power",
    lambda b, t, r, x, y: t * y * b("power", x, b("where", y == 0, 1, y - 1)),
    lambda b, t, r, x, y: t * r * b("log", b("where", x == 0, 1, x)),
    symbol="**",
    keeps_literals=True,
    safe=(1.0, 1.0),
)
define("first", lambda b, t, r, x, like: t, None, compute=lambda xp, x, like: x)
define("negative", lambda b, t, r, x: -t)
define("positive", lambda b, t, r, x: t)
define("abs", lambda b, t, r, x: t * b("sign", x))
define(
    "minimum",
    lambda b, t, r, x, y: b("where", x < y, t, b("where", x == y, t * 0.5, 0)),
    lambda b, t, r, x, y: b("where", y < x, t, b("where", x == y, t * 0.5, 0)),
)
define(
    "maximum",
    lambda b, t, r, x, y: b("where", x > y, t, b("where", x == y, t * 0.5, 0)),
    lambda b, t, r, x, y: b("where", y > x, t, b("where", x == y, t * 0.5, 0)),
)
define(
    "where",
    None,
    lambda b, t, r, c, x, y: b("where", c, t, 0),
    lambda b, t, r, c, x, y: b("where", c, 0, t),
    apart=(0,),
)

for _name, _symbol in [
    ("less", "<"),
    ("less_equal", "<="),
    ("greater", ">"),
    ("greater_equal", ">="),
    ("equal", "=="),
    ("not_equal", "!="),
    ("bitwise_and", "&"),
    ("bitwise_or", "|"),
    ("bitwise_xor", "^"),
    ("left_shift", "<<"),
    ("right_shift", ">>"),
]:
    define(_name, None, None, symbol=_symbol)
for _name in ["invert", "isfinite", "isinf", "isnan", "floor", "ceil", "trunc", "sign", "logical_not"]:
    define(_name, None)
define("round", None, compute=lambda xp, x: x if getattr(x, "dtype", None) == "bool" else xp.round(x))

define("sin", lambda b, t, r, x: t * b("cos", x), inexact=True)
define("cos", lambda b, t, r, x: -(t * b("sin", x)), inexact=True)
define("tan", lambda b, t, r, x: t * (1 + r * r), inexact=True)
define("arcsin", lambda b, t, r, x: t / b("sqrt", 1 - x * x), inexact=True, safe=(0.0,))
define("arccos", lambda b, t, r, x: -(t / b("sqrt", 1 - x * x)), inexact=True, safe=(0.0,))
define("arctan", lambda b, t, r, x: t / (1 + x * x), inexact=True)
define("sinh", lambda b, t, r, x: t * b("cosh", x), inexact=True)
define("cosh", lambda b, t, r, x: t * b("sinh", x), inexact=True)
define("tanh", lambda b, t, r, x: t * (1 - r * r), inexact=True)
define("arcsinh", lambda b, t, r, x: t / b("sqrt", x * x + 1), inexact=True)
define("arccosh", lambda b, t, r, x: t / b("sqrt", (x - 1) * (x + 1)), inexact=True, safe=(2.0,))
define("arctanh", lambda b, t, r, x: t / (1 - x * x), inexact=True, safe=(0.0,))
define("sqrt", lambda b, t, r, x: t * 0.5 / r, inexact=True, safe=(1.0,))
define("cbrt", lambda b, t, r, x: t / (3 * r * r), inexact=True, safe=(1.0,))
define("exp", lambda b, t, r, x: t * r, inexact=True)
define("expm1", lambda b, t, r, x: t * (r + 1), inexact=True)
define("log", lambda b, t, r, x: t / x, inexact=True, safe=(1.0,))
define("log10", lambda b, t, r, x: t / (x * math.log(10)), inexact=True, safe=(1.0,))
define("log1p", lambda b, t, r, x: t / (1 + x), inexact=True, safe=(0.0,))
define(
    "arctan2",
    lambda b, t, r, y, x: t * x / (x * x + y * y),
    lambda b, t, r, y, x: -(t * y / (x * x + y * y)),
    inexact=True,
    safe=(1.0, 1.0),
)
define(
    "gamma",
    lambda b, t, r, x: t * r * b("polygamma", 0, x),
    compute=special("gamma"),
    inexact=True,
    safe=(1.0,),
)
define(
    "polygamma",
    None,
    lambda b, t, r, n, x: t * b("polygamma", n + 1, x),
    compute=special("polygamma"),
    inexact=True,
    safe=(0.0, 1.0),
    apart=(0,),
)
define(
    "erf",
    lambda b, t, r, x: t * (2 / math.sqrt(math.pi)) * b("exp", -(x * x)),
    compute=special("erf"),
    inexact=True,
)
