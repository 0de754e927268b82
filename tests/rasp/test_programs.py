"""RASP programs as sources: values that are inferred, refusals that name the expression, random programs."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest

from tapegrad import rasp
from tapegrad.errors import InputError, Refused, TapegradError
from tapegrad.rasp import library as lib
from tapegrad.rasp.files import from_json, to_json
from tapegrad.rasp.library import READY
from tapegrad.rasp.nodes import (
    Aggregate,
    Apply,
    Combine,
    Full,
    Pairs,
    Select,
    Sequence_,
    Table,
    Width,
    read_by,
)
from tapegrad.rasp.sampler import random_program, tried_inputs
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
    for program in map(random_program, range(40)):
        for tokens in product(program.vocabulary, repeat=min(3, program.length)):
            for found, values in zip(program.evaluate(tokens), program.values, strict=True):
                assert not values or set(found) <= set(values)


def test_random_programs_are_alive():
    """Everything is read, and matters: with a constant in place of any sequence some short input has another
    output."""
    for seed in range(25):
        program = random_program(seed)
        assert program == random_program(seed)
        reads = {own for node in program.nodes for own in read_by(node)}
        assert reads == set(range(len(program.nodes))) - {program.output}
        words = tried_inputs(program)
        right = [program(word) for word in words]
        assert len({value for own in right for value in own}) > 1
        for number, node in enumerate(program.nodes):
            if isinstance(node, Sequence_) and not isinstance(node, Full) and number != program.output:
                for value in program.values[number][:2]:
                    nodes = (*program.nodes[:number], Full(value), *program.nodes[number + 1 :])
                    held = replace(program, nodes=nodes)
                    assert any(held(word) != own for word, own in zip(words, right, strict=True))


def test_random_programs_are_varied():
    """Every kind of node, both kinds of aggregates, tables and pairs, causal and not; a third with two heads
    or more."""
    programs = [random_program(seed) for seed in range(60)]
    nodes = [node for program in programs for node in program.nodes]
    assert {type(node) for node in nodes} >= {Apply, Select, Combine, Width, Aggregate}
    assert {node.mean for node in nodes if isinstance(node, Aggregate)} == {False, True}
    assert any(isinstance(node, Apply) and isinstance(node.function, Table) for node in nodes)
    assert any(isinstance(node, Select) and isinstance(node.predicate, Pairs) for node in nodes)
    assert {program.causal for program in programs} == {False, True}
    assert len({program.vocabulary for program in programs}) > 4
    heads = [sum(isinstance(node, Width | Aggregate) for node in program.nodes) for program in programs]
    assert sum(count > 1 for count in heads) > 20
    assert min(heads) > 0


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
