"""What holds for all tests: shapes of arrays are checked, and compiled programs are dropped in time."""

import gc
import sys
from collections.abc import Iterator

import pytest
from jaxtyping import install_import_hook

from tests.shapes import checked

SHAPED = [
    *(f"tapegrad.targets.{name}" for name in ("descent", "extended", "simplex.loss", "tape.loss")),
    "tapegrad.targets.emulator.loss",
    *(f"tapegrad.networks.{name}" for name in ("form", "jax", "numpy", "intervals")),
]
"""Where arrays have shapes. Not the fast engines: numba compiles functions as they stand, or not at all."""

install_import_hook(SHAPED, f"{checked.__module__}.{checked.__name__}")


@pytest.fixture(scope="module", autouse=True)
def _drop_compiled_programs() -> Iterator[None]:
    """JAX keeps every program it has compiled, and with it the arrays it closes over; a worker that went
    through all modules held 4 GB."""
    yield
    if "jax" in sys.modules:  # much of the package works without
        sys.modules["jax"].clear_caches()
        gc.collect()
