"""Sums over pairs of a row of a table and an element that one of its slots leads to.

A neighbour table is a set of such pairs. What a reduction computes, its derivatives and their transposes to any
order are all of one form: a pointwise expression of what stands at the row, at the element and at the pair
itself, summed over the pairs of each row, or over those of each element, or not at all. Summed for elements,
it is read through the transposed table; nothing is ever scattered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

from fieldjax.ir.arrays import Arrays
from fieldjax.ir.body import Body
from fieldjax.ir.links import Links, Pairs, Side, TableArrays


@dataclass(frozen=True)
class PairSum:
    """`body` of the operands at each pair, summed over the pairs of each row or element; pairs aren't summed.

    Laws: what stands in unused pairs and places never reaches the result. The derivative along operands is a
    `PairSum`, linear in their tangents, and its transpose for one of them is a `PairSum` onto that one's side.
    """

    body: Body
    sides: tuple[Side, ...]
    onto: Side
    pairs: Pairs
    shape: tuple[int, ...] | None = None
    """Of the result, if not what the operands give: what is constant along an axis gets the sum over it."""

    def __call__(self, arrays: Arrays, operands: Sequence[Any], tables: TableArrays) -> Any:
        terms = list(self._terms(arrays, operands, tables))
        total = arrays.xp.stack(terms, axis=1) if self.onto is Side.PAIR else reduce(add, terms)
        return total if self.shape is None else self._fitted(arrays, total, self.shape)

    def _terms(self, arrays: Arrays, operands: Sequence[Any], tables: TableArrays) -> Iterator[Any]:
        """One slot or place after the other (design.md, "Reduce by slots")."""
        if self.onto is Side.ELEMENT:
            links, through = self.pairs.from_elements(arrays.xp, tables), self._at_element
        else:
            links, through = self.pairs.from_rows(arrays.xp, tables), self._at_row
        for n in range(links.ends.shape[1]):
            values = [through(arrays, x, side, links, n) for x, side in zip(operands, self.sides, strict=True)]
            term = self.body(arrays, values)
            if links.used is not None:
                mask = links.used[:, n].reshape(-1, *(1,) * (term.ndim - 1))
                term = arrays.xp.where(mask, term, arrays.xp.zeros((), term.dtype))
            yield term

    def _at_row(self, arrays: Arrays, x: Any, side: Side, links: Links, slot: int) -> Any:
        """An operand at one slot of every row."""
        if side is Side.ROW:
            return x
        if side is Side.ELEMENT:
            return arrays.index(x, (links.ends[:, slot],))
        return x[:, slot if x.shape[1] > 1 else 0]

    def _at_element(self, arrays: Arrays, x: Any, side: Side, links: Links, place: int) -> Any:
        """An operand at one pair of every element."""
        if side is Side.ELEMENT:
            return x
        if side is Side.PAIR and x.shape[1] > 1:
            if x.shape[0] == 1:
                return arrays.index(x[0], (links.pairs[:, place] % self.pairs.width,))  # type: ignore[index]
            return arrays.index(x.reshape(-1, *x.shape[2:]), (links.pairs[:, place],))  # type: ignore[index]
        x = x[:, 0] if side is Side.PAIR else x
        return x if x.shape[0] == 1 else arrays.index(x, (links.ends[:, place],))

    def _fitted(self, arrays: Arrays, total: Any, shape: tuple[int, ...]) -> Any:
        """The total summed over axes that have length one in `shape`, and repeated along longer ones."""
        leading = self.pairs.shape_of(self.onto)
        total = arrays.xp.broadcast_to(total, (*leading, *total.shape[len(leading) :]))
        axes = tuple(axis for axis, size in enumerate(shape) if size == 1 != total.shape[axis])
        total = total.sum(axis=axes, keepdims=True, dtype=total.dtype) if axes else total
        return arrays.xp.broadcast_to(total, shape)

    def along(self, live: tuple[int, ...]) -> PairSum:
        """The derivative along the operands in `live`, whose tangents follow the operands."""
        sides = (*self.sides, *(self.sides[n] for n in live))
        return replace(self, body=self.body.along(live), sides=sides)

    def back_to(self, operand: int, shape: tuple[int, ...]) -> PairSum:
        """The transposed derivative for one operand of that shape. The cotangent follows the operands."""
        sides = (*self.sides, self.onto)
        return PairSum(self.body.along((operand,)), sides, self.sides[operand], self.pairs, shape)

    def keeping(self, operands: Sequence[int]) -> PairSum:
        """The same sum given only these operands; it reads no other."""
        return replace(self, body=self.body.keeping(operands), sides=tuple(self.sides[n] for n in operands))
