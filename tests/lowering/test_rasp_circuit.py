"""RASP programs of a fixed length as circuits, and from there on other targets."""

from itertools import product

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import rasp
from tapegrad.errors import InputError, Refused
from tapegrad.lowering.rasp_circuit import rasp_circuit
from tapegrad.rasp.library import READY
from tests.rasp.oracles import ORACLES


@pytest.mark.parametrize("name", ORACLES)
def test_all_inputs_of_three_tokens(name):
    program = READY[name].build()
    made = rasp_circuit(program, 3)
    for tokens in product(program.vocabulary, repeat=3):
        first, last = made.after.run(made.encode(program.start(tokens)))
        assert made.decode(first) == tokens
        assert made.decode(last) == tuple(ORACLES[name](list(tokens)))


def test_on_relu():
    program = READY["rasp-sort"].build()
    compiled = tg.compile(program, "relu", count=2)
    assert tg.verify(compiled, [(list(tokens),) for tokens in ("ab", "ba", "dc", "cc")]).agreed
    assert compiled.run("ca").state == ("a", "c")
    with pytest.raises(InputError, match="count=3"):
        compiled.run("abc")
    with pytest.raises(Refused, match="1 to 16 tokens"):
        tg.compile(program, "relu", count=17)
    with pytest.raises(Refused, match="needs count"):
        tg.compile(program, "relu")


def test_mixed_values():
    everything = rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.TRUE)
    program = rasp.program(rasp.Aggregate(everything, rasp.tokens), "abc", 3)
    made = rasp_circuit(program, 3)
    for tokens, right in (("bbb", True), ("bab", False)):
        *_, last = made.after.run(made.encode(program.start(tokens)))
        if right:
            assert made.decode(last) == ("b", "b", "b")
        else:
            with pytest.raises(Refused, match="values that differ"):
                made.decode(last)


def test_a_net_is_verified_on_inputs_of_its_length():
    program = READY["rasp-histogram"].build()
    report = tg.verify(tg.compile(program, "relu", count=2))
    assert (report.inputs, report.exhaustive) == (16, True)
    samples = rasp_circuit(program, 5).default_inputs
    assert samples is not None
    inputs, every = samples(np.random.default_rng(0))
    assert not every
    assert {len(word) for (word,) in inputs} == {5}
