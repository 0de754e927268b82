"""Multiplication and division on tapes: 32 rounds, of which one is followed for all words.

Between two rounds the heads are at home, and three words are worked on: the high word H, the low word L and
the word D, which stays; a fourth one counts. One round is followed with all four of them free. Where the
count is 0, the table goes on to something else; otherwise it counts one down, comes back to the same state,
and has made of H and L one of these:

    product    H + D if the lowest bit of L is 1, else H, with its carry; then H and L move down by a bit
    division   H and L move up by a bit; where H, with the bit that falls out of it, is not less than D, it is
               subtracted, and the lowest bit of L is 1

Nothing else is changed. So from H = 0 and a count of 32 it is done 32 times. After i rounds of the product
the upper 32 + i bits of H and L are D times the number of the i bits that have left L, and the others are
what is left of it; so in the end H and L are the product of D and L. Division is `words.divide`, bit by bit,
with the quotient's bits in the places that the dividend's have left: in the end L is the quotient and H the
remainder.
"""

from typing import NamedTuple

from tapegrad_check.core.nodes import FALSE, TRUE
from tapegrad_check.folder import NotProved
from tapegrad_check.formulas.words import add, less, number, only, padded, subtract, where
from tapegrad_check.on_tapes.ground import Tapes
from tapegrad_check.on_tapes.layout import INPUT, VARIABLES
from tapegrad_check.on_tapes.paths import AT_HOME, HOME, Anchor, Cell, Follower, Path, Table

HIGH, LOW, STAYS, COUNT = (VARIABLES, 0), (INPUT, 2), (INPUT, 1), (INPUT, 5)
"""The words: the tape, and the number of the word."""
ROUNDS = 32
STEPS = 1 << 13
"""A round takes fewer steps."""

KINDS = ("product", "division")
Word = list[int]


class Rounds(NamedTuple):
    """What is done in rounds, and the state to which they lead."""

    kind: str
    after: str


class Repeating:
    """The loops of 32 rounds of a table."""

    def __init__(self, table: Table, ground: Tapes, follower: Follower) -> None:
        self.table, self.ground, self.n, self.follower = table, ground, ground.n, follower

    def jump(self, path: Path) -> list[Path] | None:
        """From the first round to what comes after the last; None if none begins here."""
        state = path.state
        counted, high, low, stays = (self._held(path, word) for word in (COUNT, HIGH, LOW, STAYS))
        begins = counted == number(ROUNDS, 32) and high == [FALSE] * 32 and path.heads == AT_HOME
        if state is None or not begins or low is None or stays is None:
            return None
        if any(anchor.kind in KINDS for anchor in path.seen):
            raise NotProved("there are rounds after rounds")
        rounds = self._one_round(state)
        after = path.at(path.guard, rounds.after)
        after.cells |= zip(self._cells(COUNT), [TRUE] * 32, strict=True)
        for cells, word in ((self._cells(HIGH), "high"), (self._cells(LOW), "low")):
            after.cells |= zip(cells, self.ground.word(("rounds", word)), strict=True)
        after.seen = (*path.seen, Anchor(rounds.kind, (*low, *stays)))
        return [after]

    def _cells(self, word: tuple[int, int]) -> list[Cell]:
        tape, which = word
        return [(tape, HOME, self.ground.pitch * which + 1 + bit) for bit in range(32)]

    def _held(self, path: Path, word: tuple[int, int]) -> Word | None:
        bits = [self.follower.content(path, cell) for cell in self._cells(word)]
        return None if None in bits else [bit for bit in bits if bit is not None]

    def _one_round(self, state: str) -> Rounds:
        n = self.n
        words = {word: self.ground.word(("a round", *word)) for word in (HIGH, LOW, STAYS)}
        words[COUNT] = self.ground.word(("a count", *COUNT))
        cells = {
            cell: bit
            for word, bits in words.items()
            for cell, bit in zip(self._cells(word), bits, strict=True)
        }
        done = n.any_of(words[COUNT]) ^ 1
        again: list[Path] = []
        over: list[Path] = []

        def stops(path: Path) -> list[Path] | None:
            if path.heads != AT_HOME:
                return None
            if path.state is None:
                return [path.at(n.and_(path.guard, holds), own) for own, holds in path.states.items()]
            ended = n.disjoint(path.guard, done ^ 1)
            if ended or path.state == state:
                (over if ended else again).append(path)
                return []
            return None

        start = Path(TRUE, {state: TRUE}, AT_HOME, dict(cells))
        stopped = Follower(self.table, self.ground, STEPS).run(start, stops)
        ends = {path.state for path in over}
        if stopped or len(ends) != 1 or not again or n.any_of([path.guard for path in over]) != done:
            raise NotProved(f"rounds that begin in the state {state!r} do not come to their end")
        if n.any_of([path.guard for path in again]) != done ^ 1:
            raise NotProved(f"not all rounds that begin in the state {state!r} lead to the next")
        left = subtract(n, words[COUNT], number(1, 32))
        unchanged = {word: words[word] for word in (HIGH, LOW, STAYS)}
        self._require(over, {**unchanged, COUNT: [TRUE] * 32})
        high, low, stays = (words[word] for word in (HIGH, LOW, STAYS))
        for kind, made in zip(KINDS, (self._product, self._division), strict=True):
            new_high, new_low = made(high, low, stays)
            wanted = {HIGH: new_high, LOW: new_low, STAYS: stays, COUNT: left}
            if self._are(again, wanted):
                (after,) = ends
                assert after is not None
                return Rounds(kind, after)
        raise NotProved(f"a round that begins in the state {state!r} is of no product and no division")

    def _require(self, paths: list[Path], wanted: dict[tuple[int, int], Word]) -> None:
        if not self._are(paths, wanted):
            raise NotProved("the last of some rounds changes more than their count")

    def _are(self, paths: list[Path], wanted: dict[tuple[int, int], Word]) -> bool:
        """Whether words are these in the end, and no other cells have changed."""
        cells = {
            cell: bit
            for word, bits in wanted.items()
            for cell, bit in zip(self._cells(word), bits, strict=True)
        }
        return all(
            path.cells.keys() <= cells.keys()
            and all(
                self.n.disjoint(path.guard, self.n.xor(path.cells[cell], bit)) for cell, bit in cells.items()
            )
            for path in paths
        )

    def _product(self, high: Word, low: Word, stays: Word) -> tuple[Word, Word]:
        total = add(self.n, padded(high, 33), padded(only(self.n, low[0], stays), 33))
        return total[1:], [*low[1:], total[0]]

    def _division(self, high: Word, low: Word, stays: Word) -> tuple[Word, Word]:
        n, longer, divisor = self.n, [low[-1], *high], padded(stays, 33)
        fits = less(n, longer, divisor) ^ 1
        reduced = subtract(n, longer, divisor)
        return [where(n, fits, x, y) for x, y in zip(reduced, longer, strict=True)][:-1], [fits, *low[:-1]]
