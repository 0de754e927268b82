"""An instruction set that a folder tells, as formulas: its circuit, group of ports after group of ports.

The circuit's inputs become known in the order in which ports are read. What it asks for first must not
depend on what is read later; then input and output are added, as for every machine: a byte is the one at
`taken`, and the next byte of output takes the place of the oldest.
"""

from collections.abc import Iterator, Mapping, Sequence

from tapegrad_check.core.nodes import Nodes
from tapegrad_check.folder import require
from tapegrad_check.formulas.words import Word, add, differing, only, padded
from tapegrad_check.instructions.ports import Effect, Layout, Read, Write, ring
from tapegrad_check.sources.circuits import OPERANDS
from tapegrad_check.sources.instructions import BYTE, Instruction

CONSTANTS = (0, 15)


def step(own: Instruction, n: Nodes, layout: Layout, registers: Mapping[str, Word], read: Read) -> Effect:
    """One instruction, with its input and output."""
    wires = _Wires(n, own, [bit for name in own.registers for bit in registers[name]])
    addresses: list[Word] = []
    found: list[list[int]] = []
    slot = ring(layout, registers["written"])
    oldest = read("output", slot, 1)
    for group in own.groups:
        asked = [wires.outputs(port.address) for port in group]
        for port, address in zip(group, asked, strict=True):
            arriving = port.memory == ""
            word = read("input", registers["taken"], 1) if arriving else read(port.memory, address, port.span)
            found.append(word)
        addresses += asked
        wires.know([bit for word in found[len(found) - len(group) :] for bit in word])
    after = {name: wires.outputs(own.registers[name]) for name in own.changed}
    writes = []
    for number in own.writes:
        port = own.ports[number]
        change = wires.outputs(own.width(port))
        writes.append(Write(port.memory, addresses[number], found[number], change, port.span))
    takes = wires.outputs(1) if own.takes else []
    emits, byte = (wires.outputs(1), wires.outputs(BYTE)) if own.puts else ([], [])
    after["taken"] = add(n, registers["taken"], padded(takes, len(registers["taken"])))
    after["written"] = add(n, registers["written"], padded(emits, len(registers["written"])))
    flips = only(n, emits[0], differing(n, oldest, byte)) if emits else padded([], BYTE)
    return Effect(after, [*writes, Write("output", slot, oldest, flips)])


class _Wires:
    """The wires of the circuit, as far as its inputs are known."""

    def __init__(self, n: Nodes, own: Instruction, bits: Sequence[int]) -> None:
        circuit = own.circuit
        self.n = n
        self.literals: list[int | None] = [None] * (len(circuit.inputs) + len(circuit.kinds))
        self.known = 0
        rows = zip(circuit.kinds.tolist(), circuit.left.tolist(), circuit.right.tolist(), strict=True)
        self.waiting = list(enumerate(rows, len(circuit.inputs)))
        self.wanted: Iterator[int] = iter(circuit.output_wires.tolist())
        self.know(bits)

    def know(self, bits: Sequence[int]) -> None:
        """Takes the next inputs, and works out what is known by them."""
        self.literals[self.known : self.known + len(bits)] = bits
        self.known += len(bits)
        waiting = []
        for wire, (kind, left, right) in self.waiting:
            operands = [self.literals[own] for own in (left, right)[: OPERANDS[kind]]]
            if None in operands:
                waiting.append((wire, (kind, left, right)))
                continue
            a, b = (*operands, 0, 0)[:2]
            assert a is not None
            assert b is not None
            self.literals[wire] = kind & 1 if kind in CONSTANTS else self.n.gate(kind, a, b)
        self.waiting = waiting

    def outputs(self, count: int) -> list[int]:
        """The next outputs, which must be known."""
        found = [self.literals[wire] for _, wire in zip(range(count), self.wanted, strict=False)]
        require(None not in found, "an instruction asks for what depends on what it reads later")
        return [literal for literal in found if literal is not None]
