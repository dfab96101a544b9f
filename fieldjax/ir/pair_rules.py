"""How JAX differentiates sums over pairs: by sums over pairs, to any order, forward and reverse."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
from jax.custom_derivatives import SymbolicZero

from fieldjax.ir.arrays import Arrays
from fieldjax.ir.linear import linear
from fieldjax.ir.pairs import Links, PairSum


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def pair_sum(arrays: Arrays, of: PairSum, operands: tuple[Any, ...], links: Links) -> Any:
    """The sum `of` the operands. `arrays` is compared by value, as `of` is."""
    return of(arrays, operands, links)


def _jvp(arrays: Arrays, of: PairSum, primals: Any, tangents: Any) -> tuple[Any, Any]:
    operands, links = primals
    result = pair_sum(arrays, of, operands, links)
    moving = (n for n, t in enumerate(tangents[0]) if not isinstance(t, SymbolicZero))
    # What the expression rounds or compares has no derivative.
    live = tuple(n for n in moving if len(operands) in of.along((n,)).body.reads)
    if not live:
        return result, jax.numpy.zeros_like(result)
    shapes = tuple(operands[n].shape for n in live)
    forward = Tangent(arrays, of, live, shapes, links.used is not None)
    residuals = (*(operands[n] for n in forward.kept), *(x for x in links if x is not None))
    (tangent,) = linear(forward, forward.transposed, [tangents[0][n] for n in live], residuals)
    return result, tangent


pair_sum.defjvp(_jvp, symbolic_zeros=True)


@dataclass(frozen=True)
class Tangent:
    """From the tangents of the operands in `live`, of these `shapes`, to that of the sum.

    Residuals: the operands in `kept`, which is all that derivatives read, and the links.
    """

    arrays: Arrays
    of: PairSum
    live: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]
    masked: bool

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
        operands, links = self.taken(residuals)
        first = len(self.of.sides)
        of = self.of.along(self.live).keeping((*self.kept, *range(first, first + len(self.live))))
        return (pair_sum(self.arrays, of, (*operands, *inputs), links),)

    def taken(self, residuals: tuple[Any, ...]) -> tuple[tuple[Any, ...], Links]:
        """The operands in `kept`, and the links."""
        operands, links = residuals[: len(self.kept)], residuals[len(self.kept) :]
        return operands, Links(*links) if self.masked else Links(links[0], None, *links[1:])


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

    def _back_to(
        self, operand: int, shape: tuple[int, ...], cotangent: Any, residuals: tuple[Any, ...]
    ) -> Any:
        arrays, of, kept = self.forward.arrays, self.forward.of, self.forward.kept
        operands, links = self.forward.taken(residuals)
        back = of.back_to(operand, shape).keeping((*kept, len(of.sides)))
        dtype = of.body.types()[operand].dtype
        found = pair_sum(arrays, back, (*operands, arrays.cast(cotangent, dtype)), links)
        return arrays.cast(found, dtype)
