"""The fast engine: hard-max attention answered by an index, so that a step costs the same at any time."""

from typing import NamedTuple

import numpy as np
from numba import njit

from tapegrad.nets.transformer.program import Program

EMPTY = -1
LAYER_BITS = 7
"""Room for the number of the layer below a code; a decoder step of 2^30 steps has some 70 layers."""


class Index(NamedTuple):
    """What has been written so far. `seen` is a hash table of codes, for layers that only ask whether a step
    exists; `written` maps the codes of the layer that copies to entries, one for each step in order."""

    seen: np.ndarray
    written: np.ndarray
    entry_code: np.ndarray
    entry_value: np.ndarray
    entry_count: np.ndarray
    sizes: np.ndarray
    """How many codes are in `seen`, how many entries there are."""


def empty_index(program: Program) -> Index:
    """Room to begin with; it grows."""
    return Index(
        np.full(1 << 12, EMPTY, np.int64),
        np.full(1 << 8, EMPTY, np.int64),
        np.zeros(1 << 7, np.int64),
        np.zeros((1 << 7, len(program.copy_to)), np.float32),
        np.zeros(1 << 7, np.float32),
        np.zeros(2, np.int64),
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
    attention_layers = int((program.barred >= 0).sum())
    while True:
        index = _with_room(index, attention_layers)
        step = _run(
            program, encoder_codes, encoder_values, index, output, scratch, step, last, attention_layers
        )
        if step > last or halted(program, output):
            return index, output, step


def _with_room(index: Index, layers: int) -> Index:
    """At least room for one more step; tables are kept at most two thirds full."""
    seen, written = index.seen, index.written
    if 3 * (index.sizes[0] + layers) > 2 * len(seen):
        seen = _rehash(seen, 2 * len(seen))
    codes, values, counts = index.entry_code, index.entry_value, index.entry_count
    if index.sizes[1] + 1 > len(codes):
        codes = np.concatenate([codes, np.zeros_like(codes)])
        values = np.concatenate([values, np.zeros_like(values)])
        counts = np.concatenate([counts, np.zeros_like(counts)])
    if 3 * (index.sizes[1] + 1) > 2 * len(written):
        written = _rehash_entries(codes, int(index.sizes[1]), 2 * len(written))
    return Index(seen, written, codes, values, counts, index.sizes)


@njit(cache=True)
def _slot(code, mask):
    mixed = np.uint64(code) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    return np.int64(mixed & np.uint64(mask))


@njit(cache=True)
def _rehash(table: np.ndarray, size: int) -> np.ndarray:
    bigger = np.full(size, EMPTY, np.int64)
    for code in table:
        if code != EMPTY:
            place = _slot(code, size - 1)
            while bigger[place] != EMPTY:
                place = (place + np.int64(1)) & np.int64(size - 1)
            bigger[place] = code
    return bigger


@njit(cache=True)
def _rehash_entries(codes: np.ndarray, count: int, size: int) -> np.ndarray:
    bigger = np.full(size, EMPTY, np.int64)
    for entry in range(count):
        place = _slot(codes[entry], size - 1)
        while bigger[place] != EMPTY:
            place = (place + np.int64(1)) & np.int64(size - 1)
        bigger[place] = entry
    return bigger


@njit(cache=True)
def _insert(table, code):
    """1 if the code is new."""
    mask = len(table) - 1
    place = _slot(code, mask)
    while table[place] != EMPTY:
        if table[place] == code:
            return 0
        place = (place + np.int64(1)) & np.int64(mask)
    table[place] = code
    return 1


@njit(cache=True)
def _contains(table, code):
    mask = len(table) - 1
    place = _slot(code, mask)
    while table[place] != EMPTY:
        if table[place] == code:
            return True
        place = (place + np.int64(1)) & np.int64(mask)
    return False


@njit(cache=True)
def _entry_of(written, codes, code):
    mask = len(written) - 1
    place = _slot(code, mask)
    while written[place] != EMPTY:
        if codes[written[place]] == code:
            return written[place]
        place = (place + np.int64(1)) & np.int64(mask)
    return -1


@njit(cache=True)
def _code_of(hidden, sources, first, end):
    """Bits `sources[first:end]` of a hidden vector as one number; a source of -1 is the constant 1."""
    code = np.int64(0)
    for place in range(first, end):
        source = sources[place]
        code = code << np.int64(1) | np.int64(source < 0 or hidden[source] > np.float32(0.5))
    return code


@njit(cache=True)
def halted(program: Program, output: np.ndarray) -> bool:
    """Whether a pair of state and symbol without an entry in the table is on."""
    for row in program.halting_rows:
        total = program.row_bias[row]
        for term in range(program.term_starts[row], program.term_starts[row + 1]):
            total += program.term_weight[term] * output[program.term_from[term]]
        if total > 0.5:
            return True
    return False


@njit(cache=True)
def _run(program, encoder_codes, encoder_values, index, hidden, scratch, step, last, attention_layers):
    """Steps while there is room in the index; returns the number of the next step."""
    # Arrays are taken out of the tuples once: handing whole tuples on costs more than the arithmetic.
    row_starts, row_to, row_bias = program.row_starts, program.row_to, program.row_bias
    term_starts, term_from, term_weight = program.term_starts, program.term_from, program.term_weight
    code_starts, key_from, query_from = program.code_starts, program.key_from, program.query_from
    constant_starts, constant_to = program.constant_starts, program.constant_to
    constant_value, copy_to, copy_from = program.constant_value, program.copy_to, program.copy_from
    barred, copies, low, high, gain = program.barred, program.copies, program.low, program.high, program.gain
    seen, written, sizes = index.seen, index.written, index.sizes
    entry_code, entry_value, entry_count = index.entry_code, index.entry_value, index.entry_count
    nothing = np.float32(0)
    while step <= last and not halted(program, hidden):
        if 3 * (sizes[0] + attention_layers) > 2 * len(seen):
            return step
        if sizes[1] + 1 > len(entry_code) or 3 * (sizes[1] + 1) > 2 * len(written):
            return step
        for bit in range(len(program.time)):
            hidden[program.time[bit]] += np.float32(step >> bit & 1)
        for layer in range(len(barred)):
            if barred[layer] >= 0:
                first, end = code_starts[layer], code_starts[layer + 1]
                own = _code_of(hidden, key_from, first, end) << LAYER_BITS | layer
                asked = _code_of(hidden, query_from, first, end) << LAYER_BITS | layer
                visible = hidden[barred[layer]] < 0.5
                if copies[layer]:
                    if visible:
                        entry = _entry_for(written, entry_code, sizes, own)
                        entry_count[entry] += np.float32(1)
                        for v in range(len(copy_from)):
                            entry_value[entry, v] += hidden[copy_from[v]]
                    entry = _entry_of(written, entry_code, asked)
                    if entry >= 0:  # the mean over ties
                        for v in range(len(copy_to)):
                            hidden[copy_to[v]] += entry_value[entry, v] / entry_count[entry]
                else:
                    if visible:
                        sizes[0] += _insert(seen, own)
                    if _contains(seen, asked):
                        for c in range(constant_starts[layer], constant_starts[layer + 1]):
                            hidden[constant_to[c]] += constant_value[c]
            if layer == program.encoder_layer:
                _encoder_attention(program, encoder_codes, encoder_values, hidden)
            first, end = row_starts[layer], row_starts[layer + 1]
            for row in range(first, end):
                total = row_bias[row]
                for term in range(term_starts[row], term_starts[row + 1]):
                    total += term_weight[term] * hidden[term_from[term]]
                total = max(total, nothing)
                scratch[row - first] = max(
                    gain * max(total - low, nothing) - gain * max(total - high, nothing), nothing
                )
            for row in range(first, end):
                hidden[row_to[row]] = scratch[row - first]
        step += 1
    return step


@njit(cache=True)
def _entry_for(written, codes, sizes, code):
    """The entry of this code, made if there is none."""
    mask = len(written) - 1
    place = _slot(code, mask)
    while written[place] != EMPTY:
        if codes[written[place]] == code:
            return written[place]
        place = (place + np.int64(1)) & np.int64(mask)
    entry = sizes[1]
    sizes[1] += 1
    codes[entry] = code
    written[place] = entry
    return entry


@njit(cache=True)
def _encoder_attention(program, encoder_codes, encoder_values, hidden):
    asked = _code_of(hidden, program.encoder_query, 0, len(program.encoder_query))
    place = np.searchsorted(encoder_codes, asked)
    if place < len(encoder_codes) and encoder_codes[place] == asked:
        for v in range(len(program.encoder_to)):
            hidden[program.encoder_to[v]] += encoder_values[place, v]
