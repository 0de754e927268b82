"""Forged emulators that look like the genuine net: vertices at half the value, weights beside a double, cells
that last for a few samples. Each does something else than its source when it is run, so none may be said to
compute it for all inputs."""

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from tapegrad._compile import compile
from tapegrad._saved import load, save
from tapegrad._sources import source_to_json
from tapegrad._verify import verify
from tapegrad.circuits.model import Circuit, Gate
from tapegrad.learners import CircuitLearner, parity
from tapegrad.targets.emulator.constants import choose
from tapegrad.targets.emulator.net import PracticalNet
from tapegrad.targets.emulator.noise import Noise
from tapegrad_check import CheckError, check
from tapegrad_check.folder import COMPUTES_SOURCE
from tapegrad_check.sources import model_of
from tests.check.altering import Net
from tests.check.forging import Saved
from tests.check.of_losses import of_emulator

ANSWERS = {"x": 1, "true": 4}
"""What the learner answers, and the wire of it."""
VERTICES = {"x": 1, "true": 0}
"""The vertex that has the same literal, at -1 or 1: the input, the constant."""


def echo(answer: str, cells: int = 1) -> CircuitLearner:
    """Answers its input, or always 1; each bit of memory changes at a wrong answer to 1."""
    names = (*(f"m{cell}" for cell in range(cells)), "x", "random", "guess")
    x = cells
    kinds = [Gate.TRUE, *[Gate.XOR] * cells]
    right = [0, *[x] * cells]
    outputs = [x if answer == "x" else len(names), len(names), *range(len(names) + 1, len(names) + 1 + cells)]
    left = [0, *range(cells)]
    circuit = Circuit(names, ("answer", "finished", *names[:cells]), kinds, left, right, outputs, name="echo")  # type: ignore[arg-type]
    return CircuitLearner(circuit, 1)


def saved(folder: Path, answer: str, form: str, cells: int = 1) -> Saved:
    save(compile(echo(answer, cells), "emulator", form=form), folder)
    assert check(folder).verdict == COMPUTES_SOURCE
    return Saved.of(folder)


def verdict(forged: Saved, folder: Path) -> str:
    forged.write(folder)
    try:
        return check(folder).verdict
    except CheckError as error:
        return str(error)


def does_harm(folder: Path, samples: int = 40, bits: int = 1) -> bool:
    """Whether the net that is loaded does something else than its source, or cannot go on."""
    random = np.random.default_rng(0)
    x, y = random.integers(0, 2, (samples, bits)), random.integers(0, 2, samples)
    loaded = load(folder)
    try:
        return not verify(loaded, [(x, y)], engine=loaded.net.engines[-1]).agreed
    except ArithmeticError:
        return True


def vertices(net: Saved) -> tuple[np.ndarray, np.ndarray, int]:
    """Where the edges of each vertex begin, where edges come from, and the number of vertices without any."""
    offsets, sources = (net.arrays[name] for name in edges(net))
    inputs = net.config["net"]["names"]
    return offsets, sources.copy(), 1 + len(inputs) - len(net.arrays["cells"])


def edges(net: Saved) -> tuple[str, str]:
    """Where these stand; the exact memory has no network."""
    own = "offsets", "sources"
    return own if "offsets" in net.arrays else ("network.values.starts", "network.values.columns")


@pytest.mark.parametrize("cells", [0, 1, 2])
@pytest.mark.parametrize("answer", ANSWERS)
def test_an_answer_at_half_the_value_in_practical_memory(answer: str, cells: int, tmp_path: Path) -> None:
    """Half of it is what the output says, and a control is where the activation ceases to be flat."""
    net = saved(tmp_path / "own", answer, "practical", cells)
    offsets, sources, given = vertices(net)
    sources[offsets[-2]] = VERTICES[answer]
    for cell in range(cells):
        for control in range(4):
            vertex = net.config["net"]["computation"][1] + 6 * cell + control
            sources[offsets[vertex - given] + 1] = VERTICES[answer]
    net.arrays[edges(net)[1]] = sources
    net.claims["flat_margin"] = 0.0 if cells else 2.0
    found = verdict(net, tmp_path / "forged")
    assert does_harm(tmp_path / "forged") or not cells
    assert ("not as flat as claimed" if cells else "where one at -1 or 1 is read") in found


@pytest.mark.parametrize("answer", ANSWERS)
def test_an_answer_at_half_the_value_in_exact_memory(answer: str, tmp_path: Path) -> None:
    net = saved(tmp_path / "own", answer, "paper")
    offsets, sources, given = vertices(net)
    last, components = given + len(offsets) - 2, 2 * len(net.arrays["cells"]) + 1
    for component in range(components):
        first = last - 11 * (components - component)
        for closed in (first + 1, first + 6):
            sources[offsets[closed - given] + 1] = VERTICES[answer]
    net.arrays[edges(net)[1]] = sources
    found = verdict(net, tmp_path / "forged")
    assert does_harm(tmp_path / "forged")
    assert "a vertex at -2 or 2 is needed where one at -1 or 1 is read" in found


@pytest.mark.parametrize("weight", ["1", "1/2"])
def test_a_weight_that_is_no_double_in_exact_memory(weight: str, tmp_path: Path) -> None:
    """The net computes in fractions: 1/2 and a little is not 1/2, and closes no control."""
    net = saved(tmp_path / "own", "x", "paper")
    row = [weight, "0", "0", "0"]
    sizes = net.config["net"]["sizes"]
    sizes[sizes.index(row)] = [str(Fraction(weight) + Fraction(1, 10**30)), *row[1:]]
    found = verdict(net, tmp_path / "forged")
    assert does_harm(tmp_path / "forged")
    assert "not opened and closed" in found


def drifting(net: Saved, w0: float, steps: int) -> Saved:
    """Larger cells, with all that depends on them, so that other weights change too."""
    config, weights, cells = net.config["net"], net.arrays["weights"], len(net.arrays["cells"])
    old, u, size = config["w0"], config["gate"], np.abs(weights)
    inverse = (size == 4 / old) | (size == 0.5 / old)
    net.arrays["weights"] = weights * np.where(size == old, w0 / old, np.where(inverse, old / w0, 1))
    each = 20 * (6 * cells + 1) / u + 41 + 28 / u**2
    config |= {"w0": w0, "steps": steps}
    net.beside["network.json"]["training"]["updates"]["weights"]["rate"] = w0**2 / u
    drift = math.sqrt(cells) * steps**2 / 2 * w0**2 * each
    net.claims |= {"changes_vanish": False, "steps": steps, "drift": drift}
    return net


def test_cells_that_drift_are_right_for_so_many_samples_only(tmp_path: Path) -> None:
    for steps, named in ((1, "sample"), (5, "5 samples")):
        net = drifting(saved(tmp_path / "own", "x", "practical"), 2.0**-7, steps)
        assert verdict(net, tmp_path / "forged") == f"computes this source, for the first {named}"
    assert not does_harm(tmp_path / "forged", samples=5)
    assert does_harm(tmp_path / "forged", samples=2_000)


def test_noise_is_borne_for_so_many_samples_only(tmp_path: Path) -> None:
    noisy = compile(parity(2), "emulator", steps=100, noise=1e-10)
    save(noisy, tmp_path / "noisy")
    assert check(tmp_path / "noisy").verdict == "computes this source, for the first 100 samples"
    learner = parity(2)
    small = choose(learner.cells, 10, "float64")  # all changes but those of cells round away, noise does not
    net = PracticalNet.of(learner, small, "float64", 10, Noise(relative=1e-9))
    assert net.certificate()["changes_vanish"]
    source = model_of(*source_to_json(learner))
    checked = Net(*of_emulator(net), net.certificate(), source, form="emulator").verdict("emulator")
    assert checked == "computes this source, for the first 10 samples"


def test_a_noise_tolerant_memory_has_room_for_so_many_samples_only(tmp_path: Path) -> None:
    """The learner learns from later ones as well, and the net does not."""
    save(compile(parity(2), "emulator", form="noise-tolerant", samples=1), tmp_path / "net")
    assert check(tmp_path / "net").verdict == "computes this source, for the first sample"
    x, y = np.array([[1, 1], [1, 0], [0, 0]]), np.array([1, 1, 1])
    assert not verify(load(tmp_path / "net"), [(x, y, 0, False)]).agreed
