"""Seeded random machines, the same on every platform and version (see `tapegrad.circuits.sampler`)."""

from itertools import product

from tapegrad.circuits.sampler import Draws
from tapegrad.errors import Refused
from tapegrad.machines.grid import MOVES, GridMachine, GridRule
from tapegrad.machines.model import LEFT, RIGHT, STAY, Rule, TuringMachine

LARGEST_TABLE = 1_000_000
"""Most entries of a random machine's table."""


def random_machine(
    seed: int,
    *,
    states: int = 4,
    symbols: int = 2,
    tapes: int = 1,
    halt: float = 0.1,
    stay: bool = True,
) -> TuringMachine:
    """A machine over the symbols "0" (blank), "1", ... with states "q0" (start), "q1", ...; an entry of
    its table is missing, so that it halts there, with probability `halt`. Without `stay` heads always
    move."""
    _check_table(states, symbols, tapes)
    draws = Draws(seed)
    moves = (LEFT, RIGHT, STAY) if stay else (LEFT, RIGHT)
    alphabet = tuple(str(symbol) for symbol in range(symbols))
    names = tuple(f"q{state}" for state in range(states))
    rules = {}
    for state, read in product(names, product(alphabet, repeat=tapes)):
        if not draws.chance(halt):
            rules[state, read] = Rule(
                write=tuple(alphabet[draws.one_below(symbols)] for _ in range(tapes)),
                moves=tuple(moves[draws.one_below(len(moves))] for _ in range(tapes)),
                state=names[draws.one_below(states)],
            )
    name = f"random machine {seed}"
    return TuringMachine(rules, names[0], "0", name=name, alphabet=alphabet, states=names, tapes=tapes)


def random_grid_machine(
    seed: int, *, states: int = 3, symbols: int = 2, halt: float = 0.1, stay: bool = True
) -> GridMachine:
    """The same on a grid."""
    _check_table(states, symbols, 1)
    draws = Draws(seed)
    moves = [move for move in MOVES if stay or move != "stay"]
    alphabet = tuple(str(symbol) for symbol in range(symbols))
    names = tuple(f"q{state}" for state in range(states))
    rules = {
        (state, read): GridRule(
            write=alphabet[draws.one_below(symbols)],
            move=moves[draws.one_below(len(moves))],
            state=names[draws.one_below(states)],
        )
        for state, read in product(names, alphabet)
        if not draws.chance(halt)
    }
    name = f"random grid machine {seed}"
    return GridMachine(rules, names[0], "0", name=name, alphabet=alphabet, states=names)


def _check_table(states: int, symbols: int, tapes: int) -> None:
    if min(states, symbols, tapes) < 1:
        raise Refused("a random machine needs at least one state, one symbol and one tape")
    if tapes > 30 or states * symbols**tapes > LARGEST_TABLE:
        raise Refused(
            f"a machine with {states} states, {symbols} symbols and {tapes} tapes needs a table of "
            f"more than {LARGEST_TABLE:,} entries",
            advice="Ask for fewer states, symbols or tapes.",
        )
