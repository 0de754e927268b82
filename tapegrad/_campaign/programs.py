"""The random programs of a campaign, the same for a seed wherever they are made."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np

from tapegrad._draws import Draws
from tapegrad._sources import all_kinds
from tapegrad.circuits.model import Gate
from tapegrad.circuits.sampler import random_circuit, random_function
from tapegrad.errors import Refused
from tapegrad.learners.kind import random_learner
from tapegrad.machines.sampler import random_grid_machine, random_machine
from tapegrad.programs.library import random_rv32, random_subleq
from tapegrad.source import Source

INPUTS = 3
"""Inputs of a program; grids are large, and have two; for a circuit `PATTERNS` bit patterns are one."""
PATTERNS = 32
LENGTHS = {"simplex": 24, "tape": 32, "transformer": 31, "decoder": 31, "emulator": 16, "relu": 17, "rcnn": 7}
"""States of a run that are compared, at most."""
KINDS = {
    "simplex": ("turing machine",),
    "tape": ("turing machine",),
    "transformer": ("turing machine",),
    "decoder": ("turing machine",),
    "emulator": ("learner",),
    "relu": ("circuit", "function"),
    "rcnn": ("grid machine",),
}
"""What comes up in turn on each target; any other kind can be asked for."""


@dataclass(frozen=True)
class Program:
    """A source, and what is done with it."""

    target: str
    source: Source
    inputs: tuple[tuple[Any, ...], ...] | None
    """The arguments of `source.start`, one tuple for each; None: those that `verify` chooses."""
    options: Mapping[str, Any] = field(default_factory=dict)
    steps: int | None = None
    """For a run of how many steps the net is built; None: it does not depend on that."""


def program(target: str, kind: str | None, seed: int, options: Mapping[str, Any]) -> Program:
    """The program of a seed. Kinds and targets without sizes of their own have those of `SourceKind.sample`,
    and the inputs that `verify` chooses."""
    draws = Draws(seed)
    kinds = KINDS.get(target, ()) if kind is None else (kind,)
    if not kinds:
        raise Refused(f"there are no usual programs for the target {target!r}", advice="Name a kind.")
    chosen = kinds[seed % len(kinds)]
    if chosen in KINDS.get(target, ()) or chosen == "program":
        made = _MAKERS[chosen](target, seed, draws)
        return replace(made, options={**made.options, **options})
    sample = next((known.sample for known in all_kinds() if known.name == chosen), None)
    if sample is None:
        names = ", ".join(known.name for known in all_kinds() if known.sample is not None)
        raise Refused(f"there are no random sources of the kind {chosen!r}", advice=f"Choose one of {names}.")
    return Program(target, sample(seed), None, dict(options))


def _machine(target: str, seed: int, draws: Draws) -> Program:
    """1 to 3 tapes, 2 to 8 states, 2 to 5 symbols, some rules missing, heads that may stay; as large as
    leaves the net small. What has several tapes is put on one for the transformer, which takes long."""
    length = LENGTHS[target]
    tapes = (1, 1, 1, 1, 1, 2, 2, 3)[draws.one_below(8)]
    if target == "transformer":
        tapes = 1 + draws.chance(1 / 1024)
    most = {1: 5, 2: 3, 3: 2}[tapes] if target != "transformer" or tapes == 1 else 2
    symbols = 2 + min(draws.one_below(most - 1), draws.one_below(most - 1))  # small ones more often
    states = 2 + draws.one_below(_most_states(target, tapes, symbols) - 1)
    halt = 0.3 if target == "simplex" else (0.02, 0.1, 0.3)[draws.one_below(3)]
    machine = random_machine(seed, states=states, symbols=symbols, tapes=tapes, halt=halt)
    inputs = tuple(
        tuple(
            tuple(machine.alphabet[draws.one_below(symbols)] for _ in range(draws.one_below(5)))
            for _ in range(tapes)
        )
        for _ in range(INPUTS)
    )
    if target == "simplex":  # it is built for inputs on which the machine halts
        halting = [
            one for one in inputs if len(list(islice(machine.run(machine.start(*one)), length + 1))) <= length
        ]
        if not halting:
            return Program(target, machine, ())
        inputs = tuple(halting[i % len(halting)] for i in range(INPUTS))
        return Program(target, machine, inputs, {"inputs": list(inputs)})
    if target == "tape":
        return Program(target, machine, inputs, {"cells": 2 * length + 16})
    if target == "decoder":
        return Program(target, machine, inputs, {"tokens": _horizon(draws)})
    attention = "softmax" if draws.chance(1 / 4) else "hardmax"
    options = {"steps": length - 1, "attention": attention, "form": "paper"}
    return Program(target, machine, inputs, options)


def _horizon(draws: Draws) -> int:
    """Tokens: all runs fit into 480, where two digits tell where a head is. Now and then it is 3,000, with
    three digits, or 60,000, where memory is searched in two rounds; such nets are larger."""
    if draws.chance(1 / 64):
        return 60_000
    return 3_000 if draws.chance(1 / 16) else 480


def _most_states(target: str, tapes: int, symbols: int) -> int:
    """A tape of the target `tape` is as many binary ones as a symbol has bits, and each doubles its graph."""
    if target == "transformer":
        return 8 if tapes == 1 else 2
    return {1: 8, 2: 8, 3: 6, 4: 3}[tapes * (symbols - 1).bit_length()] if target == "tape" else 8


def _grid_machine(target: str, seed: int, draws: Draws) -> Program:
    symbols = 2 + draws.one_below(4)
    machine = random_grid_machine(
        seed, states=2 + draws.one_below(7), symbols=symbols, halt=(0.02, 0.1, 0.3)[draws.one_below(3)]
    )
    inputs = tuple(
        (
            [
                [machine.alphabet[draws.one_below(symbols)] for _ in range(draws.one_below(4))]
                for _ in range(draws.one_below(4))
            ],
        )
        for _ in range(2)
    )
    form = "paper" if draws.chance(1 / 32) else "practical"
    return Program(target, machine, inputs, {"margin": LENGTHS[target], "form": form})


def _learner(target: str, seed: int, draws: Draws) -> Program:
    bits = 1 + draws.one_below(4)
    learner = random_learner(seed, inputs=bits, cells=1 + draws.one_below(5), size=5 + draws.one_below(36))
    random = np.random.Generator(np.random.PCG64(seed))
    samples = LENGTHS[target] - 1
    inputs = tuple(
        (random.integers(0, 2, (samples, bits), np.uint8), random.integers(0, 2, samples, np.uint8), seed + i)
        for i in range(INPUTS)
    )
    return Program(target, learner, inputs, {"precision": "float32" if draws.chance(1 / 4) else "float64"})


def _patterns(seed: int, bits: int) -> tuple[tuple[Any, ...], ...]:
    """All patterns, if they are few; some of them more than once."""
    if 1 << bits <= PATTERNS:
        return ((np.arange(PATTERNS)[:, None] >> np.arange(bits) & 1,),)
    random = np.random.Generator(np.random.PCG64(seed))
    return ((random.integers(0, 2, (PATTERNS, bits), np.uint8),),)


def _relu_options(draws: Draws) -> dict[str, Any]:
    """Either precision; three of four in the paper's form, whose states are compared layer by layer."""
    chosen = {"dtype": ("float32", "float64")[draws.one_below(2)]}
    return chosen | {"form": "practical" if draws.chance(1 / 4) else "paper"}


def _circuit(target: str, seed: int, draws: Draws) -> Program:
    bits, every = 1 + draws.one_below(8), tuple(Gate)
    sizes = {"inputs": bits, "size": 1 + draws.one_below(40), "outputs": 1 + draws.one_below(6)}
    circuit = random_circuit(seed, **sizes, kinds=every)
    return Program(target, circuit, _patterns(seed, bits), _relu_options(draws))


def _function(target: str, seed: int, draws: Draws) -> Program:
    function = random_function(seed, operations=3)
    return Program(target, function, _patterns(seed, len(function.circuit.inputs)), _relu_options(draws))


def _memory_program(target: str, seed: int, draws: Draws) -> Program:
    """SUBLEQ, and now and then RV32IM where a step is an instruction. Turing machines take thousands of steps
    for one."""
    large = target in ("emulator", "transformer", "decoder") and draws.chance(1 / 8)
    source = random_rv32(seed, instructions=16, ram=128) if large else random_subleq(seed)
    word = bytes(draws.one_below(256) for _ in range(draws.one_below(4)))
    steps = {"relu": 2, "tape": 20_000, "simplex": 20_000}.get(target, 40)
    return Program(target, source, ((word,),), {}, steps)


_MAKERS: dict[str, Callable[[str, int, Draws], Program]] = {
    "turing machine": _machine,
    "grid machine": _grid_machine,
    "learner": _learner,
    "circuit": _circuit,
    "function": _function,
    "program": _memory_program,
}
