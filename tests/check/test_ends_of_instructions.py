"""The end of a path beside the page of the instruction set: what is alike passes, and nothing else does."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tapegrad_check.core.nodes import FALSE, TRUE
from tapegrad_check.folder import NotProved
from tapegrad_check.formulas.words import number, subtract
from tapegrad_check.instructions.ports import Write
from tapegrad_check.on_tapes import rounds as rounds_module
from tapegrad_check.on_tapes.ground import END, NEXT
from tapegrad_check.on_tapes.layout import FETCH, INPUT, MEMORY, VARIABLES
from tapegrad_check.on_tapes.one_instruction import Instruction
from tapegrad_check.on_tapes.paths import AT_HOME, HOME, Anchor, Cell, Path
from tapegrad_check.on_tapes.rounds import COUNT, HIGH, LOW, STAYS, Repeating, Rounds
from tests.check.test_ground import RV, SUBLEQ
from tests.check.test_paths import table


@pytest.fixture
def one() -> Instruction:
    return Instruction(SUBLEQ, table({}))


def path(cells: dict[Cell, int] | None = None, state: str = FETCH, guard: int = TRUE, **others: Any) -> Path:
    return replace(Path(guard, {state: TRUE}, AT_HOME, cells or {}), **others)


def page(one: Instruction, **others: Any) -> dict[str, list[int]]:
    """Registers after an instruction that did nothing, or something else."""
    return {"trap": number(0, 2), "pc": one.tapes.pc, "taken": [FALSE], "written": number(0, 32)} | others


def bits(tape: int, anchor: Anchor, word: int, value: int, pitch: int = 9) -> dict[Cell, int]:
    return {(tape, anchor, word * pitch + 1 + bit): value >> bit & 1 for bit in range(pitch - 1)}


NOTHING = number(0, 8)


def test_an_instruction_that_does_nothing(one: Instruction) -> None:
    one.compare(path(), page(one), NOTHING)
    one.changes(path(), "ram", Write("ram", number(0, 8), (), NOTHING))


@pytest.mark.parametrize(
    ("trap", "state"), [(1, "end"), (2, "jump outside memory"), (3, "address outside memory")]
)
def test_where_a_program_stops(one: Instruction, trap: int, state: str) -> None:
    away = ((HOME, 5), *AT_HOME[1:])
    one.compare(path(state=state, heads=away), page(one, trap=number(trap, 2)), NOTHING)
    for own, wanted in ((state, 0), (FETCH, trap), (state, trap ^ 1)):
        with pytest.raises(NotProved, match="not stopped where it should"):
            one.compare(path(state=own), page(one, trap=number(wanted, 2)), NOTHING)
    with pytest.raises(NotProved, match="in the middle"):
        one.compare(path(state="hop"), page(one), NOTHING)
    with pytest.raises(NotProved, match="not at home"):
        one.compare(path(heads=away), page(one), NOTHING)


def test_pc(one: Instruction) -> None:
    cells = bits(VARIABLES, HOME, 1, 0xA5)
    one.compare(path(cells), page(one, pc=number(0xA5, 8)), NOTHING)
    for pc in (number(0x25, 8), one.tapes.pc):
        with pytest.raises(NotProved, match="pc is another"):
            one.compare(path(cells), page(one, pc=pc), NOTHING)


def test_a_byte_of_input_is_taken(one: Instruction) -> None:
    there = one.tapes.ended ^ 1
    took: dict[Cell, int] = {(INPUT, NEXT, 0): FALSE, (INPUT, NEXT, -9): TRUE}
    taken = page(one, taken=[TRUE, FALSE])
    one.compare(path(took, guard=there), taken, NOTHING)
    for cells, guard, wanted, said in (
        (took, TRUE, taken, "more is taken"),
        (took, there, page(one), "another byte of input"),
        ({}, there, taken, "another byte of input"),
        ({(INPUT, NEXT, 0): FALSE}, there, taken, "mark of the next byte is lost"),
        ({(INPUT, NEXT, -9): TRUE}, there, page(one), "mark of the next byte is lost"),
    ):
        with pytest.raises(NotProved, match=said):
            one.compare(path(cells, guard=guard), wanted, NOTHING)


def test_a_byte_of_output_is_written(one: Instruction) -> None:
    """The first at the beginning, others at the end, where the first stays."""
    some, wrote = one.tapes.single("something was written"), number(1, 32)
    first = {(VARIABLES, HOME, 18): TRUE, **bits(VARIABLES, HOME, 2, 0x5A)}
    later = {(VARIABLES, END, 0): TRUE, **bits(VARIABLES, END, 0, 0x5A)}
    said = page(one, written=wrote)
    one.compare(path(first, guard=some ^ 1), said, number(0x5A, 8))
    one.compare(path(later, guard=some), said, number(0x5A, 8))
    for cells, guard, wanted, output, why in (
        (first, some ^ 1, said, 0x5B, "another byte is written"),
        (later, some, said, 0x5B, "another byte is written"),
        (first, some ^ 1, page(one), 0x5A, "output begins elsewhere"),
        (later, some, page(one), 0x5A, "output ends elsewhere"),
        ({}, some ^ 1, said, 0, "output begins elsewhere"),
        ({}, some, said, 0, "output ends elsewhere"),
        ({**later, (VARIABLES, HOME, 18): FALSE}, some, said, 0x5A, "output begins elsewhere"),
        ({**later, **bits(VARIABLES, HOME, 2, 0x5A)}, some, said, 0x5A, "output is written over"),
    ):
        with pytest.raises(NotProved, match=why):
            one.compare(path(cells, guard=guard), wanted, number(output, 8))


def test_a_word_of_memory_is_changed(one: Instruction) -> None:
    tapes = one.tapes
    there, other = tapes.anchor("ram", number(3, 8)), tapes.anchor("ram", number(4, 8))
    held = tapes.port(there)
    flipped: dict[Cell, int] = {(MEMORY, there, 1 + bit): held[bit] ^ (bit == 2) for bit in range(8)}
    own = Write("ram", number(3, 8), (), number(4, 8))
    one.changes(path(flipped), "ram", own)
    one.changes(path({(VARIABLES, HOME, 5): TRUE}), "ram", own._replace(change=NOTHING))
    one.changes(path(flipped), "x", Write("x", number(3, 5), (), NOTHING))
    for cells, write, said in (
        (flipped, own._replace(change=NOTHING), "memory gets another word"),
        (flipped, own._replace(change=number(5, 8)), "memory gets another word"),
        (flipped, own._replace(address=number(4, 8)), "another word of memory is written"),
        ({}, own, "a word of memory is not written"),
        ({**flipped, (MEMORY, other, 1): TRUE}, own, "more than one place"),
        ({**flipped, (MEMORY, there, 9 + 1): TRUE}, own, "should not be"),
        ({**flipped, (MEMORY, there, -9 + 1): TRUE}, own, "should not be"),
    ):
        with pytest.raises(NotProved, match=said):
            one.changes(path(cells), "ram", write)


def test_two_words_in_a_row_are_changed(one: Instruction) -> None:
    there = one.tapes.anchor("ram", number(2, 8))
    ports = [one.tapes.port(there, which) for which in (0, 1)]
    cells: dict[Cell, int] = {
        (MEMORY, there, 9 * which + 1 + bit): ports[which][bit] ^ (bit == which)
        for which in (0, 1)
        for bit in range(8)
    }
    both = Write("ram", number(2, 8), (), number(0x0201, 16), 2)
    one.changes(path(cells), "ram", both)
    for change in (0x0101, 0x0202, 0x0001):
        with pytest.raises(NotProved, match="memory gets another word"):
            one.changes(path(cells), "ram", both._replace(change=number(change, 16)))


def test_what_is_written_nowhere_may_have_any_address(one: Instruction) -> None:
    """Where the guard says that nothing is changed, the address does not matter."""
    there, never = one.tapes.anchor("ram", number(2, 8)), one.tapes.single("never")
    same: dict[Cell, int] = {(MEMORY, there, 1): one.n.xor(one.tapes.port(there)[0], never)}
    change = [never, *number(0, 7)]
    one.changes(path(same, guard=never ^ 1), "ram", Write("ram", number(5, 8), (), change))
    with pytest.raises(NotProved, match="another word of memory"):
        one.changes(path(same), "ram", Write("ram", number(5, 8), (), change))


def test_what_the_page_reads_is_what_the_table_has_reached() -> None:
    one = Instruction(RV, table({}))
    tapes = one.tapes
    ram, x = tapes.anchor("ram", number(1, 32)), tapes.anchor("x", number(1, 5))
    seen = path(seen=(x, ram))
    assert one.read(seen, "ram", number(1, 32)) == tapes.port(ram)
    assert one.read(seen, "ram", number(3, 32)) == tapes.port(ram, 2)
    assert one.read(seen, "ram", number(4, 32)) is None  # beyond memory, and too far
    assert one.read(seen, "ram", number(0, 32)) is None
    assert one.read(seen, "x", number(1, 5)) == tapes.port(x)
    assert one.read(seen, "x", number(2, 5)) is None
    assert one.read(seen, "ram", number(1, 30), 1) == tapes.port(ram, 1)
    assert one.read(seen, "ram", number(2, 30), 1) is None
    last = tapes.anchor("ram", number(3, 32))
    assert one.read(path(seen=(last,)), "ram", number(4, 32)) is None
    assert one.read(path(seen=(last,)), "ram", number(3, 30), 1) == tapes.port(last, 1)


def test_words_that_are_one_hold_the_same() -> None:
    one = Instruction(RV, table({}))
    tapes = one.tapes
    tapes.anchor("ram", tapes.pc)  # the instruction
    first, second, x = (
        tapes.anchor("ram", number(1, 32)),
        tapes.anchor("ram", number(2, 32)),
        tapes.anchor("x", number(2, 5)),
    )
    found = one.consistent(path(seen=(first, second, x))).guard
    pairs = [(tapes.port(first, 1), tapes.port(second, 0)), (tapes.port(first, 2), tapes.port(second, 1))]
    same = TRUE
    for a, b in pairs:
        for one_bit, other in zip(a, b, strict=True):
            same = one.n.and_(same, one.n.xor(one_bit, other) ^ 1)
    assert found == same
    assert one.consistent(path(seen=(first, x))).guard == TRUE


# Rounds


def repeating(monkeypatch: pytest.MonkeyPatch) -> Repeating:
    one = Instruction(RV, table({}))
    monkeypatch.setattr(Repeating, "_one_round", lambda self, state: Rounds("product", f"after {state}"))
    return one.rounds


def begun(of: Repeating, **others: list[int] | None) -> Path:
    words = {HIGH: number(0, 32), COUNT: number(32, 32), LOW: of.ground.word("l"), STAYS: of.ground.word("s")}
    words |= {
        {"high": HIGH, "count": COUNT, "low": LOW, "stays": STAYS}[name]: own for name, own in others.items()
    }
    cells = {
        (tape, HOME, 33 * which + 1 + bit): own
        for (tape, which), word in words.items()
        for bit, own in enumerate(word or [])
    }
    return path(cells, state="round")


def test_rounds_begin_with_a_count_of_32_and_a_high_word_of_0(monkeypatch: pytest.MonkeyPatch) -> None:
    of = repeating(monkeypatch)
    (after,) = of.jump(begun(of)) or []
    assert after.state == "after round"
    low, stays = of.ground.word("l"), of.ground.word("s")
    assert [(own.kind, own.number) for own in after.seen] == [("product", (*low, *stays))]
    for (tape, which), word in (
        (COUNT, [TRUE] * 32), (STAYS, stays), (HIGH, of.ground.word(("rounds", "high"))),
        (LOW, of.ground.word(("rounds", "low"))),
    ):  # fmt: skip
        assert [after.cells[tape, HOME, 33 * which + 1 + bit] for bit in range(32)] == word
    for others in (
        {"count": number(31, 32)}, {"high": number(1, 32)}, {"low": None}, {"stays": None}, {"count": None},
    ):  # fmt: skip
        assert of.jump(begun(of, **others)) is None
    assert of.jump(replace(begun(of), heads=((HOME, 1), *AT_HOME[1:]))) is None
    assert of.jump(replace(begun(of), states={"round": 4, "other": 5})) is None
    with pytest.raises(NotProved, match="rounds after rounds"):
        of.jump(replace(begun(of), seen=after.seen))
    assert of.jump(replace(begun(of), seen=(Anchor("x", (2,)),)))


def test_what_rounds_leave_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    of = repeating(monkeypatch)
    wanted = {word: of.ground.word(("w", *word)) for word in (HIGH, LOW, STAYS, COUNT)}
    cells = {
        (tape, HOME, 33 * which + 1 + bit): own
        for (tape, which), word in wanted.items()
        for bit, own in enumerate(word)
    }
    assert of._are([path(cells)], wanted)
    assert not of._are([path({**cells, (INPUT, HOME, 33 * 7 + 1): TRUE})], wanted)
    for (tape, which), word in wanted.items():
        at = (tape, HOME, 33 * which + 5)
        assert not of._are([path(cells), path({**cells, at: word[4] ^ 1})], wanted)
        guard = of.ground.single("elsewhere")
        assert of._are([path({**cells, at: of.n.xor(word[4], guard)}, guard=guard ^ 1)], wanted)
    with pytest.raises(NotProved, match="more than their count"):
        of._require([path({**cells, (INPUT, HOME, 33 * 7 + 1): TRUE})], wanted)
    of._require([path(cells)], wanted)


def ends_of_a_round(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[Any], Any], kind: str = "product"
) -> Rounds:
    """What is made of the ends of a round: over where the count is 0, else again; with a change."""
    of = Instruction(RV, table({})).rounds
    n, ground = of.n, of.ground
    words = {word: ground.word(("a round", *word)) for word in (HIGH, LOW, STAYS)}
    words[COUNT] = ground.word(("a count", *COUNT))
    done = n.any_of(words[COUNT]) ^ 1
    made = (of._product if kind == "product" else of._division)(words[HIGH], words[LOW], words[STAYS])

    def cells(own: dict[tuple[int, int], list[int]]) -> dict[Cell, int]:
        return {
            (tape, HOME, 33 * which + 1 + bit): literal
            for (tape, which), word in own.items()
            for bit, literal in enumerate(word)
        }

    less = subtract(n, words[COUNT], number(1, 32))
    again = cells({HIGH: made[0], LOW: made[1], STAYS: words[STAYS], COUNT: less})
    ends = SimpleNamespace(
        n=n, some=ground.single("some"), stopped=[],
        over=[path(cells(words | {COUNT: [TRUE] * 32}), state="after", guard=done)],
        again=[path(again, state="round", guard=done ^ 1)],
    )  # fmt: skip
    change(ends)

    class Fake:
        def __init__(self, table: Any, ground: Any, most: int) -> None:
            assert most == 1 << 13

        def run(self, start: Path, stops: Callable[[Path], Any]) -> list[Path]:
            assert (start.guard, start.states, start.cells) == (TRUE, {"round": TRUE}, cells(words))
            assert stops(replace(start, heads=((HOME, 1), *AT_HOME[1:]))) is None
            assert all(stops(own) == [] for own in (*ends.over, *ends.again))
            elsewhere = replace(start, states={"on the way": TRUE})
            assert stops(elsewhere) is None
            one, other = stops(replace(start, states={"s": ends.some, "t": ends.some ^ 1}))
            assert (one.state, one.guard, other.state, other.guard) == ("s", ends.some, "t", ends.some ^ 1)
            return ends.stopped

    monkeypatch.setattr(rounds_module, "Follower", Fake)
    return of._one_round("round")


@pytest.mark.parametrize("kind", ["product", "division"])
def test_the_ends_of_a_round(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ends_of_a_round(monkeypatch, lambda ends: None, kind) == Rounds(kind, "after")

    def weaker(paths: list[Path], ends: Any) -> None:
        paths[:] = [replace(own, guard=ends.n.and_(own.guard, ends.some)) for own in paths]

    def parted(ends: Any) -> None:
        (own,) = ends.over
        halves = [ends.n.and_(own.guard, half) for half in (ends.some, ends.some ^ 1)]
        ends.over[:] = [
            replace(own, guard=halves[0]),
            replace(own, guard=halves[1], states={"elsewhere": TRUE}),
        ]

    bad: list[tuple[str, Callable[[Any], Any]]] = [
        ("do not come to their end", lambda ends: ends.stopped.append(ends.over[0])),
        ("do not come to their end", lambda ends: ends.over.clear()),
        ("do not come to their end", lambda ends: ends.again.clear()),
        ("do not come to their end", lambda ends: weaker(ends.over, ends)),
        ("do not come to their end", parted),
        ("lead to the next", lambda ends: weaker(ends.again, ends)),
        ("more than their count", lambda ends: ends.over[0].cells.update({(INPUT, HOME, 33 * 9): TRUE})),
        ("more than their count", lambda ends: ends.over[0].cells.update({(INPUT, HOME, 33 * 5 + 1): FALSE})),
        (
            "no product and no division",
            lambda ends: ends.again[0].cells.update({(INPUT, HOME, 33 * 5 + 1): FALSE}),
        ),
        (
            "no product and no division",
            lambda ends: ends.again[0].cells.update({(VARIABLES, HOME, 9): FALSE}),
        ),
    ]
    for said, change in bad:
        with pytest.raises(NotProved, match=said):
            ends_of_a_round(monkeypatch, change, kind)
