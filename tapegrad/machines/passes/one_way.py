"""Two-way infinite tapes folded in the middle, so that no head ever goes below cell 0."""

from collections.abc import Iterable
from itertools import product

from tapegrad.lowering.rewriting import Rewriting
from tapegrad.machines.model import Configuration, Rule, Symbols, TuringMachine
from tapegrad.machines.names import Names, refuse_if_huge

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
