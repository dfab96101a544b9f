"""The one renderer of errors: message, source lines with underlines, notes, hints."""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Iterator
from typing import TYPE_CHECKING

from fieldjax.errors.location import Label

if TYPE_CHECKING:
    from fieldjax.errors.base import FieldjaxError


def render(error: FieldjaxError) -> str:
    """The text of an error: message, source with underlines, notes, hints.

    >>> from fieldjax.errors import DomainError
    >>> print(render(DomainError("nothing is left", hints=["make the domain larger"])))
    nothing is left
    help: make the domain larger
    """
    lines = [error.message, *_render_places(error)]
    lines += [_paragraph("note", note) for note in error.notes]
    lines += [_paragraph("help", hint) for hint in error.hints]
    return "\n".join(lines)


def _paragraph(kind: str, text: str) -> str:
    return f"{kind}: " + text.replace("\n", "\n" + " " * (len(kind) + 2))


def _render_places(error: FieldjaxError) -> Iterator[str]:
    labels = list(error.labels)
    if error.location and all(label.location != error.location for label in labels):
        labels.insert(0, Label("", error.location))
    for _, group in itertools.groupby(labels, key=lambda label: label.location.file):
        yield from _render_file(sorted(group, key=lambda label: label.location.line))


def _render_file(labels: list[Label]) -> Iterator[str]:
    width = len(str(labels[-1].location.line))
    yield f"{' ' * width} --> {labels[0].location}"
    for line, group in itertools.groupby(labels, key=lambda label: label.location.line):
        source = linecache.getline(labels[0].location.file, line).rstrip()
        if source:
            yield f"{line:>{width}} | {source}"
        for label in group:
            underlined = _underline(source, label)
            if underlined:
                yield f"{' ' * width} | {underlined}".rstrip()


def _underline(source: str, label: Label) -> str:
    """Carets under the label's columns (bytes in the source, characters here), then its text."""
    location = label.location
    if not source or location.column is None:
        return label.text
    encoded = source.encode()
    before = encoded[: location.column].decode(errors="replace")
    under = encoded[location.column : location.end_column].decode(errors="replace")
    indent = "".join("\t" if char == "\t" else " " for char in before)
    return f"{indent}{'^' * max(1, len(under))} {label.text}".rstrip()
