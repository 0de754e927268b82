"""What holds for all tests: shapes of arrays are checked, and compiled programs are dropped in time, but for
their files, which all workers and the processes they start share."""

import gc
import os
import sys
from collections import Counter
from collections.abc import Iterator
from tempfile import TemporaryDirectory

import pytest
from jaxtyping import install_import_hook

from tests.shapes import checked

SHAPED = [
    *(f"tapegrad.targets.{name}" for name in ("descent", "extended", "simplex.loss", "tape.loss")),
    "tapegrad.targets.emulator.loss",
    *(f"tapegrad.networks.{name}" for name in ("form", "numpy")),
]
"""Where arrays have shapes. Not the fast engines: numba compiles functions as they stand, or not at all."""

install_import_hook(SHAPED, f"{checked.__module__}.{checked.__name__}")


def pytest_configure(config: pytest.Config) -> None:
    """One folder of compiled programs for the run. Only the process that starts the workers makes it."""
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        folder = TemporaryDirectory(prefix="tapegrad-tests-")
        config.add_cleanup(folder.cleanup)
        os.environ |= {
            "JAX_COMPILATION_CACHE_DIR": folder.name,
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out what `-m` does not name
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a family of like cases marked `sampled(n)` the quick tests take every n-th; the rest are slow."""
    seen: Counter[str] = Counter()
    for item in items:
        if sampled := item.get_closest_marker("sampled"):
            family = item.nodeid.partition("[")[0]
            if seen[family] % sampled.args[0]:
                item.add_marker("slow")
            seen[family] += 1


@pytest.fixture(scope="module", autouse=True)
def _drop_compiled_programs() -> Iterator[None]:
    """JAX keeps every program it has compiled, and with it the arrays it closes over; a worker that went
    through all modules held 4 GB."""
    yield
    if "jax" in sys.modules:  # much of the package works without
        sys.modules["jax"].clear_caches()
        gc.collect()
