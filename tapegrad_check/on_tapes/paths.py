"""A table on four tapes, followed for all contents of the tapes at once.

Cells hold literals of decision diagrams (`diagrams`). A path is what the table may do up to some step: a
guard, which says for which contents; where the heads are; and which cells have changed. States in which the
heads move alike are followed together: each has a literal that says where it is the state, and of these
exactly one is 1. So a loop over the bits of a word, which carries something in its state, is one path. Where
heads part, paths part, and where two paths come to the same place they may become one again.

A place is an offset from an anchor. The anchor may be a word that is known (HOME), or one whose number is a
word of literals: then the place stands for all that it can be. What cells hold at first, and which of them
may be changed, is told by a `Ground`; where it does not know what a cell holds, the table must not care.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple, Protocol

from tapegrad_check.core.nodes import FALSE, TRUE
from tapegrad_check.folder import NotProved
from tapegrad_check.formulas.diagrams import Diagrams
from tapegrad_check.on_tapes.layout import FETCH, INPUT, MEMORY, RULER, VARIABLES
from tapegrad_check.sources import Machine

TAPES = 4


@dataclass(frozen=True, eq=False)
class Anchor:
    """A word of a tape, by what it is and, where it is found by a number, the literals of that number."""

    kind: str
    number: tuple[int, ...] = ()


HOME = Anchor("home")
Place = tuple[Anchor, int]
AT_HOME = ((HOME, 0),) * TAPES
Cell = tuple[int, Anchor, int]


class Action(NamedTuple):
    """What a state does where tapes show the symbols that it asks for; a tape without a symbol to write stays
    as it is. Without a state the table stops there."""

    asked: tuple[tuple[int, int], ...]
    write: tuple[int | None, ...]
    moves: tuple[int, ...]
    state: str | None


class Table:
    """The rules of a machine, state by state, with as few questions as possible."""

    def __init__(self, machine: Machine) -> None:
        self.rules: dict[str, dict[int, _Rule]] = {}
        for (state, read), rule in machine.rules.items():
            self.rules.setdefault(state, {})[_code(read)] = _code(rule.write), rule.moves, rule.state
        self._actions: dict[str, list[Action]] = {}

    def ends(self, state: str) -> bool:
        """Between two instructions, or where the table stops."""
        return state == FETCH or state not in self.rules

    def actions(self, state: str) -> list[Action]:
        """What a state does, by as many symbols as matter."""
        if state not in self._actions:
            self._actions[state] = list(self._found(self.rules[state], {}))
        return self._actions[state]

    def _found(self, rules: Mapping[int, "_Rule"], known: Mapping[int, int]) -> Iterator[Action]:
        """The ruler is asked first: within a word and at its ends different things matter."""
        codes = [c for c in range(1 << TAPES) if all(c >> tape & 1 == bit for tape, bit in known.items())]
        for tape in (RULER, MEMORY, INPUT, VARIABLES):
            if tape not in known and any(_matters(rules, code, tape) for code in codes if code >> tape & 1):
                for bit in (0, 1):
                    yield from self._found(rules, {**known, tape: bit})
                return
        code, asked = codes[0], tuple(known.items())
        if code not in rules:
            yield Action(asked, (None,) * TAPES, (0,) * TAPES, None)
            return
        write, moves, after = rules[code]
        written: list[int | None] = []
        for tape in range(TAPES):
            bit = write >> tape & 1
            kept = bit == code >> tape & 1 and (
                tape in known or rules[code ^ 1 << tape][0] >> tape & 1 != bit
            )
            written.append(None if kept else bit)
        yield Action(asked, tuple(written), moves, after)


_Rule = tuple[int, tuple[int, ...], str]
"""What is written, a bit for each tape, how the heads move, and the next state."""


def _code(symbols: Sequence[str]) -> int:
    return sum((symbol == "1") << tape for tape, symbol in enumerate(symbols))


def _matters(rules: Mapping[int, _Rule], code: int, tape: int) -> bool:
    """Whether it matters there what a tape shows: unless all else is alike, and the symbol is kept whatever
    it is, or written over alike."""
    one, other = rules.get(code), rules.get(code ^ 1 << tape)
    if one is None or other is None:
        return one is not other
    differ = one[0] ^ other[0]
    kept = differ == 1 << tape and (one[0] ^ code) >> tape & 1 == 0
    return one[1:] != other[1:] or (differ != 0 and not kept)


@dataclass
class Path:
    """What the table may do up to here."""

    guard: int
    states: dict[str, int]
    heads: tuple[Place, ...]
    cells: dict[Cell, int] = field(default_factory=dict)
    """Those that have changed."""
    seen: tuple[Anchor, ...] = ()
    """The words of memory that were reached by their numbers, in order."""
    rank: int = 0
    """How many places it has passed at which paths wait for each other."""
    waited: bool = False
    """Whether it is at such a place, and has waited."""

    @property
    def state(self) -> str | None:
        """The state, if it is one."""
        return next(iter(self.states)) if len(self.states) == 1 else None

    def at(self, guard: int, state: str | None = None, heads: Mapping[int, Place] | None = None) -> "Path":
        """The same somewhere else, under another guard."""
        places = tuple((heads or {}).get(tape, place) for tape, place in enumerate(self.heads))
        states = dict(self.states) if state is None else {state: TRUE}
        return Path(guard, states, places, dict(self.cells), self.seen, self.rank + 1)


class Ground(Protocol):
    """What is known of the tapes between two instructions."""

    n: Diagrams

    def held(self, cell: Cell) -> int | None:
        """What a cell holds; None if that is not known."""
        ...

    def may_change(self, cell: Cell) -> bool:
        """Whether an instruction may write there."""
        ...


class Follower:
    """Follows paths to their ends."""

    def __init__(self, table: Table, ground: Ground, most: int) -> None:
        self.table, self.ground, self.n = table, ground, ground.n
        self.left = most
        """How many steps may still be taken."""

    def content(self, path: Path, cell: Cell) -> int | None:
        """What a cell holds on a path."""
        found = path.cells.get(cell)
        if found is None:
            found = self.ground.held(cell)
        tape, anchor, _ = cell
        if tape == MEMORY and anchor.number and found is not None:
            # Two words with numbers may be the same one: after one is changed the others are not known.
            others = (own[1] for own in path.cells if own[0] == MEMORY)
            if any(own is not anchor and own.kind == anchor.kind for own in others):
                return None
        return found

    def known(self, path: Path, cell: Cell) -> int:
        """What a cell holds, which must be known."""
        found = self.content(path, cell)
        if found is None:
            raise NotProved(
                f"in the state {next(iter(path.states))!r} it looks at a cell that may hold anything"
            )
        return found

    def step(self, path: Path) -> list[Path]:
        """What follows after one step. The path is used up."""
        self.left -= 1
        if self.left < 0:
            raise NotProved("an instruction takes more steps than can be followed")
        n = self.n
        under = _Under(self, path)
        groups: dict[tuple[tuple[int, ...], str | None], list[tuple[Action, int]]] = {}
        for state, holds in path.states.items():
            for action in self.table.actions(state):
                where = holds
                for tape, symbol in action.asked:
                    if where != FALSE:
                        where = n.and_(where, under[tape] ^ 1 ^ symbol)
                if where == FALSE or n.disjoint(path.guard, where):
                    continue
                if action.state is None:
                    raise NotProved(
                        f"the table stops in the state {state!r}, in the middle of an instruction"
                    )
                end = action.state if self.table.ends(action.state) else None
                groups.setdefault((action.moves, end), []).append((action, where))
        if len(groups) == 1:
            ((key, group),) = groups.items()
            return [self._after(path, path.cells, key[0], group, under)]
        return [self._after(path, dict(path.cells), key[0], group, under) for key, group in groups.items()]

    def _after(
        self,
        path: Path,
        cells: dict[Cell, int],
        moves: Sequence[int],
        group: list[tuple[Action, int]],
        under: "_Under",
    ) -> Path:
        n = self.n
        total = FALSE
        for _, where in group:
            total = n.or_(total, where)
        states: dict[str, int] = {}
        for action, where in group:
            assert action.state is not None
            states[action.state] = n.or_(states.get(action.state, FALSE), n.within(where, total))
        for tape in range(TAPES):
            sides: dict[int | None, int] = {}
            for action, where in group:
                sides[action.write[tape]] = n.or_(sides.get(action.write[tape], FALSE), where)
            if sides.keys() == {None}:
                continue
            new = sides.get(1, FALSE)
            if None in sides:
                new = n.or_(new, n.and_(sides[None], under[tape]))
            self._write(path, cells, (tape, *path.heads[tape]), n.within(new, total))
        heads = tuple(
            (anchor, offset + move) for (anchor, offset), move in zip(path.heads, moves, strict=True)
        )
        return Path(n.and_(path.guard, total), states, heads, cells, path.seen, path.rank)

    def _write(self, path: Path, cells: dict[Cell, int], cell: Cell, new: int) -> None:
        if self.ground.may_change(cell):
            cells[cell] = new
            return
        old = self.content(path, cell)
        if old is None or not self.n.disjoint(path.guard, self.n.xor(old, new)):
            raise NotProved(f"in the state {next(iter(path.states))!r} it writes where nothing may change")

    def run(self, start: Path, jumps: Callable[[Path], list[Path] | None]) -> list[Path]:
        """All paths from a start, each followed until the table ends. `jumps` takes a path on by more than a
        step: to the end of a loop, to parts of which each stands by itself, or, with nothing, out of the
        run. Those that have come as far wait for each other there."""
        waiting = _Waiting(self)
        waiting.push(start)
        ended = []
        while path := waiting.pop():
            while True:
                if path.state is not None and self.table.ends(path.state) and path is not start:
                    ended.append(path)
                    break
                jumped = jumps(path) if path is not start else None
                if jumped is not None:
                    for one in jumped:
                        waiting.push(one)
                    break
                following = self.step(path)
                if len(following) != 1:
                    for one in following:
                        waiting.push(one)
                    break
                (path,) = following
        return ended

    def joined(self, one: Path, other: Path) -> Path | None:
        """Two paths in the same state with the heads at the same places as one; None where that would mix up
        words of memory."""
        n = self.n
        if one.seen != other.seen or one.states != other.states or one.heads != other.heads:
            return None
        guard = n.or_(one.guard, other.guard)
        cells = {}
        for cell in one.cells.keys() | other.cells.keys():
            a, b = (path.cells.get(cell, self.ground.held(cell)) for path in (one, other))
            if a is not None and b is not None:
                chosen = a if a == b else n.or_(n.and_(one.guard, a), n.and_(one.guard ^ 1, b))
                cells[cell] = n.within(chosen, guard)
        return Path(guard, one.states, one.heads, cells, one.seen, max(one.rank, other.rank))


class _Under(dict[int, int]):
    """What lies under the heads, looked up where it matters."""

    def __init__(self, follower: Follower, path: Path) -> None:
        self.follower, self.path = follower, path

    def __missing__(self, tape: int) -> int:
        self[tape] = self.follower.known(self.path, (tape, *self.path.heads[tape]))
        return self[tape]


class _Waiting:
    """Paths to be followed, those first that have passed the fewest places where they wait."""

    def __init__(self, follower: Follower) -> None:
        self.follower = follower
        self.paths: dict[int, Path] = {}
        self.heap: list[tuple[int, int]] = []

    @cached_property
    def _numbers(self) -> Iterator[int]:
        return count()

    def push(self, path: Path) -> None:
        for number, other in self.paths.items():
            joined = self.follower.joined(path, other) if path.state else None
            if joined:
                del self.paths[number]
                path = joined
                break
        number = next(self._numbers)
        self.paths[number] = path
        heappush(self.heap, (path.rank, number))

    def pop(self) -> Path | None:
        while self.heap:
            _, number = heappop(self.heap)
            if number in self.paths:
                return self.paths.pop(number)
        return None
