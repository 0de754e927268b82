"""A bad net for every condition on language models of Turing machines, each refused for its reason."""

import copy
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from tapegrad.attention.language import scales_for
from tapegrad.attention.tape_tokens import TapeTokens
from tapegrad.machines.model import Rule, TuringMachine
from tapegrad.machines.sampler import random_machine
from tapegrad_check import CheckError
from tapegrad_check.folder import COMPUTES_SOURCE
from tapegrad_check.in_tokens import records
from tapegrad_check.in_tokens.records import Text
from tapegrad_check.sources import Machine
from tapegrad_check.targets import decoder
from tests.check.altering import (
    Change,
    Maps,
    another_row,
    both,
    claims,
    config,
    form,
    maps,
    more,
    put,
    put_all,
    without_row,
)  # fmt: skip
from tests.check.texts import TextNet, placed, said, text_net

MACHINE = TuringMachine(
    {
        ("a", ("_",)): Rule(("1",), (1,), "b"),
        ("b", ("_",)): Rule(("_",), (-1,), "a"),
        ("b", ("1",)): Rule(("1",), (0,), "b"),
    },
    "a",
    alphabet=("_", "1"),
)


@cache
def genuine(tokens: int = 50_000) -> TextNet:
    return text_net(MACHINE, "decoder", {"tokens": tokens})


@pytest.mark.parametrize("tapes", [1, 2, 3])
def test_genuine_nets_pass(tapes: int) -> None:
    for seed, tokens in enumerate((2, 40, 255, 256, 5000, 100_000, 1 << 20)):
        machine = random_machine(seed, tapes=tapes, symbols=1 + seed % 4, states=1 + seed % 5)
        assert text_net(machine, "decoder", {"tokens": tokens}).verdict("decoder") == COMPUTES_SOURCE


def in_machine(**entries: Any) -> Change:
    return lambda net: net.config["machine"].update(entries)


BEGIN, DIGIT_0, ON, RECORD, SLOT = 0, 1, 11, 14, 42
SEARCH, LAST = 7, 8
"""The two rounds of the head that finds the last write to a cell; heads before them gather."""
STATE, SYMBOL, WRITTEN_0, WRITTEN_1 = 93, 88, 110, 111
RULES, RAW = 100, 96
"""Units: the first for a rule in the slot of rules; the first of two that read a recalled bit."""
ADDITION = 0
"""The first unit of the last layer: in three slots, where a digit is 0 and nothing is carried."""
BAD: list[tuple[str, Change]] = [
    ("has no machine", config(machine=[])),
    ("no machine that there is", in_machine(kind="tape")),
    ("machine has other entries", in_machine(more=1)),
    ("number of digits", in_machine(digits=0)),
    ("number of digits", in_machine(digits=17)),
    ("the horizon", config(tokens=1)),
    ("the horizon", config(tokens=(1 << 23) + 1)),
    ("have the same digits", both(in_machine(digits=3), config(tokens=50_000))),
    ("is not the source", lambda net: net.machine(accept=frozenset({"b"}))),
    *(("claims something else", claims(**{name: 7})) for name in (
        "dtype", "tokens", "record", "layers", "largest_score", "score_gap", "mean_error", "temperature",
        "softmax_error", "logit_gap",
    )),
    ("the net has other entries", config(bits=14)),
    ("records have other bits", placed(bits=13)),
    ("records have other bits", placed(first=13)),
    ("records have another number of tokens", placed(record=5)),
    ("arrays beside those of the graph", lambda net: said(net).update(beside={"more": np.zeros(1)})),
    ("coordinates have other names", lambda net: said(net)["coordinates"].__setitem__(5, "below[0]")),
    ("tokens have other words", lambda net: said(net)["words"].__setitem__(5, "down")),
    ("layers have other heads", put_all("heads", [6, 2, 1])),
    ("heads have other names", lambda net: said(net)["names"].__setitem__(0, "this tape")),
    ("layers have other purposes", lambda net: said(net)["purposes"].__setitem__(0, "")),
    ("other columns than names", maps("embedding", lambda own: own.__setitem__(0, (120, own[0][1])))),
    (
        "has entries outside its map",
        maps("sums", lambda own: own[0][1].__setitem__(0, ([96, 1], [4.0, -4.0], 0.0))),
    ),
    ("there are other tokens", another_row("embedding", 0, {DIGIT_0: 1.0})),
    ("other columns than names", another_row("unembedding", 0, {DIGIT_0: 1.0})),
    (
        "tokens have other words",
        both(another_row("unembedding", 0, {DIGIT_0: 1.0}), lambda net: said(net)["words"].append("more")),
    ),
    ("token has other bits", more("embedding", 0, 5, {ON: 1.0})),
    ("head compares something else", both(without_row("query", 0, 15), without_row("key", 0, 15))),
    ("multiplies matrices that do not fit", without_row("query", 0, 15)),
    ("head copies something else", both(without_row("value", 0, 0), put_all("heads_to", [*range(49, 81)]))),
    ("head copies something else", form("value", 0, 0, {DIGIT_0 + 1: 1.0})),
    ("asks something else", form("query", 0, 14, {SLOT: 128.0})),
    ("asks something else", form("query", SEARCH, 16, {}, 32.0)),
    ("answers something else", form("key", 5, 14, {SLOT: 1.0, SLOT + 1: 1.0})),
    ("answers something else", more("key", LAST, 25, {BEGIN: 2816.0})),
    ("copies goes elsewhere", put("heads_to", 24, 97)),
    (
        "other units that round",
        both(another_row("units", 0, {BEGIN: 1.0}), maps("sums", lambda m: m.__setitem__(0, (49, m[0][1])))),
    ),
    ("bit is cut elsewhere", put("units.bias", 1, -0.5)),
    ("bit is not rounded", put("sums.values", 1, -3.0)),
    ("bit is not rounded", put("sums.bias", 0, 1.0)),
    ("bit goes elsewhere", put("adds_to", 0, 73)),
    ("nothing is chosen", put("adds_to", 31, 113)),
    ("token has other logits", put("unembedding.values", 0, 1.0)),
    ("depends on something else", more("units", 2, RULES, {DIGIT_0: -1.0})),
    ("depends on something else", more("units", 2, ADDITION, {STATE: -1.0})),
    ("not sure whether it is on", put("units.bias", -1, -2.75)),
    ("recalled bit is not rounded", form("units", 2, RAW, {SLOT + 3: 1.0, WRITTEN_0: 1.0}, -1.25)),
    ("recalled bit is not rounded", form("units", 2, RAW + 1, {SLOT + 3: 1.0, WRITTEN_0: 1.0}, -1.375)),
    ("recalled bit is not rounded", form("units", 2, RAW + 1, {SLOT + 3: 1.0, WRITTEN_1: 1.0}, -1.625)),
    ("not sure whether it is on", both(*(
        form("units", 2, RAW + n, {SLOT + 3: 1.0, WRITTEN_0: 2.0**18}, -(2.0**18) - cut)
        for n, cut in enumerate((0.375, 0.625))
    ))),
    ("another token follows", put("sums.bias", -1, 1.0)),
]  # fmt: skip


@pytest.mark.parametrize(("said", "change"), BAD)
def test_refused(said: str, change: Change) -> None:
    net = copy.deepcopy(genuine())
    change(net)
    with pytest.raises(CheckError, match=said):
        net.verdict("decoder")


def test_recalled_bits_have_opposite_weights() -> None:
    """A unit of a pair whose partner does not cancel it is refused, though the sums are those of bits."""
    net = copy.deepcopy(genuine())

    def change(own: Maps) -> None:
        for place, (columns, values, bias) in enumerate(own[2][1]):
            kept = dict(zip(columns, values, strict=True))
            if RAW + 1 in kept:
                kept[RAW + 1] *= 2
                own[2][1][place] = list(kept), list(kept.values()), bias

    maps("sums", change)(net)
    with pytest.raises(CheckError, match="recalled bit is not rounded"):
        net.verdict("decoder")


def test_units_read_no_more_than_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    longest = max(len(columns) for columns, _, _ in Maps.of(genuine(), "units")[2][1])
    monkeypatch.setattr(decoder, "MOST_TERMS", longest)
    assert genuine().verdict("decoder") == COMPUTES_SOURCE
    monkeypatch.setattr(decoder, "MOST_TERMS", longest - 1)
    with pytest.raises(CheckError, match="reads too much"):
        genuine().verdict("decoder")


def test_a_net_of_something_else_than_a_machine() -> None:
    net = copy.deepcopy(genuine())
    circuit = {"kind": "circuit", "inputs": ["a"], "outputs": ["a"], "gates": []}
    net.config["machine"]["source"] = circuit
    with pytest.raises((CheckError, KeyError)):
        net.verdict("decoder")


def text(digits: int, horizon: int) -> Text:
    source = genuine().source
    assert isinstance(source, Machine)
    return Text(source, digits, horizon)


def test_sizes_of_records() -> None:
    """By hand: a record of one tape has a token for each digit, one for the symbol and one for the rule."""
    short = text(2, 100)
    assert (short.record, short.records, short.bits, short.compared) == (4, 24, 5, 9)
    assert short.layers == [range(5)]
    assert short.largest == (9 + 1) << 5
    assert text(2, 101).records == 25
    assert [text(2, n).bits for n in (2, 4, 7, 8, 127, 128)] == [1, 1, 1, 2, 5, 6]
    long = text(4, 50_000)
    assert long.layers == [range(7, 14), range(7)]
    assert long.largest == (17 + 7 + 1) << 7
    assert 4 * 50_000 * np.exp(-long.beta / 2) < records.STRAY < 4 * 50_000 * np.exp(-long.beta / 4)
    assert long.stray == 4 * 50_000 * np.exp(-long.beta / 2) + 2.0**-23


def test_rounds_of_a_search_are_those_of_the_compiler() -> None:
    for tokens in (int(1.17**power) for power in range(20, 101)):
        words = TapeTokens.for_tokens(MACHINE, tokens)
        own = text(words.digits, tokens)
        assert [len(bits) for bits in own.layers] == list(scales_for(words.program, tokens).digits)


def test_cells_within_reach_have_digits_of_their_own() -> None:
    assert text(1, 1 + 7 * 3).records == 7
    with pytest.raises(CheckError, match="the same digits"):
        text(1, 1 + 8 * 3)
    with pytest.raises(CheckError, match="compare too much"):
        text(31, 1000)


def test_moves_states_and_letters_of_machines_with_more_of_them() -> None:
    source = genuine().source
    assert isinstance(source, Machine)
    for states, letters, bits in ((1, 2, (1, 1)), (2, 3, (1, 2)), (3, 4, (2, 2)), (5, 5, (3, 3))):
        names = tuple(map(str, range(max(states, letters))))
        own = Text(replace(source, states=names[:states], alphabet=names[:letters], rules={}), 2, 100)
        assert (own.state_bits, own.letters) == bits
