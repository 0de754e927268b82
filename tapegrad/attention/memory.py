"""Machines with memories as attention programs: a step of the machine is a step of the decoder.

What is carried are the registers and, for each memory, the write of the step before: where, what, and whether
there was one. So every step answers for one write, and to read a word is to look for the latest step that
answers for its address, or else for the token of the input that has it; a memory holds 0 where there is
neither. The logic between two groups of ports, and after the last, is a map.

A memory that is read or written two words at a time is kept as two banks, of the even and of the odd words:
of two words in a row each bank has one, so that one write a step is enough for each. The even one of the
words at `a` and `a + 1` is number (a + 1) / 2 of its bank, the odd one number a / 2, both rounded down. To
read a single word, both banks are asked, and whether the word is odd is compared too.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_
from typing import Literal, Protocol

import numpy as np

from tapegrad.attention.program import AttentionProgram, Bit, Head, Map, Side, Variable, word
from tapegrad.circuits import any_of, concat
from tapegrad.circuits.builder import CircuitBuilder
from tapegrad.circuits.model import ARITY, Circuit
from tapegrad.circuits.types import IntType, UInt
from tapegrad.circuits.values import BitValue, IntValue
from tapegrad.errors import Refused
from tapegrad.programs.model import Effect, Memory, Read, Step, Write, either, follow, only


class MemoryMachine(Protocol):
    """Registers, memories, and a step over typed values that asks for words with `yield`."""

    @property
    def registers(self) -> Mapping[str, IntType]: ...

    @property
    def memories(self) -> Mapping[str, Memory]: ...

    def step(self, registers: Mapping[str, IntValue], /) -> Step: ...


@dataclass(frozen=True)
class Bank:
    """A memory, or its even or odd words."""

    memory: str
    side: int | None
    number: int
    """What tokens call it."""
    words: int
    width: int
    address: int
    """Bits of an address."""
    written: bool

    @property
    def name(self) -> str:
        """As `ram`, or `ram even`."""
        return self.memory if self.side is None else f"{self.memory} {('even', 'odd')[self.side]}"

    def of(self, words: Sequence[int] | Mapping[int, int]) -> Iterator[tuple[int, int]]:
        """The words of this bank among those of its memory, by their numbers in the bank."""
        for place, content in words.items() if isinstance(words, Mapping) else enumerate(words):
            if self.side is None:
                yield place, content
            elif place % 2 == self.side:
                yield place // 2, content

    @property
    def write(self) -> tuple[Variable, Variable, Variable]:
        """What is carried of a write: whether there is one, where, and the word."""
        name = f"{self.name} write"
        return Variable(f"{name} on", 1), Variable(f"{name} at", self.address), Variable(name, self.width)


@dataclass(frozen=True)
class Layout:
    """The banks of a machine, and how words are found in them."""

    registers: Mapping[str, IntType]
    banks: tuple[Bank, ...]

    @property
    def token(self) -> tuple[Variable, ...]:
        """Bank, address and word."""
        return (
            Variable("bank", max(1, (len(self.banks) - 1).bit_length())),
            Variable("at", max(bank.address for bank in self.banks)),
            Variable("word", max(bank.width for bank in self.banks)),
        )

    @cached_property
    def carried(self) -> tuple[Variable, ...]:
        """Registers, then the write of every bank that is written."""
        registers = [Variable(name, of.width) for name, of in self.registers.items()]
        return *registers, *(part for bank in self.banks if bank.written for part in bank.write)

    def of(self, memory: str) -> list[Bank]:
        """The banks of a memory."""
        return [bank for bank in self.banks if bank.memory == memory]


def layout_of(machine: MemoryMachine) -> Layout:
    """The banks that the ports of a machine call for. Its step is taken once to see them."""
    build, ports = CircuitBuilder(), []

    def answered(reads: tuple[Read, ...]) -> tuple[IntValue, ...]:
        ports.extend(reads)
        return tuple(_inputs(build, UInt(sizes[port.memory].width * port.span)) for port in reads)

    sizes = machine.memories
    writes = follow(
        machine.step({name: _inputs(build, of) for name, of in machine.registers.items()}), answered
    ).writes
    ports.extend(writes)
    if any(port.span > 2 for port in ports):
        raise Refused("a port of more than two words has no heads yet", advice="Read them two by two.")
    banks = []
    for name, of in sizes.items():
        own = [port for port in ports if port.memory == name]
        writing = [port for port in writes if port.memory == name]
        if len(writing) > 1:
            raise Refused(
                f"two ports write {name!r}, and a step can answer for one write only",
                advice="Write it once a step.",
            )
        address = max([1, *(port.address.type.width for port in own)])
        halves = any(port.span == 2 for port in own)
        for side in (0, 1) if halves else (None,):
            words = of.words if side is None else (of.words + 1 - side) // 2
            banks.append(Bank(name, side, len(banks), words, of.width, address, bool(writing)))
    return Layout(machine.registers, tuple(banks))


def _inputs(build: CircuitBuilder, of: IntType) -> IntValue:
    return IntValue(of, [build.input("") for _ in range(of.width)], build)


class _Tracer:
    """One step of a machine, while it is traced: heads in groups, and the names of wires."""

    def __init__(self, layout: Layout) -> None:
        self.layout, self.build = layout, CircuitBuilder()
        self.inputs: list[tuple[Bit, int]] = []
        """Every bit that comes from outside the circuit, and after how many groups of heads it is known."""
        self.groups: list[list[Head]] = []
        self.ports = 0

    def known(self, bits: Iterable[Bit], group: int) -> IntValue:
        """New inputs of the circuit."""
        wires = []
        for bit in bits:
            wires.append(self.build.input(bit))
            self.inputs.append((bit, group))
        return IntValue(UInt(len(wires)), wires, self.build)

    def name(self, name: str, value: IntValue | BitValue) -> list[Bit]:
        """Gives the wires of a value a name."""
        bits = word(name, value.type.width)
        for bit, wire in zip(bits, value.wires(self.build), strict=True):
            self.build.output(bit, wire)
        return bits

    def read(self, ports: tuple[Read, ...]) -> tuple[IntValue, ...]:
        """Heads for ports that are read at once."""
        self.groups.append([])
        return tuple(self._port(port) for port in ports)

    def _port(self, port: Read) -> IntValue:
        self.ports += 1
        banks, address = self.layout.of(port.memory), port.address
        name = f"read {self.ports} of {port.memory}"
        if len(banks) == 1:
            return self._word(banks[0], name, address, ())
        if port.span == 1:
            (odd,) = self.name(f"{name} odd", address[0])
            # The bank that the word does not lie in gives zeros.
            found = [self._word(bank, name, address >> 1, [(odd, _constant(bank.side))]) for bank in banks]
            return reduce(or_, found)
        even, odd = (self._word(bank, name, at, ()) for bank, at in zip(banks, _pair(address), strict=True))
        return concat(*either(address[0], odd, even).bits(), *either(address[0], even, odd).bits())

    def _word(self, bank: Bank, name: str, address: IntValue, also: Sequence[tuple[Side, Side]]) -> IntValue:
        """A word of a bank: what was written last, else what was given, else 0."""
        name = name if bank.side is None else f"{name}, {bank.name}"
        asks = self.name(f"{name} at", address.to(UInt(bank.address)))
        group = len(self.groups)

        def head(
            what: str,
            over: Literal["steps", "input"],
            answers: Sequence[Bit],
            there: Sequence[Bit],
            further: Sequence[tuple[Side, Side]],
        ) -> tuple[BitValue, IntValue]:
            compared = *zip(asks, answers, strict=True), *also, *further
            own = f"{name}, {what}"
            copies = tuple(zip(there, word(own, bank.width), strict=True))
            new = Head(own, over, compared, copies, f"{own}?[0]")
            self.groups[-1].append(new)
            found, *copied = new.gives
            return self.known([found], group)[0], self.known(copied, group)

        token = {variable.name: variable.bits for variable in self.layout.token}
        is_bank: list[tuple[Side, Side]] = [
            (_constant(bank.number >> i & 1), bit) for i, bit in enumerate(token["bank"])
        ]
        _, given = head("given", "input", token["at"][: bank.address], token["word"][: bank.width], is_bank)
        if not bank.written:
            return given
        on, at, content = bank.write
        found, written = head("written", "steps", at.bits, content.bits, ((1, on.bits[0]),))
        return written | only(~found, given)

    def write(self, port: Write) -> Iterator[tuple[Variable, list[Bit]]]:
        """For each bank of a memory, what its write becomes. Beyond its end nothing is written."""
        banks, address = self.layout.of(port.memory), port.address
        width = banks[0].width
        if len(banks) == 1:
            parts = [(address, port.old, port.change)]
        elif port.span == 1:
            lands = (~address[0], address[0])
            parts = [(address >> 1, port.old, only(flag, port.change)) for flag in lands]
        else:
            halves = [(value[:width], value[width:]) for value in (port.old, port.change)]
            even = (either(address[0], high, low) for low, high in halves)
            odd = (either(address[0], low, high) for low, high in halves)
            parts = [(at, *words) for at, words in zip(_pair(address), (even, odd), strict=True)]
        for bank, (at, old, change) in zip(banks, parts, strict=True):
            on = any_of(change.bits())
            at = at.to(UInt(bank.address))
            if bank.words < 1 << bank.address:
                on = on & (at < bank.words)
            for variable, value in zip(bank.write, (on, at, old ^ change), strict=True):
                yield variable, self.name(f"next {variable.name}", value)


def _pair(address: IntValue) -> tuple[IntValue, IntValue]:
    """Where the words at an address and after it lie: in the even bank and in the odd one."""
    return (address.to(UInt(address.type.width + 1)) + 1) >> 1, address >> 1


def _constant(bit: int | None) -> Side:
    return 1 if bit else 0


def memory_program(machine: MemoryMachine, name: str) -> AttentionProgram:
    """One step of a machine as an attention program."""
    layout = layout_of(machine)
    tracer = _Tracer(layout)
    registers = {
        register: tracer.known(word(register, of.width), 0) for register, of in layout.registers.items()
    }
    effect: Effect = follow(machine.step(registers), tracer.read)
    output: dict[Bit, Bit] = {}
    for register, of in layout.registers.items():
        own = word(register, of.width)
        new = effect.registers.get(register)
        output |= zip(own, own if new is None else tracer.name(f"next {register}", new), strict=True)
    for port in effect.writes:
        for variable, new in tracer.write(port):
            output |= zip(variable.bits, new, strict=True)
    maps = _maps(tracer.build.circuit(name), tracer.inputs, len(tracer.groups))
    layers: list[Head | Map] = []
    for own, heads in zip(maps, [*tracer.groups, []], strict=True):
        layers += [own, *heads] if own.circuit.outputs else heads
    return AttentionProgram(
        name,
        layout.carried,
        layout.token,
        tuple(layers),
        output,
        tuple(word("trap", layout.registers["trap"].width)),
    )


def _maps(circuit: Circuit, inputs: Sequence[tuple[Bit, int]], groups: int) -> list[Map]:
    """The circuit cut into one map for each group of heads and one for the end: every gate stands in the
    first in which its operands are known. Wires that go from one map to a later one are bits of their own."""
    names = [bit for bit, _ in inputs] + [f"wire {gate}" for gate in range(circuit.size)]
    operands = [
        (left, right)[:arity]
        for arity, left, right in zip(
            ARITY[circuit.kinds].tolist(), circuit.left.tolist(), circuit.right.tolist(), strict=True
        )
    ]
    stage = [group for _, group in inputs]
    gives: list[dict[Bit, int]] = [{} for _ in range(groups + 1)]
    for reads in operands:
        own = max((stage[wire] for wire in reads), default=0)
        stage.append(own)
        for wire in reads:
            if wire >= len(inputs) and stage[wire] < own:
                gives[stage[wire]][names[wire]] = wire
    for bit, wire in zip(circuit.outputs, circuit.output_wires.tolist(), strict=True):
        gives[stage[wire]][bit] = wire
    gates: list[list[int]] = [[] for _ in gives]
    for gate in range(circuit.size):
        gates[stage[len(inputs) + gate]].append(gate)
    return [
        _map(circuit, f"map {number}", names, operands, own, new)
        for number, (own, new) in enumerate(zip(gates, gives, strict=True))
    ]


def _map(
    circuit: Circuit,
    name: str,
    names: Sequence[Bit],
    operands: Sequence[Sequence[int]],
    gates: Sequence[int],
    gives: Mapping[Bit, int],
) -> Map:
    """These gates as a circuit of their own, with the wires it gives as outputs."""
    first = len(circuit.inputs)
    own = {first + gate for gate in gates}
    read = [wire for gate in gates for wire in operands[gate]] + list(gives.values())
    outside = list(dict.fromkeys(wire for wire in read if wire not in own))
    place = {wire: number for number, wire in enumerate([*outside, *(first + gate for gate in gates)])}
    left, right = np.zeros((2, len(gates)), np.int32)
    for number, gate in enumerate(gates):
        for side, wire in zip((left, right), operands[gate], strict=False):
            side[number] = place[wire]
    return Map(
        name,
        Circuit(
            inputs=tuple(names[wire] for wire in outside),
            outputs=tuple(gives),
            kinds=circuit.kinds[list(gates)],
            left=left,
            right=right,
            output_wires=np.array([place[wire] for wire in gives.values()], np.int32),
            name=name,
        ),
    )
