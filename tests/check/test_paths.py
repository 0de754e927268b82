"""Tables followed for all contents of their tapes at once, beside the same tables run on each."""

import random
from collections.abc import Callable
from itertools import product

import pytest

from tapegrad_check.core.nodes import FALSE, TRUE
from tapegrad_check.folder import NotProved
from tapegrad_check.formulas.diagrams import Diagrams
from tapegrad_check.on_tapes.layout import FETCH, MEMORY
from tapegrad_check.on_tapes.paths import AT_HOME, HOME, TAPES, Anchor, Cell, Follower, Path, Table
from tapegrad_check.sources import Rule

CODES = [tuple("01"[code >> tape & 1] for tape in range(TAPES)) for code in range(1 << TAPES)]
Rules = dict[tuple[str, tuple[str, ...]], Rule]


def table(rules: Rules) -> Table:
    return Table(type("Machine", (), {"rules": rules})())  # type: ignore[arg-type]


# What a state asks for


@pytest.mark.parametrize("seed", range(20))
def test_actions_are_the_rules_with_as_few_questions_as_matter(seed: int) -> None:
    draw = random.Random(seed)
    asked = draw.sample(range(TAPES), draw.randrange(TAPES + 1))
    by: dict[tuple[str, ...], tuple[list[str], tuple[int, ...], str] | None] = {}
    rules: Rules = {}
    for read in CODES:
        told = tuple(read[tape] for tape in asked)
        if told not in by:
            modes = [draw.choice(("keep", "0", "1")) for _ in range(TAPES)]
            moves = tuple(draw.choice((-1, 0, 1)) for _ in range(TAPES))
            by[told] = (modes, moves, draw.choice("ab")) if draw.randrange(6) else None
        found = by[told]
        if found is not None:
            modes, moves, state = found
            write = tuple(own if mode == "keep" else mode for mode, own in zip(modes, read, strict=True))
            rules["s", read] = Rule(write, moves, state)
    if not rules:
        return
    actions = table(rules).actions("s")
    for read in CODES:
        (own,) = [a for a in actions if all(read[tape] == "01"[symbol] for tape, symbol in a.asked)]
        rule = rules.get(("s", read))
        if rule is None:
            assert own.state is None
            continue
        written = tuple(old if new is None else "01"[new] for new, old in zip(own.write, read, strict=True))
        assert (written, own.moves, own.state) == (rule.write, rule.moves, rule.state)
    assert {tape for action in actions for tape, _ in action.asked} <= {*asked}


def test_a_symbol_that_is_turned_over_is_asked_for() -> None:
    for write, questions in ((lambda s: s, 0), (lambda s: "1", 0), (lambda s: "10"[int(s)], 1)):
        rules = {("s", read): Rule((write(read[0]), *read[1:]), (0,) * 4, "a") for read in CODES}
        assert {len(action.asked) for action in table(rules).actions("s")} == {questions}


def test_a_symbol_that_is_copied_to_another_tape_is_asked_for() -> None:
    rules = {("s", read): Rule((read[0], read[0], *read[2:]), (0,) * 4, "a") for read in CODES}
    assert {action.asked for action in table(rules).actions("s")} == {((0, 0),), ((0, 1),)}


def test_where_a_table_ends() -> None:
    own = table(
        {("s", CODES[0]): Rule(CODES[0], (0,) * 4, "a"), (FETCH, CODES[0]): Rule(CODES[0], (0,) * 4, "s")}
    )
    assert (own.ends("s"), own.ends("a"), own.ends(FETCH)) == (False, True, True)


# Paths


class Ground:
    """Some cells are variables, the others constants; or nothing is known of them, or they may not change."""

    def __init__(
        self, held: dict[Cell, int | None], fixed: set[Cell] | None = None, most: int = 1 << 14
    ) -> None:
        self.n = Diagrams(most)
        self.known: dict[Cell, int | None] = {
            cell: own if own is None or own < 2 else self.n.variable(own) for cell, own in held.items()
        }
        self.fixed = fixed or set()

    def held(self, cell: Cell) -> int | None:
        return self.known.get(cell, FALSE)

    def may_change(self, cell: Cell) -> bool:
        return cell not in self.fixed


def evaluated(n: Diagrams, literal: int, ones: set[int]) -> int:
    while literal > 1:
        node = literal >> 1
        side = n._high[node] if n._level[node] in ones else n._low[node]
        literal = side ^ literal & 1
    return literal


def drawn_rules(draw: random.Random, states: int = 6) -> Rules:
    """States that lead to later ones, and two ends; each looks at two tapes or so."""
    rules: Rules = {}
    for number in range(states):
        asked = draw.sample(range(TAPES), 2)
        by = {}
        alike = tuple(draw.choice((-1, 0, 0, 1)) for _ in range(TAPES))
        for read in CODES:
            told = tuple(read[tape] for tape in asked)
            if told not in by:
                after = draw.choice([*(f"s{later}" for later in range(number + 1, states)), "end", FETCH])
                modes = [draw.choice(("keep", "keep", "0", "1")) for _ in range(TAPES)]
                moves = alike if draw.randrange(3) else tuple(draw.choice((-1, 0, 1)) for _ in range(TAPES))
                by[told] = modes, moves, after
            modes, moves, after = by[told]
            write = tuple(own if mode == "keep" else mode for mode, own in zip(modes, read, strict=True))
            rules[f"s{number}", read] = Rule(write, moves, after)
    return rules


def nowhere(path: Path) -> list[Path] | None:
    return None


def waits(path: Path) -> list[Path] | None:
    """Every path waits for the others that come to a place with its heads at home."""
    if path.heads == AT_HOME and not path.waited and path.state:
        return [Path(path.guard, path.states, path.heads, path.cells, path.seen, path.rank + 1, True)]
    return None


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("jumps", [nowhere, waits])
def test_paths_are_all_runs(seed: int, jumps: Callable[[Path], list[Path] | None]) -> None:
    draw = random.Random(seed)
    rules = drawn_rules(draw)
    held: dict[Cell, int | None] = {}
    for tape, offset in product(range(TAPES), range(-6, 7)):
        held[tape, HOME, offset] = draw.choice((FALSE, TRUE))
    free = [(tape, HOME, offset) for tape in range(TAPES) for offset in (0, 1)]
    held |= {cell: 2 + number for number, cell in enumerate(free)}
    ground = Ground(held)
    follower = Follower(table(rules), ground, 1 << 12)
    paths = follower.run(Path(TRUE, {"s0": TRUE}, AT_HOME), jumps)
    for values in product((0, 1), repeat=len(free)):
        ones = {2 + number for number, value in enumerate(values) if value}
        cells = {
            cell: evaluated(ground.n, own, ones) for cell, own in ground.known.items() if own is not None
        }
        heads, state = [0] * TAPES, "s0"
        while (state, CODES[0]) in rules:
            read = tuple("01"[cells[tape, HOME, at]] for tape, at in enumerate(heads))
            rule = rules[state, read]
            for tape, at in enumerate(heads):
                cells[tape, HOME, at] = int(rule.write[tape])
            heads, state = [at + move for at, move in zip(heads, rule.moves, strict=True)], rule.state
        (path,) = [own for own in paths if evaluated(ground.n, own.guard, ones)]
        assert path.state == state
        assert path.heads == tuple((HOME, at) for at in heads)
        for cell, value in cells.items():
            found = follower.content(path, cell)
            assert found is not None
            assert evaluated(ground.n, found, ones) == value


def one_rule(write: Callable[[tuple[str, ...]], tuple[str, ...]], state: str = "end") -> Rules:
    return {("s0", read): Rule(write(read), (0,) * 4, state) for read in CODES}


def followed(rules: Rules, ground: Ground, most: int = 10) -> list[Path]:
    return Follower(table(rules), ground, most).run(Path(TRUE, {"s0": TRUE}, AT_HOME), nowhere)


def test_what_is_not_known_may_not_matter() -> None:
    unknown: dict[Cell, int | None] = {(1, HOME, 0): None}
    assert len(followed(one_rule(lambda read: read), Ground(unknown))) == 1
    assert len(followed(one_rule(lambda read: (read[0], "1", *read[2:])), Ground(unknown))) == 1
    turned = one_rule(lambda read: (read[0], "10"[int(read[1])], *read[2:]))
    with pytest.raises(NotProved, match="may hold anything"):
        followed(turned, Ground(unknown))


def test_what_may_not_change_may_be_written_as_it_is() -> None:
    cell = (2, HOME, 0)
    ones = one_rule(lambda read: (*read[:2], "1", read[3]))
    assert followed(ones, Ground({cell: TRUE}, {cell}))[0].cells == {}
    for held in (FALSE, None, 5):
        with pytest.raises(NotProved, match="where nothing may change"):
            followed(ones, Ground({cell: held}, {cell}))
    # Where the guard says that it is 1 already, a 1 may be written.
    rules = one_rule(lambda read: read, "s1")
    rules = {case: rule for case, rule in rules.items() if case[1][2] == "1"}
    rules |= {("s1", read): Rule((*read[:2], "1", read[3]), (0,) * 4, "end") for read in CODES}
    rules |= {("s0", read): Rule(read, (0,) * 4, "other") for read in CODES if read[2] == "0"}
    assert len(followed(rules, Ground({cell: 5}, {cell}))) == 2


def test_a_table_that_stops_halfway() -> None:
    rules = {case: rule for case, rule in one_rule(lambda read: read).items() if case[1][3] == "0"}
    cell = (3, HOME, 0)
    assert len(followed(rules, Ground({cell: FALSE}))) == 1
    for held in (TRUE, 7):
        with pytest.raises(NotProved, match="in the middle of an instruction"):
            followed(rules, Ground({cell: held}))


def test_where_the_guard_says_otherwise_a_table_does_not_stop() -> None:
    rules = {case: rule for case, rule in one_rule(lambda read: read).items() if case[1][3] == "0"}
    ground = Ground({(3, HOME, 0): 7})
    follower = Follower(table(rules), ground, 10)
    never = ground.n.variable(7) ^ 1
    (path,) = follower.run(Path(never, {"s0": TRUE}, AT_HOME), nowhere)
    assert path.guard == never


def test_an_instruction_begins_where_others_end() -> None:
    rules = {(FETCH, read): Rule(read, (0, 1, 0, 0), FETCH) for read in CODES}
    (path,) = Follower(table(rules), Ground({}), 10).run(Path(TRUE, {FETCH: TRUE}, AT_HOME), nowhere)
    assert path.heads[1] == (HOME, 1)


def test_steps_are_counted() -> None:
    rules: Rules = {}
    for number in range(5):
        after = f"s{number + 1}" if number < 4 else "end"
        rules |= {(f"s{number}", read): Rule(read, (0,) * 4, after) for read in CODES}
    assert followed(rules, Ground({}), 5)
    with pytest.raises(NotProved, match="more steps than can be followed"):
        followed(rules, Ground({}), 4)


def test_words_with_numbers_may_be_the_same() -> None:
    """After one of them is changed the others of its kind are not known; those of other kinds are."""
    one, other, register, named = (
        Anchor("ram", (2, 4)),
        Anchor("ram", (6, 8)),
        Anchor("x", (2,)),
        Anchor("ram"),
    )
    cells: dict[Cell, int | None] = {
        (tape, anchor, 1): 5 for tape in range(2) for anchor in (one, other, register, named)
    }
    follower = Follower(table({}), Ground(cells), 1)
    path = Path(TRUE, {"s0": TRUE}, AT_HOME)
    assert all(follower.content(path, cell) is not None for cell in cells)
    path.cells[MEMORY, one, 3] = TRUE
    assert follower.content(path, (MEMORY, one, 1)) is not None
    assert follower.content(path, (MEMORY, one, 3)) == TRUE
    assert follower.content(path, (MEMORY, other, 1)) is None
    assert follower.content(path, (MEMORY, register, 1)) is not None
    assert follower.content(path, (MEMORY, named, 1)) is not None
    assert follower.content(path, (1, other, 1)) is not None
    path = Path(TRUE, {"s0": TRUE}, AT_HOME, {(1, one, 3): TRUE})
    assert follower.content(path, (MEMORY, other, 1)) is not None
    path = Path(TRUE, {"s0": TRUE}, AT_HOME, {(MEMORY, one, 3): TRUE, (MEMORY, other, 3): TRUE})
    assert follower.content(path, (MEMORY, one, 3)) is None


def test_paths_that_are_joined() -> None:
    a_cell, b_cell, unknown = (0, HOME, 1), (0, HOME, 2), (0, HOME, 3)
    ground = Ground({a_cell: 9, b_cell: 10, unknown: None})
    n, follower = ground.n, Follower(table({}), ground, 1)
    guard = n.variable(2)
    seen = (Anchor("ram", (2,)),)
    one = Path(guard, {"s": TRUE}, AT_HOME, {a_cell: TRUE, unknown: TRUE}, seen, 3)
    other = Path(guard ^ 1, {"s": TRUE}, AT_HOME, {b_cell: FALSE}, seen, 5)
    both = follower.joined(one, other)
    assert both is not None
    assert (both.guard, both.state, both.heads, both.seen, both.rank) == (TRUE, "s", AT_HOME, seen, 5)
    assert both.cells == {a_cell: n.or_(guard, n.variable(9)), b_cell: n.and_(guard, n.variable(10))}
    assert follower.content(both, unknown) is None
    again = follower.joined(other, one)
    assert again is not None
    assert (again.cells, again.rank) == (both.cells, 5)
    away = ((HOME, 1), *AT_HOME[1:])
    for apart in (
        Path(guard ^ 1, {"t": TRUE}, AT_HOME, {}, seen),
        Path(guard ^ 1, {"s": TRUE}, away, {}, seen),
        Path(guard ^ 1, {"s": TRUE}, AT_HOME, {}, ()),
    ):
        assert follower.joined(one, apart) is None


def test_another_place_of_a_path() -> None:
    path = Path(4, {"s": 6, "t": 7}, AT_HOME, {(0, HOME, 1): TRUE}, (), 3, True)
    moved = path.at(8, heads={2: (HOME, 9)})
    assert (moved.guard, moved.states, moved.rank, moved.waited) == (8, {"s": 6, "t": 7}, 4, False)
    assert moved.heads == (AT_HOME[0], AT_HOME[1], (HOME, 9), AT_HOME[3])
    assert moved.cells == path.cells
    assert moved.cells is not path.cells
    assert (path.state, path.at(8, "u").states) == (None, {"u": TRUE})
