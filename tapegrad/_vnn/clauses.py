"""Clauses: is a formula in conjunctive normal form satisfiable?

Formulas of our own are parities on a graph (Tseitin, 1968): a variable for each edge and a bit for each
corner, and at each corner the edges add up to its bit. Every edge has two ends, so the bits of all corners
add up to nothing: if they do not, there is no solution, and nothing local tells so. If they do there is one.
The graph is a ring with chords across, each corner has three edges, and its parity is four clauses.

Formulas in DIMACS format are answered by a solver (`tapegrad._vnn.confirm`).
"""

from collections.abc import Sequence
from itertools import product

from tapegrad._draws import Draws
from tapegrad._vnn.question import Question, point
from tapegrad._vnn.rounds import Step, Word, chained, one_round, turned
from tapegrad.circuits import words
from tapegrad.circuits.builder import CircuitBuilder
from tapegrad.circuits.model import Circuit
from tapegrad.errors import FormatError

SMALLEST, LARGEST = 2, 5_000
MOST_VARIABLES, MOST_CLAUSES = 100_000, 1_000_000

Clauses = list[list[int]]
"""A clause has the numbers of its variables, from 1 on, negative where they are negated."""


def question(size: int, satisfiable: bool, draws: Draws) -> Question:
    """A ring of `2 size` corners with chords across."""
    return _asked(size, satisfiable, draws, serially=False)


def serial(size: int, satisfiable: bool, draws: Draws) -> Question:
    """The same, a corner in each round."""
    return _asked(size, satisfiable, draws, serially=True)


def _asked(size: int, satisfiable: bool, draws: Draws, *, serially: bool) -> Question:
    corners = 2 * size
    charges = [draws.one_below(2) for _ in range(corners)]
    charges[0] ^= sum(charges) % 2 ^ (not satisfiable)
    names = [int(place) + 1 for place in draws.order(3 * size)]  # edges of the ring, then chords
    ring, chords = names[:corners], names[corners:]
    clauses: Clauses = []
    for corner, charge in enumerate(charges):
        edges = [ring[corner - 1], ring[corner], chords[corner % size]]
        wrong = [signs for signs in product((0, 1), repeat=3) if sum(signs) % 2 != charge]
        clauses += [[-e if s else e for e, s in zip(edges, signs, strict=True)] for signs in wrong]
    about = {"corners": corners, "clauses": len(clauses)}
    rounds = corner_rounds(charges, ring, chords) if serially else ()
    name = f"parities on {corners} corners"
    asked = chained(rounds, f"{name}, one by one") if rounds else circuit(3 * size, clauses, name)
    if not satisfiable:
        return Question(asked, None, "the bits of the corners add up to 1", about, rounds=rounds)
    values = [0] * (3 * size)
    for name in chords:
        values[name - 1] = draws.one_below(2)
    carried = draws.one_below(2)
    for corner, charge in enumerate(charges):
        carried ^= charge ^ values[chords[corner % size] - 1]
        values[ring[corner] - 1] = carried
    return Question(asked, point(values), "a solution is kept", about, rounds=rounds)


def corner_rounds(charges: Sequence[int], ring: Sequence[int], chords: Sequence[int]) -> tuple[Circuit, ...]:
    """Rows are the edges of the ring and the chords, both turned by one place a round, and whether all
    clauses so far hold. The edges of the corner whose turn it is are the last and first of the ring and the
    first chord."""
    size, corners = len(chords), len(ring)

    def begin(build: CircuitBuilder, x: Word) -> list[Word]:
        return [[x[own - 1] for own in ring], [x[own - 1] for own in chords], [build.constant(True)]]

    def corner(charge: int) -> Step:
        def step(build: CircuitBuilder, around: Word, across: Word, well: Word) -> list[Word]:
            edges = [around[-1], around[0], across[0]]
            wrong = [signs for signs in product((0, 1), repeat=3) if sum(signs) % 2 != charge]
            held = [
                words.any_of(build, [build.not_(e) if s else e for e, s in zip(edges, signs, strict=True)])
                for signs in wrong
            ]
            return [turned(around), turned(across), [build.and_(well[0], words.all_of(build, held))]]

        return step

    row = (corners, size, 1)
    first = one_round("begin", (corners + size,), begin)
    kinds = [one_round(f"a corner of {charge}", row, corner(charge)) for charge in (0, 1)]
    last = one_round("do all hold?", row, lambda _, around, across, well: [well])
    return (first, *(kinds[charge] for charge in charges), last)


def circuit(variables: int, clauses: Sequence[Sequence[int]], name: str) -> Circuit:
    """1 where all clauses hold."""
    build = CircuitBuilder()
    inputs = [build.input(f"x{number}") for number in range(1, variables + 1)]
    held = []
    for clause in clauses:
        wires = [inputs[abs(literal) - 1] for literal in clause]
        signs = zip(clause, wires, strict=True)
        held.append(words.any_of(build, [wire if sign > 0 else build.not_(wire) for sign, wire in signs]))
    build.output("satisfied", words.all_of(build, held))
    return build.circuit(name)


def from_dimacs(text: str) -> tuple[int, Clauses]:
    """Variables and clauses of a file in DIMACS format."""
    variables, expected, numbers = -1, 0, list[int]()
    for line_number, line in enumerate(text.splitlines(), 1):
        parts = line.split()
        if not parts or parts[0] == "c":
            continue
        if parts[0] == "%":  # as the files of SATLIB end
            break
        where = f"line {line_number}"
        if parts[0] == "p":
            if variables >= 0 or len(parts) != 4 or parts[1] != "cnf":
                raise FormatError("a formula begins with one line 'p cnf VARIABLES CLAUSES'", where=where)
            variables, expected = (_number(own, where) for own in parts[2:])
            if not 0 < variables <= MOST_VARIABLES or not 0 <= expected <= MOST_CLAUSES:
                raise FormatError(
                    f"at most {MOST_VARIABLES:,} variables and {MOST_CLAUSES:,} clauses are read", where=where
                )
            continue
        numbers += [_number(own, where) for own in parts]
        if any(abs(own) > max(variables, 0) for own in numbers[-len(parts) :]):
            raise FormatError("a literal has no variable of the line 'p cnf'", where=where)
    if variables < 0 or (numbers and numbers[-1] != 0):
        raise FormatError("the formula ends in the middle of a clause, or has no line 'p cnf'")
    clauses: Clauses = [[]]
    for own in numbers:
        if own:
            clauses[-1].append(own)
        else:
            clauses.append([])
    if len(clauses) - 1 != expected:
        raise FormatError(f"the formula has {len(clauses) - 1:,} clauses, and not {expected:,} as it says")
    return variables, clauses[:-1]


def _number(text: str, where: str) -> int:
    if len(text) > 9 or not text.isascii() or not text.removeprefix("-").isdecimal():
        raise FormatError(f"{text[:20]!r} is no number of a literal", where=where)
    return int(text)
