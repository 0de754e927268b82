"""The digits of a cell in the paper's encoding (Goel et al., B.1), and the number that they make.

Balanced ternary: digit 0 work cell, 1 symbol, 2 phase, 3 head, 4... state (0 the start state, words over
-1 and +1 the others). Digits being balanced, "the first digits are these" is an interval of the line. The
paper has three symbols, with the digits 0, 1 and -1. Further ones have a 0 there, like a blank, and words
of their own between head and state: small numbers, that change no question about the memorising phase.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tapegrad.targets.rcnn.cells import MEMORY, OUTSIDE, Cells
from tapegrad.targets.rcnn.clauses import Effect

PADDING = 1 / 6
"""Outside the grid: half-way between the digits 0 and 1 of the symbol, so it is no cell's value."""
SIGNS = (0, 1, -1)
"""The symbol digit of the first three symbols."""
FIXED = ("work", "symbol", "phase", "head")


def word_digits(words: int) -> int:
    """Digits for this many words over -1 and +1."""
    return max(1, (words - 1).bit_length()) if words > 0 else 0


def word(number: int, digits: int) -> tuple[int, ...]:
    """The word of this number; below 0 there is none, and every digit is 0."""
    return tuple(0 if number < 0 else 1 if number >> i & 1 else -1 for i in range(digits))


def digit_names(cells: Cells) -> list[str]:
    """What each digit of a cell stands for."""
    symbols = [f"further symbol digit {i}" for i in range(word_digits(cells.symbols - 3))]
    return [*FIXED, *symbols, *(f"state digit {i}" for i in range(word_digits(cells.states - 1)))]


def effect_digits(effect: Effect, cells: Cells) -> tuple[int, ...]:
    """What an effect adds to each digit of the centre cell."""
    sign = SIGNS[effect.symbol] if effect.symbol < 3 else 0
    phase = int(effect.compute) - int(effect.memory)
    symbol = word(effect.symbol - 3, word_digits(cells.symbols - 3))
    state = word((effect.head or 0) - 1, word_digits(cells.states - 1))
    return (int(effect.work), sign, phase, int(effect.head is not None), *symbol, *state)


@lru_cache(maxsize=8)
def cell_values(cells: Cells) -> NDArray[np.float64]:
    """The number that stands for each content of a cell; read-only."""
    place = 3.0 ** -np.arange(len(digit_names(cells)))
    symbols = [Effect(symbol=a) for a in range(cells.symbols)]
    modes = [Effect(), Effect(compute=True), *(Effect(compute=True, head=q) for q in range(cells.states))]
    by_symbol, by_mode = ([effect_digits(e, cells) for e in effects] @ place for effects in (symbols, modes))
    work, symbol, mode = cells.facts.T
    values = work + by_symbol[symbol] + by_mode[mode]
    values[OUTSIDE], values[MEMORY] = PADDING, -1 / 9
    values.setflags(write=False)
    return values
