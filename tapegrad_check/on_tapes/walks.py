"""Loops of a table that go from word to word, however many: each is taken in one jump.

Three kinds of loops are known. That a state is in one of them is read off its rules, or found by following
one round of the loop for any word; its name does not matter.

Home. In one state the heads of MEMORY and RULER move on, whatever they read, until both read 1. From a word
inside memory to the left, or from a register to the right, that is at word 0: all separators in between are 0
on MEMORY.

Search. In two states, in turn, a head moves on by a word while that of the ruler goes to and fro, until the
separator shows a symbol. To the left over the input this is at the next byte; back to the right it is at word
0; over the output, it is at its end, and back at the word before its first. How often the ruler has turned is
not known, so there are two ends, with a variable to choose.

Reach. A number is counted down by one, without its lowest bit u0, and with each count the heads of MEMORY and
RULER go two words on. Let u be the rest of the number. One round, at any word j and for any number, does:

    u = 0                                           the heads go back to word j; the bits of u are all 1
    u > 0, a separator of j + 1, j + 2 shows 1      the table stops
    otherwise                                       the heads are at j + 2, and u is one less

So if it begins at j, inside memory, the heads come to word j + 2u where that is inside, and it stops
otherwise: the separators of j + 1, ..., j + 2u are all looked at, and only that of the end of memory shows 1.
To the left, over registers, no separator shows 1, and it comes to register -1 - (j - 2u).
"""

from collections.abc import Iterator
from typing import NamedTuple

from tapegrad_check.core.nodes import FALSE, TRUE
from tapegrad_check.folder import NotProved
from tapegrad_check.formulas.words import above, number, subtract
from tapegrad_check.on_tapes.ground import ANYWHERE, END, LAST, NEXT, NUMBER, SOME, Tapes
from tapegrad_check.on_tapes.layout import INPUT, MEMORY, RULER, VARIABLES
from tapegrad_check.on_tapes.paths import HOME, Action, Anchor, Cell, Follower, Path, Place, Table

STILL = (None,) * 4
ROUND = 8
"""A round of a loop takes fewer steps than so many words have cells."""


class Search(NamedTuple):
    """A head that goes on while separators show a symbol."""

    tape: int
    direction: int
    ruler: int
    """Where the head of the ruler goes in this state; in the other it comes back."""
    passes: int
    other: str


class Reach(NamedTuple):
    """A number that is counted down."""

    side: int
    found: str
    """The state at the word that was looked for."""
    stops: str | None
    """The state in which the table stops outside of memory."""


class Walks:
    """The jumps of a table."""

    def __init__(self, table: Table, ground: Tapes, follower: Follower) -> None:
        self.table, self.ground, self.n, self.follower = table, ground, ground.n, follower
        self._known: dict[str, int | Search | Reach | None] = {}
        self._turns = 0

    def kind(self, state: str) -> int | Search | Reach | None:
        """Which loop a state is in; the direction is that of the way home."""
        if state not in self._known:
            self._known[state] = None  # not known while it is followed
            turns = any(own.state == state for own in _where(self.table, state, {}))
            found = (self._home(state) or self._search(state)) if turns else None
            self._known[state] = found or self._reach(state)
        return self._known[state]

    def jump(self, path: Path) -> list[Path] | None:
        """Where a path comes out of the loop that it is in; None if it is in none."""
        if path.heads[INPUT] == (NEXT, self.ground.pitch):
            return self._beside_home(path)
        if self._asks_for_home(path):
            return self._home_or_not(path)
        kinds = {state: self.kind(state) for state in path.states}
        if len(kinds) == 1:
            ((state, kind),) = kinds.items()
            return self._jumped(path, state, kind)
        if not any(self._jumped(path, state, kind) for state, kind in kinds.items()):
            return None
        guards = {state: self.n.and_(path.guard, holds) for state, holds in path.states.items()}
        return [path.at(guard, state) for state, guard in guards.items() if guard != FALSE]

    def _jumped(self, path: Path, state: str, kind: int | Search | Reach | None) -> list[Path] | None:
        if kind is None:
            return None
        if isinstance(kind, int):
            return self._gone_home(path, kind)
        if isinstance(kind, Search):
            return self._searched(path, state, kind)
        return self._reached(path, kind)

    def _only(self, state: str, known: dict[int, int], moves: tuple[int, ...], after: str) -> bool:
        """Whether a state does just this where tapes show these symbols, and writes nothing."""
        found = {(own.write, own.moves, own.state) for own in _where(self.table, state, known)}
        return found == {(STILL, moves, after)}

    # Home

    def _home(self, state: str) -> int | None:
        for side in (1, -1):
            moves = (side, side, 0, 0)
            if all(self._only(state, known, moves, state) for known in ({RULER: 0}, {RULER: 1, MEMORY: 0})):
                return side
        return None

    def _gone_home(self, path: Path, side: int) -> list[Path] | None:
        anchor, offset = path.heads[MEMORY]
        word = offset // self.ground.pitch
        if path.heads[RULER] != (anchor, offset) or not anchor.number:
            return None
        if (anchor.kind, side) == ("ram", -1):
            beyond = above(self.n, anchor.number, -word - 1) ^ 1 if word < 0 else FALSE
            beyond = self.ground.outside(anchor, word) if word > 0 else beyond
            inside = self.n.disjoint(path.guard, beyond)
        else:
            inside = (anchor.kind, side) == ("x", 1) and word == 0
        if not inside:
            return None
        return [path.at(path.guard, heads={MEMORY: (HOME, 0), RULER: (HOME, 0)})]

    def _asks_for_home(self, path: Path) -> bool:
        """Whether a state looks at the separator of a word of memory that may be word 0."""
        anchor, offset = path.heads[MEMORY]
        if offset or anchor.kind != "ram" or path.heads[RULER] != (anchor, 0):
            return False
        asks = any(
            tape == MEMORY
            for state in path.states
            for action in _where(self.table, state, {RULER: 1})
            for tape, _ in action.asked
        )
        return asks and not self.n.disjoint(path.guard, self.n.any_of(anchor.number) ^ 1)

    def _home_or_not(self, path: Path) -> list[Path]:
        """Word 0 by itself. The others have a way to go, and it waits for them."""
        other = self.n.any_of(path.heads[MEMORY][0].number)
        at_home = path.at(self.n.and_(path.guard, other ^ 1), heads={MEMORY: (HOME, 0), RULER: (HOME, 0)})
        at_home.rank += 1
        others = path.at(self.n.and_(path.guard, other))
        return [at_home, *([others] if others.guard != FALSE else [])]

    # Search

    def _search(self, state: str) -> Search | None:
        for tape in (INPUT, VARIABLES):
            for direction, ruler, passes in ((d, r, p) for d in (1, -1) for r in (1, -1) for p in (0, 1)):
                turned = next(_where(self.table, state, {RULER: 1, tape: passes}), None)
                if turned is None or turned.state in (None, state):
                    continue
                assert turned.state is not None
                found = Search(tape, direction, ruler, passes, turned.state)
                back = Search(tape, direction, -ruler, passes, state)
                if self._goes_on(state, found) and self._goes_on(turned.state, back):
                    return found
        return None

    def _goes_on(self, state: str, search: Search) -> bool:
        def moves(ruler: int) -> tuple[int, ...]:
            own = {search.tape: search.direction, RULER: ruler}
            return tuple(own.get(tape, 0) for tape in range(4))

        return self._only(state, {RULER: 0}, moves(search.ruler), state) and self._only(
            state, {RULER: 1, search.tape: search.passes}, moves(-search.ruler), search.other
        )

    def _searched(self, path: Path, state: str, search: Search) -> list[Path] | None:
        pitch = self.ground.pitch
        (anchor, offset), (at, ruler) = path.heads[search.tape], path.heads[RULER]
        steps = -offset * search.direction % pitch
        if at is not HOME or not 0 < ruler < pitch or steps != -ruler * search.ruler % pitch:
            return None
        target = self._target(path, search, anchor, offset // pitch)
        if target is None or steps == 0:
            return None
        ends = pitch * (search.ruler > 0), pitch * (search.ruler < 0)
        self._turns += 1
        turned = self.ground.single(("the ruler has turned", self._turns))
        return [
            path.at(self.n.and_(path.guard, turned ^ other), after, {search.tape: target, RULER: (HOME, end)})
            for other, (after, end) in enumerate(zip((state, search.other), ends, strict=True))
        ]

    def _target(self, path: Path, search: Search, anchor: Anchor, word: int) -> Place | None:
        """Where a search comes to from the inside of a word."""
        first, pitch = self.ground.first_output, self.ground.pitch
        changed = path.cells.keys()
        if search.tape == INPUT and not search.passes:
            if search.direction < 0 and (anchor, word) == (HOME, -1):
                return None if {(INPUT, NEXT, 0), (INPUT, NEXT, -pitch)} & changed else (NEXT, 0)
            return (HOME, 0) if search.direction > 0 and (anchor, word) in ((NEXT, 0), (LAST, 0)) else None
        if search.tape == VARIABLES and search.passes and (VARIABLES, HOME, first * pitch) not in changed:
            written = self.ground.single("something was written")
            if search.direction > 0 and (anchor, word) == (HOME, first):
                known = self.n.disjoint(path.guard, written ^ 1)
                return (END, 0) if known and (VARIABLES, END, 0) not in changed else None
            if search.direction < 0 and (anchor, word) == (END, -1):
                return HOME, (first - 1) * pitch
        return None

    def _beside_home(self, path: Path) -> list[Path]:
        """The word to the right of the next byte may be word 0."""
        first = self.ground.single("nothing was read")
        parts = (first, (HOME, 0)), (first ^ 1, (LAST, 0))
        guards = [(self.n.and_(path.guard, holds), place) for holds, place in parts]
        return [path.at(guard, heads={INPUT: place}) for guard, place in guards if guard != FALSE]

    # Reach

    def _reach(self, state: str) -> Reach | None:
        begins = [*_where(self.table, state, {RULER: 0})]
        side = next((s for s in (1, -1) if begins and begins[0].moves == (s, s, 1, 0)), 0)
        if not side or len(begins) > 1 or begins[0].write != STILL or begins[0].state in (None, state):
            return None
        assert begins[0].state is not None
        borrows = [*_where(self.table, begins[0].state, {RULER: 0, INPUT: 0})]
        if len(borrows) != 1 or borrows[0].write[INPUT] != 1:
            return None
        try:
            return self._one_round(state, side)
        except NotProved:
            return None

    def _one_round(self, state: str, side: int) -> Reach | None:
        n, pitch = self.n, self.ground.pitch
        beside, bits = (ANYWHERE, 0), self.ground.word(NUMBER)
        back = ((SOME, 0), (SOME, 0), (NUMBER, 0), beside)
        on = ((SOME, side * (2 * pitch + 1)), (SOME, side * (2 * pitch + 1)), (NUMBER, 1), beside)
        came: dict[tuple[Place, ...], list[Path]] = {back: [], on: []}

        def stops(path: Path) -> list[Path] | None:
            if path.heads in came:
                came[path.heads].append(path)
                return []
            return None

        start = Path(TRUE, {state: TRUE}, ((SOME, side), (SOME, side), (NUMBER, 1), beside))
        follower = Follower(self.table, self.ground, ROUND * pitch)
        outside = follower.run(start, stops)
        marks = [self.ground.single(("a mark", side * word)) for word in (1, 2)] if outside else []
        zero, mark = n.any_of(bits[1:]) ^ 1, n.any_of(marks)
        less = subtract(n, bits[1:], number(1, len(bits) - 1))
        cells: list[Cell] = [(INPUT, NUMBER, 1 + bit) for bit in range(1, len(bits))]

        def comes(paths: list[Path], guard: int, left: list[int] | None) -> str | None:
            """The state in which these paths end, if they are all that there are under a guard, and leave the
            number with these bits."""
            states = {path.state for path in paths}
            whole = n.any_of([path.guard for path in paths]) == guard and len(states) == 1
            for path in paths if whole else ():
                same = left is None or all(
                    n.disjoint(path.guard, n.xor(follower.known(path, cell), bit))
                    for cell, bit in zip(cells, left, strict=True)
                )
                whole = whole and same and path.cells.keys() <= {*cells}
            return states.pop() if whole else None

        found = comes(came[back], zero, [TRUE] * len(cells))
        again = comes(came[on], n.and_(zero ^ 1, mark ^ 1), less)
        stopped = comes(outside, n.and_(zero ^ 1, mark), None) if outside else None
        if found is None or again != state or (outside and stopped is None):
            return None
        return Reach(side, found, stopped)

    def _reached(self, path: Path, reach: Reach) -> list[Path] | None:
        """From the first round to the word with the number. The lowest bit has been used up before: it says
        at which of two words the rounds begin."""
        n, pitch = self.n, self.ground.pitch
        (anchor, offset), (work, place) = path.heads[MEMORY], path.heads[INPUT]
        first, at = divmod(offset - reach.side, pitch)
        base = place - 1
        if (
            path.heads[RULER] != (anchor, offset)
            or anchor is not HOME
            or at
            or work is not HOME
            or base % pitch
        ):
            return None
        counted = first if reach.side > 0 else -1 - first
        bits = [self.follower.known(path, (INPUT, HOME, base + 1 + bit)) for bit in range(pitch - 1)]
        if counted not in (0, 1) or base < 0 or first >= self.ground.words:
            raise NotProved("a number is counted down from somewhere else than the first words")
        told = n.disjoint(path.guard, bits[0] ^ counted)
        bits[0] = bits[0] if told else counted
        heads: dict[int, Place] = {INPUT: (HOME, base)}
        ways = []
        if reach.side > 0:
            beyond = above(n, bits, self.ground.words - 1)
            kind, inside = "ram", n.and_(path.guard, beyond ^ 1)
            if (stopped := n.and_(path.guard, beyond)) != FALSE:
                if reach.stops is None:
                    raise NotProved("the table does not look for the end of memory")
                ways.append(path.at(stopped, reach.stops, heads))
        else:
            kind, inside = "x", path.guard
            if not self.ground.registers or any(bit != FALSE for bit in bits[5:]) or reach.stops:
                raise NotProved("there may be no register of a number")
            bits = bits[:5]
        if inside != FALSE:
            there = self.ground.anchor(kind, bits)
            found = path.at(inside, reach.found, heads | {MEMORY: (there, 0), RULER: (there, 0)})
            found.cells |= {(INPUT, HOME, base + 1 + bit): TRUE for bit in range(1, pitch - 1)}
            found.seen = (*found.seen, there)
            ways.append(found)
        return ways


def _where(table: Table, state: str, known: dict[int, int]) -> Iterator[Action]:
    """What a state does where tapes show these symbols."""
    for action in () if table.ends(state) else table.actions(state):
        if all(known.get(tape, symbol) == symbol for tape, symbol in action.asked):
            yield action
