"""Pointwise work on the intersection of the operands' domains; a missing dimension is broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np

from fieldjax.domain import Domain, canonical_dims
from fieldjax.dtypes import is_floating, result_type, x64_enabled
from fieldjax.errors import ArgumentError, DtypeError
from fieldjax.ir.build import Expression, expressions, literal, match, pointwise, reduce_to
from fieldjax.ir.evaluation import At, Slots
from fieldjax.ir.graph import Node, Value
from fieldjax.ir.operation import Operation, Place, common_domain, field_domain, field_types
from fieldjax.ir.operations.functions import FUNCTIONS, Function
from fieldjax.ir.operations.literal import Literal
from fieldjax.ir.types import FieldType, Type


@dataclass(frozen=True)
class Pointwise(Operation):
    """`function` of each element; the domain is the intersection of the operands' domains."""

    function: str
    joins: ClassVar[bool] = True

    @property
    def rule(self) -> Function:
        return FUNCTIONS[self.function]

    def types(self, *inputs: Type) -> tuple[FieldType, ...]:
        fields = field_types(inputs)
        if len(fields) != self.rule.arity:
            raise ArgumentError(f"{self} takes {self.rule.arity} operands, not {len(fields)}")
        dims = canonical_dims(tuple(dict.fromkeys(d for f in fields for d in f.dims)))
        dtype, weak = result_dtype(self.function, *((f.dtype, f.weak) for f in fields))
        return (FieldType(dims, dtype, weak),)

    def available(self, node: Node, places: Sequence[Place]) -> tuple[Domain, ...]:
        return (common_domain(places),)

    def demand(self, node: Node, wanted: Sequence[Domain | None], places: Sequence[Place]) -> tuple[Domain | None, ...]:
        (domain,) = wanted
        assert domain is not None
        return tuple(domain.restrict(v.dims) for v in node.inputs)

    def evaluate(self, at: At, domain: Domain, slots: Slots) -> Any:
        operands = [at.aligned(i, domain, slots) for i in range(len(at.node.inputs))]
        types = field_types([v.type for v in at.node.inputs])
        operands = _cast_to_common(at, self.rule, types, operands)
        operands = _guarded(at, domain, slots, operands)
        out = at.node.types[0]
        assert isinstance(out, FieldType)
        return at.arrays.cast(_on_axes(at, self.rule(at.xp, *operands), domain), out.dtype)

    def jvp(self, node: Node, tangents: Sequence[Value | None]) -> tuple[Value | None, ...]:
        total: Expression | None = None
        for index, tangent in enumerate(tangents):
            if tangent is not None and (term := self._scaled(node, index, tangent)) is not None:
                total = term if total is None else total + term
        return (None if total is None else match(total.value, node.results()[0]),)

    def vjp(self, node: Node, cotangents: Sequence[Value | None]) -> tuple[Value | None, ...]:
        (cotangent,) = cotangents
        if cotangent is None:
            return (None,) * len(node.inputs)
        return tuple(self._pulled_back(node, i, cotangent) for i in range(len(node.inputs)))

    def _pulled_back(self, node: Node, index: int, cotangent: Value) -> Value | None:
        value = node.inputs[index]
        if not is_floating(value.field_type.dtype):
            return None
        scaled = self._scaled(node, index, cotangent)
        return None if scaled is None else reduce_to(scaled.value, value)

    def _scaled(self, node: Node, index: int, seed: Value) -> Expression | None:
        scale = self.rule.scales[index]
        if scale is None or not is_floating(node.inputs[index].field_type.dtype):
            return None
        t, result, *operands = expressions((seed, *node.results(), *node.inputs), node.location)
        return scale(t.build, t, result, *operands)

    def __str__(self) -> str:
        return self.function


def _on_axes(at: At, array: Any, domain: Domain) -> Any:
    """A scalar that stands for an array of `domain` (`first` of a scalar) with axes of length one, for its readers."""
    return at.xp.reshape(array, (1,) * domain.ndim) if domain.ndim and not np.ndim(array) else array


def _cast_to_common(at: At, rule: Function, types: Sequence[FieldType], operands: list[Any]) -> list[Any]:
    """Promotion happens before NumPy computes, so that the table is JAX's in every mode."""
    common, _ = result_type(*((t.dtype, t.weak) for n, t in enumerate(types) if n not in rule.apart))
    if rule.inexact and not is_floating(common):
        out = at.node.types[0]
        assert isinstance(out, FieldType)
        common = out.dtype
    casts = []
    for n, (value, operand) in enumerate(zip(at.node.inputs, operands, strict=True)):
        if n in rule.apart:
            casts.append(operand)
        elif rule.keeps_literals and isinstance(value.node.operation, Literal):
            casts.append(value.node.operation.raw)
        else:
            casts.append(at.arrays.cast(operand, common))
    return casts


def _guarded(at: At, domain: Domain, slots: Slots, operands: list[Any]) -> list[Any]:
    """In a row of skips, what lacks the local dimension is read in vain: its derivative is zero there."""
    for mask in at.node.masks[0]:
        local = mask.local
        if mask.slot is not None or local is None or not at.plan.facts(mask.table).has_all_skip_row:
            continue
        valid = at.valid(mask, domain, slots)
        for index, value in enumerate(at.node.inputs):
            differentiable = is_floating(value.field_type.dtype) and not isinstance(value.node.operation, Literal)
            if valid is not None and differentiable and local not in value.dims:
                operands[index] = at.arrays.guard(operands[index], valid)
    return operands


def result_dtype(function: str, *operands: tuple[np.dtype, bool]) -> tuple[np.dtype, bool]:
    """The dtype and weakness that JAX gives to `function`.

    Raises DtypeError where the function isn't defined for these dtypes.
    """
    return _result_dtype(function, operands, x64_enabled())


@lru_cache(maxsize=4096)
def _result_dtype(function: str, operands: tuple[tuple[np.dtype, bool], ...], x64: bool) -> tuple[np.dtype, bool]:
    import jax
    import jax.numpy as jnp

    abstract = [jax.ShapeDtypeStruct((), dtype, weak_type=weak) for dtype, weak in operands]
    try:
        out = jax.eval_shape(partial(FUNCTIONS[function], jnp), *abstract)
    except TypeError as reason:
        names = ", ".join(str(dtype) for dtype, _ in operands)
        raise DtypeError(f"{function} isn't defined for {names}", notes=[str(reason).split("\n")[0]]) from None
    return np.dtype(out.dtype), bool(out.weak_type)


@dataclass(frozen=True)
class Cast(Operation):
    """The same elements in another dtype. The derivative is cast back."""

    dtype: np.dtype

    def types(self, *inputs: Type) -> tuple[FieldType, ...]:
        (field,) = field_types(inputs)
        return (FieldType(field.dims, self.dtype, False),)

    def available(self, node: Node, places: Sequence[Place]) -> tuple[Domain, ...]:
        return (field_domain(places[0]),)

    def demand(self, node: Node, wanted: Sequence[Domain | None], places: Sequence[Place]) -> tuple[Domain | None, ...]:
        return tuple(wanted)

    def evaluate(self, at: At, domain: Domain, slots: Slots) -> Any:
        return at.arrays.cast(at.operand(0, domain, slots), self.dtype)

    def jvp(self, node: Node, tangents: Sequence[Value | None]) -> tuple[Value | None, ...]:
        return (self._recast(tangents[0], self.dtype, node),)

    def vjp(self, node: Node, cotangents: Sequence[Value | None]) -> tuple[Value | None, ...]:
        return (self._recast(cotangents[0], node.inputs[0].field_type.dtype, node),)

    def _recast(self, seed: Value | None, dtype: np.dtype, node: Node) -> Value | None:
        between_floats = is_floating(self.dtype) and is_floating(node.inputs[0].field_type.dtype)
        if seed is None or not between_floats:
            return None
        from fieldjax.ir.operation import record

        return record(Cast(dtype), seed, location=node.location)[0]

    def __str__(self) -> str:
        return f"cast[{self.dtype}]"


__all__ = ["Cast", "Pointwise", "literal", "pointwise", "result_dtype"]
