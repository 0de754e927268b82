"""Seeded random circuits: for property tests, and for data sets of programs.

The same seed and sizes give the same circuit on every platform and version (`tapegrad._draws`).
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad._draws import Draws
from tapegrad.circuits.arrays import where
from tapegrad.circuits.model import ARITY, Circuit, Gate
from tapegrad.circuits.tracer import Traced, trace
from tapegrad.circuits.types import Int, UInt
from tapegrad.errors import Refused

GATE_MIX: Mapping[Gate, float] = {Gate.AND: 3, Gate.OR: 3, Gate.NOT: 2, Gate.XOR: 2}
"""The usual gates of a random circuit, and how often each comes up."""


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
    draws = Draws(seed)
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


def _drawn_kinds(draws: Draws, kinds: Sequence[Gate] | Mapping[Gate, float], size: int) -> NDArray[np.uint8]:
    weights = kinds if isinstance(kinds, Mapping) else dict.fromkeys(kinds, 1.0)
    if not weights or min(weights.values()) < 0 or sum(weights.values()) <= 0:
        raise Refused("a random circuit needs kinds of gates with weights above 0")
    # Weights as parts of 2^30, so that the choice does not hang on how a platform rounds sums.
    parts = np.array([int(weight / sum(weights.values()) * (1 << 30)) for weight in weights.values()])
    chosen = np.searchsorted(np.cumsum(parts), draws.below(np.full(size, parts.sum())), side="right")
    return np.array([int(kind) for kind in weights], np.uint8)[chosen]


def _drawn_outputs(
    draws: Draws,
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


OPERATIONS: tuple[Callable[[Any, Any], Any], ...] = (
    operator.add,
    operator.sub,
    operator.mul,
    operator.and_,
    operator.or_,
    operator.xor,
    lambda a, b: where(a < b, a, b),
    lambda a, b: where(a == b, ~a, b),
)


def random_function(seed: int, *, widest: int = 3, operations: int = 4) -> Traced:
    """A function of two integers of one type, of at most so many bits and operations."""
    draws = Draws(seed)
    kind = (UInt, Int)[draws.one_below(2)](1 + draws.one_below(widest))
    plan = [
        (OPERATIONS[draws.one_below(len(OPERATIONS))], draws.one_below(known), draws.one_below(known))
        for known in range(2, 3 + draws.one_below(operations))
    ]

    def function(a: Any, b: Any) -> Any:
        values = [a, b]
        for operation, left, right in plan:
            values.append(operation(values[left], values[right]))
        return values[-1]

    return trace(function, kind, kind, name=f"random function {seed}")
