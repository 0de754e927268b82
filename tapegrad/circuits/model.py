"""Boolean circuits as arrays: acyclic by construction, cheap at a million gates."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tapegrad.errors import InputError, SourceError


class Gate(IntEnum):
    """The kinds of gate. The four bits of the value of a two-input gate are its truth table: bit
    `2 a + b` is the output for inputs `a, b`; one-input gates ignore `b`, constants ignore both."""

    FALSE = 0b0000
    AND = 0b1000
    XOR = 0b0110
    OR = 0b1110
    NOR = 0b0001
    XNOR = 0b1001
    NOT = 0b0011
    NAND = 0b0111
    ID = 0b1100
    TRUE = 0b1111

    @property
    def arity(self) -> int:
        """How many operands the gate looks at."""
        return int(ARITY[self])


ARITY = np.full(16, 2, np.int8)
ARITY[[Gate.NOT, Gate.ID]] = 1
ARITY[[Gate.FALSE, Gate.TRUE]] = 0

Bits = NDArray[np.bool_]
"""A batch of bit vectors, one per row."""


GATES = {"kinds": np.uint8, "left": np.int32, "right": np.int32, "output_wires": np.int32}
"""The arrays of a circuit, with their types."""


@dataclass(frozen=True, eq=False)
class Circuit:
    """A combinational circuit. Wires are numbered: first the inputs, then one wire for each gate, and a
    gate's operands have smaller numbers than its own wire, so a cycle cannot be written down.

    Operands that a gate does not look at are 0.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    kinds: NDArray[np.uint8]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    output_wires: NDArray[np.int32]
    name: str = "circuit"

    def __post_init__(self) -> None:
        for field, dtype in GATES.items():
            array = np.array(getattr(self, field), dtype)
            array.setflags(write=False)
            object.__setattr__(self, field, array)
        _check(self)

    @property
    def size(self) -> int:
        """Number of gates."""
        return len(self.kinds)

    @property
    def wires(self) -> int:
        """Number of wires: inputs and gates."""
        return len(self.inputs) + self.size

    def start(self, bits: ArrayLike) -> Bits:
        """The inputs as a batch: one row of bits, or a matrix with a row for each pattern."""
        return batch_of_bits(bits, self.inputs, self.name)

    def run(self, bits: Bits) -> Iterator[Bits]:
        """The inputs, then the outputs: a circuit takes a single step."""
        yield bits
        yield self.wire_values(bits)[self.output_wires].T

    def wire_values(self, bits: Bits) -> Bits:
        """The value of every wire (rows) for every pattern (columns): the oracle."""
        count, size = len(bits), (len(bits) + 7) // 8
        octets = np.packbits(np.asarray(bits, bool).T, axis=1, bitorder="little")
        wires = self.wire_numbers([int.from_bytes(row.tobytes(), "little") for row in octets], count)
        found = np.frombuffer(b"".join(wire.to_bytes(size, "little") for wire in wires), np.uint8)
        rows = found.reshape(self.wires, size)
        return np.unpackbits(rows, axis=1, count=count, bitorder="little").view(bool)

    def wire_numbers(self, inputs: Sequence[int], patterns: int) -> list[int]:
        """The same gate by gate on Python's numbers: binary digit j of a wire is its value for pattern j."""
        wires, ones = list(inputs), (1 << patterns) - 1
        gates = zip(self.kinds.tolist(), self.left.tolist(), self.right.tolist(), strict=True)
        for table, left, right in gates:
            a, b = (wires[left], wires[right]) if wires else (0, 0)
            value = a & b if table & 8 else 0
            if table & 4:
                value |= a & ~b
            if table & 2:
                value |= b & ~a
            if table & 1:
                value |= ones & ~(a | b)
            wires.append(value)
        return wires

    def levels(self, *, constants: int = 0) -> NDArray[np.int32]:
        """For every wire the length of the longest path that leads to it; inputs are at 0, constants too
        unless another level is given for them."""
        levels = [0] * self.wires
        first = len(self.inputs)
        operands = zip(ARITY[self.kinds].tolist(), self.left.tolist(), self.right.tolist(), strict=True)
        for gate, (arity, a, b) in enumerate(operands):
            if arity == 2:
                levels[first + gate] = 1 + max(levels[a], levels[b])
            elif arity == 1:
                levels[first + gate] = 1 + levels[a]
            else:
                levels[first + gate] = constants
        return np.array(levels, np.int32)

    def needed(self) -> Bits:
        """For every wire whether some output depends on it."""
        needed = bytearray(self.wires)
        for wire in self.output_wires.tolist():
            needed[wire] = 1
        first, arities = len(self.inputs), ARITY[self.kinds].tolist()
        left, right = self.left.tolist(), self.right.tolist()
        for gate in range(self.size - 1, -1, -1):
            if needed[first + gate] and arities[gate]:
                needed[left[gate]] = 1
                if arities[gate] == 2:
                    needed[right[gate]] = 1
        return np.frombuffer(needed, bool)

    @property
    def depth(self) -> int:
        """Longest path from an input to an output, in gates."""
        return int(self.levels()[self.output_wires].max(initial=0))


def batch_of_bits(bits: ArrayLike, inputs: tuple[str, ...], name: str) -> Bits:
    """Input bits of the circuit `name` as a batch; what does not fit its inputs is refused."""
    try:
        batch = np.atleast_2d(np.asarray(bits))
    except ValueError:
        raise InputError("the rows of bits differ in length", advice=f"Each has {len(inputs)}.") from None
    if batch.ndim != 2 or batch.shape[1] != len(inputs):
        raise InputError(
            f"the circuit {name!r} has {len(inputs)} inputs, but {batch.shape[-1]} bits were given",
            advice=f"Its inputs are {_some(inputs)}.",
        )
    if batch.dtype != bool and not ((batch == 0) | (batch == 1)).all():
        raise InputError("inputs of a circuit are bits, 0 or 1")
    return batch.astype(bool, copy=False)


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names) if len(names) <= 8 else f"{', '.join(names[:7])}, ... {names[-1]}"


def _check(circuit: Circuit) -> None:
    gates, first = circuit.size, len(circuit.inputs)
    if not (len(circuit.left) == len(circuit.right) == gates):
        raise SourceError("a circuit needs two operands (used or not) for each gate")
    known = np.isin(circuit.kinds, [int(g) for g in Gate])
    if not known.all():
        raise SourceError(f"gate {int(np.argmin(known))} is of no known kind")
    if len(circuit.outputs) != len(circuit.output_wires):
        raise SourceError("a circuit needs one name for each output")
    own = np.arange(first, first + gates)
    arity = ARITY[circuit.kinds]
    for operand, used in ((circuit.left, arity >= 1), (circuit.right, arity >= 2)):
        late = used & ((operand >= own) | (operand < 0))
        if late.any():
            raise SourceError(f"gate {int(np.argmax(late))} uses a wire that does not come before it")
        if (~used & (operand != 0)).any():
            raise SourceError("operands that a gate does not look at are 0")
    if ((circuit.output_wires < 0) | (circuit.output_wires >= circuit.wires)).any():
        raise SourceError("an output is driven by a wire that does not exist")
    for names, what in ((circuit.inputs, "input"), (circuit.outputs, "output")):
        if len(set(names)) != len(names):
            raise SourceError(f"two {what}s have the same name")
