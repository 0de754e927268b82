"""Loops of a table from word to word: which states are in one, and where each comes out."""

from dataclasses import replace
from typing import Any

import pytest

from tapegrad_check.core.nodes import FALSE, TRUE
from tapegrad_check.formulas.words import number
from tapegrad_check.on_tapes.ground import END, LAST, NEXT
from tapegrad_check.on_tapes.layout import INPUT, RULER, VARIABLES
from tapegrad_check.on_tapes.one_instruction import Instruction
from tapegrad_check.on_tapes.paths import AT_HOME, HOME, Anchor, Path, Place
from tapegrad_check.on_tapes.walks import Search, Walks
from tapegrad_check.sources import Rule
from tests.check.test_ground import RV, SUBLEQ
from tests.check.test_paths import CODES, Rules, table


def walks(rules: Rules, program: Any = SUBLEQ) -> Walks:
    return Instruction(program, table(rules)).walks


def stays(read: tuple[str, ...], moves: tuple[int, ...], state: str) -> Rule:
    return Rule(read, moves, state)


# Home


def goes_home(side: int = -1) -> Rules:
    """On while not both MEMORY and RULER show 1."""
    return {
        ("h", read): stays(read, (side, side, 0, 0), "h")
        if read[:2] != ("1", "1")
        else stays(read, (0,) * 4, "a")
        for read in CODES
    }


@pytest.mark.parametrize("side", [1, -1])
def test_a_state_on_the_way_home(side: int) -> None:
    assert walks(goes_home(side)).kind("h") == side
    for read in (CODES[0], CODES[1], CODES[2]):  # MEMORY and RULER show 00, 10 and 01
        for other in (
            stays(read, (side, side, 0, 0), "b"),
            stays(read, (side, side, 1, 0), "h"),
            stays(read, (side, 0, 0, 0), "h"),
            replace(stays(read, (side, side, 0, 0), "h"), write=(*read[:3], "1")),
        ):
            rules = {**goes_home(side), ("h", read): other, ("b", read): stays(read, (0,) * 4, "a")}
            assert walks(rules).kind("h") is None
    assert walks({}).kind("a") is None


@pytest.mark.parametrize(
    ("kind", "which", "word", "side", "inside"),
    [
        ("ram", 3, 0, -1, True),
        ("ram", 3, 0, 1, False),
        ("ram", 3, -3, -1, True),
        ("ram", 3, -4, -1, False),
        ("ram", 2, 2, -1, True),
        ("ram", 2, 3, -1, False),
        ("x", 3, 0, 1, True),
        ("x", 3, 0, -1, False),
        ("x", 3, -1, 1, False),
        ("x", 3, 1, 1, False),
    ],
)
def test_the_way_home(kind: str, which: int, word: int, side: int, inside: bool) -> None:
    """From a word inside memory to the left, from a register to the right; of 5 words."""
    program = RV if kind == "x" else SUBLEQ
    own = walks(goes_home(side), program)
    pitch = own.ground.pitch
    anchor = own.ground.anchor(kind, number(which, 5 if kind == "x" else 8))
    place = (anchor, word * pitch + 4)
    found = own.jump(Path(TRUE, {"h": TRUE}, (place, place, (HOME, 2), (HOME, 3))))
    if not inside:
        assert found is None
        return
    (home,) = found or []
    assert home.heads == ((HOME, 0), (HOME, 0), (HOME, 2), (HOME, 3))
    assert home.state == "h"
    beside = (place[0], place[1] + 1)
    assert own.jump(Path(TRUE, {"h": TRUE}, (place, beside, (HOME, 2), (HOME, 3)))) is None
    assert own.jump(Path(TRUE, {"h": TRUE}, ((HOME, 4), (HOME, 4), (HOME, 2), (HOME, 3)))) is None


def test_a_guard_may_say_that_a_word_is_inside() -> None:
    own = walks(goes_home())
    bits = own.ground.word("some")
    anchor = own.ground.anchor("ram", bits)
    place = (anchor, 2 * own.ground.pitch)
    heads = (place, place, (HOME, 0), (HOME, 0))
    assert own.jump(Path(TRUE, {"h": TRUE}, heads)) is None
    below = own.n.any_of([*bits[1:], bits[0]]) ^ 1  # it is word 0
    assert own.jump(Path(below, {"h": TRUE}, heads))
    back = (anchor, -own.ground.pitch)
    heads = (back, back, (HOME, 0), (HOME, 0))
    assert own.jump(Path(below, {"h": TRUE}, heads)) is None
    assert own.jump(Path(own.n.any_of(bits), {"h": TRUE}, heads))


def test_word_0_is_told_apart_where_its_separator_is_asked_for() -> None:
    rules = {("q", read): stays(read, (0,) * 4, "a" if read[0] == "1" else "b") for read in CODES}
    own = walks(rules)
    bits = own.ground.word("some")
    anchor, far = own.ground.anchor("ram", bits), own.ground.anchor("ram", number(2, 8))
    some = own.n.any_of(bits)

    def at(place: Place, guard: int = TRUE, ruler: Place | None = None) -> list[Path] | None:
        return own.jump(Path(guard, {"q": TRUE}, (place, ruler or place, (HOME, 7), (HOME, 8)), rank=3))

    home, others = at((anchor, 0)) or []
    assert (home.guard, others.guard) == (some ^ 1, some)
    assert home.heads == ((HOME, 0), (HOME, 0), (HOME, 7), (HOME, 8))
    assert others.heads[:2] == ((anchor, 0), (anchor, 0))
    assert home.rank > others.rank
    (home,) = at((anchor, 0), some ^ 1) or []
    assert home.heads[0] == (HOME, 0)
    assert at((anchor, 0), some) is None
    assert at((far, 0)) is None
    assert at((anchor, 1)) is None
    assert at((anchor, 0), ruler=(anchor, 1)) is None
    deaf = walks({("q", read): stays(read, (0,) * 4, "a" if read[1] == "1" else "b") for read in CODES})
    anchor = deaf.ground.anchor("ram", deaf.ground.word("some"))
    assert deaf.jump(Path(TRUE, {"q": TRUE}, ((anchor, 0), (anchor, 0), (HOME, 7), (HOME, 8)))) is None


# Search


def searches(tape: int, direction: int, passes: int, ruler: int = 1) -> Rules:
    """Two states in turn: along a word, while the ruler goes to its other end and back."""
    rules: Rules = {}
    for state, other, turn in (("s", "t", ruler), ("t", "s", -ruler)):
        for read in CODES:
            moves = [0, 0, 0, 0]
            moves[tape], moves[RULER] = direction, turn if read[RULER] == "0" else -turn
            if read[RULER] == "0":
                rules[state, read] = stays(read, tuple(moves), state)
            elif read[tape] == "01"[passes]:
                rules[state, read] = stays(read, tuple(moves), other)
            else:
                rules[state, read] = stays(read, (0,) * 4, "found")
    return rules


@pytest.mark.parametrize("tape", [INPUT, VARIABLES])
@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize("passes", [0, 1])
@pytest.mark.parametrize("ruler", [1, -1])
def test_states_that_search(tape: int, direction: int, passes: int, ruler: int) -> None:
    rules = searches(tape, direction, passes, ruler)
    own = walks(rules)
    assert own.kind("s") == Search(tape, direction, ruler, passes, "t")
    assert own.kind("t") == Search(tape, direction, -ruler, passes, "s")
    for state in "st":
        inside = next(read for read in CODES if read[RULER] == "0")
        turning = next(read for read in CODES if read[RULER] == "1" and read[tape] == "01"[passes])
        for read in (inside, turning):
            rule = rules[state, read]
            for other in (
                replace(rule, moves=(1, *rule.moves[1:])),
                replace(rule, state="found"),
                replace(rule, write=("1" if read[0] == "0" else "0", *read[1:])),
            ):
                assert walks({**rules, (state, read): other}).kind("s") is None


@pytest.mark.parametrize(
    ("tape", "direction", "passes", "begins", "ends"),
    [
        (INPUT, -1, 0, (HOME, -1), (NEXT, 0)),
        (INPUT, 1, 0, (NEXT, 0), (HOME, 0)),
        (INPUT, 1, 0, (LAST, 0), (HOME, 0)),
        (INPUT, -1, 0, (NEXT, 0), None),
        (INPUT, 1, 0, (HOME, -1), None),
        (INPUT, -1, 1, (HOME, -1), None),
        (INPUT, -1, 0, (HOME, -2), None),
        (VARIABLES, 1, 1, (HOME, 2), (END, 0)),
        (VARIABLES, 1, 1, (HOME, 1), None),
        (VARIABLES, -1, 1, (END, -1), (HOME, 1)),
        (VARIABLES, -1, 1, (END, -2), None),
        (VARIABLES, 1, 0, (HOME, 2), None),
        (VARIABLES, -1, 1, (HOME, 2), None),
        (VARIABLES, 1, 1, (END, -1), None),
        (INPUT, 1, 1, (HOME, 2), None),
        (INPUT, -1, 1, (END, -1), None),
        (INPUT, -1, 0, (LAST, 0), None),
    ],
)
@pytest.mark.parametrize("ruler", [1, -1])
def test_where_a_search_comes_to(
    tape: int,
    direction: int,
    passes: int,
    begins: tuple[Anchor, int],
    ends: tuple[Anchor, int] | None,
    ruler: int,
) -> None:
    own = walks(searches(tape, direction, passes, ruler))
    pitch, some = own.ground.pitch, own.ground.single("something was written")
    anchor, word = begins
    steps = 4  # from the separator to which it goes
    offset = word * pitch + (pitch - steps if direction > 0 else steps)
    at_ruler = pitch - steps if ruler > 0 else steps
    heads = list(AT_HOME)
    heads[tape], heads[RULER] = (anchor, offset), (HOME, at_ruler)

    def jump(guard: int = some, **others: Any) -> list[Path] | None:
        return own.jump(replace(Path(guard, {"s": TRUE}, tuple(heads)), **others))

    found = jump()
    if ends is None:
        assert found is None
        return
    there = (ends[0], ends[1] * pitch)
    one, other = found or []
    assert (one.state, other.state) == ("s", "t")
    assert own.n.or_(one.guard, other.guard) == some
    assert own.n.disjoint(one.guard, other.guard)
    assert FALSE not in (one.guard, other.guard)
    assert one.heads[tape] == other.heads[tape] == there
    assert (one.heads[RULER], other.heads[RULER]) == (
        (HOME, pitch * (ruler > 0)),
        (HOME, pitch * (ruler < 0)),
    )
    assert jump()[0].guard != one.guard  # type: ignore[index]
    for wrong in (at_ruler + 1, at_ruler - pitch, at_ruler + pitch):
        heads[RULER] = (HOME, wrong)
        assert jump() is None
    heads[RULER] = (anchor if anchor is not HOME else END, at_ruler)
    assert jump() is None
    heads[RULER] = (HOME, at_ruler)
    if ends[0] is NEXT:
        for cell in ((INPUT, NEXT, 0), (INPUT, NEXT, -pitch)):
            assert jump(cells={cell: TRUE}) is None
        assert jump(cells={(INPUT, NEXT, pitch): TRUE})
    if tape == VARIABLES:
        assert jump(cells={(VARIABLES, HOME, 2 * pitch): TRUE}) is None
    if ends[0] is END:
        assert jump(TRUE) is None  # it may be that nothing was written
        assert jump(cells={(VARIABLES, END, 0): TRUE}) is None
    heads[tape], heads[RULER] = (anchor, word * pitch), (HOME, 0)
    assert jump() is None


def test_the_word_beside_the_next_byte_may_be_word_0() -> None:
    own = walks({})
    pitch, first = own.ground.pitch, own.ground.single("nothing was read")
    heads = (AT_HOME[0], AT_HOME[1], (NEXT, pitch), AT_HOME[3])
    home, last = own.jump(Path(TRUE, {"s": TRUE}, heads)) or []
    assert (home.guard, home.heads[INPUT]) == (first, (HOME, 0))
    assert (last.guard, last.heads[INPUT]) == (first ^ 1, (LAST, 0))
    (last,) = own.jump(Path(first ^ 1, {"s": TRUE}, heads)) or []
    assert last.heads[INPUT] == (LAST, 0)


def test_states_in_different_loops_part() -> None:
    rules = {**goes_home(), **{("a", read): stays(read, (0,) * 4, "end") for read in CODES}}
    own = walks(rules)
    place = (own.ground.anchor("ram", number(3, 8)), 4)
    bit = own.ground.single("some")
    heads = (place, place, (HOME, 0), (HOME, 0))
    parts = own.jump(Path(TRUE, {"h": bit, "a": bit ^ 1}, heads)) or []
    assert [(path.state, path.guard, path.heads) for path in parts] == [
        ("h", bit, heads),
        ("a", bit ^ 1, heads),
    ]
    (part,) = own.jump(Path(bit, {"h": bit, "a": bit ^ 1}, heads)) or []
    assert part.state == "h"
    assert own.jump(Path(TRUE, {"a": bit, "b": bit ^ 1}, heads)) is None
