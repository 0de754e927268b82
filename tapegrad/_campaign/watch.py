"""Many nets of one target, followed together: every state that they pass, as whole numbers.

Nets of like size have arrays of one shape once they are padded, so one compiled program, mapped over nets
and inputs, takes all their steps; states are then read off in NumPy, for all steps at once. A *mark* is a
state in whole numbers: the watch of a target reads marks off what a net has done, and writes them for the
states that an interpreter gives, from the names in the net alone.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from tapegrad._precision import in_double, with_promotion
from tapegrad.source import State
from tapegrad.targets.net import Net

BATCHES = {"cpu": 16}
LARGE_BATCH = 128
"""Nets that go through a compiled program together: what a processor's cache likes, and an accelerator."""

Tree = Any
"""A pytree of NumPy arrays."""


class Seen(NamedTuple):
    """What a net did on one input: a row for each state."""

    marks: NDArray[np.int64]
    done: NDArray[np.bool_] | None
    """Whether it said that it has ended; None where the engine does not say."""
    deviation: NDArray[np.float64]


class Watch(ABC):
    """How the nets of one target are followed."""

    nets: ClassVar[type[Net[Any, Any]]]
    """Those that it knows how to read; others of the target are verified one by one."""

    @abstractmethod
    def fast(self, net: Any, start: State, length: int) -> Seen:
        """What a net passes by the engine `fast`, which takes one step after the other."""

    def prepared(self, net: Any) -> Any:
        """The net as `fast` wants it, made once for all inputs."""
        return net

    @abstractmethod
    def marks(self, net: Any, states: Sequence[State]) -> NDArray[np.int64]:
        """The marks of these states."""


class Stepped(Watch):
    """How they are followed one by one, by either engine."""

    @abstractmethod
    def steps(self, net: Any, start: State, length: int, engine: str) -> Seen:
        """What a net passes in so many states, or until it says that it has ended."""

    def fast(self, net: Any, start: State, length: int) -> Seen:
        return self.steps(net, start, length, "fast")


class Batched(Watch):
    """How they are followed many at once, by the reference engine."""

    double = True
    """Whether its numbers are of 64 bits."""

    @abstractmethod
    def parts(self, net: Any, starts: Sequence[State], length: int) -> tuple[Tree, list[Tree]]:
        """What the compiled program is given: of the net, and of each input."""

    @abstractmethod
    def trace(self, own: Tree, first: Tree, length: int) -> Tree:
        """The program: what one net passes in so many states, in JAX."""

    @abstractmethod
    def seen(self, net: Any, traced: Tree) -> Seen:
        """The marks of what it has passed."""


def follow(
    watch: Watch, nets: Sequence[Any], starts: Sequence[Sequence[State]], length: int, engine: str
) -> list[list[Seen]]:
    """For each net and each of its first states (as many for all), what was seen."""
    if engine == "fast":
        ready = map(watch.prepared, nets)
        return [
            [watch.fast(net, start, length) for start in own] for net, own in zip(ready, starts, strict=True)
        ]
    if isinstance(watch, Stepped):
        return [
            [watch.steps(net, start, length, engine) for start in own]
            for net, own in zip(nets, starts, strict=True)
        ]
    assert isinstance(watch, Batched)
    found: list[list[Seen]] = [[] for _ in nets]
    together: dict[Any, list[tuple[int, Tree]]] = {}
    for number, (net, own) in enumerate(zip(nets, starts, strict=True)):
        arrays, inputs = watch.parts(net, own, length)
        pair = arrays, jax.tree.map(lambda *leaves: np.stack(leaves), *inputs)
        shapes = [(leaf.shape, leaf.dtype) for leaf in map(np.asarray, jax.tree.leaves(pair))]
        together.setdefault((jax.tree.structure(pair), str(shapes)), []).append((number, pair))
    size = BATCHES.get(jax.default_backend(), LARGE_BATCH)
    batches = [
        group[first : first + size] for group in together.values() for first in range(0, len(group), size)
    ]
    for group in batches:
        pairs = [pair for _, pair in group]
        pairs += pairs[-1:] * (size - len(pairs))  # one size of batches
        own, inputs = jax.tree.map(lambda *leaves: np.stack(leaves), *pairs)
        traced = jax.tree.map(np.asarray, _in_precision(watch.double)(_traced)(watch, own, inputs, length))
        for place, (number, _) in enumerate(group):
            for which in range(len(starts[number])):
                one = jax.tree.map(lambda leaf, at=(place, which): leaf[at], traced)
                found[number].append(watch.seen(nets[number], one))
    return found


def _in_precision(double: bool) -> Any:
    return in_double if double else with_promotion


@partial(jax.jit, static_argnames=("watch", "length"))
def _traced(watch: Batched, own: Tree, inputs: Tree, length: int) -> Tree:
    one = partial(watch.trace, length=length)
    return jax.vmap(jax.vmap(one, (None, 0)))(own, inputs)


def joined(*columns: NDArray[Any]) -> NDArray[np.int64]:
    """Columns side by side, what stands in a grid row by row."""
    if columns[0].ndim == 1:
        return np.concatenate([column.reshape(-1) for column in columns]).astype(np.int64)
    flat = [column.reshape(len(column), -1).astype(np.int64) for column in columns]
    return np.concatenate(flat, axis=1)


def one_hot(on: NDArray[np.bool_]) -> NDArray[np.int64]:
    """For each row the place of its one, or -1 where there is not just one."""
    return np.where(on.sum(1) == 1, on.argmax(1), -1)
