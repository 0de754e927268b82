"""What a transformer with memories is about, in words: its steps, its tokens, what heads found. One class for
each kind of source that it runs: circuits, programs, machines with tapes."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tapegrad.attention.clocked import ClockPorts
from tapegrad.attention.memory import Bank
from tapegrad.attention.sources import TapePorts
from tapegrad.circuits.inputs import BUS, named_bits
from tapegrad.targets.transformer.memory_net import Decoding, MemoryNet

Vector = NDArray[np.floating]
MOST_VALUES = 4
"""Values of a circuit that a caption names."""


class Found(NamedTuple):
    """What a head has found: a word of a memory, in the token of this number or written by the step of this
    number, both counted from 0; and with how much weight."""

    block: int
    memory: str
    what: str
    written: bool
    place: int
    weight: float

    @property
    def where(self) -> str:
        """As people say it."""
        return f"step {self.place + 1}" if self.written else "the input"


class StepWords(Protocol):
    """Texts for the player."""

    begin: str
    """Before the first step."""
    note: str
    """What else to know."""

    def step(self, number: int, output: Vector, carry: Decoding) -> str:
        """A position, in a few characters."""
        ...

    def token(self, bank: Bank, at: int, word: int) -> str:
        """A token of the input, in a few characters: its place, a colon and what it holds."""
        ...

    def writes(self, output: Vector) -> dict[str, str]:
        """For each bank of memory that a step has written, the place."""
        ...

    def caption(
        self, number: int, before: Vector, output: Vector, found: Sequence[Found] | None, carry: Decoding
    ) -> str:
        """What happened in a step; `found` is None where nobody looked at the heads."""
        ...


def words_of(net: MemoryNet) -> StepWords:
    """Those of the net's source."""
    if isinstance(net.machine, ClockPorts):
        return ClockWords(net, net.machine)
    if isinstance(net.machine, TapePorts):
        return TapeWords(net, net.machine)
    return ProgramWords(net)


def register(net: MemoryNet, vector: Vector, name: str) -> int:
    """The number that a register holds."""
    return _number(vector[net.stream.group(name)])


def _number(bits: Vector) -> int:
    return sum(1 << place for place, bit in enumerate(bits) if bit > 0.5)


def _bits(number: int, count: int) -> NDArray[np.int_]:
    return np.array([number >> place & 1 for place in range(count)], int)


class ClockWords:
    """Circuits, with a clock or without: then there is one cycle."""

    note = ""

    def __init__(self, net: MemoryNet, ports: ClockPorts) -> None:
        self.net, self.source = net, ports.source
        self.single = not ports.source.latches and ports.cycles == 1
        self.begin = (
            "The input is a token. The transformer has written nothing yet: one position will compute the "
            "whole circuit."
            if self.single
            else "The inputs of each cycle are a token, unless they are all 0. The transformer has written "
            "nothing yet: each of its positions will be one cycle."
        )

    def step(self, number: int, output: Vector, carry: Decoding) -> str:
        return f"{number}: {self._short(self.source.outputs, register(self.net, output, 'outputs'))}"

    def token(self, bank: Bank, at: int, word: int) -> str:
        shown = self._short(self.source.inputs, word >> 1)
        return shown if self.single else f"{at + 1}: {shown}"

    def writes(self, output: Vector) -> dict[str, str]:
        return {}

    def caption(
        self, number: int, before: Vector, output: Vector, found: Sequence[Found] | None, carry: Decoding
    ) -> str:
        computed = self._values(self.source.outputs, register(self.net, output, "outputs"))
        read = bool(found)
        if self.single:
            looked = "Attention has copied the input from its token" if read else "All inputs are 0"
            return f"{looked}, and the gates have computed {computed}."
        said = f"Cycle {number}:"
        if found is not None:
            looked = (
                "copies the inputs from the token of this cycle" if read else "finds no token: they are 0"
            )
            said = f"{said} attention {looked}."
        if self.source.latches:
            latches = self._values(self.source.latches, register(self.net, output, "latches"))
            said = f"{said} The gates compute {computed}, and hand on {latches}."
        else:
            said = f"{said} The gates compute {computed}."
        return f"{said} That was the last cycle." if self.net.done(carry) else said

    def _values(self, names: Sequence[str], number: int) -> str:
        values = named_bits(names, _bits(number, len(names)))
        shown = [f"{name} = {value}" for name, value in values.items()]
        if len(shown) > MOST_VALUES:
            shown[MOST_VALUES:] = [f"{len(shown) - MOST_VALUES:,} more"]
        return ", ".join(shown) or "nothing"

    def _short(self, names: Sequence[str], number: int) -> str:
        """What is not 0, a single bit just by its name."""
        values, buses = named_bits(names, _bits(number, len(names))), {BUS.sub(r"\1", name) for name in names}
        buses -= set(names)
        return ", ".join(f"{n}={v}" if n in buses else n for n, v in values.items() if v) or "all 0"


class ProgramWords:
    """Programs on machines with random access."""

    begin = (
        "The program, its data and its input are tokens, one for each word that is not 0. The transformer "
        "has written nothing yet: each of its positions will be one instruction."
    )
    note = "Addresses and words are hexadecimal."

    def __init__(self, net: MemoryNet) -> None:
        self.net = net

    def step(self, number: int, output: Vector, carry: Decoding) -> str:
        return f"{number}: pc {register(self.net, output, 'pc'):x}"

    def token(self, bank: Bank, at: int, word: int) -> str:
        return f"{_place(bank, at)}: {word:x}"

    def caption(
        self, number: int, before: Vector, output: Vector, found: Sequence[Found] | None, carry: Decoding
    ) -> str:
        at = f" at {register(self.net, before, 'pc'):x}" if found is not None else ""
        said = f"Step {number}: the instruction{at}."
        sources: dict[str, list[str]] = {}
        for one in found or ():
            sources.setdefault(one.where, []).append(one.what)
        read = [f"{', '.join(dict.fromkeys(own))} from {where}" for where, own in sources.items()]
        if read:
            said = f"{said} Attention copies {' and '.join(read)}."
        writes = self._writes(output)
        if writes:
            said = f"{said} It writes {' and '.join(f'{word:x} to {place}' for _, place, word in writes)}."
        return f"{said} The program has ended." if self.net.done(carry) else said

    def writes(self, output: Vector) -> dict[str, str]:
        return {bank.name: place for bank, place, _ in self._writes(output)}

    def _writes(self, output: Vector) -> list[tuple[Bank, str, int]]:
        """Banks, places and words."""
        found = []
        for bank in self.net.layout.banks:
            if bank.written:
                on, at, word = (_number(output[self.net.stream.group(own.name)]) for own in bank.write)
                found += [(bank, _place(bank, at), word)] if on else []
        return found


def _place(bank: Bank, at: int) -> str:
    return f"{bank.memory}[{at if bank.side is None else 2 * at + bank.side:x}]"


class TapeWords:
    """Turing machines with any number of tapes."""

    begin = (
        "The symbols on the tapes are tokens. The transformer has written nothing yet: each of its positions "
        "will be one step of the machine."
    )

    def __init__(self, net: MemoryNet, ports: TapePorts) -> None:
        self.net, self.ports = net, ports
        self.note = "Tokens are named by tape and cell." if ports.machine.tapes > 1 else ""

    def step(self, number: int, output: Vector, carry: Decoding) -> str:
        state = self.net.decode(carry)
        return f"{state.state} {' '.join(self.ports.machine.read(state))}"

    def token(self, bank: Bank, at: int, word: int) -> str:
        symbol = self.ports.symbols[word.bit_length() - 1] if word else self.ports.machine.blank
        tape = f"{bank.number + 1}/" if self.ports.machine.tapes > 1 else ""
        return f"{tape}{at - self.ports.steps}: {symbol}"

    def writes(self, output: Vector) -> dict[str, str]:
        return {bank.name: bank.memory for bank in self.net.layout.banks}

    def caption(
        self, number: int, before: Vector, output: Vector, found: Sequence[Found] | None, carry: Decoding
    ) -> str:
        state = self.net.decode(carry)
        heads = ", ".join(map(str, state.heads))
        said = (
            f"Step {number}: state {state.state}, {'head' if len(state.heads) == 1 else 'heads'} at {heads}."
        )
        if found and self.ports.machine.tapes > 1:
            looked = ", ".join(f"{one.memory} from {one.where}" for one in found)
            said = f"{said} Attention finds what lies under the heads: {looked}."
        elif found:
            said = f"{said} Attention finds what lies under the head: from {found[0].where}."
        elif found is not None:
            said = f"{said} Attention finds nothing written there: blank."
        return f"{said} No rule applies: the machine halts." if self.net.done(carry) else said
