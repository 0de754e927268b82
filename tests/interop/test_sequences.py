"""RASP programs in stock Transformers and in TransformerLens; the true circuit, and edges that are cut."""

import json
import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import rasp
from tapegrad.errors import InputError, Refused
from tapegrad.interop import sequences_gpt2
from tapegrad.interop.exporting import Subject, exported
from tapegrad.interop.sequences import ablated, circuit, read_by, sequence_net, written_by
from tapegrad.interop.sequences_gpt2 import deviation
from tapegrad.rasp import library as lib
from tapegrad.rasp.library import READY
from tapegrad.targets.decoder.sequences import SequenceNet

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
        logits = net.step(net.start(tuple(tokens))).logits
        assert logits is not None
        ours = logits[1:]
        exact = net.read[1] is None
        assert np.array_equal(found, ours) if exact else np.allclose(found, ours, atol=1e-6)


def test_edges_that_are_cut():
    """For every pair of parts, in TransformerLens: where there is no edge nothing changes; else what we
    say."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformer_lens")
    from tapegrad.interop.sequences_lens import BRIDGED, to_transformer_lens

    made = tg.compile(rasp.program(lib.make_reverse(rasp.tokens), "ab", 3), "decoder")
    if BRIDGED:
        with pytest.raises(Refused, match="has no hooks"):
            to_transformer_lens(made, split_inputs=True)
        return
    net, lens = sequence_net(made), to_transformer_lens(made, split_inputs=True)
    writes, reads = written_by(net), read_by(net)
    edges = {(own["from"], own["to"]) for own in circuit(net)["edges"]}
    tokens, changed = list("aab"), set()
    for source, target in product(writes, reads):
        before, after = ablated(net, tokens, source, target)
        if (source, target) not in edges:
            assert np.array_equal(before, after)
            continue
        layer = int(target[1]) if target != "logits" else len(net.parts.layers) - 1
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


GPT2 = ("rasp-copy", "rasp-trigrams", "rasp-pattern")


@pytest.mark.parametrize("name", GPT2)
@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_stock_gpt2(name, attention, tmp_path: Path):
    """The greatest logit is the output, and all are as near to those of the net as the bound says."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    made = compiled(name)
    files = exported(Subject(made.source, made), "huggingface", "gpt2")
    assert isinstance(files, dict)
    for file, content in files.items():
        (tmp_path / file).write_bytes(content)
    model, info = transformers.AutoModelForTokenClassification.from_pretrained(
        tmp_path, attn_implementation=attention, output_loading_info=True
    )
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    assert type(model).__name__ == "GPT2ForTokenClassification"
    tokenizer, net = transformers.AutoTokenizer.from_pretrained(tmp_path), sequence_net(made)
    values, _ = net.read
    bound = deviation(net)
    assert bound < 0.5
    for tokens in [*inputs(net.program), *(list(word) for word in product(net.program.vocabulary, repeat=3))]:
        given = tokenizer(" ".join(tokens), return_tensors="pt")["input_ids"]
        with torch.no_grad():
            found = model.eval()(given)
        ours = net.step(net.start(tokens)).logits
        assert np.abs(found.logits[0].numpy() - ours).max() < bound
        right = net.program.evaluate(tuple(tokens))[net.program.output]
        assert [values[place] for place in found.logits[0, 1:].argmax(1)] == right


@pytest.mark.parametrize(
    ("name", "family", "says"),
    [
        ("rasp-sort", "gpt2", "causal, and this program is not"),
        ("rasp-fraction", "gpt2", "'frac_prevs' is a count or a mean"),
        ("rasp-induction", "gpt2", "is a count or a mean"),
        ("rasp-sort", "llama", "family 'llama'"),
        ("rasp-sort", "nonsense", "family 'nonsense'"),
    ],
)
def test_families_that_are_refused(name, family, says):
    made = compiled(name)
    with pytest.raises(Refused, match=says):
        exported(Subject(made.source, made), "huggingface", family)


def test_heads_that_may_bring_several_values_are_refused():
    same = rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)
    made = tg.compile(rasp.program(rasp.Aggregate(same, rasp.tokens), "ab", 4, causal=True), "decoder")
    with pytest.raises(Refused, match="several positions"):
        exported(Subject(made.source, made), "huggingface", "gpt2")


def test_the_length_that_will_do_is_named(monkeypatch):
    """If norms were less exact than they are. At that length the bound holds, and at the next it does not."""
    monkeypatch.setattr(sequences_gpt2, "READ", 2.0**-8.5)
    made = compiled("rasp-copy")
    with pytest.raises(Refused, match="A length of") as refused:
        exported(Subject(made.source, made), "huggingface", "gpt2")
    found = re.search(r"A length of (\d+) will do", str(refused.value))
    assert found is not None
    bounds = [
        deviation(SequenceNet.build(replace(READY["rasp-copy"].build(), length=int(found[1]) + more)))
        for more in (0, 1)
    ]
    assert bounds[0] < 0.5 <= bounds[1]


def test_a_program_without_heads_is_a_gpt2():
    made = tg.compile(rasp.program(rasp.tokens == "a", "ab", 4, causal=True), "decoder")
    assert "model.safetensors" in dict(exported(Subject(made.source, made), "huggingface", "gpt2"))  # type: ignore[arg-type]


def test_refusals():
    made = compiled("rasp-sort")
    with pytest.raises(InputError, match="no edge"):
        ablated(made, ["a"], "a9.h9", "m0")
    with pytest.raises(Refused, match="RASP"):
        circuit(tg.compile(tg.read("1RB1LB_1LA1RZ"), "decoder", tokens=100))
    spaced = tg.compile(rasp.program(lib.make_length(), ["a b", "c"], 3), "decoder")
    with pytest.raises(Refused, match="spaces"):
        exported(Subject(spaced.source, spaced), "huggingface")
