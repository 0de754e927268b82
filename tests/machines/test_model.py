"""The plain interpreters, which everything is compared with, against runs that were written down by hand."""

import re
from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest

from tapegrad.errors import InputError, Refused, SourceError
from tapegrad.machines.model import (
    MOST_RULES,
    Configuration,
    GridConfiguration,
    GridMachine,
    GridRule,
    Names,
    Rule,
    TuringMachine,
    refuse_if_huge,
    unknown_symbol,
)

SWAP = TuringMachine(
    {
        ("go", ("a", "b")): Rule(("b", "a"), (1, -1), "go"),
        ("go", ("_", "_")): Rule(("a", "_"), (0, 1), "back"),
        ("back", ("a", "a")): Rule(("_", "b"), (-1, 0), "yes"),
    },
    "go",
    accept=frozenset({"yes"}),
    reject=frozenset({"no"}),
    alphabet=("c",),
    states=("idle",),
)
"""On two tapes: writes, erases, leaves alone; heads go each their own way."""


def test_a_run_on_two_tapes() -> None:
    assert list(SWAP.run(SWAP.start("a", "b"))) == [
        Configuration("go", ({0: "a"}, {0: "b"}), (0, 0)),
        Configuration("go", ({0: "b"}, {0: "a"}), (1, -1)),
        Configuration("back", ({0: "b", 1: "a"}, {0: "a"}), (1, 0)),
        Configuration("yes", ({0: "b"}, {0: "b"}), (0, 0)),
    ]
    assert SWAP.step(SWAP.start("c")) is None
    assert SWAP.read(Configuration("go", ({3: "a"}, {}), (3, 3))) == ("a", "_")


def test_a_machine_fills_in_what_its_rules_name() -> None:
    assert (SWAP.tapes, SWAP.alphabet) == (2, ("_", "c", "a", "b"))
    assert SWAP.states == ("go", "idle", "back", "yes", "no")
    empty = TuringMachine({}, "a")
    assert (empty.tapes, empty.alphabet, empty.states) == (1, ("_",), ("a",))
    assert TuringMachine({}, "a", tapes=3).tapes == 3


def test_words_are_laid_out_from_cell_0() -> None:
    assert SWAP.start("a_b") == Configuration("go", ({0: "a", 2: "b"}, {}), (0, 0))
    assert SWAP.start([], ["b"]) == Configuration("go", ({}, {0: "b"}), (0, 0))
    anywhere = Configuration("back", ({7: "a"}, {}), (7, -2))
    assert SWAP.start(anywhere) is anywhere
    with pytest.raises(InputError, match=r"3 input words for a machine with 2 tape"):
        SWAP.start("a", "b", "c")
    with pytest.raises(InputError, match="no symbol 'x'") as refused:
        SWAP.start("a", "bbx")
    assert refused.value.where == "input position 3"


ROUND = GridMachine(
    {
        ("a", "0"): GridRule("1", "right", "b"),
        ("b", "0"): GridRule("2", "down", "c"),
        ("c", "0"): GridRule("0", "left", "d"),
        ("d", "0"): GridRule("1", "up", "e"),
        ("e", "1"): GridRule("0", "stay", "f"),
    },
    "a",
    alphabet=("3",),
    states=("g",),
)
"""Goes round a square, and erases where it began."""


def test_a_run_on_the_grid() -> None:
    assert list(ROUND.run(ROUND.start())) == [
        GridConfiguration("a", {}, (0, 0)),
        GridConfiguration("b", {(0, 0): "1"}, (0, 1)),
        GridConfiguration("c", {(0, 0): "1", (0, 1): "2"}, (1, 1)),
        GridConfiguration("d", {(0, 0): "1", (0, 1): "2"}, (1, 0)),
        GridConfiguration("e", {(0, 0): "1", (0, 1): "2", (1, 0): "1"}, (0, 0)),
        GridConfiguration("f", {(0, 1): "2", (1, 0): "1"}, (0, 0)),
    ]
    assert (ROUND.alphabet, ROUND.states) == (("0", "3", "1", "2"), ("a", "g", "b", "c", "d", "e", "f"))
    assert ROUND.start(["01", "20"], (4, -5)) == GridConfiguration("a", {(0, 1): "1", (1, 0): "2"}, (4, -5))
    anywhere = GridConfiguration("c", {(9, 9): "3"}, (9, 9))
    assert ROUND.start(anywhere) is anywhere
    assert len(list(islice(ROUND.run(anywhere), 5))) == 1
    with pytest.raises(InputError, match="no symbol 'x'") as refused:
        ROUND.start(["0", "00x"])
    assert refused.value.where == "row 2, column 3"


def test_symbols_are_listed_up_to_fifty() -> None:
    for count, more in ((50, None), (51, "and 1 more"), (2_050, "and 2,000 more")):
        error = unknown_symbol("m", "?", "here", tuple(f"s{n}" for n in range(count)))
        assert error.advice.count("'s") == 50
        assert re.search(r"and [\d,]+ more", error.advice) is None if more is None else more in error.advice


RULE = Rule(("_",), (1,), "b")
BAD: list[tuple[str, Callable[[], Any]]] = [
    (
        "accepts or rejects, so it halts",
        lambda: TuringMachine({("a", ("_",)): RULE}, "a", accept=frozenset("a")),
    ),
    (
        "accepts or rejects, so it halts",
        lambda: TuringMachine({("a", ("_",)): RULE}, "a", reject=frozenset("a")),
    ),
    (
        "both accepts and rejects",
        lambda: TuringMachine({}, "a", accept=frozenset("b"), reject=frozenset("b")),
    ),
    ("needs 1 symbol", lambda: TuringMachine({("a", ("_",)): Rule(("_", "_"), (1,), "b")}, "a")),
    ("needs 1 symbol", lambda: TuringMachine({("a", ("_",)): Rule(("_",), (1, 1), "b")}, "a")),
    ("needs 2 symbol", lambda: TuringMachine({("a", ("_",)): RULE}, "a", tapes=2)),
    ("moves are -1, 0 or", lambda: TuringMachine({("a", ("_",)): Rule(("_",), (2,), "b")}, "a")),
    ("'out' is no move", lambda: GridMachine({("a", "0"): GridRule("0", "out", "a")}, "a")),
]


@pytest.mark.parametrize(("reason", "made"), BAD)
def test_a_machine_out_of_form_is_refused_for_its_reason(reason: str, made: Callable[[], Any]) -> None:
    with pytest.raises(SourceError, match=reason):
        made()


def test_names_are_the_wished_ones_or_numbered() -> None:
    names = Names(["a", "b.2"])
    assert [names(1, "a"), names(2, "a"), names(3, "b"), names(4, "b"), names(5, "b")] == [
        "a.2", "a.3", "b", "b.3", "b.4",
    ]  # fmt: skip
    assert names(1, "z") == "a.2"
    assert names(6, "z") == "z"


def test_tables_that_nothing_could_use_are_refused() -> None:
    assert MOST_RULES == 2_000_000
    refuse_if_huge(MOST_RULES, "it", "")
    with pytest.raises(Refused, match=r"it would need 2,000,001 rules; the limit is 2,000,000"):
        refuse_if_huge(MOST_RULES + 1, "it", "")
