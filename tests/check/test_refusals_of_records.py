"""A bad net for every condition on language models of machines with memory, each refused for its reason."""

import copy
from functools import cache
from typing import Any

import numpy as np
import pytest

from tapegrad._sources import read
from tapegrad_check import CheckError
from tapegrad_check.folder import COMPUTES_SOURCE
from tapegrad_check.in_tokens import pages, token_nets
from tapegrad_check.in_tokens.pages import Area, Bits, Rule, digits_for, numbered
from tapegrad_check.in_tokens.token_nets import Source, purposes
from tapegrad_check.sources import Program
from tests.check.altering import (
    Change,
    Maps,
    Net,
    another_row,
    both,
    claims,
    config,
    form,
    maps,
    more,
    put,
    put_all,
    row,
    without_row,
)  # fmt: skip
from tests.check.texts import TextNet, placed, said, text_net


@cache
def genuine(tokens: int = 20_000) -> TextNet:
    return text_net(read("subleq 8 4\n0 0 0"), "decoder", {"tokens": tokens})


@pytest.mark.parametrize("tokens", [60, 400, 20_000, 1 << 20])
def test_genuine_nets_pass(tokens: int) -> None:
    assert genuine(tokens).verdict("decoder") == COMPUTES_SOURCE


@pytest.mark.parametrize("words", ["8 127", "16 100", "32 20"])
def test_other_sizes(words: str) -> None:
    """127 words of a byte are the most that there can be: an address is not negative."""
    net = text_net(read(f"subleq {words}\n0 0 0"), "decoder", {"tokens": 1000})
    assert net.verdict("decoder") == COMPUTES_SOURCE


def in_machine(**entries: Any) -> Change:
    return lambda net: net.config["machine"].update(entries)


def source(**changes: Any) -> Change:
    def change(net: Net) -> None:
        assert isinstance(net.source, Program)
        net.source = Program(**{**vars(net.source), **changes})

    return change


def name_of(head: int, name: str) -> Change:
    """Another name of a head, and of the coordinates that it copies to."""

    def change(net: Net) -> None:
        before, said(net)["names"][head] = said(net)["names"][head], name
        names = said(net)["coordinates"]
        for place, own in enumerate(names):
            for prefix in ("", "raw "):
                if own.startswith(f"{prefix}{before}: "):
                    names[place] = f"{prefix}{name}: {own.removeprefix(f'{prefix}{before}: ')}"

    return change


def smaller_digit(own: Maps) -> None:
    """The first head that searches finds four bits in its first round, where the others find five."""
    rows = own[SEARCH][1]
    rows[:6] = [(columns, [value / 2 for value in values], bias / 2) for columns, values, bias in rows[:6]]
    rows[6:] = [([RECORD + 6 + bit for bit in range(4)], [1.0, 2.0, 4.0, 8.0], 0.0), ([BEGIN], [80.0], 0.0)]


def wider(of: str, which: int = 0) -> Change:
    return maps(of, lambda own: own.__setitem__(which, (own[which][0] + 1, own[which][1])))


def one_layer(net: Net) -> None:
    """The first layer alone."""
    copied = sum(len(rows) for _, rows in Maps.of(net, "value")[:SEARCH])
    cut = len(Maps.of(net, "sums")[0][1])
    net.arrays |= {"heads": net.arrays["heads"][:1], "adds_to": net.arrays["adds_to"][:cut]}
    net.arrays["heads_to"] = net.arrays["heads_to"][:copied]
    for of in ("query", "key", "value"):
        maps(of, lambda own: own.__delitem__(slice(SEARCH, None)))(net)
    for of in ("units", "sums"):
        maps(of, lambda own: own.__delitem__(slice(1, None)))(net)
    del said(net)["names"][SEARCH:], said(net)["purposes"][1:]


def both_sides(change: Any) -> Change:
    return both(change("query"), change("key"))


BEGIN, TOKEN, RECORD, BEFORE, SLOT, KNOWN = 0, 1, 10, 20, 30, 119
GATHER, AFTER, SEARCH, FOUND = 0, 5, 16, 19
"""Heads: the first that looks at this record, and at the last; the first of each round that recalls."""
CODES, FIRST = 10, 15
"""Rows of a gather: after the bits of the record's number, and the last."""
BITS, SLOTS, LATEST = 0, 4, 6
"""Rows of a search: the first that compares bits, one that compares slots, the digit that it finds."""
PLAIN, RAW = 0, 24
"""Units of the last layer: one that reads no recalled bit, and the first of two that do."""
CLAIMS = (
    "dtype", "tokens", "record", "layers", "largest_score", "score_gap", "mean_error", "temperature",
    "softmax_error", "logit_gap",
)  # fmt: skip
BAD: list[tuple[str, Change]] = [
    ("machine has other entries", in_machine(more=1)),
    ("size of memory", in_machine(ram=0)),
    ("digits that count the input", in_machine(counted=7)),
    ("digits that count the input", in_machine(counted=0)),
    ("width of a word", in_machine(width=4)),
    ("does not consist of words", both(in_machine(width=24, ram=6), source(width=24, ram=6))),
    ("does not consist of words", both(in_machine(width=32, ram=6), source(ram=6))),
    ("cannot be every address", both(in_machine(ram=128), source(ram=128))),
    ("not that of the source", source(ram=8)),
    ("not that of the source", source(kind="rv32im")),
    ("words are not those of the source", source(width=16)),
    ("is no program", lambda net: setattr(net, "source", object())),
    *(("claims something else", claims(**{name: 7})) for name in CLAIMS),
    ("the horizon", config(tokens=1)),
    ("records have other bits", config(tokens=2)),
    ("the horizon", config(tokens=(1 << 23) + 1)),
    ("the net has other entries", config(bits=10)),
    ("records have other bits", placed(bits=9)),
    ("another number of tokens", placed(record=27)),
    ("the net has other layers", one_layer),
    ("tokens have other words", lambda net: said(net)["words"].__setitem__(7, "seven")),
    ("searches have other heads", put_all("heads", [15, 4, 3])),
    ("heads find digits of different sizes", maps("key", smaller_digit)),
    ("different things", form("query", FOUND, BITS, {152: 128.0}, -64.0)),
    ("different things", form("query", FOUND, BITS, {TOKEN: 128.0}, -64.0)),
    ("different things", form("query", FOUND, BITS, {TOKEN + 8: 128.0}, -64.0)),
    ("coordinates have other names", lambda net: said(net)["coordinates"].__setitem__(5, "tokens[5]")),
    ("other columns than names", wider("embedding")),
    ("layers have other purposes", lambda net: said(net)["purposes"].__setitem__(1, "finds it")),
    ("there are other tokens", another_row("embedding", 0, {TOKEN: 1.0})),
    (
        "there are other tokens",
        both(another_row("unembedding", 0, {TOKEN: 1.0}), lambda net: said(net)["words"].append("more")),
    ),
    ("token has other bits", form("embedding", 0, 1, {BEGIN: 1.0, TOKEN: 1.0})),
    ("a head does not copy", form("value", GATHER, 0, {TOKEN: 2.0})),
    ("a head does not copy", form("value", GATHER, 0, {TOKEN: 1.0}, 1.0)),
    ("copies a bit twice", form("value", GATHER, 0, {TOKEN + 1: 1.0})),
    ("something else than tokens", form("value", GATHER, 0, {RECORD: 1.0})),
    ("something else than tokens", form("value", GATHER, 0, {BEGIN: 1.0})),
    ("a head compares something else", both_sides(lambda of: without_row(of, GATHER, CODES))),
    ("multiplies matrices that do not fit", without_row("key", GATHER, CODES)),
    ("asks for another record", form("query", GATHER, 1, {BEFORE + 1: 128.0}, -64.0)),
    ("asks for another record", form("query", AFTER, 1, {RECORD + 1: 128.0}, -64.0)),
    ("answers with another record", form("key", GATHER, 1, {RECORD + 1: 2.0}, -1.0)),
    ("something else than slots", more("query", GATHER, CODES, {TOKEN: 64.0})),
    ("answers with another slot", form("key", GATHER, CODES, {SLOT: 1.0})),
    ("asks for another slot", form("query", GATHER, CODES + 1, {SLOT + 5: 64.0})),
    ("asks for another slot", put("query.bias", CODES + 1, 1.0)),
    ("asks for another slot", more("query", GATHER, CODES + 1, {SLOT + 5: 65.0})),
    ("slot that there is not", both(*(more("query", GATHER, CODES + n, {SLOT + 5: 64.0}) for n in range(5)))),
    ("has no first token", form("query", GATHER, FIRST, {}, 832.0)),
    ("has no first token", form("key", GATHER, FIRST, {BEGIN: 2.0})),
    ("heads copy goes elsewhere", put("heads_to", 0, 59)),
    ("heads copy goes elsewhere", put("heads_to", 61, 181)),
    ("a bit goes elsewhere", put("adds_to", 0, 120)),
    ("other units that round", both(another_row("units", 0, {BEGIN: 1.0}), wider("sums"))),
    ("bit is cut elsewhere", put("units.bias", 1, -0.5)),
    ("bit is not rounded", put("sums.values", 1, -3.0)),
    ("bit is not rounded", put("sums.bias", 0, 1.0)),
    # Searches.
    ("compares nothing", both_sides(lambda of: maps(of, lambda own: own[SEARCH][1].__delitem__(slice(6))))),
    ("digit is too large", form("key", FOUND, 11, {RECORD + n: 1.0 for n in range(6)})),
    ("does not prefer the latest", form("key", SEARCH, LATEST, {RECORD + n: 1.0 for n in range(5)})),
    ("does not prefer the latest", put("key.bias", -2, 1.0)),
    ("has no first token", form("key", SEARCH, LATEST + 1, {BEGIN: 128.0})),
    ("is not as sharp", form("query", SEARCH, LATEST, {}, 32.0)),
    ("is not as sharp", form("query", SEARCH, LATEST + 1, {}, 32.0)),
    ("first token answers", form("key", SEARCH, BITS, {175: 64.0}, -32.0)),
    ("a search is lost", form("query", FOUND, 6, {195: 64.0}, -64.0)),
    ("a search is lost", form("query", FOUND, 6, {195: 128.0}, -32.0)),
    ("a search is lost", form("query", FOUND, 6, {195: 128.0, 196: 128.0}, -64.0)),
    ("does not go on", form("query", FOUND, 6, {196: 128.0}, -64.0)),
    ("compares no sign", form("query", SEARCH, SLOTS, {SLOT: 64.0}, -64.0)),
    ("compares no sign", form("query", SEARCH, BITS, {151: 64.0}, -64.0)),
    ("compares no sign", form("query", SEARCH, BITS, {151: 128.0}, -32.0)),
    ("compares several bits", form("query", SEARCH, BITS, {151: 128.0, 152: 128.0}, -64.0)),
    ("compares no bit", form("query", SEARCH, BITS, {BEFORE: 128.0}, -64.0)),
    ("compares no bit", form("query", SEARCH, BITS, {58: 128.0}, -64.0)),
    ("a search copies something else", form("value", SEARCH, 0, {RECORD: 1.0})),
    ("a search has another name", name_of(SEARCH, "last write: digit 2 of its record")),
    ("a search has another name", name_of(SEARCH, "last: digit 1 of its record")),
    ("what a head copies goes elsewhere", put("heads_to", 76, 211)),
    ("nothing is chosen", put("adds_to", 76, 225)),
    ("token has other logits", put("unembedding.values", 0, 1.0)),
    ("token has other logits", put("unembedding.bias", 0, 1.0)),
    # Cases.
    ("another offset", put("sums.bias", -1, 1.0)),
    ("a unit adds something else", put("sums.values", 152, 8.0)),
    ("is for no slot", more("units", 2, PLAIN, {57: 2.0})),
    ("is no case", more("units", 2, PLAIN, {134: 2.0})),
    ("is no case", more("units", 2, PLAIN, {RECORD: 1.0})),
    ("not sure whether it is on", more("units", 2, PLAIN, {135: 1.0})),
    ("a bit is not rounded", more("units", 2, RAW, {SLOT: 1.0})),
    ("a bit is not rounded", more("units", 2, RAW + 1, {SLOT: 1.0})),
    ("two entries at one place", row("units", 2, PLAIN, [57, 57], [1.0, 1.0], -0.5)),
    # Names, and what the page says.
    ("are the same", name_of(1, "block 0")),
    ("two of the heads are the same", lambda net: said(net)["names"].__setitem__(1, said(net)["names"][0])),
    ("a head has another name", name_of(1, "block 01")),
    ("a head has another name", name_of(1, "bloc 1")),
    ("a head has another name", name_of(1, "block ٣")),
    ("another record than its name says", name_of(1, "last 7")),
    ("another record than its name says", name_of(AFTER, "this 7")),
]  # fmt: skip


@pytest.mark.parametrize(("said", "change"), BAD)
def test_refused(said: str, change: Change) -> None:
    net = copy.deepcopy(genuine())
    change(net)
    with pytest.raises(CheckError, match=said):
        net.verdict("decoder")


def limits(name: str, enough: int, said: str, monkeypatch: pytest.MonkeyPatch, module: Any) -> None:
    monkeypatch.setattr(module, name, enough)
    assert genuine().verdict("decoder") == COMPUTES_SOURCE
    monkeypatch.setattr(module, name, enough - 1)
    with pytest.raises(CheckError, match=said):
        genuine().verdict("decoder")


def test_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each as large as the net needs it, and one less."""
    units = Maps.of(genuine(), "units")[2][1]
    longest = max(len(columns) for columns, _, _ in units)
    limits("MOST_TERMS", max(28, longest), r"too many tokens|reads too much", monkeypatch, token_nets)
    monkeypatch.undo()
    limits("LARGEST", 42 * 32, "scores are too large", monkeypatch, token_nets)
    monkeypatch.undo()
    limits("MOST_INPUTS", 12, "depends on too much", monkeypatch, pages)
    monkeypatch.undo()
    limits("MOST_COMPARED", 26, "scores are too large", monkeypatch, token_nets)


def test_another_head_of_the_page() -> None:
    net = copy.deepcopy(genuine())
    for head, name in ((SEARCH, "last store: digit 1 of its record"), (FOUND, "last store")):
        name_of(head, name)(net)
    with pytest.raises(CheckError, match="heads have other names"):
        net.verdict("decoder")


def test_purposes() -> None:
    assert [text.split()[0] for text in purposes(4)] == ["gathers", "finds", "finds", "recalls"]
    assert [text.split()[2] for text in purposes(4)[1:3]] == ["1", "2"]


# Pages


def test_digits_that_values_need() -> None:
    assert [digits_for(n) for n in (1, 2, 16, 17, 256, 257, 4096, 4097)] == [1, 1, 1, 2, 2, 3, 3, 4]


def test_areas() -> None:
    """28 slots: the kind, two digits for the number of a block, then 12 words of two digits, of which eight
    are told apart by three bits of the address."""
    area = Area(28, 2, 8, 2)
    assert (area.first, area.place) == (3, 3)
    asked = [Source("this", 5, bit) for bit in range(8)]
    found = area.found(asked, 1, 2)
    assert sorted(found) == [3 + 2 * word + 1 for word in range(8)]
    assert found[3 + 2 * 5 + 1] == {
        (0, Source("this", 0, 0)), (1, Source("this", 0, 1)),
        (asked[0], 1), (asked[1], 0), (asked[2], 1),
        *((asked[bit], Source("this", 1 + (bit - 3) // 4, (bit - 3) % 4)) for bit in range(3, 8)),
    }  # fmt: skip
    small = Area(28, 2, 2, 2).found(asked[:2], 0, 2)
    assert len(set(small.values())) == len(small) == 4  # no two words answer to one address
    assert numbered(28, [(2, 7)]) == 1
    assert numbered(28, [(2, 8)]) == 2
    assert numbered(28, [(2, 7), (2, 12)]) == 3


def test_tables_of_rules() -> None:
    rule = Rule(
        (Bits("this", "a", (0, 1)), Bits("last", "b", (3,))), lambda a, b: None if a == 3 else a + 4 * b
    )
    assert pages.table_of(rule).tolist() == [0, 1, 2, -1, 4, 5, 6, -1]


A, B = Source("this", 1, 0), Source("last", 2, 3)
RULE, OTHER_RULE = ([A], np.array([0, 2])), ([A, B], np.array([4, 2, -1, 6]))


def test_one_bit_of_one_slot() -> None:
    """Bit 1 of the first rule is A; of the second, where A and B are not 0 and 1, it is A."""
    assert pages._compare_bit("x", 1, [RULE], [{A: 1}]) == 2
    assert pages._compare_bit("x", 0, [RULE], []) == 1
    assert pages._compare_bit("x", 1, [OTHER_RULE], [{A: 1}]) == 4
    assert pages._compare_bit("x", 2, [RULE, OTHER_RULE], [{A: 0}, {A: 1, B: 1}]) == 4
    wrong: list[tuple[int, Any, Any]] = [
        (1, [RULE], [{}]),
        (1, [RULE], []),
        (1, [RULE], [{A: 0}]),
        (1, [RULE], [{A: 1}, {A: 1}]),
        (2, [OTHER_RULE], [{A: 0, B: 1}, {A: 1, B: 1}]),
    ]
    for bit, rules, cases in wrong:
        with pytest.raises(CheckError, match="another token follows in 'x'"):
            pages._compare_bit("x", bit, rules, cases)
    with pytest.raises(AssertionError, match="says twice"):
        pages._compare_bit("x", 1, [RULE, OTHER_RULE], [{A: 1}])
    with pytest.raises(CheckError, match="'x' depends on something else"):
        pages._compare_bit("x", 1, [RULE], [{A: 1, B: 1}])


def test_limits_that_the_bounds_on_errors_rest_on() -> None:
    limits = (token_nets.STRAY, token_nets.LARGEST, token_nets.MOST_COMPARED, token_nets.MOST_TERMS)
    assert limits == (2**-10, 1 << 14, 1 << 7, 1 << 12)
    assert (token_nets.MOST_RECALLED, pages.MOST_INPUTS) == (8, 22)
