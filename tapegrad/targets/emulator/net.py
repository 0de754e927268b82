"""Emulating networks as nets: what all have in common, and the practical one."""

import math
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tapegrad.errors import BrokenNet, InputError
from tapegrad.learners import Learner, LearnerState, Samples
from tapegrad.learners.model import as_bits
from tapegrad.networks.network import Network
from tapegrad.networks.saving import same_network
from tapegrad.targets.emulator import fast
from tapegrad.targets.emulator.build import build_practical
from tapegrad.targets.emulator.carried import Carried
from tapegrad.targets.emulator.constants import Constants, changes_vanish, choose, drift
from tapegrad.targets.emulator.graph import Graph
from tapegrad.targets.emulator.loss import hard_tanh, loss_of
from tapegrad.targets.emulator.noise import NO_NOISE, Noise, choose_for_noise, error, load, require_borne
from tapegrad.targets.net import Net, bytes_of
from tapegrad.targets.target import Counts
from tapegrad_check.folder import NETWORK

if TYPE_CHECKING:
    from tapegrad.targets.emulator.reference import Reference

LONG_BY_REFERENCE = 10_000_000
"""Weights times steps, beyond which the reference engine takes ten seconds and more."""


@dataclass(frozen=True, eq=False)
class EmulatorCarry:
    """What a network hands from one step of SGD to the next: the weights under training, the samples, and how
    many of them have been shown."""

    weights: Any  # NDArray[np.floating] | list[Number], as the net has it
    """One for each edge: floats in an array, numbers of any other kind in a list."""
    steps: int
    samples: Samples
    output: float = 0.0
    """The output at the last step."""
    answer: int | None = None
    """The learner's answer at the last step; None while it was learning."""
    whole: int = 0
    """Steps that the fast engine has taken as a whole."""
    state: Carried | None = None
    """From which it can go on, as long as its weights are these."""


def input_rows(samples: Samples, begin: int, end: int) -> NDArray[np.int8]:
    """The inputs of the network for some samples: the constant 1, then x, random bit and guess as -1, 1."""
    count = len(samples.y[begin:end])
    columns = np.column_stack([samples.x[begin:end], samples.random[begin:end], samples.guess[begin:end]])
    return np.column_stack([np.ones(count, np.int8), 2 * columns.astype(np.int8) - 1])


def next_row(carry: EmulatorCarry) -> NDArray[np.int8]:
    """The inputs of the network for the next sample."""
    if carry.steps >= len(carry.samples):
        raise InputError("there is no sample left that the network could be given")
    return input_rows(carry.samples, carry.steps, carry.steps + 1)[0]


def sign_of(carry: EmulatorCarry) -> int:
    """The label of the next sample, -1 or 1."""
    return 2 * int(carry.samples.y[carry.steps]) - 1


def given(weights: Any, row: NDArray[np.int8], label: int, dtype: Any) -> dict[str, NDArray[Any]]:
    """What a network is given, in its precision."""
    values = {"weights": weights, "row": row, "label": label}
    return {name: np.asarray(own, dtype) for name, own in values.items()}


def no_such(unit: str) -> InputError:
    """A name that no unit has."""
    return InputError(f"there is no unit {unit!r}", advice="Names look like `cell 3` or `output`.")


_NUMBER = "(0|[1-9][0-9]{0,17})"
_UNIT = re.compile(rf"(cell|gate|gate \+|gate -) {_NUMBER}|(control) {_NUMBER}\.([0-3])")


class EmulatorNet(Net[LearnerState, EmulatorCarry]):
    """A network that, trained by SGD on samples, emulates a learner: its memory is in the weights."""

    target: ClassVar[str] = "emulator"
    memory: ClassVar[str]
    """The kind of memory, by which a net is asked for and found again when it is loaded."""
    kinds: ClassVar[dict[str, type["EmulatorNet"]]] = {}
    graph: Graph
    inputs: int
    """Bits of a sample."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        EmulatorNet.kinds[cls.memory] = cls

    @classmethod
    @abstractmethod
    def compiled(cls, learner: Learner, **options: Any) -> Self:
        """The network of a learner, by the target's options, of which it takes those that concern it."""

    @classmethod
    @abstractmethod
    def from_arrays(
        cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], network: Network | None
    ) -> Self:
        """The net again, from what `arrays` and `config` give, and from its network where that is saved."""

    def read(self, network: Network) -> Self:
        """Itself, if it has just this network: the one that was saved."""
        if not same_network(self.network, network):
            raise BrokenNet("the network is not the loss of an emulating one", where=NETWORK)
        return self

    @classmethod
    def from_saved(
        cls,
        config: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        network: Network | None = None,
    ) -> Self:
        kind = config["memory"]
        if kind not in EmulatorNet.kinds:
            raise BrokenNet(f"there is no memory {kind!r}")
        if EmulatorNet.kinds[kind].saves_network != (network is not None):
            raise BrokenNet(f"a net with {kind} memory lacks its network, or has one")
        return EmulatorNet.kinds[kind].from_arrays(config, arrays, network)  # type: ignore[return-value]

    @abstractmethod
    def unit_table(self) -> dict[str, str]:
        """Every unit with what it is for, in words."""

    def units(self) -> Iterator[str]:
        yield from self.unit_table()

    def explain(self, unit: str) -> str:
        table = self.unit_table()
        if unit not in table:
            raise no_such(unit)
        return table[unit]

    @property
    def counts(self) -> Counts:
        """SGD may change every weight."""
        return Counts(len(self.graph.sources), 0, bytes_of(self.all_arrays().values()))

    def check_samples(self, state: LearnerState) -> None:
        """Refuses samples of the wrong width."""
        if state.samples.x.shape[1] != self.inputs:
            raise InputError(
                f"the network takes samples of {self.inputs} bits, not {state.samples.x.shape[1]}"
            )

    def done(self, carry: EmulatorCarry) -> bool:
        return carry.steps >= len(carry.samples)

    @cached_property
    def reference(self) -> "Reference":
        """The engine that differentiates the network: JAX, which is imported only now."""
        from tapegrad.targets.emulator.reference import Reference

        return Reference(self.network, self.graph.vertices)


@dataclass(frozen=True, eq=False)
class PracticalNet(EmulatorNet):
    """A hard-tanh network whose SGD, on the loss (output - label)^2, emulates a learner."""

    memory: ClassVar[str] = "practical"
    saves_network: ClassVar[bool] = True
    engines: ClassVar[tuple[str, ...]] = ("reference", "fast")

    weights: NDArray[np.floating]
    """The weights before training."""
    cells: NDArray[np.int64]
    """The edge that is cell c."""
    graph: Graph
    constants: Constants
    inputs: int
    finished: int
    computation: tuple[int, int]
    steps: int
    """For so many steps the network would do even if nothing were rounded."""
    names: tuple[str, ...]
    """Names of the memory bits and of the inputs."""
    noise: Noise = NO_NOISE
    """On every weight at every step."""

    @classmethod
    def compiled(
        cls,
        learner: Learner,
        *,
        precision: str,
        steps: int,
        noise: float,
        relative_noise: float,
        **others: Any,
    ) -> Self:
        """The network of a learner, with constants that fit its size and the noise."""
        disturbed, cells = Noise(noise, relative_noise), learner.cells
        if not disturbed:
            return cls.of(learner, choose(cells, steps, precision), precision, steps)
        constants = choose_for_noise(cells, steps, precision)
        net = cls.of(learner, constants, precision, steps, disturbed)
        require_borne(disturbed, cells, steps, constants, load(net.graph, net.weights, cells), precision)
        return net

    @classmethod
    def of(
        cls, learner: Learner, constants: Constants, precision: str, steps: int, noise: Noise = NO_NOISE
    ) -> Self:
        """The network of a learner with these constants, and noise of any size."""
        parts = vars(build_practical(learner, constants))
        weights = parts.pop("weights").astype(precision)
        names = learner.circuit.inputs
        own = {"constants": constants, "inputs": learner.inputs, "steps": steps, "names": names}
        return cls(weights, **parts, **own, noise=noise)

    @property
    def precision(self) -> str:
        """float64 or float32."""
        return self.weights.dtype.name

    @cached_property
    def network(self) -> Network:
        """The loss, for one sample."""
        watched = {"finished": self.finished}
        return loss_of(self.graph, hard_tanh, self.weights.dtype, self.constants.rate, watched)

    def given(self, carry: EmulatorCarry) -> dict[str, NDArray[Any]]:
        return given(carry.weights, next_row(carry), sign_of(carry), self.weights.dtype)

    # Running

    def start(self, state: LearnerState) -> EmulatorCarry:
        """The network with the state's memory in its weights, before the sample that comes next."""
        self.check_samples(state)
        self.check_length(len(state.samples))
        weights = self.weights.copy()
        weights[self.cells] = np.where(np.array(state.memory, bool), -self.constants.w0, self.constants.w0)
        return EmulatorCarry(weights, state.position, state.samples, 0.0, state.answer)

    def check_length(self, steps: int) -> None:
        """Refuses more steps than the noise is bounded for."""
        if self.noise and steps > self.steps:
            raise InputError(
                f"{steps:,} samples are too many: the noise is bounded for {self.steps:,} steps",
                advice="Compile with more `steps`.",
            )

    def step(self, carry: EmulatorCarry) -> EmulatorCarry:
        """One step of SGD by automatic differentiation of the whole network."""
        if self.done(carry):
            return carry
        weights, seen = self.reference.step(self.given(carry))
        if self.noise:
            weights = weights + self.noise.at(carry.steps, self.weights, self.steps)
        return self._after(carry, weights, 1, seen[-1], seen[self.finished])

    def engine_for(self, carry: EmulatorCarry, steps: int) -> str:
        ahead = min(steps, len(carry.samples) - carry.steps)
        return "fast" if ahead * self.graph.edges > LONG_BY_REFERENCE else "reference"

    def advance(self, carry: EmulatorCarry, steps: int, engine: str = "reference") -> EmulatorCarry:
        """At most `steps` steps of SGD, by the engine asked for."""
        if engine != "fast":
            return super().advance(carry, steps, engine)
        end = min(carry.steps + steps, len(carry.samples))
        if end == carry.steps:
            return carry
        rows = input_rows(carry.samples, carry.steps, end)
        labels = 2 * carry.samples.y[carry.steps : end].astype(np.int8) - 1
        if self.noise:
            return self._advance_with_noise(carry, rows, labels)
        weights, outputs, seen, whole, state = fast.train(
            self.graph,
            carry.weights,
            rows,
            labels,
            self.constants.rate,
            self.finished,
            carry.whole,
            carry.state,
        )
        after = self._after(carry, weights, end - carry.steps, outputs[-1], seen[-1])
        return replace(after, whole=whole, state=state)

    def _advance_with_noise(
        self, carry: EmulatorCarry, rows: NDArray[np.int8], labels: NDArray[np.int8]
    ) -> EmulatorCarry:
        """Whole steps, one by one: with noise everything changes at each of them."""
        weights, rate, finished = carry.weights, self.constants.rate, self.finished
        output = seen = 0.0
        for t in range(len(rows)):
            part = slice(t, t + 1)
            weights, outputs, watched, *_ = fast.train(
                self.graph, weights, rows[part], labels[part], rate, finished, fast.NEVER
            )
            weights += self.noise.at(carry.steps + t, self.weights, self.steps)
            output, seen = outputs[0], watched[0]
        return self._after(carry, weights, len(rows), output, seen)

    def _after(
        self, carry: EmulatorCarry, weights: NDArray[np.floating], steps: int, output: float, finished: float
    ) -> EmulatorCarry:
        answer = int(output > 0) if finished > 0 else None
        if np.isnan(finished):  # which is not above 0, as if it were still learning
            output = finished
        return EmulatorCarry(weights, carry.steps + steps, carry.samples, float(output), answer)

    def outputs(self, carry: EmulatorCarry, x: ArrayLike, guess: ArrayLike | None = None) -> NDArray[Any]:
        """The outputs of the network as trained so far, without training it further. A network that still
        learns gives back its guesses (default 0)."""
        rows = as_bits(x, "x")
        zeros = np.zeros(len(rows), np.uint8)
        samples = Samples(rows, zeros, zeros, zeros if guess is None else as_bits(guess, "guess"))
        inputs = input_rows(samples, 0, len(rows))
        return fast.train(self.graph, carry.weights, inputs, np.zeros(0), 0.0, self.finished).outputs

    def has_finished(self, carry: EmulatorCarry) -> bool:
        """Whether the network, as trained so far, answers rather than guesses."""
        row = np.ones((1, self.graph.inputs), np.int8)
        return bool(fast.train(self.graph, carry.weights, row, np.zeros(0), 0.0, self.finished).seen[0] > 0)

    # Meaning

    def decode(self, carry: EmulatorCarry) -> LearnerState:
        """The signs of the cells' weights: negative stands for 1."""
        bits = tuple((carry.weights[self.cells] < 0).astype(int).tolist())
        return LearnerState(bits, carry.steps, carry.answer, carry.samples)

    def deviation(self, carry: EmulatorCarry) -> float:
        """Relative error of the worst cell, or distance of the output from -1 and 1."""
        cells = np.abs(np.abs(carry.weights[self.cells]) / self.constants.w0 - 1).max(initial=0)
        output = abs(abs(carry.output) - 1) if carry.steps and carry.output else 0.0
        return float(np.maximum(cells, output))  # NaN stays

    def unit_table(self) -> dict[str, str]:
        return {name: self.explain(name) for name in self.units()}

    def units(self) -> Iterator[str]:
        """One by one: a machine with 64 KiB of memory has millions."""
        cells, (begin, end) = range(len(self.cells)), self.computation
        yield from (f"cell {cell}" for cell in cells)
        yield from (f"input {name}" for name in self.names[len(cells) :])
        yield from (f"gate {vertex}" for vertex in range(begin + self.inputs + 2, end))
        for cell in cells:
            yield from (f"control {cell}.{control}" for control in range(4))
            yield from (f"gate + {cell}", f"gate - {cell}")
        yield "output"

    def explain(self, unit: str) -> str:
        """What a unit of a practical network is for, from its name alone."""
        cells, (begin, end) = len(self.cells), self.computation
        w0 = self.constants.w0
        if unit == "output":
            return "the last vertex: -1 or 1, the learner's answer, or its guess while it learns"
        if unit.startswith("input ") and unit[6:] in self.names[cells:]:
            number = self.names[cells:].index(unit[6:])
            return f"input vertex {1 + number}, -1 or 1: {unit[6:]!r} of the learner's circuit"
        found = _UNIT.fullmatch(unit)
        if found is None:
            raise no_such(unit)
        kind, number = found[1] or found[3], int(found[2] or found[4])
        if kind == "gate" and begin + self.inputs + 2 <= number < end:
            return (
                f"vertex {number} of the computation component: a gate of the learner's circuit, -2 or 2, "
                f"its total input at least 4 in size, so that its derivative is 0 (Lemma 1)"
            )
        if kind == "gate" or number >= cells:
            raise no_such(unit)
        name, first = self.names[number], end + 6 * number
        if kind == "cell":
            return (
                f"the weight of edge {self.cells[number]}, from the constant: +{w0:.3g} while bit "
                f"{name!r} of the learner's memory is 0, -{w0:.3g} while it is 1 (section 4.1: "
                f"the sign of an edge is a bit; 4.3: a tiny weight with a large one behind it)"
            )
        if kind == "control":
            control = int(found[5])
            what, said = (("set", 1), ("cleared", 1), ("set", 0), ("cleared", 0))[control]
            when = f"should the answer {said} be wrong"
            return f"vertex {first + control}: on if bit {name!r} is to be {what}, {when}"
        sign, place = ("positive", 4) if kind == "gate +" else ("negative", 5)
        return f"vertex {first + place}: opened to flip bit {name!r} along a {sign} path"

    # Saving

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"weights": self.weights, "cells": self.cells}

    def config(self) -> dict[str, Any]:
        return {
            "memory": self.memory,
            "w0": self.constants.w0,
            "gate": self.constants.gate,
            "computation": list(self.computation),
            "steps": self.steps,
            "names": list(self.names),
        } | ({"noise": asdict(self.noise)} if self.noise else {})

    @classmethod
    def from_arrays(
        cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], network: Network | None
    ) -> Self:
        """The net again, from its network, its first weights, and what they mean."""
        assert network is not None
        graph, weights, cells = Graph.of(network), arrays["weights"], arrays["cells"]
        if weights.shape != (graph.edges,) or weights.dtype.kind != "f":
            raise BrokenNet("the weights are not those of the edges")
        if cells.ndim != 1 or cells.dtype.kind != "i" or not ((cells >= 0) & (cells < graph.edges)).all():
            raise BrokenNet("a cell of the memory points outside the graph")
        begin, end = config["computation"]
        net = cls(
            weights=weights,
            cells=cells,
            graph=graph,
            constants=Constants(float(config["w0"]), float(config["gate"])),
            inputs=graph.inputs - 3,
            finished=int(network.index("finished").reshape(-1)[0]),
            computation=(int(begin), int(end)),
            steps=int(config["steps"]),
            names=tuple(config["names"]),
            noise=_noise_of(config),
        )
        return net.read(network)

    def certificate(self) -> dict[str, Any]:
        count = len(self.cells)
        found = {"error": error(self.noise, count, self.steps, self.constants, self.precision)}
        return (found if self.noise else {}) | {
            "memory": self.memory,
            "cells": count,
            "flat_margin": 2.0,
            "changes_vanish": changes_vanish(self.constants.w0, count, self.precision),
            "steps": self.steps,
            "drift": drift(self.constants.w0, count, self.steps),
        }


def _noise_of(config: Mapping[str, Any]) -> Noise:
    """The noise of a saved net, which has none unless it says so."""
    saved = config.get("noise", asdict(NO_NOISE))
    if not isinstance(saved, dict) or saved.keys() != asdict(NO_NOISE).keys():
        raise BrokenNet("the noise is not described by its sizes and its seed")
    sizes = [float(saved[kind]) for kind in ("absolute", "relative")]
    if not all(0 <= size < math.inf for size in sizes) or int(saved["seed"]) < 0:
        raise BrokenNet("the noise is out of range")
    return Noise(*sizes, seed=int(saved["seed"]))
