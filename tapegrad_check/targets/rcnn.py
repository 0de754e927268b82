"""The independent checker of `rcnn` nets: from the filter's weights to "runs this table of rules".

It knows nothing of the compiler. `filters` and `ternary_filters` work out what the filter is. While all cells
compute, it is a sum of functions of single cells, and these are the rules; and on every patch of the
memorising phase the new value and its derivative are the paper's (Goel et al., B.2, with a frame of work
cells).
"""

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.fields import array, texts, whole
from tapegrad_check.folder import Arrays, Checked, CheckError, Unchecked, require
from tapegrad_check.graph import Graph
from tapegrad_check.sources import MOVES as WAYS
from tapegrad_check.sources import GridMachine, Model
from tapegrad_check.targets.filters import (
    CELLS,
    CHANNELS,
    CLOSE,
    HERE,
    LEAST_MARGIN,
    MOST_ENTRIES,
    NEIGHBOURS,
    Contents,
    Filter,
    Numbers,
    channel_filter,
    layers_of,
    spread,
    summed,
    totals,
)
from tapegrad_check.targets.ternary_filters import TERNARY, ternary_filter

MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1), (0, 0))
"""In the order of the table of rules."""
MEMORY = "memory"
"""What a classifier has memorised, beside the arrays of its network."""


def check(
    config: dict[str, Any], own: Arrays, certificate: dict[str, Any], source: Model | None, graph: Graph
) -> Checked:
    """What was proved, in sentences; `CheckError` names the first thing that does not hold."""
    memory = own.get(MEMORY)
    require(own.keys() - {MEMORY} == {"rules"}, "there are other arrays")
    rules = _table(config, own, source)
    ternary = config["encoding"] == "ternary"
    require(ternary or config["encoding"] == "channels", "the encoding is unknown")
    states, symbols, _ = rules.shape
    require(states > 0 and symbols > 0, "there are no states, or no symbols")
    contents = Contents(symbols, states, config["encoding"])
    layers = layers_of(graph, contents, TERNARY if ternary else CHANNELS)
    _require_room(len(layers.maps[2 if ternary else 0].bias), symbols, states)
    filter = (ternary_filter if ternary else channel_filter)(layers, contents, certificate)
    _rules(filter, contents, rules)
    _halting(filter, contents, rules, layers.rules)
    count = _memorising(filter, contents)
    statements = [
        *filter.statements,
        f"all {int((rules[:, :, 0] >= 0).sum()):,} rules and the halts are realised: at the head, at the "
        f"cell it moves to, and nothing anywhere else",
        f"on {count:,} patches of the memorising phase the new value and its derivative are as prescribed",
    ]
    if source is not None:
        statements.append(
            "states, symbols and rules are those of the source, by name; names of units are notes"
        )
    if memory is not None:
        array({MEMORY: memory}, MEMORY, np.float64 if ternary else np.float32, (None, None))
    return Checked(statements)


def _table(config: dict[str, Any], arrays: Arrays, source: Model | None) -> NDArray[np.int64]:
    """The rules that the net names, once they are known to be those of the source: for each state and symbol
    what is written, the move and the next state, -1 where the machine halts."""
    states, symbols = texts(config["states"], "the states"), texts(config["symbols"], "the symbols")
    whole(config["margin"], "the margin", 1, 1 << 24)
    named = config["names"]
    require(isinstance(named, dict) and all(isinstance(v, list) for v in named.values()), "units lack names")
    require(
        all(isinstance(name, str) for v in named.values() for name in v), "the name of a unit is not text"
    )
    rules = array(arrays, "rules", np.int64, (len(states), len(symbols), 3))
    sizes = len(symbols), len(MOVES), len(states)
    one_rule = ((rules >= 0) & (rules < sizes)).all(axis=2) | (rules == -1).all(axis=2)
    require(one_rule.all(), "a rule has a number out of range")
    if source is not None:
        require(isinstance(source, GridMachine), "the source of the net is no machine on a grid")
        assert isinstance(source, GridMachine)
        require(states == source.states, "the states are not those of the source")
        require(symbols == source.alphabet, "the symbols are not those of the source")
        state, symbol = ({name: n for n, name in enumerate(listed)} for listed in (states, symbols))
        wanted = np.full(rules.shape, -1)
        for (q, a), rule in source.rules.items():
            wanted[state[q], symbol[a]] = symbol[rule.write], MOVES.index(WAYS[rule.move]), state[rule.state]
        require(np.array_equal(rules, wanted), "the rules are not those of the source")
    return rules


def _require_room(units: int, symbols: int, states: int) -> None:
    """Refuses a filter whose tables would not fit: values and derivatives of five kinds of five cells, and
    some numbers for each content."""
    contents = 2 + 2 * symbols * (2 + states)
    if max(25 * units, 16 * contents) > MOST_ENTRIES:
        raise Unchecked(
            f"a filter of {units:,} units for {contents:,} contents of a cell is too large to be checked",
            advice="Use fewer states.",
        )


def _rules(filter: Filter, contents: Contents, rules: NDArray[np.int64]) -> None:
    """While all cells compute: the sum over cells of what each contributes is the machine's step.

    Both sides are lists of numbers that are not 0, with cell, content and channel: what the filter gives for
    a content beside what it gives for every patch, and what the rules say. Their difference must vanish; so
    a neighbour that does not send the head here adds nothing, nor does the padding.
    """
    own, width = filter.active, contents.width
    which, weight = filter.out.beyond(own.unit)
    keys = (own.at * contents.count + own.content)[which] * width + filter.out.row[weight]
    keys, values = summed(keys, own.more[which] * filter.out.value[weight])
    units, weight = filter.out.beyond(np.arange(len(own.base)))
    constant = totals(filter.out.row[weight], own.base[units] * filter.out.value[weight], width)
    numbers = contents.computing
    _, symbol, state = contents.facts(numbers)
    rule = np.where((state >= 0)[:, None], rules[state, symbol], -1)
    acts, way = rule[:, 0] >= 0, np.array(MOVES)[rule[:, 1]]
    stays = np.where(acts, np.where((way == 0).all(axis=1), rule[:, 2], -1), state)
    work = contents.facts(numbers)[0]
    new = contents.numbers(work, np.where(acts, rule[:, 0], symbol), np.where(stays >= 0, 2 + stays, 1))
    place, row, value = contents.entries(new)
    rows = np.flatnonzero(constant)
    which, everywhere = spread(np.zeros(len(rows), np.int64), np.full(len(rows), len(numbers)))
    given = numbers[everywhere] * width + rows[which]
    expected = [(numbers[place] * width + row, value), (given, -constant[rows[which]])]
    heads = np.array([contents.head(q) for q in range(contents.states)]).reshape(-1, 2)
    for number, at in enumerate(NEIGHBOURS, start=1):
        comes = acts & (-way == at).all(axis=1)
        first = number * contents.count
        head = heads[rule[comes, 2]]
        expected.append(((first + numbers[comes]) * width + head[:, 0].astype(np.int64), head[:, 1]))
    all_keys = np.concatenate([keys, *(part for part, _ in expected)])
    different, left = summed(all_keys, np.concatenate([values, *(-part for _, part in expected)]))
    wrong = np.flatnonzero(~(np.abs(left) <= filter.close))
    if len(wrong):
        cell, content = divmod(int(different[wrong[0]]) // width, contents.count)
        raise CheckError(
            f"the filter gives a value that is off by {left[wrong[0]]:.3g}",
            where=f"{contents.describe(content)} at {CELLS[cell]}",
        )


def _halting(filter: Filter, contents: Contents, rules: NDArray[np.int64], units: NDArray[np.int64]) -> None:
    """Some unit of a rule is active where the head stands on a rule, and nowhere else, whatever is around."""
    own = filter.active
    watched = np.zeros(len(own.base), np.bool_)
    watched[units] = True
    told = watched[own.unit]
    require((own.at[told] == 0).all(), "a unit that says whether a rule applies looks at other cells")
    usual, unusual = own.base[watched], (own.base[own.unit] + own.more)[told]
    clear = all((np.abs(found - 0.5) > LEAST_MARGIN).all() for found in (usual, unusual))
    require(clear, "a unit of a rule is neither on nor off")
    turned = (unusual > 0.5) * 1.0 - (own.base[own.unit[told]] > 0.5)
    active = np.bincount(own.content[told], turned, contents.count) + (usual > 0.5).sum()
    _, symbol, state = contents.facts(contents.computing)
    runs = (state >= 0) & (rules[state, symbol, 0] >= 0)
    wrong = np.flatnonzero((active[contents.computing] > 0) != runs)
    if len(wrong):
        raise CheckError(
            f"{contents.describe(int(contents.computing[wrong[0]]))} is told to be running wrongly"
        )


def _memorising(filter: Filter, contents: Contents) -> int:
    """Every patch of cells that are empty, written (with + or -), memorising or in the frame."""
    kinds = contents.memorising
    empty, *data, memory, frame = range(len(kinds))
    count = 0
    for here, above, below, before, after in product(range(len(kinds)), repeat=5):
        unheard = memory in (above, below)
        corner = here in data and after == frame and below == frame
        opened = here == empty or here in data
        if (opened and above == below == memory) or (corner and unheard):
            continue  # cannot occur: messages start in one row, and end before the corner is written
        writes = here == empty and (above == frame or above in data)
        if writes and below == memory:
            continue  # cannot occur: the row that writes is where the message starts
        patch = dict(zip(CELLS, (here, above, below, before, after), strict=True))
        if writes or here == memory or (opened and unheard):
            expected = contents.value(contents.memory)
        elif corner:
            expected = contents.value(contents.number(0, contents.facts(kinds[here])[1], 1, 0))
        else:
            expected = contents.value(kinds[here])
        found, derivatives = filter.tables.output(patch)
        _same(found, expected, filter.close, f"patch {patch}")
        passes = writes or here == memory
        wanted = [1.0 if passes and at == HERE else 0.0 for at in patch]
        _same(derivatives, np.array(wanted), CLOSE, f"derivatives of patch {patch}")
        count += 1
    return count


def _same(found: Numbers, expected: Numbers, close: float, where: str) -> None:
    if found.shape != expected.shape or not (np.abs(found - expected) <= close).all():
        raise CheckError(f"the filter gives {found} instead of {expected}", where=where)
