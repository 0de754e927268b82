"""The practical memory under noise: the bound holds in the worst directions tried; the check derives it."""

import copy
from typing import Any

import numpy as np
import pytest

from tapegrad._compile import compile
from tapegrad._verify import verify
from tapegrad.errors import InputError, Refused
from tapegrad.learners import majority, parity
from tapegrad.targets.emulator.constants import drift
from tapegrad.targets.emulator.net import PracticalNet
from tapegrad.targets.emulator.noise import Noise, Opened, borne, choose_for_noise, error, largest, load
from tapegrad_check.folder import CheckError
from tests.check.altering import Net, net_of

STEPS = 60


def setting(learner):
    constants = choose_for_noise(learner.cells, STEPS, "float64")
    net = PracticalNet.of(learner, constants, "float64", STEPS)
    return constants, load(net.graph, net.weights, learner.cells)


def noise_of(kind: str, size: float) -> Noise:
    return Noise(absolute=size) if kind == "absolute" else Noise(relative=size)


def samples(n: int):
    x = np.random.default_rng(2).integers(0, 2, (STEPS, n))
    return x, x[:, 0] ^ x[:, -1]


@pytest.mark.parametrize("kind", ["absolute", "relative"])
@pytest.mark.parametrize("direction", ["random", "up", "outwards", "back and forth"])
def test_within_the_bound_memory_is_the_learners_whatever_the_noise(kind, direction, monkeypatch) -> None:
    learner = majority(3, 20)
    constants, flat = setting(learner)
    most = largest(kind, learner.cells, STEPS, constants, flat)
    noise = noise_of(kind, most * (1 - 1e-9))
    honest = Noise.at

    def worst(self, step, first, steps):
        size = (self.absolute + self.relative * np.abs(first)) / steps
        if direction == "up":
            return size
        return size * (np.sign(first) if direction == "outwards" else (-1) ** step)

    monkeypatch.setattr(Noise, "at", honest if direction == "random" else worst)
    net = PracticalNet.of(learner, constants, "float64", STEPS, noise)
    x, y = samples(3)
    carry, bound = net.start(learner.start(x, y, 1)), error(noise, learner.cells, STEPS, constants)
    assert 0.2 < bound <= 0.25
    for state in list(learner.run(learner.start(x, y, 1)))[1:]:
        before = carry.weights
        carry = net.advance(carry, 1, "fast")
        assert net.decode(carry) == state
        assert net.deviation(carry) <= bound
        large = np.abs(before) > 1e6  # gains, of which absolute noise rounds away
        assert (carry.weights != before)[~large].all()


def test_it_breaks_in_the_end() -> None:
    learner = parity(4)
    constants, _ = setting(learner)
    x, y = samples(4)
    for kind, much in (("absolute", 100 * constants.w0), ("relative", 30.0)):
        net = PracticalNet.of(learner, constants, "float64", STEPS, noise_of(kind, much))
        carry = net.advance(net.start(learner.start(x, y, 1)), STEPS, "fast")
        *_, last = learner.run(learner.start(x, y, 1))
        assert net.decode(carry).memory != last.memory


def test_both_engines_see_the_same_noise() -> None:
    compiled = compile(parity(3), "emulator", steps=STEPS, noise=1e-9, relative_noise=1e-6)
    x, y = samples(3)
    assert verify(compiled, [(x, y)], engine="fast").agreed
    assert verify(compiled, [(x, y)], engine="reference").agreed
    start = compiled.start(x, y)
    by_fast, by_hand = (compiled.net.advance(start, 9, engine) for engine in ("fast", "reference"))
    assert np.allclose(by_fast.weights, by_hand.weights, rtol=1e-9, atol=0)


def test_what_the_bound_is_made_of() -> None:
    """Each term alone, by its formula; and a learner that is known better bears more."""
    learner = parity(4)
    constants, flat = setting(learner)
    m, u, unit = learner.cells, constants.gate, 2.0**-53
    still = error(Noise(), m, STEPS, constants)
    steady = m**0.5 * STEPS * (20 * STEPS + 10 * (6 * m + 1)) * unit
    assert still == pytest.approx(1.1 * drift(constants.w0, m, STEPS) + steady)
    found = error(Noise(absolute=1e-9), m, STEPS, constants) - still
    assert found == pytest.approx(m**0.5 * 1e-9 * (1 / constants.w0 + STEPS * 20 * 8 / (3 * u)))
    found = error(Noise(relative=1e-7), m, STEPS, constants) - still
    assert found == pytest.approx(m**0.5 * 1e-7 * (1 + 20 * STEPS))
    assert error(Noise(relative=0.1), m, STEPS, constants) == np.inf
    known = largest("relative", m, STEPS, constants, flat, Opened(2, 5))
    assert known > 50 * largest("relative", m, STEPS, constants, flat)
    assert error(Noise(), m, STEPS, constants, opened=Opened(1000, m)) == np.inf
    assert not borne(Noise(relative=1e-6), m, STEPS, constants, load=2.1e6)
    assert borne(Noise(relative=1e-6), m, STEPS, constants, load=1.9e6)


def test_load_is_the_largest_sum_at_a_flat_vertex() -> None:
    for learner in (parity(5), majority(3, 9)):
        net: Any = compile(learner, "emulator").net
        found = 0.0
        begin, end = net.computation
        controls = [end + 6 * cell + control for cell in range(learner.cells) for control in range(4)]
        for vertex in [*range(begin, end), *controls]:
            first, last = net.graph.offsets[vertex - net.graph.inputs : vertex - net.graph.inputs + 2]
            sizes = [2 if source >= net.graph.inputs else 1 for source in net.graph.sources[first:last]]
            found = max(found, float(np.abs(net.weights[first:last]) @ sizes))
        assert load(net.graph, net.weights, learner.cells) == found


def test_what_is_not_proved_is_refused() -> None:
    with pytest.raises(Refused, match="bear, over 100 steps, noise of"):
        compile(parity(3), "emulator", steps=100, relative_noise=0.01)
    with pytest.raises(Refused, match="relative noise must be"):
        compile(parity(3), "emulator", relative_noise=-1.0)
    with pytest.raises(Refused, match="no noise for exact memory"):
        compile(parity(2), "emulator", form="paper", noise=1e-9)
    with pytest.raises(Refused, match="no relative noise for noise-tolerant memory"):
        compile(parity(2), "emulator", form="noise-tolerant", samples=2, relative_noise=1e-9)
    compiled = compile(parity(3), "emulator", steps=10, relative_noise=1e-7)
    with pytest.raises(InputError, match="too many"):
        compiled.start([[0, 0, 0]] * 11, [0] * 11)
    with pytest.raises(InputError, match="12 samples are too many"):  # both guesses of six
        compiled.fit([[0, 0, 0]] * 6, [0, 1] * 3)


def noisy() -> Net:
    return net_of(parity(3), "emulator", {"steps": STEPS, "noise": 1e-9, "relative_noise": 1e-6})


CHANGES = [
    ("noise may turn a cell|error that noise makes", lambda net: net.config["noise"].update(relative=1e-3)),
    ("error that noise makes", lambda net: net.config["noise"].update(absolute=2e-9)),
    ("error that noise makes", lambda net: net.claims.update(error=net.claims["error"] / 2)),
    ("may not be flat", lambda net: net.config["noise"].update(relative=1.0)),
    ("not positive", lambda net: net.config["noise"].update(relative=-1e-6)),
    ("not positive", lambda net: net.config["noise"].update(absolute=0.0, relative=0.0)),
    ("other entries", lambda net: net.config["noise"].update(more=1)),
    ("seed", lambda net: net.config["noise"].update(seed="0")),
    ("not described", lambda net: net.config.update(noise=[1e-9])),
    ("other entries or claims", lambda net: net.claims.pop("error")),
    ("other entries or claims", lambda net: net.config.pop("noise")),
]


@pytest.mark.parametrize(("reason", "change"), CHANGES)
def test_the_check_refuses_other_noise(reason: str, change) -> None:
    net = copy.deepcopy(noisy())
    change(net)
    with pytest.raises(CheckError, match=reason):
        net.verdict("emulator")


def test_the_check_refuses_noise_that_is_honestly_too_large() -> None:
    net = noisy()
    net.config["noise"]["relative"] = 1e-3
    constants, _ = setting(parity(3))
    net.claims["error"] = error(Noise(1e-9, 1e-3), len(net.arrays["cells"]), STEPS, constants)
    with pytest.raises(CheckError, match="may turn a cell"):
        net.verdict("emulator")
