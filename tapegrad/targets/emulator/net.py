"""What all emulating networks have in common."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, ClassVar, Self

from numpy.typing import NDArray

from tapegrad.errors import BrokenNet, InputError
from tapegrad.learners import LearnerState
from tapegrad.targets.emulator.carry import EmulatorCarry
from tapegrad.targets.net import Net

MEMORIES = {
    "practical": "tapegrad.targets.emulator.practical_net",
    "exact": "tapegrad.targets.emulator.exact_net",
    "noise-tolerant": "tapegrad.targets.emulator.noisy_net",
}
"""The kinds of memory, and the module whose `NET` it is."""


class EmulatorNet(Net):
    """A network that, trained by SGD on samples, emulates a learner: its memory is in the weights."""

    target: ClassVar[str] = "emulator"
    memory: ClassVar[str]
    inputs: int

    def check_samples(self, state: LearnerState) -> None:
        """Refuses samples of the wrong width."""
        if state.samples.x.shape[1] != self.inputs:
            raise InputError(
                f"the network takes samples of {self.inputs} bits, not {state.samples.x.shape[1]}"
            )

    def done(self, carry: EmulatorCarry) -> bool:
        return carry.steps >= len(carry.samples)

    @classmethod
    def from_saved(cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        kind = config["memory"]
        if kind not in MEMORIES:
            raise BrokenNet(f"there is no memory {kind!r}")
        return import_module(MEMORIES[kind]).NET.from_arrays(config, arrays)

    def units(self) -> Iterator[str]:
        yield from self.unit_table()

    def explain(self, unit: str) -> str:
        table = self.unit_table()
        if unit not in table:
            raise InputError(f"there is no unit {unit!r}", advice="Names look like `cell 3` or `output`.")
        return table[unit]

    @abstractmethod
    def unit_table(self) -> dict[str, str]:
        """Every unit with what it is for, in words."""
