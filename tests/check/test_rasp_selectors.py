"""What the checker proves of the heads of RASP nets within its bounds, singly or all at once."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tapegrad import rasp as language
from tapegrad._sources import read
from tapegrad.rasp.sampler import random_program
from tapegrad_check import CheckError
from tapegrad_check.folder import COMPUTES_SOURCE, OWN_TABLE
from tapegrad_check.rasp import heads as rasp_heads
from tapegrad_check.rasp import program as rasp
from tapegrad_check.rasp import tables as rasp_tables
from tests.check.altering import Change, Maps, add, maps, without_row
from tests.check.test_refusals_of_rasp import PROGRAMS, altered, genuine
from tests.check.texts import text_net


@pytest.mark.parametrize(
    ("of", "module", "enough", "said"),
    [
        ("sort", rasp_heads, 36, "a head has too many cases"),
        ("count", rasp_heads, 4, "a head has too many cases"),
        ("count", rasp_tables, 12, "there are too many cases"),
    ],
)
def test_too_many_cases_are_not_proved(
    of: str, module: Any, enough: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = genuine(of)
    monkeypatch.setattr(module, "MOST_WORK", enough)
    assert net.verdict("decoder") == COMPUTES_SOURCE
    monkeypatch.setattr(module, "MOST_WORK", enough - 1)
    found = rasp.check(net.config, net.claims, net.source, net.graph())
    assert (found.verdict, said in found.statements[0]) == (OWN_TABLE, True)


def test_groups_of_too_many_cases_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rasp_tables, "MOST_WORK", 8)
    with pytest.raises(CheckError, match="a group has too many cases"):
        genuine("means").verdict("decoder")


def test_many_values_are_drawn_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where values that nothing tells apart stand for each other, genuine nets pass, and others do not."""
    monkeypatch.setattr(rasp, "FEW_CASES", 1)
    for name in PROGRAMS:
        assert genuine(name).verdict("decoder") == COMPUTES_SOURCE
    for seed in range(8):
        assert text_net(random_program(seed), "decoder", {}).verdict("decoder") == COMPUTES_SOURCE
    values = np.flatnonzero(genuine("count").arrays["units.rows"])[-8:]
    for place in values.tolist():
        with pytest.raises(CheckError):
            altered("count", add("units.values", place, 1.0)).verdict("decoder")


WIDTH = "rasp width\nvocabulary a b\nlength 3\noutput = width({})\n"
BOTH = "select(tokens, tokens, ==) and select(indices, indices, <)"
EITHER = "select(tokens, tokens, ==) or select(indices, indices, <)"


@pytest.mark.parametrize(
    "selector", [BOTH, "not (not select(tokens, tokens, ==) or select(indices, indices, <))"]
)
def test_conditions_side_by_side_are_proved_one_by_one(
    selector: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Together they have 36 cases, by themselves 4 and 9."""
    monkeypatch.setattr(rasp_heads, "MOST_WORK", 9)
    assert text_net(read(WIDTH.format(selector)), "decoder", {}).verdict("decoder") == COMPUTES_SOURCE


def test_and_is_not_or(monkeypatch: pytest.MonkeyPatch) -> None:
    """That is seen in all 36 cases together; where they are too many, nothing is said."""
    net, other = (text_net(read(WIDTH.format(selector)), "decoder", {}) for selector in (BOTH, EITHER))
    net.config["machine"] = other.config["machine"]
    net.source = other.source
    monkeypatch.setattr(rasp_heads, "MOST_WORK", 36)
    with pytest.raises(CheckError, match="a head selects something else"):
        net.verdict("decoder")
    monkeypatch.setattr(rasp_heads, "MOST_WORK", 35)
    found = rasp.check(net.config, net.claims, net.source, net.graph())
    assert (found.verdict, "a selector has too many" in found.statements[0]) == (OWN_TABLE, True)


def test_selectors_that_do_not_depend_on_one_side() -> None:
    for predicate in (lambda key, query: query > 0, lambda key, query: key > 0):
        counted = language.SelectorWidth(language.Select(language.indices, language.indices, predicate))
        net = text_net(language.program(counted, "ab", 3), "decoder", {})
        assert net.verdict("decoder") == COMPUTES_SOURCE


def test_sums_that_are_exact() -> None:
    """Multiples of one power of two, and not above 2^24 times it; weights beyond 2^84 are too large."""
    own = genuine("count")
    tables = rasp.RaspNet(own.config, own.graph(), own.source)  # type: ignore[arg-type]
    tables.quanta = {7: (Fraction(1, 4), Fraction(5))}
    assert tables.exact({0: 3.0, 1: -0.5}) == (Fraction(1, 2), Fraction(7, 2))
    assert tables.exact({0: 1.0, 7: -2.0}) == (Fraction(1, 2), 11)
    assert tables.exact({0: 2.0**84}) == (1 << 60, 1 << 84)
    assert tables.exact({0: 1.0, 1: 2.0**24 - 1}) == (1, 1 << 24)
    for form in ({0: 1.0, 1: 2.0**24}, {0: 2.0**85}, {0: 2.0**-22, 7: 1.0}):
        with pytest.raises(CheckError, match="a sum is rounded"):
            tables.exact(form)
    with pytest.raises(CheckError, match="not times a power of two"):
        tables.exact({7: 3.0})


def test_powers_of_two() -> None:
    pairs = (
        (3, 4),
        (4, 4),
        (5, 8),
        (1, 1),
        (Fraction(1, 3), Fraction(1, 2)),
        (Fraction(1, 2), Fraction(1, 2)),
    )
    for number, power in pairs:
        assert rasp_tables._power(Fraction(number)) == power


def test_a_query_that_selects_several_positions_is_watched() -> None:
    """Though no position is selected by two queries: the first query selects them all."""
    every = language.Select(language.indices, language.indices, lambda key, query: query == 0)
    net = text_net(language.program(language.Aggregate(every, language.tokens), "ab", 3), "decoder", {})
    assert net.verdict("decoder") == COMPUTES_SOURCE
    (place,) = np.flatnonzero(net.arrays["adds_to"] == rasp_tables.MIXED)
    assert len(Maps.of(net, "sums")) == 1
    without_row("sums", 0, int(place))(net)
    net.arrays["adds_to"] = np.delete(net.arrays["adds_to"], place)
    with pytest.raises(CheckError, match="nothing says so"):
        net.verdict("decoder")


def test_rows_that_ask_for_nothing_change_nothing() -> None:
    def more(of: str, terms: dict[int, float]) -> Change:
        return maps(of, lambda own: own[0][1].insert(0, (list(terms), list(terms.values()), 0.0)))

    assert altered("sort", more("query", {}), more("key", {3: 1.0})).verdict("decoder") == COMPUTES_SOURCE
