"""Stock checkpoints in TransformerLens, 3 or 4: its own `generate`, and heads that do what is written."""

import json
from pathlib import Path
from typing import Any

import pytest

from tapegrad.attention.tape_tokens import TapeTokens
from tapegrad.machines.library import ready
from tapegrad.machines.model import TuringMachine
from tapegrad.machines.sampler import random_machine
from tests.interop.texts import FAMILIES, decoder, run_of, said, two_tapes, written

torch = pytest.importorskip("torch")
pytest.importorskip("transformer_lens", exc_type=ImportError)
pytestmark = pytest.mark.slow


def bridge(folder: Path) -> Any:
    from transformer_lens.model_bridge import TransformerBridge

    return TransformerBridge.boot_transformers(str(folder), device="cpu")


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("cache", [True, False])
def test_its_generate_is_the_run(tmp_path, family, cache):
    for machine in (ready("busy-beaver-3x2"), random_machine(5, tapes=2, symbols=3, states=3)):
        net = decoder(machine)
        prompt, run = run_of(net, machine, (), 60)
        model = bridge(written(tmp_path / machine.name, net, machine, family))
        given = model.to_tokens(said(net, prompt), prepend_bos=False)
        assert given.tolist() == [prompt]
        how = {"do_sample": False, "verbose": False, "return_type": "tokens", "use_past_kv_cache": cache}
        found = model.generate(given, max_new_tokens=len(run), **how)
        assert found[0].tolist() == prompt + run


def last_writes(words: TapeTokens, text: list[int]) -> dict[int, list[int]]:
    """For each position where a symbol comes next, where it was written: followed with dictionaries, from
    the digits of records alone."""
    record, tapes = words.record, words.machine.tapes
    found: dict[int, list[int]] = {}
    latest: list[dict[int, int]] = [{} for _ in range(tapes)]
    for first in range(1, len(text), record):
        cells = words.distances(text[first : first + record])
        for tape, cell in enumerate(cells):
            position = first + words.symbol_slot(tape) - 1
            found.setdefault(position, [tape, latest[tape].get(cell, 0)])
        last = first + record - 1
        if last < len(text):
            for tape, cell in enumerate(cells):
                if f"on {tape}[0]" in words.program.tokens[text[last]].bits:
                    latest[tape][cell] = last
    return found


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("machine", [ready("busy-beaver-4x2"), ready("palindrome"), two_tapes()])
def test_the_documented_heads_do_what_is_written(tmp_path, machine: TuringMachine, family):
    net = decoder(machine)
    assert isinstance(net.words, TapeTokens)
    prompt, run = run_of(net, machine, () if machine.name.startswith("busy") else ("abba",))
    folder = written(tmp_path / "net", net, machine, family)
    labels, model = json.loads((folder / "labels.json").read_text()), bridge(folder)
    text = prompt + run[:-1]
    with torch.inference_mode():
        _, cache = model.run_with_cache(torch.tensor([text]))
    looked = 0
    for position, (tape, source) in last_writes(net.words, text).items():
        [name] = [
            head for head, does in labels["heads"].items() if does.startswith(f"last write to tape {tape}:")
        ]
        layer, head = map(int, name.split("."))
        if position < len(text):
            weights = cache["pattern", layer][0, head, position]
            assert weights.argmax() == source
            assert weights[source] > 0.999
            looked += source > 0
    assert looked > 3
    for coordinate, name in enumerate(labels["coordinates"]):
        if name.startswith("slot["):
            places = torch.arange(1, len(text))
            wanted = (places - 1) % net.words.record == int(name[5:-1])
            stream = cache["resid_pre", model.cfg.n_layers - len(net.parts.layers)]
            assert torch.equal(stream[0, 1:, coordinate], wanted.float())
