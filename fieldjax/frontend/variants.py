"""What was compiled ahead without fields: values of static parameters, and kinds of tables."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from fieldjax.connectivity import Connectivity, Provider
from fieldjax.errors import NotCompiledError, user_location
from fieldjax.frontend.containers import flatten

MOST_SHOWN = 8


@dataclass(frozen=True)
class Variant:
    """Values of the static parameters by name, and the kind of each table that was provided."""

    static: tuple[tuple[str, Hashable], ...]
    tables: tuple[tuple[str, Hashable], ...]

    @classmethod
    def of(cls, static: Mapping[str, Any], provider: Provider, names: Collection[str] | None = None) -> Variant:
        """That of a call; of the tables those of `names`."""
        tables = {n: provider[n] for n in provider if names is None or n in names}
        kinds = {n: _kind(t) for n, t in tables.items() if isinstance(t, Connectivity)}
        return cls(
            tuple(sorted((n, _by_value(x)) for n, x in static.items())),
            tuple(sorted(kinds.items(), key=lambda item: item[0])),
        )

    def admits(self, call: Variant) -> bool:
        """Whether a call is of this variant. What it doesn't name, and tables that aren't used, don't matter."""
        static, tables = dict(call.static), dict(self.tables)
        named = all(n in static and static[n] == x for n, x in self.static)
        return named and all(tables.get(n) == kind for n, kind in call.tables)

    def __str__(self) -> str:
        static = ", ".join(f"{n}={_shown(x)}" for n, x in self.static)
        tables = ", ".join(f"{n}: {kind}" for n, kind in self.tables)
        return " | ".join(part for part in (static, tables) if part) or "without static parameters or tables"


class Variants:
    """The variants of one operator or program."""

    def __init__(self) -> None:
        self._known: dict[Variant, None] = {}

    def add(self, variant: Variant) -> None:
        """Admits calls of a variant."""
        self._known[variant] = None

    def check(self, name: str, call: Variant) -> None:
        """Raises NotCompiledError where a call is of no known variant."""
        if any(v.admits(call) for v in self._known):
            return
        shown = [f"  {v}" for v in list(self._known)[:MOST_SHOWN]]
        more = len(self._known) - len(shown)
        listed = [*shown, *([f"  and {more} more"] if more else [])]
        raise NotCompiledError(
            f"{name} isn't compiled for this call, and `enable_jit` is off",
            location=user_location(),
            notes=[
                f"the call is {call}",
                "\n".join(["compiled ahead for any fields are:", *listed]) if listed else "nothing else was compiled",
            ],
            hints=["compile it ahead: `compile(offset_provider=..., ...)`", "or call it with `enable_jit=True`"],
        )


class _TableKind(tuple[Any, ...]):
    """(dimensions, codomain, neighbours, whether some may be missing)."""

    def __str__(self) -> str:
        dims, codomain, neighbours, has_skips = self
        shown = f"{'×'.join(d.value for d in dims)} -> {codomain.value}, {neighbours} neighbours"
        return shown + (" with skips" if has_skips else "")


def _kind(table: Connectivity) -> _TableKind:
    local = table.local_dimension
    neighbours = 1 if local is None else len(table.domain.range_of(local))
    return _TableKind((table.domain.dims, table.codomain, neighbours, table.skip_value is not None))


def _by_value(x: Any) -> Hashable:
    """Scalars by value, whatever their type: `np.int32(1)` is a call of the variant 1."""
    leaves, _ = flatten(x)
    items = tuple(leaf.item() if hasattr(leaf, "item") else leaf for leaf in leaves)
    numbers = tuple("nan" if item != item else item for item in items)
    return numbers[0] if len(numbers) == 1 else numbers


def _shown(x: Hashable) -> str:
    return repr(x)
