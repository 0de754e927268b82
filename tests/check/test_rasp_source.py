"""RASP programs as the checker reads them: what every sequence can be, against the plain interpreter; and
what is no program."""

import copy
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from tapegrad._sources import read, source_to_json
from tapegrad.errors import TapegradError
from tapegrad.rasp.program import RaspProgram
from tapegrad.rasp.sampler import random_program
from tapegrad_check import CheckError
from tapegrad_check.folder import NotProved
from tapegrad_check.sources import rasp as rasp_source
from tapegrad_check.sources.rasp import Node, Rasp, calculated, means, rasp_of, result
from tests.check.small_sources import COUNT, MEANS, SORT


def model(program: Any) -> Rasp:
    return rasp_of(*source_to_json(program))


def inputs(program: RaspProgram) -> list[tuple[Any, ...]]:
    short = [own for n in (1, 2) for own in product(program.vocabulary, repeat=n)]
    random = np.random.default_rng(0)
    places = random.integers(0, len(program.vocabulary), (6, program.length))
    return short + [tuple(program.vocabulary[place] for place in own) for own in places]


def compare(program: RaspProgram) -> None:
    """Values that occur are known, in the order of the compiler; functions and selectors are those of the
    interpreter."""
    found = model(program)
    assert [list(own) for own in program.values] == found.values
    places = found.places
    for tokens in inputs(program):
        try:
            every = program.evaluate(tokens)
        except TapegradError:
            continue
        moved = [number for number, node in enumerate(found.nodes) if node.kind == "move"]
        if any(value not in places[number] for number in moved for value in every[number]):
            continue  # values that differ were moved together: their mean, which every net refuses
        for number, node in enumerate(found.nodes):
            inner = [every[own] for own in node.reads]
            if node.kind in ("select", "pairs"):
                table, (keys, queries) = found.selected(number), node.reads
                for q, k in product(range(len(tokens)), repeat=2):
                    if not program.causal or k <= q:
                        at = places[keys][inner[0][k]], places[queries][inner[1][q]]
                        assert table[at] == every[number][q][k]
            elif node.kind in ("apply", "table"):
                table = found.function(number)
                for position, value in enumerate(every[number]):
                    at = tuple(places[own][every[own][position]] for own in node.reads)
                    assert table[at] == places[number][value]


@pytest.mark.parametrize("seed", range(30))
def test_random_programs(seed: int) -> None:
    compare(random_program(seed))


@pytest.mark.parametrize("text", [SORT, MEANS, COUNT])
def test_written_programs(text: str) -> None:
    program = read(text)
    assert isinstance(program, RaspProgram)
    compare(program)


SIGNS = {
    "+": (5, 2, 7), "-": (5, 2, 3), "*": (5, 2, 10), "//": (5, 2, 2), "%": (5, 2, 1), "==": (5, 2, False),
    "!=": (5, 2, True), "<": (5, 2, False), "<=": (5, 5, True), ">": (5, 5, False), ">=": (5, 5, True),
    "and": (0, 2, 0), "or": (0, 2, 2), "/": (6, 4, Fraction(3, 2)),
}  # fmt: skip


@pytest.mark.parametrize("sign", SIGNS)
def test_signs(sign: str) -> None:
    x, y, wanted = SIGNS[sign]
    assert calculated(sign, x, y) == wanted
    assert result(Node("apply", sign, (0, 1)), x, y) == wanted
    assert result(Node("apply", sign, (0, 1)), None, y) is None
    assert result(Node("apply", sign, (0, 1)), x, None) is None


def test_results() -> None:
    divided = Node("apply", "/", (0, 1))
    assert result(divided, 6, 3) == 2
    assert type(result(divided, 6, 3)) is int
    assert result(divided, 6, 0) is None
    assert result(divided, 1.0, 4) == 0.25
    assert result(Node("apply", "not", (0,)), 0) is True
    assert result(Node("table", {(1,): 5}, (0,)), 1) == 5
    with pytest.raises(CheckError, match="lacks a value"):
        result(Node("table", {(1,): 5}, (0,)), 2)
    with pytest.raises(CheckError, match="not finite"):
        result(Node("apply", "*", (0, 1)), 1e308, 10)


@pytest.mark.parametrize(
    ("values", "length"), [([0, 1], 4), ([-1, 0, 5], 3), ([Fraction(1, 3), 0.25, 2], 3), ([7], 2)]
)
def test_means_are_all_means_of_all_lists(values: list[Any], length: int) -> None:
    lists = [own for count in range(1, length + 1) for own in product(values, repeat=count)]
    assert set(means(values, length)) == {sum(map(Fraction, own)) / len(own) for own in lists}
    assert all(type(own) is int or own.denominator > 1 for own in means(values, length))


def test_means_of_too_many_or_of_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CheckError, match="not of numbers"):
        means(["a"], 2)
    monkeypatch.setattr(rasp_source, "MOST_VALUES", 2)
    assert len(means([0, 1], 4)) == 7  # 1 * 4 * 4 cases, and 16 are allowed
    with pytest.raises(NotProved, match="too many values"):
        means([0, 1, 3], 3)


def source(text: str = MEANS) -> dict[str, Any]:
    return copy.deepcopy(dict(source_to_json(read(text))[0]))


def node(place: int, *what: Any) -> dict[str, Any]:
    found = source()
    found["nodes"][place] = list(what)
    return found


TABLE, MEAN, LESS = 12, 8, 10
"""Nodes of `means`."""
BAD: dict[str, list[dict[str, Any]]] = {
    "nodes are not a list": [source() | {"nodes": own} for own in ({}, [], [["tokens"]] * ((1 << 14) + 1))],
    "length is out of range": [source() | {"length": own} for own in (0, 4097, True, 3.0)],
    "neither causal nor not": [source() | {"causal": own} for own in (0, None)],
    "vocabulary is out of range": [source() | {"vocabulary": own} for own in ([], ["a", None], range(4097))],
    "two tokens are equal": [source() | {"vocabulary": own} for own in (["a", "a"], [1, True])],
    "output is no node": [source() | {"output": own} for own in (-1, 13, 1.0, True)],
    "output is a selector": [source() | {"output": 1}],
    "names are not text": [source() | {"names": own} for own in ([], {"1": 2})],
    "name is of no node": [source() | {"names": {own: "x"}} for own in ("13", "x")],
    "no known kind": [node(0, "words"), source() | {"nodes": [{}]}, source() | {"nodes": [[]]}],
    "not before it": [node(LESS, "apply", "<", own, 9) for own in (LESS, 11, -1, 8.0, True)],
    "too much or too little": [
        node(LESS, "apply", "<", 8),
        node(LESS, "apply", "not", 8, 9),
        node(LESS, "apply", "<", 8, 9, 9),
        node(1, "select", "<=", 0),
        node(MEAN, "tokens", 1, 0),
        node(TABLE, "table", [], 10, 11, 11),
        node(TABLE, "width", 1, 1),
    ],
    "one of another kind": [
        node(LESS, "apply", "<", 1, 9),
        node(MEAN, "mean", 0, 0, 7),
        node(MEAN, "mean", 0, 1, 1),
        node(MEAN, "move", 0, 0, 7),
        node(MEAN, "width", 0),
        node(TABLE, "combine", "and", 1, 0),
        node(TABLE, "combine", "and", 0, 1),
        node(LESS, "select", "<", 8, 1),
    ],
    "function is not known": [node(LESS, "apply", "**", 8, 9)],
    "comparison is not known": [node(1, "select", "+", 0, 0)],
    "in an unknown way": [node(TABLE, "combine", "xor", 1, 1)],
    "table is not a list": [node(TABLE, "table", {}, 10, 11)],
    "other arguments": [node(TABLE, "table", [[[True], 1]], 10, 11)],
    "entry twice": [node(TABLE, "table", [[[True, True], 1], [[True, True], 1]], 10, 11)],
    "pairs are not a list": [node(1, "pairs", {}, 0, 0)],
    "value is of no known form": [node(3, "full", own) for own in ({"a": 1, "b": 2}, 1.5, {})],
    "float is not as it is written": [node(3, "full", {"float": own}) for own in ("nan", "0.5", "0x1p+0")],
    "fraction is not reduced": [
        node(3, "full", {"fraction": own}) for own in (["2", "4"], ["2", "1"], ["1", "02"], ["-1", "-2"])
    ],
}  # fmt: skip


@pytest.mark.parametrize("said", BAD)
def test_what_is_no_program(said: str) -> None:
    for data in BAD[said]:
        with pytest.raises(CheckError, match=said):
            rasp_of(data, {})


def test_what_is_one() -> None:
    assert rasp_of(source() | {"length": 4096, "names": {"12": "x"}}, {}).length == 4096
    many = source() | {"nodes": [["tokens"]] * (1 << 14), "output": 0}
    assert len(rasp_of(many, {}).nodes) == 1 << 14
    assert rasp_of(node(3, "full", {"float": (0.5).hex()}), {}).nodes[3].what == 0.5
    assert rasp_of(node(3, "full", {"fraction": ["-1", "3"]}), {}).nodes[3].what == Fraction(-1, 3)
    assert rasp_of(node(3, "full", [None, "a"]), {}).nodes[3].what == (None, "a")


def test_selectors_over_values_of_all_kinds() -> None:
    keys, queries = [None, 1, Fraction(3, 2), 2.5, "a"], [None, 1, 2, "a", "b"]
    program = rasp_of(source(), {})
    for sign in ("==", "!="):
        own = _between(program, sign, keys, queries)
        wanted = [[None not in (k, q) and (k == q) == (sign == "==") for q in queries] for k in keys]
        assert own.tolist() == wanted
    numbers = [0, 1, Fraction(3, 2), 2.5]
    for sign, wanted in (("<", lambda k, q: k < q), ("<=", lambda k, q: k <= q), (">", lambda k, q: k > q),
                         (">=", lambda k, q: k >= q), ("!=", lambda k, q: k != q)):  # fmt: skip
        assert _between(program, sign, numbers, [1, 2]).tolist() == [
            [wanted(k, q) for q in (1, 2)] for k in numbers
        ]
    assert _between(program, "true", keys, queries).all()
    assert not _between(program, "false", keys, queries).any()
    pairs = Node("pairs", [(1, "a"), (None, 1), ("a", None), ("x", "a"), (1, "x")], (0, 1))
    assert np.argwhere(_between(program, pairs, keys, queries)).tolist() == [[1, 3]]


def _between(program: Rasp, what: str | Node, keys: list[Any], queries: list[Any]) -> Any:
    own = Node("select", what, (0, 1)) if isinstance(what, str) else what
    found = Rasp((program.nodes[0], program.nodes[0], own), 0, (), 1, False, {})
    found.__dict__["values"] = [keys, queries, []]
    return found.selected(2)


def test_order_of_values() -> None:
    mixed = ["b", 2, (1, "a"), None, "a", 0.5, Fraction(1, 3), (0, "z"), -1]
    wanted = [None, -1, Fraction(1, 3), 0.5, 2, "a", "b", (0, "z"), (1, "a")]
    assert rasp_source.in_order([*mixed, 2]) == wanted


def test_too_many_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    program = rasp_of(source(COUNT), {})
    monkeypatch.setattr(rasp_source, "MOST_VALUES", 5)
    with pytest.raises(CheckError, match="a sequence has too many values"):
        assert program.values
    monkeypatch.setattr(rasp_source, "MOST_VALUES", 6)
    assert len(program.values[-1]) == 6
    monkeypatch.setattr(rasp_source, "MOST_CASES", 1)
    assert program.function(4).tolist() == [[a + b for b in range(3)] for a in range(4)]  # not one by one
    means = rasp_of(source(MEANS), {})
    monkeypatch.undo()
    monkeypatch.setattr(rasp_source, "MOST_CASES", 8)
    with pytest.raises(NotProved, match="a function has too many cases"):
        assert means.values
    monkeypatch.setattr(rasp_source, "MOST_CASES", 9)
    assert means.function(LESS).shape == (9, 1)
    monkeypatch.setattr(rasp_source, "MOST_CASES", 8)
    with pytest.raises(NotProved, match="a function has too many cases"):
        means.function(LESS)
    sort = rasp_of(source(SORT), {})
    assert sort.values
    monkeypatch.setattr(rasp_source, "MOST_CASES", 3)
    with pytest.raises(NotProved, match="a selector has too many cases"):
        sort.selected(1)
    monkeypatch.setattr(rasp_source, "MOST_CASES", 4)
    assert sort.selected(1).tolist() == [[False, True], [False, False]]
