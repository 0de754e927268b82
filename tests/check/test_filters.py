"""What the checker of `rcnn` nets works out about a filter, compared with the filter itself on every patch;
and the bounds within which it does so."""

import copy
from itertools import product
from typing import Any

import numpy as np
import pytest

from tapegrad_check import CHECKERS, CheckError
from tapegrad_check.folder import Unchecked
from tapegrad_check.targets import rcnn
from tapegrad_check.targets.rcnn import HERE, NEIGHBOURS, Contents, Tables
from tests.check.altering import Net
from tests.check.test_refusals import genuine

AT = (HERE, *NEIGHBOURS)
CONTENTS = 4
"""In the small tables below: 0 lies outside, the others compute."""


def tables(units: list[dict[Any, list[float]]], bias: list[float], out: list[list[float]]) -> Tables:
    """For each unit, what it adds for each content of those cells that it looks at."""
    seen = {at: np.array([unit.get(at, [0.0] * CONTENTS) for unit in units]) for at in AT}
    flat = {at: np.zeros_like(own) for at, own in seen.items()}
    return Tables(seen, flat, np.array(bias), np.array(out), np.zeros(len(units)))


def patches() -> list[dict[Any, int]]:
    """Only the centre may not lie outside."""
    around = [[0, 1, 2, 3]] * 4
    return [dict(zip(AT, (here, *rest), strict=True)) for here in (1, 2, 3) for rest in product(*around)]


def random_unit(random: np.random.Generator) -> tuple[dict[Any, list[float]], float]:
    """One that is always off, one that one cell turns on and off, or one that is always on."""
    at = AT[random.integers(5)]
    weights = random.integers(-3, 4, CONTENTS).astype(float)
    if at == HERE:
        weights[0] = 50.0  # the centre is never outside
    match random.integers(3):
        case 0:
            return {at: weights.tolist(), AT[random.integers(5)]: [1.0, -1.0, 0.0, 1.0]}, -60.0
        case 1:
            constant = AT[(AT.index(at) + 1) % 5]
            return {at: weights.tolist(), constant: [2.0] * CONTENTS}, float(random.integers(-4, 2))
    return {}, float(random.integers(1, 5))


@pytest.mark.parametrize("seed", range(8))
def test_what_single_cells_contribute_adds_up_to_the_filter(seed: int) -> None:
    random = np.random.default_rng(seed)
    units, bias = zip(*(random_unit(random) for _ in range(6)), strict=True)
    found = tables(list(units), list(bias), random.integers(-2, 3, (2, 6)).astype(float).tolist())
    base, parts = found.additive([1, 2, 3])
    for patch in patches():
        total = base + sum(parts[at][content] for at, content in patch.items())
        assert np.array_equal(total, found.output(patch)[0])


TWO = {HERE: [0.0, 0.0, 1.0, 2.0], (0, 1): [0.0, 0.0, 1.0, 0.0]}
"""Looks at two cells."""


def test_units_that_look_at_several_cells_must_be_on_and_cancel() -> None:
    base, parts = tables([TWO, TWO], [1.0, 1.0], [[1.0, -1.0]]).additive([1, 2, 3])
    assert not base.any()
    assert not any(own.any() for own in parts.values())
    base, _ = tables([TWO, TWO, {}], [1.0, 1.0, 3.0], [[1.0, -1.0, 2.0]]).additive([1, 2, 3])
    assert base.tolist() == [6.0]
    for bias, out in (
        ([1.0, 1.0], [[1.0, 1.0]]),  # on, and they do not cancel
        ([0.1, 0.1], [[1.0, -1.0]]),  # cancel, but too near their threshold
        ([-1.0, -1.0], [[1.0, -1.0]]),  # on for some patches only
        ([1.0, 1.0], [[1.0, -1.0], [0.0, 1e-6]]),  # the second output hears them
    ):
        with pytest.raises(CheckError, match="several cells at once"):
            tables([TWO, TWO], bias, out).additive([1, 2, 3])
    base, _ = tables([TWO], [-3.25], [[1.0]]).additive([1, 2, 3])
    assert base.tolist() == [0.0]  # always off, by more than the margin
    with pytest.raises(CheckError, match="several cells at once"):
        tables([TWO], [-3.1], [[1.0]]).additive([1, 2, 3])


def test_each_content_has_its_numbers() -> None:
    """Symbols beyond the third, and states beyond the first, are words over -1 and +1."""
    assert [rcnn._digits(words) for words in range(-1, 10)] == [0, 0, 1, 1, 2, 2, 3, 3, 3, 3, 4]
    assert [rcnn._word(n, 2, 1) for n in range(4)] == [s / 3 + t / 9 for t in (-1, 1) for s in (-1, 1)]
    for symbols, states in ((2, 1), (3, 2), (5, 3), (6, 5)):
        for encoding in ("channels", "ternary"):
            contents = Contents(symbols, states, encoding)
            values = contents.values[contents.possible]
            alike = encoding == "channels"  # there, what lies outside counts as empty
            assert len(np.unique(values.round(9), axis=0)) == len(values) - alike
            seen = {contents.facts(n) for n in range(2, contents.count)}
            assert seen == set(product((0, 1), range(symbols), range(-1, states)))
            cases = product((0, 1), range(symbols), range(states))
            heads = [contents.number(work, symbol, 1, state) for work, symbol, state in cases]
            bare = [contents.number(work, symbol, 1) for work, symbol in product((0, 1), range(symbols))]
            assert contents.computing == sorted(heads + bare)
            for number in heads:
                work, symbol, state = contents.facts(number)
                without = contents.value(contents.number(work, symbol, 1))
                assert np.allclose(contents.value(number), without + contents.head(state), atol=1e-15)


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
    statements = CHECKERS["rcnn"](net.config, net.arrays, net.claims, net.source).statements
    assert any(f"on {count:,} patches of the memorising phase" in statement for statement in statements)


def refusal(net: Net) -> str:
    with pytest.raises(CheckError) as refused:
        net.verdict("rcnn")
    return str(refused.value)


def test_bounds_on_a_filter_are_where_they_should_be() -> None:
    """What is just inside is refused for another reason."""
    net = copy.deepcopy(genuine("rcnn ternary"))
    values = Contents(2, len(net.config["states"]), "ternary").values[:, 0]
    nearest = values[np.argmin(np.abs(values + net.arrays["V1.bias"][0]))]
    for distance, near in ((0.5e-14, True), (1.5e-14, False), (-1.5e-14, False), (-0.5e-14, True)):
        net.put("V1.bias", 0, -(nearest + distance))
        assert ("too near" in refusal(net)) is near
    net = copy.deepcopy(genuine("rcnn"))
    for weight, exact in ((2.0**24 - 40, True), (2.0**24, False)):
        net.put("kernel", (0, 0, 1, 1), weight)
        largest = float((np.abs(net.arrays["kernel"]).sum(axis=(1, 2, 3)) + np.abs(net.arrays["bias"])).max())
        net.claims["largest_sum"] = largest
        assert (largest < 2**24) is exact
        assert ("sums reach" not in refusal(net)) is exact
    for fits, too_large in (((1_491_308, 2, 2), (1_491_309, 2, 2)), ((1, 2, 8189), (1, 2, 8190))):
        rcnn._require_room(*fits)  # 10 * 1,491,308 * 18 and 8,191 * 32,766 are below 2^28
        with pytest.raises(Unchecked, match="too large to be checked"):
            rcnn._require_room(*too_large)
