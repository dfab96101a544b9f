"""How a condition is decided when it is met: by Python, by a guard, or by selecting between both branches.

- A plain bool, and anything that isn't recorded: as Python would.
- A scalar argument of the operator: its outcome is a guard of the recording.
- A value that differs from point to point (in the body of a scan), and a scalar that a foreign `jax.jit`
  traces: both branches are recorded, and `where` selects. In a branch, operands of functions with a
  singular point are replaced, where the branch isn't taken, by that function's safe point, so that values and
  derivatives of what isn't taken stay finite and contribute nothing.
- A field: an error that names `where`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from fieldjax.errors import TracingError, user_location
from fieldjax.frontend.builtins import where
from fieldjax.frontend.containers import flatten, is_data, unflatten
from fieldjax.frontend.mutable import own, refilled
from fieldjax.frontend.predicates import under
from fieldjax.frontend.traced import TracedField
from fieldjax.ir.arithmetic import Arithmetic

Thunk = Callable[[], Any]

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Is": operator.is_,
    "IsNot": operator.is_not,
    "In": lambda x, y: x in y,
    "NotIn": lambda x, y: x not in y,
}


class Undefined(Arithmetic):
    """A name that only one branch assigned. Whoever uses it gets an error that says so."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def _use(self, *_: Any, **__: Any) -> NoReturn:
        raise TracingError(
            f"{self.name} has no value here: only a branch that wasn't taken everywhere assigns it",
            location=user_location(),
            hints=[f"assign {self.name} in every branch, or before the condition"],
        )

    _combine = __call__ = __bool__ = __iter__ = __getitem__ = __getattr__ = _use  # type: ignore[assignment]


def peek(name: str, look: Thunk) -> Any:
    """The value of a variable, or `Undefined` where it has none yet."""
    try:
        return look()
    except NameError:
        return Undefined(name)


def selects(condition: Any) -> bool:
    """Whether both branches of a condition are recorded."""
    if not isinstance(condition, TracedField) or condition.value.dims:
        return False
    guards = condition.scope.guards
    return guards is None or guards.is_traced(condition.value)


def ternary(condition: Any, then: Thunk, otherwise: Thunk) -> Any:
    """`then() if condition else otherwise()`."""
    if not selects(condition):
        return then() if condition else otherwise()
    chosen, other = _both(condition, then, otherwise)
    return _merged(condition, chosen, other, "the two sides of the condition")


def returned(
    condition: Any,
    then: Callable[..., Any],
    otherwise: Callable[..., Any],
    state: Sequence[Any],
    outer: Sequence[Any],
) -> Any:
    """What an `if` returns whose branches end the function.

    `state` are the names that the branches assign or change, `outer` what they change of the function's
    surroundings.
    """
    if not selects(condition):
        return (then if condition else otherwise)(*state)
    _check_unchanged(outer)
    mine, others = ([own(x) for x in state] for _ in range(2))
    return ternary(condition, lambda: then(*mine), lambda: otherwise(*others))


def assigned(
    condition: Any,
    then: Callable[..., Any],
    otherwise: Callable[..., Any],
    state: Sequence[Any],
    outer: Sequence[Any],
) -> tuple[Any, ...]:
    """The values of the names that the branches of an `if` assign or change, after it; `outer` as in `returned`."""
    if not selects(condition):
        return (then if condition else otherwise)(*state)
    _check_unchanged(outer)
    mine, others = ([own(x) for x in state] for _ in range(2))
    after = zip(*_both(condition, lambda: then(*mine), lambda: otherwise(*others)), strict=True)
    joined = []
    for before, a, b, (x, y) in zip(state, mine, others, after, strict=True):
        value = _joined(condition, x, y)
        joined.append(refilled(before, value) if x is a and y is b else value)
    return tuple(joined)


def _check_unchanged(outer: Sequence[Any]) -> None:
    """Raises TracingError where a container from outside of the function would be changed by both branches."""
    if (changed := next((x for x in outer if own(x) is not x), None)) is not None:
        raise TracingError(
            f"a branch changes a {type(changed).__name__} from outside of the function, and the condition differs "
            "from point to point",
            location=user_location(),
            notes=["both branches are recorded, and each may change only what belongs to the function"],
            hints=["pass it to the function, or return what it shall hold"],
        )


def all_of(first: Thunk, *others: Thunk) -> Any:
    """`first() and ...`."""
    value = _condition(first(), "and", "&")
    if not others:
        return value
    if not selects(value):
        return all_of(*others) if value else value
    with under(value):
        rest = all_of(*others)
    return _truth(value) & _truth(rest)


def any_of(first: Thunk, *others: Thunk) -> Any:
    """`first() or ...`."""
    value = _condition(first(), "or", "|")
    if not others:
        return value
    if not selects(value):
        return value if value else any_of(*others)
    with under(~_truth(value)):
        rest = any_of(*others)
    return _truth(value) | _truth(rest)


def negated(x: Any) -> Any:
    """`not x`."""
    return ~_truth(x) if selects(_condition(x, "not", "~")) else not x


def chained(left: Any, kinds: Sequence[str], others: Sequence[Thunk]) -> Any:
    """`left < a < b`: each operand evaluated once."""

    def link(position: int, before: Any) -> Any:
        here = others[position]()
        holds = _COMPARISONS[kinds[position]](before, here)
        last = position + 1 == len(others)
        return holds if last else all_of(lambda: holds, lambda: link(position + 1, here))

    return link(0, left)


def _condition(x: Any, word: str, symbol: str) -> Any:
    """An operand of `and`, `or`, `not`. Raises TracingError for a field."""
    if isinstance(x, TracedField) and x.value.dims:
        raise TracingError(
            f"`{word}` needs one truth value, and a field has one for each element",
            location=user_location(),
            hints=[f"combine fields element by element with `{symbol}`, comparisons in parentheses"],
        )
    return x


def _truth(x: Any) -> Any:
    """Truth as a recorded bool."""
    return x if isinstance(x, bool) or getattr(x, "dtype", None) == np.dtype(bool) else x != 0


def _both(condition: TracedField, then: Thunk, otherwise: Thunk) -> tuple[Any, Any]:
    truth = _truth(condition)
    with under(truth):
        chosen = then()
    with under(~truth):
        other = otherwise()
    return chosen, other


def _joined(condition: TracedField, x: Any, y: Any) -> Any:
    """One variable after both branches."""
    if x is y:
        return x
    missing = next((v for v in (x, y) if isinstance(v, Undefined)), None)
    return missing if missing is not None else _merged(condition, x, y, "a variable after the condition")


def _merged(condition: TracedField, x: Any, y: Any, what: str) -> Any:
    """Leaf by leaf what the condition selects. Raises TracingError where the branches differ in structure."""
    (leaves, tree), (others, other_tree) = flatten(x), flatten(y)
    if tree != other_tree:
        raise TracingError(
            f"{what} would be of different kinds, and the condition differs from point to point",
            location=user_location(),
            notes=[f"one is {type(x).__name__}, the other {type(y).__name__}; containers must match as a whole"],
        )
    return unflatten(tree, [_leaf(condition, a, b, what) for a, b in zip(leaves, others, strict=True)])


def _leaf(condition: TracedField, x: Any, y: Any, what: str) -> Any:
    if x is y:
        return x
    if is_data(x) and is_data(y):
        return where(_truth(condition), x, y)
    if type(x) is type(y) and x == y:
        return x
    raise TracingError(
        f"{what} would be {x!r} or {y!r}, and the condition differs from point to point",
        location=user_location(),
        hints=["let the branches give numbers"],
    )
