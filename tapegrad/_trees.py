"""Frozen records whose arrays JAX finds, once JAX is there.

A net is made, saved and run without JAX; only who differentiates it needs JAX, which takes longer to import
than many a run. So a class says here what its arrays are, and JAX is told when it comes.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

import numpy as np
from numpy.typing import NDArray

Class = TypeVar("Class")
Register = Callable[[type[Any], tuple[str, ...], tuple[str, ...]], None]

_classes: list[tuple[type[Any], tuple[str, ...], tuple[str, ...]]] = []
_told: list[Register] = []


def static(**options: Any) -> Any:
    """A field that is no array, and part of what is compiled."""
    return field(metadata={"static": True}, **options)


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(static,))
def tree(cls: type[Class]) -> type[Class]:
    """A frozen dataclass whose arrays are the leaves of a pytree."""
    made: Any = dataclass(frozen=True, eq=False)(cls)
    arrays = tuple(own.name for own in fields(made) if not own.metadata.get("static"))
    statics = tuple(own.name for own in fields(made) if own.metadata.get("static"))
    _classes.append((made, arrays, statics))
    for register in _told:
        register(made, arrays, statics)
    return made


def arrays_in(own: Any) -> Iterator[NDArray[Any]]:
    """Every array in trees and tuples of them."""
    if isinstance(own, np.ndarray):
        yield own
    elif isinstance(own, tuple):
        for part in own:
            yield from arrays_in(part)
    elif is_dataclass(own):
        for part in fields(own):
            if not part.metadata.get("static"):
                yield from arrays_in(getattr(own, part.name))


def tell_jax() -> None:
    """Makes pytrees of all these classes, those to come included."""
    if not _told:
        _told.append(_register)
        for own in _classes:
            _register(*own)


def _register(cls: type[Any], arrays: tuple[str, ...], statics: tuple[str, ...]) -> None:
    """A tree is put together again without `__init__`: JAX may have put anything in the place of an array."""
    from jax.tree_util import GetAttrKey, register_pytree_with_keys

    values, constants = _getter(arrays), _getter(statics)

    def flatten(node: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return values(node), constants(node)

    def flatten_with_keys(node: Any) -> tuple[list[Any], tuple[Any, ...]]:
        return [(GetAttrKey(name), getattr(node, name)) for name in arrays], constants(node)

    def unflatten(static_values: tuple[Any, ...], leaves: Iterable[Any]) -> Any:
        node = object.__new__(cls)
        node.__dict__.update(zip(arrays, leaves, strict=True))
        node.__dict__.update(zip(statics, static_values, strict=True))
        return node

    register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)


def _getter(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """From an object to its attributes of these names."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda node: tuple(getattr(node, name) for name in names)
