"""The paper's filter of an `rcnn` net, from its five maps: questions about one cell that are answered by 0 or
1, and units that add up answers."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tapegrad_check.arithmetic import DOUBLE, rounding
from tapegrad_check.fields import number as finite
from tapegrad_check.folder import require
from tapegrad_check.targets.filters import (
    CELLS,
    CLOSE,
    LEAST_MARGIN,
    Active,
    Contents,
    Filter,
    Form,
    Layers,
    Map,
    Numbers,
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

TERNARY = Form(np.float64, 1 / 6, (True, False, True, False, False))
LARGEST = 2.0**50
"""No weight of the ternary filter is larger; so no sum overflows."""
LEAST_KINK = 1e-14
"""How far from a kink a value must be; it is the sum of a few numbers, each rounded to some 1e-16."""


def ternary_filter(layers: Layers, contents: Contents, certificate: dict[str, Any]) -> Filter:
    """The paper's filter: answers to questions about one cell first, which must be 0 or 1 and flat (or
    passing), then the sums of them, which must not let through by how much the answers are rounded."""
    maps = layers.maps
    for name, own in zip(("V1", "V2", "V3", "V4", "V5"), maps, strict=True):
        sizes = np.concatenate([own.values, own.bias])
        require((np.abs(sizes) <= LARGEST).all(), f"a weight of {name} is too large")
    answers = _answers(maps[0], maps[1], contents)
    claims = {
        "least_gap": float(np.diff(answers.ordered).min()),
        "kink_margin": answers.margin,
        "bump_rounding": answers.rounding,
    }
    named = certificate.keys() == {"encoding", *claims} and certificate["encoding"] == "ternary"
    require(named, "the certificate makes other claims than it should")
    for name, found in claims.items():
        same = math.isclose(finite(certificate[name], name), found, rel_tol=1e-6)
        require(same, f"the certificate claims {name} = {certificate[name]}, not {found:.3g}")
    units = len(maps[2].bias)
    unit, asked, weight, _ = maps[2]
    which, entry = answers.unusual.beyond(asked)
    at, content = answers.cell[asked][which], answers.unusual.row[entry]
    inside = (at > 0) | (content != contents.outside)
    keys = ((unit[which] * len(CELLS) + at) * contents.count + content)[inside]
    keys, amount = summed(keys, (weight[which] * answers.unusual.value[entry])[inside])
    rest, content = np.divmod(keys, contents.count)
    base = maps[2].bias + totals(unit, weight * answers.usual[asked], units)
    found = active(Seen(0, base, rest // len(CELLS), rest % len(CELLS), content, amount))
    require(not (maps[3].bias.any() or maps[4].bias.any()), "the last two maps have a bias")
    fifth = totals(maps[4].columns, maps[4].values, len(maps[3].bias))
    fourth = maps[3].values * fifth[maps[3].rows]
    out = totals(maps[3].columns, fourth, units)
    reach = totals(maps[3].columns, np.abs(fourth), units)
    close = min(CLOSE, answers.margin / 16)
    off_by = 3 * answers.rounding
    sizes = totals(unit, np.abs(weight), units)
    all_terms = (1 + off_by) * sizes + np.abs(maps[2].bias)
    off = off_by * sizes + rounding(np.bincount(unit, minlength=units) + 1, all_terms, 0.0, DOUBLE)
    require((off < LEAST_MARGIN / 4).all(), "a unit adds up answers that are rounded too much")
    heard = _heard(found, out, Weights.of(unit, asked, weight, units), len(answers.usual), contents)
    require(off_by * heard < close / 4, "the rounding of the answers changes the new value of a cell")
    seen, slope = ({at: np.zeros((units, len(contents.memorising))) for at in CELLS} for _ in range(2))
    for number, place in enumerate(CELLS):
        mine = answers.cell[asked] == number
        np.add.at(seen[place], unit[mine], weight[mine, None] * answers.kinds[asked[mine]])
        np.add.at(slope[place], unit[mine], weight[mine, None] * answers.slopes[asked[mine]])
    largest = np.maximum(np.abs(answers.kinds), np.abs(answers.slopes)).max(axis=1, initial=1)
    adds = reach * (np.abs(maps[2].bias) + totals(unit, np.abs(weight) * largest[asked], units))
    memorises = maps[2].bias + sum(own.max(axis=1) for own in seen.values()) >= -LEAST_MARGIN
    terms = int(np.bincount(unit, minlength=1).max()) + len(maps[4].values)
    for total, count in _on_at_once(found, adds, contents), (adds[memorises].sum(), memorises.sum()):
        off = float(rounding(terms + count, total, 0.0, DOUBLE))
        require(off < close / 4, "a sum of units is rounded")
    used = np.flatnonzero(out)
    behind = Weights.of(used, 0 * used, out[used], units)
    return Filter(
        found,
        behind,
        tables_of(seen, slope, maps[2].bias, behind, contents),
        close,
        [
            f"{len(answers.usual):,} questions about one cell are answered by 0 or 1 for each of the "
            f"{len(contents.possible):,} contents, to {answers.rounding:.3g}; no value is nearer than "
            f"{answers.margin:.3g} to a kink",
        ],
    )


def _on_at_once(found: Active, adds: Numbers, contents: Contents) -> tuple[float, int]:
    """What units add to the magnitude of all that is summed up for a new value, while all cells compute, and
    how many they are: those that are usually on, and those that the contents of a patch can turn on."""
    on = found.on > 0
    turned = found.turned > 0
    places = (found.at * contents.count + found.content)[turned]
    own = adds[found.unit[turned]]
    total, count = (
        totals(places, parts, len(CELLS) * contents.count).reshape(len(CELLS), -1).max(axis=1).sum()
        for parts in (own, np.ones(len(own)))
    )
    return float(adds[on].sum() + total), int(on.sum() + count)


def _heard(found: Active, out: Numbers, reads: Weights, questions: int, contents: Contents) -> float:
    """The most that a change of all answers by 1 would change the new value of a cell, while all compute and
    no unit is turned on or off by it: sizes of the derivatives by the answers."""
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
    rounding: float
    cell: Places
    """What cell (a place in `CELLS`) each question is about."""
    usual: Numbers
    unusual: Weights
    """For each question the computing contents, or the padding, that have the other answer; and what that
    adds to the usual one."""
    kinds: Numbers
    slopes: Numbers
    """Answers and derivatives for the kinds of cells of the memorising phase."""


def _answers(cuts: Map, asks: Map, contents: Contents) -> Answers:
    values = np.zeros(contents.count)
    which, _, value = contents.entries(np.arange(contents.count))
    values[which] = value
    kinks, cell = -cuts.bias, cuts.columns
    plain = np.array_equal(cuts.rows, np.arange(len(kinks))) and (cuts.values == 1).all()
    require(plain, "a unit of the first layer does not read one cell with weight 1")
    only_neighbours(np.isin(np.arange(9), cell).reshape(3, 3))
    order = contents.possible[np.argsort(values[contents.possible])]
    ordered = values[order]
    above = np.clip(np.searchsorted(ordered, kinks), 1, len(ordered) - 1)
    margin = float(np.minimum(np.abs(kinks - ordered[above - 1]), np.abs(ordered[above] - kinks)).min())
    require(margin > LEAST_KINK, f"a value is {margin:.3g} from a kink: too near")
    span = float(np.ptp(ordered))
    require((kinks >= ordered[0] - span).all(), "a kink lies so far below all values that they are rounded")
    rows, columns, weights, bias = asks
    questions = len(bias)
    places = np.array([3 * (at[0] + 1) + at[1] + 1 for at in CELLS])
    asked = np.full(questions, places[0])
    asked[rows] = cell[columns]
    require((asked[rows] == cell[columns]).all(), "a question asks about two cells")
    terms = np.bincount(rows, minlength=questions) + 2
    size = totals(rows, np.abs(weights) * span, questions) + np.abs(bias)
    rounding = float((np.finfo(np.float64).eps * terms * size).max(initial=0.0))
    require(rounding < LEAST_MARGIN / 4, "the answers to questions are rounded too much")
    reads = Weights.of(rows, columns, weights, questions)
    pieces = _pieces(reads, bias, kinks, ordered, rounding)
    computes = np.isin(order, contents.computing) | (order == contents.outside)
    before = np.concatenate([[0], np.cumsum(computes)])
    first, end = before[pieces.first], before[pieces.end]
    steep = np.abs(pieces.slope[first < end]).max(initial=0.0)
    require(steep * margin <= rounding, "the answer to a question is not flat where a cell computes")
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


def _pieces(reads: Weights, bias: Numbers, kinks: Numbers, ordered: Numbers, rounding: float) -> Pieces:
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
    near = all((np.abs(found - answer) <= rounding).all() for found in ends)
    require(near and np.isin(answer, (0, 1)).all(), "a question about a cell is not answered by 0 or 1")
    return Pieces(question, first, end, answer, slope)
