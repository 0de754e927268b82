"""Forged networks that were trained: what is loaded must be what training gives."""

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tapegrad.targets.extended import MLP, FixedPoint, TrainingRun, extend, linear, perceptron_rule
from tapegrad.targets.extended import save as save_extended
from tapegrad_check import CheckError, check
from tapegrad_check.folder import OWN_TABLE
from tests.check.forging import Saved
from tests.targets.extended.algorithms import copy_bits, training


def trained(folder: Path, label: float) -> tuple[Saved, TrainingRun]:
    x, y = np.array([[1.0], [0.5]]), np.array([[label], [0.5]])
    algorithm = copy_bits(6, blank="0", stay=True)
    net = training(linear(1), algorithm, x, y, data_format=FixedPoint(3, 1), cells=32)
    run = net.train()
    save_extended(net, run, folder)
    return Saved.of(folder), run


def test_an_algorithm_that_is_not_started_at_its_start_is_refused(tmp_path: Path) -> None:
    """Started where it halts, with theta written by hand on the tape, it would have nothing to do."""
    genuine, run = trained(tmp_path / "genuine", -1.0)
    states = genuine.config["net"]["states"]
    ended = states[int(np.argmax(run.weights.weights.s)) // 4]
    genuine.config["source"]["start_state"] = ended
    genuine.write(tmp_path / "forged")
    with pytest.raises(CheckError, match="start state"):
        check(tmp_path / "forged")


def test_a_tape_that_was_filled_before_is_not_vouched_for(tmp_path: Path) -> None:
    genuine, _ = trained(tmp_path / "genuine", -1.0)
    genuine.config["net"]["tapes"][0].append(-9)
    T = genuine.arrays["T"].copy()
    T[16 - 9, 0] = 1.0
    genuine.arrays["T"] = T
    genuine.write(tmp_path / "forged")
    found = check(tmp_path / "forged")
    assert found.verdict == OWN_TABLE
    assert "1 cells of its own tapes are filled at first" in found.statements[-1]


@pytest.mark.slow
def test_a_named_rule_is_computed_again(tmp_path: Path) -> None:
    """The machine is the perceptron's, its run genuine; but it began with weights of the forger's."""
    form, shapes = FixedPoint(3), ((2, 1), (2, 1))
    rule, weights = perceptron_rule(*shapes, form, 2)
    data, own, total = rule.tapes
    x, y = np.array([[1.0], [-2.0]]), np.array([[1.0], [-1.0]])

    def saved(tape: Mapping[int, str]) -> None:
        changed = replace(rule, tapes=(data, tape, total))
        network = extend(MLP((1, 1), "sign"), changed, *shapes, data_format=form, weight_format=weights)
        training = network.on(x, y)
        save_extended(training, training.train(), tmp_path / "net")

    saved(own)
    assert "theta is what the perceptron rule gives" in check(tmp_path / "net").statements[-1]
    _, cell = rule.result[1]
    shutil.rmtree(tmp_path / "net")
    saved({**own, cell: "1"})
    with pytest.raises(CheckError, match="not what the perceptron rule gives"):
        check(tmp_path / "net")


def test_another_theta_on_the_result_tape_is_refused(tmp_path: Path) -> None:
    """The machine has halted, the certificate claims what the tape holds; but no training gave it."""
    genuine, _ = trained(tmp_path / "genuine", -1.0)
    T = genuine.arrays["T"].copy()
    T[genuine.arrays["network.result_cells.index"][0], 0] *= -1
    genuine.arrays["T"] = T
    theta = np.array(
        [x + (1 - 2 * (x * 2 % 2)) / 2 * (i == 0) for i, x in enumerate(genuine.claims["theta"])]
    )
    output = np.array([[1.0], [0.5]]) * theta[0] + theta[1]
    loss = float(np.sum((output - genuine.arrays["y"]) ** 2) / 2)
    genuine.claims |= {"theta": theta.tolist(), "output": output.tolist(), "final_loss": loss}
    genuine.write(tmp_path / "forged")
    with pytest.raises(CheckError, match="the algorithm leaves something else on its tapes"):
        check(tmp_path / "forged")
