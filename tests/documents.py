"""The Python examples of a Markdown file, run in order in one namespace: `python tests/documents.py FILE`.

Blocks fenced as `python` are run; `text`, `console` and others are for reading. Errors name the line of the
Markdown file, and functions defined there have source text, as field operators need.
"""

import linecache
import re
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^(?P<indent> *)(?P<fence>```+|~~~+) *(?P<language>\w*)")


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, the line (from 1) of its first line of text, and the text."""

    language: str
    line: int
    lines: tuple[str, ...]


def blocks(text: str) -> Iterator[Block]:
    """All fenced blocks of a Markdown text, in order; an unclosed one runs to the end."""
    numbered = enumerate(text.splitlines(), start=1)
    for number, line in numbered:
        if opening := FENCE.match(line):
            closing = opening["indent"] + opening["fence"]
            inside = []
            for _, inner in numbered:
                if inner.rstrip() == closing:
                    break
                inside.append(inner.removeprefix(opening["indent"]))
            yield Block(opening["language"], number + 1, tuple(inside))


def run(path: Path) -> int:
    """Runs the examples of one file and returns how many there were."""
    text = path.read_text(encoding="utf-8")
    examples = [block for block in blocks(text) if block.language == "python"]
    # What inspect.getsource reads: the file with all else blanked out, so that line numbers stay.
    source = [""] * (len(text.splitlines()) + 1)
    for example in examples:
        source[example.line - 1 : example.line - 1 + len(example.lines)] = example.lines
    linecache.cache[str(path)] = (len(text), None, [line + "\n" for line in source], str(path))
    module = types.ModuleType("example")
    sys.modules["example"] = module  # dataclasses and pickle look a class's module up
    for example in examples:
        padded = "\n" * (example.line - 1) + "\n".join(example.lines)
        exec(compile(padded, str(path), "exec"), module.__dict__)
    return len(examples)


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print(f"{argument}: {run(Path(argument))} examples ran")
