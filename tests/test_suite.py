"""The suite runs under the settings that tests/conftest.py promises."""

import ast
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest


def test_x64_is_on():
    assert jnp.zeros(1).dtype == jnp.float64


def test_x64_off_is_a_process_away(run_python):
    printed = run_python("import jax.numpy as jnp; print(jnp.zeros(1).dtype)", x64=False)
    assert printed.strip() == "float32"


def test_two_cpu_devices_are_visible():
    assert len(jax.devices("cpu")) == 2


def test_implicit_rank_promotion_raises():
    with pytest.raises(ValueError, match="rank"):
        jnp.zeros((2, 3)) + jnp.zeros(3)


def test_warnings_are_errors():
    with pytest.raises(UserWarning):
        warnings.warn("like this one", stacklevel=1)


def test_warnings_are_errors_in_other_processes(run_python):
    with pytest.raises(AssertionError, match="UserWarning: like this one"):
        run_python("import warnings; warnings.warn('like this one')")


def test_words_from_tables_of_tests_are_looked_for_in_messages_alone():
    """An error quotes its source line, where a table of tests may have the very words (tests/refusals.py)."""
    for path in Path(__file__).parent.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "raises":
                words = next((k.value for k in node.keywords if k.arg == "match"), None)
                assert not isinstance(words, ast.Name), f"{path}:{node.lineno}: write `with refused({words.id}):`"
