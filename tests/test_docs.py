"""Every example in the README, the docs and the docstrings runs, under the settings a newcomer has."""

import doctest
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from tests.conftest import SUITE_ENVIRONMENT
from tests.documents import blocks

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), ROOT / "benchmarks/README.md"]
SOURCES = sorted((ROOT / "fieldjax").rglob("*.py"))
MODULES = [".".join(source.relative_to(ROOT).with_suffix("").parts) for source in SOURCES]
WITH_EXAMPLES = [page for page in PAGES if any(b.language == "python" for b in blocks(page.read_text()))]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=name_of)
def test_examples_of_a_page_run(page, tmp_path):
    environment = {name: v for name, v in os.environ.items() if name not in SUITE_ENVIRONMENT}
    command = [sys.executable, "-W", "error", str(ROOT / "tests/documents.py"), str(page)]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings_run(name):
    module = importlib.import_module(name.removesuffix(".__init__"))
    with jax.enable_x64(False):
        result = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0, f"{result.failed} of {result.attempted} examples failed; see the output"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_between_pages_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
    missing = [t for t in targets if "://" not in t and not (page.parent / t).exists()]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_fenced_block_says_what_it_is(page):
    unnamed = [block.line for block in blocks(page.read_text(encoding="utf-8")) if not block.language]
    assert not unnamed, f"python blocks are run, text and console ones aren't: lines {unnamed}"
