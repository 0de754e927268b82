"""The paper's own two networks as nets: SGD in exact arithmetic, and SGD with noise."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import BrokenNet, InputError, Refused
from tapegrad.learners import Learner, LearnerState
from tapegrad.networks.network import Network
from tapegrad.targets.emulator import cubes
from tapegrad.targets.emulator.build import build_exact, build_noisy
from tapegrad.targets.emulator.constants import DEAD_ZONES, DIGITS, RATE, ExactConstants
from tapegrad.targets.emulator.graph import Graph
from tapegrad.targets.emulator.loss import (
    cube_by_hand,
    cube_with,
    forward_by_hand,
    loss_of,
    power_by_hand,
    sgd_step_by_hand,
)
from tapegrad.targets.emulator.net import (
    LONG_BY_REFERENCE,
    EmulatorCarry,
    EmulatorNet,
    given,
    next_row,
    sign_of,
)
from tapegrad.targets.emulator.numbers import Exact, Field, Number

MOST_DIGITS = 4000
"""Of a number in a saved net with exact memory; the paper's m0 has 80."""


@dataclass(frozen=True, eq=False)
class ExactNet(EmulatorNet):
    """Lemma 3's network, whose SGD emulates a learner without any error."""

    memory: ClassVar[str] = "exact"

    graph: Graph
    weights: list[Number]
    cells: list[int]
    copies: dict[int, int]
    constants: ExactConstants
    inputs: int
    finished: int
    names: tuple[str, ...]

    @classmethod
    def compiled(cls, learner: Learner, *, exponent: str, **others: Any) -> Self:
        """The network of a learner, for an exponent given as text."""
        try:
            p = Fraction(exponent)
        except (ValueError, ZeroDivisionError):
            raise Refused(f"the exponent must be a fraction such as 3 or 11/9, not {exponent!r}") from None
        return cls.of(learner, p)

    @classmethod
    def of(cls, learner: Learner, p: Fraction) -> Self:
        """The network of a learner, for the exponent p."""
        constants = ExactConstants.of(p, learner.cells)
        parts = vars(build_exact(learner, constants))
        return cls(**parts, constants=constants, inputs=learner.inputs, names=learner.circuit.inputs)

    @cached_property
    def network(self) -> Network:
        raise Refused(
            "the network with exact memory computes with powers and with numbers of 80 digits, for which "
            "networks have no operations and no arrays",
            advice="Compile with form=practical, or form=noise-tolerant.",
        )

    def start(self, state: LearnerState) -> EmulatorCarry:
        """The network before its first sample. Bits that differ from those it was built with are set by
        turning the two edges from v_0 to v_2, as a flip does."""
        self.check_samples(state)
        weights = list(self.weights)
        for cell, bit in zip(self.cells, state.memory, strict=True):
            if bit != _bit(weights[cell]):
                for edge in (cell, self._second(cell)):
                    weights[edge] = -weights[edge]
        return EmulatorCarry(weights, state.position, state.samples, 0.0, state.answer)

    def _second(self, cell: int) -> int:
        """The edge (v_1, v_2) behind the edge (v_0, v_1)."""
        v1 = self.graph.inputs + int(np.searchsorted(self.graph.offsets, cell, "right")) - 1
        ends = self.graph.sources == v1
        return int(np.flatnonzero(ends)[1])  # the first leads to the reader

    def step(self, carry: EmulatorCarry) -> EmulatorCarry:
        """One step of SGD, every weight trained, in exact arithmetic."""
        if self.done(carry):
            return carry
        row, label = next_row(carry).tolist(), sign_of(carry)
        weights, values = sgd_step_by_hand(
            self.graph,
            carry.weights,
            row,
            label,
            self.constants.rate,
            partial(power_by_hand, p=self.constants.field.p),
            self.copies,
        )
        output = float(values[-1])
        answer = int(output > 0) if values[self.finished] > 0 else None
        return EmulatorCarry(weights, carry.steps + 1, carry.samples, output, answer)

    def decode(self, carry: EmulatorCarry) -> LearnerState:
        """The signs of the edges (v_0, v_1): negative stands for 1."""
        bits = tuple(_bit(carry.weights[cell]) for cell in self.cells)
        return LearnerState(bits, carry.steps, carry.answer, carry.samples)

    def deviation(self, carry: EmulatorCarry) -> float:
        """Distance of any weight from its first value or the negative of it: 0, exactly."""
        pairs = zip(carry.weights, self.weights, strict=True)
        return max(
            (
                0.0 if now == first or now == -first else abs(float(now) / float(first)) + 1
                for now, first in pairs
            ),
            default=0.0,
        )

    def unit_table(self) -> dict[str, str]:
        """Every unit of an exact network by name."""
        s = float(self.constants.s)
        table = {
            f"cell {i}": f"edge {cell}, (v_0, v_1) of a component M_s (Definition 6): positive while bit "
            f"{self.names[i]!r} is 0, negative while it is 1; s = {s:.6g}"
            for i, cell in enumerate(self.cells)
        }
        count = next(iter(self.copies.values()))
        table["spare"] = (
            f"the last component: {count} copies that flip at every step, so that the output is 1 or -1"
        )
        table["output"] = "v_6: 1 or -1, the learner's answer, or its guess while it learns"
        return table

    def arrays(self) -> dict[str, NDArray[Any]]:
        _, kinds = self._kinds()
        signs = [1 if float(w) > 0 else -1 for w in self.weights]
        return {
            "offsets": self.graph.offsets,
            "sources": self.graph.sources,
            "kinds": np.array(kinds, np.int32),
            "signs": np.array(signs, np.int8),
            "cells": np.array(self.cells, np.int64),
            "copied": np.array(sorted(self.copies), np.int64),
        }

    def _kinds(self) -> tuple[list[Exact], list[int]]:
        """The different sizes of weights, and which of them every edge has."""
        field = self.constants.field
        sizes: dict[tuple[Any, ...], int] = {}
        kinds, table = [], []
        for weight in self.weights:
            size = abs(weight if isinstance(weight, Exact) else field.number(r=weight))
            key = (size.r, size.exponents)
            if key not in sizes:
                sizes[key] = len(table)
                table.append(size)
            kinds.append(sizes[key])
        return table, kinds

    def config(self) -> dict[str, Any]:
        table, _ = self._kinds()
        return {
            "memory": self.memory,
            "inputs": self.inputs,
            "p": str(self.constants.field.p),
            "m0": str(self.constants.field.m0),
            "finished": self.finished,
            "names": list(self.names),
            "sizes": [[str(size.r), *map(str, size.exponents)] for size in table],
        }

    @classmethod
    def from_arrays(
        cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], network: Network | None
    ) -> Self:
        """The net again, from what `arrays` and `config` give."""
        field = Field(_fraction(config["p"]), int(_fraction(config["m0"])))
        sizes = [field.number(a, b, c, r) for r, a, b, c in (map(_fraction, row) for row in config["sizes"])]
        plain = [size if any(size.exponents) else size.r for size in sizes]
        kinds, signs = arrays["kinds"].tolist(), arrays["signs"].tolist()
        graph = Graph(1 + int(config["inputs"]) + 2, arrays["offsets"], arrays["sources"])
        if not len(kinds) == len(signs) == graph.edges or graph.offsets[-1] != graph.edges:
            raise BrokenNet("the arrays of the graph do not fit together")
        others = field.m0 - len(arrays["cells"])
        return cls(
            graph=graph,
            weights=[plain[kind] * sign for kind, sign in zip(kinds, signs, strict=True)],
            cells=arrays["cells"].tolist(),
            copies=dict.fromkeys(arrays["copied"].tolist(), others),
            constants=ExactConstants(field),
            inputs=int(config["inputs"]),
            finished=int(config["finished"]),
            names=tuple(config["names"]),
        )

    def certificate(self) -> dict[str, Any]:
        return {
            "memory": self.memory,
            "cells": len(self.cells),
            "p": str(self.constants.field.p),
            "m0": str(self.constants.field.m0),
            "flat_margin": 0.5,
        }


def _fraction(text: Any) -> Fraction:
    """A fraction as `config` writes it; a text such as `1e999999` would fill the memory."""
    if not isinstance(text, str) or len(text) > MOST_DIGITS or set(text) - set("-/0123456789"):
        raise BrokenNet("a number of the exact memory is not a fraction")
    return Fraction(text)


def _bit(weight: Number) -> int:
    """What the weight of a cell says: negative stands for 1."""
    assert isinstance(weight, Exact)
    return int(weight.sign < 0)


IN_DECIMALS = partial(cube_by_hand, dead=DEAD_ZONES["decimal"])
DEAD = float(DEAD_ZONES["double"])
"""The activation f* in decimals; and in double precision its dead zone."""


@dataclass(frozen=True, eq=False)
class NoisyNet(EmulatorNet):
    """Lemma 6's network: memorises `samples` samples by SGD with noise on every weight, then answers."""

    memory: ClassVar[str] = "noise-tolerant"
    saves_network: ClassVar[bool] = True
    engines: ClassVar[tuple[str, ...]] = ("reference", "fast")

    graph: Graph
    weights: list[Decimal]
    written: list[int]
    memories: list[list[int]]
    answers: list[tuple[int, int]]
    first: tuple[int, ...]
    inputs: int
    arithmetic: str
    noise: float
    """The sum, over all steps, of the sizes of the noise on a weight."""
    seed: int

    @classmethod
    def compiled(
        cls, learner: Learner, *, samples: int | None, arithmetic: str, noise: float, **others: Any
    ) -> Self:
        """The network of a learner that learns from so many samples."""
        if samples is None:
            raise Refused(
                "a network with noise-tolerant memory memorises a fixed number of samples",
                advice="Give `samples`, as many as the learner needs.",
            )
        return cls.of(learner, samples, arithmetic, noise)

    @classmethod
    def of(
        cls, learner: Learner, samples: int, arithmetic: str = "double", noise: float = 0.0, seed: int = 0
    ) -> Self:
        """The same, and a seed for the noise."""
        return cls(
            **vars(build_noisy(learner, samples)),
            first=learner.first,
            inputs=learner.inputs,
            arithmetic=arithmetic,
            noise=noise,
            seed=seed,
        )

    # Running

    @cached_property
    def network(self) -> Network:
        """The loss, for one sample, in double precision."""
        return loss_of(self.graph, cube_with(DEAD), np.float64, float(RATE), {})

    def given(self, carry: EmulatorCarry) -> dict[str, NDArray[Any]]:
        return given(carry.weights, self._row(carry), sign_of(carry), np.float64)

    def _row(self, carry: EmulatorCarry) -> NDArray[np.int8]:
        """The next sample; no guess is needed."""
        return next_row(carry)[:-1]

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
        own = self.weights
        weights = cubes.Decimals.of(own) if self.arithmetic == "decimal" else np.array(own, np.float64)
        return EmulatorCarry(weights, 0, state.samples)

    def step(self, carry: EmulatorCarry) -> EmulatorCarry:
        """One step of SGD with noise, until all samples are memorised; from then on, a forward pass. In
        double precision by automatic differentiation."""
        return carry if self.done(carry) else self._step(carry, "reference")

    def engine_for(self, carry: EmulatorCarry, steps: int) -> str:
        ahead = min(steps, len(carry.samples) - carry.steps)
        return "fast" if ahead * self.graph.edges > LONG_BY_REFERENCE else "reference"

    def advance(self, carry: EmulatorCarry, steps: int, engine: str = "reference") -> EmulatorCarry:
        """At most `steps` steps, by the engine asked for."""
        self.check_engine(engine)
        for _ in range(min(steps, len(carry.samples) - carry.steps)):
            carry = self._step(carry, engine)
        return carry

    def _step(self, carry: EmulatorCarry, engine: str) -> EmulatorCarry:
        row = self._row(carry)
        weights, values = self._trained(carry.weights, row, sign_of(carry), engine)
        output = float(values[-1])
        sample = min(carry.steps, len(self.written))
        if sample == len(self.written):
            weights = carry.weights
        else:  # what the learner says to the sample is seen once it is memorised
            weights = self._disturbed(weights, carry.steps)
            values = self._values(weights, row)
        said, finished = self.answers[sample]
        answer = int(values[said] > 0) if values[finished] > 0 else None
        return EmulatorCarry(weights, carry.steps + 1, carry.samples, output, answer)

    def _trained(
        self, weights: Any, row: NDArray[np.int8], label: int, engine: str = "fast"
    ) -> tuple[Any, Any]:
        if self.arithmetic == "decimal":
            weights = cubes.Decimals.of(weights)
            flat = cubes.flat_for_sure(self.graph, weights.near, row, weights.off)
            with localcontext(prec=DIGITS):
                own = [Decimal(int(x)) for x in row], Decimal(label), RATE, IN_DECIMALS
                after, values = sgd_step_by_hand(self.graph, weights, *own, flat=flat)
            return weights.after(after), values
        if engine == "reference":
            return self.reference.step(given(weights, row, label, np.float64))
        return cubes.sgd_step(self.graph, weights, row, label, float(RATE), DEAD)

    def _values(self, weights: Any, row: NDArray[np.int8]) -> Any:
        """A forward pass alone."""
        if self.arithmetic == "decimal":
            weights = cubes.Decimals.of(weights)
            flat = cubes.flat_for_sure(self.graph, weights.near, row, weights.off)
            with localcontext(prec=DIGITS):
                given = [Decimal(int(x)) for x in row], IN_DECIMALS
                return forward_by_hand(self.graph, weights, *given, flat=flat)[0]
        return cubes.values(self.graph, weights, row, DEAD)

    def _disturbed(self, weights: Any, step: int) -> Any:
        """Noise on every weight, evenly distributed, its size at most an equal share of the sum."""
        if not self.noise:
            return weights
        random = np.random.default_rng([self.seed, step])
        if self.arithmetic == "double":
            return weights + random.uniform(-1, 1, len(weights)) * (self.noise / len(self.written))
        with localcontext(prec=DIGITS):
            return cubes.Decimals.of(weights).disturbed(Decimal(self.noise) / len(self.written), random)

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
        """Every unit of a noise-tolerant network by name."""
        table = {
            f"sample {t}": f"vertex {vertex}: whether sample {t} is memorised (Lemma 6); its bits are in the "
            f"components M' of Definition 7, one for each bit and value"
            for t, vertex in enumerate(self.written)
        }
        table["output"] = "v_5: 1/2 while samples are memorised, then 49^3/50^3 of the answer"
        return table

    # Saving

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {
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
            "arithmetic": self.arithmetic,
            "noise": self.noise,
            "seed": self.seed,
            "weights": [str(weight) for weight in self._kinds()[0]],
        }

    @classmethod
    def from_arrays(
        cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], network: Network | None
    ) -> Self:
        """The net again, from its network, the list of its weights, and what its vertices mean."""
        assert network is not None
        table, graph = [Decimal(weight) for weight in config["weights"]], Graph.of(network)
        if len(arrays["kinds"]) != graph.edges:
            raise BrokenNet("there is not a weight for each edge")
        answers = [(int(a), int(b)) for a, b in arrays["answers"].tolist()]
        net = cls(
            graph=graph,
            weights=[table[kind] for kind in arrays["kinds"].tolist()],
            written=arrays["written"].tolist(),
            memories=arrays["memories"].tolist(),
            answers=answers,
            first=tuple(arrays["first"].tolist()),
            inputs=graph.inputs - 2,
            arithmetic=str(config["arithmetic"]),
            noise=float(config["noise"]),
            seed=int(config["seed"]),
        )
        return net.read(network)

    def certificate(self) -> dict[str, Any]:
        return {
            "memory": self.memory,
            "samples": len(self.written),
            "flat_margin": 0.5,
            "dead_zone": str(DEAD_ZONES[self.arithmetic]),
        }
