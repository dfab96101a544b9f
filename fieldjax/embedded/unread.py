"""A result that nobody read: what `out=` wrote under a foreign trace is lost unless it is returned."""

from __future__ import annotations

import warnings

from fieldjax.errors import FieldjaxWarning, Location


class Unread:
    """Warns when it is dropped before the field that holds it was read."""

    __slots__ = ("_location", "_wanted")

    def __init__(self, location: Location | None) -> None:
        self._location, self._wanted = location, True

    def dismiss(self) -> None:
        """The field was read."""
        self._wanted = False

    def __del__(self) -> None:
        if self._wanted:
            where = f" (written at {self._location})" if self._location else ""
            warnings.warn(
                f"a field was changed under jax.jit and neither read nor returned: the change is lost{where}. "
                "Return the field, or use fieldjax.jit",
                FieldjaxWarning,
                stacklevel=2,
            )
