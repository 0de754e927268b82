"""Seeded random machines and circuits: for property tests, and for data sets of programs.

The same seed and sizes give the same program on every platform and version: all draws are doubles of
NumPy's PCG64, whose stream is fixed, scaled and cut to whole numbers here.
"""

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from tapegrad.circuits.model import ARITY, Circuit, Gate
from tapegrad.errors import Refused
from tapegrad.machines.grid import MOVES, GridMachine, GridRule
from tapegrad.machines.model import LEFT, RIGHT, STAY, Rule, TuringMachine

LARGEST_TABLE = 1_000_000
"""Most entries of a random machine's table."""

GATE_MIX: Mapping[Gate, float] = {Gate.AND: 3, Gate.OR: 3, Gate.NOT: 2, Gate.XOR: 2}
"""The usual gates of a random circuit, and how often each comes up."""


class _Draws:
    """A stream of whole numbers made from doubles."""

    def __init__(self, seed: int) -> None:
        if seed < 0:
            raise Refused(f"a seed is a whole number from 0 on, not {seed}")
        self._doubles = np.random.Generator(np.random.PCG64(seed))

    def chance(self, probability: float) -> bool:
        return bool(self._doubles.random() < probability)

    def below(self, limits: NDArray[np.int64]) -> NDArray[np.int64]:
        """For every limit a number from 0 to below it; 0 where the limit is 0."""
        return (self._doubles.random(len(limits)) * limits).astype(np.int64)

    def one_below(self, limit: int) -> int:
        return int(self._doubles.random() * limit)

    def order(self, count: int) -> NDArray[np.int64]:
        """The numbers below `count`, shuffled."""
        return np.argsort(self._doubles.random(count), kind="stable")


def random_machine(
    seed: int,
    *,
    states: int = 4,
    symbols: int = 2,
    tapes: int = 1,
    halt: float = 0.1,
    stay: bool = True,
) -> TuringMachine:
    """A machine over the symbols "0" (blank), "1", ... with states "q0" (start), "q1", ...; an entry of
    its table is missing, so that it halts there, with probability `halt`. Without `stay` heads always
    move."""
    _check_table(states, symbols, tapes)
    draws = _Draws(seed)
    moves = (LEFT, RIGHT, STAY) if stay else (LEFT, RIGHT)
    alphabet = tuple(str(symbol) for symbol in range(symbols))
    names = tuple(f"q{state}" for state in range(states))
    rules = {}
    for state, read in product(names, product(alphabet, repeat=tapes)):
        if not draws.chance(halt):
            rules[state, read] = Rule(
                write=tuple(alphabet[draws.one_below(symbols)] for _ in range(tapes)),
                moves=tuple(moves[draws.one_below(len(moves))] for _ in range(tapes)),
                state=names[draws.one_below(states)],
            )
    name = f"random machine {seed}"
    return TuringMachine(rules, names[0], "0", name=name, alphabet=alphabet, states=names, tapes=tapes)


def random_grid_machine(
    seed: int, *, states: int = 3, symbols: int = 2, halt: float = 0.1, stay: bool = True
) -> GridMachine:
    """The same on a grid."""
    _check_table(states, symbols, 1)
    draws = _Draws(seed)
    moves = [move for move in MOVES if stay or move != "stay"]
    alphabet = tuple(str(symbol) for symbol in range(symbols))
    names = tuple(f"q{state}" for state in range(states))
    rules = {
        (state, read): GridRule(
            write=alphabet[draws.one_below(symbols)],
            move=moves[draws.one_below(len(moves))],
            state=names[draws.one_below(states)],
        )
        for state, read in product(names, alphabet)
        if not draws.chance(halt)
    }
    name = f"random grid machine {seed}"
    return GridMachine(rules, names[0], "0", name=name, alphabet=alphabet, states=names)


def random_circuit(
    seed: int,
    *,
    inputs: int = 8,
    size: int = 50,
    outputs: int = 4,
    depth: int | None = None,
    kinds: Sequence[Gate] | Mapping[Gate, float] = GATE_MIX,
) -> Circuit:
    """A circuit of `size` gates, their kinds drawn evenly from a list or by the weights of a mapping.

    Operands are drawn evenly from all earlier wires; with `depth`, gates stand in so many layers of
    equal size, and their first operand comes from the layer before, so that, constants apart, the
    longest path is just that.
    Wires that nobody reads become outputs first; a circuit without any wire has no outputs. Without
    inputs the first gates are constants, since there is nothing to read.
    """
    if min(inputs, size, outputs) < 0 or max(inputs, size, outputs) >= 1 << 30:
        raise Refused("a random circuit needs numbers of inputs, gates and outputs from 0 to 2^30")
    if depth is not None and not 1 <= depth <= max(1, size):
        raise Refused(f"{size} gates cannot stand in {depth} layers", advice="Each layer needs a gate.")
    draws = _Draws(seed)
    drawn = _drawn_kinds(draws, kinds, size)
    gate = np.arange(size)
    if depth is None:
        before, fresh = inputs + gate, np.zeros(size, np.int64)
    else:
        layer = gate * depth // max(1, size)
        starts = np.searchsorted(layer, np.arange(depth))
        before = inputs + starts[layer]
        fresh = np.where(layer > 0, inputs + starts[layer - 1], 0)
    drawn[(before == 0) & (ARITY[drawn] > 0)] = Gate.FALSE
    left = fresh + draws.below(before - fresh)
    right = draws.below(before)
    wires = inputs + size
    return Circuit(
        inputs=tuple(f"x{number}" for number in range(inputs)),
        outputs=tuple(f"y{number}" for number in range(outputs if wires else 0)),
        kinds=drawn,
        left=np.where(ARITY[drawn] >= 1, left, 0).astype(np.int32),
        right=np.where(ARITY[drawn] == 2, right, 0).astype(np.int32),
        output_wires=_drawn_outputs(draws, drawn, left, right, wires, outputs if wires else 0),
        name=f"random circuit {seed}",
    )


def _drawn_kinds(draws: _Draws, kinds: Sequence[Gate] | Mapping[Gate, float], size: int) -> NDArray[np.uint8]:
    weights = kinds if isinstance(kinds, Mapping) else dict.fromkeys(kinds, 1.0)
    if not weights or min(weights.values()) < 0 or sum(weights.values()) <= 0:
        raise Refused("a random circuit needs kinds of gates with weights above 0")
    # Weights as parts of 2^30, so that the choice does not hang on how a platform rounds sums.
    parts = np.array([int(weight / sum(weights.values()) * (1 << 30)) for weight in weights.values()])
    chosen = np.searchsorted(np.cumsum(parts), draws.below(np.full(size, parts.sum())), side="right")
    return np.array([int(kind) for kind in weights], np.uint8)[chosen]


def _drawn_outputs(
    draws: _Draws,
    kinds: NDArray[np.uint8],
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    wires: int,
    outputs: int,
) -> NDArray[np.int32]:
    unread = np.ones(wires, bool)
    unread[left[ARITY[kinds] >= 1]] = False
    unread[right[ARITY[kinds] == 2]] = False
    loose = np.flatnonzero(unread)
    first = loose[draws.order(len(loose))][:outputs]
    rest = draws.below(np.full(outputs - len(first), wires))
    return np.concatenate([first, rest]).astype(np.int32)


def _check_table(states: int, symbols: int, tapes: int) -> None:
    if min(states, symbols, tapes) < 1:
        raise Refused("a random machine needs at least one state, one symbol and one tape")
    if tapes > 30 or states * symbols**tapes > LARGEST_TABLE:
        raise Refused(
            f"a machine with {states} states, {symbols} symbols and {tapes} tapes needs a table of "
            f"more than {LARGEST_TABLE:,} entries",
            advice="Ask for fewer states, symbols or tapes.",
        )
