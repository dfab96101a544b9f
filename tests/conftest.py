"""What the whole suite runs under: JAX's settings, and how long hypothesis searches."""

import os
import subprocess
import sys
from collections.abc import Callable

# JAX reads these when it is first imported, so they stand before any import of it.
SUITE_ENVIRONMENT = {
    "JAX_ENABLE_X64": "1",
    "JAX_NUMPY_RANK_PROMOTION": "raise",
    "JAX_NUM_CPU_DEVICES": "2",
}
os.environ.update(SUITE_ENVIRONMENT)
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

# Compiling takes longer than hypothesis expects of an example. The quick profile tries the same examples in
# every run, so that a landing doesn't fail by chance; the deep one is for finding what nobody thought of.
UNTIMED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}
settings.register_profile("quick", max_examples=25, derandomize=True, database=None, **UNTIMED)
settings.register_profile("deep", max_examples=1000, print_blob=True, **UNTIMED)
# --hypothesis-profile is looked at later, and wins.
settings.load_profile(os.environ.get("FIELDJAX_PROFILE", "quick"))


@pytest.fixture
def run_python() -> Callable[..., str]:
    """Runs source text in a fresh interpreter: `run_python(source, x64=False)` returns what it printed.

    For what is settled once per process: x64 off, import times, environment variables (passed by name).
    Warnings are errors there too; a failure shows the traceback.
    """

    def run(source: str, *, x64: bool = True, **environment: str) -> str:
        variables = {**os.environ, "JAX_ENABLE_X64": str(int(x64)), **environment}
        command = [sys.executable, "-W", "error", "-c", source]
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
