"""What is merged is the same function: against truth tables; and what one would like to be seen is seen."""

import random as drawing
from itertools import pairwise, product

import pytest

from tapegrad_check.formulas import sweep
from tapegrad_check.formulas.nodes import FALSE, TRUE, Nodes
from tapegrad_check.formulas.sweep import unproved
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
    left = set(unproved(nodes, pairs))
    for a, b in pairs:
        same = values[a >> 1] ^ values[b >> 1] == every * ((a ^ b) & 1)
        assert same or (a, b) in left
    assert sum(pair in left for pair in pairs if values[pair[0] >> 1] == values[pair[1] >> 1]) < 20


def test_what_agrees_on_all_patterns_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words of which no pattern has all bits."""
    nodes = Nodes(10_000)
    bits = nodes.variables(60)
    never = nodes.all_of([bit ^ place % 2 for place, bit in enumerate(bits)])
    assert unproved(nodes, [(never, FALSE)]) == [(never, FALSE)]
    monkeypatch.setattr(sweep._Merging, "same", lambda self, a, b: a == b)
    pair = nodes.and_(never, bits[0]), never
    assert unproved(nodes, [pair]) == [pair]


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
    assert not unproved(nodes, pairs)
    wrong = [(x, y) for (x, _), (_, y) in pairwise(pairs)]
    assert unproved(nodes, wrong) == wrong


@pytest.mark.parametrize(("variables", "seen"), [(sweep.LEAVES - 1, True), (sweep.LEAVES, False)])
def test_a_proof_looks_at_so_many_nodes_and_no_more(variables: int, seen: bool) -> None:
    """The same conjunction, from the left and from the right: nothing in between is shared, and when all
    variables but one are there, so is a node that is yet to be opened."""
    nodes = Nodes()
    bits = nodes.variables(variables)
    left, right = bits[0], bits[-1]
    for bit in bits[1:]:
        left = nodes.and_(left, bit)
    for bit in bits[-2::-1]:
        right = nodes.and_(right, bit)
    merging = sweep._Merging(nodes, 0)
    assert merging.failures == 0
    assert not merging.is_rare(FALSE)
    assert not merging.is_rare(TRUE)
    assert merging.same(left, right) == seen
    assert merging.failures == (not seen)


def test_a_guess_looks_no_further_than_a_proof_could() -> None:
    nodes = Nodes()
    first, *bits = nodes.variables(1000)
    for bit in bits:
        first = nodes.and_(first, bit)
    near = sweep._Merging(nodes, 0)._near(first >> 1)
    assert len(near) == 2 * sweep.INNER
    assert min(near) > 1000  # the highest first, and the variables are lowest
