"""Shapes and kinds of arrays, checked at run time: what `Float[Array, "cells tapes"]` says must be so.

jaxtyping matches one array with one annotation, and knows which names have been given a size within a call;
it leaves it to a type checker to go through the arguments. This one looks at annotations of arrays and at
nothing else. `tests/conftest.py` switches it on.
"""

import inspect
from collections.abc import Callable
from functools import wraps
from types import UnionType
from typing import Any, Union, get_args, get_origin

from jaxtyping import AbstractArray


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, refusing arguments and results that do not have the shapes they should."""
    signature = inspect.signature(function)
    shapes = {name: p.annotation for name, p in signature.parameters.items() if _has_shape(p.annotation)}
    result = signature.return_annotation

    @wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        for name, annotation in shapes.items():
            if name in given:
                _require(given[name], annotation, name)
        value = function(*args, **kwargs)
        if _has_shape(result):
            _require(value, result, "the result")
        return value

    return wrapped


def _options(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)


def _has_shape(annotation: Any) -> bool:
    """Whether it is a type of arrays, or a union of such with plain classes."""
    options = _options(annotation)
    are_types = all(isinstance(option, type) for option in options)
    return are_types and any(issubclass(option, AbstractArray) for option in options)


def _require(value: Any, annotation: Any, name: str) -> None:
    if not any(isinstance(value, option) for option in _options(annotation)):
        shape = getattr(value, "shape", None)
        raise TypeError(f"{name} is {type(value).__name__} of shape {shape}, not {annotation}")
