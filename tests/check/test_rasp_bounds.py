"""Steps, flags and numbers of RASP nets at their borders: what just fits passes, a bit more does not."""

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tapegrad_check.folder import CheckError, NotProved
from tapegrad_check.rasp import heads, program, tables
from tapegrad_check.rasp.heads import BETA
from tapegrad_check.rasp.program import RaspNet, Step
from tapegrad_check.rasp.tables import MIXED, START, WORD
from tapegrad_check.sources.rasp import Work

U = Fraction(1, 1 << 24)
GIVEN = [("given", 0, 0)] * 3


def net(**others: Any) -> Any:
    """Of length 4; coordinate 3 is what a head brings of node 1, coordinate 4 a bit of it."""
    own = object.__new__(RaspNet)
    own.meanings = [*GIVEN, ("raw", 1, 0), ("bit", 0, 2)]
    own.program = SimpleNamespace(length=4, output=1, nodes=[None, SimpleNamespace(kind="mean")])  # type: ignore[assignment]
    own.groups = [((1,), [])]
    own.at_start, own.widths, own.watched, own.says_so = {}, [], {3}, False
    own.brought = lambda read: (
        [Fraction(1), Fraction(2), Fraction(4)],
        Fraction(8),
        Fraction(1, 8),
        Fraction(1, 16),
    )  # type: ignore[method-assign]
    own._label = lambda group: np.array([0, 1, 2])  # type: ignore[method-assign]
    own.__dict__.update(others)
    return own


LOW, HIGH = Fraction(37, 32), Fraction(55, 32)
"""Half of 2 + 2/8 + 1/16, and of 4 - 4/8 - 1/16."""
GRID = 8 * U / 2


def test_a_step_between_two_numbers() -> None:
    own = net()
    own._is_step(4, Step({3: 0.5}, LOW, HIGH, 0.0))
    assert own.widths == [2 * (HIGH - LOW)]
    for low, high in ((LOW - GRID, HIGH), (LOW, HIGH + GRID)):
        with pytest.raises(CheckError, match="a step is elsewhere"):
            own._is_step(4, Step({3: 0.5}, low, high, 0.0))
    own._is_step(4, Step({3: 0.5}, LOW + GRID, HIGH - GRID, -1.0))
    for low, high in ((LOW + GRID / 2, HIGH), (LOW, HIGH - GRID / 2), (-GRID, HIGH), (LOW, 4 + GRID)):
        with pytest.raises(CheckError, match="not on the grid"):
            own._is_step(4, Step({3: 0.5}, low, high, 0.0))
    for gain in (-0.5, 0.75):
        with pytest.raises((CheckError, ValueError)):
            own._is_step(4, Step({3: gain}, LOW, HIGH, 0.0))


def test_steps_that_read_something_else() -> None:
    step = Step({3: 0.5}, LOW, HIGH, 0.0)
    with pytest.raises(CheckError, match="added to others"):
        net()._is_step(4, step._replace(form={3: 0.5, 4: 1.0}))
    with pytest.raises(CheckError, match="another sequence"):
        net(groups=[((0,), [])])._is_step(4, step)
    for start in ({}, {3: -1.0}, {3: -0.5}):
        net(at_start=start)._is_step(4, step._replace(start=0.0 if not start else 0.25))
    with pytest.raises(CheckError, match="on at the first position"):
        net(at_start={3: -0.25})._is_step(4, step._replace(start=0.25))
    with pytest.raises(CheckError, match="on at the first position"):
        net()._is_step(4, step._replace(start=0.25))


def test_bits_that_are_copied() -> None:
    moved = SimpleNamespace(length=4, nodes=[None, SimpleNamespace(kind="move")])
    own = net(
        program=moved,
        brought=lambda read: ([Fraction(0), Fraction(0), Fraction(1)], Fraction(2), 12 * U, Fraction(0)),
    )
    own._is_step(4, Step({3: 1.0}, Fraction(0), Fraction(1, 2), 0.0))
    assert own.widths == []
    own._label = lambda group: np.array([0, 2, 2])
    with pytest.raises(CheckError, match="another one than was copied"):
        own._is_step(4, Step({3: 1.0}, Fraction(0), Fraction(1, 2), 0.0))


# The flag


def watching(first: Fraction, second: Fraction, gain: float = 8.0, **others: Any) -> Any:
    """Two steps of coordinate 3, which begin there and are 1/8 wide, for length 4."""
    own = net(program=SimpleNamespace(length=4, nodes=[None, SimpleNamespace(kind="move")]), **others)
    edges = (first, first + Fraction(1, 8), second, second + Fraction(1, 8))
    rows = [{3: gain, WORD: float(-8 * edge)} for edge in edges]
    own._mixed(rows, dict(enumerate((1.0, -1.0, -1.0, 1.0))))
    return own


FIRST, SECOND = Fraction(1, 8) - 4 * U, Fraction(3, 4) + 10 * U
"""So that the first step ends at 1/4 - 3 u at most, and the second begins at 3/4 + 9 u at least."""


def test_mixtures_are_noticed() -> None:
    own = watching(FIRST, SECOND)
    assert (own.watched, own.says_so) == (set(), True)
    watching(Fraction(0), Fraction(7, 8) - 12 * U)
    for first, second in (
        (FIRST + 2 * U, SECOND),
        (FIRST, SECOND - 2 * U),
        (-2 * U, SECOND),
        (Fraction(0), Fraction(7, 8) - 10 * U),
    ):
        with pytest.raises(CheckError, match="goes unnoticed"):
            watching(first, second)
    with pytest.raises(CheckError, match="not on the grid"):
        watching(FIRST + U, SECOND)
    with pytest.raises(CheckError, match=r"another slope|elsewhere|rise to 1"):
        watching(FIRST, SECOND, 6.0)


def test_what_is_watched() -> None:
    rows = [
        {3: 8.0, WORD: -float(8 * edge)}
        for edge in (FIRST, FIRST + Fraction(1, 8), SECOND, SECOND + Fraction(1, 8))
    ]
    signs = {0: 1.0, 1: -1.0, 2: -1.0, 3: 1.0}
    moved = SimpleNamespace(length=4, nodes=[None, SimpleNamespace(kind="move")])
    for own, given, terms, said in (
        (net(), rows, signs, "is not moved"),
        (net(program=moved), rows[:3], {0: 1.0, 1: -1.0, 2: -1.0}, "not watched by two steps"),
        (net(program=moved), rows, signs | {3: -1.0}, "other signs"),
        (net(program=moved), [*rows[:3], {4: 8.0}], signs, "is not copied"),
        (net(program=moved), [*rows[:3], rows[3] | {4: 8.0}], signs, "is not copied"),
        (net(program=moved), [rows[0] | {START: 0.5}, *rows[1:]], signs, "on at the first position"),
        (net(program=moved), [rows[0], {3: 16.0, WORD: 2 * rows[1][WORD]}, *rows[2:]], signs, "rise to 1"),
    ):
        with pytest.raises(CheckError, match=said):
            own._mixed(given, terms)
    with pytest.raises(CheckError, match="nothing says so"):
        net()._watches()
    net(watched=set())._watches()


# Numbers that are read


def reading(gap: Fraction, off: Fraction = Fraction(0), row: Any = None) -> None:
    own = net(values=[None, (1, 2, 2 + gap)], off={1: off}, unembedding=[0])
    own._output()


def test_numbers_that_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neighbours x and y above the least are off by 12 u times x + y, and twice what is besides."""
    monkeypatch.setattr(program, "row_of", lambda own, row: ({3: 1.0}, 0.0))
    for off in (Fraction(0), Fraction(1, 1 << 10)):
        border = (24 * U + 2 * off) / (1 - 12 * U)
        reading(border * (1 + U), off)
        with pytest.raises(CheckError, match="cannot be told apart"):
            reading(border, off)
    for form in ({3: 2.0}, {4: 1.0}, {3: 1.0, 4: 1.0}):
        monkeypatch.setattr(program, "row_of", lambda own, row, form=form: (form, 0.0))
        with pytest.raises(CheckError, match="another number is read"):
            reading(Fraction(1))


def test_scales_of_means() -> None:
    for values, wanted in (
        ((0, Fraction(1, 4)), (0, Fraction(5, 4), 1)),
        ((0, 1), (0, 2, 2)),
        ((-3, 2), (-3, 3, 16)),
        ((None, 0, 1), (0, 2, 4)),
        ((None, 5, 6), (5, 7, 4)),
    ):
        assert net(values=[None, values])._scale(1) == wanted
    assert net()._many == 12 * U


# Work


def test_tables_that_are_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    own = net(values=[range(4), range(5)], chosen={}, program=SimpleNamespace(work=Work()))
    monkeypatch.setattr(tables, "MOST_WORK", 20)
    parts = {(0,): np.arange(4.0), (1,): np.arange(5.0), (): np.array(100.0)}
    nodes, total = own.joint(parts)
    assert (nodes, total.tolist()) == ((0, 1), [[100 + a + b for b in range(5)] for a in range(4)])
    monkeypatch.setattr(tables, "MOST_WORK", 19)
    with pytest.raises(NotProved, match="too many cases"):
        own.joint(parts)


def drawn_together(found: heads.Scores, count: int) -> heads.Scores | None:
    return heads._drawn_together(found, count, Work().spend)


def test_conditions_that_are_drawn_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that depends on one side alone goes with one that agrees with it in the rest."""
    whole, lone, other = ((1,), (2,)), ((), (2,)), ((3,), (4,))
    both = np.array([[0.0, BETA], [BETA / 2, 0.0]])
    found = {whole: both, lone: np.array([[BETA / 2, 0.0]]), other: both}
    drawn = drawn_together(found, 2)
    assert drawn is not None
    assert drawn.keys() == {whole, other}
    assert drawn[whole].tolist() == [[BETA / 2, BETA], [BETA, 0]]
    assert drawn_together(found, 3) == found
    assert drawn_together(found, 4) is None
    assert drawn_together({whole: 2 * both}, 1) is None
    assert drawn_together({whole: both}, 1) is not None
    monkeypatch.setattr(heads, "FEW_TABLES", 2)
    assert drawn_together(found, 2) is None
    monkeypatch.setattr(heads, "FEW_TABLES", 3)
    assert drawn_together(found, 2) is not None
    empty = {whole: np.zeros((0, 2))}
    assert drawn_together(empty, 1) == empty


def test_the_flag_is_the_third_coordinate() -> None:
    assert (START, WORD, MIXED) == (0, 1, 2)


def test_what_heads_bring() -> None:
    """Of a count 1 / (1 + count), off by four units in the last place; of a value that is moved its bits."""
    program = SimpleNamespace(nodes=[SimpleNamespace(kind="width"), SimpleNamespace(kind="move")])
    net: Any = SimpleNamespace(
        meanings=[("raw", 0, 0), ("raw", 1, 1)], program=program, values=[range(3), "abc"], _many=Fraction(7)
    )
    centres = [Fraction(1), Fraction(1, 2), Fraction(1, 3)]
    assert RaspNet.brought(net, 0) == (centres, 1, Fraction(4, 1 << 24), 0)
    assert RaspNet.brought(net, 1) == ([0, 0, 1], 2, 7, 0)
