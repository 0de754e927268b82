"""Circuits written by others, as ReLU networks: every layer, on random patterns, both engines."""

import os
from pathlib import Path

import numpy as np
import pytest

from tapegrad._compile import compile
from tapegrad._verify import verify
from tapegrad.circuits.formats import read
from tapegrad.targets.relu import ReluNet
from tapegrad.targets.relu.target import FORMS

CORPUS = os.environ.get("TAPEGRAD_CORPUS", "")
pytestmark = pytest.mark.skipif(not CORPUS, reason="TAPEGRAD_CORPUS is not set")

DEEP = ("epfl/adder.aig", "epfl/router.blif", "bristol/adder64.txt", "epfl/cavlc.aig", "aiger/true.aag")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("file", DEEP)
def test_corpus_circuits_agree_layer_by_layer(file: str, form: str) -> None:
    _agrees(file, "fast", form)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("engine", ReluNet.engines)
@pytest.mark.parametrize("file", [*DEEP, "bristol/mult64.txt", "epfl/bar.aig", "epfl/dec.blif"])
def test_corpus_circuits_agree_by_both_engines(file: str, engine: str, form: str) -> None:
    _agrees(file, engine, form)


def _agrees(file: str, engine: str, form: str) -> None:
    circuit = read((Path(CORPUS) / "circuits" / file).read_bytes())
    patterns = np.random.default_rng(0).integers(0, 2, (64, len(circuit.inputs)), np.uint8)
    report = verify(compile(circuit, "relu", form=form), [(patterns,)], engine=engine)
    assert report.agreed, report
    assert report.complete
