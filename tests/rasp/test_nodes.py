"""Nodes and values of RASP programs: what they can be, bounds on both sides, and what is refused."""

from fractions import Fraction
from importlib import import_module
from itertools import product

import numpy as np
import pytest

from tapegrad.errors import InputError, Refused, SourceError
from tapegrad.rasp import functions, nodes
from tapegrad.rasp.functions import ordered, plain, shown
from tapegrad.rasp.nodes import (
    Aggregate,
    Apply,
    Combine,
    Full,
    Indices,
    Pairs,
    Select,
    Table,
    Tokens,
    Width,
    check_nodes,
    predicate_of,
    truth_table,
    values_of,
)
from tapegrad.rasp.program import RaspProgram

programs = import_module("tapegrad.rasp.program")  # its name is that of a function, too

# Values


def test_plain_values() -> None:
    wanted = [None, True, "a", 3, -4, Fraction(1, 2), 0.5, (1, (2, "b"))]
    given = [None, True, "a", 3, Fraction(-4), Fraction(1, 2), 0.5, (1, (np.int64(2), "b"))]
    assert [plain(value) for value in given] == wanted
    assert [type(plain(np.float64(0.5))), type(plain(np.int8(3))), type(plain(np.bool_(True)))] == [
        float,
        int,
        bool,
    ]
    assert plain(np.array(7)) == 7
    largest = (1 << 4096) - 1
    assert plain(largest) == largest
    for value in (largest + 1, float("nan"), float("inf"), [1], np.array([1]), {1}, object()):
        with pytest.raises(InputError):
            plain(value)


def test_the_order_of_values() -> None:
    values = [("a",), "b", 2, None, (1, 2), "a", Fraction(1, 2), (None,), -1.5, ("a", 1), True]
    assert ordered([*values, 2, None]) == (
        None, -1.5, Fraction(1, 2), True, 2, "a", "b", (None,), (1, 2), ("a",), ("a", 1),
    )  # fmt: skip


def test_values_as_text() -> None:
    values = [None, True, False, 3, Fraction(1, 2), 'a"\\', (1,), (1, "b"), ()]
    texts = ["none", "true", "false", "3", "1/2", '"a\\"\\\\"', "(1,)", '(1, "b")', "()"]
    assert [shown(value) for value in values] == texts


def test_division_is_exact_where_both_are_whole() -> None:
    divided = functions.OPERATIONS["/"]
    assert divided(1, 3) == Fraction(1, 3)
    assert (divided(1, 2.0), divided(1.0, 2)) == (0.5, 0.5)
    assert divided(Fraction(1, 3), 2) == Fraction(1, 6)


# Nodes

T, PLACES = Tokens(), Indices()


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ([T, Apply("+", (0, 1))], "does not stand before it"),
        ([T, Apply("+", (0, -1))], "does not stand before it"),
        ([T, Apply("+", (0, 0, 0))], "a function of 3 sequences"),
        ([T, Apply(Table(()), ())], "a function of 0 sequences"),
        ([T, Apply("+", (0,))], "no known function of 1"),
        ([T, Apply("not", (0, 0))], "no known function of 2"),
        ([T, Apply("power", (0, 0))], "no known function of 2"),
        ([T, Select(0, 0, "~")], "no comparison"),
        ([T, Select(0, 0, Pairs(frozenset({("a", None)})))], "pairs with none"),
        ([T, Select(0, 0, Pairs(frozenset({("a", "b"), (None, "b")})))], "pairs with none"),
        ([T, Select(0, 0, "=="), Combine("not", (1, 1))], "combines selectors by 'not'"),
        ([T, Select(0, 0, "=="), Combine("and", (1,))], "combines selectors by 'and'"),
        ([T, Select(0, 0, "=="), Combine("xor", (1, 1))], "combines selectors by 'xor'"),
        ([T, Width(0)], "a sequence for a selector"),
        ([T, Select(0, 0, "=="), Select(0, 1, "==")], "a sequence for a selector"),
        ([T, Select(0, 0, "=="), Combine("and", (1, 0))], "a sequence for a selector"),
        ([T, Select(0, 0, "=="), Aggregate(0, 0, None, False)], "a sequence for a selector"),
        ([T, Select(0, 0, "=="), Aggregate(1, 1, None, False)], "a sequence for a selector"),
        ([T, Select(0, 0, "=="), Apply("not", (1,))], "a sequence for a selector"),
    ],
)
def test_nodes_that_make_no_program(own: list[nodes.Node], said: str) -> None:
    with pytest.raises(SourceError, match=said):
        check_nodes(own)


def test_nodes_that_do() -> None:
    selector = Select(0, 0, "==")
    check_nodes(
        [
            T,
            selector,
            Combine("not", (1,)),
            Combine("or", (1, 2)),
            Width(3),
            Aggregate(1, 4, None, False),
            Apply("not", (5,)),
        ]
    )
    table = Table(((("a",), 1), (("b",), 2)))
    check_nodes([T, Apply(table, (0,)), Select(0, 1, "true"), Select(0, 0, Pairs(frozenset({("a", "b")})))])


def test_means_are_all_sums_by_all_counts() -> None:
    for values in (
        (0, 1),
        (0, Fraction(1, 2), Fraction(1, 3)),
        (2, 5, 11),
        (-1, 4),
        (3,),
        (Fraction(1, 6), Fraction(3, 4)),
    ):
        found = nodes._means(tuple(values), 3, "it")
        wanted = {
            Fraction(sum(map(Fraction, own)), count)
            for count in (1, 2, 3)
            for own in product(values, repeat=count)
        }
        assert set(found) == wanted
        assert list(found) == sorted(found)
    with pytest.raises(Refused, match="no number"):
        nodes._means((1, "a"), 3, "it")


def test_the_greatest_common_unit() -> None:
    assert nodes._common(Fraction(3, 4), Fraction(5, 6)) == Fraction(1, 12)
    assert nodes._common(Fraction(3, 2), Fraction(9, 2)) == Fraction(3, 2)
    assert nodes._common(Fraction(0), Fraction(2, 3)) == Fraction(2, 3)


def test_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (nodes.MOST_VALUES, nodes.MOST_CASES, nodes.MOST_WORK) == (1 << 20, 1 << 22, 1 << 22)
    monkeypatch.setattr(nodes, "MOST_CASES", 6)
    assert predicate_of(lambda k, q: k == q, [0, 1], [0, 1, 2], "it") == "=="
    with pytest.raises(Refused, match="8 pairs of values"):
        predicate_of(lambda k, q: k == q, [0, 1], [0, 1, 2, 3], "it")
    words = Apply("+", (0, 0))
    assert len(nodes._results(words, [["a", "b"], ["c", "d", "e"]], "it")) == 6
    with pytest.raises(Refused, match="8 cases of its values"):
        nodes._results(words, [["a", "b"], ["c", "d", "e", "f"]], "it")
    numbers = Apply("*", (0, 0))
    assert len(nodes._results(numbers, [range(4), range(6)], "it")) == 12
    with pytest.raises(Refused, match="25 cases of its values"):
        nodes._results(numbers, [range(5), range(5)], "it")


def test_means_have_a_bound_on_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to 7, of 0 and 1: 49 / 2 sums, and 19 means."""
    nodes._means.cache_clear()
    monkeypatch.setattr(nodes, "MOST_VALUES", 19)
    assert len(nodes._means((0, 1), 7, "it")) == 19
    for most in (18, 11):
        nodes._means.cache_clear()
        monkeypatch.setattr(nodes, "MOST_VALUES", most)
        with pytest.raises(Refused, match="24 means" if most == 11 else "19 means"):
            nodes._means((0, 1), 7, "it")
    monkeypatch.setattr(nodes, "MOST_VALUES", 12)
    nodes._means.cache_clear()
    with pytest.raises(Refused, match="19 means"):
        nodes._means((0, 1), 7, "it")
    nodes._means.cache_clear()


def test_large_numbers_are_not_left_to_numpy() -> None:
    assert nodes._all_whole([(1 << 30) - 1, -(1 << 30) + 1, True])
    assert not nodes._all_whole([1 << 30])
    assert not nodes._all_whole([1, 0.5])
    product_of = Apply("*", (0, 0))
    assert nodes._results(product_of, [[1 << 40], [1 << 40]], "it") == (1 << 80,)
    assert nodes.cases_of(product_of, [[1, 2, 3]]) == 0
    assert nodes.cases_of(Apply("*", (0, 0)), [["a", 2, 3]]) == 9
    assert nodes.cases_of(Apply("not", (0,)), [[1, 2, 3]]) == 3
    assert nodes.cases_of(T, []) == 0


def test_truth_tables_of_pairs() -> None:
    listed = Pairs(frozenset({("a", "x"), ("b", "y"), ("c", "x"), ("a", "z")}))
    found = truth_table(Select(0, 1, listed), ["a", "b"], ["x", "y"], "it")
    assert found.tolist() == [[True, False], [False, True]]
    less, unlike = (truth_table(Select(0, 1, sign), [1, 2], [0.5, 2], "it").tolist() for sign in ("<", "!="))
    assert (less, unlike) == ([[False, True], [False, False]], [[True, True], [True, False]])
    assert truth_table(Select(0, 1, "true"), [1, 2], [3], "it").tolist() == [[True], [True]]


def test_values_of_nodes() -> None:
    known = [("a", "b"), (0, 1, 2)]
    assert values_of(Aggregate(5, 0, "z", False), known, (), 3, "it") == ("z", "a", "b")
    assert values_of(Aggregate(5, 1, 7, True), known, (), 2, "it") == (
        0,
        Fraction(1, 2),
        1,
        Fraction(3, 2),
        2,
        7,
    )
    assert values_of(Width(0), known, (), 3, "it") == (0, 1, 2, 3)
    assert values_of(PLACES, known, (), 3, "it") == (0, 1, 2)
    assert values_of(Full("q"), known, (), 3, "it") == ("q",)
    assert values_of(T, known, ("u",), 3, "it") == ("u",)
    assert values_of(Select(0, 0, "=="), known, (), 3, "it") == ()


# Programs


def made(
    own: tuple[nodes.Node, ...] = (T,),
    output: int = 0,
    words: tuple[object, ...] = ("a", "b"),
    length: int = 3,
) -> RaspProgram:
    return RaspProgram(own, output, words, length)


def test_programs_within_their_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (programs.LONGEST, programs.MOST_NODES, programs.MOST_TOKENS) == (4096, 1 << 14, 4096)
    monkeypatch.setattr(programs, "LONGEST", 5)
    monkeypatch.setattr(programs, "MOST_NODES", 4)
    monkeypatch.setattr(programs, "MOST_TOKENS", 3)
    made(length=5, words=("a", "b", "c"), own=(T,) * 4)
    made(length=1, words=("a",))
    for wrong in ({"length": 6}, {"length": 0}, {"words": tuple("abcd")}, {"words": ()}, {"own": (T,) * 5}):
        with pytest.raises(Refused):
            made(**wrong)  # type: ignore[arg-type]
    for wrong in ({"words": ("a", "a")}, {"words": ("a", None)}):
        with pytest.raises(SourceError, match="two tokens"):
            made(**wrong)  # type: ignore[arg-type]
    for wrong in ({"output": 1}, {"output": -1}, {"own": (T, Select(0, 0, "==")), "output": 1}):
        with pytest.raises(SourceError, match="not a sequence"):
            made(**wrong)  # type: ignore[arg-type]
    assert not made().causal


def test_the_work_of_all_functions_together(monkeypatch: pytest.MonkeyPatch) -> None:
    words = Apply("+", (0, 0))
    monkeypatch.setattr(programs, "MOST_WORK", 8)
    assert len(made((T, words, words)).values) == 3
    with pytest.raises(Refused, match="12 cases, of all functions together"):
        _ = made((T, words, words, words)).values


def test_titles() -> None:
    own = RaspProgram((T, PLACES), 0, ("a",), 3, names={1: "place"})
    assert (own.title(0), own.title(1)) == ("tokens 0", "place")


def test_nodes_may_be_held_at_what_is_given() -> None:
    own = made((T, PLACES, Apply("+", (1, 1))), 2)
    assert own.evaluate(("a", "b"))[2] == [0, 2]
    assert own.evaluate(("a", "b"), {1: [5, 7]})[2] == [10, 14]
    assert own.evaluate(("a", "b"), {})[2] == [0, 2]


@pytest.mark.parametrize("causal", [False, True])
def test_no_position_of_a_causal_program_selects_a_later_one(causal: bool) -> None:
    never = Select(0, 0, "false")
    own = RaspProgram((T, never, Combine("not", (1,)), Width(2)), 3, ("a",), 3, causal)
    assert own(("a",) * 3) == ([1, 2, 3] if causal else [3, 3, 3])
