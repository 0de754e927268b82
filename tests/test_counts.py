"""Trainable weights, fixed weights and memory: the same three numbers wherever they are asked for."""

import json

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.networks.saving import arrays_of
from tapegrad.targets import Counts, all_targets
from tapegrad.targets.transformer.net import TransformerNet
from tests.networks.written import paper_arrays
from tests.test_cli import tapegrad

CASES = {
    "relu": [("adder8", {}), ("adder2", {"form": "paper"}), ("increment", {})],
    "transformer": [("increment", {"steps": 32}), ("subleq-hello", {}), ("adder2", {})],
    "decoder": [("palindrome", {}), ("rasp-reverse", {}), ("adder2", {})],
    "simplex": [("increment", {}), ("busy-beaver-3x2", {})],
    "tape": [("busy-beaver-3x2", {"cells": 20}), ("busy-beaver-3x2", {"cells": 2000}), ("palindrome", {})],
    "emulator": [
        ("learn-parity8", {}),
        ("learn-dictator8", {"form": "paper"}),
        ("learn-dictator8", {"form": "noise-tolerant", "samples": 2}),
        ("increment", {}),
    ],
    "rcnn": [("increment", {}), ("adder2", {"form": "paper"})],
}


def test_every_target_has_cases() -> None:
    assert list(CASES) == [target.name for target in all_targets()]


@pytest.mark.parametrize(
    ("target", "source", "options"),
    [(target, source, options) for target, cases in CASES.items() for source, options in cases],
)
def test_the_estimate_is_what_is_built(target: str, source: str, options: dict) -> None:
    said, built = tg.estimate(source, target, **options), tg.compile(source, target, **options).counts
    assert (said.trainable, said.fixed, said.bytes) == (built.trainable, built.fixed, built.bytes)


def test_the_cells_of_a_tape_are_weights_that_training_changes() -> None:
    few, many = (tg.compile("busy-beaver-3x2", "tape", cells=cells) for cells in (20, 2_000))
    assert many.counts.trainable - few.counts.trainable == 2 * 1_980
    assert many.counts.fixed == few.counts.fixed
    assert many.counts.bytes - few.counts.bytes == (8 * 2 + 8 * 2) * 1_980  # and the cells beside each
    weights = few.start().weights
    assert few.counts.trainable == sum(np.size(own) for own in weights)


def test_every_weight_of_an_emulator_is_trained() -> None:
    net = tg.compile("learn-parity8", "emulator")
    assert net.counts == Counts(len(net.net.graph.sources), 0, net.counts.bytes)  # type: ignore[attr-defined]


def test_the_command_line_says_the_same() -> None:
    built = tg.compile("palindrome", "tape", cells=9).counts
    run = json.loads(tapegrad("run", "palindrome", "-t", "tape", "--input", "abba", "--json").stdout)
    said = json.loads(tapegrad("estimate", "palindrome", "-t", "tape", "--input", "abba", "--json").stdout)
    numbers = {"trainable": built.trainable, "fixed": built.fixed, "bytes": built.bytes}
    assert run["weights"] == numbers
    assert {name: said[name] for name in numbers} == numbers


MAPS = ("down", "written", "right", "left", "still", "vertex_weight", "edge_weight")
ARRAYS, SCALARS = {"y", *(f"{name}_value" for name in MAPS)}, {"simplex": 1, "tape": 2, "emulator": 0}
"""What the losses are made of: arrays in PyTorch; of numbers by themselves B of (10), or b and c of (17)."""


def torch_counts(module) -> tuple[int, int]:
    """Counted with nothing but PyTorch: what requires a gradient, and every other number that is not 0."""
    trainable = sum(own.numel() for own in module.parameters() if own.requires_grad)
    frozen = [own for own in module.parameters() if not own.requires_grad]
    numbers = [*frozen, *(own for own in module.buffers() if own.is_floating_point())]
    return trainable, sum(own.numel() for own in numbers)


@pytest.mark.parametrize(
    ("target", "source", "options"),
    [
        ("relu", "adder8", {}),
        ("relu", "adder2", {"form": "paper"}),
        ("simplex", "increment", {}),
        ("tape", "busy-beaver-3x2", {"cells": 20}),
        ("tape", "busy-beaver-3x2", {"cells": 200}),
        ("emulator", "learn-dictator8", {}),
        ("rcnn", "increment", {}),
    ],
)
def test_pytorch_counts_the_same(target: str, source: str, options: dict) -> None:
    pytest.importorskip("torch")
    net = tg.compile(source, target, **options)
    module = tg.to_torch(net)
    trainable, fixed = torch_counts(module)
    if target in SCALARS:  # beside the arrays of the loss there are the numbers of the paper's functions
        arrays = [own for name, own in module.named_buffers() if name.split(".")[-1] in ARRAYS]
        fixed = sum(own.numel() for own in arrays) + SCALARS[target]
    assert (trainable, fixed) == (net.counts.trainable, net.counts.fixed)
    assert module.counts == net.counts


def test_zeros_of_a_language_model_in_pytorch_are_no_weights() -> None:
    """PyTorch has whole matrices here."""
    torch = pytest.importorskip("torch")
    net = tg.compile("palindrome", "decoder")
    module = tg.to_torch(net)
    assert not any(own.requires_grad for own in module.parameters())
    assert net.counts.fixed == sum(int(torch.count_nonzero(own)) for own in module.parameters())
    assert module.counts == net.counts


@pytest.mark.parametrize("source", ["palindrome", "increment"])
def test_a_transformer_counted_by_hand_in_pytorch(source: str) -> None:
    """`counts` are whole matrices, as in the paper; a module has the weights of the network, where zeros are
    left out and corrections written out."""
    torch = pytest.importorskip("torch")
    net = tg.compile(source, "transformer", form="paper", steps=16)
    assert isinstance(net.net, TransformerNet)
    module, arrays = tg.to_torch(net), paper_arrays(net.net)
    weights = [own for name, own in arrays_of(net.net.network).items() if name.endswith((".values", ".bias"))]
    expected = sum(np.count_nonzero(own) for own in weights)
    assert sum(int(torch.count_nonzero(own)) for own in module.parameters()) == expected
    assert not any(own.requires_grad for own in module.parameters())
    assert module.counts == net.counts == Counts(0, sum(map(np.size, arrays.values())), net.counts.bytes)
