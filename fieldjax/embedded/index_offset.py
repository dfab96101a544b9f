"""`as_offset`: a distance along a dimension that differs from element to element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fieldjax.domain import Dimension


@dataclass(frozen=True, slots=True, eq=False)
class IndexOffset:
    """Reading at `k + indices[..., k]` along `dimension`; `indices` is a field of integers, or a recorded one."""

    dimension: Dimension
    indices: Any
