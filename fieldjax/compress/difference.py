"""Where two graphs begin to differ, as text."""

from __future__ import annotations

from itertools import zip_longest

from fieldjax.ir.graph import Graph


def first_difference(first: Graph, second: Graph) -> str:
    """The first line in which the text forms of two graphs differ, names and source lines apart."""
    lines = [_plain(str(g)) for g in (first, second)]
    for number, (a, b) in enumerate(zip_longest(*lines, fillvalue="nothing more"), 1):
        if a != b:
            return f"they differ first in line {number}: {a.strip()!r} there, {b.strip()!r} here"
    return "their operations are the same; they differ in the domains or the attributes of an operation"


def _plain(text: str) -> list[str]:
    return [line.split("  # ")[0] for line in text.splitlines()]
