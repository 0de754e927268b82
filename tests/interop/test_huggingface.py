"""Stock checkpoints: what the folder holds, a GPT-2 in NumPy, and the real one in transformers."""

import json
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load as parse_tensors
from typer.testing import CliRunner

import tapegrad as tg
from tapegrad.attention.tokens import END, Interpreter
from tapegrad.cli import app
from tapegrad.errors import Refused
from tapegrad.interop import huggingface
from tapegrad.interop.huggingface import files
from tapegrad.machines.library import ready
from tapegrad.machines.model import Rule, TuringMachine
from tapegrad.machines.sampler import random_machine
from tapegrad.programs.library import READY
from tapegrad.programs.model import Program
from tapegrad.targets.decoder import DecoderNet

TOKENS = 1500


def decoder(machine: TuringMachine | Program, tokens: int = TOKENS) -> DecoderNet:
    net = tg.compile(machine, "decoder", tokens=tokens).net
    assert isinstance(net, DecoderNet)
    return net


def two_tapes() -> TuringMachine:
    """Copies a word to the second tape, in the order in which it is read, and stops at the blank."""
    rules = {("copy", (a, "_")): Rule((a, a), (1, -1), "copy") for a in "ab"}
    return TuringMachine(rules, "copy", alphabet=("_", "a", "b"), name="to the other tape")


CASES: list[tuple[TuringMachine | Program, list[tuple[Any, ...]], int]] = [
    (ready("palindrome"), [("",), ("ab",), ("abba",)], TOKENS),
    (ready("increment"), [("1011",), ("",)], 60_000),
    (two_tapes(), [("abba",), ("b",)], TOKENS),
    (random_machine(3, tapes=2, symbols=3, states=4), [("",)], TOKENS),
]
PROGRAM: tuple[Program, list[tuple[Any, ...]], int] = (
    READY["subleq-echo"].build(), [(b"H",), (b"",)], TOKENS,
)  # fmt: skip


def run_of(
    net: DecoderNet, machine: TuringMachine | Program, words: tuple[Any, ...]
) -> tuple[list[int], list[int]]:
    """A prompt and the run, by the interpreter of tokens."""
    prompt = net.words.prompt(machine.start(*words), net.tokens)
    run = []
    for token in Interpreter(net.words.program).run(prompt):
        run.append(token)
        if len(run) == 150:
            break
    return prompt, run


def gpt2(folder: dict[str, bytes], text: list[int]) -> np.ndarray:
    """Logits after every token: GPT-2 as its paper has it, in single precision."""
    config, w = json.loads(folder["config.json"]), parse_tensors(folder["model.safetensors"])
    heads, width = config["n_head"], config["n_embd"]

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        mean = x.mean(1, keepdims=True, dtype=np.float32)
        scale = np.sqrt(x.var(1, keepdims=True, dtype=np.float32) + np.float32(config["layer_norm_epsilon"]))
        return (x - mean) / scale * w[f"{name}.weight"] + w[f"{name}.bias"]

    def linear(x: np.ndarray, name: str) -> np.ndarray:
        return x @ w[f"{name}.weight"] + w[f"{name}.bias"]

    x = w["transformer.wte.weight"][text] + w["transformer.wpe.weight"][: len(text)]
    later = np.triu(np.ones((len(text), len(text)), bool), 1)
    for number in range(config["n_layer"]):
        name = f"transformer.h.{number}"
        parts = linear(norm(x, f"{name}.ln_1"), f"{name}.attn.c_attn").reshape(len(text), 3, heads, -1)
        q, k, v = parts.transpose(1, 2, 0, 3)
        scores = q @ k.transpose(0, 2, 1) / np.float32(np.sqrt(width // heads))
        scores[:, later] = -np.inf
        weights = np.exp(scores - scores.max(2, keepdims=True))
        mean = (weights / weights.sum(2, keepdims=True)) @ v
        x = x + linear(mean.transpose(1, 0, 2).reshape(len(text), -1), f"{name}.attn.c_proj")
        units = np.maximum(linear(norm(x, f"{name}.ln_2"), f"{name}.mlp.c_fc"), 0)
        x = x + linear(units, f"{name}.mlp.c_proj")
    assert x.dtype == np.float32
    return norm(x, "transformer.ln_f") @ w["lm_head.weight"].T


@pytest.mark.parametrize(("machine", "inputs", "tokens"), [*CASES, PROGRAM])
def test_gpt2_in_numpy_predicts_every_token(machine, inputs, tokens):
    net = decoder(machine, tokens)
    folder = files(net, machine)
    for words in inputs:
        prompt, run = run_of(net, machine, words)
        logits = gpt2(folder, prompt + run)[len(prompt) - 1 : -1]
        assert logits.argmax(1).tolist() == run
        first, second = np.sort(logits, axis=1)[:, [-1, -2]].T
        assert (first - second).min() > 1.9


@pytest.mark.slow
def test_gpt2_in_numpy_runs_risc_v():
    program = tg.read("rv32-sort")
    net = tg.compile(program, "decoder", tokens=1000).net
    assert isinstance(net, DecoderNet)
    folder = files(net, program)
    prompt = net.words.prompt(program.start(b"b"), net.tokens)
    told = Interpreter(net.words.program).run(prompt)
    run = [next(told) for _ in range(net.words.record)]
    logits = gpt2(folder, prompt + run)[len(prompt) - 1 : -1]
    assert logits.argmax(1).tolist() == run
    first, second = np.sort(logits, axis=1)[:, [-1, -2]].T
    assert (first - second).min() > 1.9
    assert "this one checkpoint runs every program" in folder["README.md"].decode()
    assert len(folder["model.safetensors"]) < 130e6


def test_what_the_folder_holds():
    machine = ready("palindrome")
    net = decoder(machine)
    folder = files(net, machine)
    config, tokenizer = (json.loads(folder[name]) for name in ("config.json", "tokenizer.json"))
    weights = parse_tensors(folder["model.safetensors"])
    assert config["n_embd"] % config["n_head"] == 0
    assert config["n_embd"] // config["n_head"] in (16, 64, 256)
    assert weights["transformer.wpe.weight"].shape == (TOKENS, config["n_embd"])
    for name in ("wte", "wpe"):
        rows = weights[f"transformer.{name}.weight"]
        width = net.model.width
        assert np.array_equal(rows[:, :width], -rows[:, width : 2 * width])
        assert not rows[:, 2 * width :].any()
    words = tokenizer["model"]["vocab"]
    assert list(words) == [token.word for token in net.words.program.tokens]
    labels = json.loads(folder["labels.json"])
    assert labels["heads"]["1.0"].startswith("last write to tape 0")
    assert list(labels["coordinates"]) == list(net.stream.names)


def test_the_canary_of_the_card_is_what_follows():
    machine = ready("busy-beaver-3x2")
    net = decoder(machine)
    prompt, run = run_of(net, machine, ())
    shown = huggingface.canary(net, machine.start())
    words = [token.word for token in net.words.program.tokens]
    assert shown == tuple(" ".join(words[number] for number in part) for part in (prompt, run))
    card = files(net, machine)["README.md"].decode()
    assert f"**{TOKENS:,} tokens**" in card
    assert f"\n    {shown[1]}\n" in card


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


def test_other_exports_say_what_to_do():
    net = decoder(ready("increment"))
    with pytest.raises(Refused, match="to=huggingface"):
        tg.to_onnx(net)


def test_tables_of_positions_that_are_too_large_are_refused(monkeypatch):
    monkeypatch.setattr(huggingface, "LARGEST", 1 << 20)
    with pytest.raises(Refused, match="table of positions"):
        files(decoder(ready("increment"), 20_000), ready("increment"))


# In transformers itself


@pytest.fixture(scope="module")
def stock(tmp_path_factory):
    """A folder, its model by the kind of attention, its tokenizer and its net."""
    pytest.importorskip("torch")
    transformers: Any = pytest.importorskip("transformers")
    opened: dict[str, Any] = {}

    def opening(machine: TuringMachine | Program, tokens: int, attention: str) -> Any:
        net = decoder(machine, tokens)
        key = f"{machine.name} {tokens}"
        if key not in opened:
            opened[key] = tmp_path_factory.mktemp("stock")
            for name, content in files(net, machine).items():
                (opened[key] / name).write_bytes(content)
        model = transformers.AutoModelForCausalLM.from_pretrained(opened[key], attn_implementation=attention)
        assert type(model).__module__ == "transformers.models.gpt2.modeling_gpt2"
        return net, model, transformers.AutoTokenizer.from_pretrained(opened[key])

    return opening


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize(
    ("machine", "inputs", "tokens"), [*CASES, pytest.param(*PROGRAM, marks=pytest.mark.slow)]
)
def test_generate_is_the_run(stock, machine, inputs, tokens, attention):
    net, model, tokenizer = stock(machine, tokens, attention)
    words = [token.word for token in net.words.program.tokens]
    prompts, runs = zip(*(run_of(net, machine, own) for own in inputs), strict=True)
    for prompt, run in zip(prompts, runs, strict=True):
        given = tokenizer(" ".join(words[number] for number in prompt), return_tensors="pt")
        assert given["input_ids"][0].tolist() == prompt
        for cache in (True, False):
            found = model.generate(**given, max_new_tokens=len(run), use_cache=cache)[0].tolist()
            assert found == prompt + run
        assert tokenizer.decode(run) == " ".join(words[number] for number in run)
    texts = [" ".join(words[number] for number in prompt) for prompt in prompts]
    batch = tokenizer(texts, return_tensors="pt", padding=True)
    found = model.generate(**batch, max_new_tokens=max(map(len, runs)))[:, batch["input_ids"].shape[1] :]
    for own, run in zip(found.tolist(), runs, strict=True):
        assert own[: len(run)] == run
        assert set(own[len(run) :]) <= {END}


def test_what_breaks_it_is_seen(stock):
    """Sampling, and a word that is not there; and means are found as well as is assumed."""
    import torch

    machine = ready("palindrome")
    net, model, tokenizer = stock(machine, TOKENS, "eager")
    prompt, run = run_of(net, machine, ("abba",))
    given = torch.tensor([prompt])
    with torch.inference_mode():
        layer = model.transformer.h[0].ln_1
        mean = layer(model.transformer.wte(given) + model.transformer.wpe(torch.arange(len(prompt))))
    assert float((mean - torch.round(mean)).abs().max()) < 2**-20
    torch.manual_seed(0)
    sampled = model.generate(given, do_sample=True, temperature=50.0, max_new_tokens=len(run))
    assert sampled[0, len(prompt) :].tolist() != run
    with pytest.raises(Exception, match="WordLevel"):
        tokenizer("<begin> nonsense")
