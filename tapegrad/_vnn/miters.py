"""Miters: do two circuits ever differ?

Both multiply. One adds up columns of equal weight, three bits at a time; the other adds row after row, in a
random order, with carries that ripple through. They compute the same, since both sum a_i b_j 2^(i + j), and
few of their gates are alike; to see that they agree is hard for solvers of every kind. In the other half of
the questions one gate of the second circuit is exchanged for another kind. Of several such mutants the one
that the fewest of many random inputs tell from the original is taken, and one of these inputs is kept: that
is the witness.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tapegrad._vnn.question import Question, point
from tapegrad.circuits import words
from tapegrad.circuits.builder import CircuitBuilder, Wire, copied
from tapegrad.circuits.evaluator import evaluate
from tapegrad.circuits.model import ARITY, Circuit, Gate
from tapegrad.circuits.sampler import Draws

SMALLEST, LARGEST = 3, 48
"""Of two bits, both circuits are the same once they are simplified."""
MUTANTS, PATTERNS = 16, 4096
"""How many gates are tried, and on how many random inputs."""
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
