"""RASP programs as sources: values that are inferred, refusals that name the expression, random programs."""

from fractions import Fraction
from itertools import product

import pytest

from tapegrad import rasp
from tapegrad.errors import InputError, Refused, TapegradError
from tapegrad.rasp import library as lib
from tapegrad.rasp.files import from_json, to_json
from tapegrad.rasp.library import READY
from tapegrad.rasp.nodes import Aggregate, read_by
from tapegrad.rasp.sampler import random_program
from tests.rasp.oracles import ORACLES

SELECTOR = rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)


def some(name, most=4):
    """The program of a name, and all its short inputs."""
    program = READY[name].build()
    return program, [list(t) for n in range(1, most + 1) for t in product(program.vocabulary, repeat=n)]


@pytest.mark.parametrize("name", ORACLES)
def test_ready_programs(name):
    program, inputs = some(name)
    for tokens in inputs:
        assert list(program.run(program.start(tokens)))[1] == tuple(ORACLES[name](tokens))


def test_addition():
    program = READY["rasp-addition"].build()
    for x, y in product(range(8), repeat=2):
        *_, a, b, c, d = program([*f"{x:03b}+{y:03b}"])
        assert a * 8 + b * 4 + c * 2 + d == x + y


def test_all_ready_programs_have_an_oracle():
    assert READY.keys() == {*ORACLES, "rasp-addition"}


def test_values():
    """What is inferred holds everything that occurs, and for these nothing else."""
    program = rasp.program(lib.make_reverse(rasp.tokens), "ab", 3)
    found = {program.title(n): program.values[n] for n in range(len(program.nodes))}
    assert found["length"] == (0, 1, 2, 3)
    assert found["opposite"] == (-3, -2, -1, 0, 1, 2)
    assert found["reverse"] == (None, "a", "b")
    means = rasp.program(lib.make_frac_prevs(rasp.tokens == "a"), "ab", 4)
    assert means.values[means.output] == (
        0, Fraction(1, 4), Fraction(1, 3), Fraction(1, 2), Fraction(2, 3), Fraction(3, 4), 1,
    )  # fmt: skip
    balance = rasp.program(lib.make_pair_balance(rasp.tokens, "(", ")"), "()", 3)
    assert len(balance.values[balance.output]) == 9  # thirds and halves from -1 to 1, and 0


def test_values_hold_all_that_occurs():
    """In programs that move nothing: a move of several numbers is their mean, which nets refuse."""
    programs = [random_program(seed) for seed in range(120)]
    still = [p for p in programs if not any(isinstance(n, Aggregate) and not n.mean for n in p.nodes)]
    assert len(still) > 20
    for program in still:
        for tokens in product(program.vocabulary, repeat=min(3, program.length)):
            for found, values in zip(program.evaluate(tokens), program.values, strict=True):
                assert not values or set(found) <= set(values)


def test_random_programs_are_alive():
    for seed in range(40):
        program = random_program(seed)
        assert program == random_program(seed)
        reads = {own for node in program.nodes for own in read_by(node)}
        assert reads == set(range(len(program.nodes))) - {program.output}


def test_json():
    for name in READY:
        program = READY[name].build()
        again = from_json(to_json(program)[0], {})
        assert again == program
        assert again.values == program.values


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rasp.program(rasp.Map(lambda x: x / 2, rasp.tokens), "ab", 3), "'map' has no value"),
        (lambda: rasp.program(rasp.length, "ab", 3, causal=True), "does not know how many tokens"),
        (lambda: rasp.program(rasp.length, "ab", 0), "greatest length of 0"),
        (lambda: rasp.program(rasp.length, "", 3), "has 0 tokens"),
        (lambda: rasp.program(SELECTOR, "ab", 3), "is a sequence"),  # type: ignore[arg-type]
        (lambda: rasp.program(rasp.ConstantSOp([1, 2]), "ab", 2), "one length only"),
        (
            lambda: rasp.program(
                rasp.numerical(rasp.Aggregate(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ),
                                              lib.shift_by(1, rasp.indices))), "ab", 3),
            "may be none, which is no number",
        ),
        (
            lambda: rasp.program(
                rasp.SequenceMap(lambda x, y: (x, y), rasp.Map(lambda x: (x,), rasp.indices), rasp.indices)
                .named("pairs"), "a", 3000),
            "'pairs' has 9,000,000 cases",
        ),
        (lambda: rasp.program(rasp.Map(lambda x: object(), rasp.tokens), "ab", 3), "object is no value"),
        (lambda: rasp.program(rasp.Full(float("nan")), "ab", 3), "nan is no value"),
    ],
)  # fmt: skip
def test_refusals(make, message):
    with pytest.raises(TapegradError, match=message):
        make()


def test_inputs():
    program = READY["rasp-sort"].build()
    with pytest.raises(InputError, match=r'"x" is not in the vocabulary.*token 2'):
        program.start(["a", "x"])
    with pytest.raises(InputError, match="17 tokens were given"):
        program.start(["a"] * 17)
    assert program([]) == []


def test_means_over_one_selector_are_drawn_together():
    """There are 22,000 fractions at this length, and 500 million pairs of them."""
    program = rasp.program(lib.make_pair_balance(rasp.tokens, "(", ")"), "()", 60)
    assert len(program.values[program.output]) < 3000
    strict = rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.LT)
    closes = rasp.numerical(rasp.Aggregate(strict, rasp.numerical(rasp.tokens == ")"), 0))
    with pytest.raises(Refused, match="cases of its values"):
        rasp.program(lib.make_frac_prevs(rasp.tokens == "(") - closes, "()", 150)
