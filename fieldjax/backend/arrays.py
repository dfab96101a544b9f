"""JAX arrays inside a compiled program: as in `ir.jax_arrays`, and producers stay materialised."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fieldjax.ir.jax_arrays import JaxArrays


class CompiledArrays(JaxArrays):
    """What a compiled program evaluates with."""

    def hold(self, array: Any) -> Any:
        from fieldjax.backend.barrier import materialise

        return materialise(array)

    def compiled(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function itself: the program around it is compiled as a whole."""
        return function
