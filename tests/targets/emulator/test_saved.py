"""Saved nets: loaded again, checked independently, refused when altered; and ordinary trainers."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tapegrad._compile import compile
from tapegrad._precision import in_double
from tapegrad._saved import load, save
from tapegrad._verify import verify
from tapegrad.errors import InputError
from tapegrad.learners import CircuitLearner, Learner, conjunction, parity
from tapegrad.networks.backends.jax import Jax
from tapegrad.targets import target_named
from tapegrad.targets.emulator.net import PracticalNet, input_rows
from tapegrad_check import CheckError, check
from tapegrad_check.folder import COMPUTES_SOURCE, Checked
from tapegrad_check.sources import Model
from tests.check.altering import Net, net_of
from tests.learners.cases import CASES, Case


@pytest.mark.parametrize("number", range(len(target_named("emulator").examples())))
def test_examples_saved_and_loaded(number: int, tmp_path: Path) -> None:
    example = target_named("emulator").examples()[number]
    compiled = compile(example.source, "emulator", **example.options)
    save(compiled, tmp_path / "net")
    again = load(tmp_path / "net")
    assert isinstance(again.source, CircuitLearner)
    assert verify(again, [example.inputs], engine=again.net.engines[-1]).agreed
    assert compiled.explain("cell 0" if "cell 0" in set(compiled.net.units()) else "sample 0")
    assert compiled.explain("output") == again.explain("output")
    with pytest.raises(InputError):
        compiled.explain("nothing")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_checker_agrees(case: Case, tmp_path: Path) -> None:
    for precision in ("float64", "float32"):
        save(compile(case.learner, "emulator", precision=precision), tmp_path / precision)
        report = check(tmp_path / precision)
        assert report.verdict == COMPUTES_SOURCE
        assert len(report.statements) == 8


PAPER = [
    (parity(3), {"form": "paper"}),
    (conjunction(2, 3), {"form": "paper", "exponent": "11/9"}),
    (parity(2), {"form": "noise-tolerant", "samples": 3}),
    (conjunction(1, 2), {"form": "noise-tolerant", "samples": 2, "arithmetic": "decimal"}),
]


@pytest.mark.parametrize(("learner", "options"), PAPER, ids=lambda value: str(value)[:40])
def test_the_checker_knows_the_papers_networks(learner, options: dict) -> None:
    config, arrays, claims, source = parts_of(learner, **options)
    of_network = "m0" not in config
    assert len(check_arrays(config, arrays, claims, source).statements) == 4 + of_network
    output = len(arrays["sources"]) - 1
    for name, edge in (("kinds", 0), ("kinds", 1), ("kinds", output), ("sources", 1)):
        altered = arrays | {name: arrays[name].copy()}
        altered[name][edge] = 3 if altered[name][edge] != 3 else 4
        with pytest.raises(CheckError):
            check_arrays(config, altered, claims, source)
    if "m0" in config:
        smaller = str(int(config["m0"]) - 1)
        with pytest.raises(CheckError, match="below 1"):
            check_arrays(config | {"m0": smaller}, arrays, claims | {"m0": smaller}, source)


def parts_of(learner: Learner, **options: Any) -> tuple[dict, dict, dict, Model | None]:
    """As the tests take them apart, with the edges among the arrays."""
    net = net_of(learner, "emulator", options)
    return net.config, net.arrays, net.claims, net.source


def check_arrays(config: dict, arrays: dict, claims: dict, source: Model | None) -> Checked:
    form = "" if config["memory"] == "exact" else "emulator"
    return Net(config, arrays, claims, source, form=form).checked("emulator")


@pytest.mark.parametrize("seed", range(40))
def test_the_checker_notices_any_altered_weight_or_edge(seed: int) -> None:
    config, arrays, claims, source = parts_of(parity(4))
    check_arrays(config, arrays, claims, source)
    random = np.random.default_rng(seed)
    if seed % 2:
        edge = int(random.integers(len(arrays["weights"])))
        arrays["weights"][edge] *= random.choice([-1.0, 1.5, 0.25, 1 + 2.0**-40])
    else:
        edge = int(random.integers(5, len(arrays["sources"])))
        old = int(arrays["sources"][edge])
        arrays["sources"][edge] = (old + int(random.integers(1, 5))) % (old + 5) if old else 3
    with pytest.raises(CheckError):
        check_arrays(config, arrays, claims, source)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("w0", 1e-3),
        ("w0", 2.0**-40),
        ("gate", 0.125),
        ("rate", 1e-9),
        ("finished", 9),
        ("steps", 10),
        ("names", ["a"] * 9),
        ("computation", [3, 4]),
        ("inputs", 7),
    ],
)
def test_the_checker_notices_another_config(name: str, value) -> None:
    config, arrays, claims, source = parts_of(parity(3))
    with pytest.raises(CheckError):
        check_arrays(config | {name: value}, arrays, claims, source)


@pytest.mark.parametrize("claim", [{"flat_margin": 3.0}, {"drift": 1e-9}, {"changes_vanish": False}])
def test_the_checker_notices_false_claims(claim: dict) -> None:
    config, arrays, claims, source = parts_of(parity(3))
    with pytest.raises(CheckError):
        check_arrays(config, arrays, claims | claim, source)


@in_double
def test_an_ordinary_trainer_emulates_the_learner() -> None:
    """The loss is a function of the weights; `optax.sgd` does the rest."""
    optax = pytest.importorskip("optax")
    case = CASES[0]
    net = compile(case.learner, "emulator").net
    assert isinstance(net, PracticalNet)
    x, y = case.drawn(seed=9, count=30)
    first = case.learner.start(x, y, 1)
    trainer = optax.sgd(net.constants.rate)
    weights = jnp.asarray(net.weights)
    state = trainer.init(weights)

    @jax.jit
    def step(weights, state, row, label):
        def loss(weights):
            given = {"weights": weights, "row": row, "label": label}
            return Jax(net.network).run(given)[0]["loss"]

        slopes = jax.grad(loss)(weights)
        updates, state = trainer.update(slopes, state, weights)
        return optax.apply_updates(weights, updates), state

    rows = input_rows(first.samples, 0, len(x))
    for t, expected in enumerate(list(case.learner.run(first))[1:]):
        row = jnp.asarray(rows[t], np.float64)
        weights, state = step(weights, state, row, jnp.asarray(2.0 * y[t] - 1))
        assert tuple((np.asarray(weights)[net.cells] < 0).astype(int)) == expected.memory
