"""Nets of target `decoder` in PyTorch and ONNX: every token of a run, read at once and token by token."""

import json
from typing import Any

import numpy as np
import pytest

from tapegrad.machines.library import ready
from tapegrad.machines.sampler import random_machine
from tapegrad.networks.backends.numpy import NumPy
from tapegrad.networks.texts import Reading
from tapegrad.targets.decoder import DecoderNet
from tests.interop.texts import CASES, Source, decoder, run_of

MACHINES: list[tuple[Source, tuple[Any, ...], int]] = [
    (machine, inputs[0], tokens) for machine, inputs, tokens in CASES
]
MACHINES += [(random_machine(seed, tapes=1 + seed % 3, symbols=2, states=3), (), 2000) for seed in range(3)]
MACHINES += [(ready("busy-beaver-4x2"), (), 100_000)]


def reference(net: DecoderNet, text: list[int]) -> np.ndarray:
    """Logits after every token, by the reference engine, which reads them one by one."""
    reading = Reading(net.network)
    return np.array([reading.feed([number]) for number in text])


@pytest.mark.parametrize(("machine", "words", "tokens"), MACHINES)
def test_onnx(machine, words, tokens):
    pytest.importorskip("onnx")
    runtime: Any = pytest.importorskip("onnxruntime")
    from tapegrad.interop.onnx import to_onnx

    net = decoder(machine, tokens)
    model = to_onnx(net)
    run = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    notes = {p.key: p.value for p in model.metadata_props}
    assert json.loads(notes["logits"])[:2] == ["<halt>", "<begin>"]
    sizes = {i.name: i.shape for i in run.get_inputs()}
    nothing = {name: np.zeros((0, sizes[name][1]), np.float32) for name in sizes if name != "tokens"}
    prompt, wanted = run_of(net, machine, words)
    text = prompt + wanted
    at_once, *_ = run.run(None, {"tokens": np.array(text)} | nothing)
    assert np.abs(at_once - reference(net, text)).max() < 1e-3
    assert at_once[len(prompt) - 1 : -1].argmax(1).tolist() == wanted
    found, given, past = [], prompt, nothing
    while len(found) < len(wanted):
        logits, *state = run.run(None, {"tokens": np.array(given)} | past)
        past = dict(zip(past, state, strict=True))
        given = [int(logits[-1].argmax())]
        found += given
    assert found == wanted


@pytest.mark.parametrize(("machine", "words", "tokens"), MACHINES)
def test_pytorch(machine, words, tokens):
    torch = pytest.importorskip("torch")
    from tapegrad.interop.pytorch import to_torch

    net = decoder(machine, tokens)
    module = to_torch(net)
    prompt, wanted = run_of(net, machine, words)
    text = torch.tensor(prompt + wanted)
    with torch.inference_mode():
        at_once = module(text)[0]
        assert np.abs(at_once.numpy() - reference(net, text.tolist())).max() < 1e-3
        assert at_once[len(prompt) - 1 : -1].argmax(1).tolist() == wanted
        found, given, past = [], text[: len(prompt)], ()
        while len(found) < len(wanted):
            logits, *past = module(given, *past)
            given = logits[-1:].argmax(1)
            found += given.tolist()
    assert found == wanted
    assert module.network.columns[module.network.outputs["logits"]][1] == "<begin>"


def test_places_are_those_of_the_table_everywhere():
    """The network computes the rows that stock checkpoints have as a table."""
    net = decoder(ready("palindrome"), 100_000)
    table, network = net.positions, net.network
    [row] = [own.reads[1] for own in network.nodes if own.name == "placed"]
    every = np.arange(100_000)
    given_ = {"tokens": np.zeros(len(every), np.int64), **network.first_state()}
    found = next(value for node, value in NumPy(network).values(given_) if node.name == row)
    assert np.array_equal(found, table.rows(every))
