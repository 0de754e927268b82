"""The target `simplex`: a vertex for every configuration, a loss that falls from the second step on."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import InputError
from tapegrad.machines.model import Configuration
from tapegrad.networks.network import Network, Update
from tapegrad.targets.descent.loss import (
    LONE_FINAL_LOSS,
    LONE_INPUTS,
    LONE_LABELS,
    ExtendedNetwork,
    SquaredError,
    Thresholds,
    Weights,
)
from tapegrad.targets.descent.net import MOST_EDGE_STEPS, Descent, DescentNet, with_rule
from tapegrad.targets.simplex import fast
from tapegrad.targets.simplex.build import (
    Key,
    Levels,
    Vertices,
    choose,
    configuration,
    key,
    look_up,
    steps_left,
    weighted,
)
from tapegrad.targets.simplex.loss import SimplexLoss

_EMPTY = np.zeros((0, 0))


@dataclass(frozen=True, eq=False)
class SimplexNet(DescentNet):
    """The extended network around the loss (13). Proposition 4.2: each gradient step after the first moves
    s to the vertex of the next configuration, with unit steps or a line search, and the loss falls."""

    target: ClassVar[str] = "simplex"
    engines: ClassVar[tuple[str, ...]] = ("reference", "fast")

    saves_network: ClassVar[bool] = True

    error: SquaredError
    machine: SimplexLoss
    """The part of it that runs the machine."""
    vertices: Vertices
    levels: Levels
    states: tuple[str, ...]
    symbols: tuple[str, ...]
    line_search: bool
    table: Mapping[Key, int]

    @classmethod
    def of(
        cls,
        loss: SimplexLoss,
        vertices: Vertices,
        levels: Levels,
        states: tuple[str, ...],
        symbols: tuple[str, ...],
        line_search: bool,
        error: SquaredError | None = None,
    ) -> Self:
        """The net of these configurations and this loss, around an empty primary network, or of another error
        that the loss is part of."""
        bounds = Thresholds(1.0, float(levels.low), float(levels.high))
        network = ExtendedNetwork(loss, None, bounds)
        error = error or SquaredError(network, LONE_INPUTS, LONE_LABELS)
        rows = range(len(vertices.state))
        table = {key(configuration(vertices, row, states, symbols)): row for row in rows}
        return cls(error, loss, vertices, levels, states, symbols, line_search, table)

    @cached_property
    def arrays_for_fast(self) -> fast.FastArrays:
        """The loss made ready for the fast engine."""
        return fast.prepare(self.machine)

    @property
    def rule_of_s(self) -> Update:
        """As ever, with a line search if that was asked for."""
        return Update("vertex", line_search=self.line_search)

    @property
    def shapes(self) -> Weights[tuple[int, ...]]:
        return Weights((len(self.vertices.state),), _EMPTY.shape, _EMPTY.shape, self.error.y.shape)

    def start(self, state: Configuration) -> Descent:
        """s at the vertex of the configuration, z = 0."""
        s = np.zeros(len(self.vertices.state))
        s[look_up(self.table, state)] = 1.0
        return Descent(Weights(s, _EMPTY, _EMPTY, np.zeros_like(self.error.y)), 0)

    def decode(self, carry: Descent) -> Configuration | None:
        """The configuration of the vertex that s stands at; None before the labels are read."""
        if carry.steps == 0:
            return None
        return self.configuration(int(np.argmax(carry.weights.s)))

    def deviation(self, carry: Descent) -> float:
        """How far s is from a vertex."""
        s = np.asarray(carry.weights.s)
        return float(np.abs(s - np.round(s)).max())

    def done(self, carry: Descent) -> bool:
        """Criterion (4). Where s is a vertex and the labels are read, the loss is that vertex's weight, and
        need not be added up over all edges."""
        if carry.steps == 0:
            return False
        if self.deviation(carry) > 0 or not np.array_equal(carry.weights.z, self.error.y):
            return super().done(carry)
        weight = self.arrays_for_fast.vertex_weight[int(np.argmax(carry.weights.s))]
        return bool(weight <= float(self.levels.low))

    def engine_for(self, carry: Descent, steps: int) -> str:
        """`fast` where the other, which looks at every edge at every step, would take minutes."""
        return "fast" if steps * self.vertex_count > MOST_EDGE_STEPS else "reference"

    def advance_fast(self, carry: Descent, steps: int) -> Descent:
        """Reads the labels by a step of the reference engine, then moves from vertex to vertex."""
        if carry.steps == 0:
            carry, steps = self.step(carry), steps - 1
        vertex, taken = fast.run(
            self.arrays_for_fast, int(np.argmax(carry.weights.s)), float(self.levels.low), steps
        )
        s = np.zeros(len(self.vertices.state))
        s[vertex] = 1.0
        return Descent(carry.weights._replace(s=s), carry.steps + int(taken))

    def fast_gradient(self, carry: Descent) -> Weights:
        """The gradient as the fast engine has it, to be compared with `gradient`."""
        in_s = fast.gradient(self.arrays_for_fast, int(np.argmax(carry.weights.s)))
        return Weights(in_s, _EMPTY, _EMPTY, np.zeros_like(self.error.y))

    def units(self) -> Iterator[str]:
        """`s/5`: a vertex; `z/0`: a label."""
        yield from (f"s/{vertex}" for vertex in range(len(self.vertices.state)))
        yield from (f"z/{label}" for label in range(np.size(self.error.y)))

    def explain(self, unit: str) -> str:
        """The configuration of a vertex and where it leads, or a label."""
        kind, _, number = unit.partition("/")
        if kind == "z" and number in ("0", "1"):
            return f"Copy of label number {number}: 0 before the first gradient step, the label after it."
        if kind != "s" or not number.isdecimal() or int(number) >= len(self.vertices.state):
            raise InputError(f"the net has no unit {unit!r}", advice="Units are s/5 or z/0.")
        vertex = int(number)
        left = round(float(self.arrays_for_fast.vertex_weight[vertex] / self.levels.unit - 1) / 3)
        leads = f"leads to s/{self.vertices.successor[vertex]}" if left else "halts"
        return (
            f"Vertex of {self.configuration(vertex)}, {left} step(s) before the halt: {leads}. "
            f"Loss (13), section 4.3."
        )

    def configuration(self, vertex: int) -> Configuration:
        """The configuration that a vertex stands for."""
        return configuration(self.vertices, vertex, self.states, self.symbols)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The configurations; their weights and the edges are those of the network."""
        v = self.vertices
        return {"state": v.state, "heads": v.heads, "cells": v.cells}

    def config(self) -> dict[str, Any]:
        """Names of states and symbols, and where the tapes begin."""
        return {
            "states": list(self.states),
            "symbols": list(self.symbols),
            "first_cell": self.vertices.first_cell,
        }

    @classmethod
    def from_saved(
        cls,
        config: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        network: Network | None = None,
    ) -> Self:
        """The net from its network, its configurations and names."""
        network, rule, stop = with_rule(network)
        loss, search = SimplexLoss.of(network), any(own.line_search for own in rule.updates.values())
        levels = Levels.of(stop, loss.outside)
        successor = np.arange(len(loss.vertex_weight), dtype=np.int32)
        successor[loss.edge_from] = loss.edge_to
        shown = {name: arrays[name] for name in ("state", "heads", "cells")}
        states, symbols = tuple(config["states"]), tuple(config["symbols"])
        vertices = Vertices(**shown, successor=successor, first_cell=config["first_cell"])
        checked = vertices.checked(len(states), len(symbols))
        return cls.of(loss, checked, levels, states, symbols, search).read(network)

    def certificate(self) -> dict[str, Any]:
        """The claims that the checker derives again. `drop`: how far each step but the first goes down."""
        return {
            "vertices": len(self.vertices.state),
            "steps": self.levels.most,
            "drop": 3 * self.levels.unit,
            "final_loss": LONE_FINAL_LOSS,
        }


def build(
    vertices: Vertices, states: tuple[str, ...], symbols: tuple[str, ...], line_search: bool
) -> SimplexNet:
    """The net of these configurations, with levels for the longest run among them."""
    levels = choose(int(steps_left(vertices.successor).max()), LONE_FINAL_LOSS)
    loss = SimplexLoss(**weighted(vertices.successor, levels), outside=float(levels.outside))
    return SimplexNet.of(loss, vertices, levels, states, symbols, line_search)
