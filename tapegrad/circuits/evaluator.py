"""Evaluating circuits on many patterns at once: 64 to a word, compiled, in memory that stays in cache.

A circuit becomes a straight-line program over registers. A register holds a block of words and is used
again as soon as its value has been read for the last time, so what is worked on stays small even when the
circuit is not. The program is run once for each block of patterns.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import ArrayLike, NDArray

from tapegrad._jit import njit
from tapegrad.circuits.model import ARITY, Bits, Circuit, Gate
from tapegrad.errors import InputError

Words = NDArray[np.uint64]
"""A row for each input or output; bit j of word k belongs to pattern 64 k + j."""

_Row = NDArray[Any]

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
        batch = np.ascontiguousarray(self.circuit.start(bits)).view(np.uint8)
        patterns, inputs = batch.shape
        octets, eights = _octets(8 * BLOCK, inputs)
        outputs = np.empty((len(self.circuit.outputs), -(-patterns // 64) * 8), np.uint64)
        _run_bits(*self._program, self._registers, batch, octets, eights, outputs)
        return outputs.view(bool)[:, :patterns].T

    def packed(self, words: Words) -> Words:
        """The outputs, 64 patterns to a word."""
        if words.ndim != 2 or len(words) != len(self.circuit.inputs) or words.dtype != np.uint64:
            raise InputError(
                f"the circuit {self.circuit.name!r} takes a matrix of 64-bit words with "
                f"{len(self.circuit.inputs)} rows, not {words.dtype} of shape {words.shape}"
            )
        outputs = np.empty((len(self.circuit.outputs), words.shape[1]), np.uint64)
        _run_words(*self._program, self._registers, np.ascontiguousarray(words), outputs)
        return outputs

    @property
    def _program(self) -> tuple[_Row, _Row, _Row, _Row, _Row, _Row, _Row]:
        gates = self._kinds, self._to, self._left, self._right
        return *gates, self._read, self._from_inputs, self._to_outputs


def packed(bits: Bits) -> Words:
    """Patterns in rows to words; the last word is filled up with zeros."""
    patterns, inputs = bits.shape
    count = -(-patterns // 64)
    filled = np.zeros((8 * count, 8, inputs), np.uint8)
    filled.reshape(-1, inputs)[:patterns] = bits
    octets, eights = _octets(8 * count, inputs)
    _to_bytes(filled, octets)
    words = np.empty((8 * eights.shape[1], count), np.uint64)
    _turned(eights, count, np.arange(len(words)), words)
    return words[:inputs]


def _octets(rows: int, inputs: int) -> tuple[NDArray[np.uint8], NDArray[np.uint64]]:
    """Room for rows with a byte for each input; and these rows as numbers of eight bytes, the last of which
    may reach into the next row."""
    octets = np.empty(rows * inputs + 8, np.uint8)
    return octets, np.ndarray((rows, -(-inputs // 8)), "<u8", octets, 0, (inputs, 8))


def unpacked(words: Words, patterns: int) -> Bits:
    """The first so many patterns, in rows."""
    octets = np.ascontiguousarray(words.astype("<u8", copy=False)).view(np.uint8)
    return np.unpackbits(octets, axis=1, count=patterns, bitorder="little").view(bool).T


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
def _run_words(kinds, to, left, right, read, from_inputs, to_outputs, registers, words, outputs):
    held = np.zeros((registers, BLOCK), np.uint64)
    total = words.shape[1]
    for start in range(0, total, BLOCK):
        width = min(BLOCK, total - start)
        for row in range(len(read)):
            for w in range(width):
                held[from_inputs[row], w] = words[read[row], start + w]
        _gates(kinds, to, left, right, held)
        for row in range(len(to_outputs)):
            for w in range(width):
                outputs[row, start + w] = held[to_outputs[row], w]


@njit(nogil=True)
def _run_bits(
    kinds, to, left, right, read, from_inputs, to_outputs, registers, bits, octets, eights, outputs
):
    """Block by block, so that bits are packed and unpacked in cache. Within a block it does not matter which
    bit of a register a pattern has. Bit k of byte q is for pattern k S + q, where a block has 8 S patterns:
    so eight patterns become bytes, and bytes eight patterns, by the same operation on long vectors."""
    held = np.zeros((registers + 1, BLOCK), np.uint64)
    patterns, inputs = bits.shape
    place = np.full(8 * eights.shape[1], registers)  # where inputs go that nobody reads
    place[read] = from_inputs
    last = np.zeros((64 * BLOCK if patterns % 64 else 0, inputs), np.uint8)
    for start in range(0, patterns, 64 * BLOCK):
        total = min(64 * BLOCK, patterns - start)
        stride = (total + 63) // 64 * 8
        block = bits[start : start + total]
        if total < 8 * stride:
            last[:total] = block
            block = last[: 8 * stride]
        _to_bytes(block.reshape(1, 8, stride * inputs), octets)
        _turned(eights, stride // 8, place, held)
        _gates(kinds, to, left, right, held)
        for row in range(len(to_outputs)):
            register, width = held[to_outputs[row]], stride // 8
            for k in range(8):
                into = outputs[row, start // 8 + k * width : start // 8 + (k + 1) * width]
                for w in range(width):
                    into[w] = register[w] >> np.uint64(k) & np.uint64(0x0101010101010101)


@njit(nogil=True)
def _to_bytes(bits, octets):
    """Eight vectors of bits to one of bytes, the first to the lowest bits, and so on with the next eight."""
    size = bits.shape[2]
    for row in range(len(bits)):
        a, b, c, d = bits[row, 0], bits[row, 1], bits[row, 2], bits[row, 3]
        e, f, g, h = bits[row, 4], bits[row, 5], bits[row, 6], bits[row, 7]
        into = octets[row * size : (row + 1) * size]
        for j in range(size):
            upper = ((h[j] * 2 | g[j]) * 2 | f[j]) * 2 | e[j]
            into[j] = (((upper * 2 | d[j]) * 2 | c[j]) * 2 | b[j]) * 2 | a[j]


@njit(nogil=True)
def _turned(eights, count, place, held):
    """Rows with a byte for each input to registers, in squares of eight bytes by eight."""
    for group in range(eights.shape[1]):
        for word in range(count):
            rows = eights[8 * word : 8 * word + 8]
            upper = rows[0, group], rows[1, group], rows[2, group], rows[3, group]
            lower = rows[4, group], rows[5, group], rows[6, group], rows[7, group]
            square = _square(upper + lower)  # type: ignore[call-arg]  # numba gives the first
            for own in range(8):
                held[place[8 * group + own], word] = square[own]


@intrinsic
def _square(_: Any, rows: Any) -> Any:
    """Eight numbers of eight bytes, turned over: byte j of number i becomes byte i of number j. Rows 0 and 1
    interleaved byte by byte, 2 and 3, and so on, make pairs; these, interleaved, fours; and these the
    columns. The processor has an instruction for each, which compilers do not find by themselves."""

    def generate(context: Any, build: Any, signature: Any, arguments: Any) -> Any:
        numbers = ir.VectorType(ir.IntType(64), 2)

        def interleaved(one: Any, two: Any, bits: int, half: int) -> Any:
            """The lower (0) or upper (1) halves of two vectors of 16 bytes, in pieces of so many bits."""
            count, kind = 64 // bits, ir.VectorType(ir.IntType(bits), 128 // bits)
            order = [half * count + own + side for own in range(count) for side in (0, 2 * count)]
            places = ir.Constant(ir.VectorType(ir.IntType(32), 2 * count), order)
            return build.shuffle_vector(build.bitcast(one, kind), build.bitcast(two, kind), places)

        def paired(vectors: list[Any], bits: int, halves: tuple[int, ...]) -> list[Any]:
            pairs = zip(vectors[::2], vectors[1::2], strict=True)
            return [interleaved(one, two, bits, half) for one, two in pairs for half in halves]

        first, second = (ir.Constant(ir.IntType(32), own) for own in (0, 1))
        empty = ir.Constant(numbers, ir.Undefined)
        given = cgutils.unpack_tuple(build, arguments[0])
        pairs = paired([build.insert_element(empty, row, first) for row in given], 8, (0,))
        lower, upper = (paired(pairs, 16, (half,)) for half in (0, 1))
        columns = [build.bitcast(own, numbers) for own in paired(lower + upper, 32, (0, 1))]
        found = [build.extract_element(own, place) for own in columns for place in (first, second)]
        return context.make_tuple(build, signature.return_type, found)

    return rows(rows), generate


@njit(nogil=True)
def _gates(kinds, to, left, right, held):
    """All gates, on whole registers."""
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
