"""The runner of Markdown examples finds, places and runs them as it says."""

import pytest

from tests.documents import Block, blocks, run

PAGE = """\
# Title

```python
import inspect

def double(x):
    return 2 * x
```

Indented, and of another language:

  ```text
  not run
  ```

```python
assert double(2) == 4
assert inspect.getsource(double) == "def double(x):\\n    return 2 * x\\n"
```
"""


def test_blocks_are_found_with_their_language_and_line():
    found = list(blocks(PAGE))
    assert [(block.language, block.line) for block in found] == [("python", 4), ("text", 13), ("python", 17)]
    assert found[1] == Block("text", 13, ("not run",))


def test_examples_share_a_namespace_and_have_source(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    assert run(page) == 2


def test_an_error_names_the_line_of_the_page(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("text\n\n```python\nx = 1\nx / 0\n```\n")
    with pytest.raises(ZeroDivisionError) as caught:
        run(page)
    last = caught.traceback[-1]
    assert (str(last.path), last.lineno + 1) == (str(page), 5)
