"""The JAX settings that networks are written for, whatever the user's own global ones say."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import jax

P = ParamSpec("P")
R = TypeVar("R")


def with_promotion(function: Callable[P, R]) -> Callable[P, R]:
    """Runs `function` with JAX's standard promotion of types and ranks, which a user may have forbidden in
    code of their own."""

    @wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
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
