"""The noise-tolerant network as a net: perturbed SGD, in decimals or in double precision."""

from collections.abc import Mapping
from decimal import Decimal, localcontext
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import BrokenNet, InputError, Refused
from tapegrad.learners import Learner, LearnerState
from tapegrad.precision import in_double
from tapegrad.targets.emulator import generic, noisy_activation, reference
from tapegrad.targets.emulator.carry import EmulatorCarry, input_rows
from tapegrad.targets.emulator.graph import Graph
from tapegrad.targets.emulator.net import EmulatorNet
from tapegrad.targets.emulator.noisy import DEAD_ZONES, DIGITS, RATE, build


class NoisyNet(EmulatorNet):
    """Lemma 6's network: memorises `samples` samples by SGD with noise on every weight, then answers."""

    memory: ClassVar[str] = "noise-tolerant"

    graph: Graph = eqx.field(static=True)
    weights: list[Decimal] = eqx.field(static=True)
    written: list[int] = eqx.field(static=True)
    memories: list[list[int]] = eqx.field(static=True)
    answers: list[tuple[int, int]] = eqx.field(static=True)
    first: tuple[int, ...] = eqx.field(static=True)
    inputs: int = eqx.field(static=True)
    arithmetic: str = eqx.field(static=True)
    noise: float = eqx.field(static=True)
    """The sum, over all steps, of the sizes of the noise on a weight."""
    seed: int = eqx.field(static=True)

    @classmethod
    def of(
        cls, learner: Learner, samples: int, arithmetic: str = "double", noise: float = 0.0, seed: int = 0
    ) -> Self:
        """The network of a learner that learns from so many samples."""
        parts = build(learner, samples)
        return cls(
            graph=parts.graph,
            weights=parts.weights,
            written=parts.written,
            memories=parts.memories,
            answers=parts.answers,
            first=learner.first,
            inputs=learner.inputs,
            arithmetic=arithmetic,
            noise=noise,
            seed=seed,
        )

    # Running

    def start(self, state: LearnerState) -> EmulatorCarry:
        """The network before its first sample."""
        self.check_samples(state)
        count = len(self.written)
        if state.position or state.memory != self.first:
            raise InputError("a network with noise-tolerant memory can only start from the beginning")
        if (state.samples.guess[:count] == state.samples.y[:count]).any():
            raise InputError(
                "a network with noise-tolerant memory learns from every sample, but some of these come with "
                "a right guess, which says that they are lost",
                advice="Start the learner with guessing=False.",
            )
        weights = self.weights if self.arithmetic == "decimal" else np.array(self.weights, np.float64)
        return EmulatorCarry(weights, 0, state.samples)

    def step(self, carry: EmulatorCarry) -> EmulatorCarry:
        """One step of SGD with noise, until all samples are memorised; from then on, a forward pass."""
        if self.done(carry):
            return carry
        row = input_rows(carry.samples, carry.steps, carry.steps + 1)[0][:-1]  # no guess is needed
        label = 2 * int(carry.samples.y[carry.steps]) - 1
        weights, values = self._trained(carry.weights, row, label)
        output = float(values[self.graph.vertices - 1])
        sample = min(carry.steps, len(self.written))
        if sample == len(self.written):
            weights = carry.weights
        else:  # what the learner says to the sample is seen once it is memorised
            weights = self._disturbed(weights, carry.steps)
            values = self._values(weights, row)
        said, finished = self.answers[sample]
        answer = int(values[said] > 0) if values[finished] > 0 else None
        return EmulatorCarry(weights, carry.steps + 1, carry.samples, output, answer)

    def _trained(self, weights: Any, row: NDArray[np.int8], label: int) -> tuple[Any, Any]:
        if self.arithmetic == "decimal":
            with localcontext(prec=DIGITS):
                activation = partial(noisy_activation.in_decimals, dead=DEAD_ZONES["decimal"])
                inputs = [Decimal(int(x)) for x in row]
                return generic.sgd_step(self.graph, weights, inputs, Decimal(label), RATE, activation)
        return self._trained_in_double(weights, row, label)

    @in_double
    def _trained_in_double(self, weights: Any, row: NDArray[np.int8], label: int) -> tuple[Any, Any]:
        parameters, values = reference.sgd_step(
            reference.Parameters(reference.padded(weights, self.graph.edges)),
            self.levels,
            reference.padded(row.astype(np.float64), self.graph.vertices),
            jnp.asarray(float(label)),
            jnp.asarray(float(RATE)),
            _in_double,
        )
        return np.asarray(parameters.weights)[: self.graph.edges], np.asarray(values)

    def _values(self, weights: Any, row: NDArray[np.int8]) -> Any:
        """A forward pass alone."""
        return self._trained(weights, row, 1)[1]

    def _disturbed(self, weights: Any, step: int) -> Any:
        """Noise on every weight, evenly distributed, its size at most an equal share of the sum."""
        if not self.noise:
            return weights
        random = np.random.default_rng([self.seed, step])
        noise = random.uniform(-1, 1, len(weights)) * (self.noise / len(self.written))
        if self.arithmetic == "double":
            return weights + noise
        with localcontext(prec=DIGITS):
            return [weight + Decimal(float(n)) for weight, n in zip(weights, noise, strict=True)]

    # Meaning

    def decode(self, carry: EmulatorCarry) -> LearnerState:
        """As many samples as are marked as written; the learner's memory after them, as the vertices that
        compute it show it."""
        values = self._values(carry.weights, np.ones(self.graph.inputs, np.int8))
        count = sum(1 for vertex in self.written if values[vertex] > 0)
        bits = tuple(int(values[vertex] > 0) for vertex in self.memories[count])
        return LearnerState(bits, carry.steps, carry.answer, carry.samples)

    def deviation(self, carry: EmulatorCarry) -> float:
        """Distance of the output from 1/2 while it memorises, and from 49^3/50^3 of the answer afterwards."""
        if carry.steps == 0:
            return 0.0
        wanted = 0.5 if carry.steps <= len(self.written) else (49 / 50) ** 3
        return abs(abs(carry.output) - wanted)

    def unit_table(self) -> dict[str, str]:
        table = {
            f"sample {t}": f"vertex {vertex}: whether sample {t} is memorised (Lemma 6); its bits are in the "
            f"components M' of Definition 7, one for each bit and value"
            for t, vertex in enumerate(self.written)
        }
        table["output"] = "v_5: 1/2 while samples are memorised, then 49^3/50^3 of the answer"
        return table

    @cached_property
    def levels(self) -> reference.Levels:
        """The graph in the form that automatic differentiation works with."""
        return in_double(reference.levels_of)(self.graph)

    # Saving

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {
            "offsets": self.graph.offsets,
            "sources": self.graph.sources,
            "weights": np.array(self.weights, np.float64),
            "kinds": np.array(self._kinds()[1], np.int32),
            "written": np.array(self.written, np.int32),
            "memories": np.array(self.memories, np.int32).reshape(len(self.memories), -1),
            "answers": np.array(self.answers, np.int32),
            "first": np.array(self.first, np.uint8),
        }

    def _kinds(self) -> tuple[list[Decimal], list[int]]:
        """The different weights, and which of them every edge has."""
        table = list(dict.fromkeys(self.weights))
        number = {weight: kind for kind, weight in enumerate(table)}
        return table, [number[weight] for weight in self.weights]

    def config(self) -> dict[str, Any]:
        return {
            "memory": self.memory,
            "inputs": self.inputs,
            "arithmetic": self.arithmetic,
            "noise": self.noise,
            "seed": self.seed,
            "weights": [str(weight) for weight in self._kinds()[0]],
        }

    @classmethod
    def from_arrays(cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The net again, from what `arrays` and `config` give."""
        table = [Decimal(weight) for weight in config["weights"]]
        graph = Graph(1 + int(config["inputs"]) + 1, arrays["offsets"], arrays["sources"])
        if len(arrays["kinds"]) != graph.edges or graph.offsets[-1] != graph.edges:
            raise BrokenNet("the arrays of the graph do not fit together")
        answers = [(int(a), int(b)) for a, b in arrays["answers"].tolist()]
        return cls(
            graph=graph,
            weights=[table[kind] for kind in arrays["kinds"].tolist()],
            written=arrays["written"].tolist(),
            memories=arrays["memories"].tolist(),
            answers=answers,
            first=tuple(arrays["first"].tolist()),
            inputs=int(config["inputs"]),
            arithmetic=str(config["arithmetic"]),
            noise=float(config["noise"]),
            seed=int(config["seed"]),
        )

    def certificate(self) -> dict[str, Any]:
        return {
            "memory": self.memory,
            "samples": len(self.written),
            "flat_margin": 0.5,
            "dead_zone": str(DEAD_ZONES[self.arithmetic]),
        }


NET = NoisyNet
_in_double = partial(noisy_activation.in_jax, dead=float(DEAD_ZONES["double"]))


def compiled(
    learner: Learner, *, samples: int | None, arithmetic: str, noise: float, **others: Any
) -> NoisyNet:
    """The noise-tolerant network of a learner."""
    if samples is None:
        raise Refused(
            "a network with noise-tolerant memory memorises a fixed number of samples",
            advice="Give `samples`, as many as the learner needs.",
        )
    return NoisyNet.of(learner, samples, arithmetic, noise)
