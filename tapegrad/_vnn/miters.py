"""Miters: do two circuits ever differ?

Both multiply. One adds up columns of equal weight, three bits at a time; the other adds row after row, in a
random order, with carries that ripple through. They compute the same, since both sum a_i b_j 2^(i + j), and
few of their gates are alike; to see that they agree is hard for solvers of every kind. In the other half of
the questions one gate of the second circuit is exchanged for another kind. Of several such mutants the one
that the fewest of many random inputs tell from the original is taken, and one of these inputs is kept: that
is the witness.

Bit by bit (`serial`), one circuit adds b for each bit of a, the other a for each bit of b: again the same
sum, and no row of the one is a row of the other.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tapegrad._draws import Draws
from tapegrad._vnn.question import Point, Question, point
from tapegrad._vnn.rounds import Word, added, chained, halved, one_round, rows, turned
from tapegrad.circuits import words
from tapegrad.circuits.builder import CircuitBuilder, Wire, copied
from tapegrad.circuits.evaluator import evaluate
from tapegrad.circuits.model import ARITY, Circuit, Gate

SMALLEST, LARGEST = 3, 256
"""Of two bits, both circuits are the same once they are simplified."""
MUTANTS, PATTERNS = 16, 4096
"""How many gates are tried, and on how many random inputs."""
FEWER = 256
"""Random inputs bit by bit, where the first mutant that one of them shows is taken."""
KINDS = [Gate.AND, Gate.OR, Gate.XOR, Gate.NAND, Gate.NOR, Gate.XNOR]


def question(size: int, satisfiable: bool, draws: Draws) -> Question:
    """Products of two numbers of `size` bits."""
    one, other = products(size, draws.order(size).tolist())
    about = {"bits": size, "function": "product"}
    if not satisfiable:
        return Question(miter(one, other), None, "both sum a_i b_j 2^(i + j)", about)
    found: tuple[int, Circuit, np.ndarray, str] | None = None
    patterns = draws.below(np.full(PATTERNS * 2 * size, 2)).reshape(PATTERNS, 2 * size).astype(bool)
    right = evaluate(one, patterns)
    while found is None:
        for _ in range(MUTANTS):
            changed, what = mutated(other, draws)
            seen = np.flatnonzero((evaluate(changed, patterns) != right).any(axis=1))
            if len(seen) and (found is None or len(seen) < found[0]):
                found = len(seen), changed, patterns[seen[0]], what
    count, changed, bits, what = found
    about |= {"mutation": what, "differ": f"{count} of {PATTERNS} random inputs"}
    return Question(miter(one, changed), point(bits), "an input on which they differ is kept", about)


def serial(size: int, satisfiable: bool, draws: Draws) -> Question:
    """Products of two numbers of `size` bits, bit by bit."""
    rounds, about = list(product_rounds(size)), {"bits": size, "function": "product"}
    why, witness = "both sum a_i b_j 2^(i + j)", None
    if satisfiable:
        about["mutation"], witness = _mutated_round(rounds, size, draws)
        why = "an input on which they differ is kept"
    return Question(chained(rounds, "a b and b a"), witness, why, about, rounds=tuple(rounds))


def _mutated_round(rounds: list[Circuit], size: int, draws: Draws) -> tuple[str, Point]:
    """Exchanges a gate in one round of the second product, so that some random input tells: which gate, and
    the input."""
    patterns = draws.below(np.full(FEWER * 2 * size, 2)).reshape(FEWER, 2 * size).astype(bool)
    before = list(rows(rounds, patterns))
    while True:
        number = 1 + draws.one_below(size)
        changed, what = mutated(rounds[number], draws)
        tried = [changed, *rounds[number + 1 :]]
        *_, differ = rows(tried, before[number])
        seen = np.flatnonzero(differ[:, 0])
        if len(seen):
            rounds[number] = changed
            return f"round {number}, {what}", point(patterns[seen[0]])


def product_rounds(size: int) -> tuple[Circuit, ...]:
    """Rows are a, b, both again, turned, and two sums: for each bit of a, b is added to the first, and for
    each bit of b, a to the second (as in `tapegrad._vnn.factoring`). Their lowest bits are final, and
    compared; so whether they differed is in the row too."""

    def begin(build: CircuitBuilder, a: Word, b: Word) -> list[Word]:
        return [a, b, a, b, *[words.constant(build, 0, size)] * 4, [build.constant(False)]]

    def compared(build: CircuitBuilder, s: Word, c: Word, t: Word, d: Word, differ: Word) -> list[Word]:
        unequal = build.or_(differ[0], build.xor(s[0], t[0]))
        return [halved(build, s), c, halved(build, t), d, [unequal]]

    def add(build: CircuitBuilder, a: Word, b: Word, x: Word, y: Word, *row: Word) -> list[Word]:
        s, c, t, d, differ = row
        s, c = added(build, s, c, [build.and_(x[0], own) for own in b])
        t, d = added(build, t, d, [build.and_(y[0], own) for own in a])
        return [a, b, turned(x), turned(y), *compared(build, s, c, t, d, differ)]

    def flush(build: CircuitBuilder, s: Word, c: Word, t: Word, d: Word, differ: Word) -> list[Word]:
        return compared(build, *added(build, s, c, None), *added(build, t, d, None), differ)

    whole, rest = (*[size] * 8, 1), (*[size] * 4, 1)
    first = one_round("begin", (size, size), begin)
    adding, flushing = one_round("add", whole, add), one_round("flush", rest, flush)
    drop = one_round("factors are done", whole, lambda _, *row: row[4:])
    last = one_round("do they differ?", rest, lambda _, *row: row[4:])
    return (first, *[adding] * size, drop, *[flushing] * size, last)


def products(size: int, order: Sequence[int]) -> tuple[Circuit, Circuit]:
    """The product by columns, as traced functions have it, and by rows in this order."""
    circuits = []
    for name in ("columns", "rows"):
        build = CircuitBuilder()
        a, b = ([build.input(f"{word}[{place}]") for place in range(size)] for word in "ab")
        if name == "columns":
            zeros = words.constant(build, 0, size)
            total = words.multiply(build, [*a, *zeros], [*b, *zeros])
        else:
            total = words.constant(build, 0, 2 * size)
            for place in order:
                row = [build.constant(False)] * place + [build.and_(b[place], own) for own in a]
                total = words.add(build, total, words.resized(build, row, 2 * size, signed=False))
        for place, wire in enumerate(total):
            build.output(f"product[{place}]", wire)
        circuits.append(build.circuit(f"product by {name}"))
    return circuits[0], circuits[1]


def mutated(circuit: Circuit, draws: Draws) -> tuple[Circuit, str]:
    """The circuit with one gate of another kind."""
    gate = int(draws.one_below(circuit.size))
    while ARITY[circuit.kinds[gate]] != 2:
        gate = (gate + 1) % circuit.size
    others = [kind for kind in KINDS if kind != circuit.kinds[gate]]
    kind = others[draws.one_below(len(others))]
    kinds = circuit.kinds.copy()
    before, kinds[gate] = Gate(int(kinds[gate])), kind
    return replace(circuit, kinds=kinds), f"gate {gate}: {kind.name} for {before.name}"


def miter(one: Circuit, other: Circuit) -> Circuit:
    """1 where the outputs of two circuits of the same inputs differ."""
    build = CircuitBuilder()
    inputs: list[Wire] = [build.input(name) for name in one.inputs]
    pairs = zip(copied(one, build, inputs), copied(other, build, inputs), strict=True)
    build.output("differ", words.any_of(build, [build.xor(*pair) for pair in pairs]))
    return build.circuit(f"miter of {one.name} and {other.name}")
