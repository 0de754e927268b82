"""A bad net for every condition on transformers of RASP programs, each refused for its reason; and no weight
that can be changed."""

import copy
from functools import cache
from typing import Any

import pytest

from tapegrad._sources import read
from tapegrad.attention import sequences
from tapegrad.rasp.sampler import random_program
from tapegrad_check import CheckError
from tapegrad_check.folder import COMPUTES_SOURCE
from tests.check.altering import (
    Change,
    add,
    another_row,
    both,
    claims,
    config,
    cut,
    form,
    maps,
    more,
    put,
    put_all,
    twice,
    without_row,
)
from tests.check.small_sources import COUNT, MEANS, SORT
from tests.check.texts import TextNet, placed, said, text_net

PROGRAMS = {
    "sort": SORT,
    "means": MEANS,
    "count": COUNT,
    "in one number": COUNT,
    "everywhere": (
        "rasp all\nvocabulary a b c\nlength 3\noutput = aggregate(select(tokens, tokens, true), tokens)\n"
    ),
    "a mean": ("rasp mean\nvocabulary 1 2\nlength 3\noutput = mean(select(tokens, tokens, ==), indices)\n"),
    "a mean of three": (
        "rasp mean\nvocabulary 0 1 2\nlength 3\noutput = mean(select(tokens, tokens, true), tokens)\n"
    ),
}


@cache
def genuine(name: str) -> TextNet:
    with pytest.MonkeyPatch.context() as patch:
        if name == "in one number":  # what large sums are made of
            patch.setattr(sequences, "MANY_TERMS", 0)
            patch.setattr(sequences, "MOST_CASES", 1)
        return text_net(read(PROGRAMS[name]), "decoder", {})


def altered(name: str, *changes: Change) -> TextNet:
    net = copy.deepcopy(genuine(name))
    for change in changes:
        change(net)
    return net


@pytest.mark.parametrize("name", PROGRAMS)
def test_genuine_nets_pass(name: str) -> None:
    assert genuine(name).verdict("decoder") == COMPUTES_SOURCE


@pytest.mark.parametrize("seed", range(24))
def test_nets_of_random_programs_pass(seed: int) -> None:
    assert text_net(random_program(seed), "decoder", {}).verdict("decoder") == COMPUTES_SOURCE


@pytest.mark.parametrize("name", ["sort", "means", "everywhere", "a mean", "a mean of three"])
@pytest.mark.sampled(3)
def test_no_weight_can_be_changed(name: str) -> None:
    """Nor where it stands. The other nets have units that are never on, where some changes do no harm."""
    net = genuine(name)
    for of, own in net.arrays.items():
        for place in range(len(own) if of.endswith((".values", ".columns", ".rows")) else 0):
            for value in (own[place] + 1, -own[place], own[place] * (1 + 2.0**-20)):
                # Embeddings are a table: what has no place in it cannot be said.
                table = of.startswith("embedding") and not of.endswith("values")
                if own.dtype.type(value) != own[place] and (not table or 0 <= value <= own.max()):
                    with pytest.raises(CheckError):
                        altered(name, put(of, place, value)).verdict("decoder")


def in_source(**entries: Any) -> Change:
    return lambda net: net.config["machine"]["source"].update(entries)


def meaning(place: int, *what: Any) -> Change:
    return lambda net: net.config["meanings"].__setitem__(place, list(what))


def group(place: int, nodes: list[Any], labels: list[list[int]]) -> Change:
    return lambda net: net.config["groups"].__setitem__(place, [nodes, labels])


def name_of(place: int, name: str) -> Change:
    return lambda net: said(net)["coordinates"].__setitem__(place, name)


def of_another(name: str) -> Change:
    return lambda net: setattr(net, "source", genuine(name).source)


BEGIN, WORD, MIXED, TOKEN, INDEX = 0, 1, 2, 3, 4
"""Coordinates of most nets."""
COUNTED, AT_LEAST_2, MOVED, MOVED_BIT = 11, 13, 15, 17
"""Of `sort`: a count as it comes, one of its bits; the first bit that is moved, as it comes and rounded."""
NEAR = {"fraction": ["595001", "595000"]}
"""So near 1 that a mean of three tokens may be off by as much."""
SORTING: list[tuple[str, Change]] = [
    ("the program has other entries", lambda net: net.config["machine"].update(more=1)),
    ("of no program", in_source(kind="rasp")),
    ("is not the source", in_source(causal=True)),
    ("is not the source", of_another("count")),
    ("claims something else", claims(dtype="float64")),
    ("claims something else", claims(length=4)),
    ("claims something else", claims(causal=True)),
    ("claims something else", claims(layers=2)),
    ("claims something else", claims(heads=3)),
    ("claims something else", claims(temperature=128.0)),
    ("claims something else", claims(steps=4)),
    ("claims something else", claims(narrowest_step=0.125)),
    ("there are other tokens", another_row("embedding", 0, {WORD: 1.0})),
    ("first token has other bits", form("embedding", 0, 0, {BEGIN: 1.0, MIXED: 1.0})),
    ("a token has other bits", form("embedding", 0, 1, {WORD: 1.0, INDEX: 1.0})),
    ("positions have other bits", meaning(5, "bit", 0, 2)),
    ("positions have other bits", group(1, [3], [[0, 2, 1]])),
    (
        "positions are elsewhere",
        both(meaning(3, "bit", 1, 1), meaning(4, "bit", 0, 1), form("embedding", 0, 2, {WORD: 1.0, 4: 1.0})),
    ),
    ("has entries outside its map", maps("sums", lambda own: own[0][1].__setitem__(0, ([9], [1.0], 0.0)))),
    ("units and sums do not fit", put("adds_to", 1, 6)),
    ("reads what is not set", form("units", 0, 0, {COUNTED: 1.0})),
    ("reads what is not set", form("units", 0, 0, {6: 1.0})),
    ("unit adds to what is set", put("adds_to", 0, INDEX)),
    ("sets what is no bit", put("adds_to", 0, MOVED)),
    ("read before it is set", form("query", 0, 0, {AT_LEAST_2: 256.0})),
    ("raw coordinate is read", form("unembedding", 0, 2, {MOVED: 1.0})),
    ("on at the first position", more("units", 1, 0, {BEGIN: -15.0})),
    ("on at the first position", form("units", 0, 0, {INDEX: 1.0, BEGIN: 1.0})),
    ("raw coordinate is added", both(*(more("units", 1, unit, {TOKEN: 1.0}) for unit in (0, 1)))),
    (
        "another slope than a power of two",
        both(*(form("units", 1, unit, {COUNTED: 12.0, WORD: -4.0 - unit, BEGIN: -12.0}) for unit in (0, 1))),
    ),
    ("step is of another sequence", meaning(12, "bit", 4, 1)),
    ("bit is another one than was copied", group(4, [9], [[0, 2, 1]])),
    (
        "step is not on the grid",
        both(*(more("units", 1, 2 + unit, {WORD: -2.8333330154418945 - 2.0**-22 - unit}) for unit in (0, 1))),
    ),
    (
        "step is elsewhere",
        both(*(more("units", 1, 2 + unit, {WORD: -3.0 - unit}) for unit in (0, 1))),
    ),
    (
        "step is elsewhere",
        both(*(more("units", 1, 2 + unit, {WORD: -2.5 - unit}) for unit in (0, 1))),
    ),
    ("step is not on the grid", both(*(more("units", 1, 4 + unit, {WORD: -3.5 - unit}) for unit in (0, 1)))),
    ("step is not on the grid", both(*(more("units", 1, unit, {WORD: 0.5 - unit}) for unit in (0, 1)))),
    ("units set something else", both(form("units", 1, 0, {WORD: 1.0}), form("units", 1, 1, {}))),
    ("units set something else", put("sums.values", 0, 0.5)),
    ("a sum of units is rounded", put("sums.values", 0, float(1 << 24))),
    ("units set something else", put("sums.values", 0, float((1 << 20) - 3))),
    ("a sum is rounded", more("units", 0, 0, {INDEX: 1 + 2.0**-23, WORD: -2.0})),
    ("watched is not copied", form("units", 2, 2, {TOKEN: 1.0})),
    ("watched is not copied", more("units", 2, 2, {TOKEN: 1.0})),
    (
        "watched is not moved",
        both(*(form("units", 2, 2 + n, {COUNTED: 4.0, WORD: -1 - n}) for n in range(4))),
    ),
    ("not watched by two steps", form("units", 2, 2, {16: 4.0, WORD: -0.16666603088378906})),
    ("watched has other signs", form("sums", 2, 0, {2: -1.0, 3: 1.0, 4: -1.0, 5: 1.0})),
    ("a step has another slope", form("units", 2, 2, {MOVED: 3.0, WORD: -0.125})),
    ("on at the first position", more("units", 2, 2, {BEGIN: 1.0})),
    ("step is not on the grid", more("units", 2, 2, {WORD: -(2.0**-22)})),
    ("step does not rise to 1", more("units", 2, 2, {WORD: -0.125})),
    ("step does not rise to 1", both(form("units", 2, 2, {MOVED: 8.0, WORD: -0.25}))),
    ("goes unnoticed", both(*(more("units", 2, 2 + n, {WORD: -0.5 - n}) for n in (0, 1)))),
    ("goes unnoticed", both(*(more("units", 2, 2 + n, {WORD: 0.25 - n}) for n in (0, 1)))),
    ("goes unnoticed", both(*(more("units", 2, 4 + n, {WORD: -2.5 - n}) for n in (0, 1)))),
    ("goes unnoticed", both(*(more("units", 2, 4 + n, {WORD: -3.0 - n}) for n in (0, 1)))),
    ("there are other outputs", without_row("unembedding", 0, 2)),
    ("first position is read", more("unembedding", 0, 2, {BEGIN: 1.0})),
    ("output is another one", form("unembedding", 0, 2, {MOVED_BIT: 1.0})),
    # Heads.
    ("multiplies matrices that do not fit", without_row("query", 0, 0)),
    ("first position does not answer", form("key", 0, 5, {BEGIN: 2.0})),
    ("first position is not asked", form("query", 0, 5, {BEGIN: 256.0})),
    ("first position is compared", more("query", 0, 0, {BEGIN: 1.0})),
    ("first position is compared", more("key", 0, 0, {BEGIN: 1.0})),
    ("first position scores", form("query", 0, 5, {BEGIN: 384.0, WORD: 384.0})),
    ("first position is off", form("query", 0, 5, {BEGIN: 256.0, WORD: 128.0})),
    ("first position is off", form("query", 1, 3, {BEGIN: 256.0, WORD: 256.0})),
    ("neither all nor nothing", form("query", 0, 0, {10: 128.0})),
    ("scores are too large", form("query", 0, 5, {BEGIN: 2.0**20 + 256, WORD: 2.0**20 + 256})),
    ("selects something else", form("query", 0, 5, {BEGIN: 2.0**20, WORD: 2.0**20})),
    ("selects something else", form("query", 0, 4, {5: 256.0})),
    ("depends on several sequences", form("query", 1, 0, {5: 256.0, TOKEN: 256.0})),
    ("counts something else", form("value", 0, 0, {BEGIN: 1.0, TOKEN: 1.0})),
    ("brings goes elsewhere", put("heads_to", 0, MOVED)),
    ("brings goes elsewhere", put("heads_to", 1, 16)),
    ("moves other bits", both(without_row("value", 1, 1), cut("heads_to"))),
    ("first position has a value", more("value", 1, 0, {BEGIN: 1.0})),
    ("moves something else", form("value", 1, 1, {WORD: 1.0})),
    ("moves something else", form("value", 1, 1, {INDEX: 1.0})),
    (
        "a head adds to what is set",
        both(
            lambda net: net.config["heads"].insert(0, 7),
            put_all("heads", [0, 2, 1]),
            put_all("heads_to", [11, 11, 15, 16]),
            *map(twice, ("query", "key", "value")),
            lambda net: said(net)["names"].insert(0, "another"),
        ),
    ),
    # What everything is about.
    ("the net has other entries", config(purposes=[])),
    ("layers have other heads", config(heads=[7])),
    ("layers have other heads", config(heads=[7, 9, 9])),
    ("other columns than names", maps("embedding", lambda own: own.__setitem__(0, (20, own[0][1])))),
    ("positions are elsewhere", placed(width=1)),
    ("positions are elsewhere", placed(first=5)),
    *(
        ("a map has a constant", put(f"{of}.bias", 0, 1.0))
        for of in ("units", "sums", "query", "key", "value", "unembedding")
    ),
    ("a group is of no nodes", group(0, [], [])),
    ("a group is of no nodes", group(0, [0], [[0, 1], [0, 1]])),
    ("a group is of no nodes", group(2, [0, 0], [[0, 1], [0, 1]])),
    ("a group is of no node", group(0, [10], [[0, 1]])),
    ("a group is of no node", group(0, [-1], [[0, 1]])),
    ("a group is of no node", group(0, [False], [[0, 1]])),
    ("a group has other labels", group(0, [0], [[0, 1, 1]])),
    ("a group has other labels", group(0, [0], [[0, 2]])),
    ("a group has other labels", group(0, [0], [[0, -1]])),
    ("a group has other labels", group(0, [1], [[]])),
    ("a meaning is none", meaning(5, "bit", 1)),
    ("a meaning is none", meaning(5, "bit", 1, 2.0)),
    ("a meaning is none", meaning(5, "bit", True, 2)),
    ("given coordinate is elsewhere", meaning(5, "given", 0, 0)),
    ("given coordinate is elsewhere", meaning(2, "bit", 0, 1)),
    ("meaning is out of range", meaning(0, "given", 1, 0)),
    ("meaning is out of range", meaning(5, "bit", 5, 2)),
    ("meaning is out of range", meaning(5, "bit", -1, 2)),
    ("meaning is out of range", meaning(5, "bit", 1, -1)),
    ("meaning is out of range", meaning(5, "raw", 10, 0)),
    ("meaning is out of range", meaning(5, "number", 10, 0)),
    ("meaning is out of range", meaning(5, "word", 0, 0)),
    ("coordinates are missing", config(meanings=[["given", 0, 0], ["given", 0, 0]])),
    ("not every coordinate has a meaning", lambda net: net.config["meanings"].pop()),
    ("other columns than names", lambda net: said(net)["coordinates"].pop()),
    ("are the same", name_of(5, "indices[0]")),
    ("a head is of no node", config(heads=[7, 10])),
    ("a head is of no node", config(heads=[7, -1])),
    ("a head is of no node", config(heads=[True, 9])),
    ("a head is of another node", config(heads=[7, 0])),
    ("two entries at one place", put("query.columns", 6, WORD)),
]
OTHERS: list[tuple[str, str, Change]] = [
    (
        "everywhere",
        "nothing says so",
        both(without_row("sums", 0, 0), lambda net: net.arrays.update(adds_to=net.arrays["adds_to"][1:])),
    ),
    ("everywhere", "nothing says so", form("sums", 0, 0, {2: 1.0, 3: -1.0, 4: -1.0, 5: 1.0})),
    ("means", "negative numbers", form("value", 0, 0, {WORD: 1.0, 5: -2.0, BEGIN: 1.0})),
    ("means", "negative numbers", form("value", 0, 0, {WORD: 2.0, 5: -2.0, BEGIN: -1.0})),
    ("means", "other numbers, or has another default", form("value", 0, 0, {WORD: 2.0, 5: -1.0, BEGIN: 1.0})),
    ("means", "other numbers, or has another default", form("value", 0, 0, {WORD: 2.0, 5: -2.0, BEGIN: 0.5})),
    ("means", "is not one number", both(another_row("value", 0, {WORD: 1.0}), put_all("heads_to", [6, 7]))),
    ("means", "on at the first position", more("units", 0, 0, {BEGIN: -1.0})),
    ("a mean", "depends on something else", form("value", 0, 0, {INDEX: 1.0, TOKEN: 1.0, BEGIN: 3.0})),
    ("a mean", "another number is read", form("unembedding", 0, 0, {6: 2.0})),
    ("a mean", "another number is read", form("unembedding", 0, 0, {INDEX: 1.0})),
    ("a mean", "another number is read", another_row("unembedding", 0, {6: 1.0})),
    (
        "a mean of three",
        "cannot be told apart",
        both(
            in_source(vocabulary=[0, 1, NEAR]),
            lambda net: setattr(net, "source", None),
            form("value", 0, 0, {TOKEN: 1.0, 4: 2.0**-19, BEGIN: 2 + 7 * 2.0**-22}),
        ),
    ),
    ("in one number", "something else than bits", more("units", 1, 1, {INDEX: 1.0})),
    ("in one number", "is of no bits", form("units", 1, 1, {9: 2.0})),
    ("in one number", "is of no bits", form("units", 1, 1, {6: 1.0})),
    ("in one number", "is of no bits", form("units", 1, 1, {8: 1.0})),
    ("in one number", "step is elsewhere", put("sums.values", 6, 4.0)),
    ("in one number", "step is elsewhere", put("sums.values", 6, 2.0)),
    ("in one number", "not times a power of two", both(*(more("units", 2, n, {10: 3.0}) for n in (0, 1)))),
    ("in one number", "a sum is rounded", put("sums.values", 6, 3 + 2.0**-22)),
    ("in one number", "on at the first position", both(*(more("units", 2, n, {BEGIN: 1.0}) for n in (0, 1)))),
    ("in one number", "output is another one", add("unembedding.values", 0, 1.0)),
]  # fmt: skip


@pytest.mark.parametrize(("said", "change"), SORTING)
def test_refused(said: str, change: Change) -> None:
    with pytest.raises(CheckError, match=said):
        altered("sort", change).verdict("decoder")


@pytest.mark.parametrize(("name", "said", "change"), OTHERS)
def test_others_are_refused(name: str, said: str, change: Change) -> None:
    with pytest.raises(CheckError, match=said):
        altered(name, change).verdict("decoder")


def test_names_and_purposes_are_free() -> None:
    for kind in ("coordinates", "purposes", "names"):
        assert altered("sort", lambda net, k=kind: said(net)[k].__setitem__(0, "x")).verdict("decoder") == (
            COMPUTES_SOURCE
        )


def test_the_last_of_equal_names_is_as_bad_as_the_first() -> None:
    own = said(genuine("sort"))["coordinates"]
    with pytest.raises(CheckError, match="are the same"):
        altered("sort", name_of(len(own) - 1, own[0])).verdict("decoder")
