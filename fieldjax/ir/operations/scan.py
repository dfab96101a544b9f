"""A loop along one dimension, vectorised over all others: each level sees what the level before handed on."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NoReturn

from fieldjax.domain import Dimension, DimensionKind, Domain, NamedRange, UnitRange, canonical_dims
from fieldjax.errors import DimensionError, DomainError
from fieldjax.ir.evaluation import At, Slots
from fieldjax.ir.graph import Graph, Mask, Node, Value
from fieldjax.ir.operation import Operation, Place, Roots, field_domain, field_types
from fieldjax.ir.types import FieldType, Type


@dataclass(frozen=True, eq=False)
class Scan(Operation):
    """Runs `body` along `axis`, from the first level of the column (the last, when not `forward`).

    Inputs of the body, all of them numbers at one level: `carries` values from the level before, then one for
    each argument. Its outputs: the new carries, then what each level emits.

    Inputs of the node: `carries` initial values, which lack the axis; the arguments, with or without it; and
    `anchors`. Results: the carries after the last level, without the axis, then one field for each thing that
    is emitted.

    The column is the extent along the axis of the outputs that are asked for, as far as the arguments reach,
    whatever levels of it are read (with `whole`: all of what the inputs and the anchors provide). Anchors are
    read for nothing but their extent along the axis. Inputs at `partial` positions are zero outside of their
    own domain: the cotangents of a reverse scan.
    """

    body: Graph
    axis: Dimension
    forward: bool
    carries: int
    partial: tuple[int, ...] = ()
    anchors: int = 0
    whole: bool = False
    joins: ClassVar[bool] = True

    @property
    def end(self) -> int:
        """The position after the last argument among the node's inputs."""
        return len(self.body.inputs)

    @cached_property
    def reads(self) -> tuple[bool, ...]:
        """For each input of the body whether it matters. All carries count."""
        nodes = set(self.body.nodes)
        return tuple(n < self.carries or v.node in nodes for n, v in enumerate(self.body.inputs))

    def types(self, *inputs: Type) -> tuple[FieldType, ...]:
        own = field_types(inputs)[: self.end]
        self._check(own)
        dims = canonical_dims((*(d for t in own for d in t.dims), self.axis))
        columns = tuple(d for d in dims if d != self.axis)
        places = [columns] * self.carries + [dims] * (len(self.body.outputs) - self.carries)
        types = [v.field_type for v in self.body.outputs]
        return tuple(FieldType(p, t.dtype, t.weak) for p, t in zip(places, types, strict=True))

    def _check(self, own: Sequence[FieldType]) -> None:
        if self.axis.kind is DimensionKind.LOCAL:
            raise DimensionError(
                f"a scan runs along levels, and {self.axis.value} counts neighbours",
                hints=["reduce over neighbours: `neighbor_sum(f(V2E), axis=V2EDim)`"],
            )
        if any(self.axis in t.dims for t in own[: self.carries]):
            raise DimensionError(
                f"the initial value of a scan along {self.axis.value} has that dimension",
                hints=["it holds for the first level: give a number, or a field without the axis"],
            )
        for value, given in zip(self.body.inputs[self.carries :], own[self.carries :], strict=True):
            assert value.field_type.dtype == given.dtype, (value, given)

    def masks(self, *inputs: Value) -> tuple[tuple[Mask, ...], ...]:
        """Those of the inputs; anchors have no say."""
        own = {mask for value in inputs[: self.end] for mask in value.masks}
        return tuple(tuple(m for m in masks if m in own) for masks in super().masks(*inputs))

    def available(self, node: Node, places: Sequence[Place]) -> tuple[Domain, ...]:
        box = self._box(node, places)
        return tuple(box.without(self.axis) if n < self.carries else box for n in range(len(node.types)))

    def _box(self, node: Node, places: Sequence[Place]) -> Domain:
        """All levels that could be computed, in all columns."""
        box = Domain(NamedRange(self.axis, UnitRange(-math.inf, math.inf)))
        given = [field_domain(p) for p in places]
        for n, place in enumerate(given[: self.end]):
            if n not in self.partial:
                box = box & place
        if self.partial:
            box = box & functools.reduce(Domain.hull, (given[n].without(self.axis) for n in self.partial))
        if self.anchors:
            spans = [place.range_of(self.axis) for place in given[self.end :]]
            box = box & Domain(NamedRange(self.axis, functools.reduce(UnitRange.hull, spans)))
        return box.restrict(canonical_dims(box.dims))

    def settle(
        self, node: Node, wanted: Sequence[Domain | None], places: Sequence[Place], roots: Roots
    ) -> Sequence[Domain | None]:
        column = self._box(node, places).range_of(self.axis)
        if not self.whole and self.axis in roots:
            column = column & roots[self.axis]
        if not column.is_finite():
            self._endless(node, column)
        for box in wanted[self.carries :]:
            if box is not None and not box.is_empty() and not box.range_of(self.axis) <= column:
                self._short(node, box.range_of(self.axis), column)
        columns = functools.reduce(Domain.hull, (w.without(self.axis) for w in wanted if w is not None))
        box = (columns & Domain(NamedRange(self.axis, column))).canonical()
        settled = [None if w is None else columns if n < self.carries else box for n, w in enumerate(wanted)]
        if not any(settled[self.carries :]):
            settled[self.carries] = box
        return settled

    def _endless(self, node: Node, column: UnitRange) -> NoReturn:
        raise DomainError(
            f"the scan has no extent along {self.axis.value}",
            location=node.location,
            notes=[f"no argument bounds it: its column would be {self.axis.value}{column}"],
            hints=["say how far it goes: `domain={...}` or `out=`"],
        )

    def _short(self, node: Node, read: UnitRange, column: UnitRange) -> NoReturn:
        name = self.axis.value
        missing = ", ".join(str(k) for k in read if k not in column)
        raise DomainError(
            f"the column of the scan doesn't hold all levels that are read: {name} {missing}",
            location=node.location,
            notes=[
                f"the column is {name}{column}, as far as the outputs and the arguments reach",
                f"read is {name}{read}",
                "a reader at another level doesn't enlarge the column: its first level would move",
            ],
            hints=["ask for less with `domain=`, or choose the levels with `concat_where`"],
        )

    def demand(self, node: Node, wanted: Sequence[Domain | None], places: Sequence[Place]) -> tuple[Domain | None, ...]:
        box = next(w for w in wanted[self.carries :] if w is not None)
        needed: list[Domain | None] = []
        for n, (value, read) in enumerate(zip(node.inputs[: self.end], self.reads, strict=True)):
            own = box.restrict(value.dims)
            needed.append((own & field_domain(places[n]) if n in self.partial else own) if read else None)
        return (*needed, *(None,) * self.anchors)

    def evaluate(self, at: At, domain: Domain, slots: Slots) -> Any:
        raise AssertionError("a scan has several results")

    def evaluate_results(self, at: At, domains: Sequence[Domain | None]) -> tuple[Any, ...]:
        from fieldjax.ir.operations.scan_loop import run

        return run(self, at, domains)

    @cached_property
    def programs(self) -> Callable[[Any, Any], Callable[..., Any]]:
        """`programs(arrays, layout)` is the loop over arrays that are laid out so; a few are kept."""
        from fieldjax.ir.operations.scan_loop import Loop

        made: Callable[..., Any] = functools.lru_cache(maxsize=16)(
            lambda kind, layout: kind().compiled(Loop(self, kind(), layout))
        )
        return lambda arrays, layout: made(type(arrays), layout)

    def jvp(self, node: Node, tangents: Sequence[Value | None]) -> tuple[Value | None, ...]:
        from fieldjax.ir.operations.scan_derivative import forward_tangents

        return forward_tangents(self, node, tangents)

    def vjp(self, node: Node, cotangents: Sequence[Value | None]) -> tuple[Value | None, ...]:
        from fieldjax.ir.operations.scan_derivative import reverse_cotangents

        return reverse_cotangents(self, node, cotangents)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Scan):
            return NotImplemented
        if self._facts != other._facts:
            return False
        return self.body is other.body or self._structure == other._structure

    def __hash__(self) -> int:
        return hash((self._facts, len(self.body.nodes)))

    @property
    def _facts(self) -> tuple[Any, ...]:
        return (self.axis, self.forward, self.carries, self.partial, self.anchors, self.whole, self.end)

    @cached_property
    def _structure(self) -> Any:
        from fieldjax.ir.key import structural_key

        key = structural_key(self.body)
        return key, key.inputs

    def __str__(self) -> str:
        return f"scan[{self.axis.value} {'forward' if self.forward else 'backward'}]"
