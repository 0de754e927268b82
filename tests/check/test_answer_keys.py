"""Answer keys of nets in disguise: a bad entry for every condition, and what is worked out again, by hand."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tapegrad_check.folder import COMPUTES_SOURCE, CheckError
from tapegrad_check.rasp import answer_key
from tapegrad_check.rasp.disguised_heads import Slots

Change = Callable[[dict[str, Any], dict[str, Any], dict[str, Any]], Any]


def parts() -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Slots, arrays and weights of two layers with 3 heads and 4 units; the first erases feature 6."""
    slots = {"heads": [[2, 0], []], "units": [[1, 3], [0]], "heat": [1, 0.5], "erased": [[[6, 2]], []]}
    arrays = {"scales.0": np.array([0.5, 4.0]), "scales.1": np.array([1.0])}
    weights = {f"blocks.{layer}.attn.W_Q": np.zeros((3, 2, 1)) for layer in range(2)}
    weights |= {f"blocks.{layer}.mlp.W_in": np.zeros((2, 4)) for layer in range(2)}
    return slots, arrays, weights


def slots_of(slots: dict[str, Any], arrays: dict[str, Any], weights: dict[str, Any]) -> Slots:
    return answer_key._slots({"slots": slots}, arrays, weights)


def test_slots() -> None:
    found = slots_of(*parts())
    assert (found.heads, found.units, found.heat) == ([[2, 0], []], [[1, 3], [0]], [1.0, 0.5])
    assert (found.erased, [own.tolist() for own in found.scales]) == ([{6: 2}, {}], [[0.5, 4], [1]])


BAD_SLOTS: list[tuple[str, Change]] = [
    ("layers have no slots", lambda s, a, w: s.update(heads=[[2, 0]])),
    ("layers have no slots", lambda s, a, w: s.update(units=[[1, 3], [0], []])),
    ("layers have no slots", lambda s, a, w: s.update(units=([1, 3], [0]))),
    ("a slot is out of range", lambda s, a, w: s.update(heads=[[2, 3], []])),
    ("a slot is out of range", lambda s, a, w: s.update(heads=[[2, -1], []])),
    ("a slot is out of range", lambda s, a, w: s.update(heads=[[2, False], []])),
    ("a slot is out of range", lambda s, a, w: s.update(units=[[1, 4], [0]])),
    ("two parts have the same slot", lambda s, a, w: s.update(heads=[[2, 2], []])),
    ("two parts have the same slot", lambda s, a, w: s.update(units=[[1, 1], [0]])),
    ("'scales.1' has another shape", lambda s, a, w: a.update({"scales.1": np.ones(2)})),
    ("something else than a power of two", lambda s, a, w: a.update({"scales.0": np.array([0.5, 3.0])})),
    ("something else than a power of two", lambda s, a, w: a.update({"scales.0": np.array([0.5, -2.0])})),
    ("factor of scores is not a finite", lambda s, a, w: s.update(heat=[1, float("nan")])),
    ("scores are multiplied", lambda s, a, w: s.update(heat=[1])),
    ("scores are multiplied", lambda s, a, w: s.update(heat=[1, 0])),
    ("scores are multiplied", lambda s, a, w: s.update(heat=[1, -0.5])),
    ("scores are multiplied", lambda s, a, w: s.update(heat=[1.5, 1])),
    ("layers erase nothing", lambda s, a, w: s.update(erased=[[[6, 2]]])),
    ("layers erase nothing", lambda s, a, w: s.update(erased=([[6, 2]], []))),
    ("a unit is not a whole number", lambda s, a, w: s.update(erased=[[[6, 4]], []])),
    ("a unit is not a whole number", lambda s, a, w: s.update(erased=[[[6, -1]], []])),
    ("a feature is not a whole number", lambda s, a, w: s.update(erased=[[[-1, 2]], []])),
    ("two units have the same slot", lambda s, a, w: s.update(erased=[[[6, 3]], []])),
    ("two units have the same slot", lambda s, a, w: s.update(erased=[[[6, 2], [5, 2]], []])),
    ("two units have the same slot", lambda s, a, w: s.update(erased=[[[6, 0], [6, 2]], []])),
]


@pytest.mark.parametrize(("said", "change"), BAD_SLOTS)
def test_bad_slots(said: str, change: Change) -> None:
    own = parts()
    change(*own)
    with pytest.raises(CheckError, match=said):
        slots_of(*own)


def test_slots_at_their_bounds() -> None:
    slots, arrays, weights = parts()
    slots |= {"erased": [[[0, 0]], [[6, 3]]], "heat": [1.0, 1e-9]}
    assert slots_of(slots, arrays, weights).erased == [{0: 0}, {6: 3}]


# Shapes


def shaped() -> tuple[Any, dict[str, Any], Any]:
    """Of width 5: two tokens, of which three in a row, and 4 outputs; 3 heads with 2 rows and 4 units."""
    net = SimpleNamespace(
        meanings=[0] * 6, counts=[2], units=[[0, 0]], unembedding=[0] * 4,
        slots=Slots([[2, 0]], [[1, 3]], [], [], []), program=SimpleNamespace(vocabulary="ab", length=3),
    )  # fmt: skip
    sizes: dict[str, tuple[int, ...]] = {
        "embed.W_E": (3, 5), "pos_embed.W_pos": (4, 5), "unembed.W_U": (5, 4), "flag.W": (5, 1),
        "blocks.0.attn.W_O": (3, 2, 5), "blocks.0.mlp.W_in": (5, 4), "blocks.0.mlp.W_out": (4, 5),
    }  # fmt: skip
    sizes |= {f"blocks.0.attn.W_{side}": (3, 5, 2) for side in "QKV"}
    return net, {name: np.zeros(shape, np.float32) for name, shape in sizes.items()}, np.zeros((6, 5))


def test_weights_have_the_shapes_of_the_net() -> None:
    net, weights, directions = shaped()
    answer_key._shapes(net, weights, directions)
    answer_key._shapes(net, {name: own for name, own in weights.items() if name != "flag.W"}, directions)
    for name, own in weights.items():
        for other in (own.astype(np.float64), own[:-1], own[..., :-1]):
            with pytest.raises(CheckError, match=r"not of type|another shape"):
                answer_key._shapes(net, weights | {name: other}, directions)
    for others in (
        weights | {"x": directions},
        {name: own for name, own in weights.items() if name != "embed.W_E"},
    ):
        with pytest.raises(CheckError, match="other weights"):
            answer_key._shapes(net, others, directions)
    answer_key._shapes(net, weights, np.zeros((9, 5)))
    with pytest.raises(CheckError, match="no directions"):
        answer_key._shapes(net, weights, directions[:5])
    net.counts = [3]
    with pytest.raises(CheckError, match="other heads"):
        answer_key._shapes(net, weights, directions)
    net.counts, net.units = [2], [[0]]
    with pytest.raises(CheckError, match="other units"):
        answer_key._shapes(net, weights, directions)


# Words


def worded(kind: str = "move") -> tuple[dict[str, Any], Any, Any]:
    own = {"vocabulary": ["a", "b"], "outputs": [1, 2], "length": 3, "causal": False, "centres": None}
    program = SimpleNamespace(
        data={"vocabulary": ["a", "b"]}, output=1, values=[None, [1, 2]], length=3, causal=False,
        nodes=[None, SimpleNamespace(kind=kind)],
    )  # fmt: skip
    net = SimpleNamespace(
        meanings=[("raw", 0, 0), ("bit", 1, 0), ("raw", 1, 0)],
        brought=lambda place: ([Fraction(place), Fraction(1, 4)],),
    )
    return own, program, net


def test_words_of_a_net() -> None:
    answer_key._words(*worded())
    own, program, net = worded("mean")
    answer_key._words(own | {"centres": [2.0, 0.25]}, program, net)
    for centres in (None, [0.0, 0.25], [2.0]):
        with pytest.raises(CheckError, match="stand for other numbers"):
            answer_key._words(own | {"centres": centres}, program, net)


@pytest.mark.parametrize(
    ("said", "entry"),
    [
        ("other entries", {"more": 1}),
        ("another vocabulary", {"vocabulary": ["b", "a"]}),
        ("another vocabulary", {"vocabulary": ["a"]}),
        ("other outputs", {"outputs": [2, 1]}),
        ("other outputs", {"outputs": [1, 3]}),
        ("another length", {"length": 4}),
        ("another length", {"length": 3.0}),
        ("another length", {"causal": True}),
        ("another length", {"causal": 0}),
        ("stand for other numbers", {"centres": [1.0]}),
    ],
)
def test_other_words(said: str, entry: dict[str, Any]) -> None:
    own, program, net = worded()
    with pytest.raises(CheckError, match=said):
        answer_key._words(own | entry, program, net)


# What is worked out again


def worked() -> Any:
    query, into = np.zeros((4, 2, 1)), np.zeros((2, 5))
    query[[0, 1, 3]], into[:, [0, 2, 3, 4]] = 1.0, 1.0
    weights = {"blocks.0.attn.W_Q": query, "blocks.0.mlp.W_in": into}
    weights |= {"blocks.1.attn.W_Q": np.ones((1, 2, 1)), "blocks.1.mlp.W_in": into}

    def columns(*own: list[int]) -> list[Any]:
        return [SimpleNamespace(columns=places) for places in own]

    (embedding,), (unembedding,) = columns([3, 4]), columns([6, 7])
    return SimpleNamespace(
        weights=weights, slots=Slots([[1, 2], [0]], [[2], [0, 4]], [], [], [{6: 3}, {}]),
        embedding=embedding, unembedding=unembedding, units=columns([5], [7, 10]), positions=lambda: {8},
        heads_to=[[5], [9], [10]],
        sides=[columns([3], [9], [6]), columns([8, 4], [3], [7]), columns([4], [], [9])],
        adds_to=[[6], [7]],
    )  # fmt: skip


def test_decoys_are_what_the_plain_net_has_not() -> None:
    decoys = {"heads": ["a0.h0", "a0.h3"], "units": ["m0.0", "m0.4", "m1.2", "m1.3"]}
    assert answer_key.decoys_of(worked()) == decoys


def test_the_circuit_is_who_reads_what_of_whom() -> None:
    """Heads read what is embedded and what earlier layers wrote, units what heads of their layer wrote as
    well, and what they erase if it is there already; nobody reads what comes later."""
    names = [f"f{place}" for place in range(11)]
    assert [tuple(edge.values()) for edge in answer_key.circuit_of(worked(), names)] == [
        ("embed", "a0.h1<q>", ["f3"]),
        ("embed", "a0.h1<k>", ["f4"]),
        ("positions", "a0.h1<k>", ["f8"]),
        ("embed", "a0.h1<v>", ["f4"]),
        ("embed", "a0.h2<k>", ["f3"]),
        ("a0.h1", "m0", ["f5"]),
        ("m0", "a1.h0<q>", ["f6"]),
        ("a0.h2", "a1.h0<v>", ["f9"]),
        ("a1.h0", "m1", ["f10"]),
        ("m0", "logits", ["f6"]),
        ("m1", "logits", ["f7"]),
    ]


# Folders


def proving(monkeypatch: pytest.MonkeyPatch, erased: dict[int, int]) -> dict[str, Any]:
    """A folder whose net is proved to drift by 1, 2 and 3 tenths."""
    net = SimpleNamespace(
        program=SimpleNamespace(length=9, causal=False), features=12, drift=SimpleNamespace(off=[0] * 8),
        scores=0.1, bit=0.2, read_off=0.3, units=[1, 2], heads=[1, 2, 3],
        slots=Slots([], [], [], [], [erased, {}]),
    )  # fmt: skip
    monkeypatch.setattr(
        answer_key, "read_key", lambda *of: ({"decoys": {"heads": ["h"], "units": ["u", "v"]}}, {})
    )
    monkeypatch.setattr(answer_key, "proved", lambda *of: net)
    return {
        "dtype": "float32", "length": 9, "causal": False, "features": 12, "dimensions": 8, "score_drift": 0.1,
        "bit_drift": 0.25, "output_drift": 0.3,
    }  # fmt: skip


def checked(claims: dict[str, Any], **more: Any) -> Any:
    config = {"net": {}, "source": {}, "options": {}} | more
    folder = SimpleNamespace(config=config, arrays={}, certificate={"claims": claims})
    return answer_key.check_folder("net", folder)  # type: ignore[arg-type]


def test_what_is_said_of_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    program, found = checked(proving(monkeypatch, {}))
    assert (program.length, found.verdict) == (9, COMPUTES_SOURCE)
    assert found.statements[0].endswith("up to 9 tokens: 3 heads in 2 layers")
    assert found.statements[1] == "12 features in 8 dimensions"
    assert found.statements[3] == "1 decoy heads and 2 decoy units do not matter"
    assert (
        checked(proving(monkeypatch, {3: 1}))[1].statements[1].endswith("1 of which are erased to make room")
    )


def test_the_source_stands_in_the_key_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What config.json says beside the net was compared with nothing."""
    claims = proving(monkeypatch, {})
    for more in ({"source": {"kind": "rasp program"}}, {"options": {"length": 4}}):
        with pytest.raises(CheckError, match="in its answer key, and nowhere else"):
            checked(claims, **more)
    with pytest.raises(CheckError, match="other entries"):
        checked(claims, lowered={})


def test_bounds_that_are_claimed_may_be_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    claims = proving(monkeypatch, {})
    checked(claims | {"score_drift": 5})
    for entry in (
        {"bit_drift": 0.19},
        {"length": 10},
        {"features": 13},
        {"causal": True},
        {"output_drift": 0.29},
    ):
        with pytest.raises(CheckError, match="something else than what holds"):
            checked(claims | entry)
    for others in (claims | {"more": 1}, {name: own for name, own in claims.items() if name != "length"}):
        with pytest.raises(CheckError, match="claims other things"):
            checked(others)
    with pytest.raises(CheckError, match="bit_drift is not a finite"):
        checked(claims | {"bit_drift": float("nan")})


def test_the_files_of_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert answer_key.LIMITS == {"answer_key.json": 1 << 28, "answer_key.safetensors": 1 << 32}
    asked: list[Any] = []
    monkeypatch.setattr(answer_key, "bytes_of", lambda path, limit: asked.append((path, limit)) or path.name)
    monkeypatch.setattr(answer_key, "issued_for", lambda certificate, *of: asked.append(of))
    monkeypatch.setattr(answer_key, "parsed", lambda content, path: (content, path))
    monkeypatch.setattr(answer_key, "tensors_of", lambda content, path: (content, path))
    found = answer_key.read_key(tmp_path, SimpleNamespace(certificate={}))  # type: ignore[arg-type]
    names = ["answer_key.json", "answer_key.safetensors"]
    assert found == tuple((name, tmp_path / name) for name in names)
    assert asked == [(tmp_path / names[0], 1 << 28), (tmp_path / names[1], 1 << 32),
                     *((name, name, tmp_path) for name in names)]  # fmt: skip
