"""Evaluating circuits on many patterns at once: 64 to a word, compiled, in memory that stays in cache.

A circuit becomes a straight-line program over registers. A register holds a block of words and is used
again as soon as its value has been read for the last time, so what is worked on stays small even when the
circuit is not. The program is run once for each block of patterns.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tapegrad._jit import njit
from tapegrad.circuits.model import ARITY, Bits, Circuit, Gate
from tapegrad.errors import InputError

Words = NDArray[np.uint64]
"""A row for each input or output; bit j of word k belongs to pattern 64 k + j."""

BLOCK = 64
"""Words in a register: enough to hide the choice of the gate, few enough to keep registers in cache."""

# Plain numbers: compiled code takes them as constants.
_FALSE, _TRUE, _ID, _NOT = int(Gate.FALSE), int(Gate.TRUE), int(Gate.ID), int(Gate.NOT)
_AND, _OR, _XOR = int(Gate.AND), int(Gate.OR), int(Gate.XOR)
_NAND, _NOR = int(Gate.NAND), int(Gate.NOR)


def evaluate(circuit: Circuit, bits: ArrayLike) -> Bits:
    """The outputs, a row for each row of input bits."""
    return Evaluator(circuit)(bits)


def evaluate_packed(circuit: Circuit, words: Words) -> Words:
    """The outputs, 64 patterns to a word."""
    return Evaluator(circuit).packed(words)


class Evaluator:
    """A circuit made ready to be evaluated again and again."""

    def __init__(self, circuit: Circuit) -> None:
        self.circuit = circuit
        live = circuit.needed()
        first = len(circuit.inputs)
        keep = np.flatnonzero(live[first:])
        self._kinds = circuit.kinds[keep]
        self._registers, place = _allocate(
            first,
            keep,
            ARITY[circuit.kinds],
            circuit.left,
            circuit.right,
            circuit.output_wires,
            live,
        )
        self._to = place[first + keep]
        # An operand that a gate does not look at is 0 in the circuit, and a place that exists here.
        self._left = np.where(ARITY[self._kinds] >= 1, place[circuit.left[keep]], np.uintp(0))
        self._right = np.where(ARITY[self._kinds] == 2, place[circuit.right[keep]], np.uintp(0))
        self._read = np.flatnonzero(live[:first])
        self._from_inputs = place[self._read]
        self._to_outputs = place[circuit.output_wires]

    @property
    def registers(self) -> int:
        """How many blocks of words are held at a time."""
        return self._registers

    def __call__(self, bits: ArrayLike) -> Bits:
        """The outputs, a row for each row of input bits."""
        batch = self.circuit.start(bits)
        return unpacked(self.packed(packed(batch)), len(batch))

    def packed(self, words: Words) -> Words:
        """The outputs, 64 patterns to a word."""
        if words.ndim != 2 or len(words) != len(self.circuit.inputs) or words.dtype != np.uint64:
            raise InputError(
                f"the circuit {self.circuit.name!r} takes a matrix of 64-bit words with "
                f"{len(self.circuit.inputs)} rows, not {words.dtype} of shape {words.shape}"
            )
        outputs = np.empty((len(self.circuit.outputs), words.shape[1]), np.uint64)
        _run(
            self._kinds,
            self._to,
            self._left,
            self._right,
            self._read,
            self._from_inputs,
            self._to_outputs,
            self._registers,
            np.ascontiguousarray(words),
            outputs,
        )
        return outputs


def packed(bits: Bits) -> Words:
    """Patterns in rows to words; the last word is filled up with zeros."""
    patterns, inputs = bits.shape
    count, groups = -(-patterns // 64), -(-inputs // 8)
    buffer = np.zeros(64 * count * inputs + 8, np.uint8)  # the last eight bytes of all may reach beyond
    buffer[: bits.size] = bits.reshape(-1).view(np.uint8)
    words = np.empty((8 * groups, count), np.uint64)
    _pack(np.ndarray((64 * count, groups), "<u8", buffer, 0, (inputs, 8)), words)
    return words[:inputs]


def unpacked(words: Words, patterns: int) -> Bits:
    """The first so many patterns, in rows."""
    octets = np.ascontiguousarray(words.astype("<u8", copy=False)).view(np.uint8)
    return np.unpackbits(octets, axis=1, count=patterns, bitorder="little").view(bool).T


@njit(nogil=True)
def _pack(octets, words):
    """Eight inputs of a pattern are the eight bytes of a number; of the last ones, what is too much belongs to
    the next pattern and goes to words that nobody reads. Eight of these, each shifted by one bit more
    than the one before, make a number whose bytes are eight patterns of each input; and the bytes of eight
    such numbers, taken in turn, are the words."""
    eights = np.empty(8, np.uint64)
    low = np.uint64(0xFF)
    for word in range(words.shape[1]):
        for group in range(octets.shape[1]):
            for eight in range(8):
                gathered = np.uint64(0)
                for place in range(8):
                    row = octets[64 * word + 8 * eight + place, group]
                    gathered |= row << np.uint64(place)
                eights[eight] = gathered
            for own in range(8):
                found = np.uint64(0)
                for eight in range(8):
                    found |= (eights[eight] >> np.uint64(8 * own) & low) << np.uint64(8 * eight)
                words[8 * group + own, word] = found


@njit()
def _allocate(first, keep, arity, left, right, output_wires, live):
    """A register for every live wire. A gate's own register differs from those of its operands, so that
    the compiler may treat a block as one vector; registers of outputs are never given away."""
    place = np.zeros(len(live), np.uintp)
    forever = len(keep)
    last = np.full(len(live), -1, np.int64)
    for step in range(len(keep)):
        gate = keep[step]
        if arity[gate] >= 1:
            last[left[gate]] = step
        if arity[gate] == 2:
            last[right[gate]] = step
    for wire in output_wires:
        last[wire] = forever

    free = np.empty(len(live), np.uintp)
    spare, registers = 0, 0
    for wire in range(first):
        if live[wire]:
            place[wire] = registers
            registers += 1
    for step in range(len(keep)):
        gate = keep[step]
        if spare:
            spare -= 1
            place[first + gate] = free[spare]
        else:
            place[first + gate] = registers
            registers += 1
        if arity[gate] >= 1 and last[left[gate]] == step:
            free[spare] = place[left[gate]]
            spare += 1
        if arity[gate] == 2 and last[right[gate]] == step and right[gate] != left[gate]:
            free[spare] = place[right[gate]]
            spare += 1
    return registers, place


@njit(nogil=True)
def _run(kinds, to, left, right, read, from_inputs, to_outputs, registers, words, outputs):
    held = np.zeros((registers, BLOCK), np.uint64)
    total = words.shape[1]
    for start in range(0, total, BLOCK):
        width = min(BLOCK, total - start)
        for row in range(len(read)):
            for w in range(width):
                held[from_inputs[row], w] = words[read[row], start + w]
        for gate in range(len(kinds)):
            kind, t, a, b = kinds[gate], to[gate], left[gate], right[gate]
            if kind == _AND:
                for w in range(BLOCK):
                    held[t, w] = held[a, w] & held[b, w]
            elif kind == _XOR:
                for w in range(BLOCK):
                    held[t, w] = held[a, w] ^ held[b, w]
            elif kind == _OR:
                for w in range(BLOCK):
                    held[t, w] = held[a, w] | held[b, w]
            elif kind == _NOT:
                for w in range(BLOCK):
                    held[t, w] = ~held[a, w]
            elif kind == _NAND:
                for w in range(BLOCK):
                    held[t, w] = ~(held[a, w] & held[b, w])
            elif kind == _NOR:
                for w in range(BLOCK):
                    held[t, w] = ~(held[a, w] | held[b, w])
            elif kind == _ID:
                for w in range(BLOCK):
                    held[t, w] = held[a, w]
            elif kind == _TRUE:
                for w in range(BLOCK):
                    held[t, w] = ~np.uint64(0)
            elif kind == _FALSE:
                for w in range(BLOCK):
                    held[t, w] = np.uint64(0)
            else:  # XNOR
                for w in range(BLOCK):
                    held[t, w] = ~(held[a, w] ^ held[b, w])
        for row in range(len(to_outputs)):
            for w in range(width):
                outputs[row, start + w] = held[to_outputs[row], w]
