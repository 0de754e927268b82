"""Seeded random machines, the same on every platform and version (see `tapegrad.circuits.sampler`), and words
that exercise a machine's table."""

from collections.abc import Iterator
from itertools import product
from random import Random

import numpy as np

from tapegrad._draws import Draws
from tapegrad.errors import Refused
from tapegrad.machines.model import (
    LEFT,
    MOVES,
    RIGHT,
    STAY,
    GridMachine,
    GridRule,
    Rule,
    Symbols,
    TuringMachine,
)

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


# Words that exercise a machine's table: random ones, and then what a search guided by coverage adds.
#
# A fault in one entry of a table shows only on words that lead there, and a random word hardly ever opens a
# lock of twelve symbols. So words that met an entry for the first time are kept and changed a little, again
# and again: then the lock opens symbol by symbol, in time linear in its length. An entry is a state together
# with the symbols read there; it has a rule, or the machine halts.


LONGEST_RANDOM_WORD = 8
LONGEST_FOUND_WORD = 32
MOST_FOUND = 7
"""Words that the search may add to the empty one and the random ones."""
STEPS_WITHOUT_NEWS, STEPS_IN_ALL = 100, 40_000
"""How long the search watches the machine: on one word, and altogether, which is a fraction of a second."""
PATIENCE = 100
"""For each rule of the machine, so many words without news, one after the other, end the search."""

Words = tuple[Symbols, ...]
Entry = tuple[str, Symbols]


def exercising(machine: TuringMachine, random: np.random.Generator) -> Iterator[Words]:
    """The empty input, random words of growing length, and those that meet what these do not."""
    letters = tuple(symbol for symbol in machine.alphabet if symbol != machine.blank)
    lengths = range(1, LONGEST_RANDOM_WORD + 1 if letters else 1)
    first: list[Words] = [((),) * machine.tapes] + [
        tuple(tuple(letters[i] for i in random.integers(0, len(letters), n)) for _ in range(machine.tapes))
        for n in lengths
    ]
    yield from first
    if letters:
        yield from _found(machine, letters, first, Random(int(random.integers(1 << 62))))


def _found(machine: TuringMachine, letters: Symbols, first: list[Words], draw: Random) -> Iterator[Words]:
    """What the search has met, with as few words as a greedy choice needs, rules before halts."""
    wanted = _in_reach(machine)
    met, known = set[Entry](), set[Entry]()
    kept: dict[Words, set[Entry]] = {}
    parents = first[:1]
    steps = idle = 0

    def candidates() -> Iterator[Words]:
        yield from first
        known.update(met)
        while not wanted <= met and steps < STEPS_IN_ALL and idle < PATIENCE * len(machine.rules):
            # From the word kept last, every other time: it has gone furthest.
            parent = parents[-1] if draw.random() < 0.5 else draw.choice(parents)
            yield _changed(parent, letters, draw)

    for words in candidates():
        found, taken = _met(machine, words)
        steps, idle = steps + taken, idle + 1
        if not found <= met:
            kept[words], idle = found, 0
            if not found & wanted <= met:
                parents.append(words)
            met |= found
    for _ in range(MOST_FOUND):
        new = {words: found - known for words, found in kept.items()}
        words = max(new, key=lambda words: (len(new[words] & wanted), len(new[words]), -_length(words)))
        if not new[words]:
            return
        known |= new[words]
        yield words


def _in_reach(machine: TuringMachine) -> set[Entry]:
    """The rules of all states to which some path of rules leads, whatever is read on it."""
    entries_of: dict[str, list[Entry]] = {}
    for entry in machine.rules:
        entries_of.setdefault(entry[0], []).append(entry)
    reached, todo = set[str](), [machine.start_state]
    while todo:
        state = todo.pop()
        if state not in reached:
            reached.add(state)
            todo += (machine.rules[entry].state for entry in entries_of.get(state, []))
    return {entry for entry in machine.rules if entry[0] in reached}


def _met(machine: TuringMachine, words: Words) -> tuple[set[Entry], int]:
    """The entries that a run on these words meets, and how many steps it was watched: until it halts, or
    goes round in circles as it seems."""
    met: set[Entry] = set()
    steps = newest = 0
    for steps, at in enumerate(machine.run(machine.start(*words))):
        entry = at.state, machine.read(at)
        if entry not in met:
            met.add(entry)
            newest = steps
        elif steps - newest > STEPS_WITHOUT_NEWS:
            break
    return met, steps + 1


def _changed(words: Words, letters: Symbols, draw: Random) -> Words:
    """One symbol of one tape appended, inserted, replaced or taken out."""
    tape = draw.randrange(len(words))
    word, letter = words[tape], (draw.choice(letters),)
    at = draw.randrange(len(word) + 1)
    before, after = word[:at], word[at:]
    word = draw.choice(
        (word + letter, before + letter + after, before + letter + after[1:], before + after[1:])
    )
    return (*words[:tape], word[:LONGEST_FOUND_WORD], *words[tape + 1 :])


def _length(words: Words) -> int:
    return sum(map(len, words))
