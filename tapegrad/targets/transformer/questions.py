"""What the self-attention layers ask, read off their matrices: which step stood last at this place?

Query and key compare bits as +-1, and the null key scores one less than a full match and at least one more
than anything else. So a layer asks whether any step has exactly this code. The codes of all layers are one
code, cut off at different bits: the place, then the number of the step from its highest bit down. A layer
knows the bits that the layers before it have found, and may ask for a 1 in the next one.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from tapegrad.errors import Refused
from tapegrad.targets.transformer.layers import Attention, TransformerLayer

INDEX = np.uint64
"""Of all that is used as an index: compiled code need not provide for negative ones then, twice as fast."""

NONE = -1
LONGEST_PLACE = 28
"""Bits. The index has an entry for every place, though memory is used only for those visited."""


class Questions(NamedTuple):
    """The last four have an entry for each layer; -1 is none."""

    first: int
    """The first layer that asks."""
    last: int
    """The last, which copies the values of the step that fits; the others only say that there is one."""
    own_place: np.ndarray
    """The coordinates of the key that name the place of a step, lowest bit first."""
    asked_place: np.ndarray
    """Those of the query that name the place asked about."""
    barred: np.uint64
    """The coordinate that keeps a step from being found."""
    learns: np.ndarray
    """The coordinate of the bit that has become known since the last question."""
    asks: np.ndarray
    """1 to ask for a 1 in the next bit, 0 to ask only for the bits that are known."""
    open_bits: np.ndarray
    """How many of the lowest bits of the number the question leaves open."""
    answer: np.ndarray
    """The coordinate that becomes 1 if a step fits."""


def read_questions(
    layers: Sequence[TransformerLayer], changed: list[set[int]], time: list[int], steps: int
) -> Questions:
    """The questions of these layers, or a refusal if they are not of the form above. `changed` holds the
    coordinates that each layer can change: none that a later question relies on may be among them. `time`
    holds the number of the step, lowest bit first, which is at most `steps`."""
    codes = {n: _code(layer.self_attention) for n, layer in enumerate(layers) if layer.self_attention}
    require(len(codes) > 0)
    first, last = min(codes), max(codes)
    place, barred = codes[first].asked, codes[first].barred
    if len(place) > LONGEST_PLACE:
        raise Refused(
            f"the fast engine has no room for places of {len(place)} bits",
            advice=f"Compile for fewer than 2^{LONGEST_PLACE - 1} steps, or run the reference engine.",
        )
    number = time[: len(codes[last].asked) - len(place)][::-1]
    require(steps < 1 << len(number))
    learns, asks, open_bits, answer = np.full((4, len(layers)), NONE)
    known: list[int] = []
    settled = {*time}
    for n in range(last + 1):
        if code := codes.get(n):
            compared = number[: len(code.asked) - len(place)]
            require(code.asked == place | {key: code.asked.get(key) for key in compared})
            require(code.barred == barred and (code.answer == NONE) == (n == last))
            bits = [code.asked[key] for key in compared]
            asks[n] = bits[-1:] == [NONE]
            found = bits[:-1] if asks[n] else bits
            new = found[len(known) :]
            require(known + new == found and len(new) <= 1)
            known, learns[n], answer[n] = found, (*new, NONE)[0], code.answer
            open_bits[n] = len(number) - len(bits)
            settled |= {barred, *place, *place.values(), *new}
        require(n == last or not changed[n] & settled)
    require(NONE not in settled and asks[last] == 0)
    own, asked = coordinates(place), coordinates(place.values())
    return Questions(first, last, own, asked, INDEX(barred), learns, asks, open_bits, answer)


class _Code(NamedTuple):
    asked: dict[int, int]
    """From each coordinate of the key to that of the query it must equal, or -1 for the constant 1."""
    barred: int
    answer: int


def _code(attention: Attention) -> _Code:
    barred, constants = np.flatnonzero(attention.W_K[-1]), np.flatnonzero(attention.b_V)
    require(len(barred) == 1 and attention.W_K[-1, barred[0]] == -2 and attention.b_K[-1] == 0)
    require(attention.b_V[constants].tolist() == ([] if attention.W_V.any() else [1]))
    return _Code(compared_bits(attention), int(barred[0]), int((*constants, NONE)[0]))


def compared_bits(attention: Attention) -> dict[int, int]:
    """Which bit of the query each bit of the key is compared with. The null key stands alone in the last row,
    one below a full match; its value is 0."""
    rows = range(len(attention.K_0) - 1)
    keys = [_bit(attention.W_K[row], attention.b_K[row]) for row in rows]
    queries = [_bit(attention.W_Q[row], attention.b_Q[row]) for row in rows]
    require(NONE not in keys and len(set(keys)) == len(keys))
    require(not attention.W_Q[-1].any() and attention.b_Q[-1] == 1)
    require(attention.K_0[-1] == len(keys) - 1 and not attention.K_0[:-1].any() and not attention.V_0.any())
    return dict(zip(keys, queries, strict=True))


def require(holds: bool) -> None:
    """Refuses matrices that were changed, where `fast` might differ from `reference`."""
    if not holds:
        raise Refused(
            "the layers do not search for the last write as compiled",
            advice="Weights were changed; run the reference engine.",
        )


def coordinates(numbers: Iterable[int]) -> np.ndarray:
    """Coordinates of the hidden vector, to be used as indices."""
    return np.array([*numbers], INDEX)


def _bit(weights: np.ndarray, bias: float) -> int:
    """The coordinate c of a row `2 h[c] - 1`, or -1 for the constant 1."""
    used = np.flatnonzero(weights)
    if len(used) == 0:
        require(bias == 1)
        return NONE
    require(len(used) == 1 and weights[used[0]] == 2 and bias == -1)
    return int(used[0])
