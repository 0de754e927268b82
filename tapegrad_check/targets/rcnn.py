"""The independent checker of `rcnn` nets: from the filter's weights to "runs this table of rules".

It knows nothing of the compiler. A unit of the last ReLU layer adds up one number for each cell of its patch,
so the filter is known from tables (unit, cell, content). With them: while all cells compute, the filter is a
sum of functions of single cells, and these are the rules; and on every patch of the memorising phase
the new value and its derivative are the paper's (Goel et al., B.2, with a frame of work cells).
"""

import math
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.fields import array, texts, whole
from tapegrad_check.fields import number as finite
from tapegrad_check.folder import Arrays, Checked, CheckError, Unchecked, require
from tapegrad_check.products import times
from tapegrad_check.sources import MOVES as WAYS
from tapegrad_check.sources import GridMachine, Model

Offset = tuple[int, int]
HERE: Offset = (0, 0)
NEIGHBOURS: tuple[Offset, ...] = ((-1, 0), (1, 0), (0, -1), (0, 1))
LEAST_MARGIN = 0.2
"""How far a sum must stay from the threshold of a unit."""
MOST_ENTRIES = 1 << 28
"""Numbers in all tables together, of 8 bytes each."""
EXACT_BELOW = 1 << 24
"""Whole numbers below this are exact in single precision."""
CLOSE = 1e-6
"""Largest difference that counts as rounding; thresholds are met with a thousand times more to spare."""
MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1), (0, 0))
"""In the order of the table of rules."""
LARGEST = 2.0**50
"""No weight of the ternary filter is larger; so no sum overflows."""
LEAST_KINK = 1e-14
"""How far from a kink a value must be; it is the sum of a few numbers, each rounded to some 1e-16."""
MEMORY = "memory"
"""What a classifier has memorised, beside the arrays of its network."""


class Contents:
    """The contents of a cell, numbered as in the file, and the numbers that stand for them."""

    outside, memory = 0, 1

    def __init__(self, symbols: int, states: int, encoding: str) -> None:
        self.symbols, self.states, self.modes = symbols, states, 2 + states
        self.count = 2 + 2 * symbols * self.modes
        self.ternary = encoding == "ternary"
        self.further = _digits(symbols - 3)
        self.width = 1 if self.ternary else 4 + symbols - 1 + states
        self.values = np.array([self.value(number) for number in range(self.count)])
        self.computing = [n for n in range(2, self.count) if (n - 2) % self.modes >= 1]
        unused = {self.number(1, a, 0) for a in range(1, symbols)}
        unused |= {self.number(0, a, 0) for a in range(3, symbols)}
        self.possible = np.array([n for n in range(self.count) if n not in unused])

    def number(self, work: int, symbol: int, mode: int, state: int = -1) -> int:
        return 2 + (work * self.symbols + symbol) * self.modes + (2 + state if state >= 0 else mode)

    def facts(self, number: int) -> tuple[int, int, int]:
        """Work cell, symbol, state (-1 without head)."""
        rest, mode = divmod(number - 2, self.modes)
        return (*divmod(rest, self.symbols), mode - 2 if mode >= 2 else -1)

    def describe(self, number: int) -> str:
        work, symbol, state = self.facts(number)
        return f"(work {work}, symbol {symbol}, {'no head' if state < 0 else f'state {state}'})"

    def value(self, number: int) -> NDArray[np.float64]:
        """The numbers of a content."""
        found = np.zeros(self.width)
        if number < 2:
            found[0 if self.ternary else 2] = (1 / 6, -1 / 9)[number] if self.ternary else number
            return found
        (work, symbol, state), mode = self.facts(number), (number - 2) % self.modes
        head = self.head(state) if state >= 0 else 0
        if self.ternary:
            first = (0, 1, -1)[symbol] / 3 if symbol < 3 else _word(symbol - 3, self.further, 4)
            return np.array([work + first + (mode >= 1) / 9]) + head
        found[0], found[1] = work, mode >= 1
        if symbol:
            found[3 + symbol] = 1
        return found + head

    def head(self, state: int) -> NDArray[np.float64]:
        """What the head in this state adds."""
        found = np.zeros(self.width)
        if not self.ternary:
            found[3 + self.symbols + state] = 1
            return found
        found[0] = 1 / 27
        if state:
            found[0] += _word(state - 1, _digits(self.states - 1), 4 + self.further)
        return found


def _digits(words: int) -> int:
    """How long words over -1 and +1 must be for this many."""
    return max(1, (words - 1).bit_length()) if words > 0 else 0


def _word(number: int, digits: int, first: int) -> float:
    """A number's bits as digits -1 and +1 of a ternary fraction, from place `first` on."""
    return sum((1 if number >> i & 1 else -1) / 3 ** (first + i) for i in range(digits))


@dataclass(frozen=True)
class Tables:
    """`out @ relu(bias + sum over cells of seen[cell][:, content])`, and the derivatives of `seen`."""

    seen: dict[Offset, NDArray[np.float64]]
    slope: dict[Offset, NDArray[np.float64]]
    bias: NDArray[np.float64]
    out: NDArray[np.float64]
    gradient_out: NDArray[np.float64]

    def activations(self, patch: dict[Offset, int]) -> NDArray[np.float64]:
        return np.maximum(self.bias + sum(self.seen[at][:, n] for at, n in patch.items()), 0)

    def output(self, patch: dict[Offset, int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The new content of the centre, and the derivatives of its value (or its trace) by those of the
        cells, in the order of the patch."""
        units = self.activations(patch)
        slopes = np.stack([self.slope[at][:, n] for at, n in patch.items()], axis=1)
        return times(self.out, units), times(self.gradient_out * (units > 0), slopes)

    def additive(self, computing: list[int]) -> tuple[NDArray[np.float64], dict[Offset, NDArray[np.float64]]]:
        """For patches whose centre computes and whose other cells compute or lie outside, with one head at
        most: constant and functions of single cells that add up to the filter.

        A unit that is off for every content stays off, one that only one cell can change is a function of
        that cell; the others must all be on, and their contributions cancel.
        """
        around = [*computing, 0]
        domain = {at: computing if at == HERE else around for at in self.seen}
        low = {at: self.seen[at][:, domain[at]].min(axis=1) for at in self.seen}
        high = {at: self.seen[at][:, domain[at]].max(axis=1) for at in self.seen}
        least, most = self.bias + sum(low.values()), self.bias + sum(high.values())
        off = most < -LEAST_MARGIN
        varies = np.stack([(high[at] - low[at] > LEAST_MARGIN) & ~off for at in self.seen])
        single, joint = varies.sum(axis=0) <= 1, varies.sum(axis=0) > 1
        parts = {}
        for i, at in enumerate(self.seen):
            others = self.bias + sum(low[other] for other in self.seen if other != at)
            mine = np.where(single & varies[i], 1.0, 0.0)
            active = np.maximum(others[:, None] + self.seen[at], 0) * mine[:, None]
            parts[at] = times(self.out, active).T
        fixed = np.where(varies.any(axis=0), 0.0, np.maximum(least, 0))
        base = times(self.out, fixed)
        if joint.any():
            ends = [times(self.out[:, joint], np.maximum(bound[joint], 0)) for bound in (least, most)]
            if (least[joint] < LEAST_MARGIN).any() or not np.allclose(*ends, atol=1e-9):
                raise CheckError("a unit depends on several cells at once while all of them compute")
            base = base + ends[0]
        return base, parts


def check(
    config: dict[str, Any], arrays: Arrays, certificate: dict[str, Any], source: Model | None
) -> Checked:
    """What was proved, in sentences; `CheckError` names the first thing that does not hold."""
    memory = arrays.get(MEMORY)
    arrays = {name: own for name, own in arrays.items() if name != MEMORY}
    rules = _table(config, arrays, source)
    ternary = config["encoding"] == "ternary"
    require(ternary or config["encoding"] == "channels", "the encoding is unknown")
    states, symbols, _ = rules.shape
    _require_room(len(arrays["V3.bias" if ternary else "bias"]), symbols, states)
    contents = Contents(symbols, states, config["encoding"])
    build = _ternary_tables if ternary else _channel_tables
    tables, statements = build(arrays, contents, certificate)
    _rules(tables, contents, rules)
    _halting(tables, contents, rules, arrays["rule_units"])
    count = _memorising(tables, contents)
    statements += [
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
        statements.append("what the classifier has memorised is not checked: its samples are not saved")
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
    """Some unit of a rule is active where the head stands on a rule, and nowhere else, whatever is around."""
    inside = units.dtype == np.int64 and units.ndim == 1 and ((units >= 0) & (units < len(tables.bias))).all()
    require(inside, "a unit that says whether a rule applies does not exist")
    around = [*contents.computing, contents.outside]
    for at in NEIGHBOURS:
        spread = np.ptp(tables.seen[at][units][:, around], axis=1)
        require((spread <= CLOSE).all(), "a unit that says whether a rule applies looks at other cells")
    for number in contents.computing:
        _, symbol, state = contents.facts(number)
        runs = state >= 0 and rules[state, symbol, 0] >= 0
        patch = {at: contents.number(0, 0, 1) for at in NEIGHBOURS} | {HERE: number}
        found = tables.activations(patch)[units]
        require((np.abs(found - 0.5) > LEAST_MARGIN).all(), "a unit of a rule is neither on nor off")
        active = bool((found > 0.5).any())
        require(active == runs, f"content {contents.describe(number)} is told to be running wrongly")


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
        found, derivatives = tables.output(patch)
        _same(found, expected, f"patch {patch}")
        passes = writes or here == memory
        wanted = [1.0 if passes and at == HERE else 0.0 for at in patch]
        _same(derivatives, np.array(wanted), f"derivatives of patch {patch}")
        count += 1
    return count


def _same(found: Any, expected: Any, where: str) -> None:
    if np.shape(found) != np.shape(expected) or not (np.abs(found - expected) <= CLOSE).all():
        raise CheckError(f"the filter gives {found} instead of {expected}", where=where)


def _require_room(units: int, symbols: int, states: int) -> None:
    """Refuses a filter whose tables would not fit: values and derivatives for five cells."""
    contents = 2 + 2 * symbols * (2 + states)
    if max(10 * units, symbols + states) * contents > MOST_ENTRIES:
        raise Unchecked(
            f"a filter of {units:,} units for {contents:,} contents of a cell is too large to be checked",
            advice="Use fewer states.",
        )


def _channel_tables(
    arrays: Arrays, contents: Contents, certificate: dict[str, Any]
) -> tuple[Tables, list[str]]:
    """Tables of the practical filter, whose weights must be whole numbers."""
    require(arrays.keys() == {"kernel", "bias", "mix", "rule_units", "rules"}, "there are other arrays")
    (units,) = array(arrays, "bias", np.float32, (None,)).shape
    array(arrays, "kernel", np.float32, (units, contents.width, 3, 3))
    array(arrays, "mix", np.float32, (contents.width, units))
    kernel, bias, mix = (arrays[name].astype(np.float64) for name in ("kernel", "bias", "mix"))
    integers = all((weights == np.rint(weights)).all() for weights in (kernel, bias, mix))
    require(integers, "a weight of the channels is no whole number")
    largest = float((np.abs(kernel).sum(axis=(1, 2, 3)) + np.abs(bias)).max(initial=0.0))
    claims = {"encoding": "channels", "integers": True, "largest_sum": largest}
    require(
        certificate == claims and largest < EXACT_BELOW, f"sums reach {largest:g}, or another claim fails"
    )
    _only_neighbours(np.asarray(kernel.any(axis=(0, 1))))
    trace = 3
    seen, slope = {}, {}
    for at in (HERE, *NEIGHBOURS):
        weights = kernel[:, :, at[0] + 1, at[1] + 1]
        seen[at] = times(weights, contents.values.T)
        slope[at] = np.repeat(weights[:, [trace]], contents.count, axis=1)
    most = np.maximum(bias + sum(own.max(axis=1) for own in seen.values()), 0)
    require(
        (times(np.abs(mix), most) < EXACT_BELOW).all(), "sums of units are too large for single precision"
    )
    tables = Tables(seen, slope, bias, mix, mix[trace])
    return tables, [f"all weights are whole numbers and no sum exceeds {largest:,g}, so float32 is exact"]


def _ternary_tables(
    arrays: Arrays, contents: Contents, certificate: dict[str, Any]
) -> tuple[Tables, list[str]]:
    """Tables of the paper's filter: answers to questions about one cell first, which must be 0 or 1 and flat
    (or passing), then the sums of them."""
    _require_maps(arrays)
    values = contents.values[:, 0]
    kinks = -arrays["V1.bias"]
    cell = arrays["V1.columns"]
    plain = np.array_equal(arrays["V1.rows"], np.arange(len(kinks))) and (arrays["V1.values"] == 1).all()
    require(plain, "a unit of the first layer does not read one cell with weight 1")
    _only_neighbours(np.isin(np.arange(9), cell).reshape(3, 3))
    ordered = np.sort(values[contents.possible])
    above = np.clip(np.searchsorted(ordered, kinks), 1, len(ordered) - 1)
    margin = float(np.minimum(np.abs(kinks - ordered[above - 1]), np.abs(ordered[above] - kinks)).min())
    require(margin > LEAST_KINK, f"a value is {margin:.3g} from a kink: too near")
    rows, columns, weights = (arrays[f"V2.{part}"] for part in ("rows", "columns", "values"))
    questions = len(arrays["V2.bias"])
    answers = np.repeat(arrays["V2.bias"][:, None], contents.count, axis=1)
    slopes = np.zeros_like(answers)
    np.add.at(answers, rows, weights[:, None] * np.maximum(values[None, :] - kinks[columns, None], 0))
    np.add.at(slopes, rows, weights[:, None] * (values[None, :] > kinks[columns, None]))
    usable = answers[:, contents.possible]
    terms = np.bincount(rows, minlength=questions) + 2
    size = np.bincount(rows, np.abs(weights) * float(np.ptp(ordered)), questions) + np.abs(arrays["V2.bias"])
    rounding = float((np.finfo(np.float64).eps * terms * size).max(initial=0.0))
    require(rounding < LEAST_MARGIN / 4, "the answers to questions are rounded too much")
    answered = (np.minimum(np.abs(usable), np.abs(usable - 1)) <= min(rounding, CLOSE)).all()
    require(answered, "a question about a cell is not answered by 0 or 1")
    claims = {"least_gap": float(np.diff(ordered).min()), "kink_margin": margin, "bump_rounding": rounding}
    require(certificate.keys() == {"encoding", *claims}, "the certificate makes other claims than it should")
    for name, found in claims.items():
        same = math.isclose(finite(certificate[name], name), found, rel_tol=1e-6)
        require(same, f"the certificate claims {name} = {certificate[name]}, not {found:.3g}")
    asked = np.zeros(questions, dtype=np.int64)
    asked[rows] = cell[columns]
    require((asked[rows] == cell[columns]).all(), "a question asks about two cells")
    third = [arrays[f"V3.{part}"] for part in ("rows", "columns", "values")]
    seen, slope = {}, {}
    for at in (HERE, *NEIGHBOURS):
        mine = asked[third[1]] == 3 * (at[0] + 1) + at[1] + 1
        seen[at], slope[at] = (np.zeros((len(arrays["V3.bias"]), contents.count)) for _ in range(2))
        np.add.at(seen[at], third[0][mine], third[2][mine, None] * answers[third[1][mine]])
        np.add.at(slope[at], third[0][mine], third[2][mine, None] * slopes[third[1][mine]])
    fourth = np.zeros((len(arrays["V4.bias"]), len(arrays["V3.bias"])))
    np.add.at(fourth, (arrays["V4.rows"], arrays["V4.columns"]), arrays["V4.values"])
    fifth = np.zeros((1, len(arrays["V4.bias"])))
    np.add.at(fifth, (arrays["V5.rows"], arrays["V5.columns"]), arrays["V5.values"])
    require(not (arrays["V4.bias"].any() or arrays["V5.bias"].any()), "the last two maps have a bias")
    out = times(fifth, fourth)
    return Tables(seen, slope, arrays["V3.bias"], out, out[0]), [
        f"{questions:,} questions about one cell are answered by 0 or 1 for each of the "
        f"{len(contents.possible):,} contents, to {rounding:.3g}; no value is nearer than {margin:.3g} to "
        "a kink",
    ]


def _require_maps(arrays: Arrays) -> None:
    """The entries of the five maps, row by row, each place once, and every map as wide as the one before is
    high."""
    width, names = 9, {"rule_units", "rules"}
    for name in ("V1", "V2", "V3", "V4", "V5"):
        (height,) = array(arrays, f"{name}.bias", np.float64, (None,)).shape
        (entries,) = array(arrays, f"{name}.values", np.float64, (None,)).shape
        rows, columns = (
            array(arrays, f"{name}.{part}", np.int64, (entries,)) for part in ("rows", "columns")
        )
        sizes = np.concatenate([arrays[f"{name}.values"], arrays[f"{name}.bias"]])
        require((np.abs(sizes) <= LARGEST).all(), f"a weight of {name} is too large")
        inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
        require(inside.all() and (np.diff(rows) >= 0).all(), f"an entry of {name} is out of place")
        places = rows * width + columns
        require(len(np.unique(places)) == entries, f"{name} has two entries at one place")
        require(array(arrays, f"{name}.width", np.int64, (1,))[0] == width, f"{name} has another width")
        names |= {f"{name}.{part}" for part in ("rows", "columns", "values", "bias", "width")}
        width = height
    require(width == 1 and arrays.keys() == names, "there are other arrays than those of five maps")


def _only_neighbours(used: NDArray[np.bool_]) -> None:
    require(not used[::2, ::2].any(), "the filter reads a diagonal neighbour")
