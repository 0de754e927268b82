"""The fast engine: attention answered by an index, so that a step costs the same at any time.

For each place the index keeps the steps that stood there as a chain, newest first. A question is about one
place and the highest bits of a step's number; numbers fall along the chain, so a walk along it ends at the
first that is not too large. That is exact for any question. The questions of Claim C.5 follow the bits of the
newest step, so that their walks end where they begin.
"""

from typing import NamedTuple

import numpy as np

from tapegrad._jit import njit
from tapegrad.targets.transformer.program import Program


class Index(NamedTuple):
    """What the steps so far have left behind. Step i has slot i + 1; slot 0 is no step."""

    newest: np.ndarray
    """For each place the slot of the last step there."""
    before: np.ndarray
    """For each slot that of the step before it at the same place."""
    place: np.ndarray
    value: np.ndarray
    """For each slot the values of the layer that copies."""


def empty_index(program: Program) -> Index:
    """Room to begin with; it grows, but for `newest`, of which the system hands out only the pages in use."""
    return Index(
        np.zeros(1 << len(program.questions.own_place), np.int32),
        np.zeros(1 << 7, np.int32),
        np.zeros(1 << 7, np.int32),
        np.zeros((1 << 7, len(program.copy_to)), np.float32),
    )


def advance(
    program: Program,
    encoder_codes: np.ndarray,
    encoder_values: np.ndarray,
    index: Index,
    output: np.ndarray,
    step: int,
    last: int,
) -> tuple[Index, np.ndarray, int]:
    """Decoder steps from `step` on, until `last` or the halt; `output` is changed in place."""
    scratch = np.zeros(int(np.diff(program.row_starts).max()), np.float32)
    while True:
        # One call from Python for each piece of the run: handing a program over takes a millisecond.
        step, ended = _decode(program, encoder_codes, encoder_values, index, output, scratch, step, last)
        if step > last or ended:
            return index, output, step
        grown = (np.concatenate([array, np.zeros_like(array)]) for array in index[1:])
        index = Index(index.newest, *grown)


def last_writes(index: Index, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Every place where one of the first `steps` steps stood, and the values of the last one there."""
    newest = index.newest[index.place[: steps + 1]]
    slots = np.flatnonzero(newest == np.arange(steps + 1))
    return index.place[slots], index.value[slots]


@njit()
def has_ended(program: Program, output: np.ndarray) -> bool:
    """Whether a unit that says so is on."""
    for row in range(len(program.halt_bias)):
        total = program.halt_bias[row]
        for term in range(program.halt_starts[row], program.halt_starts[row + 1]):
            total += program.halt_weight[term] * output[program.halt_from[term]]
        if total > 0.5:
            return True
    return False


@njit()
def _decode(program, encoder_codes, encoder_values, index, hidden, scratch, step, last):
    """Steps while there is room in the index; returns the number of the next step, and whether the run has
    ended."""
    # Arrays are taken out of the tuples once: handing whole tuples on costs more than the arithmetic.
    row_starts, row_to, row_bias = program.row_starts, program.row_to, program.row_bias
    term_starts, term_from, term_weight = program.term_starts, program.term_from, program.term_weight
    cleared_starts, cleared, time = program.cleared_starts, program.cleared, program.time
    copy_to, copy_from = program.copy_to, program.copy_from
    low, high, gain = program.low, program.high, program.gain
    first_question, last_question, own_place, asked_place, barred, learns, asks, open_bits, answer = (
        program.questions
    )
    newest, before, place, value = index
    nothing, next_row = np.float32(0), np.uint64(1)
    ended = has_ended(program, hidden)
    while step <= last and step + 1 < len(before) and not ended:
        slot, latest, known = step + 1, np.int64(0), np.int64(0)
        for bit in range(len(time)):
            hidden[time[bit]] += np.float32(step >> bit & 1)
        for layer in range(len(open_bits)):
            if layer == first_question:
                if hidden[barred] < 0.5:
                    place[slot] = _number(hidden, own_place)
                    before[slot] = newest[place[slot]]
                    newest[place[slot]] = slot
                latest = newest[_number(hidden, asked_place)]
            if open_bits[layer] >= 0:
                if learns[layer] >= 0:
                    known = known << 1 | np.int64(hidden[learns[layer]] > 0.5)
                asked = known << asks[layer] | asks[layer]
                found = _newest_that_fits(before, latest, asked, open_bits[layer])
                if layer == last_question:
                    for v in range(len(copy_from)):
                        value[slot, v] = hidden[copy_from[v]]
                    for v in range(len(copy_to)):
                        hidden[copy_to[v]] += value[found, v]
                elif found:
                    hidden[answer[layer]] += np.float32(1)
            if layer == program.encoder_layer:
                asked = _number(hidden, program.encoder_query)
                given = np.searchsorted(encoder_codes, asked)
                if given < len(encoder_codes) and encoder_codes[given] == asked:
                    for v in range(len(program.encoder_to)):
                        hidden[program.encoder_to[v]] += encoder_values[given, v]
            first, end = row_starts[layer], row_starts[layer + 1]
            for row in range(first, end):
                total = row_bias[row]
                for term in range(term_starts[row], term_starts[row + next_row]):
                    total += term_weight[term] * hidden[term_from[term]]
                total = max(total, nothing)
                scratch[row - first] = max(
                    gain * max(total - low, nothing) - gain * max(total - high, nothing), nothing
                )
            for row in range(first, end):
                hidden[row_to[row]] = scratch[row - first]
            for coordinate in cleared[cleared_starts[layer] : cleared_starts[layer + 1]]:
                hidden[coordinate] = nothing
        step += 1
        ended = has_ended(program, hidden)
    return step, ended


@njit()
def _newest_that_fits(before, slot, asked, open_bits):
    """The newest step from this slot on whose number, but for its lowest `open_bits`, is `asked`; 0 if none.
    The number of slot 0 would be -1, which is smaller than any, so that the walk ends there."""
    while (slot - 1) >> open_bits > asked:
        slot = before[slot]
    return slot if (slot - 1) >> open_bits == asked else 0


@njit()
def _number(hidden, bits):
    """The number whose bits, lowest first, stand in these coordinates of a hidden vector."""
    number = np.int64(0)
    for bit in range(len(bits)):
        number |= np.int64(hidden[bits[bit]] > 0.5) << bit
    return number
