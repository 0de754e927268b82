"""Runs of a decoder with every hidden vector, beside what the machine says they are."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad._compile import compile
from tapegrad.machines.library import ready
from tapegrad.machines.library.ready import busy_beaver
from tapegrad.machines.model import Configuration, TuringMachine
from tapegrad.networks.backends.numpy import Look, WatchedDecoder
from tapegrad.targets.transformer import TransformerNet

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Facts:
    """What a step of the machine is about, from its plain run: z_i, a_i, l_i, u_i, the move, and i', the last
    step before that wrote at l_i (0 if none did)."""

    step: int
    state: str
    symbol: str
    place: int
    place_before: int
    written: str
    move: int
    last_write: int
    last_written: str | None
    given: str | None
    """The input symbol at l_i, if l_i is part of the input."""


@dataclass(frozen=True)
class DecodedRun:
    """`hidden[i][l]` is the vector after layer l of decoder step i; `inputs[i]` what the step starts from."""

    net: TransformerNet
    facts: list[Facts]
    inputs: list[Vector]
    hidden: list[list[Vector]]
    looked: list[list[Look]]

    @property
    def first_search(self) -> int:
        """The number of the layer of Claim C.4."""
        return self.net.layout.position_bits + 3

    def after(self, layer: int) -> Iterator[tuple[Facts, Vector]]:
        """The hidden vectors after this layer in steps 1, 2, ..., with their facts."""
        for facts, hidden in zip(self.facts, self.hidden[1:], strict=True):
            yield facts, hidden[layer]

    def expected(self, **groups: Any) -> Vector:
        """A hidden vector from what its groups should hold: a name for one-hot groups, a number for binary
        ones, 1 for single coordinates; None or 0 leaves the group empty. All other coordinates are 0."""
        layout, vector = self.net.layout, np.zeros(self.net.layout.width)
        for group, value in groups.items():
            if isinstance(value, str):
                vector[layout.at(group, value)] = 1
            elif value:
                places = layout.group(group)
                vector[places] = value >> np.arange(len(places)) & 1
        return vector


def instances(long: bool) -> Iterator[tuple[TuringMachine, tuple[str, ...], int]]:
    """Machines, inputs and T."""
    yield ready("increment"), ("1011",), 16
    yield busy_beaver("3x2"), (), 24
    yield ready("palindrome"), ("aba",), 24
    if long:
        yield ready("palindrome"), ("abba",), 64
        yield busy_beaver("4x2"), (), 128


def decoded_runs(long: bool) -> list[DecodedRun]:
    """All instances, run by the decoder below."""
    return [decode(machine, words, steps) for machine, words, steps in instances(long)]


def transformer(machine: TuringMachine, steps: int) -> TransformerNet:
    """The net of the machine for runs of at most so many steps."""
    net = compile(machine, "transformer", steps=steps).net
    assert isinstance(net, TransformerNet)
    return net


def decode(machine: TuringMachine, words: tuple[str, ...], steps: int) -> DecodedRun:
    """Section 4.1 in double precision, with three ReLU layers in each block."""
    net = transformer(machine, steps)
    start = machine.start(*words)
    facts = list(_facts(machine, start, net.layout.offset))
    written_out = replace(net.decoder, blocks=tuple(block.expanded() for block in net.layers))
    decoder = WatchedDecoder(written_out, net.start(start).tokens.astype(float))
    seen = [decoder.step() for _ in range(len(facts) + 1)]
    return DecodedRun(net, facts, [s.start for s in seen], [s.hidden for s in seen], [s.looks for s in seen])


def _facts(machine: TuringMachine, start: Configuration, offset: int) -> Iterator[Facts]:
    run = list(machine.run(start))
    writes: list[tuple[int, str]] = []
    given = start.tapes[0]
    cells = range(min(given), max(given) + 1) if given else range(0)
    for step, (before, after) in enumerate(pairwise(run), 1):
        rule = machine.rules[before.state, machine.read(before)]
        writes.append((before.heads[0], rule.write[0]))
        place = after.heads[0]
        last = max((t for t, (cell, _) in enumerate(writes, 1) if cell == place), default=0)
        yield Facts(
            step=step,
            state=after.state,
            symbol=machine.read(after)[0],
            place=place + offset,
            place_before=before.heads[0] + offset,
            written=rule.write[0],
            move=rule.moves[0],
            last_write=last,
            last_written=writes[last - 1][1] if last else None,
            given=given.get(place, machine.blank) if place in cells else None,
        )
