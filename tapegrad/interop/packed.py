"""A ReLU network on bits, thirty-two patterns to a word.

`decompile` reads off the weights which function of bits every unit is, and refuses a network with a unit that
is none: it runs each unit on all values of the bits that it depends on, layer after layer, so that by
induction the network computes, on all inputs, the circuit that comes out. The source is not looked at. Here
that circuit is run in JAX, on the processor or an accelerator, by operations on whole words: a gate with
truth table t is

    t0 ^ (ta & a) ^ (tb & b) ^ (tab & a & b)        (a polynomial modulo 2, with masks for coefficients)

Gates stand in levels, and each level in tiles of one size. All tiles run one small program, and what tile n
gives is written to the rows after those of tile n - 1: however large a network is, it compiles at once.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int, UInt32
from numpy.typing import ArrayLike

from tapegrad._compile import Compiled
from tapegrad.circuits.model import Circuit, batch_of_bits
from tapegrad.interop.decompile import decompile
from tapegrad.networks.tiles import round_up
from tapegrad.targets.net import Net

TILE = 64
"""Gates that are computed together."""
WORD = 32
BUDGET = {"cpu": 1 << 26}
LARGE_BUDGET = 1 << 32
"""Bytes of values at a time: what a processor's cache likes, and an accelerator."""


class Tiles(NamedTuple):
    """The gates: rows that each reads, and its four masks."""

    left: Int[Array, "tiles tile"]
    right: Int[Array, "tiles tile"]
    masks: UInt32[Array, "tiles four tile"]


class PackedNet:
    """A network of target `relu`, ready to run on words."""

    def __init__(self, compiled: Compiled | Net) -> None:
        self.circuit = circuit = decompile(compiled)
        tiles, row_of = _tiled(circuit)
        self.rows = _first_row(circuit) + tiles[0].size
        self._tiles = Tiles(*(jnp.asarray(array) for array in tiles))
        self._outputs = jnp.asarray(row_of[circuit.output_wires])

    def words(self, given: UInt32[Array | np.ndarray, "inputs words"]) -> UInt32[Array, "outputs words"]:
        """The outputs, for bit i of word j of every input: pattern 32 j + i."""
        return _run(jnp.asarray(given), self._tiles, self._outputs)

    def outputs(self, bits: ArrayLike) -> Float[np.ndarray, "patterns outputs"]:
        """The signs of the outputs, as -1 and +1, for a batch of patterns (a row for each), in chunks that
        keep memory small."""
        batch = batch_of_bits(bits, self.circuit.inputs, "net")
        found = np.empty((len(batch), len(self.circuit.outputs)), np.float32)
        chunk = WORD * self.words_at_once
        for first in range(0, len(batch), chunk):
            part = batch[first : first + chunk]
            unpacked = _unpacked(np.asarray(self.words(_packed(part))))[: len(part)]
            found[first : first + chunk] = 2.0 * unpacked - 1
        return found

    @property
    def words_at_once(self) -> int:
        """As many as the budget of this device has room for."""
        budget = BUDGET.get(jax.default_backend(), LARGE_BUDGET)
        return max(1, budget // (4 * self.rows))


def _first_row(circuit: Circuit) -> int:
    """Rows of the inputs; gates begin after them."""
    return round_up(max(1, len(circuit.inputs)), TILE)


def _tiled(circuit: Circuit) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
    """The tiles, and the row of every wire."""
    inputs, size = len(circuit.inputs), circuit.size
    level = np.zeros(inputs + size, np.int64)
    sides = list(zip(circuit.left.tolist(), circuit.right.tolist(), strict=True))
    known = level.tolist()
    for gate, (a, b) in enumerate(sides):
        known[inputs + gate] = 1 + max(known[a], known[b])
    level = np.array(known, np.int64)[inputs:]
    order = np.argsort(level, kind="stable")
    counts = np.bincount(level, minlength=1)[1:] if size else np.zeros(0, np.int64)
    each = -(-counts // TILE)
    begins = np.cumsum(each) - each
    within = np.arange(size) - np.repeat(np.cumsum(counts) - counts, counts)
    place = np.repeat(begins, counts) * TILE + within
    row_of = np.concatenate([np.arange(inputs), np.zeros(size, np.int64)])
    row_of[inputs + order] = _first_row(circuit) + place
    total = int(each.sum()) * TILE
    left, right = np.zeros(total, np.int32), np.zeros(total, np.int32)
    masks = np.zeros((4, total), np.uint32)
    left[place], right[place] = row_of[circuit.left[order]], row_of[circuit.right[order]]
    table = np.asarray(circuit.kinds)[order].astype(np.int64)
    t = [(table >> case) & 1 for case in range(4)]  # case 2 a + b
    for row, coefficient in enumerate((t[0], t[0] ^ t[2], t[0] ^ t[1], t[0] ^ t[1] ^ t[2] ^ t[3])):
        masks[row, place] = np.where(coefficient, np.uint32(0xFFFFFFFF), np.uint32(0))
    tiles = left.reshape(-1, TILE), right.reshape(-1, TILE), masks.reshape(4, -1, TILE).swapaxes(0, 1)
    return tiles, row_of


@jax.jit
def _run(
    given: UInt32[Array, "inputs words"], tiles: Tiles, outputs: Int[Array, " outputs"]
) -> UInt32[Array, "outputs words"]:
    inputs, words = given.shape
    begin = round_up(max(1, inputs), TILE)
    start = jnp.zeros((begin + tiles.left.size, words), jnp.uint32).at[:inputs].set(given)

    def tile(number: Int[Array, ""], values: Array) -> Array:
        a, b = values[tiles.left[number]], values[tiles.right[number]]
        constant, first, second, both = (mask[:, None] for mask in tiles.masks[number])
        out = constant ^ (first & a) ^ (second & b) ^ (both & a & b)
        return lax.dynamic_update_slice(values, out, (begin + number * TILE, 0))

    return lax.fori_loop(0, len(tiles.left), tile, start)[outputs]


def _packed(bits: np.ndarray) -> UInt32[np.ndarray, "inputs words"]:
    """Pattern 32 j + i as bit i of word j."""
    padded = np.zeros((bits.shape[1], round_up(len(bits), WORD)), bool)
    padded[:, : len(bits)] = bits.T
    return np.packbits(padded, axis=1, bitorder="little").view("<u4")


def _unpacked(words: UInt32[np.ndarray, "outputs words"]) -> np.ndarray:
    """Back, a row for each pattern."""
    as_bytes = np.ascontiguousarray(words).astype("<u4").view(np.uint8)
    return np.unpackbits(as_bytes, axis=1, bitorder="little").T
