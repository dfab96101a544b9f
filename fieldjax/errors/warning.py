"""Warnings, at the user's line rather than at ours."""

from __future__ import annotations

import warnings

from fieldjax.errors.base import FieldjaxWarning
from fieldjax.errors.location import Location


def warn(message: str, location: Location | None) -> None:
    """A `FieldjaxWarning` at a place in the user's source; it is for the caller not to repeat itself."""
    if location is None:
        warnings.warn(message, FieldjaxWarning, stacklevel=2)
    else:
        warnings.warn_explicit(message, FieldjaxWarning, location.file, location.line)
