"""The filter as clauses over single cells (Goel et al., B.2): what both encodings turn into weights.

Every condition of the paper's `f_msg` and `f_TM` is an AND of questions about one cell each, so the
filter needs O(s) of them and never a table over whole 3x3 patches. Differences from the text:
the main grid is framed by work cells, so "first row" and "corner" ask for the frame; a cell takes the
head whatever its own phase, so the machine need not rest on its first step; a work cell stays one.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tapegrad.machines.grid import MOVES, Cell, GridMachine
from tapegrad.targets.rcnn.cells import Predicate

HERE: Cell = (0, 0)
ABOVE, BELOW, BEFORE, AFTER = (-1, 0), (1, 0), (0, -1), (0, 1)


@dataclass(frozen=True)
class Literal:
    """The cell at this offset satisfies the predicate."""

    at: Cell
    predicate: Predicate


@dataclass(frozen=True)
class Effect:
    """What a clause that holds contributes to the new content of the centre cell."""

    work: bool = False
    symbol: int = 0
    compute: bool = False
    memory: bool = False
    head: int | None = None


@dataclass(frozen=True)
class Clause:
    """If at least `needs` of `when` hold and none of `unless`, the effect. With `passes` the derivative by
    the centre cell is 1 there; everywhere else it is 0."""

    reason: str
    when: tuple[Literal, ...]
    effect: Effect
    unless: tuple[Literal, ...] = ()
    passes: bool = False
    rule: bool = False
    """Whether it is the centre's part of a rule of the machine; none of them holds once it has halted."""
    any: bool = False

    @property
    def needs(self) -> int:
        return 1 if self.any else len(self.when)


def clauses_of(machine: GridMachine) -> list[Clause]:
    """The filter that runs the machine, and before that writes and spreads messages."""
    return [*_messages(len(machine.alphabet)), *_roll_out(machine)]


def _messages(symbols: int) -> Iterator[Clause]:
    memory, work = Predicate("memory"), Predicate("work")
    yield Clause("a work cell stays one", (Literal(HERE, work),), Effect(work=True))
    beside = (Literal(ABOVE, memory), Literal(BELOW, memory))
    for symbol in range(1, symbols):
        here = Literal(HERE, Predicate("symbol", symbol=symbol))
        yield Clause(f"symbol {symbol} stays", (here,), Effect(symbol=symbol), unless=beside)
    empty, edge = Literal(HERE, Predicate("empty")), Literal(ABOVE, Predicate("edge or data"))
    yield Clause("first empty row: write here", (empty, edge), Effect(memory=True), passes=True)
    yield Clause(
        "a memorising cell passes the gradient", (Literal(HERE, memory),), Effect(memory=True), passes=True
    )
    for at, side in ((ABOVE, "above"), (BELOW, "below")):
        both = (Literal(HERE, Predicate("open")), Literal(at, memory))
        yield Clause(f"memorising heard from {side}", both, Effect(memory=True))
    corner = (Literal(HERE, Predicate("data")), Literal(AFTER, work), Literal(BELOW, work))
    yield Clause("bottom right cell is written: compute", corner, Effect(compute=True, head=0))
    heard = tuple(Literal(at, Predicate("compute")) for at in (HERE, ABOVE, BELOW, BEFORE, AFTER))
    yield Clause("computing heard", heard, Effect(compute=True), any=True)


def _roll_out(machine: GridMachine) -> Iterator[Clause]:
    symbol_of = {symbol: i for i, symbol in enumerate(machine.alphabet)}
    state_of = {state: i for i, state in enumerate(machine.states)}
    for state, q in state_of.items():
        for symbol, a in symbol_of.items():
            head = Predicate("head", symbol=a, state=q)
            here = (Literal(HERE, head),)
            rule = machine.rules.get((state, symbol))
            if rule is None:
                yield Clause(f"halted in {state!r} on {symbol!r}", here, Effect(symbol=a, head=q))
                continue
            name = f"{state!r} on {symbol!r}"
            written, new = symbol_of[rule.write], state_of[rule.state]
            stays = rule.move == "stay"
            effect = Effect(symbol=written, head=new if stays else None)
            yield Clause(f"{name}: write {rule.write!r}", here, effect, rule=True)
            if not stays:
                down, right = MOVES[rule.move]
                arrival = (Literal((-down, -right), head),)
                yield Clause(f"{name}: head comes {rule.move}", arrival, Effect(head=new))
