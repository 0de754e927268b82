"""Instruction sets that the checker does not know: what a folder says an instruction reads and does.

Such an instruction set is a form (registers, memories, ports that are read one group after the other) and one
circuit for all that lies between the ports. Here it is read with everything in bounds; that a net takes its
steps is proved as for the others, and that it is the instruction set somebody means is not for a checker to
say.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

from tapegrad_check.fields import text, texts, whole
from tapegrad_check.folder import Arrays, require
from tapegrad_check.sources.circuits import GATES, Circuit, circuit_of

BYTE, COUNTED = 8, 32
MOST_BITS = 64
"""Of a word, a register or an address."""
MOST_WORDS = 1 << 20
RESERVED = {"pc", "trap", "copied", "taken", "written", "ram", "x", "input", "output"}
KEYS = {
    "word", "counter", "traps", "first", "extra", "groups", "changed", "writes", "takes", "puts"
}  # fmt: skip


@dataclass(frozen=True)
class Port:
    """A port that reads: of which memory ("" for the next byte of input), how many words, and how many bits
    its address has."""

    memory: str
    span: int
    address: int


@dataclass(frozen=True, eq=False)
class Instruction:
    """An instruction set with so many bytes of memory."""

    kind: str
    ram: int
    word: int
    traps: int
    first: tuple[int, ...]
    registers: Mapping[str, int]
    """Those that an instruction sees: `pc`, `trap`, and its own."""
    memories: Mapping[str, tuple[int, int]]
    """Width and number of words: `ram`, `x` if there are general registers, and its own."""
    groups: tuple[tuple[Port, ...], ...]
    changed: tuple[str, ...]
    writes: tuple[int, ...]
    """For each port that writes, the number of the one that has read there."""
    takes: bool
    puts: bool
    data: Mapping[str, Any]
    """The form as it is saved."""
    arrays: Arrays

    @cached_property
    def circuit(self) -> Circuit:
        """What lies between the ports."""
        inputs, outputs = _names(self)
        names = {"name": self.kind, "inputs": list(inputs), "outputs": list(outputs)}
        return circuit_of(names, self.arrays)

    @property
    def ports(self) -> list[Port]:
        """All that read, in order."""
        return [port for group in self.groups for port in group]

    @property
    def digest(self) -> str:
        """The sum of all that it does."""
        total = sha256(json.dumps([self.ram, self.data], sort_keys=True).encode())
        for name in GATES:
            total.update(self.arrays[name].tobytes())
        return total.hexdigest()

    def width(self, port: Port) -> int:
        """Bits that a port gives."""
        return port.span * self.memories[port.memory][0] if port.memory else BYTE + 1


def instruction_of(kind: str, ram: int, data: Any, arrays: Arrays) -> Instruction:
    """An instruction set from its JSON and its arrays."""
    require(isinstance(data, dict) and data.keys() == KEYS, "the instruction set has other entries")
    word = whole(data["word"], "the bits of a word", BYTE, MOST_BITS)
    require(word % BYTE == 0 and ram % (word // BYTE) == 0, "the memory does not consist of words")
    traps = texts(data["traps"], "what stops a program")
    require(traps, "nothing stops a program")
    extra = data["extra"]
    require(isinstance(extra, dict) and not RESERVED & extra.keys(), "a register has a name that is taken")
    registers = {
        "pc": whole(data["counter"], "the bits of pc", 1, MOST_BITS),
        "trap": len(traps).bit_length(),
    }
    memories = {"ram": (word, ram // (word // BYTE))}
    require(isinstance(data["first"], list), "the general registers are not a list")
    first = tuple(whole(own, "a general register", 0, (1 << word) - 1) for own in data["first"])
    if first:
        memories["x"] = (word, len(first))
    for name, of in extra.items():
        if isinstance(of, list):
            require(len(of) == 2, "a memory has no width and no number of words")
            memories[name] = whole(of[0], "a width", 1, MOST_BITS), whole(of[1], "words", 1, MOST_WORDS)
        else:
            registers[name] = whole(of, "the bits of a register", 1, MOST_BITS)
    require(isinstance(data["groups"], list), "the ports are not in groups")
    groups = tuple(tuple(_ports(group, memories)) for group in data["groups"])
    changed = texts(data["changed"], "the registers that change")
    require(set(changed) <= registers.keys(), "a register changes that there is not")
    ports = [port for group in groups for port in group]
    require(isinstance(data["writes"], list), "the ports that write are not a list")
    writes = tuple(whole(own, "a port that writes", 0, len(ports) - 1) for own in data["writes"])
    written = [ports[number].memory for number in writes]
    require("" not in written and len(set(written)) == len(written), "a memory is written twice, or input is")
    require(all(type(data[name]) is bool for name in ("takes", "puts")), "takes and puts are yes or no")
    found = Instruction(
        kind, ram, word, len(traps), first, registers, memories, groups, changed, writes,
        data["takes"], data["puts"], data, arrays,
    )  # fmt: skip
    require(found.circuit.name == kind, "the circuit is of another instruction set")
    return found


def _ports(group: Any, memories: Mapping[str, tuple[int, int]]) -> Iterator[Port]:
    require(isinstance(group, list) and group, "a group has no ports")
    for entry in group:
        require(isinstance(entry, list) and len(entry) == 3, "a port is no memory, span and address")
        memory = text(entry[0], "the memory of a port")
        require(not memory or memory in memories, "a port reads a memory that there is not")
        span = whole(entry[1], "the words of a port", 1, 2 if memory else 1)
        yield Port(
            memory, span, whole(entry[2], "the bits of an address", bool(memory), MOST_BITS * bool(memory))
        )


def _names(of: Instruction) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Of the circuit's inputs and outputs."""
    read = [(f"read {number}", of.width(port)) for number, port in enumerate(of.ports)]
    asked = [(f"address {number}", port.address) for number, port in enumerate(of.ports)]
    changed = [(f"next {name}", of.registers[name]) for name in of.changed]
    flips = [(f"change {number}", of.width(of.ports[number])) for number in of.writes]
    ends = [("takes", 1)] * of.takes + [("puts", 1), ("byte", BYTE)] * of.puts
    return _bits([*of.registers.items(), *read]), _bits([*asked, *changed, *flips, *ends])


def _bits(words: list[tuple[str, int]]) -> tuple[str, ...]:
    return tuple(f"{name}[{bit}]" for name, width in words for bit in range(width))
