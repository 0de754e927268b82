"""Language models of machines, followed by what their records tell.

The text of a run is one call of the fast engine, which works from tables that are read off the weights. A
record tells, for each tape, where the head is and what it sees, and last what the machine does; so a row has
the state that the record before has entered, where the heads are, what they see, and what the record before
has written. The whole tape is the input and these writes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tapegrad._campaign.watch import Seen, Watch
from tapegrad.attention.tape_tokens import BASE, DIGIT, TapeTokens
from tapegrad.attention.tokens import END
from tapegrad.machines.model import Configuration
from tapegrad.targets.decoder.fast import Fast, Tables, read_tables
from tapegrad.targets.decoder.net import DecoderNet

NOTHING = -1
"""Stands for what a token does not tell."""


@dataclass(frozen=True)
class Vocabulary:
    """What each token tells, by its number."""

    digit: NDArray[np.int64]
    entered: NDArray[np.int64]
    written: NDArray[np.int64]
    """For each tape the number of the symbol."""

    @classmethod
    def of(cls, words: TapeTokens) -> "Vocabulary":
        machine, count = words.machine, len(words.program.tokens)
        digit, entered = np.full(count, NOTHING), np.full(count, NOTHING)
        written = np.full((count, machine.tapes), NOTHING)
        digit[words.DIGITS : words.CARRY] = range(BASE)
        digit[words.CARRY], digit[words.BORROW] = 0, BASE - 1
        entered[words.START] = 0
        states = {state: number for number, state in enumerate(machine.states)}
        symbols = {symbol: number for number, symbol in enumerate(machine.alphabet)}
        for rule, token in words.outcomes.items():
            entered[token] = states[rule.state]
            written[token] = [symbols[symbol] for symbol in rule.write]
        return cls(digit, entered, written)


Prepared = tuple[DecoderNet, Tables, Vocabulary]


class Texts(Watch):
    """A mark: state, heads, what they see, and what the step before has written."""

    nets = DecoderNet

    def prepared(self, net: DecoderNet) -> Prepared:
        return net, read_tables(net.network, net.tokens), Vocabulary.of(_words(net))

    def fast(self, net: Prepared, start: Configuration, length: int) -> Seen:
        own, tables, vocabulary = net
        words = _words(own)
        prompt = words.prompt(start, own.tokens)
        last = min(own.tokens, len(prompt) + words.record * length)
        told = Fast(tables).advance(prompt, last)[len(prompt) - 1 :]
        """With the token before it, which says what state the machine is in."""
        whole = (len(told) - 1) // words.record
        records = np.array(told[1 : 1 + whole * words.record]).reshape(whole, words.record)
        before = np.array([told[0], *records[:-1, -1]])
        tapes = range(words.machine.tapes)
        digits = vocabulary.digit[records]
        columns = [vocabulary.entered[before][:, None]]
        for tape in tapes:
            first = words.digit_slot(tape, 0)
            at = digits[:, first : first + words.digits] @ (1 << DIGIT * np.arange(words.digits))
            columns.append(np.where(2 * at < BASE**words.digits, at, at - BASE**words.digits)[:, None])
        columns.append(records[:, [words.symbol_slot(tape) for tape in tapes]] - words.SYMBOLS)
        columns.append(vocabulary.written[before])
        return Seen(np.hstack(columns), records[:, -1] == END, np.zeros(whole))

    def marks(self, net: DecoderNet, states: Sequence[Configuration]) -> NDArray[np.int64]:
        machine = _words(net).machine
        named = {state: number for number, state in enumerate(machine.states)}
        symbols = {symbol: number for number, symbol in enumerate(machine.alphabet)}
        nothing = [NOTHING] * machine.tapes
        written = [nothing] + [_under(after, now.heads, symbols) for now, after in pairwise(states)]
        rows = [
            [
                named[state.state],
                *(head - first for head, first in zip(state.heads, states[0].heads, strict=True)),
                *_under(state, state.heads, symbols),
                *wrote,
            ]
            for state, wrote in zip(states, written, strict=True)
        ]
        return np.array(rows)


def _under(state: Configuration, places: Sequence[int], symbols: dict[str, int]) -> list[int]:
    """The numbers of the symbols in these places, one on each tape; the blank has number 0."""
    return [symbols[tape[at]] if at in tape else 0 for tape, at in zip(state.tapes, places, strict=True)]


def _words(net: DecoderNet) -> TapeTokens:
    assert isinstance(net.words, TapeTokens)
    return net.words
