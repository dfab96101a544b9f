"""Errors as data: what each of them carries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from fieldjax.errors.location import Label, Location
from fieldjax.errors.rendering import render


class FieldjaxError(Exception):
    """What every error of fieldjax is.

    It carries a message (what went wrong), a location, labels on offending expressions, notes (the facts at
    hand: domains, dtypes, shapes) and hints (what to do).

    Law: ``str(error) == render(error)``, and an error survives pickling with all its parts.

    >>> error = FieldjaxError("the halves differ", notes=["left: 3"], hints=["cut in the middle"])
    >>> print(error)
    the halves differ
    note: left: 3
    help: cut in the middle
    """

    message: str
    location: Location | None
    labels: tuple[Label, ...]
    notes: tuple[str, ...]
    hints: tuple[str, ...]

    def __init__(
        self,
        message: str,
        *,
        location: Location | None = None,
        labels: Iterable[Label] = (),
        notes: Iterable[str] = (),
        hints: Iterable[str] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.location = location
        self.labels = tuple(labels)
        self.notes = tuple(notes)
        self.hints = tuple(hints)

    def __str__(self) -> str:
        return render(self)

    def with_location(self, location: Location | None) -> Self:
        """Set the location where there is none yet: the innermost one wins. Returns the same error."""
        if self.location is None:
            self.location = location
        return self


class FieldjaxWarning(UserWarning):
    """What every warning of fieldjax is: one category to silence, or to turn into errors."""
