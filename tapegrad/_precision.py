"""The JAX settings that networks are written for, whatever the user's own global ones say."""

import warnings
from collections.abc import Callable
from functools import cache, wraps
from typing import ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from tapegrad._trees import tell_jax

tell_jax()

P = ParamSpec("P")
R = TypeVar("R")


class InexactArithmetic(UserWarning):
    """Results may differ from what a certificate promises."""


@cache
def warn_of_fast_math() -> None:
    """Certificates hold for IEEE arithmetic. A compiler that is allowed to reorder sums or to take NaN for
    impossible (`--xla_cpu_enable_fast_math`, say) breaks it silently, so a canary is measured once:
    (1 + 2^24) - 2^24 is 0 in float32, 1 once the sum is reordered; and NaN is not a number."""
    large, one, nan = (jnp.float32(number) for number in (2.0**24, 1.0, np.nan))
    measured = jax.jit(lambda a, b, c: ((b + a) - a, jnp.isnan(c)))(large, one, nan)
    if float(measured[0]) != 0 or not bool(measured[1]):
        warnings.warn(
            "JAX reorders sums or ignores NaN here (fast-math), so networks may not be exact. Remove the "
            "fast-math flags from XLA_FLAGS, or use an engine that does not run on JAX.",
            InexactArithmetic,
            stacklevel=3,
        )


def with_promotion(function: Callable[P, R]) -> Callable[P, R]:
    """Runs `function` with JAX's standard promotion of types and ranks, which a user may have forbidden in
    code of their own."""

    @wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
            warn_of_fast_math()
            return function(*args, **kwargs)

    return wrapped


def in_double(function: Callable[P, R]) -> Callable[P, R]:
    """The same with 64-bit JAX numbers."""

    @wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with jax.enable_x64(True):
            return promoting(*args, **kwargs)

    promoting = with_promotion(function)
    return wrapped
