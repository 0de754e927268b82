"""Sources with memories: programs on machines with random access, and Turing machines with tapes; circuits
with state are in `clocked`.

A tape is a memory whose address is the head. Symbols are one-hot words, the blank being 0, and cells are
counted from where a head starts, which is in the middle. What a Turing machine hands on is its state, the
rule that applies next, and the symbols under its heads. So a step writes and moves as that rule says, reads
what lies under the heads now, and chooses the next rule; where there is none the machine has halted. A head
that stays sees the symbol just written; one that moves is somewhere else, where no write is pending.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from tapegrad._sources import source_from_json, source_to_json
from tapegrad.attention.clocked import CLOCK, clock_ports
from tapegrad.attention.memory import MemoryMachine
from tapegrad.circuits import Bit, UInt, all_of, any_of, concat
from tapegrad.circuits.model import GATES
from tapegrad.circuits.types import IntType
from tapegrad.circuits.values import BitValue, IntValue
from tapegrad.errors import BrokenNet
from tapegrad.machines.model import LEFT, RIGHT, Configuration, Rule, TuringMachine
from tapegrad.programs.instruction_sets import machine_from_json, machine_to_json
from tapegrad.programs.model import Contents, Effect, Machine, Memory, ProgramState, Read, Step, Write, either
from tapegrad.source import State

Words = list[int] | dict[int, int]
"""What a memory holds: a list of all words, or those that are not 0 by their address."""
Held = tuple[Mapping[str, int], Mapping[str, Words]]
"""Registers and memories by name."""


class Ports(MemoryMachine, Protocol):
    """A source whose states can be taken apart into registers and memories, and put together again."""

    def contents(self, state: Any, /) -> Held: ...

    def state(self, registers: Mapping[str, int], memories: Mapping[str, Words], first: Any, /) -> State:
        """The state in which these hold this, in a run that began with a first one."""
        ...

    def to_json(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class ProgramPorts:
    """A machine with random access, whatever its program."""

    machine: Machine

    @property
    def registers(self) -> Mapping[str, IntType]:
        return self.machine.registers

    @property
    def memories(self) -> Mapping[str, Memory]:
        return self.machine.memories

    def step(self, registers: Mapping[str, IntValue], /) -> Step:
        return self.machine.step(registers)

    def contents(self, state: ProgramState, /) -> Held:
        registers, memories = self.machine.contents(state)
        return registers, {name: list(words) for name, words in memories.items()}

    def state(
        self, registers: Mapping[str, int], memories: Mapping[str, Words], first: ProgramState, /
    ) -> ProgramState:
        lists = {name: words for name, words in memories.items() if isinstance(words, list)}
        return self.machine.state(Contents(dict(registers), lists))

    def to_json(self) -> dict[str, Any]:
        data, arrays = machine_to_json(self.machine)
        return data | ({"arrays": {name: array.tolist() for name, array in arrays.items()}} if arrays else {})


@dataclass(frozen=True)
class TapePorts:
    """A Turing machine, for runs of at most so many steps: heads go so far either way."""

    machine: TuringMachine
    steps: int

    @cached_property
    def symbols(self) -> list[str]:
        """All but the blank."""
        return [symbol for symbol in self.machine.alphabet if symbol != self.machine.blank]

    @property
    def filler(self) -> list[BitValue]:
        """The word of a machine that has no symbol but the blank."""
        return [] if self.symbols else [Bit(0)]

    @property
    def address(self) -> int:
        """Bits of a head's position, which is from 0 to 2 T."""
        return (2 * self.steps).bit_length()

    @property
    def registers(self) -> Mapping[str, IntType]:
        tapes = range(self.machine.tapes)
        return {
            "state": UInt(len(self.machine.states)),
            "rule": UInt(max(1, len(self.machine.rules))),
            "trap": UInt(1),
            **{f"symbol {tape}": UInt(max(1, len(self.symbols))) for tape in tapes},
            **{f"head {tape}": UInt(self.address) for tape in tapes},
        }

    @property
    def memories(self) -> Mapping[str, Memory]:
        word = max(1, len(self.symbols))
        return {f"tape {tape}": Memory(word, 1 << self.address) for tape in range(self.machine.tapes)}

    def step(self, registers: Mapping[str, IntValue], /) -> Step:
        machine, rules = self.machine, list(self.machine.rules.values())
        tapes, applies = range(machine.tapes), registers["rule"].bits()

        def chosen(what: Callable[[Rule], Hashable]) -> Callable[[Hashable], BitValue]:
            """Whether the rule that applies says this, for whatever rules can say."""
            saying: dict[Hashable, list[BitValue]] = {}
            for flag, rule in zip(applies, rules, strict=False):
                saying.setdefault(what(rule), []).append(flag)
            return lambda wanted: any_of(saying.get(wanted, []))

        state = dict(zip(machine.states, map(chosen(lambda rule: rule.state), machine.states), strict=True))
        writes, moves, heads = [], [], []
        for t in tapes:
            writes.append(concat(*(map(chosen(lambda rule, t=t: rule.write[t]), self.symbols)), *self.filler))
            left, right = map(chosen(lambda rule, t=t: rule.moves[t]), (LEFT, RIGHT))
            moves.append(left | right)
            heads.append(registers[f"head {t}"] + concat(moves[t], *[left] * (self.address - 1)))
        read = yield tuple(Read(f"tape {t}", heads[t]) for t in tapes)
        symbols = [either(moves[t], read[t], writes[t]) for t in tapes]
        under = [self._under(word) for word in symbols]
        following = [
            all_of([state[q], *(under[t][symbol] for t, symbol in enumerate(seen))])
            for q, seen in machine.rules
        ]
        return Effect(
            {
                "state": concat(*state.values()),
                "rule": concat(*(following or [Bit(0)])),
                "trap": concat(~any_of(following)),
                **{f"symbol {t}": symbols[t] for t in tapes},
                **{f"head {t}": heads[t] for t in tapes},
            },
            [
                Write(f"tape {t}", registers[f"head {t}"], old := registers[f"symbol {t}"], old ^ writes[t])
                for t in tapes
            ],
        )

    def _under(self, word: IntValue) -> dict[str, BitValue]:
        """For each symbol whether it is the one of this word."""
        bits = word.bits()
        return {self.machine.blank: ~any_of(bits)} | dict(zip(self.symbols, bits, strict=False))

    def contents(self, state: Configuration, /) -> Held:
        machine = self.machine
        seen = machine.read(state)
        rules = list(machine.rules)
        rule = rules.index((state.state, seen)) if (state.state, seen) in machine.rules else None
        registers = {
            "state": 1 << machine.states.index(state.state),
            "rule": 0 if rule is None else 1 << rule,
            "trap": int(rule is None),
        }
        for tape, symbol in enumerate(seen):
            registers |= {f"symbol {tape}": self._number(symbol), f"head {tape}": self.steps}
        memories: dict[str, Words] = {
            f"tape {number}": {
                cell - head + self.steps: self._number(symbol) for cell, symbol in tape.items()
            }
            for number, (tape, head) in enumerate(zip(state.tapes, state.heads, strict=True))
        }
        return registers, memories

    def _number(self, symbol: str) -> int:
        return 0 if symbol == self.machine.blank else 1 << self.symbols.index(symbol)

    def state(
        self, registers: Mapping[str, int], memories: Mapping[str, Words], first: Configuration, /
    ) -> Configuration:
        tapes, heads = [], []
        for number, origin in enumerate(first.heads):
            head = registers[f"head {number}"]
            words = memories[f"tape {number}"]
            held = dict(words) if isinstance(words, dict) else dict(enumerate(words))
            held[head] = registers[f"symbol {number}"]
            symbols = {place: self._symbol(word) for place, word in held.items()}
            tapes.append(
                {
                    place - self.steps + origin: symbol
                    for place, symbol in symbols.items()
                    if symbol != self.machine.blank
                }
            )
            heads.append(head - self.steps + origin)
        state = _one(registers["state"], self.machine.states)
        return Configuration(state, tuple(tapes), tuple(heads))

    def _symbol(self, word: int) -> str:
        return _one(word, self.symbols) if word else self.machine.blank

    def to_json(self) -> dict[str, Any]:
        return {"kind": TAPES, "steps": self.steps, "source": source_to_json(self.machine)[0]}


def _one(number: int, names: Iterable[str]) -> str:
    """The name whose bit is 1; what is no one-hot is named as such."""
    on = [name for place, name in enumerate(names) if number >> place & 1]
    return on[0] if len(on) == 1 else f"({len(on)} are on)"


TAPES = "tapes"


def ports_of(data: Mapping[str, Any]) -> Ports:
    """The source again, from its JSON."""
    if data["kind"] == CLOCK:
        return clock_ports(data)
    if data["kind"] == TAPES:
        machine = source_from_json(data["source"], {})
        if not isinstance(machine, TuringMachine):
            raise BrokenNet("the machine of the network has no tapes")
        return TapePorts(machine, int(data["steps"]))
    arrays = {name: np.array(values, GATES[name]) for name, values in data.get("arrays", {}).items()}
    machine = {name: value for name, value in data.items() if name != "arrays"}
    return ProgramPorts(machine_from_json(machine, arrays))
