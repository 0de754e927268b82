"""The paper's filter of an `rcnn` net, from its five maps: questions about one cell that are answered by 0 or
1, and units that add up answers."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tapegrad_check.fields import array
from tapegrad_check.fields import number as finite
from tapegrad_check.folder import Arrays, require
from tapegrad_check.targets.filters import (
    CELLS,
    CLOSE,
    LEAST_MARGIN,
    Active,
    Contents,
    Filter,
    Numbers,
    Offset,
    Places,
    Seen,
    Weights,
    active,
    only_neighbours,
    spread,
    summed,
    tables_of,
    totals,
)

LARGEST = 2.0**50
"""No weight of the ternary filter is larger; so no sum overflows."""
EPSILON = float(np.finfo(np.float64).eps)
LEAST_KINK = 1e-14
"""How far from a kink a value must be; it is the sum of a few numbers, each rounded to some 1e-16."""


def ternary_filter(arrays: Arrays, contents: Contents, certificate: dict[str, Any]) -> Filter:
    """The paper's filter: answers to questions about one cell first, which must be 0 or 1 and flat (or
    passing), then the sums of them, which must not let through by how much the answers are rounded."""
    _require_maps(arrays)
    answers = _answers(arrays, contents)
    claims = {
        "least_gap": float(np.diff(answers.ordered).min()),
        "kink_margin": answers.margin,
        "bump_rounding": answers.most_rounded,
    }
    require(certificate.keys() == {"encoding", *claims}, "the certificate makes other claims than it should")
    for name, found in claims.items():
        same = math.isclose(finite(certificate[name], name), found, rel_tol=1e-6)
        require(same, f"the certificate claims {name} = {certificate[name]}, not {found:.3g}")
    units = len(arrays["V3.bias"])
    unit, asked, weight = (arrays[f"V3.{part}"] for part in ("rows", "columns", "values"))
    which, entry = answers.unusual.beyond(asked)
    at, content = answers.cell[asked][which], answers.unusual.row[entry]
    inside = (at > 0) | (content != contents.outside)
    keys = ((unit[which] * len(CELLS) + at) * contents.count + content)[inside]
    keys, amount = summed(keys, (weight[which] * answers.unusual.value[entry])[inside])
    rest, content = np.divmod(keys, contents.count)
    base = arrays["V3.bias"] + totals(unit, weight * answers.usual[asked], units)
    found = active(Seen(0, base, rest // len(CELLS), rest % len(CELLS), content, amount))
    require(not (arrays["V4.bias"].any() or arrays["V5.bias"].any()), "the last two maps have a bias")
    out, loud = (_through(arrays, part) for part in (np.positive, np.abs))
    close = min(CLOSE, answers.margin / 16)
    off = 3 * answers.rounding[asked] * weight
    sums = totals(unit, np.abs(weight), units) + np.abs(arrays["V3.bias"])
    own = EPSILON * (np.bincount(unit, minlength=units) + 2) * sums
    too_much = totals(unit, np.abs(off), units) + own >= LEAST_MARGIN / 4
    require(not too_much.any(), "a unit adds up answers that are rounded too much")
    heard = _heard(found, out, Weights.of(unit, asked, off, units), len(answers.usual), contents)
    require(heard < close / 4, "the rounding of the answers changes the new value of a cell")
    seen, slope = ({at: np.zeros((units, len(contents.memorising))) for at in CELLS} for _ in range(2))
    for number, place in enumerate(CELLS):
        mine = answers.cell[asked] == number
        np.add.at(seen[place], unit[mine], weight[mine, None] * answers.kinds[asked[mine]])
        np.add.at(slope[place], unit[mine], weight[mine, None] * answers.slopes[asked[mine]])
    rounded = _rounded(found, loud, own, arrays, seen, contents)
    require(rounded < close / 4, "sums of units are rounded so much that the new value of a cell is another")
    used = np.flatnonzero(out)
    behind = Weights.of(used, 0 * used, out[used], units)
    return Filter(
        found,
        behind,
        tables_of(seen, slope, arrays["V3.bias"], behind, contents),
        close,
        [
            f"{len(answers.usual):,} questions about one cell are answered by 0 or 1 for each of the "
            f"{len(contents.possible):,} contents, to {answers.most_rounded:.3g}; no value is nearer than "
            f"{answers.margin:.3g} to a kink",
        ],
    )


def _through(arrays: Arrays, part: Any) -> Numbers:
    """What each unit adds to the new value by all digits together; of their sizes, what there is to round."""
    fifth = totals(arrays["V5.columns"], part(arrays["V5.values"]), len(arrays["V4.bias"]))
    fourth = part(arrays["V4.values"]) * fifth[arrays["V4.rows"]]
    return totals(arrays["V4.columns"], fourth, len(arrays["V3.bias"]))


def _rounded(
    found: Active,
    loud: Numbers,
    own: Numbers,
    arrays: Arrays,
    seen: dict[Offset, Numbers],
    contents: Contents,
) -> float:
    """The most by which the last three maps round the new value, in the net and here: that each unit is
    rounded by `own`, and the digits add up what is `loud`. Units that are on in every patch count, and for
    each cell those that the worst of its contents turns on or raises; while cells memorise, all that can be
    on in some patch."""

    def worst(always: Numbers, more: Numbers) -> float:
        keys, sums = summed(found.at * contents.count + found.content, more)
        of_cell = np.zeros(len(CELLS))
        np.maximum.at(of_cell, keys // contents.count, sums)
        return float(always.sum() + of_cell.sum())

    digits, unit = len(arrays["V4.bias"]) + 2, found.unit
    each = EPSILON * (worst(found.on, np.ones(len(unit))) + digits)
    more = loud[unit] * (own[unit] + each * np.abs(found.more))
    computing = worst(loud * found.on * (own + each * np.abs(found.base)), more)
    most = np.maximum(arrays["V3.bias"] + sum(own.max(axis=1) for own in seen.values()), 0)
    each = EPSILON * (np.count_nonzero(most) + digits)
    memorising = float((loud * (most > 0) * (own + each * most)).sum())
    return 2 * max(computing, memorising)


def _heard(found: Active, out: Numbers, reads: Weights, questions: int, contents: Contents) -> float:
    """The most that changes of all answers would change the new value of a cell, while all compute and no
    unit is turned on or off by them: sizes of the derivatives by the answers, weights times the changes."""
    which, entry = reads.beyond(np.flatnonzero(found.on))
    always = out[np.flatnonzero(found.on)[which]] * reads.value[entry]
    _, steady = summed(reads.row[entry], always)
    which, entry = reads.beyond(found.unit)
    keys = (found.at * contents.count + found.content)[which] * questions + reads.row[entry]
    _, turned = summed(keys, (out[found.unit] * found.turned)[which] * reads.value[entry])
    return float(np.abs(steady).sum() + np.abs(turned).sum())


@dataclass(frozen=True)
class Answers:
    """The answers to questions about one cell."""

    ordered: Numbers
    """The values that a cell can have, in rising order."""
    margin: float
    rounding: Numbers
    """Of each question's answer."""
    cell: Places
    """What cell (a place in `CELLS`) each question is about."""
    usual: Numbers
    unusual: Weights
    """For each question the computing contents, or the padding, that have the other answer; and what that
    adds to the usual one."""
    kinds: Numbers
    slopes: Numbers
    """Answers and derivatives for the kinds of cells of the memorising phase."""

    @property
    def most_rounded(self) -> float:
        """Of any question."""
        return float(self.rounding.max(initial=0.0))


def _answers(arrays: Arrays, contents: Contents) -> Answers:
    values = np.zeros(contents.count)
    which, _, value = contents.entries(np.arange(contents.count))
    values[which] = value
    kinks, cell = -arrays["V1.bias"], arrays["V1.columns"]
    plain = np.array_equal(arrays["V1.rows"], np.arange(len(kinks))) and (arrays["V1.values"] == 1).all()
    require(plain, "a unit of the first layer does not read one cell with weight 1")
    only_neighbours(np.isin(np.arange(9), cell).reshape(3, 3))
    order = contents.possible[np.argsort(values[contents.possible])]
    ordered = values[order]
    above = np.clip(np.searchsorted(ordered, kinks), 1, len(ordered) - 1)
    margin = float(np.minimum(np.abs(kinks - ordered[above - 1]), np.abs(ordered[above] - kinks)).min())
    require(margin > LEAST_KINK, f"a value is {margin:.3g} from a kink: too near")
    span = float(np.ptp(ordered))
    near = (
        kinks >= ordered[0] - span
    ).all()  # or what a unit gives would be rounded more than the values are
    require(near, "a kink lies far below all values")
    bias, questions = arrays["V2.bias"], len(arrays["V2.bias"])
    rows, columns, weights = (arrays[f"V2.{part}"] for part in ("rows", "columns", "values"))
    places = np.array([3 * (at[0] + 1) + at[1] + 1 for at in CELLS])
    asked = np.full(questions, places[0])
    asked[rows] = cell[columns]
    require((asked[rows] == cell[columns]).all(), "a question asks about two cells")
    terms = np.bincount(rows, minlength=questions) + 2
    size = totals(rows, np.abs(weights) * span, questions) + np.abs(bias)
    rounding = EPSILON * terms * size
    require((rounding < LEAST_MARGIN / 4).all(), "the answers to questions are rounded too much")
    reads = Weights.of(rows, columns, weights, questions)
    pieces = _pieces(reads, bias, kinks, ordered, rounding)
    computes = np.isin(order, contents.computing) | (order == contents.outside)
    before = np.concatenate([[0], np.cumsum(computes)])
    first, end = before[pieces.first], before[pieces.end]
    flat = np.abs(pieces.slope) * margin <= rounding[pieces.question]
    require(flat[first < end].all(), "the answer to a question is not flat where a cell computes")
    yes = totals(pieces.question, pieces.answer * (end - first), questions)
    usual = (2 * yes > before[-1]) * 1.0
    other = pieces.answer != usual[pieces.question]
    which, place = spread(first[other], end[other])
    question = pieces.question[other][which]
    unusual = Weights.of(question, order[computes][place], 1 - 2 * usual[question], questions)
    kinds, slopes = (
        np.repeat(bias[:, None], len(contents.memorising), axis=1),
        np.zeros((questions, len(contents.memorising))),
    )
    at_kind = values[contents.memorising]
    np.add.at(kinds, rows, weights[:, None] * np.maximum(at_kind - kinks[columns, None], 0))
    np.add.at(slopes, rows, weights[:, None] * (at_kind > kinks[columns, None]))
    number = np.full(9, -1)
    number[places] = np.arange(len(places))
    return Answers(ordered, margin, rounding, number[asked], usual, unusual, kinds, slopes)


class Pieces(NamedTuple):
    """The answer to a question for the values `first` to `end`, in rising order, between two kinks."""

    question: Places
    first: Places
    end: Places
    answer: Numbers
    slope: Numbers


def _pieces(reads: Weights, bias: Numbers, kinks: Numbers, ordered: Numbers, rounding: Numbers) -> Pieces:
    """Between two kinks an answer is affine, so its ends decide for all values there: those in between differ
    from 0 or 1 by the rounding at the ends and their own."""
    questions = len(bias)
    inner = np.repeat(np.arange(questions), np.diff(reads.start))
    cuts = np.searchsorted(ordered, kinks[reads.row])
    first = np.concatenate([np.zeros(questions, np.int64), cuts])
    question = np.concatenate([np.arange(questions), inner])
    turn = np.lexsort((first, question))
    question, first = question[turn], first[turn]
    last = np.append(question[1:] != question[:-1], True)
    end = np.where(last, len(ordered), np.append(first[1:], 0))
    some = first < end
    question, first, end = question[some], first[some], end[some]
    which, entry = reads.beyond(question)
    ends, weight, kink = [], reads.value[entry], kinks[reads.row[entry]]
    for value in (ordered[first], ordered[end - 1]):
        terms = weight * np.maximum(value[which] - kink, 0)
        ends.append(bias[question] + totals(which, terms, len(question)))
    slope = totals(which, weight * (ordered[first][which] > kink), len(question))
    answer = np.rint(ends[0])
    near = all((np.abs(found - answer) <= rounding[question]).all() for found in ends)
    require(near and np.isin(answer, (0, 1)).all(), "a question about a cell is not answered by 0 or 1")
    return Pieces(question, first, end, answer, slope)


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
