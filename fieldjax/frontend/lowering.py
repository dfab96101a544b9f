"""What a call becomes, to be read: the recorded graph, the jaxpr, StableHLO."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax


@dataclass(frozen=True)
class Lowered:
    """One call, lowered but not run.

    Tables are arguments of the jaxpr and of the StableHLO like fields are: neither holds constants of a mesh.
    """

    graph: str | None
    """The recorded operations, a line each, with source lines; None for `fieldjax.jit`, which has no one graph."""
    jaxpr: Any
    """The closed jaxpr."""
    stages: jax.stages.Lowered
    """The same as a stage of JAX, to be compiled or analysed."""

    @classmethod
    def of(cls, graph: str | None, traced: jax.stages.Traced) -> Lowered:
        """What JAX traced of a call."""
        return cls(graph, traced.jaxpr, traced.lower())

    @property
    def stablehlo(self) -> str:
        """The text that XLA compiles."""
        return self.stages.as_text()

    def as_text(self, dialect: str | None = None) -> str:
        """As of JAX's stage: StableHLO, or another dialect."""
        return self.stages.as_text(dialect)

    def compile(self) -> jax.stages.Compiled:
        """The executable, as of JAX's stage."""
        return self.stages.compile()

    def __str__(self) -> str:
        parts = {"graph": self.graph, "jaxpr": str(self.jaxpr), "StableHLO": self.stablehlo}
        return "\n\n".join(f"# {name}\n{text}" for name, text in parts.items() if text is not None)
