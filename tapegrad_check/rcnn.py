"""The independent checker of `rcnn` nets: from the filter's weights to "runs this table of rules".

It knows nothing of the compiler. A unit of the last ReLU layer adds up one number for each cell of its patch,
so the filter is known from tables (unit, cell, content). With them: while all cells compute, the filter is a
sum of functions of single cells, and these are the rules; and on every patch of the memorising phase
the new value and its derivative are the paper's (Goel et al., B.2, with a frame of work cells).
"""

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import BrokenNet
from tapegrad_check.rcnn_tables import (
    HERE,
    NEIGHBOURS,
    Contents,
    Tables,
    channel_tables,
    require_room,
    ternary_tables,
)

Arrays = dict[str, NDArray[Any]]
CLOSE = 1e-6
"""Largest difference that counts as rounding; thresholds are met with a thousand times more to spare."""
MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1), (0, 0))


def check(config: dict[str, Any], arrays: Arrays, certificate: dict[str, Any]) -> list[str]:
    """What was re-derived, in sentences; `BrokenNet` names the first thing that does not hold."""
    contents = Contents(len(config["symbols"]), len(config["states"]), config["encoding"])
    rules = arrays["rules"]
    _require(rules.shape == (contents.states, contents.symbols, 3), "the table of rules has another shape")
    ternary = config["encoding"] == "ternary"
    require_room(len(arrays["V3.bias" if ternary else "bias"]), contents.count)
    build = ternary_tables if ternary else channel_tables
    tables, statements = build(arrays, contents, certificate)
    _rules(tables, contents, rules)
    _halting(tables, contents, rules, arrays["rule_units"])
    count = _memorising(tables, contents)
    return [
        *statements,
        f"all {int((rules[:, :, 0] >= 0).sum()):,} rules and the halts are realised: at the head, at the "
        f"cell it moves to, and nothing anywhere else",
        f"on {count:,} patches of the memorising phase the new value and its derivative are as prescribed",
    ]


def _rules(tables: Tables, contents: Contents, rules: NDArray[np.int64]) -> None:
    """While all cells compute: the sum over cells of what each contributes is the machine's step."""
    computing = contents.computing
    base, parts = tables.additive(computing)
    silent = contents.number(0, 0, 1)
    for number in computing:
        work, symbol, state = contents.facts(number)
        rule = rules[state, symbol] if state >= 0 else np.full(3, -1)
        acts = bool(rule[0] >= 0)
        written = int(rule[0]) if acts else symbol
        move = MOVES[rule[1]] if acts else (0, 0)
        stays = state if not acts else int(rule[2]) if move == (0, 0) else -1
        found = base + parts[HERE][number] + sum(parts[at][silent] for at in NEIGHBOURS)
        expected = contents.value(contents.number(work, written, 1, stays))
        _same(found, expected, f"content {contents.describe(number)} at the centre")
        for at in NEIGHBOURS:
            comes = acts and (-at[0], -at[1]) == move
            added = contents.head(int(rule[2])) if comes else np.zeros(contents.width)
            told = parts[at][number] - parts[at][silent]
            _same(told, added, f"content {contents.describe(number)} at {at}")
    for at in NEIGHBOURS:
        _same(parts[at][contents.outside], parts[at][silent], f"the padding at {at}")


def _halting(tables: Tables, contents: Contents, rules: NDArray[np.int64], units: NDArray[np.int64]) -> None:
    for number in contents.computing:
        _, symbol, state = contents.facts(number)
        runs = state >= 0 and rules[state, symbol, 0] >= 0
        patch = {at: contents.number(0, 0, 1) for at in NEIGHBOURS} | {HERE: number}
        active = bool((tables.activations(patch)[units] > 0.5).any())
        _require(active == runs, f"content {contents.describe(number)} is told to be running wrongly")


def _memorising(tables: Tables, contents: Contents) -> int:
    """Every patch of cells that are empty, written (with + or -), memorising or in the frame."""
    empty, frame, memory = contents.number(0, 0, 0), contents.number(1, 0, 0), contents.memory
    data = [contents.number(0, a, 0) for a in range(1, min(contents.symbols, 3))]
    kinds = [empty, *data, memory, frame]
    count = 0
    for here, above, below, before, after in product(kinds, repeat=5):
        unheard = memory in (above, below)
        corner = here in data and after == frame and below == frame
        opened = here == empty or here in data
        if (opened and above == below == memory) or (corner and unheard):
            continue  # cannot occur: messages start in one row, and end before the corner is written
        writes = here == empty and (above == frame or above in data)
        if writes and below == memory:
            continue  # cannot occur: the row that writes is where the message starts
        patch = dict(zip((HERE, *NEIGHBOURS), (here, above, below, before, after), strict=True))
        if writes or here == memory or (opened and unheard):
            expected = contents.value(memory)
        elif corner:
            expected = contents.value(contents.number(0, contents.facts(here)[1], 1, 0))
        else:
            expected = contents.value(here)
        _same(tables.output(patch), expected, f"patch {patch}")
        passes = writes or here == memory
        for at in (HERE, *NEIGHBOURS):
            wanted = 1.0 if passes and at == HERE else 0.0
            _same(tables.derivative(patch, at), np.array(wanted), f"derivative at {at} of patch {patch}")
        count += 1
    return count


def _same(found: Any, expected: Any, where: str) -> None:
    if not np.allclose(found, expected, rtol=0, atol=CLOSE):
        raise BrokenNet(f"the filter gives {found} instead of {expected}", where=where)


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise BrokenNet(what)
