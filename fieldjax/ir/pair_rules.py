"""How JAX differentiates sums over pairs: by sums over pairs, to any order, forward and reverse."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
from jax.custom_derivatives import SymbolicZero

from fieldjax.connectivity import Transposed
from fieldjax.ir.arrays import Arrays
from fieldjax.ir.linear import linear
from fieldjax.ir.links import TableArrays
from fieldjax.ir.pairs import PairSum


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def pair_sum(arrays: Arrays, of: PairSum, operands: tuple[Any, ...], tables: TableArrays) -> Any:
    """The sum `of` the operands. `arrays` is compared by value, as `of` is."""
    return of(arrays, operands, tables)


def _jvp(arrays: Arrays, of: PairSum, primals: Any, tangents: Any) -> tuple[Any, Any]:
    operands, tables = primals
    result = pair_sum(arrays, of, operands, tables)
    moving = (n for n, t in enumerate(tangents[0]) if not isinstance(t, SymbolicZero))
    # What the expression rounds or compares has no derivative.
    live = tuple(n for n in moving if len(operands) in of.along((n,)).body.reads)
    if not live:
        return result, jax.numpy.zeros_like(result)
    shapes = tuple(operands[n].shape for n in live)
    forward = Tangent(arrays, of, live, shapes)
    residuals = (*(operands[n] for n in forward.kept), tables.table, *tables.transpose)
    (tangent,) = linear(forward, forward.transposed, [tangents[0][n] for n in live], residuals)
    return result, tangent


pair_sum.defjvp(_jvp, symbolic_zeros=True)


@dataclass(frozen=True)
class Tangent:
    """From the tangents of the operands in `live`, of these `shapes`, to that of the sum.

    Residuals: the operands in `kept`, which is all that derivatives read, and the table and its transpose.
    """

    arrays: Arrays
    of: PairSum
    live: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]

    @property
    def kept(self) -> tuple[int, ...]:
        """The operands that derivatives along `live` read."""
        count = len(self.of.sides)
        read = frozenset().union(*(self.of.along((n,)).body.reads for n in self.live))
        return tuple(n for n in range(count) if n in read)

    @property
    def transposed(self) -> Cotangent:
        """The transpose."""
        return Cotangent(self)

    def __call__(self, inputs: tuple[Any, ...], residuals: tuple[Any, ...], /) -> tuple[Any, ...]:
        operands, tables = self.taken(residuals)
        first = len(self.of.sides)
        of = self.of.along(self.live).keeping((*self.kept, *range(first, first + len(self.live))))
        return (pair_sum(self.arrays, of, (*operands, *inputs), tables),)

    def taken(self, residuals: tuple[Any, ...]) -> tuple[tuple[Any, ...], TableArrays]:
        """The operands in `kept`, and the table."""
        *operands, table, rows, slots = residuals
        return tuple(operands), TableArrays(table, Transposed(rows, slots))


@dataclass(frozen=True)
class Cotangent:
    """The transpose of a `Tangent`: from the cotangent of the sum to those of the operands."""

    forward: Tangent

    def __call__(self, inputs: tuple[Any, ...], residuals: tuple[Any, ...], /) -> tuple[Any, ...]:
        (cotangent,) = inputs
        # Gathered for each of its pairs: XLA:CPU would compute it as often.
        cotangent = self.forward.arrays.hold(cotangent)
        shapes = zip(self.forward.live, self.forward.shapes, strict=True)
        return tuple(self._back_to(n, shape, cotangent, residuals) for n, shape in shapes)

    def _back_to(self, operand: int, shape: tuple[int, ...], cotangent: Any, residuals: tuple[Any, ...]) -> Any:
        arrays, of, kept = self.forward.arrays, self.forward.of, self.forward.kept
        operands, tables = self.forward.taken(residuals)
        back = of.back_to(operand, shape).keeping((*kept, len(of.sides)))
        dtype = of.body.types()[operand].dtype
        found = pair_sum(arrays, back, (*operands, arrays.cast(cotangent, dtype)), tables)
        return arrays.cast(found, dtype)
