"""Ready learners by name: each learns what its samples show, as an interpreter and as a network."""

from pathlib import Path

import numpy as np
import pytest

import tapegrad as tg
from tapegrad._sources import parse_inputs
from tapegrad.errors import InputError
from tapegrad.learners.library import READY, example_samples, ready
from tapegrad_check import check


@pytest.mark.parametrize("name", READY)
@pytest.mark.sampled(3)
def test_a_ready_learner_learns_its_samples(name: str) -> None:
    learner, (x, y) = ready(name), example_samples(name)
    *_, last = learner.run(learner.start(x, y))
    answers = [learner.respond(last.memory, row, 0, 0) for row in x[:100].tolist()]
    assert all(said.finished for said in answers)
    right = np.mean([said.answer == label for said, label in zip(answers, y[:100].tolist(), strict=True)])
    assert right > (0.6 if "majority" in name or "nearest" in name else 0.9)


def test_widths_are_part_of_the_name() -> None:
    assert ready("learn-parity5").inputs == 5
    for name in ("learn-parity0", "learn-parity", "learn-everything8", "parity8", "learn-parity999"):
        assert name not in READY
        with pytest.raises(InputError, match="no ready learner"):
            ready(name)


def test_samples_are_typed_as_bits_and_a_label(tmp_path) -> None:
    learner = ready("learn-parity3")
    (tmp_path / "more.txt").write_text("111:1\n000:0\n")
    x, y = parse_inputs(learner, ["010:1 110:0", str(tmp_path / "more.txt")])
    assert x.tolist() == [[0, 1, 0], [1, 1, 0], [1, 1, 1], [0, 0, 0]]
    assert y.tolist() == [1, 0, 1, 0]
    for wrong in ("01:1", "010", "012:1", "010:2"):
        with pytest.raises(InputError, match="not a sample of 3 bits"):
            parse_inputs(learner, [wrong])


def test_a_ready_learner_is_found_and_compiled() -> None:
    net = tg.compile(tg.read("learn-parity4"), "emulator")
    assert tg.verify(net, [example_samples("learn-parity4", 20)]).agreed


@pytest.mark.parametrize("kind", ["tree", "stump", "naive-bayes", "winnow", "perceptron", "nearest"])
@pytest.mark.sampled(3)
def test_a_ready_learner_is_saved_proved_and_verified(kind: str, tmp_path: Path) -> None:
    name = f"learn-{kind}2"
    tg.save(tg.compile(name, "emulator"), tmp_path / "net")
    report = check(tmp_path / "net")
    assert any("functions of the learner's circuit" in said for said in report.statements)
    again = tg.load(tmp_path / "net")
    x, y = example_samples(name, 40)
    assert tg.verify(again, [(x, y)], engine="fast").agreed
    assert tg.estimate(name, "emulator").parameters == again.net.parameters
