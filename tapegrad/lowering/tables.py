"""Any alphabet to two symbols: each tape becomes several binary tapes whose heads move together."""

from collections.abc import Iterable
from itertools import product

from tapegrad.errors import Refused
from tapegrad.lowering.one_tape import one_tape
from tapegrad.machines.model import (
    LEFT,
    RIGHT,
    STAY,
    Configuration,
    GridConfiguration,
    GridMachine,
    GridRule,
    Names,
    Rule,
    Symbols,
    TuringMachine,
    refuse_if_huge,
    refuse_many_states,
)
from tapegrad.source import Rewriting, chained


def binary_tracks(machine: TuringMachine) -> Rewriting:
    """Writes the number of each symbol in binary across parallel tapes.

    Guarantee: one step for each step. With w = max(1, ceil(log2 |alphabet|)) the new machine has w tapes
    for each old one, symbols "0" and "1", the same states; tapes i w, ..., i w + w - 1 hold tape i, most
    significant bit first, and their heads are always at the same cell. The blank is number 0: all "0".
    """
    width = max(1, (len(machine.alphabet) - 1).bit_length())
    codes = {symbol: tuple(f"{number:0{width}b}") for number, symbol in enumerate(machine.alphabet)}
    symbols = {code: symbol for symbol, code in codes.items()}

    def spread(read: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(bit for symbol in read for bit in codes[symbol])

    after = TuringMachine(
        rules={
            (state, spread(read)): Rule(
                spread(rule.write), tuple(move for move in rule.moves for _ in range(width)), rule.state
            )
            for (state, read), rule in machine.rules.items()
        },
        start_state=machine.start_state,
        blank="0",
        accept=machine.accept,
        reject=machine.reject,
        name=f"{machine.name} on binary tracks",
        alphabet=("0", "1"),
        states=machine.states,
        tapes=machine.tapes * width,
    )

    def encode(state: Configuration) -> Configuration:
        tracks = tuple(
            {cell: "1" for cell, symbol in tape.items() if codes[symbol][bit] == "1"}
            for tape in state.tapes
            for bit in range(width)
        )
        return Configuration(state.state, tracks, tuple(head for head in state.heads for _ in range(width)))

    def decode(state: Configuration) -> Configuration:
        groups = [state.tapes[first : first + width] for first in range(0, len(state.tapes), width)]
        tapes = tuple(
            {
                cell: symbols[tuple(track.get(cell, "0") for track in tracks)]
                for cell in sorted(set().union(*tracks))
            }
            for tracks in groups
        )
        return Configuration(state.state, tapes, state.heads[::width])

    return Rewriting("binary tracks", machine, after, encode, decode)


# No head ever stays: a stay becomes a step to the right and a step back.


def stay_free(machine: TuringMachine) -> Rewriting:
    """Rewrites a machine so that every head moves at every step.

    Guarantee: no rule of the new machine has a stay move. Three cases, the cheapest that is possible:
    no rule stays: the machine itself. Some rules move no head at all and the others move every head (so
    always on one tape): each of the former takes two steps, the rest one, and cells keep their places.
    Some rule moves one head and not another: every step takes exactly two, and cell i lies at 2 i.

    The last case needs the stretched tapes: when every head moves at every step, the cells under any two
    heads keep the same parity of distance, so a head cannot fall behind another by one cell.
    """
    staying = [rule for rule in machine.rules.values() if STAY in rule.moves]
    if not staying:
        return Rewriting("stay-free", machine, machine, lambda state: state, lambda state: state)
    if any(any(rule.moves) for rule in staying):
        return _stretched(machine)
    return _in_place(machine)


def _in_place(machine: TuringMachine) -> Rewriting:
    names = Names(machine.states)
    halfway = {}
    rules = {}
    for (state, read), rule in machine.rules.items():
        if STAY in rule.moves:
            back = halfway.setdefault(rule.state, names(rule.state, f"{rule.state} after a step back"))
            rules[state, read] = Rule(rule.write, (RIGHT,) * machine.tapes, back)
        else:
            rules[state, read] = rule
    refuse_if_huge(
        len(halfway) * len(machine.alphabet) ** machine.tapes,
        "stepping back over every combination of symbols",
        "Join the tapes with one_tape first.",
    )
    for state, back in halfway.items():
        for read in product(machine.alphabet, repeat=machine.tapes):
            rules[back, read] = Rule(read, (LEFT,) * machine.tapes, state)
    between = frozenset(halfway.values())
    return Rewriting(
        "stay-free",
        machine,
        _like(machine, rules),
        lambda state: state,
        lambda state: None if state.state in between else state,
    )


def _stretched(machine: TuringMachine) -> Rewriting:
    """Odd cells are always blank, so the second half of a step needs one rule only."""
    names = Names(machine.states)
    blanks = (machine.blank,) * machine.tapes
    rules = {}
    between = set()
    for (state, read), rule in machine.rules.items():
        first = tuple(move or RIGHT for move in rule.moves)
        second = tuple(move or LEFT for move in rule.moves)
        signs = "".join({LEFT: "<", RIGHT: ">"}[move] for move in second)
        half = names((rule.state, second), f"{rule.state} after {signs}")
        between.add(half)
        rules[state, read] = Rule(rule.write, first, half)
        rules[half, blanks] = Rule(blanks, second, rule.state)

    def encode(state: Configuration) -> Configuration:
        tapes = tuple({2 * cell: symbol for cell, symbol in tape.items()} for tape in state.tapes)
        return Configuration(state.state, tapes, tuple(2 * head for head in state.heads))

    def decode(state: Configuration) -> Configuration | None:
        if state.state in between:
            return None
        tapes = tuple({cell // 2: symbol for cell, symbol in tape.items()} for tape in state.tapes)
        return Configuration(state.state, tapes, tuple(head // 2 for head in state.heads))

    return Rewriting("stay-free", machine, _like(machine, rules), encode, decode)


def _like(machine: TuringMachine, rules: dict[tuple[str, tuple[str, ...]], Rule]) -> TuringMachine:
    return TuringMachine(
        rules=rules,
        start_state=machine.start_state,
        blank=machine.blank,
        accept=machine.accept,
        reject=machine.reject,
        name=f"{machine.name}, stay-free",
        alphabet=machine.alphabet,
        states=machine.states,
        tapes=machine.tapes,
    )


# Halting made explicit: every state has an entry for everything it may read, or none at all.


def total_table(machine: TuringMachine) -> Rewriting:
    """Fills each gap in the table with a step into one new halting state.

    Guarantee: a state of the new machine has entries for all symbols, or for none and then it halts.
    States without entries are left as they are. A run that ended at a gap takes one step more, into the
    new state, which decodes to None; any other run is unchanged. That step writes nothing new and moves
    every head right, so stay-free machines stay so and one-way tapes too.
    """
    working = dict.fromkeys(state for state, _ in machine.rules)
    refuse_if_huge(
        len(working) * len(machine.alphabet) ** machine.tapes,
        "a total table",
        "Join the tapes with one_tape first, or shrink the alphabet.",
    )
    halt = Names(machine.states)("halt", "halt")
    every_read = list(product(machine.alphabet, repeat=machine.tapes))
    rules = {
        (state, read): machine.rules.get((state, read)) or Rule(read, (RIGHT,) * machine.tapes, halt)
        for state in working
        for read in every_read
    }
    after = TuringMachine(
        rules=rules,
        start_state=machine.start_state,
        blank=machine.blank,
        accept=machine.accept,
        reject=machine.reject,
        name=f"{machine.name}, total",
        alphabet=machine.alphabet,
        states=machine.states,
        tapes=machine.tapes,
    )

    def decode(state: Configuration) -> Configuration | None:
        return None if state.state == halt else state

    return Rewriting("total table", machine, after, lambda state: state, decode)


# Every state three times over, so that no two states lead to each other.


def triple_states(machine: TuringMachine) -> Rewriting:
    """Turns each state q into q.0, q.1, q.2, where the digit counts the steps modulo 3.

    Guarantee: one step for each step, same tapes; if some rule leads from a to b then none leads from b
    to a, nor from a to a: along both the digit would grow by 1 or 2 modulo 3 where it has to stay the
    same. This is condition (20) of Welper's section 4.4.
    """
    after = TuringMachine(
        rules={
            (f"{state}.{r}", read): Rule(rule.write, rule.moves, f"{rule.state}.{(r + 1) % 3}")
            for (state, read), rule in machine.rules.items()
            for r in range(3)
        },
        start_state=f"{machine.start_state}.0",
        blank=machine.blank,
        accept=_tripled(machine.accept),
        reject=_tripled(machine.reject),
        name=f"{machine.name}, states tripled",
        alphabet=machine.alphabet,
        states=tuple(f"{state}.{r}" for state in machine.states for r in range(3)),
        tapes=machine.tapes,
    )

    def encode(state: Configuration) -> Configuration:
        return Configuration(f"{state.state}.0", state.tapes, state.heads)

    def decode(state: Configuration) -> Configuration:
        return Configuration(state.state[:-2], state.tapes, state.heads)

    return Rewriting("states tripled", machine, after, encode, decode)


def _tripled(states: frozenset[str]) -> frozenset[str]:
    return frozenset(f"{state}.{r}" for state in states for r in range(3))


# A machine on a line becomes a machine on the grid that never leaves row 0.


_DIRECTION = {LEFT: "left", STAY: "stay", RIGHT: "right"}


def to_grid(machine: TuringMachine) -> Rewriting:
    """Lays the only tape along row 0: cell i is row 0, column i.

    Guarantee: one step for each step, same states, symbols and blank. A grid machine has no accepting
    states of its own; the names of the states survive, so the verdict can still be read off.
    """
    if machine.tapes != 1:
        raise Refused(
            f"the machine {machine.name!r} has {machine.tapes} tapes, the grid has one head",
            advice="Join the tapes with one_tape first.",
        )
    after = GridMachine(
        rules={
            (state, read): GridRule(rule.write[0], _DIRECTION[rule.moves[0]], rule.state)
            for (state, (read,)), rule in machine.rules.items()
        },
        start_state=machine.start_state,
        blank=machine.blank,
        name=f"{machine.name} on the grid",
        alphabet=machine.alphabet,
        states=machine.states,
    )

    def encode(state: Configuration) -> GridConfiguration:
        (tape,), (head,) = state.tapes, state.heads
        return GridConfiguration(state.state, {(0, cell): symbol for cell, symbol in tape.items()}, (0, head))

    def decode(state: GridConfiguration) -> Configuration:
        tape = {column: symbol for (_, column), symbol in state.cells.items()}
        return Configuration(state.state, (tape,), (state.head[1],))

    return Rewriting("line to grid", machine, after, encode, decode)


# Two-way infinite tapes folded in the middle, so that no head ever goes below cell 0.


RIGHT_HALF, LEFT_HALF = ">", "<"


def one_way(machine: TuringMachine) -> Rewriting:
    """Folds each tape at cell 0: cell i of the new tape holds cells i and -i of the old one.

    Guarantee: one step for each step, heads at cells >= 0 throughout, no stay move that was not there.
    The state remembers for each tape which half the head is on; cell 0 holds one symbol in a form of
    its own ("|a"), so the head knows the fold, and both ways lead right from there.
    """
    size, tapes = len(machine.alphabet), machine.tapes
    refuse_if_huge(
        len(machine.rules) * (2 * (size + 1)) ** tapes,
        "folding every tape",
        "Join the tapes with one_tape first, or shrink the alphabet.",
    )
    fold = _Fold(machine)
    rules = {}
    for (state, read), rule in machine.rules.items():
        for halves in product((RIGHT_HALF, LEFT_HALF), repeat=tapes):
            for beside in product((None, *machine.alphabet), repeat=tapes):
                seen = tuple(map(fold.symbol, read, beside, halves))
                write = tuple(map(fold.symbol, rule.write, beside, halves))
                turned = tuple(map(_half_after, rule.moves, beside, halves))
                moves = tuple(
                    -m if half == LEFT_HALF else m for m, half in zip(rule.moves, turned, strict=True)
                )
                rules[fold.state(state, halves), seen] = Rule(write, moves, fold.state(rule.state, turned))
    after = TuringMachine(
        rules=rules,
        start_state=fold.state(machine.start_state, (RIGHT_HALF,) * tapes),
        blank=fold.symbol(machine.blank, machine.blank, RIGHT_HALF),
        accept=frozenset(fold.all_halves(machine.accept)),
        reject=frozenset(fold.all_halves(machine.reject)),
        name=f"{machine.name} on one-way tapes",
        alphabet=tuple(fold.unfolded),
        states=tuple(fold.all_halves(machine.states)),
        tapes=tapes,
    )
    return Rewriting("one-way tapes", machine, after, fold.encode, fold.decode)


def _half_after(move: int, beside: str | None, half: str) -> str:
    """The half after a move; only a move away from cell 0 (where nothing lies beside) can change it."""
    if beside is not None or move == 0:
        return half
    return RIGHT_HALF if move > 0 else LEFT_HALF


class _Fold:
    """The names of folded symbols and states, and the way there and back."""

    def __init__(self, machine: TuringMachine) -> None:
        self.blank, self.tapes = machine.blank, machine.tapes
        names = Names()
        self.unfolded: dict[str, tuple[str, str | None]] = {}
        """Symbol of the new machine -> the symbols of its right and left half (None: cell 0)."""
        for right, left in product(machine.alphabet, repeat=2):
            self.unfolded[names((right, left), f"{right}/{left}")] = (right, left)
        for centre in machine.alphabet:
            self.unfolded[names((centre, None), f"|{centre}")] = (centre, None)
        self._symbols = {pair: name for name, pair in self.unfolded.items()}

    def symbol(self, under_head: str, beside: str | None, half: str) -> str:
        """The folded symbol; `beside` is the one on the other half, None at cell 0."""
        if half == LEFT_HALF and beside is not None:
            return self._symbols[beside, under_head]
        return self._symbols[under_head, beside]

    def state(self, state: str, halves: Symbols) -> str:
        """The folded state: the old one, and a sign for each tape."""
        return f"{state} {''.join(halves)}"

    def all_halves(self, states: Iterable[str]) -> list[str]:
        """Every folded form of these states."""
        halves = list(product((RIGHT_HALF, LEFT_HALF), repeat=self.tapes))
        return [self.state(state, chosen) for state in states for chosen in halves]

    def encode(self, state: Configuration) -> Configuration:
        halves = tuple(LEFT_HALF if head < 0 else RIGHT_HALF for head in state.heads)
        folded = []
        for tape in state.tapes:
            cells = {abs(cell) for cell in tape} - {0}
            new = {c: self._symbols[tape.get(c, self.blank), tape.get(-c, self.blank)] for c in sorted(cells)}
            folded.append({0: self._symbols[tape.get(0, self.blank), None], **new})
        return Configuration(self.state(state.state, halves), tuple(folded), tuple(map(abs, state.heads)))

    def decode(self, state: Configuration) -> Configuration:
        tapes = []
        for folded in state.tapes:
            tape = {}
            for cell, symbol in folded.items():
                right, left = self.unfolded[symbol]
                tape[cell] = right
                if left is not None:
                    tape[-cell] = left
            tapes.append({cell: symbol for cell, symbol in tape.items() if symbol != self.blank})
        name, halves = state.state.rsplit(" ", 1)
        heads = tuple(-h if half == LEFT_HALF else h for h, half in zip(state.heads, halves, strict=True))
        return Configuration(name, tuple(tapes), heads)


def on_grid(machine: TuringMachine) -> Rewriting:
    """The machine on a grid, its tape a row of it; several tapes go on one tape first."""
    if machine.tapes == 1:
        return to_grid(machine)
    refuse_many_states(machine.name, len(machine.states), len(machine.rules), machine.tapes)
    single = one_tape(machine)
    assert isinstance(single.after, TuringMachine)
    return chained(single, to_grid(single.after))
