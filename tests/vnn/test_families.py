"""Families of questions: answers beside every input, where there are few, and beside a SAT solver."""

from fractions import Fraction

import numpy as np
import pytest

from tapegrad._vnn import FAMILY_NAMES, TOOL_NAMES, clauses, factoring, miters, preimages, reaching, votes
from tapegrad._vnn.confirm import answered, solver_answer
from tapegrad._vnn.families import FAMILIES, WIDE, Family, asker, draws_for, fitting
from tapegrad._vnn.guard import FORMS, guarded, relu_count
from tapegrad._vnn.question import Question, point, violation
from tapegrad._vnn.rounds import chained
from tapegrad._vnn.scoring import TOOLS
from tapegrad.circuits.evaluator import evaluate
from tapegrad.circuits.tracer import trace
from tapegrad.circuits.types import UInt
from tapegrad.errors import FormatError, InputError
from tapegrad.lowering.configurations import ConfigurationWires, window_of
from tapegrad.machines.sampler import random_machine
from tests.interop.cases import all_patterns
from tests.vnn.exactly import exact_value

BOX_FAMILIES = [family for family in FAMILIES.values() if family.name != "robustness"]


@pytest.mark.parametrize("satisfiable", [True, False])
@pytest.mark.parametrize("family", BOX_FAMILIES, ids=lambda own: own.name)
def test_answers_beside_every_input(family: Family, satisfiable: bool) -> None:
    for size in (family.smallest, family.smallest + 1):
        question = family.question(size, satisfiable, draws_for(3, family.name, size))
        assert question.satisfiable == satisfiable
        found = evaluate(question.circuit, all_patterns(len(question.circuit.inputs)))
        assert found.any() == satisfiable
        if question.witness is not None:
            assert exact_value(guarded(question.parts), question.witness) == 1


@pytest.mark.parametrize("family", FAMILIES.values(), ids=lambda own: own.name)
def test_answers_beside_a_solver(family: Family) -> None:
    pytest.importorskip("pysat")
    size = fitting(family.name, 700)
    for number in range(4):
        question = family.question(size, number % 2 == 0, draws_for(number, family.name))
        assert solver_answer(question) == question.satisfiable == (number % 2 == 0)


def test_a_solver_can_disagree() -> None:
    """Told that nothing satisfies what something does, it is of another opinion."""
    pytest.importorskip("pysat")
    right = factoring.question(3, True, draws_for(0))
    assert solver_answer(Question(right.circuit, None, "a lie"))


def test_questions_do_not_take_a_wrong_witness() -> None:
    right = factoring.question(3, True, draws_for(0))
    assert right.witness is not None
    with pytest.raises(InputError, match="does not make its output 1"):
        Question(right.circuit, point([0] * 6), "")
    outside = tuple((Fraction(0), Fraction(0)) for _ in right.witness)
    with pytest.raises(InputError, match="does not make its output 1"):
        Question(right.circuit, right.witness, "", box=outside)


def test_primes_beside_a_sieve() -> None:
    sieve = np.ones(20_000, bool)
    sieve[:2] = False
    for own in range(2, 142):
        sieve[own * own :: own] = False
    assert [own for own in range(20_000) if factoring.is_prime(own)] == np.flatnonzero(sieve).tolist()
    assert not factoring.is_prime(3215031751)  # a strong pseudoprime to the bases 2, 3, 5 and 7
    assert factoring.is_prime((1 << 61) - 1)


def test_greater_primes_are_proved() -> None:
    """Fermat's test to other bases, which the proof does not use, says the same; a composite has no proof."""
    for bits in (82, 100, 257):
        number = factoring.proven_prime(draws_for(bits), bits)
        assert number.bit_length() == bits
        assert all(pow(base, number - 1, number) == 1 for base in (3, 5, 7))
    assert factoring.pocklington(2 * 23 + 1, 23)
    assert not factoring.pocklington(341, 31)  # 11 * 31, which base 2 takes for a prime
    assert not factoring.pocklington(47, 2)  # too small a divisor proves nothing


@pytest.mark.parametrize("size", [2, 3])
def test_factors_and_products_bit_by_bit(size: int) -> None:
    patterns = all_patterns(2 * size)
    a, b = (patterns[:, part] @ (1 << np.arange(size)) for part in (slice(0, size), slice(size, None)))
    for number in range(1 << 2 * size):
        found = evaluate(chained(factoring.factor_rounds(number, size), ""), patterns)[:, 0]
        assert np.array_equal(found, (a * b == number) & (a > 1) & (b > 1))
    assert not evaluate(chained(miters.product_rounds(size), ""), patterns).any()


def test_pixels_one_by_one() -> None:
    for pixels in (1, 4, 7):
        patterns = all_patterns(pixels)
        for most in range(pixels):
            found = evaluate(chained(votes.counting_rounds(pixels, most), ""), patterns)[:, 0]
            assert np.array_equal(found, patterns.sum(axis=1) <= most)


@pytest.mark.parametrize("satisfiable", [True, False])
def test_corners_one_by_one_are_the_same_formula(satisfiable: bool) -> None:
    at_once, one_by_one = (
        make(3, satisfiable, draws_for(5)).circuit for make in (clauses.question, clauses.serial)
    )
    patterns = all_patterns(9)
    assert np.array_equal(evaluate(at_once, patterns), evaluate(one_by_one, patterns))


SERIAL = [family for family in FAMILIES.values() if family.serial is not None]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("family", SERIAL, ids=lambda own: own.name)
def test_rounds_laid_out_one_by_one_are_the_circuit(family: Family, form: str) -> None:
    """The network of the rounds at bits, beside the circuit that they are together."""
    assert family.serial is not None
    question = family.serial(3, True, draws_for(7, family.name))
    layers, inputs = guarded(question.parts, form), len(question.circuit.inputs)
    assert relu_count(question.parts, form) == sum(len(layer.map) for layer in layers[:-1])
    assert question.witness is not None
    assert exact_value(layers, question.witness) == 1
    patterns = np.random.default_rng(0).integers(0, 2, (6, inputs)).astype(bool)
    right = evaluate(question.circuit, patterns)[:, 0].astype(int).tolist()
    assert [exact_value(layers, point(row)) for row in patterns] == right


@pytest.mark.parametrize("family", SERIAL, ids=lambda own: own.name)
def test_answers_bit_by_bit_beside_a_solver(family: Family) -> None:
    pytest.importorskip("pysat")
    assert family.serial is not None
    for number in range(4):
        question = family.serial(4, number % 2 == 0, draws_for(number, family.name))
        assert solver_answer(question) == question.satisfiable == (number % 2 == 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_reaches_a_million(name: str) -> None:
    size = fitting(name, 1_000_000)
    parts = asker(name, 1_000_000)(size, True, draws_for(1, name)).parts
    assert 900_000 < relu_count(parts) <= 1_100_000
    assert asker(name, WIDE) == FAMILIES[name].question


def test_the_hash_of_the_circuit_is_that_of_the_numbers() -> None:
    state, message_bits, rounds = preimages.shape(9)
    assert (state, message_bits, rounds) == (16, 12, 3)
    messages = np.arange(0, 1 << 12, 37)
    bits = (messages[:, None] >> np.arange(message_bits) & 1).astype(bool)
    for wanted in preimages.digest(messages[:5], state, rounds).tolist():
        found = evaluate(preimages.circuit(wanted, state, message_bits, rounds), bits)[:, 0]
        assert np.array_equal(found, preimages.digest(messages, state, rounds) == wanted)


def test_the_radius_is_where_the_network_passes_one_half() -> None:
    """Two bright pixels are moved as far as they may, by the network itself; random points do no better."""
    drawn = (votes.question(5, True, draws_for(seed)) for seed in range(50))
    question = next(own for own in drawn if own.about["flips"] == 2)
    layers, flips = guarded(question.parts), 2
    middle = [(low + high) / 2 for low, high in question.region]
    darkest = sorted((value, place) for place, value in enumerate(middle) if value > Fraction(1, 2))[:flips]
    radius = votes.radius([value for value, _ in darkest])
    assert question.about["radius"] == str(radius)

    def best(reach: Fraction) -> Fraction:
        moved = list(middle)
        for value, place in darkest:
            moved[place] = value - reach
        return exact_value(layers, moved)

    assert best(radius) == Fraction(1, 2)
    assert best(radius - Fraction(1, 1000)) < Fraction(1, 2)
    assert best(Fraction(question.about["asked"])) == 1
    random = np.random.default_rng(0)
    reach = radius - Fraction(1, 1000)
    for signs in random.integers(-1, 2, (20, len(middle))).tolist():
        moved = [value + sign * reach for value, sign in zip(middle, signs, strict=True)]
        assert exact_value(layers, moved) <= best(reach)


@pytest.mark.parametrize(("seed", "leaves"), [(4, True), (2, False)])
def test_a_machine_stays_where_it_halts_and_is_lost_outside(seed: int, leaves: bool) -> None:
    machine = random_machine(seed, stay=False, halt=0.3)
    code = ConfigurationWires(machine, window_of(machine, 4))
    tapes, lost, halted = all_patterns(4), False, False
    for steps in (1, 5):
        outputs = {own: evaluate(reaching.circuit(code, own, steps), tapes)[:, 0] for own in machine.states}
        for number, tape in enumerate(tapes.astype(int).tolist()):
            *_, end = reaching.run(machine, code, tape, steps)
            assert [own for own in machine.states if outputs[own][number]] == ([] if end is None else [end])
            lost |= end is None
            states = list(reaching.run(machine, code, tape, 99))
            halted |= states[-1] is not None and len(states) < 99
    assert (lost, halted) == (leaves, not leaves)


def test_contracts_of_functions() -> None:
    def larger(a, b):
        return a + (b - a)  # which wraps around, and comes back

    broken = violation(larger, UInt(3), UInt(3), ensures=lambda result, a, b: result >= a)
    patterns = all_patterns(6)
    a, b = (patterns[:, part] @ [1, 2, 4] for part in (slice(0, 3), slice(3, 6)))
    assert np.array_equal(evaluate(broken.circuit, patterns)[:, 0], b < a)
    kept = violation(
        trace(larger, UInt(3), UInt(3)), ensures=lambda result, a, b: result >= a, requires=lambda a, b: a < b
    )
    assert not evaluate(kept.circuit, patterns).any()


def test_the_command_line_names_them_all() -> None:
    assert tuple(FAMILIES) == FAMILY_NAMES
    assert tuple(TOOLS) == TOOL_NAMES


def test_sizes_grow_with_what_is_asked_for() -> None:
    for name, family in FAMILIES.items():
        sizes = [fitting(name, relus) for relus in (10, 800, 3000)]
        assert sizes[0] == family.smallest < sizes[1] < sizes[2]
        assert relu_count(family.question(sizes[1], True, draws_for(0, name, sizes[1])).parts) <= 800


def test_dimacs() -> None:
    pytest.importorskip("pysat")
    text = "c a comment\np cnf 3 4\n1 -2 0 2\n3 0\n-1 0 -3 2 0\n%\n0\n"
    variables, found = clauses.from_dimacs(text)
    assert (variables, found) == (3, [[1, -2], [2, 3], [-1], [-3, 2]])
    question = answered(clauses.circuit(variables, found, "formula"), found)
    assert not question.satisfiable
    assert not evaluate(question.circuit, all_patterns(3)).any()
    found = found[:3]
    question = answered(clauses.circuit(variables, found, "formula"), found)
    assert question.witness == point([0, 0, 1])


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "no line 'p cnf'"),
        ("1 2 0", "no variable"),
        ("p cnf 2\n1 0", "begins with one line"),
        ("p cnf 2 1\np cnf 2 1\n1 0", "begins with one line"),
        ("p cnf 2 1\n3 0", "no variable"),
        ("p cnf 2 1\n1 2", "in the middle of a clause"),
        ("p cnf 2 2\n1 0", "1 clauses, and not 2"),
        ("p cnf 2 1\none 0", "no number of a literal"),
        ("p cnf 2 1\n99999999999999999999 0", "no number of a literal"),
        ("p cnf 100001 1\n1 0", "at most"),
    ],
)
def test_bad_formulas_are_refused(text: str, what: str) -> None:
    with pytest.raises(FormatError, match=what):
        clauses.from_dimacs(text)
