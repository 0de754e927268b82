"""RASP programs in stock Transformers and in TransformerLens; the true circuit, and edges that are cut."""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import rasp
from tapegrad.errors import InputError, Refused
from tapegrad.interop.exporting import Subject, exported
from tapegrad.interop.sequences import ablated, circuit, read_by, sequence_net, written_by
from tapegrad.rasp import library as lib
from tapegrad.rasp.library import READY

NAMES = ("rasp-sort", "rasp-dyck-2", "rasp-induction", "rasp-fraction", "rasp-trigrams")


def compiled(name):
    return tg.compile(READY[name].build(), "decoder")


def inputs(program, count=12):
    random = np.random.default_rng(0)
    return [
        random.choice(program.vocabulary, n).tolist() for n in random.integers(1, program.length + 1, count)
    ]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_stock_transformers(name, attention, tmp_path: Path):
    """The checkpoint opens, and its greatest label is the output, for all positions of all inputs."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    made = compiled(name)
    files = exported(Subject(made.source, made), "huggingface")
    assert isinstance(files, dict)
    for file, content in files.items():
        (tmp_path / file).write_bytes(content)
    model = transformers.AutoModelForTokenClassification.from_pretrained(
        tmp_path, attn_implementation=attention
    ).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    net = sequence_net(made)
    values, centres = net.read
    for tokens in inputs(net.program):
        given = tokenizer(" ".join(tokens), return_tensors="pt")["input_ids"]
        assert given[0].tolist() == [0, *net.numbers(tokens)]
        later = torch.full((1, 1, given.shape[1], given.shape[1]), torch.finfo(torch.float32).min).triu(1)
        with torch.no_grad():
            logits = model(given, attention_mask=later if net.program.causal else None).logits[0, 1:].numpy()
        near = np.abs(logits[:, :1] - centres).argmin(1) if centres is not None else logits.argmax(1)
        assert [values[place] for place in near] == net.program.evaluate(tuple(tokens))[net.program.output]
    assert json.loads(files["labels.json"])["heads"]
    with pytest.raises(Exception, match="Missing"):
        tokenizer("nonsense")


@pytest.mark.parametrize("name", NAMES)
def test_transformer_lens(name):
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformer_lens")
    from tapegrad.interop.sequences_lens import to_transformer_lens

    made = compiled(name)
    net, lens = sequence_net(made), to_transformer_lens(made)
    for tokens in inputs(net.program):
        numbers = net.numbers(tokens)
        found = lens(torch.tensor([[0, *numbers]]))[0, 1:].detach().numpy()
        ours = net.evaluator.logits(net.evaluator.hidden(numbers))[1:]
        exact = net.read[1] is None
        assert np.array_equal(found, ours) if exact else np.allclose(found, ours, atol=1e-6)


def test_edges_that_are_cut():
    """For every pair of parts, in TransformerLens: where there is no edge nothing changes; else what we
    say."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformer_lens")
    from tapegrad.interop.sequences_lens import to_transformer_lens

    made = tg.compile(rasp.program(lib.make_reverse(rasp.tokens), "ab", 3), "decoder")
    net, lens = sequence_net(made), to_transformer_lens(made, split_inputs=True)
    writes, reads = written_by(net), read_by(net)
    edges = {(own["from"], own["to"]) for own in circuit(net)["edges"]}
    tokens, changed = list("aab"), set()
    for source, target in product(writes, reads):
        before, after = ablated(net, tokens, source, target)
        if (source, target) not in edges:
            assert np.array_equal(before, after)
            continue
        layer = int(target[1]) if target != "logits" else len(net.model.layers) - 1
        hook = f"blocks.{layer}." + {"m": "hook_mlp_in", "l": "hook_resid_post"}.get(
            target[0], f"hook_{target[-2]}_input"
        )
        places = sorted(writes[source])

        def cut(read, hook, target=target, places=places):
            if target.startswith("a"):
                read[:, :, int(target.partition(".h")[2][0]), places] = 0
            else:
                read[:, :, places] = 0
            return read

        numbers = torch.tensor([[0, *net.numbers(tokens)]])
        found = lens.run_with_hooks(numbers, fwd_hooks=[(hook, cut)])[0, 1:].detach().numpy()
        assert np.allclose(found, after, atol=1e-5)
        if not np.array_equal(before.argmax(1), after.argmax(1)):
            changed.add((source, target))
    assert ("embed", "a2.h0<v>") in changed
    assert any(source.startswith("m") for source, _ in changed)


def test_the_circuit_of_sort():
    found = circuit(compiled("rasp-sort"))
    edges = {(own["from"], own["to"]) for own in found["edges"]}
    assert ("embed", "m0") in edges  # tokens and positions, as pairs
    assert ("m0", "a1.h0<k>") in edges
    assert ("m1", "a2.h0<k>") in edges  # places are the keys of the last head
    assert ("positions", "a2.h0<q>") in edges
    assert ("a1.h0", "a2.h0<q>") not in edges
    assert {own["name"] for own in found["nodes"]} >= {
        "embed",
        "positions",
        "a1.h0",
        "a2.h0",
        "m0",
        "m1",
        "logits",
    }


def test_refusals():
    made = compiled("rasp-sort")
    with pytest.raises(InputError, match="no edge"):
        ablated(made, ["a"], "a9.h9", "m0")
    with pytest.raises(Refused, match="RASP"):
        circuit(tg.compile(tg.read("1RB1LB_1LA1RZ"), "decoder", tokens=100))
    spaced = tg.compile(rasp.program(lib.make_length(), ["a b", "c"], 3), "decoder")
    with pytest.raises(Refused, match="spaces"):
        exported(Subject(spaced.source, spaced), "huggingface")
