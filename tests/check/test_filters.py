"""What the checker of `rcnn` nets works out about a filter, compared with the filter itself on every patch;
and the bounds within which it does so."""

import copy
import re
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from tapegrad.learners import parity, perceptron
from tapegrad.lowering.grid_learner import grid_learner
from tapegrad.machines.sampler import random_grid_machine
from tapegrad_check import CheckError
from tapegrad_check.folder import COMPUTES_SOURCE, Unchecked
from tapegrad_check.sources import GridMachine
from tapegrad_check.targets import filters, rcnn
from tapegrad_check.targets.filters import CELLS, HERE, Contents, Seen, active
from tests.check.altering import RULES, Change, Channels, Net, net_of
from tests.check.test_refusals import genuine

CONTENTS = 4
"""In the small tables below: 0 lies outside, the others compute."""


def seen(units: list[dict[Any, list[float]]], bias: list[float]) -> Seen:
    """For each unit, what it adds for each content of those cells that it looks at, beside content 1."""
    base, found = np.array(bias), []
    for unit, cells in enumerate(units):
        for at, amounts in cells.items():
            base[unit] += amounts[1]
            contents = [c for c in range(CONTENTS) if (c or at != HERE) and amounts[c] != amounts[1]]
            found += [(unit, CELLS.index(at), c, amounts[c] - amounts[1]) for c in contents]
    unit, at, content, amount = np.array(found, float).reshape(-1, 4).T
    return Seen(0, base, unit.astype(int), at.astype(int), content.astype(int), amount)


def patches() -> list[dict[Any, int]]:
    """Only the centre may not lie outside."""
    around = [[0, 1, 2, 3]] * 4
    return [dict(zip(CELLS, (here, *rest), strict=True)) for here in (1, 2, 3) for rest in product(*around)]


def random_unit(random: np.random.Generator) -> tuple[dict[Any, list[float]], float]:
    """One that is always off, one that one cell turns on and off, one that is always on, or one that is
    always on and looks at two cells."""
    at, other = (CELLS[n] for n in random.permutation(5)[:2])
    weights = random.integers(-3, 4, CONTENTS).astype(float)
    if at == HERE:
        weights[0] = 50.0  # the centre is never outside
    match random.integers(4):
        case 0:
            return {at: weights.tolist(), other: [1.0, -1.0, 0.0, 1.0]}, -60.0
        case 1:
            return {at: weights.tolist(), other: [2.0] * CONTENTS}, random.integers(-4, 2) + 0.5
        case 2:
            return {at: weights.tolist(), other: [1.0, -1.0, 0.0, 1.0]}, 5.0
    return {}, float(random.integers(1, 5))


@pytest.mark.parametrize("seed", range(8))
def test_what_single_cells_contribute_adds_up_to_the_units(seed: int) -> None:
    random = np.random.default_rng(seed)
    units, bias = zip(*(random_unit(random) for _ in range(8)), strict=True)
    found = active(seen(list(units), list(bias)))
    for patch in patches():
        sums = [b + sum(unit[at][patch[at]] for at in unit) for unit, b in zip(units, bias, strict=True)]
        total, on = found.base.copy(), found.on.copy()
        for unit, at, content, more, turned in zip(*found[2:], strict=True):
            if patch[CELLS[at]] == content:
                total[unit] += more
                on[unit] += turned
        assert np.array_equal(total, np.maximum(sums, 0))
        assert np.array_equal(on, np.array(sums) > 0)


TWO = {HERE: [0.0, 0.0, 1.0, 2.0], (0, 1): [0.0, 0.0, 1.0, 0.0]}
"""Looks at two cells."""


def test_units_that_look_at_several_cells_must_be_on_or_off() -> None:
    assert active(seen([TWO], [0.25])).on.tolist() == [1.0]
    assert not active(seen([TWO], [-3.25])).unit.size  # always off, by more than the margin
    for bias in (0.1, -1.0, -3.1):
        with pytest.raises(CheckError, match="several cells at once"):
            active(seen([TWO], [bias]))
    one = {HERE: [0.0, 0.0, 1.0, 1.0]}
    assert active(seen([one], [-0.5])).more.tolist() == [0.5, 0.5]
    for bias in (-0.9, -1.1, 0.1, -0.1):
        with pytest.raises(CheckError, match="neither on nor off"):
            active(seen([one], [bias]))


def test_each_content_has_its_numbers() -> None:
    """Symbols beyond the third, and states beyond the first, are words over -1 and +1."""
    assert [filters._digits(words) for words in range(-1, 10)] == [0, 0, 1, 1, 2, 2, 3, 3, 3, 3, 4]
    assert [filters._word(n, 2, 1) for n in range(4)] == [s / 3 + t / 9 for t in (-1, 1) for s in (-1, 1)]
    for symbols, states in ((2, 1), (3, 2), (5, 3), (6, 5)):
        for encoding in ("channels", "ternary"):
            contents = Contents(symbols, states, encoding)
            values = np.array([contents.value(number) for number in contents.possible])
            alike = encoding == "channels"  # there, what lies outside counts as empty
            assert len(np.unique(values.round(9), axis=0)) == len(values) - alike
            seen = {contents.facts(n) for n in range(2, contents.count)}
            assert seen == set(product((0, 1), range(symbols), range(-1, states)))
            cases = product((0, 1), range(symbols), range(states))
            heads = [contents.number(work, symbol, 1, state) for work, symbol, state in cases]
            bare = [contents.number(work, symbol, 1) for work, symbol in product((0, 1), range(symbols))]
            assert contents.computing.tolist() == sorted(heads + bare)
            for number in heads:
                work, symbol, state = contents.facts(number)
                without = contents.value(contents.number(work, symbol, 1))
                channel, more = contents.head(state)
                without[channel] += more
                assert np.allclose(contents.value(number), without, atol=1e-15)


def test_the_largest_number_that_a_unit_sees_is_that_of_some_content() -> None:
    random = np.random.default_rng(0)
    contents = Contents(4, 3, "channels")
    view = random.integers(-5, 6, (200, contents.width)).astype(np.float32)
    values = np.array([contents.value(number) for number in range(contents.count)])
    assert np.array_equal(filters._most(view, contents), (view @ values.T).max(axis=1))
    assert [contents.describe(number)[:13] for number in (0, 1, 2)] == [
        "the padding",
        "a memorising ",
        "content (work",
    ]


def test_only_the_four_neighbours_may_be_read() -> None:
    for place in range(9):
        used = np.arange(9).reshape(3, 3) == place
        if place in (0, 2, 6, 8):
            with pytest.raises(CheckError, match="diagonal"):
                filters.only_neighbours(used)
        else:
            filters.only_neighbours(used)


@pytest.mark.parametrize("name", ["rcnn", "rcnn ternary"])
def test_every_patch_that_can_occur_while_memorising_is_checked(name: str) -> None:
    """Cells are empty (e), written (w), memorising (m) or frame (f). A message comes from one side only, has
    passed when the last cell is written, and starts in the row that writes."""
    count = 0
    for here, above, below, _, after in product("ewmf", repeat=5):
        from_both = here in "ew" and above == below == "m"
        last_cell = here == "w" and after == below == "f"
        late = last_cell and "m" in (above, below)
        starts = here == "e" and above in "fw"
        count += not (from_both or late or (starts and below == "m"))
    net = genuine(name)
    statements = net.checked("rcnn").statements
    assert any(f"on {count:,} patches of the memorising phase" in statement for statement in statements)


def refusal(net: Net) -> str:
    with pytest.raises(CheckError) as refused:
        net.verdict("rcnn")
    return str(refused.value)


def test_bounds_on_a_filter_are_where_they_should_be() -> None:
    """What is just inside is refused for another reason."""
    net = copy.deepcopy(genuine("rcnn ternary"))
    contents = Contents(2, len(net.config["states"]), "ternary")
    values = np.array([contents.value(number)[0] for number in contents.possible])
    nearest = values[np.argmin(np.abs(values + net.arrays["network.filter.0.bias"][0]))]
    for distance, near in ((0.5e-14, True), (1.5e-14, False), (-1.5e-14, False), (-0.5e-14, True)):
        net.put("network.filter.0.bias", 0, -(nearest + distance))
        assert ("too near" in refusal(net)) is near
    net = copy.deepcopy(genuine("rcnn"))
    for weight, exact in ((2.0**24 - 40, True), (2.0**24, False)):
        own = Channels(net)
        own.kernel[0, 0, 1, 1] = weight
        own.write()
        net.claims["largest_sum"] = largest = own.largest
        assert (largest < 2**24) is exact
        assert ("sums reach" not in refusal(net)) is exact
    for fits, too_large in (((2_684_354, 2, 2), (2_684_355, 2, 2)), ((1, 2, 1_048_573), (1, 2, 1_048_574))):
        rcnn._require_room(*fits)  # 25 * 2,684,354 and 16 * 4,194,302 are below 2^26
        with pytest.raises(Unchecked, match="too large to be checked"):
            rcnn._require_room(*too_large)
    with pytest.raises(Unchecked, match="too many contents"):
        filters.spread(np.zeros(2, np.int64), np.array([1, 1 << 26]))


@cache
def traced(bits: int = 2) -> Net:
    """A learner traced from Python, as a machine on the grid: 637 states for 2 bits."""
    return net_of(grid_learner(parity(bits)).machine, "rcnn", {"form": "paper"})


def last_digit(net: Net) -> None:
    """The head comes in another state: the last digit, 3^-13, has the other sign."""
    units = net.arrays["network.filter.3.columns"][
        net.arrays["network.filter.3.rows"] == len(net.arrays["network.filter.3.bias"]) - 1
    ]
    unit = units[len(units) // 2 - len(units) // 2 % 2]
    last = net.arrays["network.filter.3.rows"] == len(net.arrays["network.filter.3.bias"]) - 1
    pair = last & np.isin(net.arrays["network.filter.3.columns"], (unit, unit + 1))
    assert pair.sum() == 2
    net.arrays["network.filter.3.values"] = np.where(pair, -1, 1) * net.arrays["network.filter.3.values"]


def other_machine(net: Net) -> None:
    """Source and table of a machine one of whose rules goes to the next state."""
    assert isinstance(net.source, GridMachine)
    case, rule = list(net.source.rules.items())[len(net.source.rules) // 2]
    states = net.source.states
    other = (states.index(rule.state) + 1) % len(states)
    place = states.index(case[0]), net.source.alphabet.index(case[1]), 2
    net.machine(rules={**net.source.rules, case: replace(rule, state=states[other])})
    net.put("rules", place, other)


def add_unit(net: Net, reads: dict[int, float], bias: float, digit: int, weight: float) -> None:
    """One more unit of the last ReLU layer, with what it reads, and the digit that hears it."""
    unit = len(net.arrays["network.filter.2.bias"])
    for name, value in (
        ("network.filter.2.rows", unit),
        ("network.filter.2.columns", 0),
        ("network.filter.2.values", 0.0),
    ):
        more = {
            "network.filter.2.rows": [unit] * len(reads),
            "network.filter.2.columns": list(reads),
            "network.filter.2.values": list(reads.values()),
        }
        net.arrays[name] = np.append(net.arrays[name], np.array(more[name], type(value)))
    net.arrays["network.filter.2.bias"] = np.append(net.arrays["network.filter.2.bias"], bias)
    place = int(np.searchsorted(net.arrays["network.filter.3.rows"], digit, side="right"))
    for name, value in (("rows", digit), ("columns", unit), ("values", weight)):
        net.arrays[f"network.filter.3.{name}"] = np.insert(
            net.arrays[f"network.filter.3.{name}"], place, value
        )


def question(net: Net, at: int, place: int = -1) -> int:
    """A question about this cell (0 to 8) that few contents answer by yes."""
    asked = net.arrays["network.filter.0.columns"][net.arrays["network.filter.1.columns"]]
    return int(net.arrays["network.filter.1.rows"][asked == at][place])


def leak(net: Net) -> None:
    """Two units that are always on: one hears a little of a head above, the other takes back the rest."""
    add_unit(net, {question(net, 1): 0.15}, 1.0, 1, 1.0)
    add_unit(net, {}, 1.0, 1, -1.0)


def same_at_the_ends(net: Net) -> None:
    """Two units that are always on and read different neighbours: equal where both see most, or least."""
    here = question(net, 4)
    add_unit(net, {here: 1.0, question(net, 1): 1.0}, 1.0, 1, 1.0)
    add_unit(net, {here: 1.0, question(net, 7): 1.0}, 1.0, 1, -1.0)


def constant_question(net: Net) -> None:
    """A question that reads no cell, always answered by 1, turns off the units of a rule."""
    question = len(net.arrays["network.filter.1.bias"])
    net.arrays["network.filter.1.bias"] = np.append(net.arrays["network.filter.1.bias"], 1.0)
    first = int(net.arrays[RULES][-1])
    for unit in (first, first + 1):
        place = int(np.searchsorted(net.arrays["network.filter.2.rows"], unit, side="right"))
        for name, value in (("rows", unit), ("columns", question), ("values", -1.0)):
            net.arrays[f"network.filter.2.{name}"] = np.insert(
                net.arrays[f"network.filter.2.{name}"], place, value
            )


def heard_rounding(net: Net) -> None:
    """Three units that add up to 0 where the answer is exactly 0 or 1, and pass on by how much it is not."""
    head = question(net, 4)
    add_unit(net, {head: 1.0}, 0.5, 1, 1.0)
    add_unit(net, {head: 1.0}, -0.5, 1, -2.0)
    add_unit(net, {}, 0.5, 1, -1.0)


def heard_from_two(net: Net) -> None:
    """The same where two questions are heard with opposite signs."""
    one, other = question(net, 4), question(net, 4, 0)
    add_unit(net, {one: 1.0, other: -1.0}, -0.5, 1, 1.0)
    add_unit(net, {one: 1.0}, -0.25, 1, -1.0)
    add_unit(net, {one: 1.0}, -0.75, 1, 1.0)


def steep(net: Net) -> None:
    """An answer that is 1 at a value of a computing cell, but not flat there."""
    contents = Contents(3, len(net.config["states"]), "ternary")
    values = np.array([contents.value(number)[0] for number in contents.possible])
    entries = np.flatnonzero(net.arrays["network.filter.1.rows"] == question(net, 4))[:4]
    low, rise, fall, high = -net.arrays["network.filter.0.bias"][
        net.arrays["network.filter.1.columns"][entries]
    ]
    (value,) = values[(values > rise) & (values < fall)]
    slope = 1e-3 / (fall - rise)
    up = (1 - slope * (value - rise)) / (rise - low)
    down = (1 + slope * (fall - value)) / (high - fall)
    net.put("network.filter.1.values", entries, [up, slope - up, -slope - down, down])


FORGED: list[tuple[str, Change]] = [
    ("off by", last_digit),
    ("off by", other_machine),
    ("rounding of the answers", leak),
    ("rounding of the answers", same_at_the_ends),
    ("off by|running wrongly", constant_question),
    ("rounding of the answers", heard_rounding),
    ("rounding of the answers", heard_from_two),
    ("not flat", steep),
    ("running wrongly", lambda net: net.add("network.filter.2.bias", net.arrays[RULES][100], -0.5)),
    ("running wrongly", lambda net: net.arrays.update({RULES: net.arrays[RULES][:-1]})),
]


@pytest.mark.parametrize(("reason", "change"), FORGED, ids=lambda case: getattr(case, "__name__", None))
def test_large_filters_pass_and_forged_ones_are_refused(reason: str, change: Change) -> None:
    net = replace(traced(), arrays=dict(traced().arrays))
    assert len(net.config["states"]) == 637
    assert net.verdict("rcnn") == COMPUTES_SOURCE
    change(net)
    assert re.search(reason, refusal(net))


@pytest.mark.parametrize("change", [leak, same_at_the_ends, constant_question])
def test_small_filters_let_nothing_through(change: Change) -> None:
    net = net_of(random_grid_machine(3, states=5, symbols=3), "rcnn", {"form": "paper"})
    assert net.verdict("rcnn") == COMPUTES_SOURCE
    change(net)
    assert "off by" in refusal(net)


@pytest.mark.slow
def test_a_perceptron_of_9654_states_is_checked() -> None:
    net = net_of(grid_learner(perceptron(3, 16)).machine, "rcnn", {"form": "paper"})
    assert len(net.config["states"]) == 9654
    assert net.verdict("rcnn") == COMPUTES_SOURCE
    for change in (last_digit, other_machine):
        forged = replace(net, arrays=dict(net.arrays))
        change(forged)
        assert "off by" in refusal(forged)


def test_a_channel_filter_of_more_states_than_a_full_table_has_room_for_is_checked() -> None:
    net = net_of(random_grid_machine(5, states=640, symbols=2), "rcnn", {"form": "practical"})
    assert net.verdict("rcnn") == COMPUTES_SOURCE
    other_machine(net)
    assert "off by" in refusal(net)


def test_derivatives_that_single_precision_loses() -> None:
    """Two units that are on in memory cells alone, a hair above their thresholds: what they add cancels, and
    so do 2^24 and -2^24 in the derivative, beside which the 1 of another unit would be lost."""
    for slope, large in ((2.0**8, False), (2.0**22, True)):
        net = copy.deepcopy(genuine("rcnn"))
        own = Channels(net)
        pair = np.zeros((2, *own.kernel.shape[1:]), np.float32)
        pair[:, filters.MEMORISING, 1, 1] = pair[:, filters.TRACE, 1, 1] = slope
        more = np.zeros((len(own.mix), 2), np.float32)
        more[filters.TRACE] = 4, -4
        own.kernel = np.concatenate([own.kernel, pair])
        own.bias = np.append(own.bias, np.full(2, 1 - slope, np.float32))
        own.mix = np.concatenate([own.mix, more], axis=1)
        own.write()
        net.claims["largest_sum"] = max(net.claims["largest_sum"], 3 * slope - 1)
        if large:
            with pytest.raises(CheckError, match="sums of units are too large"):
                net.verdict("rcnn")
        else:
            assert net.verdict("rcnn") == COMPUTES_SOURCE
