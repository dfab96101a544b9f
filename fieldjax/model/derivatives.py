"""Derivatives of recorded values, recorded: reverse and forward, to any order, since the result is recorded too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fieldjax.dtypes import is_floating
from fieldjax.errors import ArgumentError, DtypeError, user_location
from fieldjax.ir.build import literal, match
from fieldjax.ir.derivative import pull, push
from fieldjax.ir.graph import Value, topological
from fieldjax.ir.operations.whole import or_zero
from fieldjax.model.recorder import Recording
from fieldjax.model.variable import Variable


def derivative(of: Any, wrt: Any, *, loop: bool = True, elementwise: bool = False) -> Any:
    """The derivative of a recorded value, recorded in reverse mode.

    `of` a scalar: structured like `wrt`, fields on the domain of the field. Otherwise a plain array of shape
    `of.shape + wrt.shape`, one row for each element of `of`: computed by a recorded loop, or at once (`loop=False`).
    `elementwise=True` takes it that each element of `of` depends on its own element of `wrt` only, and gives that
    diagonal. Lists give dicts: by `wrt`, by `of`, by (`of`, `wrt`). Where no path leads the derivative is zero.

    Raises DtypeError for what isn't floating-point, ArgumentError for what isn't recorded.

    >>> import fieldjax as fj
    >>> with fj.record() as model:
    ...     x = model.input("x", 3.0)
    ...     first = fj.derivative(x * x * x, x)
    ...     model.output("first", first)
    ...     model.output("second", fj.derivative(first, x))
    >>> {name: float(value) for name, value in model.run().items()}
    {'first': 27.0, 'second': 18.0}
    """
    ofs, wrts = _listed(of), _listed(wrt)
    recording = _recording(ofs, wrts)
    found: dict[Any, Variable] = {}
    for value in ofs:
        rows = _one(recording, value, wrts, loop, elementwise)
        found.update({_key(of, wrt, value, w): r for w, r in zip(wrts, rows, strict=True)})
    return found if isinstance(of, (list, tuple)) or isinstance(wrt, (list, tuple)) else next(iter(found.values()))


def _listed(x: Any) -> list[Any]:
    return list(x) if isinstance(x, (list, tuple)) else [x]


def _key(of: Any, wrt: Any, value: Variable, with_respect_to: Variable) -> Any:
    if not isinstance(of, (list, tuple)):
        return with_respect_to
    return (value, with_respect_to) if isinstance(wrt, (list, tuple)) else value


def _recording(*groups: Sequence[Any]) -> Recording:
    for x in (x for group in groups for x in group):
        if not isinstance(x, Variable):
            raise ArgumentError(f"only recorded values have recorded derivatives, not {x!r}", location=user_location())
        if not is_floating(x.dtype):
            raise DtypeError(f"{x!r} is {x.dtype} and has no derivative", location=user_location())
    if not all(groups):
        raise ArgumentError("no value is given to differentiate, or to differentiate by", location=user_location())
    return groups[0][0].recorder


def _one(recording: Recording, of: Variable, wrts: Sequence[Variable], loop: bool, elementwise: bool) -> list[Variable]:
    value, asked = recording.value(of), [recording.value(w) for w in wrts]
    if value.dims and not elementwise:
        from fieldjax.model.jacobian import jacobian

        return jacobian(recording, value, asked, loop)
    seed = literal(np.ones((), value.field_type.dtype)[()])
    return cotangents(recording, [(value, match(seed, value) if value.dims else seed)], asked)


def cotangents(recording: Recording, seeds: Sequence[tuple[Value, Value]], wrt: Sequence[Value]) -> list[Variable]:
    """The cotangents of `wrt` for (value, cotangent) pairs, recorded."""
    pulled = pull(topological([v for v, _ in seeds]), seeds, wrt)
    return recording.add_all([or_zero(c, like) for c, like in zip(pulled, wrt, strict=True)])


def vjp(outputs: Any, cotangents_: Any, wrt: Any) -> Any:
    """The transposed derivative of `outputs` applied to cotangents of them: the cotangents of `wrt`, recorded.

    `outputs` and `cotangents_` are values, or lists of equal length; a list `wrt` gives a dict. A cotangent lives where
    its output does, or is a scalar that counts for every element; ArgumentError for others.
    """
    ofs, seeds, wrts = _listed(outputs), _listed(cotangents_), _listed(wrt)
    recording = _recording(ofs, wrts)
    pairs = [(recording.value(v), _seed(recording, v, s)) for v, s in _pairs("outputs", ofs, seeds)]
    found = cotangents(recording, pairs, [recording.value(w) for w in wrts])
    return dict(zip(wrts, found, strict=True)) if isinstance(wrt, (list, tuple)) else found[0]


def jvp(outputs: Any, wrt: Any, tangents: Any) -> Any:
    """The derivative of `outputs` along tangents of `wrt`, recorded in forward mode.

    `wrt` and `tangents` are values, or lists of equal length; a list of outputs gives a dict. A tangent lives where its
    value does, or is a scalar that counts for every element; ArgumentError for others.
    """
    ofs, wrts, seeds = _listed(outputs), _listed(wrt), _listed(tangents)
    recording = _recording(ofs, wrts)
    values = [recording.value(v) for v in ofs]
    given = {recording.value(w): _seed(recording, w, t) for w, t in _pairs("values", wrts, seeds)}
    pushed = push(topological(values), given)
    tangent = recording.add_all([or_zero(pushed.get(v), v) for v in values])
    return dict(zip(ofs, tangent, strict=True)) if isinstance(outputs, (list, tuple)) else tangent[0]


def hessian(of: Any, wrt: Any, *, loop: bool = True) -> Any:
    """The second derivative of a scalar: a plain array of shape `wrt.shape + wrt.shape` (a scalar for a scalar)."""
    return derivative(derivative(of, wrt), wrt, loop=loop)


def _pairs(what: str, values: Sequence[Any], seeds: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Each value with its seed. Raises ArgumentError where one of them has no other."""
    if len(values) != len(seeds):
        raise ArgumentError(f"there are {len(values)} {what} for {len(seeds)} seeds", location=user_location())
    return list(zip(values, seeds, strict=True))


def _seed(recording: Recording, like: Variable, seed: Any) -> Value:
    """The seed as a value like `like`; a scalar counts for every element. Raises ArgumentError for another domain."""
    x = recording.variable(seed)
    value, given = recording.value(like), x.value
    if given.dims and (given.dims != value.dims or x.domain != like.domain):
        raise ArgumentError(
            f"a seed of {like!r} is like it, or a scalar; not {x!r}",
            location=user_location(),
        )
    return given if given.dims == value.dims and given.type == value.type else match(given, value)
