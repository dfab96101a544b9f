"""Where an error is: a place in the user's source, and how the nearest one is found."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import sys
import traceback
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any


@dataclass(frozen=True)
class Location:
    """A place in the user's source.

    Lines count from 1, columns from 0 in UTF-8 bytes, as `ast` and `code.co_positions` give them.
    ``end_column`` is None where the expression goes on in the next line.

    >>> str(Location("model.py", 12, 4, 9, "smooth"))
    'model.py:12, in smooth'
    """

    file: str
    line: int
    column: int | None = None
    end_column: int | None = None
    function: str | None = None

    def __str__(self) -> str:
        inside = f", in {self.function}" if self.function else ""
        return f"{self.file}:{self.line}{inside}"


@dataclass(frozen=True)
class Label:
    """An underlined expression with a remark."""

    text: str
    location: Location


_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# Decorators and dispatchers of the standard library that stand between our own frames.
_PASSED_THROUGH = frozenset({functools.__file__, contextlib.__file__})
_WRITTEN_BY_DATACLASSES = "__create_fn"
_internal_files: dict[str, bool] = {}


def user_location(skip_internal: bool = True) -> Location | None:
    """Where the user's code stands now: the nearest frame outside fieldjax (and JAX), or None.

    ``skip_internal=False`` takes the caller's frame whatever it is. Costs a few microseconds: no
    source is read before the location is rendered.
    """
    frame: FrameType | None = sys._getframe(1)
    while skip_internal and frame is not None and _is_internal(frame.f_code):
        frame = frame.f_back
    return None if frame is None else _location_of(frame)


def raised_in_user_code(error: BaseException) -> bool:
    """Whether a line of the user's own raised `error`, not what it called."""
    frames = [f for f, _ in traceback.walk_tb(error.__traceback__)]
    return bool(frames) and not _is_internal(frames[-1].f_code)


def error_location(error: BaseException) -> Location | None:
    """Where the user's code stood when `error` was raised by something that it called."""
    frames = [f for f, _ in traceback.walk_tb(error.__traceback__)]
    mine = [f for f in frames if not _is_internal(f.f_code)]
    return _location_of(mine[-1]) if mine else None


def _is_internal(code: CodeType) -> bool:
    return _is_internal_file(code.co_filename) or code.co_qualname.startswith(_WRITTEN_BY_DATACLASSES)


def _is_internal_file(file: str) -> bool:
    known = _internal_files.get(file)
    if known is None:
        known = _internal_files[file] = file in _PASSED_THROUGH or file.startswith(_internal_prefixes())
    return known


def _internal_prefixes() -> tuple[str, ...]:
    # A frame of JAX is on the stack only when JAX has been imported: this module needn't import it.
    jax: Any = sys.modules.get("jax")
    folder = os.path.dirname(jax.__file__) + os.sep if getattr(jax, "__file__", None) else _PACKAGE
    return (_PACKAGE, folder, "<fieldjax")


def _location_of(frame: FrameType) -> Location:
    code = frame.f_code
    column, end_column = _columns(code, frame.f_lasti, frame.f_lineno)
    return Location(code.co_filename, frame.f_lineno, column, end_column, _function_name(code))


def _function_name(code: CodeType) -> str | None:
    name = getattr(code, "co_qualname", code.co_name)
    return None if name == "<module>" else name.replace("<locals>.", "")


def _columns(code: CodeType, last_instruction: int, line: int) -> tuple[int | None, int | None]:
    if last_instruction < 0:
        return None, None
    position = next(itertools.islice(code.co_positions(), last_instruction // 2, None))
    start, end, column, end_column = position
    if start != line or column is None:
        return None, None
    return column, end_column if end == start else None
