"""The headline at a small size, and the largest network beside its learner at every step."""

import numpy as np
import pytest

from tapegrad._compile import compile
from tapegrad._verify import verify
from tapegrad.learners import parity, robust_parity
from tapegrad.targets.emulator.net import PracticalNet
from tapegrad_papers.abbe_sandon.parity import eliminated, headline, learn, noise_sweep


@pytest.mark.slow
def test_the_headline_at_four_by_four() -> None:
    result = headline(side=4, images=300, epochs=40)
    for contest in result.contests:
        assert contest.learned.agrees
        assert contest.learned.accuracy[-1][1] == 1
        assert contest.learned.learned <= contest.learned.samples < 2 * 16 + 40
    assert result.contests[1].mlp_train[-1] == 0  # the ordinary network learns its images by heart
    assert result.contests[1].mlp_test[-1] > 0.25


def test_elimination() -> None:
    random = np.random.default_rng(0)
    hidden, x = random.integers(0, 2, 20), random.integers(0, 2, (40, 20))
    assert (eliminated(x, x @ hidden % 2) == hidden).all()
    assert eliminated(x[:15], x[:15] @ hidden % 2) is None
    assert eliminated(x, (x @ hidden + np.eye(40, dtype=int)[30]) % 2) is None


def test_noise_breaks_elimination_and_not_counting() -> None:
    assert noise_sweep(4, [0.0, 0.3], 6, robust=False)[0.0] == 1
    assert noise_sweep(4, [0.3], 12, robust=False)[0.3] < 1
    assert noise_sweep(4, [0.1], 6, robust=True)[0.1] == 1


def test_robust_parity_counts_contradictions() -> None:
    learner = robust_parity(4, 30, size=2)
    random = np.random.default_rng(2)
    x = random.integers(0, 2, (70, 4))
    y = x[:, 0] ^ x[:, 3] ^ (random.random(70) < 0.15)
    report = verify(compile(learner, "emulator"), [(x, y, 3)], engine="fast")
    assert report.agreed, report
    *_, last = learner.run(learner.start(x, y, 3))
    every = np.arange(16)[:, None] >> np.arange(4) & 1
    said = [learner.respond(last.memory, row.tolist(), 0, 0).answer for row in every]
    assert said == (every[:, 0] ^ every[:, 3]).tolist()


@pytest.mark.slow
def test_the_images_of_the_paper_at_every_step() -> None:
    """169 bits: memory and answers equal the learner's after each sample, and the answers elimination's."""
    n = 169
    random = np.random.default_rng(1)
    hidden, x = random.integers(0, 2, n), random.integers(0, 2, (380, n))
    learner = parity(n)
    compiled = compile(learner, "emulator")
    assert isinstance(compiled.net, PracticalNet)
    report = verify(compiled, [(x, x @ hidden % 2, 1)], engine="fast")
    assert report.agreed, report
    assert report.deviation == 0
    assert learn(x, random.integers(0, 2, (1000, n)), hidden).agrees
