"""What evaluation needs from an array library, and its plain form for NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from fieldjax.ir.links import TableArrays
    from fieldjax.ir.operations.custom import Rule
    from fieldjax.ir.pairs import PairSum

Step = Callable[[Sequence[Any], Sequence[Any]], tuple[tuple[Any, ...], tuple[Any, ...]]]
"""One level of a loop: from carries and what the level holds to new carries and what it emits."""


class Arrays(Protocol):
    """An array library as evaluation sees it. `xp` has NumPy's names.

    Laws: every method gives, element by element, what `NumpyArrays` gives; JAX's form adds the derivative
    rules that design.md states (guards, ties, transposed gathers), never other values.
    """

    xp: Any

    def cast(self, array: Any, dtype: np.dtype) -> Any:
        """The array in another dtype."""
        ...

    def index(self, array: Any, indices: tuple[Any, ...]) -> Any:
        """`array[indices]` with the leading axes indexed by integer arrays that are in bounds."""
        ...

    def scatter_add(self, shape: tuple[int, ...], indices: tuple[Any, ...], values: Any) -> Any:
        """Zeros of `shape` with `values` added at `indices` of the leading axes, repeated ones included."""
        ...

    def guard(self, array: Any, mask: Any) -> Any:
        """The array itself, whose derivative is zero where `mask` is False."""
        ...

    def extremum(self, parts: Sequence[Any], masks: Sequence[Any] | None, largest: bool) -> Any:
        """Elementwise maximum or minimum of the unmasked parts; ties share the cotangent evenly."""
        ...

    def pair_sum(self, of: PairSum, operands: tuple[Any, ...], tables: TableArrays) -> Any:
        """The sum over pairs `of` operands, differentiated as one."""
        ...

    def hold(self, array: Any) -> Any:
        """The array, materialised: what follows must not recompute it."""
        ...

    def scan(
        self, step: Step, carries: tuple[Any, ...], levels: tuple[Any, ...], count: int, forward: bool
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The carries after `count` (at least one) levels of `step`, and what each emitted, levels first.

        `levels` are arrays of `count` levels on the first axis; they are taken from the last one on when not
        `forward`.
        """
        ...

    def batch(self, step: Step, levels: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """`step` without carries for all levels at once."""
        ...

    def call(self, rule: Rule, inputs: Sequence[Any], shapes: Sequence[Any]) -> Sequence[Any]:
        """The outputs of a custom operation, arrays of these shapes and dtypes."""
        ...

    def compiled(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function of arrays as one program, where the library would run it operation by operation."""
        ...


class NumpyArrays:
    """NumPy as evaluation sees it: values only, no derivatives to state."""

    xp: Any = np

    def cast(self, array: Any, dtype: np.dtype) -> Any:
        return np.asarray(array).astype(dtype, copy=False)

    def index(self, array: Any, indices: tuple[Any, ...]) -> Any:
        return array[indices]

    def scatter_add(self, shape: tuple[int, ...], indices: tuple[Any, ...], values: Any) -> Any:
        out = np.zeros(shape, values.dtype)
        np.add.at(out, indices, values)
        return out

    def guard(self, array: Any, mask: Any) -> Any:
        return array

    def extremum(self, parts: Sequence[Any], masks: Sequence[Any] | None, largest: bool) -> Any:
        return masked_extremum(np, parts, masks, largest)

    def pair_sum(self, of: PairSum, operands: tuple[Any, ...], tables: TableArrays) -> Any:
        return of(self, operands, tables)

    def hold(self, array: Any) -> Any:
        return array

    def scan(
        self, step: Step, carries: tuple[Any, ...], levels: tuple[Any, ...], count: int, forward: bool
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        levels = tuple(np.ascontiguousarray(x) for x in levels)
        stacked: tuple[Any, ...] | None = None
        for k in range(count) if forward else reversed(range(count)):
            carries, emitted = step(carries, tuple(x[k] for x in levels))
            if stacked is None:
                stacked = tuple(np.empty((count, *x.shape), x.dtype) for x in emitted)
            for whole, part in zip(stacked, emitted, strict=True):
                whole[k] = part
        return carries, stacked or ()

    def batch(self, step: Step, levels: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return self.scan(step, (), levels, len(levels[0]), True)

    def call(self, rule: Rule, inputs: Sequence[Any], shapes: Sequence[Any]) -> Sequence[Any]:
        from fieldjax.ir.operations.custom import checked

        return [np.asarray(x) for x in checked(rule.compute(*inputs), shapes, rule.name)]

    def compiled(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function


def masked_extremum(xp: Any, parts: Sequence[Any], masks: Sequence[Any] | None, largest: bool) -> Any:
    """The extremum of `parts` where `masks` hold, else the identity (-inf, +inf, or the type's limit)."""
    from fieldjax.dtypes import maximum_of, minimum_of

    dtype = parts[0].dtype
    identity = xp.asarray(minimum_of(dtype) if largest else maximum_of(dtype), dtype)
    if masks is not None:
        parts = [xp.where(m, p, identity) for m, p in zip(masks, parts, strict=True)]
    combine = xp.maximum if largest else xp.minimum
    result = parts[0]
    for part in parts[1:]:
        result = combine(result, part)
    return result
