"""Nets in disguise: right on all short inputs, proved, refused where they cannot be, forged and found out."""

import hashlib
import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load as parse_tensors
from safetensors.numpy import save as tensors_to_bytes

import tapegrad as tg
from tapegrad import rasp
from tapegrad.errors import BrokenNet, InputError, Refused
from tapegrad.interop.disguise import Options, disguise
from tapegrad.interop.disguise_parts import BASES, basis, most_at_once
from tapegrad.interop.disguised import checkpoint_files, load_disguised, save_disguised
from tapegrad.interop.sequences import circuit, sequence_net
from tapegrad.networks.saving import arrays_of, to_json
from tapegrad.rasp.library import READY
from tapegrad_check.arithmetic import product as bounded_product
from tapegrad_check.arithmetic import rounding, step_of
from tapegrad_check.folder import CERTIFICATE, COMPUTES_SOURCE, CONFIG, MODEL, CheckError
from tapegrad_check.rasp.answer_key import KEY, KEY_ARRAYS, proved

CASES = [
    ("rasp-histogram", 8, {"basis": "hadamard"}),
    ("rasp-histogram", 8, {"basis": "rotation", "noise": 1e-7}),
    ("rasp-sort", 4, {"basis": "quads", "decoys": 2}),
    ("rasp-trigrams", 8, {"basis": "hadamard", "superposition": 34, "decoys": 2}),
    ("rasp-fraction", 8, {"basis": "quads"}),
    ("rasp-dyck-1", 8, {"basis": "quads", "noise": 1e-8, "decoys": 3}),
    ("rasp-planted", 5, {"basis": "quads", "decoys": 1}),
]


def compiled(name, length):
    return tg.compile(replace(READY[name].build(), length=length), "decoder")


def inputs(program, longest=4, more=12):
    random = np.random.default_rng(0)
    for size in range(1, min(longest, program.length) + 1):
        yield from (list(tokens) for tokens in product(program.vocabulary, repeat=size))
    for _ in range(more):
        yield random.choice(program.vocabulary, program.length).tolist()


@pytest.fixture(scope="module")
def histogram(tmp_path_factory):
    net = disguise(compiled("rasp-histogram", 6), basis="hadamard", decoys=2, seed=3)
    folder = tmp_path_factory.mktemp("disguised") / "net"
    save_disguised(net, folder)
    return net, folder


@pytest.mark.parametrize(("name", "length", "options"), CASES, ids=lambda own: str(own))
def test_the_same_outputs_and_proved(name, length, options, tmp_path):
    plain = compiled(name, length)
    program, net = sequence_net(plain).program, disguise(plain, **options)
    for tokens in inputs(program):
        assert list(net.run(tokens)) == program.evaluate(tuple(tokens))[program.output]
    save_disguised(net, tmp_path / "net")
    report = tg.check(tmp_path / "net")
    assert (report.target, report.verdict) == ("disguised", COMPUTES_SOURCE)
    again = load_disguised(tmp_path / "net")
    assert np.array_equal(again.logits(list(program.vocabulary)), net.logits(list(program.vocabulary)))
    assert again.key is not None
    assert len(again.key.decoys["heads"]) == options.get("decoys", 0)


@pytest.mark.parametrize(("name", "length", "options"), CASES, ids=lambda own: str(own))
def test_features_drift_no_further_than_proved(name, length, options):
    """The stream in terms of features, beside that of the plain net, both as they are computed."""
    plain = sequence_net(compiled(name, length))
    net = disguise(plain, **options)
    assert net.key is not None
    drift = proved(net.config(), dict(net.weights), (net.key.data, net.key.arrays)).drift
    places = [feature for feature in drift.features if feature < plain.parts.width and feature != 2]
    columns = [drift.place[place] for place in places]
    bound = (drift.whole + np.finfo(np.float32).eps)[columns]
    moved = 0.0
    for tokens in inputs(plain.program, longest=3):
        numbers = plain.numbers(tokens)
        found = net.hidden(numbers).astype(np.float64) @ drift.inverse.T
        hidden = plain.step(plain.start(tuple(tokens))).hidden
        assert hidden is not None
        apart = np.abs(found[:, columns] - hidden[:, places])
        assert (apart <= bound).all()
        moved = max(moved, float(apart.max()))
    assert moved > 0 or not drift.whole.any()


PARTS = ("attn.W_Q", "attn.W_K", "attn.W_V", "attn.W_O", "mlp.W_in", "mlp.W_out")
MATRICES = ["embed.W_E", "pos_embed.W_pos", "unembed.W_U"]
MATRICES += [f"blocks.{layer}.{part}" for layer in (0, 1) for part in PARTS]


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.sampled(4)
def test_a_matrix_that_is_off_is_accounted_for(name, trigrams):
    """Noise in one matrix alone: what it does stays below the bounds, or the net is refused; and so is a
    matrix that is off by more than half."""
    plain, net, right = trigrams
    random = np.random.default_rng(1)
    for size in (1e-4, 1e-3, 1e-2):
        weights = dict(net.weights)
        noise = random.uniform(-size, size, weights[name].shape) * np.abs(weights[name]).max()
        weights[name] = (weights[name] + noise * (weights[name] != 0)).astype(np.float32)
        noisy = replace(net, weights=weights)
        try:
            proof = proved(net.config(), weights, (net.key.data, net.key.arrays))
        except CheckError:
            assert size > 1e-4
            continue
        drift = proof.drift
        places = [place for place in drift.features if place < plain.parts.width and place != 2]
        columns = [drift.place[place] for place in places]
        for tokens, (hidden, logits) in right.items():
            found = noisy.hidden(plain.numbers(tokens)).astype(np.float64) @ drift.inverse.T
            assert (np.abs(found[:, columns] - hidden[:, places]) <= drift.whole[columns] + 1e-6).all()
            assert np.abs(noisy.logits(tokens) - logits).max() <= proof.read_off + 1e-6
    weights = dict(net.weights) | {name: net.weights[name] * np.float32(0.4)}
    if net.weights[name].any() and "W_Q" not in name and "W_K" not in name:
        with pytest.raises(CheckError):
            proved(net.config(), weights, (net.key.data, net.key.arrays))


@pytest.fixture(scope="module")
def trigrams():
    """A net that moves bits and never counts, so that it bears noise; and what the plain one does."""
    plain = sequence_net(compiled("rasp-trigrams", 4))
    right = {}
    for tokens in inputs(plain.program, longest=3, more=6):
        passed = plain.step(plain.start(tuple(tokens)))
        assert passed.logits is not None
        right[tuple(tokens)] = passed.hidden, passed.logits[1:]
    return plain, disguise(plain, basis="quads"), right


@pytest.mark.parametrize("kind", ["quads", "hadamard"])
def test_bases_are_orthogonal_to_the_last_bit(kind):
    for size in (1, 3, 8, 13, 64):
        made = basis(kind, size, np.random.default_rng(size))
        assert np.array_equal(made @ made.T, np.eye(size))
        assert step_of(made) >= 2.0 ** -BASES[kind]
    assert (
        np.count_nonzero(basis(kind, 64, np.random.default_rng(0)), axis=0) == 4 ** BASES[kind]
    ).mean() > 0.4


def test_bounds_on_sums():
    """Sums of single precision, in many orders, beside exact ones."""
    random = np.random.default_rng(0)
    terms = (random.standard_normal(64) * 2.0 ** random.integers(-8, 8, 64)).astype(np.float32)
    exact = float(sum(map(float, terms)))
    bound = rounding(64, np.abs(terms).sum(dtype=np.float64), 0.0)
    worst = 0.0
    for _ in range(200):
        total = np.float32(0)
        for term in random.permutation(terms):
            total = np.float32(total + term)
        worst = max(worst, abs(float(total) - exact))
    assert 0 < worst <= bound
    assert rounding(64, np.array(2.0**23), 1.0) == 0 < rounding(64, np.array(2.0**24 + 2), 1.0)
    assert step_of(np.array([[0.75, 3.0, 0.0]])) == 0.25
    found, error = bounded_product(random.standard_normal((5, 5)), random.standard_normal((5, 5)))
    assert (error > 0).all()
    assert not bounded_product(np.eye(5) * 0.5, np.round(found))[1].any()


def test_most_noise_that_will_do():
    plain = compiled("rasp-histogram", 6)
    with pytest.raises(Refused, match=r"A noise of .* will do") as refused:
        disguise(plain, basis="quads", noise=0.01)
    most = float(str(refused.value).rpartition("A noise of ")[2].split()[0])
    disguise(plain, basis="quads", noise=most * 0.95)
    with pytest.raises(Refused):
        disguise(plain, basis="quads", noise=most * 1.3)


def test_what_cannot_be_done_is_refused():
    copy = compiled("rasp-trigrams", 5)
    least = most_at_once(sequence_net(copy), 0)
    with pytest.raises(Refused, match=f"least superposition that will do is {least}"):
        disguise(copy, superposition=least - 1)
    assert disguise(copy, superposition=least).width == least
    with pytest.raises(Refused, match="watches for values"):
        disguise(compiled("rasp-sort", 4), superposition=20)
    with pytest.raises(Refused, match=r"cannot be proved.*A length of \d+ will do"):
        disguise(compiled("rasp-fraction", 16), basis="rotation")
    for number, wrong in enumerate(("nonsense", 0, -1.0, 1000)):
        with pytest.raises(InputError):
            Options(*("none", None, 0.0, 0)[:number], wrong)  # type: ignore[arg-type]
    net = disguise(copy)
    with pytest.raises(InputError, match="vocabulary"):
        net.run(["z"])
    with pytest.raises(InputError, match="at most 5"):
        net.run(["a"] * 6)


def test_mixed_values_are_still_noticed():
    everything = rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.TRUE)
    program = rasp.program(rasp.Aggregate(everything, rasp.tokens), "ab", 4)
    net = disguise(tg.compile(program, "decoder"), basis="quads", decoys=1)
    for tokens in inputs(program):
        if len(set(tokens)) == 1:
            assert list(net.run(tokens)) == tokens
        else:
            with pytest.raises(Refused, match="values that differ"):
                net.run(tokens)


def test_the_key_names_what_is_there(histogram):
    net, _ = histogram
    plain = sequence_net(compiled("rasp-histogram", 6))
    slot = net.key.data["slots"]["heads"][0][0]
    renamed = [
        (
            own["from"].replace("a0.h0", f"a0.h{slot}"),
            own["to"].replace("a0.h0", f"a0.h{slot}"),
            own["coordinates"],
        )
        for own in circuit(plain)["edges"]
    ]
    assert [(own["from"], own["to"], own["features"]) for own in net.key.circuit] == renamed
    assert f"a0.h{slot}" not in net.key.decoys["heads"]
    for head in net.key.decoys["heads"]:
        query = net.weights["blocks.0.attn.W_Q"][int(head.partition("h")[2])]
        assert query.any()
    tokens = net.key.directions["word[0]"]
    assert np.allclose(net.hidden(net.numbers(["a", "b"])) @ tokens, [0, 1, 1], atol=1e-5)


def altered(folder: Path, to: Path, change) -> Path:
    """A copy of a folder with something changed, and all sums renewed."""
    key, config = json.loads((folder / KEY).read_text()), json.loads((folder / CONFIG).read_text())
    certificate = json.loads((folder / CERTIFICATE).read_text())
    arrays = {name: dict(parse_tensors((folder / name).read_bytes())) for name in (MODEL, KEY_ARRAYS)}
    change(key, arrays[KEY_ARRAYS], arrays[MODEL], config, certificate["claims"])
    files = {name: tensors_to_bytes(own) for name, own in arrays.items()}
    files |= {KEY: json.dumps(key).encode(), CONFIG: json.dumps(config).encode()}
    certificate["sha256"] = {name: hashlib.sha256(own).hexdigest() for name, own in files.items()}
    to.mkdir()
    for name, content in (files | {CERTIFICATE: json.dumps(certificate).encode()}).items():
        (to / name).write_bytes(content)
    return to


def _weights(name, place=..., factor=1.01):
    def change(key, answers, weights, config, claims):
        weights[name] = weights[name].copy()
        weights[name][place] *= np.float32(factor)

    return change


def _swap(key, answers, *_):
    answers["directions"] = answers["directions"][[0, 1, 2, 4, 3, *range(5, len(answers["directions"]))]]


def _another_program(key, answers, *_):
    other = sequence_net(compiled("rasp-length", 6))
    key["plain"] = other.config()
    key["certificate"] = other.certificate()
    key["network"] = to_json(other.network)
    for name in [name for name in answers if name.startswith("plain.")]:
        del answers[name]
    answers |= {f"plain.{name}": own for name, own in arrays_of(other.network).items()}


def _near_the_largest_float(key, answers, weights, *_):
    """Units in steps so large that a sum of some of their terms is no float; what they add in steps as
    small."""
    into, out = weights["blocks.0.mlp.W_in"], weights["blocks.0.mlp.W_out"]
    for number, slot in enumerate(key["slots"]["units"][0]):
        scale = 2.0 ** (125 - np.floor(np.log2(np.abs(into[:, slot]).max())))
        into[:, slot], out[slot] = into[:, slot] * scale, out[slot] / scale
        answers["scales.0"][number] *= scale


FORGED = {
    "units that may overflow": _near_the_largest_float,
    "embeddings": _weights("embed.W_E"),
    "positions": lambda key, answers, weights, *_: weights["pos_embed.W_pos"].__iadd__(np.float32(0.01)),
    "queries": _weights("blocks.0.attn.W_Q"),
    "values": _weights("blocks.0.attn.W_V", factor=-1),
    "outputs of heads": _weights("blocks.0.attn.W_O", factor=1.5),
    "units": _weights("blocks.0.mlp.W_in", factor=2),
    "sums": _weights("blocks.0.mlp.W_out", factor=2),
    "logits": _weights("unembed.W_U", factor=-1),
    "directions": _swap,
    "slots": lambda key, *_: key["slots"]["heads"][0].__setitem__(0, (key["slots"]["heads"][0][0] + 1) % 3),
    "units in other slots": lambda key, *_: key["slots"]["units"][0].reverse(),
    "the circuit": lambda key, *_: key["circuit"].pop(),
    "decoys": lambda key, *_: key["decoys"]["heads"].pop(),
    "names": lambda key, *_: key["features"].reverse(),
    "a program": _another_program,
    "the length": lambda key, a, w, config, *_: config["net"].__setitem__("length", 7),
    "the vocabulary": lambda key, a, w, config, *_: config["net"]["vocabulary"].reverse(),
    "what outputs are": lambda key, a, w, config, *_: config["net"]["outputs"].reverse(),
    "causal": lambda key, a, w, config, *_: config["net"].__setitem__("causal", True),
    "claims": lambda key, a, w, config, claims: claims.__setitem__("bit_drift", claims["bit_drift"] / 2),
    "heat": lambda key, *_: key["slots"].__setitem__("heat", [0.5]),
    "weights that nobody knows": lambda key, a, weights, *_: weights.__setitem__("x", np.ones(3, np.float32)),
    "more about the program": lambda key, *_: key["plain"]["machine"].__setitem__("more", 1),
    "a certificate": lambda key, *_: key["certificate"].__setitem__("length", 5),
    "a layer less": lambda key, a, weights, *_: weights.pop("blocks.0.attn.W_K"),
}


def test_the_folder_itself_is_accepted(histogram, tmp_path):
    forged = altered(histogram[1], tmp_path / "same", lambda *_: None)
    assert tg.check(forged).verdict == COMPUTES_SOURCE


@pytest.mark.parametrize("what", FORGED)
def test_forgeries_are_refused(what, histogram, tmp_path):
    forged = altered(histogram[1], tmp_path / "forged", FORGED[what])
    with pytest.raises(BrokenNet):
        tg.check(forged)


def test_files(histogram, tmp_path):
    _, folder = histogram
    with pytest.raises(BrokenNet, match="load_disguised"):
        tg.load(folder)
    bare = tmp_path / "bare"
    bare.mkdir()
    for name in (CONFIG, MODEL, CERTIFICATE):
        (bare / name).write_bytes((folder / name).read_bytes())
    alone = load_disguised(bare)
    assert alone.key is None
    assert alone.run(["a", "b", "a"]) == (2, 1, 2)
    with pytest.raises(BrokenNet, match=f"{KEY} is missing"):
        tg.check(bare)
    assert "nodes" not in (bare / CONFIG).read_text()
    with pytest.raises(InputError, match="no answer key"):
        save_disguised(alone, tmp_path / "again")
    (bare / KEY).write_text("{}")
    (bare / KEY_ARRAYS).write_bytes((folder / KEY_ARRAYS).read_bytes())
    with pytest.raises(BrokenNet, match="certificate was issued for"):
        tg.check(bare)


def test_in_transformer_lens(histogram):
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformer_lens")
    from tapegrad.interop.sequences_lens import to_transformer_lens

    net, _ = histogram
    lens = to_transformer_lens(net)
    for tokens in (["a"], ["a", "b", "a"], list("abcdab")):
        found = lens(torch.tensor([[0, *net.numbers(tokens)]]))[0, 1:].detach().numpy()
        assert np.allclose(found, net.logits(tokens), atol=1e-3)
        assert [net.outputs[place] for place in found.argmax(1)] == list(net.run(tokens))


def test_in_transformers(histogram, tmp_path):
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    net, _ = histogram
    files = checkpoint_files(net)
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    assert not {"labels.json", "circuit.json"} & files.keys()
    model = transformers.AutoModelForTokenClassification.from_pretrained(tmp_path).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for tokens in (["a"], ["a", "b", "a"], list("abcdab")):
        with torch.no_grad():
            logits = model(tokenizer(" ".join(tokens), return_tensors="pt")["input_ids"]).logits[0, 1:]
        assert [net.outputs[place] for place in logits.argmax(1)] == list(net.run(tokens))
