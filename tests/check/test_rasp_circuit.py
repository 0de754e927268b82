"""The pass from RASP to circuits: proved on all inputs where they are few, else formula by formula; faults of
the compiler are found in both ways."""

from itertools import product

import numpy as np
import pytest

import tapegrad as tg
import tapegrad_check
from tapegrad.lowering import rasp_circuit as lowering
from tapegrad.rasp.files import to_json
from tapegrad.rasp.library import READY
from tapegrad.rasp.sampler import random_program
from tapegrad.rasp.text import read
from tapegrad_check.folder import COMPUTES_SOURCE, CheckError
from tapegrad_check.passes import rasp as rasp_circuit
from tapegrad_check.sources.rasp import rasp_of

WAYS = {"on all": rasp_circuit.FEW_INPUTS, "formula by formula": 0}
HEAD = "rasp mine\nvocabulary 0 1 2\nlength 5\n"
MOVES = HEAD + "output = aggregate(select(tokens, indices, <), tokens, 2)\n"
CAUSAL = HEAD + "causal\noutput = mean(not select(tokens, tokens, ==), tokens, 1)\n"


NEITHER = (
    HEAD
    + """before = select(indices, indices, <)
same = select(tokens, tokens, ==)
output = width(not (before or not same) and select(indices, tokens, !=))
"""
)


def checked(program, folder, count=4):
    tg.save(tg.compile(program, "relu", count=count), folder)
    return tg.check(folder)


@pytest.fixture(params=WAYS)
def way(request, monkeypatch):
    monkeypatch.setattr(rasp_circuit, "FEW_INPUTS", WAYS[request.param])
    return request.param


@pytest.mark.parametrize("name", ["rasp-sort", "rasp-dyck-2", "rasp-induction", "rasp-fraction"])
def test_ready_programs(name, way, tmp_path):
    report = checked(READY[name].build(), tmp_path / "net")
    assert report.verdict == COMPUTES_SOURCE
    assert any(way in statement for statement in report.statements)


@pytest.mark.parametrize(("text", "count"), [(MOVES, 4), (CAUSAL, 4), (NEITHER, 3), (NEITHER, 1), (MOVES, 1)])
def test_small_programs(text, count, way, tmp_path):
    assert checked(read(text.encode()), tmp_path / "net", count).verdict == COMPUTES_SOURCE


@pytest.mark.parametrize("seed", range(8))
def test_the_checkers_evaluator(seed):
    """It is the interpreter's, on all short inputs; neither shares code with the other."""
    program = random_program(seed)
    data = {"kind": "rasp program", **to_json(program)[0]}
    words = list(product(range(len(program.vocabulary)), repeat=3))
    found, mixed = rasp_circuit.evaluate(rasp_of(data, {}), np.array(words))
    assert not mixed.any()
    for word, places in zip(words, found.tolist(), strict=True):
        right = program.evaluate(tuple(program.vocabulary[token] for token in word))[program.output]
        assert [program.values[program.output][place] for place in places] == right


def forgets_mixtures(self, node, row, values):
    before = self.mixed
    found = lowering_moved(self, node, row, values)
    self.mixed = before
    return found


def another_default(self, node, row, values):
    hot = lowering_mean(self, node, row, values)
    hot[0], hot[1] = hot[1], hot[0]
    return hot


def sees_everything(self, node):
    causal, self.program = (
        self.program,
        lowering.RaspProgram(
            self.program.nodes, self.program.output, self.program.vocabulary, self.program.length
        ),
    )
    found = lowering_selector(self, node)
    self.program = causal
    return found


lowering_moved = lowering._Growing._moved
lowering_mean = lowering._Growing._mean
lowering_selector = lowering._Growing._selector


@pytest.mark.parametrize(
    ("part", "fault", "text"),
    [
        ("_moved", forgets_mixtures, MOVES),
        ("_mean", another_default, CAUSAL),
        ("_selector", sees_everything, CAUSAL),
    ],
)
def test_faults_of_the_compiler_are_found(part, fault, text, way, tmp_path, monkeypatch):
    monkeypatch.setattr(lowering._Growing, part, fault)
    with pytest.raises((CheckError, tg.TapegradError), match="the circuit"):
        checked(read(text.encode()), tmp_path / "net")


def test_the_number_of_tokens_is_that_of_the_circuit(tmp_path):
    """A folder that says another number is no proof of anything."""
    compiled = tg.compile(read(MOVES.encode()), "relu", count=3)
    compiled.options["count"] = 4
    tg.save(compiled, tmp_path / "net")
    with pytest.raises(CheckError, match="so many tokens"):
        tapegrad_check.check(tmp_path / "net")
