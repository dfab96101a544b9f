"""JAX arrays inside a compiled program: as in `ir.jax_arrays`, and producers stay materialised."""

from __future__ import annotations

from typing import Any

from fieldjax.ir.jax_arrays import JaxArrays


class CompiledArrays(JaxArrays):
    """What a compiled program evaluates with."""

    def hold(self, array: Any) -> Any:
        from fieldjax.backend.barrier import materialise

        return materialise(array)
