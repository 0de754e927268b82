"""The paper's own network as a net: SGD in exact arithmetic."""

from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Self

import equinox as eqx
import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import BrokenNet, Refused
from tapegrad.learners import Learner, LearnerState
from tapegrad.targets.emulator import generic
from tapegrad.targets.emulator.carry import EmulatorCarry, input_rows
from tapegrad.targets.emulator.exact import Constants, activation, build
from tapegrad.targets.emulator.exact_numbers import Exact, Field
from tapegrad.targets.emulator.graph import Graph
from tapegrad.targets.emulator.net import EmulatorNet


class ExactNet(EmulatorNet):
    """Lemma 3's network, whose SGD emulates a learner without any error."""

    memory: ClassVar[str] = "exact"

    graph: Graph = eqx.field(static=True)
    weights: list[Any] = eqx.field(static=True)
    cells: list[int] = eqx.field(static=True)
    copies: dict[int, int] = eqx.field(static=True)
    constants: Constants = eqx.field(static=True)
    inputs: int = eqx.field(static=True)
    finished: int = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)

    @classmethod
    def of(cls, learner: Learner, p: Fraction) -> Self:
        """The network of a learner, for the exponent p."""
        constants = Constants.of(p, learner.cells)
        parts = build(learner, constants)
        return cls(
            graph=parts.graph,
            weights=parts.weights,
            cells=parts.cells,
            copies=parts.copies,
            constants=constants,
            inputs=learner.inputs,
            finished=parts.finished,
            names=learner.circuit.inputs,
        )

    def start(self, state: LearnerState) -> EmulatorCarry:
        """The network before its first sample. Bits that differ from those it was built with are set by
        turning the two edges from v_0 to v_2, as a flip does."""
        self.check_samples(state)
        weights = list(self.weights)
        for cell, bit in zip(self.cells, state.memory, strict=True):
            if bit != int(weights[cell].sign < 0):
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
        row = input_rows(carry.samples, carry.steps, carry.steps + 1)[0].tolist()
        label = 2 * int(carry.samples.y[carry.steps]) - 1
        weights, values = generic.sgd_step(
            self.graph,
            carry.weights,
            row,
            label,
            self.constants.rate,
            partial(activation, p=self.constants.field.p),
            self.copies,
        )
        output = float(values[-1])
        answer = int(output > 0) if values[self.finished] > 0 else None
        return EmulatorCarry(weights, carry.steps + 1, carry.samples, output, answer)

    def decode(self, carry: EmulatorCarry) -> LearnerState:
        """The signs of the edges (v_0, v_1): negative stands for 1."""
        bits = tuple(int(carry.weights[cell].sign < 0) for cell in self.cells)
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
    def from_arrays(cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The net again, from what `arrays` and `config` give."""
        field = Field(Fraction(config["p"]), int(config["m0"]))
        sizes = [field.number(a, b, c, r) for r, a, b, c in config["sizes"]]
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
            constants=Constants(field),
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


NET = ExactNet


def compiled(learner: Learner, *, exponent: str, **others: Any) -> ExactNet:
    """The exact network of a learner."""
    try:
        p = Fraction(exponent)
    except (ValueError, ZeroDivisionError):
        raise Refused(f"the exponent must be a fraction such as 3 or 11/9, not {exponent!r}") from None
    return ExactNet.of(learner, p)
