"""An exported folder is the net that was checked: every tensor and every setting of it, and no other."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import tapegrad as tg
from tapegrad._saved import save
from tapegrad.attention import rv32_tokens
from tapegrad.interop.huggingface import files
from tapegrad.machines.model import Rule, TuringMachine
from tapegrad_check import CheckError, Unchecked, check, read_folder
from tapegrad_check.folder import COMPUTES_SOURCE
from tapegrad_check.in_tokens.words import rv32_words
from tapegrad_check.targets import stock as checker
from tapegrad_check.targets import stock_nets, stock_rotary
from tapegrad_check.targets.stock import compare
from tapegrad_check.targets.stock_rotary import GptNeox, Llama, Rotary
from tests.check.forging import Saved
from tests.check.texts import said, saved_text, text_net
from tests.table import fills_row

SETTINGS = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json")
TITLES = {"gpt2": "GPT-2", "llama": "Llama", "gpt-neox": "GPT-NeoX"}
Folders = tuple[Path, Path]


def exported(folder: Path, given: str | TuringMachine, tokens: int, family: str = "gpt2") -> Folders:
    """A stock checkpoint, and the saved net that it is of."""
    source = tg.read(given) if isinstance(given, str) else given
    compiled = tg.compile(source, "decoder", tokens=tokens)
    save(compiled, folder / "own.net")
    stock = folder / "stock"
    stock.mkdir()
    for file, content in files(compiled, family).items():
        (stock / file).write_bytes(content)
    return stock, folder / "own.net"


@pytest.fixture(scope="module", params=TITLES)
def genuine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Folders:
    return exported(tmp_path_factory.mktemp(request.param), "increment", 60, request.param)


@pytest.fixture(scope="module")
def of_a_program(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    return exported(tmp_path_factory.mktemp("program"), "subleq-echo", 400, "llama")


@fills_row("stock checkpoints", check="proved")
def test_an_export_is_its_net(genuine: Folders, request: pytest.FixtureRequest) -> None:
    report = check(*genuine)
    assert report.verdict == COMPUTES_SOURCE
    family = request.node.callspec.params["genuine"]
    assert f"stock {TITLES[family]}:" in str(report)
    assert ("angles" in str(report) or "rotations" in str(report)) == (family != "gpt2")


def test_a_head_that_is_just_large_enough(tmp_path: Path) -> None:
    """For 4,000 tokens heads compare 16 numbers, which is the size of the smallest head."""
    stock, net = exported(tmp_path, "increment", 4_000)
    assert saved_text(Saved.of(net)).arrays["key.sizes"][:, 0].max() == stock_nets.LEAST_HEAD
    assert check(stock, net).verdict == COMPUTES_SOURCE


def test_words_are_made_of_the_names_of_the_source(tmp_path: Path) -> None:
    """On two tapes, and of names that words cannot have as they are."""
    rules = {
        ("a state", ("_", "_")): Rule(("<1>", "%"), (1, -1), "50%, or so"),
        ("50%, or so", ("_", "%")): Rule(("_", "_"), (0, 0), "·"),
    }
    machine = TuringMachine(rules, start_state="a state", blank="_", tapes=2, name="names")
    report = check(*exported(tmp_path, machine, 90))
    assert "by the word for what it means" in str(report)
    words = json.loads((tmp_path / "stock" / "tokenizer.json").read_text())["model"]["vocab"]
    assert "write:%3c;1%3e;|%25;,move:R|L,enter:50%25;%2c;·or·so" in words


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "tokens", "family"),
    [
        ("palindrome", 5_000, "gpt2"),
        ("palindrome", 100_000, "llama"),
        ("subleq-echo", 2_000, "gpt2"),
        ("subleq-echo", 2_000, "gpt-neox"),
        ("rv32-fibonacci", 4_000, "llama"),
        ("rv32-fibonacci", 4_000, "gpt-neox"),
    ],
)
def test_larger_exports_are_their_nets(name: str, tokens: int, family: str, tmp_path: Path) -> None:
    assert check(*exported(tmp_path, name, tokens, family)).verdict == COMPUTES_SOURCE


def test_an_export_of_another_net_is_refused(genuine: Folders, tmp_path: Path) -> None:
    stock, _ = exported(tmp_path, "palindrome", 60)
    with pytest.raises(CheckError, match="is not that of the net"):
        check(stock, genuine[1])


def test_other_targets_are_not_compared(genuine: Folders, tmp_path: Path) -> None:
    save(tg.compile(tg.read("increment"), "simplex"), tmp_path / "other.net")
    with pytest.raises(Unchecked, match="target 'decoder'"):
        check(genuine[0], tmp_path / "other.net")
    with pytest.raises(Unchecked, match="not a folder"):
        check(tmp_path / "none", genuine[1])


@pytest.mark.parametrize("family", [Llama, GptNeox])
def test_positions_that_rotations_cannot_tell_apart_are_refused(family: type[Rotary]) -> None:
    """The exporter refuses them as well: this is for one that does not."""
    net = text_net(tg.read("increment"), "decoder", {"tokens": 300_000})
    with pytest.raises(CheckError, match="so many positions"):
        family(net.config, net.graph())


def test_keys_that_depend_on_an_unfinished_record_are_refused() -> None:
    """There the rotary classes differ from the table of positions."""
    net = text_net(tg.read("increment"), "decoder", {"tokens": 60})
    late = said(net)["coordinates"].index("the last rule: state[0]")
    first = sum(size for _, _, size in net.arrays["key.sizes"].tolist()[:-1])
    Llama(net.config, net.graph())
    net.put("key.columns", first, late)
    with pytest.raises(CheckError, match="not complete"):
        Llama(net.config, net.graph())


def test_places_are_computed_for_every_position(monkeypatch: pytest.MonkeyPatch) -> None:
    """With units of another slope, the layers in front would not find them."""
    net = text_net(tg.read("increment"), "decoder", {"tokens": 60})
    monkeypatch.setattr(stock_rotary, "SLOPE", 3.0)
    with pytest.raises(CheckError, match="place of every token"):
        list(Llama(net.config, net.graph()).tensors())


def test_every_tensor_is_compared(genuine: Folders, tmp_path: Path) -> None:
    """One entry of each tensor, changed in one of three ways; and another type, shape or name."""
    stock, net = genuine[0], read_folder(genuine[1])
    forged = tmp_path / "forged"
    shutil.copytree(stock, forged)
    tensors, random = load_file(stock / "model.safetensors"), np.random.default_rng(0)

    def refused(others: dict[str, Any]) -> None:
        save_file(others, forged / "model.safetensors")
        with pytest.raises(CheckError):
            compare(forged, net)

    changes = lambda x: 2 * x + 1, lambda x: np.nextafter(x, np.float32(np.inf)), lambda x: np.nan
    for number, (name, tensor) in enumerate(tensors.items()):
        altered = tensor.copy()
        at = tuple(int(random.integers(size)) for size in tensor.shape)
        altered[at] = changes[number % 3](altered[at])
        refused(tensors | {name: altered})
    first = next(iter(tensors))
    refused(tensors | {first: tensors[first].astype(np.float64)})
    refused(tensors | {first: tensors[first][:-1].copy()})
    refused(tensors | {"extra": tensors[first]})
    for name in ("transformer.wpe.weight",) if "transformer.wpe.weight" in tensors else ():
        for table in (tensors[name][:-1], np.append(tensors[name], tensors[name][-1:], axis=0)):
            refused(tensors | {name: table.copy()})
    refused({name: tensor for name, tensor in tensors.items() if name != first})
    (forged / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(CheckError, match="cannot be read"):
        compare(forged, net)


def _others(value: Any) -> list[Any]:
    if isinstance(value, bool):
        return [not value, int(value)]
    if isinstance(value, int | float):
        return [2 * value + 1, -value - 1, None]
    return [{}, [], "gelu_new", 7] if value is not None else [{"type": "Lowercase"}]


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_is_compared(name: str, genuine: Folders, tmp_path: Path) -> None:
    stock, net = genuine[0], read_folder(genuine[1])
    forged = tmp_path / "forged"
    shutil.copytree(stock, forged)
    settings = json.loads((stock / name).read_text())

    def refused(others: Any) -> None:
        (forged / name).write_text(json.dumps(others))
        with pytest.raises(CheckError):
            compare(forged, net)

    for key, value in settings.items():
        for other in _others(value):
            refused(settings | {key: other})
        refused({own: entry for own, entry in settings.items() if own != key})
    refused(settings | {"auto_map": {"AutoModelForCausalLM": "code.Model"}})
    refused([])


def test_every_number_of_a_rotation_is_compared(genuine: Folders, tmp_path: Path) -> None:
    stock, net = genuine[0], read_folder(genuine[1])
    settings = json.loads((stock / "config.json").read_text())
    if "rope_parameters" not in settings:
        pytest.skip("GPT-2 has a table of positions")
    forged = tmp_path / "forged"
    shutil.copytree(stock, forged)

    def refused(rope: Any) -> None:
        (forged / "config.json").write_text(json.dumps(settings | {"rope_parameters": rope}))
        with pytest.raises(CheckError, match="rope_parameters"):
            compare(forged, net)

    rope = settings["rope_parameters"]
    for key, value in rope.items():
        refused({own: entry for own, entry in rope.items() if own != key})
        for place in range(len(value)) if isinstance(value, list) else ():
            refused(rope | {key: [*value[:place], 2 * value[place], *value[place + 1 :]]})
        refused(rope | {key: 1.5 * value if isinstance(value, float | int) else value[:-1]})
    refused(rope | {"partial_rotary_factor": 0.75})


def test_a_setting_that_stands_there_twice_is_refused(genuine: Folders, tmp_path: Path) -> None:
    """Of two libraries, one may take the first and the other the last."""
    stock, net = genuine
    forged = tmp_path / "forged"
    shutil.copytree(stock, forged)
    text = (stock / "generation_config.json").read_text()
    (forged / "generation_config.json").write_text(text.replace("{", '{"do_sample": true,', 1))
    with pytest.raises(CheckError, match="twice"):
        check(forged, net)


@pytest.mark.parametrize("words", [("put:a", "put:b"), ("leq", "greater"), ("from:input", "from:outside"),
                                   ("0+", "0!"), ("<unused:20>", "trap:nothing")])  # fmt: skip
def test_words_of_programs_are_compared(
    words: tuple[str, str], of_a_program: Folders, tmp_path: Path
) -> None:
    """Two change places, or one is not there."""
    stock, net = of_a_program[0], read_folder(of_a_program[1])
    compare(stock, net)
    forged = tmp_path / "forged"
    shutil.copytree(stock, forged)
    tokenizer = json.loads((stock / "tokenizer.json").read_text())
    own, (one, other) = tokenizer["model"]["vocab"], words
    if other in own:
        own |= {one: own[other], other: own[one]}
    else:
        own[other] = own.pop(one)
    (forged / "tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises(CheckError, match="means another"):
        compare(forged, net)


def test_words_of_rv32_are_those_of_its_tokens() -> None:
    """An export of a processor takes longer: here the words by themselves."""
    assert rv32_words() == rv32_tokens.words()


def _vocabulary(change: Callable[[dict[str, int]], dict[str, int]]) -> Callable[[Any], None]:
    def changed(tokenizer: Any) -> None:
        tokenizer["model"]["vocab"] = change(tokenizer["model"]["vocab"])

    return changed


def _swapped(words: dict[str, int], beginning: str) -> dict[str, int]:
    """Two words of this beginning change places."""
    one, other = [word for word in words if word.startswith(beginning)][:2]
    return words | {one: words[other], other: words[one]}


@pytest.mark.parametrize(
    "change",
    [
        _vocabulary(lambda words: words | {"more": len(words)}),
        _vocabulary(lambda words: _swapped(words, "sees:")),
        _vocabulary(lambda words: _swapped(words, "write:")),
        _vocabulary(lambda words: dict(list(words.items())[:-1])),
        _vocabulary(lambda words: {word: number // 2 for word, number in words.items()}),
        _vocabulary(lambda words: {f" {word}": number for word, number in words.items()}),
        _vocabulary(lambda words: {"<none>" if n == 5 else word: n for word, n in words.items()}),
        lambda tokenizer: tokenizer["model"].update(type="BPE"),
        lambda tokenizer: tokenizer["added_tokens"][0].update(normalized=True),
        lambda tokenizer: tokenizer["added_tokens"].reverse(),
    ],
)
def test_the_tokenizer_is_compared(change: Callable[[Any], None], genuine: Folders, tmp_path: Path) -> None:
    stock, net = genuine[0], read_folder(genuine[1])
    forged = tmp_path / "forged"
    shutil.copytree(stock, forged)
    tokenizer = json.loads((stock / "tokenizer.json").read_text())
    change(tokenizer)
    (forged / "tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises(CheckError):
        compare(forged, net)


def test_other_files_are_refused(genuine: Folders, tmp_path: Path) -> None:
    stock, net = genuine
    forged = tmp_path / "forged"
    shutil.copytree(stock, forged)
    (forged / "added_tokens.json").write_text("{}")
    with pytest.raises(CheckError, match="no export writes"):
        check(forged, net)


# Parts by themselves


def test_entries_are_the_same_on_both_sides() -> None:
    checker._same_entries("it", {"a": 1, "b": [1.0]}, {"b": [1.0], "a": 1})
    for found in (
        {"a": 1},
        {"a": 1, "b": 2, "c": 3},
        {"a": 1, "b": 3},
        {"a": True, "b": 2},
        {"a": 1.0, "b": 2},
    ):
        with pytest.raises(CheckError, match="in it is not that of the net"):
            checker._same_entries("it", found, {"a": 1, "b": 2})


def test_texts_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert checker.LARGEST_TEXT == 1 << 26
    (tmp_path / "it").write_text('{"a": 1}')
    monkeypatch.setattr(checker, "LARGEST_TEXT", 8)
    assert checker._json(tmp_path, "it") == {"a": 1}
    (tmp_path / "longer").write_text('{"a": 1} ' + "x" * 99)
    with pytest.raises(CheckError, match="more than the limit"):
        checker._json(tmp_path, "longer")
    monkeypatch.setattr(checker, "LARGEST_TEXT", 7)
    with pytest.raises(CheckError, match="more than the limit"):
        checker._json(tmp_path, "it")


def test_words_have_numbers_of_their_own(tmp_path: Path) -> None:
    """Whatever they are called."""
    net: Any = SimpleNamespace(embedding=[None] * 3)
    two = {"a": 0, "b": 1}
    for more in ({}, {"c": 3}, {"c": 1}, {"c": 2.0}, {"c": 2, "d": 2}, {"c d": 2}):
        words = two | more
        (tmp_path / "tokenizer.json").write_text(json.dumps({"model": {"vocab": words}}))
        with pytest.raises(CheckError, match="two tokens have one word"):
            checker._check_tokenizer(tmp_path, net, ["a", "b", "c"])
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": {"vocab": {"a": 0, "b": 1, "c": 2}}}))
    with pytest.raises(CheckError, match=r"'version' in tokenizer\.json"):
        checker._check_tokenizer(tmp_path, net, ["a", "b", "c"])


@pytest.mark.parametrize(("target", "kind"), [("simplex", "tapes"), ("decoder", "rasp"), ("decoder", None)])
def test_what_is_compared(target: str, kind: str | None, tmp_path: Path) -> None:
    saved: Any = SimpleNamespace(config={"target": target, "net": {"machine": {"kind": kind}}})
    with pytest.raises(Unchecked, match="only exports of machines"):
        checker.compare(tmp_path, saved)
