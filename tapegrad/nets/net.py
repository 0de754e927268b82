"""What every target provides: a net that steps and decodes, and a description to find it by."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import equinox as eqx
import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import InputError, Refused
from tapegrad.lowering.rewriting import Rewriting, Source, State

Carry = Any
"""Whatever a net hands from one step to the next: weights under training, activations, a cache."""


class Net(eqx.Module):
    """A network that runs one source. It knows its parameters (it is a pytree), how to take one step,
    how to decode, and when it is done; `verify` needs nothing else."""

    target: ClassVar[str]
    engines: ClassVar[tuple[str, ...]] = ("reference",)
    """`reference` is the definition; any other engine gives the same carries faster."""

    @abstractmethod
    def start(self, state: State) -> Carry:
        """The network before its first step, on a first state of the source it was built from."""

    @abstractmethod
    def step(self, carry: Carry) -> Carry:
        """One step: a forward step, or one step of gradient descent."""

    @abstractmethod
    def decode(self, carry: Carry) -> State | None:
        """The source's state, read off activations or weights; None where the net is between two
        steps of the source."""

    @abstractmethod
    def done(self, carry: Carry) -> bool:
        """Whether the network itself says that the computation has ended."""

    @abstractmethod
    def deviation(self, carry: Carry) -> float:
        """Largest distance of the values that carry meaning from their ideal values."""

    def steps_taken(self, carry: Carry) -> int:
        """How many steps led to this carry."""
        return int(carry.steps)

    def advance(self, carry: Carry, steps: int, engine: str = "reference") -> Carry:
        """At most `steps` steps, fewer if the net is done; by the engine asked for."""
        self.check_engine(engine)
        for _ in range(steps):
            if self.done(carry):
                break
            carry = self.step(carry)
        return carry

    def check_engine(self, engine: str) -> None:
        """Refuses an engine this target does not have."""
        if engine not in self.engines:
            raise InputError(
                f"target {self.target!r} has no engine {engine!r}",
                advice=f"Its engines are {', '.join(self.engines)}.",
            )

    @abstractmethod
    def units(self) -> Iterator[str]:
        """The names that `explain` understands."""

    @abstractmethod
    def explain(self, unit: str) -> str:
        """In words: which construct of the source a weight or unit serves, and which line of the paper."""

    @abstractmethod
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Every weight and table needed to run the net: what goes into `model.safetensors`."""

    @abstractmethod
    def config(self) -> dict[str, Any]:
        """Sizes, names of inputs and outputs, constants: what goes into `config.json`."""

    @classmethod
    @abstractmethod
    def from_saved(cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The net again, from these two alone: no compiler, no source."""

    @abstractmethod
    def certificate(self) -> dict[str, Any]:
        """The claims that can be checked from the arrays alone (bounds, gaps, margins), as plain JSON.
        `tapegrad/checker/<target>.py` re-derives them without this class."""

    @property
    def parameters(self) -> int:
        """How many numbers the saved net consists of."""
        return sum(int(np.size(array)) for array in self.arrays().values())


@dataclass(frozen=True)
class Estimate:
    """The cost of a net, known before it is built."""

    width: int
    depth: int
    parameters: int
    bytes: int
    steps: int | None
    precision: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Option:
    """An option of a target: its default, and a line of help."""

    default: Any
    help: str
    choices: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Example:
    """A source and an input small enough to show a target at work in a second or two."""

    source: Source
    inputs: tuple[Any, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    steps: int = 10_000


@dataclass(frozen=True)
class Target:
    """A construction: what it takes, how it is built, what it costs, and how to show it."""

    name: str
    summary: str
    paper: str
    takes: type
    """The kind of source it is built from; others come through lowering."""
    net: type[Net]
    build: Callable[..., Net]
    """`build(source, **options)`, for a source that `passes` has made ready."""
    estimate: Callable[..., Estimate]
    """`estimate(source, **options)`, without building."""
    examples: Callable[[], Sequence[Example]]
    options: Mapping[str, Option] = field(default_factory=dict)
    passes: Callable[..., Sequence[Rewriting]] = lambda source, **options: ()
    """`passes(source, **options)`: the rewritings that make a source of the right kind ready."""

    built_for_inputs: bool = False
    """Whether a net is built for certain inputs, given by the option `inputs`."""

    def with_defaults(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """All options with their values; unknown names and values are refused."""
        for name, value in options.items():
            known = self.options.get(name)
            if known is None:
                listed = ", ".join(self.options) or "none"
                raise Refused(
                    f"target {self.name!r} has no option {name!r}",
                    advice=f"Its options: {listed}.",
                )
            if known.choices and value not in known.choices:
                raise Refused(
                    f"option {name!r} of target {self.name!r} cannot be {value!r}",
                    advice=f"Choose one of {', '.join(map(str, known.choices))}.",
                )
        return {name: option.default for name, option in self.options.items()} | dict(options)
