"""What the net of every target provides: it steps and decodes."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import InputError, Refused
from tapegrad.networks.explaining import Explained
from tapegrad.networks.network import Network
from tapegrad.networks.saving import arrays_of
from tapegrad.targets.target import Counts
from tapegrad_check.folder import OF_NETWORK

LOOKS = 100
"""At a run of millions of steps."""
SHORT_RUN = 2_000


class Counted(Protocol):
    """What is handed from step to step knows how many led to it."""

    @property
    def steps(self) -> Any:
        """A whole number, of Python or of NumPy."""
        ...


StateT = TypeVar("StateT")
CarryT = TypeVar("CarryT", bound=Counted)


def part_of(unit: str, heads: Sequence[int]) -> tuple[int, ...]:
    """Of `head 1.2` the layer and the head, of `units 1` the layer, in a transformer whose layers have so
    many heads; nothing for any other name."""
    kind, _, rest = unit.partition(" ")
    numbers = tuple(int(part) for part in rest.split(".") if part.isascii() and part.isdecimal())
    if len(numbers) != {"head": 2, "units": 1}.get(kind) or numbers[0] >= len(heads):
        return ()
    return numbers if kind == "units" or numbers[1] < heads[numbers[0]] else ()


def bytes_of(arrays: Iterable[NDArray[Any]]) -> int:
    return sum(np.asarray(array).nbytes for array in arrays)


class Net(ABC, Generic[StateT, CarryT]):
    """A network that runs one source, whose states it decodes, and hands a carry from step to step. It knows
    its parameters (its class is a `tree`), how to take one step, how to decode, and when it is done; `verify`
    needs nothing else."""

    target: ClassVar[str]
    engines: ClassVar[tuple[str, ...]] = ("reference",)
    """`reference` is the definition; any other engine gives the same carries faster."""
    form: ClassVar[str] = ""
    """What its form is called, where it is drawn and told in another way than the usual net of its target."""
    summary: ClassVar[str] = ""
    """What a net of this class is, where the target's summary is about more than this."""
    paper: ClassVar[str] = ""
    """After whom it is, where the target names others."""
    one_pass: ClassVar[bool] = False
    """Whether its steps are the layers of one forward pass, which `advance` takes all at once for a batch."""
    saves_network: ClassVar[bool] = False
    """Whether a saved net is its graph: `from_saved` is then given that as well, and `arrays` and `config`
    hold only what the graph does not say."""

    @cached_property
    def network(self) -> Network:
        """What a step computes, as data, made of the arrays alone; of a net that runs while it is trained the
        loss, beside which stands the rule of training."""
        raise Refused(f"this net of target {self.target!r} has no network as data")

    def given(self, carry: CarryT) -> dict[str, NDArray[Any]]:
        """What the network is given for a carry before its first step: its inputs, and its state where that
        is not the network's own first one. Of a net that is trained, for the next step from any carry."""
        raise Refused(f"this net of target {self.target!r} has no network as data")

    @abstractmethod
    def start(self, state: StateT) -> CarryT:
        """The network before its first step, on a first state of the source it was built from."""

    def begin(self, state: StateT, engine: str) -> CarryT:
        """`start`, for a run by this engine: of most nets no engine has anything to do before the first
        step."""
        return self.start(state)

    @abstractmethod
    def step(self, carry: CarryT) -> CarryT:
        """One step: a forward step, or one step of gradient descent."""

    @abstractmethod
    def decode(self, carry: CarryT) -> StateT | None:
        """The source's state, read off activations or weights; None where the net is between two
        steps of the source."""

    @abstractmethod
    def done(self, carry: CarryT) -> bool:
        """Whether the network itself says that the computation has ended."""

    @abstractmethod
    def deviation(self, carry: CarryT) -> float:
        """Largest distance of the values that carry meaning from their ideal values."""

    def steps_taken(self, carry: CarryT) -> int:
        """How many steps led to this carry."""
        return int(carry.steps)

    def advance(self, carry: CarryT, steps: int, engine: str = "reference") -> CarryT:
        """At most `steps` steps, fewer if the net is done; by the engine asked for."""
        self.check_engine(engine)
        for _ in range(steps):
            if self.done(carry):
                break
            carry = self.step(carry)
        return carry

    def silent(self, carry: CarryT) -> int:
        """How many steps lead to the next state that can be compared, where that is known beforehand: they
        are taken at once. Otherwise 1."""
        return 1

    def engine_for(self, carry: CarryT, steps: int) -> str:
        """The engine for at most so many steps where none is asked for: `reference`, unless it takes minutes
        where another takes seconds."""
        return "reference"

    @property
    def short_run(self) -> int:
        """Steps that the reference engine takes in seconds."""
        return SHORT_RUN

    def looks(self, state: StateT) -> int:
        """How often a run too long to compare every step is compared with its source."""
        return LOOKS

    def room(self, state: StateT) -> int | None:
        """For how many steps from this state there is room; None where there is no end to it."""
        return None

    def one_step(self) -> Network | None:
        """Where a single step of it maps bits to bits: that step, from `bits` to `outputs`, a row for each
        pattern."""
        return None

    def check_engine(self, engine: str) -> None:
        """Refuses an engine this target does not have."""
        if engine not in self.engines:
            raise InputError(
                f"target {self.target!r} has no engine {engine!r}",
                advice=f"Its engines are {', '.join(self.engines)}.",
            )

    @cached_property
    def explained(self) -> Explained:
        """The names of the network: of columns, values and rows."""
        return Explained(self.network)

    @abstractmethod
    def units(self) -> Iterator[str]:
        """The names that `explain` understands: those of what the network is made for."""

    @abstractmethod
    def explain(self, unit: str) -> str:
        """In words: which construct of the source a weight or unit serves, and which line of the paper."""

    @abstractmethod
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Every weight and table needed to run the net, beside those of a network that is saved: what goes
        into `model.safetensors`."""

    @abstractmethod
    def config(self) -> dict[str, Any]:
        """Sizes, names of inputs and outputs, constants: what goes into `config.json`."""

    @classmethod
    @abstractmethod
    def from_saved(
        cls,
        config: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        network: Network | None = None,
    ) -> Self:
        """The net again, from these two alone, and from its network if that is saved: no compiler, no
        source."""

    @abstractmethod
    def certificate(self) -> dict[str, Any]:
        """The claims that can be checked from the arrays alone (bounds, gaps, margins), as plain JSON.
        `tapegrad_check` re-derives them without this class."""

    def all_arrays(self) -> dict[str, NDArray[Any]]:
        """Every array of a folder of it: its own, and those of the network where that is saved."""
        own = arrays_of(self.network) if self.saves_network else {}
        return self.arrays() | {OF_NETWORK + name: array for name, array in own.items()}

    @property
    def counts(self) -> Counts:
        """Trainable weights, fixed weights, memory: of a net that nothing trains while it runs."""
        arrays = self.all_arrays().values()
        fixed = sum(int(np.size(array)) for array in arrays if np.asarray(array).dtype.kind == "f")
        return Counts(0, fixed, bytes_of(arrays))

    @property
    def parameters(self) -> int:
        """How many numbers the saved net consists of, places of weights among them."""
        return sum(int(np.size(array)) for array in self.all_arrays().values())
