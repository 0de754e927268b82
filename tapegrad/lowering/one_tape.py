"""k tapes to one: the tapes lie side by side as interleaved tracks, heads become marks, sweeps do a step."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from tapegrad.machines.model import (
    LEFT,
    RIGHT,
    STAY,
    Configuration,
    Names,
    Rule,
    Symbols,
    TuringMachine,
    refuse_if_huge,
)
from tapegrad.source import Rewriting


def one_tape(machine: TuringMachine) -> Rewriting:
    """Lays cell i of tape j at cell k i + j, and marks the symbol under each head ("a^" for "a").

    One step of the old machine: sweep right until all k marked symbols are collected in the state, look
    up the rule, sweep left and at each mark write and carry the mark k cells left or right, then go home
    to a place left of every mark. The old state's own name is entered at home and nowhere else, so each
    old configuration decodes once. Where the rule is missing, the machine halts at the end of the sweep to
    the right; nothing has changed on the tape by then, so the last old configuration can still be read.

    Guarantee: with heads at most s cells apart, a step takes fewer than 2 k (s + k + 3) steps, none of
    them a stay; the alphabet merely doubles. A machine with one tape is returned as it is.
    """
    if machine.tapes == 1:
        return Rewriting("one tape", machine, machine, lambda state: state, lambda state: state)
    marks = Names(machine.alphabet)
    marked = {symbol: marks(symbol, f"{symbol}^") for symbol in machine.alphabet}
    sweeps = _Sweeps(machine, marked)
    after = TuringMachine(
        rules=sweeps.rules(),
        start_state=machine.start_state,
        blank=machine.blank,
        accept=machine.accept,
        reject=machine.reject,
        name=f"{machine.name} on one tape",
        alphabet=(*machine.alphabet, *marked.values()),
        states=(machine.start_state,),
        tapes=1,
    )
    return _rewriting(machine, after, marked, sweeps.readers)


def _rewriting(
    machine: TuringMachine, after: TuringMachine, marked: dict[str, str], readers: dict[str, str]
) -> Rewriting:
    k, old_states = machine.tapes, {state: state for state in machine.states}
    unmarked = {mark: symbol for symbol, mark in marked.items()}

    def encode(state: Configuration) -> Configuration:
        cells = {k * cell + j: symbol for j, tape in enumerate(state.tapes) for cell, symbol in tape.items()}
        for j, head in enumerate(state.heads):
            cells[k * head + j] = marked[cells.get(k * head + j, machine.blank)]
        return Configuration(state.state, (cells,), (k * min(state.heads),))

    def decode(state: Configuration) -> Configuration | None:
        return unfolded(state, old_states)

    def halted(state: Configuration) -> Configuration | None:
        return unfolded(state, readers | old_states)

    def unfolded(state: Configuration, old: Mapping[str, str]) -> Configuration | None:
        if state.state not in old:
            return None
        tapes: list[dict[int, str]] = [{} for _ in range(k)]
        heads = [0] * k
        for cell, symbol in state.tapes[0].items():
            i, j = divmod(cell, k)
            if symbol in unmarked:
                heads[j] = i
                symbol = unmarked[symbol]
            if symbol != machine.blank:
                tapes[j][i] = symbol
        return Configuration(old[state.state], tuple(tapes), tuple(heads))

    return Rewriting("one tape", machine, after, encode, decode, halted=halted)


Ops = tuple[tuple[str, int] | None, ...]
"""For each tape what is still to be done there: the symbol to write and the move; None when done."""


@dataclass(frozen=True)
class _Read:
    """Sweeping right, at a cell of this track, with these symbols collected so far (None: not yet)."""

    state: str
    seen: tuple[str | None, ...]
    track: int


@dataclass(frozen=True)
class _Update:
    """Sweeping left, at a cell of this track, on the way to `state`."""

    state: str
    ops: Ops
    track: int


@dataclass(frozen=True)
class _Put:
    """Arrived where a mark carried by `move` belongs; `ops` remain."""

    state: str
    ops: Ops
    track: int
    move: int


@dataclass(frozen=True)
class _Walk:
    """So many moves, copying every cell, and then on to another of these states (or home, by name)."""

    move: int
    count: int
    then: "_Update | _Put | str"


_Sweeping = _Read | _Update | _Put | _Walk | str
"""A state of the new machine; a plain string is an old state, entered at home (a cell of track 0)."""


class _Sweeps:
    """Grows the table of the new machine from the start state, so that only what can occur is in it."""

    def __init__(self, machine: TuringMachine, marked: dict[str, str]) -> None:
        self.machine, self.k = machine, machine.tapes
        self.marked = marked
        self.unmarked = {mark: symbol for symbol, mark in marked.items()}
        self.names = Names(machine.states)
        self.working = frozenset(state for state, _ in machine.rules)
        self.readers: dict[str, str] = {}
        """The states that sweep to the right, and the old state of each."""

    def rules(self) -> dict[tuple[str, Symbols], Rule]:
        """Every rule, in order of discovery."""
        rules = {}
        todo: list[_Sweeping] = [self.machine.start_state]
        known: set[Hashable] = set(todo)
        for state in todo:  # grows while it is read
            for symbol in (*self.marked, *self.unmarked):
                found = self.rule(state, symbol)
                if found is None:
                    continue
                write, move, then = found
                rules[self.name(state), (symbol,)] = Rule((write,), (move,), self.name(then))
                if then not in known:
                    known.add(then)
                    todo.append(then)
                    if isinstance(then, _Read):
                        self.readers[self.name(then)] = then.state
            refuse_if_huge(len(rules), "joining the tapes", "Use fewer tapes or symbols.")
        return rules

    def name(self, state: _Sweeping) -> str:
        """An old state keeps its name; the others say what they do."""
        if isinstance(state, str):
            return state
        match state:
            case _Read(old, seen, track):
                wish = f"{old} read {','.join(symbol or '?' for symbol in seen)} at {track}"
            case _Update(old, ops, track):
                wish = f"{old} update {_text(ops)} at {track}"
            case _Put(old, ops, track, _):
                wish = f"{old} put {track} update {_text(ops)}"
            case _Walk(move, count, then):
                wish = f"{'left' if move == LEFT else 'right'} {count} then {self.name(then)}"
        return self.names(state, wish)

    def rule(self, state: _Sweeping, symbol: str) -> tuple[str, int, _Sweeping] | None:
        """What to write, where to move, and the next state; None where the old machine halts, and where
        a symbol cannot occur."""
        match state:
            case str():
                if state not in self.working:
                    return None
                return self.read(_Read(state, (None,) * self.k, 0), symbol)
            case _Read():
                return self.read(state, symbol)
            case _Update():
                return self.update(state, symbol)
            case _Put():
                return self.put(state, symbol)
            case _Walk(move, count, then):
                return symbol, *self.walk(move, count, then)

    def walk(self, move: int, count: int, then: "_Update | _Put | str") -> tuple[int, _Sweeping]:
        """The first of `count` moves, and the state after it."""
        return move, then if count == 1 else _Walk(move, count - 1, then)

    def read(self, at: _Read, symbol: str) -> tuple[str, int, _Sweeping] | None:
        seen = at.seen
        if symbol in self.unmarked:
            if seen[at.track] is not None:
                return None  # a tape has one head
            seen = (*seen[: at.track], self.unmarked[symbol], *seen[at.track + 1 :])
            complete = tuple(s for s in seen if s is not None)
            if len(complete) == self.k:
                rule = self.machine.rules.get((at.state, complete))
                if rule is None:
                    return None
                ops = tuple(zip(rule.write, rule.moves, strict=True))
                return self.update(_Update(rule.state, ops, at.track), symbol)
        return symbol, RIGHT, _Read(at.state, seen, (at.track + 1) % self.k)

    def update(self, at: _Update, symbol: str) -> tuple[str, int, _Sweeping]:
        op = at.ops[at.track]
        leftwards = (at.track - 1) % self.k
        if op is None or symbol not in self.unmarked:
            return symbol, LEFT, _Update(at.state, at.ops, leftwards)
        write, move = op
        rest = (*at.ops[: at.track], None, *at.ops[at.track + 1 :])
        if move != STAY:
            return write, *self.walk(move, self.k, _Put(at.state, rest, at.track, move))
        if any(rest):
            return self.marked[write], LEFT, _Update(at.state, rest, leftwards)
        # Home is one old cell to the left: other heads may have moved there.
        return self.marked[write], *self.walk(LEFT, self.k + at.track, at.state)

    def put(self, at: _Put, symbol: str) -> tuple[str, int, _Sweeping] | None:
        if symbol in self.unmarked:
            return None
        mark = self.marked[symbol]
        if any(at.ops):  # on with the sweep, one cell to the left of where the mark was
            onwards = _Update(at.state, at.ops, (at.track - 1) % self.k)
            if at.move == RIGHT:
                return mark, *self.walk(LEFT, self.k + 1, onwards)
            return mark, *self.walk(RIGHT, self.k - 1, onwards)
        if at.move == RIGHT:
            return mark, *self.walk(LEFT, 2 * self.k + at.track, at.state)
        return mark, *self.walk(LEFT, at.track or self.k, at.state)


def _text(ops: Ops) -> str:
    return ",".join("-" if op is None else f"{op[0]}{'<=>'[op[1] + 1]}" for op in ops)
