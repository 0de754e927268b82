"""RASP as it is written in Python: what expressions mean, as for users of Tracr; and Tracr's own objects."""

import enum

import pytest

from tapegrad import rasp
from tapegrad.errors import TapegradError
from tapegrad.rasp import library as lib
from tapegrad.rasp.functions import mean, ordered
from tapegrad.rasp.nodes import Aggregate

EQ, LT, TRUE = rasp.Comparison.EQ, rasp.Comparison.LT, rasp.Comparison.TRUE

CASES = [
    ("tokens", rasp.tokens, "ab", ["a", "b"]),
    ("indices", rasp.indices, "ab", [0, 1]),
    ("length", rasp.length, "abc", [3, 3, 3]),
    ("map", rasp.Map(lambda x: x + "!", rasp.tokens), "ab", ["a!", "b!"]),
    ("two", rasp.SequenceMap(lambda x, i: x * i, rasp.tokens, rasp.indices), "ab", ["", "b"]),
    ("linear", rasp.LinearSequenceMap(rasp.indices, rasp.indices, 3, -1), "abc", [0, 2, 4]),
    ("full", rasp.Full(7), "ab", [7, 7]),
    ("operators", (2 * rasp.indices - 1) / 2, "abc", [-0.5, 0.5, 1.5]),
    ("reflected", 1 - rasp.indices, "abc", [1, 0, -1]),
    ("logic", (rasp.indices > 0) & (rasp.tokens == "a"), "aba", [False, False, True]),
    ("or", rasp.indices | 5, "abc", [5, 1, 2]),
    ("not", ~(rasp.tokens == "a"), "ab", [False, True]),
    ("no division", 1 / rasp.indices, "abc", [None, 1, 0.5]),
    ("frac_prevs", lib.make_frac_prevs(rasp.tokens == "l"), "hello", [0, 0, 1 / 3, 1 / 2, 2 / 5]),
    ("shift", lib.shift_by(2, rasp.tokens), "abcd", [None, None, "a", "b"]),
    ("pattern", lib.detect_pattern(rasp.tokens, "ab"), "abaa", [None, True, False, False]),
    ("pair balance", lib.make_pair_balance(rasp.tokens, "(", ")"), "a()b(c))",
     [0, 1 / 2, 0, 0, 1 / 5, 1 / 6, 0, -1 / 8]),
    ("shuffle dyck", lib.make_shuffle_dyck(["()", "{}"]), "({)}", [True] * 4),
    ("not balanced", lib.make_shuffle_dyck(["()", "{}"]), "(){)}", [False] * 5),
    ("hist", lib.make_hist(), "abac", [2, 1, 2, 1]),
    ("sort", lib.make_sort(rasp.tokens, rasp.tokens, max_seq_len=5, min_key=1), [2, 4, 1, 2], [1, 2, 2, 4]),
    ("sort, other keys", lib.make_sort_unique(rasp.tokens, 1 - rasp.indices), "abcd", list("dcba")),
    ("sort by frequency", lib.make_sort_freq(5), [2, 4, 2, 1], [2, 2, 4, 1]),
    ("less frequent", lib.make_count_less_freq(2), "aaabbc", [3] * 6),
    ("count", lib.make_count(rasp.tokens, "a"), "cabc", [1] * 4),
    ("three sequences", lib.make_nary_sequencemap(lambda x, y, z: x * y / z, rasp.indices, rasp.indices,
                                                  rasp.tokens), [1, 2, 3], [0, 1 / 2, 4 / 3]),
]  # fmt: skip
"""The expected values are those of Tracr's own test cases where it has them."""


@pytest.mark.parametrize(
    ("expression", "tokens", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_meaning(expression, tokens, expected):
    assert expression(list(tokens)) == expected
    made = rasp.program(expression, set(tokens), len(tokens))
    assert made(list(tokens)) == expected


def test_selectors():
    same, before = rasp.Select(rasp.tokens, rasp.tokens, EQ), rasp.Select(rasp.indices, rasp.indices, LT)
    assert same("aba") == [[True, False, True], [False, True, False], [True, False, True]]
    assert (same & before)("aba") == [[False] * 3, [False] * 3, [True, False, False]]
    assert (~same | before)("ab") == [[False, True], [True, False]]
    assert rasp.evaluate(~before, "ab", causal=True) == [[True, False], [False, True]]
    counted = rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, TRUE))
    assert rasp.evaluate(counted, "abcd", causal=True) == [1, 2, 3, 4]


def test_what_is_missing():
    """None is a value of its own: functions hand it on, and no comparison holds of it."""
    shifted = lib.shift_by(1, rasp.tokens)
    assert (shifted == "a")("aa") == [None, True]
    assert rasp.SelectorWidth(rasp.Select(shifted, rasp.tokens, EQ))("aa") == [1, 1]
    assert rasp.SelectorWidth(rasp.Select(shifted, rasp.tokens, lambda key, query: True))("aa") == [1, 1]
    assert rasp.SelectorWidth(rasp.Select(shifted, rasp.tokens, TRUE))("aa") == [2, 2]


def test_means_are_exact_and_strings_have_none():
    everything = rasp.Select(rasp.tokens, rasp.tokens, TRUE)
    assert rasp.Aggregate(everything, rasp.tokens)("bb") == ["b", "b"]
    assert rasp.Aggregate(everything, rasp.indices)("abc") == [1, 1, 1]
    with pytest.raises(TapegradError, match="'a' and 'b'"):
        rasp.Aggregate(everything, rasp.tokens)("ab")
    assert mean([0.1] * 3) == mean([0.1])
    assert ordered([2, None, "b", 1.5, "a", (1,)]) == (None, 1.5, 2, "a", "b", (1,))


def test_annotations():
    own = rasp.numerical(rasp.tokens == "a").named("is a").annotated(note=3)
    assert (own.name, own.annotations["note"], rasp.is_numerical(own)) == ("is a", 3, True)
    assert rasp.is_categorical(rasp.categorical(own))
    assert rasp.tokens.name == "tokens"
    assert own.label.startswith("is a_")
    assert own.copy().label != own.label


@pytest.mark.parametrize(
    "make",
    [
        lambda: rasp.Map(3, rasp.tokens),  # type: ignore[arg-type]
        lambda: rasp.Map(lambda x: x, 3),  # type: ignore[arg-type]
        lambda: rasp.Select(rasp.tokens, "a", EQ),  # type: ignore[arg-type]
        lambda: rasp.SelectorWidth(rasp.tokens),  # type: ignore[arg-type]
        lambda: rasp.Aggregate(rasp.tokens, rasp.tokens),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_expression(make):
    with pytest.raises(TapegradError, match=r"test_language\.py, line"):
        make()


def test_tracrs_own_objects():
    """Objects with the names of Tracr's classes and fields; Tracr itself is not here."""

    class Encoding(enum.Enum):
        NUMERICAL = "numerical"

    class Comparison(enum.Enum):
        LEQ = "<="

    def made(kind, children=(), annotations=(), **fields):
        own = type(kind, (), {})()
        own.__dict__.update(fields, children=list(children), annotations=dict(annotations))
        return own

    tokens, indices = made("TokensType"), made("IndicesType")
    is_a = made("Map", [tokens], {"encoding": Encoding.NUMERICAL}, f=lambda x: x == "a", inner=tokens)
    before = made("Select", [indices, indices], keys=indices, queries=indices, predicate=Comparison.LEQ)
    mean = made("Aggregate", [before, is_a], {"name": "mine"}, selector=before, sop=is_a, default=0)
    found = rasp.from_tracr(mean)
    assert found.name == "mine"
    assert found("aba") == [1, 1 / 2, 2 / 3]
    last = rasp.program(found, "ab", 3).nodes[-1]
    assert isinstance(last, Aggregate)
    assert last.mean
    with pytest.raises(TapegradError, match="a Stray is not an expression"):
        rasp.from_tracr(made("Stray"))
