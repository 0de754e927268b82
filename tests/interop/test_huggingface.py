"""Stock checkpoints: what the folder holds, and that its weights predict every token, in NumPy."""

import json
import re
from itertools import islice

import numpy as np
import pytest
from safetensors.numpy import load as parse_tensors
from typer.testing import CliRunner

import tapegrad as tg
from tapegrad.attention.tokens import Interpreter
from tapegrad.cli import app
from tapegrad.errors import InputError, Refused
from tapegrad.interop import huggingface, stock
from tapegrad.interop.huggingface import files
from tapegrad.machines.library import ready
from tapegrad.programs.library import READY
from tests.interop.stock_in_numpy import logits
from tests.interop.texts import CASES, FAMILIES, PROGRAM, TOKENS, decoder, files_of, run_of, said
from tests.table import fills_row


@fills_row("stock checkpoints", numpy="every token")
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("machine", "inputs", "tokens"), CASES)
@pytest.mark.sampled(3)
def test_stock_models_in_numpy_predict_every_token(machine, inputs, tokens, family):
    every_token_is_predicted(machine, inputs, tokens, family)


@pytest.mark.parametrize("family", ["gpt2", pytest.param("llama", marks=pytest.mark.slow)])
def test_so_do_those_of_programs(family):
    every_token_is_predicted(*PROGRAM, family)


def every_token_is_predicted(machine, inputs, tokens, family):
    net = decoder(machine, tokens)
    folder = files_of(net, machine, family)
    for words in inputs:
        prompt, run = run_of(net, machine, words)
        found = logits(folder, prompt + run)[len(prompt) - 1 : -1]
        assert found.argmax(1).tolist() == run
        first, second = np.sort(found, axis=1)[:, [-1, -2]].T
        assert (first - second).min() > 1.9


@pytest.mark.slow
def test_gpt2_in_numpy_runs_risc_v():
    """One record, which is an instruction."""
    program = READY["rv32-sort"].build()
    net = decoder(program, 1000)
    prompt, run = run_of(net, program, (b"b",), net.words.record)
    folder = files_of(net, program)
    found = logits(folder, prompt + run)[len(prompt) - 1 : -1]
    assert found.argmax(1).tolist() == run
    first, second = np.sort(found, axis=1)[:, [-1, -2]].T
    assert (first - second).min() > 1.9
    assert "this one checkpoint runs every program" in folder["README.md"].decode()
    assert len(folder["model.safetensors"]) < 130e6


def test_what_the_folder_holds():
    machine = ready("palindrome")
    net = decoder(machine)
    folder = files_of(net, machine)
    config, tokenizer = (json.loads(folder[name]) for name in ("config.json", "tokenizer.json"))
    weights = parse_tensors(folder["model.safetensors"])
    assert config["n_embd"] % config["n_head"] == 0
    assert config["n_embd"] // config["n_head"] in (16, 64, 256)
    assert weights["transformer.wpe.weight"].shape == (TOKENS, config["n_embd"])
    for name in ("wte", "wpe"):
        rows = weights[f"transformer.{name}.weight"]
        width = net.parts.width
        assert np.array_equal(rows[:, :width], -rows[:, width : 2 * width])
        assert not rows[:, 2 * width :].any()
    words = tokenizer["model"]["vocab"]
    assert list(words) == [token.word for token in net.words.program.tokens]
    labels = json.loads(folder["labels.json"])
    assert labels["heads"]["1.0"].startswith("last write to tape 0")
    assert list(labels["coordinates"]) == list(net.names)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("name", "options"), [("busy-beaver-3x2", {}), ("palindrome", {}), ("adder2", {"tapes": 1})]
)
def test_the_canary_of_the_card_is_what_follows(name, options, family):
    """The card is read as a person would, and replayed by the weights beside it and by the interpreter. It
    is a real run: of palindrome not that of the empty word. This circuit comes by way of a machine."""
    compiled = tg.compile(name, "decoder", tokens=TOKENS, **options)
    net = huggingface.decoder_net(compiled)
    folder = files(compiled, family)
    card, vocabulary = folder["README.md"].decode(), json.loads(folder["tokenizer.json"])["model"]["vocab"]
    assert f"**{TOKENS:,} tokens**" in card
    assert json.loads(folder["config.json"])["architectures"][0] in card
    found = re.search(r"The prompt `(.+)` must be followed by\n\n    (.+)\n", card)
    assert found is not None
    prompt, follows = ([vocabulary[word] for word in part.split()] for part in found.groups())
    assert follows == list(islice(Interpreter(net.words.program).run(prompt), huggingface.CANARY))
    assert len(follows) > 4 * net.words.record
    said_next = logits(folder, prompt + follows)[len(prompt) - 1 : -1].argmax(1)
    assert said_next.tolist() == follows
    assert huggingface.canary(compiled) == (said(net, prompt), said(net, follows))


def test_no_canary_without_room():
    with pytest.raises(Refused, match="fits into 3 tokens"):
        huggingface.canary(tg.compile("palindrome", "decoder", tokens=3))


def test_on_the_command_line(tmp_path):
    options = ["--target", "decoder", "--set", f"tokens={TOKENS}", "--to", "huggingface"]
    result = CliRunner().invoke(app, ["export", "increment", *options, "-o", str(tmp_path / "increment")])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "increment" / "README.md").exists()
    result = CliRunner().invoke(
        app, ["export", "increment", "--target", "tape", "--to", "huggingface", "-o", str(tmp_path / "no")]
    )
    assert isinstance(result.exception, Refused)
    assert "only nets of target 'decoder'" in str(result.exception)
    assert not (tmp_path / "no").exists()


def test_families_on_the_command_line(tmp_path):
    options = ["--target", "decoder", "--set", f"tokens={TOKENS}", "-o", str(tmp_path / "net"), "--to"]
    result = CliRunner().invoke(app, ["export", "increment", *options, "huggingface", "--family", "llama"])
    assert result.exit_code == 0, result.output
    assert json.loads((tmp_path / "net" / "config.json").read_text())["model_type"] == "llama"
    for form, family, words in (("huggingface", "mamba", "no family"), ("torch", "llama", "no families")):
        result = CliRunner().invoke(app, ["export", "increment", *options, form, "--family", family])
        assert isinstance(result.exception, InputError)
        assert words in str(result.exception)
    result = CliRunner().invoke(app, ["export", "increment", *options, "transformer-lens"])
    assert "--to huggingface" in str(result.exception)


def test_tables_of_positions_that_are_too_large_are_refused(monkeypatch):
    monkeypatch.setattr(stock, "LARGEST", 1 << 20)
    with pytest.raises(Refused, match="table of positions"):
        files_of(decoder(ready("increment"), 20_000), ready("increment"))
