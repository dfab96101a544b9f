"""What makes the small hand-written values of this room immutable."""

from __future__ import annotations

import dataclasses
from typing import Any, NoReturn


class Immutable:
    """Base of slotted values that fill their slots once, through `set_slot`."""

    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise dataclasses.FrozenInstanceError(f"cannot assign to {name!r} of an immutable {type(self).__name__}")

    def __delattr__(self, name: str) -> NoReturn:
        raise dataclasses.FrozenInstanceError(f"cannot delete {name!r} of an immutable {type(self).__name__}")


set_slot = object.__setattr__
