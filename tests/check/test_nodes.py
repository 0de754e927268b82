"""What is proved to be the same function is, against truth tables; and what should be proved is."""

import random as drawing
from itertools import pairwise, product

import pytest

from tapegrad_check.core import functions
from tapegrad_check.core.nodes import FALSE, TRUE, Nodes
from tapegrad_check.core.solver import Answer
from tapegrad_check.folder import CheckError, NotProved
from tapegrad_check.formulas.words import add, column_sum, less, number, subtract, total, where


def tables(nodes: Nodes, inputs: int) -> list[int]:
    """The truth table of every node; its first nodes are the inputs."""
    rows = list(product((0, 1), repeat=inputs))
    found = [0]
    for node, operands in enumerate(nodes.operands):
        if node == 0:
            continue
        if operands is None:
            found.append(sum(row[node - 1] << place for place, row in enumerate(rows)))
        else:
            x, y = (found[own >> 1] ^ ((1 << len(rows)) - 1) * (own & 1) for own in operands)
            found.append(x ^ y if nodes.is_xor[node] else x & y)
    return found


def grown(seed: int, inputs: int, gates: int) -> Nodes:
    random, nodes = drawing.Random(seed), Nodes(10_000)
    literals = nodes.variables(inputs)
    for _ in range(gates):
        a, b = (random.choice(literals[-12:]) ^ random.getrandbits(1) for _ in range(2))
        literals.append(nodes.xor(a, b) if random.random() < 0.4 else nodes.and_(a, b))
    return nodes


Pairs = list[tuple[int, int]]


def differing(nodes: Nodes, pairs: Pairs) -> Pairs:
    """Those that are refused, one at a time."""
    found = []
    for a, b in pairs:
        try:
            nodes.require_same([a], [b], "differs")
        except CheckError:
            found.append((a, b))
    return found


@pytest.mark.parametrize("inputs", [3, 5, 7])
@pytest.mark.parametrize("seed", range(8))
def test_what_is_proved_is_so(seed: int, inputs: int) -> None:
    nodes = grown(seed, inputs, 80)
    every, random = (1 << (1 << inputs)) - 1, drawing.Random(seed)
    values = tables(nodes, inputs)
    pairs = [(random.randrange(2, 2 * len(values)), random.randrange(2, 2 * len(values))) for _ in range(60)]
    alike = {}
    for node, value in enumerate(values):  # all that are the same, and their negations
        other = alike.setdefault(min(value, value ^ every), node)
        pairs.append((2 * node, 2 * other ^ (values[other] != value)))
    pairs += [(2 * node ^ 1, 2 * node) for node in range(1, 6)] + [(FALSE, TRUE)]
    differ = [(a, b) for a, b in pairs if values[a >> 1] ^ values[b >> 1] != every * ((a ^ b) & 1)]
    assert differing(nodes, pairs) == differ
    same = [pair for pair in pairs if pair not in differ]
    nodes.require_same([a for a, _ in same], [b for _, b in same], "differs")


def test_what_agrees_on_all_inputs_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words of which no input has all bits."""
    nodes = Nodes(10_000)
    bits = nodes.variables(60)
    never = nodes.all_of([bit ^ place % 2 for place, bit in enumerate(bits)])
    pairs = [(never, FALSE), (nodes.xor(never, bits[0]), bits[0])]
    assert differing(nodes, pairs) == pairs
    nodes.require_same([nodes.and_(never, bits[0])], [never], "differs")
    monkeypatch.setattr(functions, "solve", lambda formula, conflicts: Answer(False))
    with pytest.raises(NotProved, match="does not know, at a"):
        nodes.require_same([never], [FALSE], "differs", ["a"])
    with pytest.raises(CheckError, match="differs, at b"):  # some input shows it
        nodes.require_same([never, bits[0]], [FALSE, bits[1]], "differs", ["a", "b"])


def test_one_algorithm_built_in_two_ways() -> None:
    nodes = Nodes(100_000)
    a, b = nodes.variables(32), nodes.variables(32)
    turned, carry = [], FALSE
    for x, y in zip(a, b, strict=True):
        bit, carry = column_sum(nodes, [carry, y, x])
        turned.append(bit)
    difference = total(nodes, [a, [bit ^ 1 for bit in b], number(1, 32)])
    beyond = total(nodes, [[*a, FALSE], [*(bit ^ 1 for bit in b), FALSE], number(1, 33)])[32] ^ 1
    pairs = [
        *zip(add(nodes, a, b), turned, strict=True),
        *zip(subtract(nodes, a, b), difference, strict=True),
        (less(nodes, a, b), beyond),
        (where(nodes, a[0], b[1], b[2]), nodes.or_(nodes.and_(a[0], b[1]), nodes.and_(a[0] ^ 1, b[2]))),
    ]
    assert sum(x != y for x, y in pairs) > 60
    nodes.require_same([a for a, _ in pairs], [b for _, b in pairs], "differs")
    wrong = [(x, y) for (x, _), (_, y) in pairwise(pairs)]
    assert differing(nodes, wrong) == wrong
