"""Fields that a program assigns to: recorded values that change, over domains that are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fieldjax.domain import Domain, NamedIndex
from fieldjax.domain import domain as as_domain
from fieldjax.embedded.slicing import located as located_part
from fieldjax.errors import ArgumentError, DimensionError, DomainError, DtypeError, user_location
from fieldjax.frontend.aliasing import check_aliases
from fieldjax.frontend.containers import flatten
from fieldjax.frontend.scope import Scope
from fieldjax.frontend.traced import TracedField, located, value_of
from fieldjax.ir.build import adopt_masks
from fieldjax.ir.graph import Value
from fieldjax.ir.operation import record
from fieldjax.ir.operations.concat import Part
from fieldjax.ir.operations.overlay import Overlay
from fieldjax.ir.operations.pointwise import Cast


class Cell(TracedField):
    """A field argument of a program. Its value is what was assigned last; its domain never changes."""

    __slots__ = ("domain", "initial")

    def __init__(self, value: Value, scope: Scope, domain: Domain) -> None:
        super().__init__(value, scope)
        self.initial, self.domain = value, domain

    def __getitem__(self, index: Any) -> TracedField:
        """A part of the field, to read or to assign to; or one position of a local dimension."""
        if isinstance(index, NamedIndex):
            return super().__getitem__(index)
        _, domain = located_part(self, index)  # type: ignore[arg-type]  # it looks at the domain only
        if domain.ndim != self.domain.ndim:
            raise ArgumentError("inside a program a field is cut, not indexed", location=user_location())
        return CellPart(self, domain)

    def put(self, value: Value, domain: Domain) -> None:
        """Assigns the part of `value` on `domain`."""
        location = user_location()
        self.value = record(Overlay(domain), *adopt_masks((value, self.value)), location=location)[0]


class CellPart(TracedField):
    """A part of a cell: reads like a field on its domain, and can be assigned to."""

    __slots__ = ("cell", "domain")

    def __init__(self, cell: Cell, domain: Domain) -> None:
        super().__init__(record(Part(domain), cell.value, location=user_location())[0], cell.scope)
        self.cell, self.domain = cell, domain

    def put(self, value: Value, domain: Domain) -> None:
        """Assigns the part of `value` on `domain` to the cell."""
        self.cell.put(value, domain)


def assign(results: Any, out: Any, domain: Any, reads: Any) -> None:
    """Assigns an operator's results to cells or parts of them: `op(..., out=f[:, 1:])` inside a program.

    `reads` are the arguments of the call.
    Nothing is assigned unless everything fits. Raises ArgumentError where `out` isn't structured like the
    results, isn't made of a program's fields, or is also read at shifted positions; DimensionError,
    DomainError and DtypeError where a field can't take a result.
    """
    values, tree = flatten(results)
    targets, out_tree = flatten(out)
    if tree != out_tree or not all(isinstance(t, (Cell, CellPart)) for t in targets):
        raise ArgumentError(
            "`out` isn't made of the program's fields, in the structure of the result",
            location=user_location(),
            notes=[f"{len(values)} results, {len(targets)} fields"],
        )
    domains = _domains(domain, targets)
    put: list[tuple[Cell | CellPart, Value, Domain]] = []
    for x, target, where in zip(values, targets, domains, strict=True):
        value = located(lambda x=x, t=target: value_of(x, t.scope))
        put.append((target, _fitting(value, target, where), where))
    check_aliases([(_cell_of(t), v, d) for t, v, d in put], [_cell_of(x) for x in _fields(reads)])
    for target, value, where in put:
        target.put(value, where)


def _domains(domain: Any, targets: Sequence[Cell | CellPart]) -> list[Domain]:
    """The domain of each output: its own, one for all, or a container of them."""
    if domain is None:
        return [t.domain for t in targets]
    if isinstance(domain, (tuple, list)):
        parts, _ = _flat_domains(domain)
        if len(parts) != len(targets):
            raise ArgumentError(f"{len(parts)} domains for {len(targets)} results", location=user_location())
        return [located(lambda p=p: as_domain(p)).canonical() for p in parts]
    return [located(lambda: as_domain(domain)).canonical()] * len(targets)


def _flat_domains(domain: Any) -> tuple[list[Any], Any]:
    import jax

    return jax.tree_util.tree_flatten(domain, is_leaf=lambda x: isinstance(x, (Domain, dict)))


def _fitting(value: Value, target: Cell | CellPart, domain: Domain) -> Value:
    """The value in the dtype of the target. Raises where dimensions, domain or dtype don't fit."""
    where = user_location()
    if value.dims != target.dims or set(domain.dims) != set(target.dims):
        raise DimensionError(
            f"the result has dimensions ({', '.join(d.value for d in value.dims)}), `out` has "
            f"({', '.join(d.value for d in target.dims)}), and the domain is {domain}",
            location=where,
        )
    if not target.domain.contains(domain):
        raise DomainError(
            f"the domain leaves `out`: {domain}", location=where, notes=[f"`out` lives on {target.domain}"]
        )
    if value.field_type.dtype == target.dtype:
        return value
    if not value.field_type.weak:
        raise DtypeError(
            f"`out` is {target.dtype}, the result is {value.field_type.dtype}",
            location=where,
            hints=["convert the result with `astype`"],
        )
    return record(Cast(target.dtype), value, location=where)[0]


def _fields(reads: Any) -> list[TracedField]:
    return [x for x in flatten(reads)[0] if isinstance(x, TracedField)]


def _cell_of(x: Any) -> Any:
    return x.cell if isinstance(x, CellPart) else x
