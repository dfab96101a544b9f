"""Errors that a test expects, by what they say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from fieldjax.errors import FieldjaxError


@contextmanager
def refused(message: str, error: type[BaseException] = FieldjaxError) -> Iterator[pytest.ExceptionInfo[Any]]:
    """The block raises an error whose words match the regular expression `message`.

    `pytest.raises(match=...)` also looks at the source line that an error of fieldjax quotes. Where a table of tests
    has a call and the expected words on one line, it always finds them there.
    """
    with pytest.raises(error) as caught:
        yield caught
    found = caught.value
    if isinstance(found, FieldjaxError):
        found = FieldjaxError(
            found.message, notes=(*(text for _, text in found.labels), *found.notes), hints=found.hints
        )
    assert re.search(message, str(found)), f"{message!r} isn't in\n{found}"
