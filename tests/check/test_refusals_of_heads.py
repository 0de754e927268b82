"""A bad net for every condition on transformers of gates and heads, each refused for its reason."""

import copy
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from tapegrad._sources import source_to_json
from tapegrad.machines.sampler import random_grid_machine
from tapegrad_check import CheckError
from tapegrad_check.folder import COMPUTES_SOURCE, OWN_TABLE
from tapegrad_check.sources import model_of
from tapegrad_check.targets import attention, tapes
from tests.check.altering import (
    Change,
    Maps,
    Net,
    Rows,
    add,
    both,
    claims,
    config,
    maps,
    net_of,
    put,
    row,
)
from tests.check.small_sources import two_tapes

NETS: dict[str, dict[str, Any]] = {
    "short": {"steps": 3},
    "of one step": {"steps": 1},
    "softmax": {"steps": 3, "attention": "softmax"},
    "long": {"steps": 1 << 22},
}
"""The long one finds the latest step that fits in two searches, of eleven bits each."""


@cache
def genuine(name: str) -> Net:
    return net_of(two_tapes("1"), "transformer", {**NETS[name], "form": "practical"})


@pytest.mark.parametrize("name", NETS)
def test_genuine_nets_pass(name: str) -> None:
    assert genuine(name).verdict("transformer") == COMPUTES_SOURCE


def wider(name: str) -> Change:
    return maps(name, lambda found: found.__setitem__(0, (found[0][0] + 1, found[0][1])))


def coordinate(place: int, name: Any) -> Change:
    return lambda net: net.config["coordinates"].__setitem__(place, name)


def bank(**entries: Any) -> Change:
    return lambda net: net.config["banks"][0].update(entries)


def in_machine(**entries: Any) -> Change:
    return lambda net: net.config["machine"].update(entries)


STATE_0, RULE_0, RULE_1, TRAP, SYMBOL_0, HEAD_0, WRITE_ON_0, WRITE_AT_0 = 0, 3, 4, 5, 6, 8, 14, 15
STEP, FREE, FOUND_RAW, FOUND = 24, 78, 48, 50
"""Coordinates of the short net: FREE is set by the last layer of gates; FOUND is FOUND_RAW, rounded."""
GIVEN, WRITTEN = 0, 1
"""Heads of tape 0, of which each compares four rows: three bits of the position, and one more."""
DIGIT, NULL = 4, 5
"""Rows after those."""
SHORT: list[tuple[str, Change]] = [
    ("number of steps", config(steps=0)),
    ("number of steps", config(steps=(1 << 24) + 1)),
    ("step's number has too few bits", config(steps=1 << 24)),
    ("step's number has too few bits", config(steps=5)),
    ("for other steps", config(steps=4)),
    ("two of names of columns are the same", coordinate(0, ["state", 1])),
    (r"'state.0\[\]' is no bit", coordinate(0, ["state.0", ""])),
    (r"'state\[00\]' is no bit", coordinate(0, ["state", "00"])),
    ("the end is not one sum", maps("ends", lambda found: found[0][1].append(found[0][1][0]))),
    ("number of a step is handed on", row("last", 0, STEP, [FREE], [1.0], 0.0)),
    ("end is not a sum of bits", row("ends", 0, 0, [FREE], [1.0], 0.0)),
    ("end is not a sum of bits", row("ends", 0, 0, [TRAP], [2.0], 0.0)),
    ("end is not a sum of bits", row("ends", 0, 0, [TRAP], [1.0], 1.0)),
    ("an entry of a level is 0", put("units.values", 0, 0)),
    ("two entries at one place", put("units.columns", 1, 8)),
    ("claims something else", config(temperature=8.0)),
    ("the net has other entries", config(attention="hardmax")),
    # heads
    ("a digit is no number", row("key", WRITTEN, DIGIT, [STEP, STEP + 1], [1.0, 2.0], 1.0)),
    ("a digit is no number", row("key", WRITTEN, DIGIT, [STEP, STEP + 1], [1.0, 3.0], 0.0)),
    ("a digit is torn", row("key", WRITTEN, DIGIT, [STEP + 1, STEP], [1.0, 2.0], 0.0)),
    ("the digit is asked about", row("query", WRITTEN, DIGIT, [], [], 2.0)),
    ("the digit is asked about", row("query", WRITTEN, NULL, [], [], 2.0)),
    ("the digit is asked about", row("query", WRITTEN, NULL, [HEAD_0], [1.0], 1.0)),
    ("reaches the row of the null key", row("key", WRITTEN, NULL, [], [], 1.0)),
    ("reaches the row of the null key", row("key", WRITTEN, NULL, [HEAD_0], [1.0], 0.0)),
    ("null key is off", add("null_key", 0, 1.0)),
    ("null key is off", add("null_key", DIGIT, 1.0)),
    ("null key is off", add("null_key", NULL, 1.0)),
    ("asks with what is no bit", row("query", WRITTEN, 0, [FREE], [2.0], -1.0)),
    ("asks with what is no bit", row("query", WRITTEN, 0, [FOUND_RAW], [2.0], -1.0)),
    ("a key is no bit", row("key", WRITTEN, 0, [FREE], [8.0], -4.0)),
    ("search leaves out a bit", both(
        row("key", WRITTEN, DIGIT, [STEP], [1.0], 0.0), put("null_key", 6 + NULL, 6.0),
        *(row("key", WRITTEN, bit, [WRITE_AT_0 + bit], [4.0], -2.0) for bit in range(3)),
        row("key", WRITTEN, 3, [WRITE_ON_0], [4.0], -2.0),
    )),
    ("a constant is no sign", row("query", WRITTEN, 3, [], [], 2.0)),
    ("a constant is no sign", row("key", WRITTEN, 3, [], [], 2.0)),
    ("a bit is no sign", row("query", WRITTEN, 0, [HEAD_0], [1.0], -1.0)),
    ("a bit is no sign", row("query", WRITTEN, 0, [HEAD_0], [2.0], 1.0)),
    ("a bit is no sign", row("query", WRITTEN, 0, [HEAD_0, HEAD_0 + 1], [2.0, 2.0], -1.0)),
    ("head adds to what is not 0", row("value", WRITTEN, FOUND, [WRITE_ON_0], [1.0], 0.0)),
    ("head adds to what is not 0", row("value", WRITTEN, STEP, [], [], 1.0)),
    ("something else than a bit", row("value", WRITTEN, 51, [18], [2.0], 0.0)),
    ("something else than a bit", row("value", WRITTEN, 51, [18], [1.0], 1.0)),
    ("something else than a bit", row("value", WRITTEN, 51, [17, 18], [1.0, 1.0], 0.0)),
    ("something else than a bit", row("value", WRITTEN, 52, [], [], 2.0)),
    ("a value is no bit", row("value", WRITTEN, 51, [FREE], [1.0], 0.0)),
    # layers of gates
    ("layer adds to what is not 0", put("adds_to", 0, STATE_0)),
    ("layer adds to what is not 0", put("adds_to", -1, 26)),
    ("used before it is rounded", row("units", 4, 0, [47], [1.0], -0.5)),
    ("used before it is rounded", row("units", 4, 0, [47], [2.0], -0.25)),
    ("used before it is rounded", row("units", 4, 0, [48], [1.0], -0.25)),
    ("used before it is rounded", row("sums", 4, 0, [0, 1], [2.0, -1.0], 0.0)),
    ("used before it is rounded", row("sums", 4, 0, [0, 1], [2.0, -2.0], 1.0)),
    ("used before it is rounded", row("units", 8, 0, [FOUND_RAW], [-1.0], 1.0)),
    ("gate reads what is no bit", row("units", 8, 0, [FREE], [-1.0], 1.0)),
    ("gate reads what is no bit", row("units", 8, 0, [0, 1, 2, 3, 4], [-1.0] * 5, 1.0)),
    ("something else than a bit", row("units", 8, 0, [54], [-1.0], 2.0)),
    ("something else than a bit", row("units", 8, 0, [54], [-0.5], 1.0)),
    ("something else than a bit", row("sums", 8, 0, [0], [2.0], 0.0)),
    ("something else than a bit", row("sums", 8, 0, [0], [1.0], 1.0)),
    ("adds a constant", row("last", 0, STATE_0, [RULE_1], [1.0], 1.0)),
    ("adds a constant", row("last", 0, FREE, [], [], 1.0)),
    ("handed on is no bit", row("last", 0, STATE_0, [RULE_1], [2.0], 0.0)),
    ("handed on is no bit", row("last", 0, STATE_0, [RULE_0, RULE_1], [1.0, 1.0], 0.0)),
    ("handed on is no bit", row("last", 0, STATE_0, [FOUND_RAW], [1.0], 0.0)),
    ("claims something else", claims(largest_score=21.0)),
    ("claims something else", claims(score_gap=2.0)),
    ("claims something else", claims(layers=15)),
    ("claims something else", claims(source="not checked")),
    ("claims something else", claims(dtype="float64")),
    ("claims something else", claims(steps=4)),
    # the machine
    ("has no machine", config(machine=[])),
    ("of no known kind", in_machine(kind="abacus")),
    ("machine has other entries", in_machine(extra=1)),
    ("for other steps", in_machine(steps=4)),
    ("steps of the machine is not", in_machine(steps=-1)),
    ("has no tapes", in_machine(source=source_to_json(random_grid_machine(1))[0])),
    ("machine is not the source", lambda net: _another_source(net)),
    ("not where no rule applies", row("ends", 0, 0, [STATE_0], [1.0], 0.0)),
    ("not where no rule applies", row("ends", 0, 0, [STATE_0, TRAP], [1.0, 1.0], 0.0)),
    ("coordinates are not in order", both(coordinate(0, ["state", 1]), coordinate(1, ["state", 0]))),
    ("state has another size", coordinate(2, ["estate", 0])),
    ("head 0 has another size", coordinate(10, ["ahead", 0])),
    ("handed on than the machine needs", both(coordinate(2, ["spare", 0]), coordinate(FREE, ["state", 2]))),
    ("banks are not the tapes", bank(words=4)),
    ("banks are not the tapes", bank(written=False)),
    ("banks are not the tapes", bank(extra=0)),
    ("banks are not the tapes", lambda net: net.config["banks"].pop()),
    ("two heads look for the same", maps("query", lambda found: found.__setitem__(2, found[GIVEN]))),
    ("no head looks where head 1 is", row("query", 2, 3, [], [], -1.0)),
    ("no head looks where head 0 is", row("key", WRITTEN, 3, [WRITE_ON_0 + 5], [8.0], -4.0)),
    ("no head looks where head 0 is", row("query", WRITTEN, 3, [], [], -1.0)),
    ("no head looks where head 0 is", row("key", GIVEN, 0, [2], [2.0], -1.0)),
    ("a head copies other bits", row("value", WRITTEN, 51, [17], [1.0], 0.0)),
    ("a head copies other bits", row("value", GIVEN, 47, [3], [1.0], 0.0)),
    ("two heads look for the same", row("value", WRITTEN, 51, [], [], 1.0)),
    ("symbol 0 is not what the source says", row("last", 0, SYMBOL_0, [71], [1.0], 0.0)),
    ("state is not what the source says", row("last", 0, STATE_0, [RULE_0], [1.0], 0.0)),
    ("rule is not what the source says", row("last", 0, RULE_0, [77], [1.0], 0.0)),
    ("trap is not what the source says", row("last", 0, TRAP, [77], [1.0], 0.0)),
    ("tape 0 write on is not", row("last", 0, WRITE_ON_0, [44], [1.0], 0.0)),
    ("tape 0 write is not", row("last", 0, 18, [26], [1.0], 0.0)),
    ("a write goes elsewhere", row("last", 0, WRITE_AT_0, [HEAD_0 + 1], [1.0], 0.0)),
    ("machine does not know", row("last", 0, STATE_0, [HEAD_0], [1.0], 0.0)),
    ("no head looks where head 0 is", row("last", 0, HEAD_0, [HEAD_0], [1.0], 0.0)),
]  # fmt: skip


def _another_source(net: Net) -> None:
    net.source = model_of(*source_to_json(two_tapes("0")))


SOFTMAX: list[tuple[str, Change]] = [
    ("claims something else", config(temperature=0.0)),
    ("temperature is no power of two", config(temperature=-8.0)),
    ("temperature is no power of two", config(temperature=12.0)),
    ("strays further", config(temperature=4.0)),
    ("words of a bank", bank(words=-1)),
    ("words of a bank", bank(words=(1 << 40) + 1)),
    ("strays further", bank(words=93 - 8)),  # 4 * 94 * e^-8 exceeds 1/8, 4 * 93 * e^-8 does not
    ("banks are not the tapes", bank(words=92 - 8)),
    ("claims something else", config(temperature=16.0)),
    ("claims something else", claims(temperature=16.0)),
    ("claims something else", claims(softmax_error=0.02)),
]
SEARCH, COPY, OTHER_COPY = 1, 2, 5
"""Heads of the long net: the first and the second search on tape 0, and the second on tape 1."""


def _of(net: Net, name: str, which: int) -> Rows:
    return Maps.of(net, name)[which][1]


def _row_of(name: str, which: int, of_place: Callable[[Net], tuple[int, list[int]]]) -> Change:
    """A row that compares other coordinates, and is like the one before otherwise."""

    def change(net: Net) -> None:
        place, columns = of_place(net)
        _, values, bias = _of(net, name, which)[place]
        row(name, which, place, columns, values, bias)(net)

    return change


def _digit_rows(net: Net) -> list[int]:
    """Rows with which the second search asks for the digit of the first."""
    time = {place for place, (group, _) in enumerate(net.config["coordinates"]) if group == "step"}
    return [
        place for place, own in enumerate(_of(net, "key", COPY)) if len(own[0]) == 1 and own[0][0] in time
    ]


def _digit_of_another_search(net: Net) -> tuple[int, list[int]]:
    place = _digit_rows(net)[0]
    return place, _of(net, "query", COPY)[place][0]


def _compared_with_another(net: Net) -> None:
    first, second, *_ = _digit_rows(net)
    one, other = (_of(net, "key", COPY)[place] for place in (first, second))
    both(row("key", COPY, first, *other), row("key", COPY, second, *one))(net)


def _copied_rows(net: Net, which: int) -> list[int]:
    return [place for place, own in enumerate(_of(net, "value", which)) if own[0]]


def _search_copies(column: Callable[[Net], int]) -> Change:
    def change(net: Net) -> None:
        place = _copied_rows(net, SEARCH)[0]
        row("value", SEARCH, place, [column(net)], [1.0], 0.0)(net)

    return change


def _hands_on_a_digit(net: Net) -> None:
    row("last", 0, STATE_0, _of(net, "query", COPY)[_digit_rows(net)[0]][0], [1.0], 0.0)(net)


def _without_a_digit(net: Net) -> None:
    """The second search asks for one bit of the first one's digit twice, and not for the last."""
    first, *_, last = _digit_rows(net)
    query, key = (_of(net, name, COPY)[first] for name in ("query", "key"))
    both(row("query", COPY, last, *query), row("key", COPY, last, *key))(net)


LONG: list[tuple[str, Change]] = [
    ("digits of one search are used in another", _row_of("query", OTHER_COPY, _digit_of_another_search)),
    ("a digit is compared with another", _compared_with_another),
    ("without its highest digits", _without_a_digit),
    ("something else than its digit", _search_copies(lambda net: STATE_0)),
    ("copies another digit", _search_copies(lambda net: _first_bit(net))),
    ("digits of a search are handed on", _hands_on_a_digit),
]


def _first_bit(net: Net) -> int:
    return net.config["coordinates"].index(["step", 0])


@pytest.mark.parametrize(
    ("name", "reason", "change"),
    [
        *(("short", *case) for case in SHORT),
        *(("softmax", *case) for case in SOFTMAX),
        *(("long", *case) for case in LONG),
    ],
)
def test_a_bad_net_is_refused_for_its_reason(name: str, reason: str, change: Change) -> None:
    net = copy.deepcopy(genuine(name))
    change(net)
    with pytest.raises(CheckError, match=reason):
        net.verdict("transformer")


def test_bounds_are_where_they_should_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores of at most 20; two rules with two symbols on each of two tapes are 8 cases, of 45 gates."""
    net = genuine("short")
    monkeypatch.setattr(attention, "EXACT", 20)
    assert net.verdict("transformer") == COMPUTES_SOURCE
    monkeypatch.setattr(attention, "EXACT", 19)
    with pytest.raises(CheckError, match="scores are too large"):
        net.verdict("transformer")
    monkeypatch.undo()
    for cases, work, verdict in ((8, 5, COMPUTES_SOURCE), (7, 5, OWN_TABLE), (8, 4, OWN_TABLE)):
        monkeypatch.setattr(tapes, "MOST_CASES", cases)
        monkeypatch.setattr(tapes, "MOST_WORK", work)
        assert net.verdict("transformer") == verdict
    monkeypatch.undo()
    for cases, verdict in ((1 << 22, COMPUTES_SOURCE), ((1 << 22) + 1, OWN_TABLE)):
        monkeypatch.setattr(tapes._Tapes, "cases", cases)
        assert net.verdict("transformer") == verdict
    monkeypatch.setattr(tapes, "MOST_CASES", 1 << 40)  # then it is the work: 45 gates in 64ths
    for cases, verdict in ((23_860_930, COMPUTES_SOURCE), (23_860_931, OWN_TABLE)):
        monkeypatch.setattr(tapes._Tapes, "cases", cases)
        assert net.verdict("transformer") == verdict
