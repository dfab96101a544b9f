"""The functions of the language: on recorded fields inside operators, on fields and scalars anywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fieldjax.connectivity import FieldOffset
from fieldjax.domain import Dimension, DimensionKind, Domain, DomainUnion
from fieldjax.dtypes import as_dtype
from fieldjax.embedded import eager
from fieldjax.embedded.field import Field
from fieldjax.embedded.index_offset import IndexOffset
from fieldjax.embedded.leaves import is_scalar
from fieldjax.errors import ArgumentError, DimensionError, user_location
from fieldjax.frontend import traced
from fieldjax.frontend.containers import flatten, is_container, show_structure, unflatten
from fieldjax.frontend.handing_over import Handing
from fieldjax.frontend.traced import TracedField, is_traced
from fieldjax.ir.operations.concat import ConcatWhere, boxes_of
from fieldjax.ir.operations.functions import FUNCTIONS
from fieldjax.ir.operations.layout import Broadcast
from fieldjax.ir.operations.reduction import Reduce
from fieldjax.ir.operations.slots import Substitute


def pointwise(function: str, *operands: Any) -> Any:
    """`function` of recorded fields, of fields, or of arrays and scalars."""
    if is_traced(*operands):
        return traced.apply_pointwise(function, *operands)
    if any(isinstance(x, Field) for x in operands):
        return eager.pointwise(function, *operands)
    strange = next((x for x in operands if not (is_scalar(x) or isinstance(x, (np.ndarray, jax.Array)))), None)
    if strange is not None:
        raise ArgumentError(
            f"{function} takes fields, arrays and scalars, not {type(strange).__name__}", location=user_location()
        )
    on_numpy = not any(isinstance(x, jax.Array) for x in operands)
    result = FUNCTIONS[function](np if on_numpy else jnp, *operands)
    return result[()] if isinstance(result, np.ndarray) else result


def _unary(name: str, text: str, function: str | None = None) -> Any:
    def builtin(x: Any, /) -> Any:
        return pointwise(function or name, x)

    builtin.__name__ = builtin.__qualname__ = name
    builtin.__doc__ = f"{text}, element by element."
    return builtin


def _binary(name: str, text: str, function: str | None = None) -> Any:
    def builtin(x: Any, y: Any, /) -> Any:
        return pointwise(function or name, x, y)

    builtin.__name__ = builtin.__qualname__ = name
    builtin.__doc__ = f"{text}, element by element."
    return builtin


abs = _unary("abs", "Magnitude")
neg = _unary("neg", "The negative", "negative")
sin = _unary("sin", "Sine of an angle in radians")
cos = _unary("cos", "Cosine of an angle in radians")
tan = _unary("tan", "Tangent of an angle in radians")
arcsin = _unary("arcsin", "Angle in radians whose sine it is")
arccos = _unary("arccos", "Angle in radians whose cosine it is")
arctan = _unary("arctan", "Angle in radians whose tangent it is")
sinh = _unary("sinh", "Hyperbolic sine")
cosh = _unary("cosh", "Hyperbolic cosine")
tanh = _unary("tanh", "Hyperbolic tangent")
arcsinh = _unary("arcsinh", "Inverse hyperbolic sine")
arccosh = _unary("arccosh", "Inverse hyperbolic cosine")
arctanh = _unary("arctanh", "Inverse hyperbolic tangent")
sqrt = _unary("sqrt", "Square root")
cbrt = _unary("cbrt", "Cube root")
exp = _unary("exp", "Exponential")
expm1 = _unary("expm1", "Exponential minus one, accurate near zero")
log = _unary("log", "Natural logarithm")
log10 = _unary("log10", "Logarithm to base ten")
log1p = _unary("log1p", "Logarithm of one plus the argument, accurate near zero")
gamma = _unary("gamma", "Gamma function")
erf = _unary("erf", "Error function")
floor = _unary("floor", "Largest integer that isn't larger")
ceil = _unary("ceil", "Smallest integer that isn't smaller")
trunc = _unary("trunc", "Integer part")
round = _unary("round", "Nearest integer, ties to even")
sign = _unary("sign", "-1, 0 or 1")
isfinite = _unary("isfinite", "Whether it is neither infinite nor NaN")
isinf = _unary("isinf", "Whether it is infinite")
isnan = _unary("isnan", "Whether it is NaN")
minimum = _binary("minimum", "The smaller one; ties share the derivative")
maximum = _binary("maximum", "The larger one; ties share the derivative")
fmod = _binary("fmod", "Remainder with the sign of the dividend")
power = _binary("power", "The first to the power of the second")
arctan2 = _binary("arctan2", "Angle in radians of the point (second, first)")


def clip(x: Any, low: Any, high: Any) -> Any:
    """`x`, but at least `low` and at most `high`."""
    return minimum(maximum(x, low), high)


def where(condition: Any, a: Any, b: Any) -> Any:
    """`a` where the condition holds and `b` elsewhere; containers are chosen leaf by leaf.

    What isn't chosen contributes nothing, to values or derivatives.
    """
    if is_container(a) or is_container(b):
        return _leaf_by_leaf(where, condition, a, b)
    return pointwise("where", condition, a, b)


def _leaf_by_leaf(choose: Callable[..., Any], condition: Any, a: Any, b: Any) -> Any:
    """Chooses in each leaf of two containers of one structure, or of one and a single value for all leaves."""
    tree = flatten(a if is_container(a) else b)[1]
    count = tree.num_leaves
    (parts_a, tree_a), (parts_b, tree_b) = (flatten(x) if is_container(x) else ([x] * count, tree) for x in (a, b))
    if tree_a != tree_b:
        raise ArgumentError(
            f"{choose.__name__} chooses between containers of different structures",
            location=user_location(),
            notes=[f"one is {show_structure(tree_a)}, the other {show_structure(tree_b)}"],
        )
    return unflatten(tree, [choose(condition, x, y) for x, y in zip(parts_a, parts_b, strict=True)])


def concat_where(condition: Domain | DomainUnion, a: Any, b: Any) -> Any:
    """`a` at the positions of `condition` and `b` elsewhere; containers leaf by leaf.

    Conditions are written with dimensions: `K == 0`, `(Edge >= 2) & (Edge < 9)`, `(K == 0) | (K > 7)`,
    `K != 3`. Neither field is computed where it isn't used, and each need exist only where it is.

    Raises ArgumentError where the condition is a field: `where` chooses by value.
    """
    if not isinstance(condition, (Domain, DomainUnion)):
        raise ArgumentError(
            f"concat_where chooses by position, not by {type(condition).__name__}",
            location=user_location(),
            hints=["write a condition on a dimension (`K == 0`), or choose by value with `where`"],
        )
    if is_container(a) or is_container(b):
        return _leaf_by_leaf(concat_where, condition, a, b)
    if not is_traced(a, b):
        return eager.concat_where(condition, a, b)
    for box in boxes_of(condition):
        b = traced.apply(ConcatWhere(box), a, b)
    return b


def as_offset(offset: FieldOffset, indices: Any) -> IndexOffset:
    """An offset whose distance differs from element to element: `f(as_offset(Koff, indices))`.

    `result[..., k] = f[..., k + indices[..., k]]` along the offset's dimension. The result lives where both
    fields do. Raises ArgumentError where the offset isn't Cartesian.
    """
    if not (isinstance(offset, FieldOffset) and offset.is_cartesian):
        raise ArgumentError(
            f"as_offset takes a Cartesian offset, not {offset!r}",
            location=user_location(),
            hints=['make one: `FieldOffset("Koff", source=K, target=(K,))`'],
        )
    return IndexOffset(offset.source, indices)


def broadcast(x: Any, dims: Sequence[Dimension]) -> Any:
    """`x` on the dimensions `dims`, constant along those that it lacks.

    Raises DimensionError where `dims` aren't dimensions, or the field has one that isn't among them.
    """
    for dim in dims if isinstance(dims, (tuple, list)) else (None,):
        _check_dimension(dim, "broadcast takes a tuple of dimensions", dims)
    if isinstance(x, Field):
        return eager.broadcast(x, dims)
    return traced.apply(Broadcast(tuple(dims)), x)


def astype(x: Any, dtype: Any) -> Any:
    """The same elements in another dtype; containers leaf by leaf.

    Raises ArgumentError for what is neither a field nor a number, DtypeError for an unknown dtype.
    """
    if is_container(x):
        leaves, tree = flatten(x)
        return unflatten(tree, [astype(leaf, dtype) for leaf in leaves])
    if isinstance(x, (Field, TracedField, Handing)):
        return x.astype(dtype)  # type: ignore[union-attr]
    if not is_scalar(x):
        raise ArgumentError(f"astype takes fields and scalars, not {type(x).__name__}", location=user_location())
    return as_dtype(dtype).type(x)


def neighbor_sum(x: Any, axis: Dimension) -> Any:
    """The sum over the neighbours along the local dimension `axis`; zero where there are none.

    Raises DimensionError where `axis` isn't a local dimension of the field.
    """
    return _reduce("sum", x, axis)


def max_over(x: Any, axis: Dimension) -> Any:
    """The largest over the neighbours along `axis`; -inf (an integer type's least) where there are none.

    Neighbours that share the maximum share its derivative evenly.
    """
    return _reduce("max", x, axis)


def min_over(x: Any, axis: Dimension) -> Any:
    """The smallest over the neighbours along `axis`; +inf (an integer type's largest) where there are none.

    Neighbours that share the minimum share its derivative evenly.
    """
    return _reduce("min", x, axis)


def neighbor_product(x: Any, axis: Dimension) -> Any:
    """The product over the neighbours along `axis`; one where there are none.

    Its derivatives hold where factors are zero. Raises DimensionError as `neighbor_sum` does.
    """
    return _reduce("product", x, axis)


def neighbor_mean(x: Any, axis: Dimension) -> Any:
    """The mean over the neighbours along `axis`; zero where there are none.

    Raises DimensionError as `neighbor_sum` does.
    """
    x = _over_neighbours(x, axis)
    count = _reduce("sum", pointwise("first", 1, x), axis)
    return _reduce("sum", x, axis) / maximum(count, 1)


def _check_dimension(dim: Any, what: str, given: Any) -> None:
    if not isinstance(dim, Dimension):
        raise DimensionError(f"{what}, not {given!r}", location=user_location())


def _reduce(kind: str, x: Any, axis: Dimension) -> Any:
    x = _over_neighbours(x, axis)
    return eager.apply(Reduce(kind, axis), x) if isinstance(x, Field) else x._record(Reduce(kind, axis))


def _over_neighbours(x: Any, axis: Dimension) -> Any:
    """The field with the mask of the table whose neighbours `axis` counts: its own, or the provider's."""
    _check_dimension(axis, "a reduction runs over a local dimension", axis)
    if isinstance(x, Field):
        return eager.over_neighbours(x, axis)
    if not isinstance(x, TracedField):
        raise ArgumentError(f"a reduction takes a field, not {x!r}", location=user_location())
    if axis.kind is DimensionKind.LOCAL and axis in x.dims and x.value.mask_over(axis) is None:
        table = traced.located(lambda: x.scope.table_over(axis))
        return x._record(Substitute(axis), table)
    return x
