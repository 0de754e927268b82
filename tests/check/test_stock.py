"""An exported folder is the net that was checked: every tensor and every setting of it, and no other."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import tapegrad as tg
from tapegrad._saved import save
from tapegrad.interop.huggingface import files
from tapegrad.machines.model import Rule, TuringMachine
from tapegrad_check import CheckError, Unchecked, check
from tapegrad_check.folder import COMPUTES_SOURCE

SETTINGS = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json")


def exported(
    folder: Path, given: str | TuringMachine, tokens: int, family: str = "gpt2"
) -> tuple[Path, Path]:
    """A stock checkpoint, and the saved net that it is of."""
    source = tg.read(given) if isinstance(given, str) else given
    compiled = tg.compile(source, "decoder", tokens=tokens)
    save(compiled, folder / "own.net")
    stock = folder / "stock"
    stock.mkdir()
    for file, content in files(compiled, source, family).items():
        (stock / file).write_bytes(content)
    return stock, folder / "own.net"


@pytest.fixture(scope="module")
def genuine(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return exported(tmp_path_factory.mktemp("stock"), "increment", 60)


def test_an_export_is_its_net(genuine: tuple[Path, Path]) -> None:
    report = check(*genuine)
    assert report.verdict == COMPUTES_SOURCE
    assert "stock GPT-2" in str(report)


def test_words_are_made_of_the_names_of_the_source(tmp_path: Path) -> None:
    """On two tapes, and of names that words cannot have as they are."""
    rules = {
        ("a state", ("_", "_")): Rule(("<1>", "%"), (1, -1), "50%, or so"),
        ("50%, or so", ("_", "%")): Rule(("_", "_"), (0, 0), "·"),
    }
    machine = TuringMachine(rules, start_state="a state", blank="_", tapes=2, name="names")
    report = check(*exported(tmp_path, machine, 90))
    assert "these are the names of the source" in str(report)
    words = json.loads((tmp_path / "stock" / "tokenizer.json").read_text())["model"]["vocab"]
    assert "write:%3c;1%3e;|%25;,move:R|L,enter:50%25;%2c;·or·so" in words


@pytest.mark.slow
@pytest.mark.parametrize(("name", "tokens"), [("palindrome", 5_000), ("subleq-echo", 2_000)])
def test_larger_exports_are_their_nets(name: str, tokens: int, tmp_path: Path) -> None:
    assert check(*exported(tmp_path, name, tokens)).verdict == COMPUTES_SOURCE


def test_an_export_of_another_net_is_refused(genuine: tuple[Path, Path], tmp_path: Path) -> None:
    stock, _ = exported(tmp_path, "palindrome", 60)
    with pytest.raises(CheckError, match="is not that of the net"):
        check(stock, genuine[1])


def test_other_families_and_targets_are_not_compared(genuine: tuple[Path, Path], tmp_path: Path) -> None:
    stock, net = exported(tmp_path, "increment", 60, "llama")
    with pytest.raises(Unchecked, match="family gpt2"):
        check(stock, net)
    save(tg.compile(tg.read("increment"), "simplex"), tmp_path / "other.net")
    with pytest.raises(Unchecked, match="target 'decoder'"):
        check(genuine[0], tmp_path / "other.net")
    with pytest.raises(Unchecked, match="not a folder"):
        check(tmp_path / "none", genuine[1])


def test_every_tensor_is_compared(genuine: tuple[Path, Path], tmp_path: Path) -> None:
    """One entry of each tensor, changed in several ways; and another type, shape or name."""
    stock, net = genuine
    forged = tmp_path / "forged"
    shutil.copytree(stock, forged)
    tensors, random = load_file(stock / "model.safetensors"), np.random.default_rng(0)
    assert len(tensors) == 5 + 12 * json.loads((stock / "config.json").read_text())["n_layer"]

    def refused(others: dict[str, Any]) -> None:
        save_file(others, forged / "model.safetensors")
        with pytest.raises(CheckError):
            check(forged, net)

    for name, tensor in tensors.items():
        for change in (lambda x: 2 * x + 1, lambda x: np.nextafter(x, np.float32(np.inf)), lambda x: np.nan):
            altered = tensor.copy()
            at = tuple(int(random.integers(size)) for size in tensor.shape)
            altered[at] = change(altered[at])
            refused(tensors | {name: altered})
    first = next(iter(tensors))
    refused(tensors | {first: tensors[first].astype(np.float64)})
    refused(tensors | {first: tensors[first][:-1].copy()})
    refused(tensors | {"transformer.extra": tensors[first]})
    refused({name: tensor for name, tensor in tensors.items() if name != first})
    (forged / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(CheckError, match="cannot be read"):
        check(forged, net)


def _others(value: Any) -> list[Any]:
    if isinstance(value, bool):
        return [not value, int(value)]
    if isinstance(value, int | float):
        return [2 * value + 1, -value - 1, None]
    return [{}, [], "gelu_new", 7] if value is not None else [{"type": "Lowercase"}]


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_is_compared(name: str, genuine: tuple[Path, Path], tmp_path: Path) -> None:
    stock, net = genuine
    forged = tmp_path / "forged"
    shutil.copytree(stock, forged)
    settings = json.loads((stock / name).read_text())

    def refused(others: Any) -> None:
        (forged / name).write_text(json.dumps(others))
        with pytest.raises(CheckError):
            check(forged, net)

    for key, value in settings.items():
        for other in _others(value):
            refused(settings | {key: other})
        refused({own: entry for own, entry in settings.items() if own != key})
    refused(settings | {"auto_map": {"AutoModelForCausalLM": "code.Model"}})
    refused([])


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
def test_the_tokenizer_is_compared(
    change: Callable[[Any], None], genuine: tuple[Path, Path], tmp_path: Path
) -> None:
    stock, net = genuine
    forged = tmp_path / "forged"
    shutil.copytree(stock, forged)
    tokenizer = json.loads((stock / "tokenizer.json").read_text())
    change(tokenizer)
    (forged / "tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises(CheckError):
        check(forged, net)


def test_other_files_are_refused(genuine: tuple[Path, Path], tmp_path: Path) -> None:
    stock, net = genuine
    forged = tmp_path / "forged"
    shutil.copytree(stock, forged)
    (forged / "added_tokens.json").write_text("{}")
    with pytest.raises(CheckError, match="no export writes"):
        check(forged, net)
