"""Programs: machines with random access, and what is loaded into them.

A machine has registers, memories of words, and a step. The step is a function of the registers, written over
the typed values of `tapegrad.circuits`, that asks for what it needs of the memories with `yield`:

    (word,) = yield (Read("ram", address),)

Whatever is asked for at once is read at once, from the memories as they were before the step. At last the
function gives the new registers and the words that change. So a step is a fixed sequence of ports, with logic
between them: as gates it is one circuit, in which a port is a bundle of word lines; to a transformer a port
is a head. A new instruction set is one such function, `instruction`, and `tapegrad.register` takes it to the
targets; of input and output it says only whether it takes a byte, and which byte it puts out.
"""

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tapegrad.circuits import Bit, UInt, any_of, concat
from tapegrad.circuits.types import IntType
from tapegrad.circuits.values import BitValue, IntValue
from tapegrad.errors import InputError, Refused, SourceError, described

LARGEST_RAM = 1 << 26
"""Bytes of memory that a program may have."""
LONGEST_INPUT = 1 << 26
COUNTED = 32
"""Bytes of output are counted modulo 2 to this power."""


@dataclass(frozen=True)
class Memory:
    """So many words of `width` bits. Beyond its end a memory reads 0, and nothing is written."""

    width: int
    words: int


class Read(NamedTuple):
    """A port that reads the word at an address; with `span`, that word and those after it, the first at the
    low end."""

    memory: str
    address: IntValue
    span: int = 1


class Next(NamedTuple):
    """A port that reads the next byte of input: nine bits, of which the last says that there is one."""


class Write(NamedTuple):
    """A port that changes the words which a `Read` of the same address and span has given as `old`: bits
    change where `change` has ones. No ones, no write."""

    memory: str
    address: IntValue
    old: IntValue
    change: IntValue
    span: int = 1


class Effect(NamedTuple):
    """What a step does in the end. Registers that are not named stay; words that two ports write are a
    mistake."""

    registers: Mapping[str, IntValue]
    writes: Sequence[Write]
    takes: BitValue | None = None
    """Of an instruction: whether the byte that `Next` has read is taken, so that another one is next."""
    puts: tuple[BitValue, IntValue] | None = None
    """Of an instruction: whether a byte is put out, and which."""

    def ends(self) -> tuple[BitValue, BitValue, IntValue]:
        """Whether a byte is taken, whether one is put out, and which."""
        emits, byte = (Bit(0), UInt(8)(0)) if self.puts is None else self.puts
        return Bit(0) if self.takes is None else self.takes, emits, byte


Step = Generator[tuple[Read, ...], tuple[IntValue, ...], Effect]
Instruction = Generator[tuple[Read | Next, ...], tuple[IntValue, ...], Effect]


@dataclass(frozen=True, eq=False)
class ProgramState:
    """Where a program stands, in terms of any machine."""

    pc: int
    memory: bytes
    """RAM, every word with its lowest byte first."""
    registers: tuple[int, ...] = ()
    trap: str = ""
    """What has stopped the program, at `pc`; nothing while it runs."""
    input: bytes = b""
    taken: int = 0
    """How much of the input has been read."""
    copied: int = 0
    """Bytes that an input or output of several bytes, at `pc`, has moved so far."""
    output: bytes = b""
    """The end of what was written: all of it in an interpreter, as much as it keeps in a network."""
    written: int = 0
    """How many bytes were written in all, modulo 2^32."""
    extra: Mapping[str, int | tuple[int, ...]] = field(default_factory=dict)
    """Further registers and memories that the instruction set has, by name."""

    def __eq__(self, other: object) -> bool:
        """Outputs are compared as far as both states know them."""
        if not isinstance(other, ProgramState):
            return NotImplemented
        known = min(len(self.output), len(other.output))
        return self._rest() == other._rest() and _tail(self.output, known) == _tail(other.output, known)

    __hash__ = None  # type: ignore[assignment]

    def _rest(self) -> tuple[Any, ...]:
        return (
            self.pc,
            self.trap,
            self.registers,
            self.taken,
            self.copied,
            self.written,
            self.input,
            self.memory,
            self.extra,
        )

    def __repr__(self) -> str:
        where = f"{self.trap} at" if self.trap else "at"
        registers = " ".join(f"{number:x}" for number in self.registers)
        return f"<{where} {self.pc:#x}, registers {registers}, {self.written} bytes written>"


def _tail(data: bytes, length: int) -> bytes:
    return data[len(data) - length :]


@dataclass(frozen=True)
class Machine(ABC):
    """An instruction set with sizes. The size of RAM is a matter of programs; how much of input and output a
    network keeps at hand is not."""

    ram: int
    """Bytes."""
    input: int = 64
    """Bytes of input that there is room for."""
    output: int = 64
    """Bytes of output that are kept: the last ones. A power of two."""

    kind: ClassVar[str]
    traps: ClassVar[tuple[str, ...]]
    """What can stop a program, the first for a program that has reached its end. Trap number i + 1 is
    `traps[i]`; 0 stands for none."""
    alignment: ClassVar[int] = 1
    """What the address of every instruction is a multiple of."""
    extra: ClassVar[Mapping[str, "IntType | Memory"]] = {}
    """Registers and memories beyond those that every machine has, by name. All are 0 at first."""

    def __post_init__(self) -> None:
        size = self.word // 8
        if not size <= self.ram <= LARGEST_RAM or self.ram % size:
            raise SourceError(
                f"a memory of {self.ram:,} bytes is not possible",
                advice=f"Ask for a multiple of {size}, at most {LARGEST_RAM:,}.",
            )
        if self.input < 1 or self.output < 1 or self.output & (self.output - 1):
            raise SourceError(
                f"input and output of {self.input} and {self.output} bytes are not possible",
                advice="Ask for at least 1, and for a power of two for the output.",
            )

    @property
    @abstractmethod
    def word(self) -> int:
        """Bits of a word of RAM."""

    def instruction(self, registers: Mapping[str, IntValue]) -> Instruction:
        """One instruction: what registers and words become, whether a byte is taken and one put out. With
        other ports a machine writes its `step` instead."""
        raise NotImplementedError

    def step(self, registers: Mapping[str, IntValue]) -> Step:
        """One instruction, with its input and output as memories: the byte at `taken` is the next, and the
        next byte of output takes the place of the oldest."""
        taken, written = registers["taken"], registers["written"]
        ring = written[: (self.output - 1).bit_length()] if self.output > 1 else UInt(1)(0)
        following = self.instruction({name: registers[name] for name in self.own_registers})
        oldest: IntValue | None = None
        try:
            ports = next(following)
            while True:
                reads = [Read("input", taken) if isinstance(port, Next) else port for port in ports]
                if oldest is None:
                    *found, oldest = yield (*reads, Read("output", ring))
                else:
                    found = yield tuple(reads)
                ports = following.send(tuple(found))
        except StopIteration as done:
            effect: Effect = done.value
        if oldest is None:
            (oldest,) = yield (Read("output", ring),)
        takes, emits, byte = effect.ends()
        return Effect(
            {**effect.registers, "taken": taken + takes, "written": written + emits},
            [*effect.writes, Write("output", ring, oldest, only(emits, oldest ^ byte))],
        )

    def run(self, state: ProgramState) -> Iterator[ProgramState]:
        """Every state from this one to the end, by a plain interpreter, which knows nothing of `step`: it
        takes instructions on numbers, and keeps its own account of input and output."""
        yield state
        while not state.trap:
            state = self._followed(state)
            yield state

    def _followed(self, state: ProgramState) -> ProgramState:
        """After one instruction."""
        registers, memories = self.contents(replace(state, output=b"", written=0))
        taken = state.taken

        def read(port: Read | Next) -> IntValue:
            if isinstance(port, Next):
                return UInt(9)(256 | state.input[taken] if taken < len(state.input) else 0)
            return self.word_at(memories, port)

        typed = {name: of(registers[name]) for name, of in self.own_registers.items()}
        effect = follow(self.instruction(typed), lambda ports: tuple(map(read, ports)))
        for port in effect.writes:
            self.put(memories, port)
        registers |= {name: value.number for name, value in effect.registers.items()}
        takes, emits, byte = effect.ends()
        registers["taken"] += int(takes.number)
        after = self.state(Contents(registers, memories))
        output = state.output + bytes([byte.number] if emits.number else [])
        return replace(
            after, input=state.input, output=output, written=(state.written + int(emits.number)) % 2**COUNTED
        )

    @property
    def first(self) -> tuple[int, ...]:
        """The general registers before the first step; they are the memory `x`, if there are any."""
        return ()

    @property
    def nothing(self) -> dict[str, int | tuple[int, ...]]:
        """What the further registers and memories hold before the first step."""
        return {name: (0,) * of.words if isinstance(of, Memory) else 0 for name, of in self.extra.items()}

    @property
    def counter(self) -> IntType:
        """What `pc` is."""
        return UInt(self.word)

    @property
    def own_registers(self) -> dict[str, IntType]:
        """The registers that an instruction sees and changes; input and output are counted for it."""
        further = {name: of for name, of in self.extra.items() if not isinstance(of, Memory)}
        return {"pc": self.counter, "trap": UInt(len(self.traps).bit_length()), **further}

    @property
    def registers(self) -> dict[str, IntType]:
        """The registers that every machine has, and its further ones."""
        pc, trap, *further = self.own_registers.items()
        return {
            **dict((pc, trap)),
            "copied": UInt(self.ram.bit_length()),
            "taken": UInt(self.input.bit_length()),
            "written": UInt(COUNTED),
            **dict(further),
        }

    @property
    def memories(self) -> dict[str, Memory]:
        """RAM; general registers, if there are any; input, with a ninth bit that says that there is a byte;
        and output, in which the next byte takes the place of the oldest."""
        general = {"x": Memory(self.word, len(self.first))} if self.first else {}
        return {
            "ram": Memory(self.word, self.ram * 8 // self.word),
            **general,
            "input": Memory(9, self.input),
            "output": Memory(8, self.output),
            **{name: of for name, of in self.extra.items() if isinstance(of, Memory)},
        }

    def contents(self, state: ProgramState) -> "Contents":
        """What registers and memories hold in a state."""
        if len(state.input) > self.input:
            raise InputError(
                f"an input of {len(state.input):,} bytes is given, and there is room for {self.input:,}",
                advice=f"Make room with input={len(state.input)}.",
            )
        kept = [0] * self.output
        for back, byte in enumerate(reversed(state.output[-self.output :]), 1):
            kept[(state.written - back) % self.output] = byte
        memories = {
            "ram": np.frombuffer(state.memory, f"<u{self.word // 8}").tolist(),
            "x": list(state.registers),
            "input": [byte | 256 for byte in state.input] + [0] * (self.input - len(state.input)),
            "output": kept,
        }
        numbers = {name: value for name, value in state.extra.items() if isinstance(value, int)}
        memories |= {name: list(words) for name, words in state.extra.items() if not isinstance(words, int)}
        return Contents(
            {
                "pc": state.pc,
                "trap": self.traps.index(state.trap) + 1 if state.trap else 0,
                "copied": state.copied,
                "taken": state.taken,
                "written": state.written,
                **numbers,
            },
            {name: memories[name] for name in self.memories},
        )

    def state(self, contents: "Contents") -> ProgramState:
        """The state in which registers and memories hold this. Of the output it knows what is kept."""
        registers, memories = contents
        written, trap = registers["written"], registers["trap"]
        kept = [memories["output"][i % self.output] for i in range(max(0, written - self.output), written)]
        return ProgramState(
            pc=registers["pc"],
            memory=np.array(memories["ram"], f"<u{self.word // 8}").tobytes(),
            registers=tuple(memories.get("x", ())),
            trap=self.traps[trap - 1] if trap else "",
            input=bytes(word & 255 for word in memories["input"] if word & 256),
            taken=registers["taken"],
            copied=registers["copied"],
            output=bytes(kept),
            written=written,
            extra={
                name: tuple(memories[name]) if isinstance(of, Memory) else registers[name]
                for name, of in self.extra.items()
            },
        )

    def word_at(self, memories: Mapping[str, Sequence[int]], port: Read) -> IntValue:
        """What a port reads, with numbers in memories; beyond the end of one it is 0."""
        words, first = memories[port.memory], port.address.number
        width = self.memories[port.memory].width
        found = [words[i] if i < len(words) else 0 for i in range(first, first + port.span)]
        return UInt(width * port.span)(sum(word << width * i for i, word in enumerate(found)))

    def put(self, memories: Mapping[str, list[int]], port: Write) -> None:
        """Changes what a port changes; beyond the end of a memory nothing."""
        words, first = memories[port.memory], port.address.number
        width = self.memories[port.memory].width
        for i in range(min(port.span, len(words) - first)):
            words[first + i] ^= port.change.number >> width * i & (1 << width) - 1

    def after(self, contents: "Contents") -> "Contents":
        """One step, computed by `step` on concrete values; a program that has stopped stays as it is."""
        registers, memories = contents
        if registers["trap"]:
            return contents
        typed = {name: of(registers[name]) for name, of in self.registers.items()}
        effect = follow(self.step(typed), lambda reads: tuple(self.word_at(memories, port) for port in reads))
        new = {name: list(words) for name, words in memories.items()}
        for port in effect.writes:
            self.put(new, port)
        return Contents(registers | {name: value.number for name, value in effect.registers.items()}, new)


class Contents(NamedTuple):
    """Registers and memories by name."""

    registers: dict[str, int]
    memories: dict[str, list[int]]


def follow(step: "Step | Instruction", read: Any) -> Effect:
    """Takes a step or an instruction to its end; `read` answers all ports that are asked for at once."""
    try:
        reads = next(step)
        while True:
            reads = step.send(read(reads))
    except StopIteration as done:
        return done.value


# Choosing by flags of which at most one is 1: a bit costs an AND for each choice and the ORs between them,
# and nothing changes in what is not chosen.


def only(flag: BitValue, word: IntValue) -> IntValue:
    """The word where the flag is 1, else 0."""
    return concat(*(bit & flag for bit in word.bits()))


def chosen(*choices: tuple[BitValue, IntValue]) -> IntValue:
    """The word whose flag is 1; 0 where there is none."""
    masked = (only(flag, word).bits() for flag, word in choices)
    return concat(*(any_of(bits) for bits in zip(*masked, strict=True)))


def either(flag: BitValue, a: IntValue, b: IntValue) -> IntValue:
    """`a` if the flag is 1, else `b`."""
    return chosen((flag, a), (~flag, b))


# Programs: a machine and what its memory holds at first.


@dataclass(frozen=True)
class SourceText:
    """What a program was compiled from, for people to follow."""

    text: tuple[str, ...]
    """Its lines."""
    lines: Mapping[int, int]
    """From the address at which the code of a line begins to its number, from 1; 0 for code from elsewhere.
    It goes on up to the next address."""

    def line(self, address: int) -> int:
        """The line that an instruction belongs to; 0 if to none."""
        before = bisect_right(self._addresses, address)
        return self.lines[self._addresses[before - 1]] if before else 0

    @cached_property
    def _addresses(self) -> list[int]:
        return sorted(self.lines)


@dataclass(frozen=True)
class Program:
    """A program that is loaded at address 0 of its machine."""

    name: str
    machine: Machine
    image: bytes
    """What RAM holds at first; zeros follow."""
    entry: int = 0
    """Where it starts."""
    symbols: Mapping[str, int] = field(default_factory=dict, compare=False)
    """Labels and functions by name, for people."""
    source: SourceText | None = field(default=None, compare=False)
    any_memory: bool = field(default=False, compare=False)
    """Whether nobody has said how large its memory is, so that a run may choose."""

    def __post_init__(self) -> None:
        if len(self.image) > self.machine.ram:
            raise Refused(
                f"the program {self.name!r} takes {len(self.image):,} bytes, and its memory has "
                f"{self.machine.ram:,}",
                advice="Give it more memory: a symbol `__ram` in the program is its size in bytes.",
            )

        if self.entry % self.machine.alignment:
            raise SourceError(
                f"the program {self.name!r} starts at {self.entry:#x}, between two instructions"
            )

    def start(self, input: bytes | str = b"") -> ProgramState:
        """The first state, with this input to read."""
        try:
            data = input.encode() if isinstance(input, str) else bytes(memoryview(input))
        except TypeError:  # `bytes` of a number would be so many zeros
            raise InputError(
                f"the input of {self.name!r} is a text or bytes, and this is {described(input)}",
                advice="One text is one input; call the net once for each of several.",
            ) from None
        if len(data) > LONGEST_INPUT:
            raise InputError(f"the input is longer than {LONGEST_INPUT:,} bytes")
        memory = self.image.ljust(self.machine.ram, b"\0")
        machine = self.machine
        return ProgramState(self.entry, memory, machine.first, input=data, extra=machine.nothing)

    def run(self, state: ProgramState) -> Iterator[ProgramState]:
        """Every state from this one to the end."""
        return self.machine.run(state)

    def with_room(self, *, input: int, output: int) -> "Program":
        """The same program on a machine with so much room for input and output."""
        return replace(self, machine=replace(self.machine, input=input, output=output))
