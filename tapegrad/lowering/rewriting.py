"""What every rewriting of a source gives back: the new source and the way to and from it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

State = Any
"""What a source's interpreter yields: a configuration, a batch of bits, the memory of a learner."""


class Source(Protocol):
    """A machine, a circuit or a learner: something with a first state and an interpreter."""

    @property
    def name(self) -> str: ...

    @property
    def start(self) -> Callable[..., State]:
        """A method: the first state for an input as a user writes it."""
        ...

    def run(self, state: State, /) -> Iterator[State]:
        """Every state from this one to the end, in order."""
        ...


@dataclass(frozen=True)
class Rewriting:
    """A source turned into another that does the same.

    `encode` takes the first state of `before` to the first state of `after`. `decode` takes a state of
    `after` to the state of `before` that it stands for, or to None while `after` is between two steps of
    `before`. The guarantee, which tests check side by side: run `after` from an encoded state, decode
    everything, drop the Nones, and what is left is the run of `before`, each state once. A
    rewriting that `covers` T steps decodes just its last state, to the state of `before` after T steps, or
    at its halt if that is earlier.
    """

    name: str
    before: Source
    after: Source
    encode: Callable[[State], State]
    decode: Callable[[State], State | None]
    covers: int | None = None


def chained(first: Rewriting, second: Rewriting) -> Rewriting:
    """Two rewritings, one after the other, as one."""

    def decode(state: State) -> State | None:
        between = second.decode(state)
        return None if between is None else first.decode(between)

    return Rewriting(
        f"{first.name}, {second.name}",
        first.before,
        second.after,
        lambda state: second.encode(first.encode(state)),
        decode,
        first.covers,
    )
