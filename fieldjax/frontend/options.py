"""How an operator or a program may be compiled: at the call or ahead, and by which scalars' values."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fieldjax.errors import ArgumentError, user_location


@dataclass(frozen=True)
class CompilationOptions:
    """What `with_compilation_options` sets; gt4py.next's names."""

    enable_jit: bool = True
    """Whether a call may compile. Otherwise a call of what wasn't compiled by `compile` is an error."""
    static_params: tuple[str, ...] | None = None
    """Scalar parameters that the compiled program depends on by value. None: those that `compile` is given."""
    connectivities: Any = None
    """The offset provider that `compile` takes where it is given none."""
    static_domains: bool = True
    """Domains are always static here; accepted for programs written for gt4py.next."""

    @classmethod
    def of(cls, static_params: str | Sequence[str | None] | None = None, **options: Any) -> CompilationOptions:
        """Options by name. Raises ArgumentError for one that there isn't."""
        names = {f.name for f in dataclasses.fields(cls)}
        if unknown := sorted(set(options) - names):
            raise ArgumentError(
                f"{unknown[0]!r} isn't a compilation option",
                location=user_location(),
                notes=[f"these are: {', '.join(sorted(names))}"],
            )
        return cls(static_params=_names(static_params), **options)

    def changed(self, **options: Any) -> CompilationOptions:
        """These options with others in their place."""
        return CompilationOptions.of(**{**vars(self), **options})


def _names(static_params: str | Sequence[str | None] | None) -> tuple[str, ...] | None:
    if static_params is None:
        return None
    given = (static_params,) if isinstance(static_params, str) else static_params
    return tuple(n for n in given if n is not None)
