"""Expressions over fields, drawn at random: each form says itself to fieldjax and to the naive reference.

A new operation joins every property test by one subclass of `Form` below.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st

import fieldjax as fj
from fieldjax.domain import Dimension, DimensionKind
from tests.strategies import naive
from tests.strategies.meshes import HORIZONTAL, OFFSETS, SLOTS, TABLE_OVER, Edge, I, K, World
from tests.strategies.naive import Naive, in_order

MOST_DIMS = 4
Make = Callable[..., "Expression"]


@dataclass(frozen=True, eq=False)
class Expression:
    """One form applied to expressions; dimensions and dtype are known before any mesh is."""

    form: Form
    operands: tuple[Expression, ...]
    dims: tuple[Dimension, ...]
    like: Any
    detail: Any = None

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(self.like.dtype)

    @property
    def local(self) -> tuple[Dimension, ...]:
        return tuple(d for d in self.dims if d.kind is DimensionKind.LOCAL)

    def parts(self) -> list[Expression]:
        """This and everything below it."""
        return [self, *(part for operand in self.operands for part in operand.parts())]

    def tables(self) -> set[str]:
        """The names of the tables that are read."""
        return {name for part in self.parts() for name in part.form.tables(part)}

    def inputs(self) -> list[Expression]:
        """The fields at the bottom, each once."""
        return list(dict.fromkeys(p for p in self.parts() if isinstance(p.form, Input)))

    def say(self, inputs: Mapping[Expression, Any]) -> Any:
        """In fieldjax, with something for each input."""
        return _said(self, dict(inputs))

    def mean(self, inputs: Mapping[Expression, Naive], world: World) -> dict[Expression, Naive]:
        """This and everything below it, by the naive reference."""
        known = dict(inputs)
        _meant(self, known, world)
        return known

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # hypothesis asks for this first
        printer.text(repr(self))

    def __repr__(self) -> str:
        below = ", ".join(map(repr, self.operands))
        return self.form.show(self, below)


def _said(expression: Expression, known: dict[Expression, Any]) -> Any:
    if expression not in known:
        operands = [_said(x, known) for x in expression.operands]
        known[expression] = expression.form.say(expression, operands)
    return known[expression]


def _meant(expression: Expression, known: dict[Expression, Naive], world: World) -> Naive:
    if expression not in known:
        operands = [_meant(x, known, world) for x in expression.operands]
        known[expression] = expression.form.mean(expression, operands, world)
    return known[expression]


class Form:
    """A kind of expression."""

    def draw(self, draw: Any, make: Make) -> Expression | None:
        """One such expression over others; None where it doesn't fit what was drawn."""
        raise NotImplementedError

    def say(self, expression: Expression, operands: Sequence[Any]) -> Any:
        """In fieldjax."""
        raise NotImplementedError

    def mean(self, expression: Expression, operands: Sequence[Naive], world: World) -> Naive:
        """By the naive reference."""
        raise NotImplementedError

    def tables(self, expression: Expression) -> set[str]:
        """The tables that it reads."""
        return set()

    def show(self, expression: Expression, below: str) -> str:
        """For people."""
        detail = "" if expression.detail is None else f"[{expression.detail}]"
        return f"{type(self).__name__}{detail}({below})"

    def of(self, *operands: Expression, dims: Any, like: Any, detail: Any = None) -> Expression | None:
        """An expression of this form, unless it has too many dimensions."""
        dims = in_order(dims)
        return Expression(self, operands, dims, like, detail) if len(dims) <= MOST_DIMS else None


class Input(Form):
    """A field argument."""

    def show(self, expression: Expression, below: str) -> str:
        return f"{expression.dtype.name}[{', '.join(d.value for d in expression.dims)}]#{id(expression) % 997}"


class LiteralOf(Form):
    """A Python number."""

    def draw(self, draw: Any, make: Make) -> Expression | None:
        x = draw(st.sampled_from([2, -1, 0.5, -1.5, 3.0]))
        return self.of(dims=(), like=naive.of_literal(x).like, detail=x)

    def say(self, expression: Expression, operands: Sequence[Any]) -> Any:
        return expression.detail

    def mean(self, expression: Expression, operands: Sequence[Naive], world: World) -> Naive:
        return naive.of_literal(expression.detail)


@functools.cache
def _like(function: str, *kinds: tuple[np.dtype, bool]) -> Any:
    abstract = [jax.ShapeDtypeStruct((), dtype, weak_type=weak) for dtype, weak in kinds]
    return jax.eval_shape(getattr(jnp, function), *abstract)


def like_of(function: str, operands: Sequence[Any]) -> Any:
    """Dtype and weakness of `jax.numpy`'s function of such operands."""
    return _like(function, *((np.dtype(x.like.dtype), bool(x.like.weak_type)) for x in operands))


def common(operands: Sequence[Any]) -> np.dtype:
    """The dtype in which `jax.numpy` computes."""
    return np.dtype(jnp.result_type(*(_proxy(np.dtype(x.like.dtype), bool(x.like.weak_type)) for x in operands)))


@functools.cache
def _proxy(dtype: np.dtype, weak: bool) -> Any:
    return _weak(dtype) if weak else np.zeros((), dtype)


def _weak(dtype: np.dtype) -> Any:
    return 0.0 if dtype.kind == "f" else 0


UNARY = {
    "sin": np.sin,
    "tanh": np.tanh,
    "arctan": np.arctan,
    "abs": np.abs,
    "neg": np.negative,
    "floor": np.floor,
}
BINARY = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "minimum": np.minimum, "maximum": np.maximum}
SPELLED = {"neg": "negative"}
INFIX = {"add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b}


class Unary(Form):
    """A function of one operand."""

    def draw(self, draw: Any, make: Make) -> Expression | None:
        x, name = make(), draw(st.sampled_from(sorted(UNARY)))
        if x.dtype == bool or not (x.dims or isinstance(x.form, Input)):
            return None
        return self.of(x, dims=x.dims, like=like_of(SPELLED.get(name, name), [x]), detail=name)

    def say(self, expression: Expression, operands: Sequence[Any]) -> Any:
        return getattr(fj, expression.detail)(*operands)

    def mean(self, expression: Expression, operands: Sequence[Naive], world: World) -> Naive:
        floats = expression.detail not in ("abs", "neg")
        return naive.pointwise(
            UNARY[expression.detail], expression.like, operands, expression.dtype if floats else None
        )


class Binary(Form):
    """A function of two operands, or of one with itself."""

    def draw(self, draw: Any, make: Make) -> Expression | None:
        x = make()
        y = x if draw(st.integers(0, 5)) == 5 else make(beside=x)
        name = draw(st.sampled_from(sorted(BINARY)))
        if bool in (x.dtype, y.dtype) or not (x.dims or y.dims):
            return None
        return self.of(x, y, dims={*x.dims, *y.dims}, like=like_of(name, [x, y]), detail=name)

    def say(self, expression: Expression, operands: Sequence[Any]) -> Any:
        spelled = INFIX.get(expression.detail) or getattr(fj, expression.detail)
        return spelled(*operands)

    def mean(self, expression: Expression, operands: Sequence[Naive], world: World) -> Naive:
        return naive.pointwise(BINARY[expression.detail], expression.like, operands, common(operands))


class Select(Form):
    """`where(x < y, a, b)`."""

    def draw(self, draw: Any, make: Make) -> Expression | None:
        x = make()
        y, a = make(beside=x), make(beside=x)
        b = make(beside=a)
        operands = (x, y, a, b)
        if any(o.dtype == bool for o in operands) or not (x.dims or y.dims):
            return None
        like = jax.eval_shape(lambda a, b: jnp.where(True, a, b), *(_abstract(o) for o in (a, b)))
        return self.of(*operands, dims={d for o in operands for d in o.dims}, like=like)

    def say(self, expression: Expression, operands: Sequence[Any]) -> Any:
        x, y, a, b = operands
        return fj.where(x < y, a, b)

    def mean(self, expression: Expression, operands: Sequence[Naive], world: World) -> Naive:
        compared = common(operands[:2])

        def choose(x: Any, y: Any, a: Any, b: Any) -> Any:
            return a if np.asarray(x).astype(compared) < np.asarray(y).astype(compared) else b

        return naive.pointwise(choose, expression.like, operands)


def _abstract(x: Any) -> Any:
    return jax.ShapeDtypeStruct((), x.like.dtype, weak_type=x.like.weak_type)


class CastTo(Form):
    """`astype`."""

    def draw(self, draw: Any, make: Make) -> Expression | None:
        x, dtype = make(), draw(st.sampled_from(["float32", "float64"]))
        if not x.dims:
            return None
        return self.of(x, dims=x.dims, like=jax.ShapeDtypeStruct((), dtype), detail=dtype)

    def say(self, expression: Expression, operands: Sequence[Any]) -> Any:
        return fj.astype(operands[0], expression.detail)

    def mean(self, expression: Expression, operands: Sequence[Naive], world: World) -> Naive:
        return naive.pointwise(lambda x: x, expression.like, operands)


class Read(Form):
    """`f(V2E)`, `f(V2E[0])`, `f(E2P)`."""

    def draw(self, draw: Any, make: Make) -> Expression | None:
        name = draw(st.sampled_from(sorted(OFFSETS)))
        offset = OFFSETS[name]
        x = make(on=offset.source)
        if offset.source not in x.dims or offset.local_dimension in x.dims:
            return None
        slots = [None, None] if offset.local_dimension is None else [None, *range(SLOTS[offset.local_dimension])]
        slot = draw(st.sampled_from(slots))
        brought = {d for d in offset.target if slot is None or d != offset.local_dimension}
        return self.of(x, dims={*x.dims} - {offset.source} | brought, like=x.like, detail=(name, slot))

    def tables(self, expression: Expression) -> set[str]:
        return {expression.detail[0]}

    def say(self, expression: Expression, operands: Sequence[Any]) -> Any:
        name, slot = expression.detail
        return operands[0](OFFSETS[name] if slot is None else OFFSETS[name][slot])

    def mean(self, expression: Expression, operands: Sequence[Naive], world: World) -> Naive:
        name, slot = expression.detail
        return naive.gather(operands[0], [world.tables[name].naive], [slot])


class ShiftBy(Form):
    """`f(K + 1)`."""

    def draw(self, draw: Any, make: Make) -> Expression | None:
        dim = draw(st.sampled_from([K, K, I, Edge]))
        x, offset = make(on=dim), draw(st.sampled_from([-2, -1, 1, 2]))
        return self.of(x, dims=x.dims, like=x.like, detail=(dim, offset)) if dim in x.dims else None

    def say(self, expression: Expression, operands: Sequence[Any]) -> Any:
        dim, offset = expression.detail
        return operands[0](dim + offset)

    def mean(self, expression: Expression, operands: Sequence[Naive], world: World) -> Naive:
        dim, offset = expression.detail
        return naive.shift(operands[0], dim, offset, dim)


REDUCTIONS = {
    "sum": fj.neighbor_sum,
    "mean": fj.neighbor_mean,
    "product": fj.neighbor_product,
    "max": fj.max_over,
    "min": fj.min_over,
}


class ReduceOver(Form):
    """`neighbor_sum` and the like, over whatever has a LOCAL dimension."""

    def draw(self, draw: Any, make: Make) -> Expression | None:
        x = make(local=True)
        if not x.local or x.dtype == bool:
            return None
        axis, kind = draw(st.sampled_from(x.local)), draw(st.sampled_from(sorted(REDUCTIONS)))
        if kind == "mean" and x.dtype.kind != "f":
            return None
        return self.of(x, dims={*x.dims} - {axis} | self._rows(axis, x), like=x.like, detail=(kind, axis))

    def _rows(self, axis: Dimension, x: Expression) -> set[Dimension]:
        """A sparse field is read where its table says; that brings the table's rows."""
        return {OFFSETS[TABLE_OVER[axis]].target[0]} if not carries_mask(x, axis) else set()

    def tables(self, expression: Expression) -> set[str]:
        return {TABLE_OVER[expression.detail[1]]}

    def say(self, expression: Expression, operands: Sequence[Any]) -> Any:
        kind, axis = expression.detail
        return REDUCTIONS[kind](operands[0], axis=axis)

    def mean(self, expression: Expression, operands: Sequence[Naive], world: World) -> Naive:
        kind, axis = expression.detail
        return naive.reduce(kind, operands[0], axis, world.tables[TABLE_OVER[axis]].naive)


def carries_mask(x: Expression, axis: Dimension) -> bool:
    """Whether a table has been read on the way to `x` that left its LOCAL dimension there."""
    if axis not in x.dims or isinstance(x.form, Input):
        return False
    if isinstance(x.form, Read) and OFFSETS[x.detail[0]].local_dimension == axis and x.detail[1] is None:
        return True
    return any(carries_mask(operand, axis) for operand in x.operands)


class SlotOf(Form):
    """`sparse[V2EDim(0)]`, written `sparse(V2EDim(0))` in operators."""

    def draw(self, draw: Any, make: Make) -> Expression | None:
        x = make(local=True)
        if not x.local:
            return None
        local = draw(st.sampled_from(x.local))
        slot = draw(st.integers(0, SLOTS[local] - 1))
        return self.of(x, dims={*x.dims} - {local}, like=x.like, detail=(local, slot))

    def say(self, expression: Expression, operands: Sequence[Any]) -> Any:
        local, slot = expression.detail
        return operands[0](local(slot))

    def mean(self, expression: Expression, operands: Sequence[Naive], world: World) -> Naive:
        return naive.at_slot(operands[0], *expression.detail)


class Widened(Form):
    """`broadcast`, then bounded by something that has the new dimension."""

    def draw(self, draw: Any, make: Make) -> Expression | None:
        x, y = make(), make()
        dims = in_order({*x.dims, *y.dims})
        if x.local or y.local or not x.dims or bool in (x.dtype, y.dtype):
            return None
        return self.of(x, y, dims=dims, like=like_of("multiply", [x, y]), detail=dims)

    def say(self, expression: Expression, operands: Sequence[Any]) -> Any:
        return fj.broadcast(operands[0], expression.detail) * operands[1]

    def mean(self, expression: Expression, operands: Sequence[Naive], world: World) -> Naive:
        wide = naive.broadcast(operands[0], expression.detail)
        return naive.pointwise(np.multiply, expression.like, [wide, operands[1]], common(operands))

    def show(self, expression: Expression, below: str) -> str:
        return f"Widened({below})"


INPUT = Input()
FORMS: tuple[Form, ...] = (
    *(Unary(), Binary(), Binary(), Select(), CastTo(), Read(), Read(), ShiftBy()),
    *(ReduceOver(), ReduceOver(), SlotOf(), Widened()),
)


@st.composite
def input_fields(draw: Any, on: Dimension | None = None, local: bool = False, dtypes: Any = ("float64",)) -> Expression:
    """A field argument; sparse where it is `local`."""
    if local:
        axis = draw(st.sampled_from(sorted(SLOTS, key=str)))
        dims = {axis, OFFSETS[TABLE_OVER[axis]].target[0]}
    else:
        dims = {on or draw(st.sampled_from(HORIZONTAL))}
    if draw(st.integers(0, 2)) == 0:
        dims.add(K)
    like = jax.ShapeDtypeStruct((), np.dtype(draw(st.sampled_from(dtypes))))
    return Expression(INPUT, (), in_order(dims), like)


@st.composite
def expressions(draw: Any, depth: int = 4, dtypes: Any = ("float64",), forms: Sequence[Form] = FORMS) -> Expression:
    """A tree of forms over inputs and literals, with operands used several times."""
    made: list[Expression] = []

    def make(depth: int, on: Any = None, local: bool = False, beside: Expression | None = None) -> Expression:
        if beside is not None and draw(st.integers(0, 3)) == 3:
            found = LiteralOf().draw(draw, make)
            assert found is not None
            return found
        fitting = [x for x in made if (on is None or on in x.dims) and (not local or x.local)]
        if fitting and draw(st.integers(0, 4)) == 4:
            return draw(st.sampled_from(fitting))
        if local and depth and draw(st.booleans()):
            found = Read().draw(draw, functools.partial(make, depth - 1))
        elif depth and draw(st.integers(0, 5)):
            found = draw(st.sampled_from(forms)).draw(draw, functools.partial(make, depth - 1))
        else:
            found = None
        if found is None or (on is not None and on not in found.dims) or (local and not found.local):
            found = draw(input_fields(on, local, dtypes))
        made.append(found)
        return found

    top = draw(st.sampled_from(forms)).draw(draw, functools.partial(make, depth - 1))
    return top if top is not None else make(depth)
