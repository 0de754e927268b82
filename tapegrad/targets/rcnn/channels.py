"""The practical filter: one channel for each fact, small integer weights, an ordinary convolution.

The same clauses as in the ternary encoding. A question about a cell is a linear form in its channels,
1 where it holds and at most 0 where it does not, so one layer of ReLUs decides a clause:
`relu(n) - relu(n - 1)` with `n = 4 * (sum - needs) + 2`, which is 2 or more, or -2 or less. All numbers are
small integers, exact in any precision that holds `largest_sum`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import Refused
from tapegrad.targets.rcnn.cells import COMPUTE, HEAD, MEMORY, Cells, Predicate
from tapegrad.targets.rcnn.clauses import Clause

WORK, COMPUTING, MEMORISING, TRACE, SYMBOLS = 0, 1, 2, 3, 4
"""Channels; the symbols but the blank follow from SYMBOLS on, then the states. TRACE is the value of the
memory layer where a cell memorises: 0 in the forward pass, the carrier of the gradient."""

LARGEST_FILTER = 1 << 27
"""Most weights of a filter that is built."""


def channel_names(cells: Cells) -> list[str]:
    symbols = [f"symbol {a}" for a in range(1, cells.symbols)]
    return ["work", "computing", "memorising", "trace", *symbols, *(f"head {q}" for q in range(cells.states))]


def cell_vectors(cells: Cells) -> NDArray[np.float32]:
    """The channels of each content of a cell; the padding is all zeros."""
    work, symbol, mode = cells.facts.T
    vectors = np.zeros((cells.count, SYMBOLS + cells.symbols - 1 + cells.states), dtype=np.float32)
    vectors[:, WORK], vectors[:, COMPUTING] = work == 1, mode >= COMPUTE
    vectors[MEMORY, MEMORISING] = 1
    for a in range(1, cells.symbols):
        vectors[:, SYMBOLS + a - 1] = symbol == a
    for q in range(cells.states):
        vectors[:, SYMBOLS + cells.symbols - 1 + q] = mode == HEAD + q
    return vectors


def form(predicate: Predicate, cells: Cells) -> tuple[dict[int, int], int]:
    """The linear form of a question: weights by channel, and a constant."""
    symbols = {SYMBOLS + a: 1 for a in range(cells.symbols - 1)}
    heads = {SYMBOLS + cells.symbols - 1 + q: 1 for q in range(cells.states)}
    symbol, head = SYMBOLS + predicate.symbol - 1, SYMBOLS + cells.symbols - 1 + predicate.state
    not_open = {WORK: -1, COMPUTING: -1, MEMORISING: -1}
    match predicate.kind:
        case "work":
            return {WORK: 1}, 0
        case "memory":
            return {MEMORISING: 1}, 0
        case "compute":
            return {COMPUTING: 1}, 0
        case "symbol":
            return {symbol: 1} | dict.fromkeys(heads, -1), 0
        case "head" if predicate.symbol > 0:
            return {head: 1, symbol: 1}, -1
        case "head":
            return {head: 1} | dict.fromkeys(symbols, -1), 0
        case "empty":
            return not_open | dict.fromkeys(symbols, -1), 1
        case "open":
            return not_open, 1
        case "data":
            return symbols | {WORK: -1, COMPUTING: -1}, 0
        case _:
            return symbols | {WORK: 1, COMPUTING: -2, MEMORISING: -1}, 0


class ChannelFilter(eqx.Module):
    """`mix relu(kernel * grid + bias)`: a 3x3 convolution, a ReLU, a pixel-wise map."""

    kernel: NDArray[np.float32]
    """Units, channels, 3, 3."""
    bias: NDArray[np.float32]
    mix: NDArray[np.float32]
    """Channels, units."""
    rule_units: NDArray[np.int64]

    padding = 0.0
    dtype = np.float32

    @property
    def channels(self) -> int:
        return self.kernel.shape[1]

    def hidden(self, grid: jax.Array) -> jax.Array:
        """The units, for grids of shape (channels, rows, columns): the convolution as one matrix product.
        Highest precision: reduced formats would be exact too, but nothing should hang on that."""
        rows, columns = grid.shape[1:]
        padded = jnp.pad(grid, ((0, 0), (1, 1), (1, 1)))
        patches = jnp.stack([padded[:, r : r + rows, c : c + columns] for r in range(3) for c in range(3)], 1)
        weights = jnp.asarray(self.kernel).reshape(len(self.bias), -1)
        sums = jnp.tensordot(weights, patches.reshape(weights.shape[1], -1), 1, precision="highest")
        return jax.nn.relu(sums + self.bias[:, None]).reshape(-1, rows, columns)

    def __call__(self, grid: jax.Array) -> jax.Array:
        """One layer on the whole grid."""
        return jnp.tensordot(jnp.asarray(self.mix), self.hidden(grid), 1, precision="highest")

    def rule_applies(self, grid: jax.Array) -> jax.Array:
        """Whether some cell holds a head on a rule: false once the machine has halted."""
        return (self.hidden(grid)[self.rule_units] > 0.5).any()

    def arrays(self) -> dict[str, NDArray[Any]]:
        parts = {"kernel": self.kernel, "bias": self.bias, "mix": self.mix, "rule_units": self.rule_units}
        return {name: np.asarray(array) for name, array in parts.items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> "ChannelFilter":
        return cls(*(np.asarray(arrays[name]) for name in ("kernel", "bias", "mix", "rule_units")))


def channel_filter(cells: Cells, clauses: Sequence[Clause]) -> tuple[ChannelFilter, dict[str, list[str]]]:
    """The filter, and the names of its units and channels."""
    channels = channel_names(cells)
    units = 2 * len(clauses) + sum(clause.passes for clause in clauses)
    if units * (10 * len(channels) + 1) > LARGEST_FILTER:
        raise Refused(
            f"the filter would have {units:,} units for {len(channels):,} channels, and as a whole more than "
            f"{LARGEST_FILTER:,} weights",
            advice='Use fewer states, or take encoding="ternary", which keeps only weights that are not 0.',
        )
    kernel = np.zeros((units, len(channels), 3, 3), dtype=np.float32)
    bias = np.zeros(len(kernel), dtype=np.float32)
    mix = np.zeros((len(channels), len(kernel)), dtype=np.float32)
    names, rule_units = [], []
    for clause in clauses:
        unit = len(names)
        weights, constant = _sum(clause, cells, len(channels))
        for offset, sign in ((2, 1), (1, -1)):
            kernel[len(names)], bias[len(names)] = 4 * weights, 4 * (constant - clause.needs) + offset
            mix[_channels_of(clause, cells), len(names)] = sign
            names.append(clause.reason)
        if clause.rule:
            rule_units.append(unit)
        if clause.passes:
            kernel[len(names)], bias[len(names)] = 2 * weights, 2 * (constant - clause.needs) + 1
            kernel[len(names), TRACE, 1, 1] = 1
            mix[TRACE, [len(names), unit, unit + 1]] = 1, -1, 1
            names.append(f"{clause.reason}: gradient")
    found = ChannelFilter(kernel, bias, mix, np.array(rule_units, dtype=np.int64))
    return found, {"units": names, "channels": channels}


def _sum(clause: Clause, cells: Cells, channels: int) -> tuple[NDArray[np.float32], int]:
    weights = np.zeros((channels, 3, 3), dtype=np.float32)
    constant = 0
    signed = [(literal, 1) for literal in clause.when] + [(literal, -1) for literal in clause.unless]
    for literal, sign in signed:
        per_channel, extra = form(literal.predicate, cells)
        constant += sign * extra
        for channel, weight in per_channel.items():
            weights[channel, literal.at[0] + 1, literal.at[1] + 1] += sign * weight
    return weights, constant


def _channels_of(clause: Clause, cells: Cells) -> list[int]:
    effect = clause.effect
    found = [
        channel
        for channel, set_ in ((WORK, effect.work), (COMPUTING, effect.compute), (MEMORISING, effect.memory))
        if set_
    ]
    if effect.symbol:
        found.append(SYMBOLS + effect.symbol - 1)
    if effect.head is not None:
        found.append(SYMBOLS + cells.symbols - 1 + effect.head)
    return found
