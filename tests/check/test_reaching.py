"""Numbers that are counted down: which states do that, what one round must be, and where it leads."""

import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest

from tapegrad.lowering import program_machine as lowering
from tapegrad.programs.model import Program
from tapegrad.programs.subleq import Subleq
from tapegrad_check.core.nodes import FALSE, TRUE
from tapegrad_check.folder import NotProved
from tapegrad_check.formulas.words import number, subtract
from tapegrad_check.on_tapes import walks as walks_module
from tapegrad_check.on_tapes.ground import ANYWHERE, NEXT, NUMBER, SOME
from tapegrad_check.on_tapes.layout import FETCH, INPUT, MEMORY, RULER
from tapegrad_check.on_tapes.one_instruction import Instruction
from tapegrad_check.on_tapes.paths import AT_HOME, HOME, Path, Table
from tapegrad_check.on_tapes.walks import Reach, Walks
from tests.check.test_ground import RV, SUBLEQ
from tests.check.test_one_instruction import of
from tests.check.test_paths import Rules
from tests.check.test_programs_on_tapes import checked
from tests.check.test_walks import walks


@cache
def counting() -> Rules:
    """The rules of the table of SUBLEQ: in its state "count down" a number is counted down."""
    return dict(of(lowering.subleq_machine()).rules)


def reaching() -> Walks:
    return Instruction(SUBLEQ, Table(of(lowering.subleq_machine()))).walks


def test_a_number_is_counted_down() -> None:
    own = reaching()
    assert own.kind("count down") == Reach(1, "one word back", "jump outside memory")
    assert own.kind("count down.4") == Reach(1, "one word back.2", "address outside memory")
    assert own.kind(FETCH) is None


@pytest.mark.parametrize("how", range(4))
def test_altered_rounds_are_none(how: int) -> None:
    """With another move, symbol or state somewhere; but for where it would begin at a separator, which it
    does not."""
    rules, names = counting(), ("count down", "count down.2", "count down.3", "two words on")
    cases = sorted(case for case in rules if case[0] in names and case[1][3] == "0")
    for case in random.Random(how).sample(cases, 10):
        rule = rules[case]
        other = (
            replace(rule, moves=(-rule.moves[0] or 1, *rule.moves[1:])),
            replace(rule, write=(*rule.write[:2], "10"[int(rule.write[2])], rule.write[3])),
            replace(rule, write=("10"[int(rule.write[0])], *rule.write[1:])),
            replace(rule, state="hop"),
        )[how]
        found = walks({**rules, case: other}).kind("count down")
        assert (found is not None) == (case[0] == "count down" and case[1][RULER] == "1"), case


BACK = ((SOME, 0), (SOME, 0), (NUMBER, 0), (ANYWHERE, 0))


def one_round(
    monkeypatch: pytest.MonkeyPatch, side: int, stops: bool, change: Callable[[Any], Any]
) -> Reach | None:
    """What is made of the ends of a round: back where the number is 0, on by two words where no separator of
    these shows 1, and stopped otherwise; with a change."""
    own = walks({})
    n, pitch, bits = own.n, own.ground.pitch, own.ground.word(NUMBER)
    marks = [own.ground.single(("a mark", side * word)) for word in (1, 2)] if stops else []
    zero, mark = n.any_of(bits[1:]) ^ 1, n.any_of(marks)
    on = ((SOME, side * (2 * pitch + 1)), (SOME, side * (2 * pitch + 1)), (NUMBER, 1), (ANYWHERE, 0))
    less = subtract(n, bits[1:], number(1, 7))
    ends = SimpleNamespace(
        back=[Path(zero, {"found": TRUE}, BACK, {(INPUT, NUMBER, 2 + bit): TRUE for bit in range(7)})],
        on=[Path(n.and_(zero ^ 1, mark ^ 1), {"s": TRUE}, on,
                 {(INPUT, NUMBER, 2 + bit): less[bit] for bit in range(7)})],
        outside=[Path(n.and_(zero ^ 1, mark), {"stops": TRUE}, AT_HOME, {})] if stops else [],
        n=n, some=own.ground.single("some"),
    )  # fmt: skip
    change(ends)

    class Follower:
        def __init__(self, table: Any, ground: Any, most: int) -> None:
            assert most == 8 * pitch

        def run(self, start: Path, ends_here: Callable[[Path], Any]) -> list[Path]:
            assert start.heads == ((SOME, side), (SOME, side), (NUMBER, 1), (ANYWHERE, 0))
            assert (start.guard, start.states, start.cells) == (TRUE, {"s": TRUE}, {})
            assert all(ends_here(path) == [] for path in (*ends.back, *ends.on))
            assert ends_here(start) is None
            return ends.outside

        def known(self, path: Path, cell: Any) -> int:
            return path.cells[cell]

    monkeypatch.setattr(walks_module, "Follower", Follower)
    return own._one_round("s", side)


def halved(paths: list[Path], ends: Any, state: str | None = None) -> None:
    """Two ways in the place of one, which part by a variable."""
    (path,) = paths
    guards = (ends.n.and_(path.guard, ends.some), ends.n.and_(path.guard, ends.some ^ 1))
    first, second = (replace(path, guard=guard) for guard in guards)
    paths[:] = [first, replace(second, states={state: TRUE}) if state else second]


def weaker(paths: list[Path], ends: Any) -> None:
    paths[:] = [replace(path, guard=ends.n.and_(path.guard, ends.some)) for path in paths]


@pytest.mark.parametrize("side", [1, -1])
def test_the_ends_of_a_round(side: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert one_round(monkeypatch, side, True, lambda ends: None) == Reach(side, "found", "stops")
    assert one_round(monkeypatch, side, False, lambda ends: None) == Reach(side, "found", None)
    same: list[Callable[[Any], Any]] = [
        lambda ends: halved(ends.back, ends),
        lambda ends: halved(ends.on, ends),
        lambda ends: halved(ends.outside, ends),
        lambda ends: ends.outside[0].cells.update({}),
    ]
    for change in same:
        assert one_round(monkeypatch, side, True, change) == Reach(side, "found", "stops")
    others: list[Callable[[Any], Any]] = [
        lambda ends: ends.back.clear(),
        lambda ends: ends.on.clear(),
        lambda ends: weaker(ends.back, ends),
        lambda ends: weaker(ends.on, ends),
        lambda ends: weaker(ends.outside, ends),
        lambda ends: halved(ends.back, ends, "elsewhere"),
        lambda ends: halved(ends.on, ends, "elsewhere"),
        lambda ends: halved(ends.outside, ends, "elsewhere"),
        lambda ends: (
            ends.on[0].states.update(s=FALSE)
            or ends.on.__setitem__(0, replace(ends.on[0], states={"t": TRUE}))
        ),
        lambda ends: ends.back[0].cells.update({(INPUT, NUMBER, 5): FALSE}),
        lambda ends: ends.on[0].cells.update({(INPUT, NUMBER, 5): FALSE}),
        lambda ends: ends.back[0].cells.update({(INPUT, HOME, 5): FALSE}),
        lambda ends: ends.on[0].cells.update({(INPUT, NUMBER, 1): FALSE}),
        lambda ends: ends.outside[0].cells.update({(MEMORY, HOME, 5): FALSE}),
        lambda ends: ends.outside.clear(),
        lambda ends: halved(ends.on, ends) or ends.on[1].cells.update({(INPUT, NUMBER, 5): FALSE}),
    ]
    for change in others:
        assert one_round(monkeypatch, side, True, change) is None


def reached(own: Walks, value: list[int], first: int = 0, base: int = 2, **others: Any) -> list[Path] | None:
    pitch = own.ground.pitch
    place = (HOME, first * pitch + 1)
    cells = {(INPUT, HOME, base * pitch + 1 + bit): literal for bit, literal in enumerate(value)}
    heads = (place, place, (HOME, base * pitch + 1), (HOME, 0))
    return own.jump(replace(Path(TRUE, {"count down": TRUE}, heads, cells), **others))


def test_where_a_number_leads() -> None:
    own = reaching()
    pitch = own.ground.pitch
    (there,) = reached(own, number(4, 8)) or []
    anchor, at = there.heads[MEMORY]
    assert (anchor.kind, anchor.number, at) == ("ram", tuple(number(4, 8)), 0)
    assert there.heads[RULER] == there.heads[MEMORY]
    assert there.heads[INPUT] == (HOME, 2 * pitch)
    assert (there.state, there.seen) == ("one word back", (anchor,))
    assert [there.cells[INPUT, HOME, 2 * pitch + 1 + bit] for bit in range(8)] == [0, *[1] * 7]
    assert there.cells.keys() == {(INPUT, HOME, 2 * pitch + 1 + bit) for bit in range(8)}
    (low,) = reached(own, number(4, 8), base=0) or []
    assert low.heads[INPUT] == (HOME, 0)
    (odd,) = reached(own, number(3, 8), first=1) or []
    assert odd.heads[MEMORY][0].number == tuple(number(3, 8))
    (outside,) = reached(own, number(6, 8)) or []
    assert (outside.state, outside.heads[INPUT], outside.seen) == (
        "jump outside memory",
        (HOME, 2 * pitch),
        (),
    )
    (end,) = reached(own, number(5, 8), first=1) or []
    assert end.state == "jump outside memory"
    bits = own.ground.word("some")
    beyond, inside = reached(own, bits) or []
    assert own.n.or_(beyond.guard, inside.guard) == TRUE
    assert own.n.disjoint(beyond.guard, inside.guard)
    assert inside.heads[MEMORY][0].number == (FALSE, *bits[1:])
    (told,) = reached(own, bits, guard=own.n.any_of(bits) ^ 1) or []
    assert told.heads[MEMORY][0].number == tuple(bits)


def test_a_number_is_counted_down_from_the_first_words() -> None:
    own = reaching()
    for first, base in ((2, 2), (-1, 2), (0, -1)):
        with pytest.raises(NotProved, match="somewhere else"):
            reached(own, number(2, 8), first, base)
    pitch = own.ground.pitch
    inside, ram = (HOME, 1), own.ground.anchor("ram", number(1, 8))
    for heads in (
        (inside, (HOME, 2), (HOME, 2 * pitch + 1), (HOME, 0)),
        ((HOME, 2), (HOME, 2), (HOME, 2 * pitch + 1), (HOME, 0)),
        (inside, inside, (HOME, 2 * pitch + 2), (HOME, 0)),
        (inside, inside, (NEXT, 2 * pitch + 1), (HOME, 0)),
        ((ram, 1), (ram, 1), (HOME, 2 * pitch + 1), (HOME, 0)),
    ):
        assert reached(own, number(2, 8), heads=heads) is None
    with pytest.raises(NotProved, match="may hold anything"):
        reached(own, number(2, 7))


def test_a_memory_of_one_word() -> None:
    program = checked(Program("one", Subleq(1, width=8), bytes(1)))
    own = Instruction(program, Table(of(lowering.subleq_machine()))).walks
    (there,) = reached(own, number(0, 8)) or []
    assert there.heads[MEMORY][0].number == tuple(number(0, 8))
    with pytest.raises(NotProved, match="somewhere else"):
        reached(own, number(1, 8), first=1)


def test_memory_has_an_end_and_registers_have_not(monkeypatch: pytest.MonkeyPatch) -> None:
    own = reaching()
    monkeypatch.setattr(own, "kind", lambda state: Reach(1, "found", None))
    with pytest.raises(NotProved, match="end of memory"):
        reached(own, number(200, 8))
    (inside,) = reached(own, number(2, 8)) or []
    assert inside.state == "found"
    rv32 = walks({}, RV)

    def register(value: list[int], stops: str | None = None, first: int = -1) -> list[Path] | None:
        monkeypatch.setattr(rv32, "kind", lambda state: Reach(-1, "found", stops))
        place = (HOME, first * 33 - 1)
        cells = {(INPUT, HOME, 33 + 1 + bit): literal for bit, literal in enumerate(value)}
        return rv32.jump(Path(TRUE, {"s": TRUE}, (place, place, (HOME, 34), (HOME, 0)), cells))

    (there,) = register(number(30, 32)) or []
    assert (there.heads[MEMORY][0].kind, there.heads[MEMORY][0].number) == ("x", tuple(number(30, 5)))
    assert there.state == "found"
    (odd,) = register(number(31, 32), first=-2) or []
    assert odd.heads[MEMORY][0].number == tuple(number(31, 5))
    for value, stops in ((number(32, 32), None), (number(30, 32), "stops")):
        with pytest.raises(NotProved, match="may be no register"):
            register(value, stops)
    monkeypatch.setattr(own, "kind", lambda state: Reach(-1, "found", None))
    place = (HOME, -own.ground.pitch - 1)
    cells = {(INPUT, HOME, 10 + bit): FALSE for bit in range(8)}
    with pytest.raises(NotProved, match="may be no register"):  # SUBLEQ has none
        own.jump(Path(TRUE, {"s": TRUE}, (place, place, (HOME, 10), (HOME, 0)), cells))
