"""Is a folder of `tapegrad export --to huggingface` the net that was checked? Every tensor, every setting.

The folder has a stock model: GPT-2, Llama or GPT-NeoX. What its tensors and settings must be follows from the
saved net (`stock_nets`, `stock_rotary`), and each is compared with that; so are the rules of the tokenizer
and the word of every token. transformers reads no other file of the folder, and others are refused.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from tapegrad_check.folder import (
    CONFIG,
    MODEL,
    OF_NETWORK,
    CheckError,
    Folder,
    Unchecked,
    bytes_of,
    parsed,
    require,
)
from tapegrad_check.graph import graph_of
from tapegrad_check.in_tokens.records import Text
from tapegrad_check.in_tokens.words import rv32_words, subleq_words
from tapegrad_check.sources import Machine, model_of
from tapegrad_check.targets.stock_nets import BEGIN, END, Floats, Gpt2, StockNet
from tapegrad_check.targets.stock_rotary import GptNeox, Llama

FAMILIES: dict[str, type[StockNet]] = {"gpt2": Gpt2, "llama": Llama, "gpt_neox": GptNeox}
"""By the type of model that a configuration names."""
KINDS = ("tapes", "subleq", "rv32")
ROWS = 1 << 12
"""Rows of the table of positions that are compared at once."""
GENERATION, TOKENIZER, TOKENIZER_CONFIG = "generation_config.json", "tokenizer.json", "tokenizer_config.json"
FILES = {CONFIG, GENERATION, MODEL, TOKENIZER, TOKENIZER_CONFIG, "labels.json", "README.md"}
LARGEST_TEXT = 64 << 20
ADVICE = "Export the net again."


def compare(path: str | os.PathLike[str], saved: Folder) -> list[str]:
    """What holds of the folder at the path, if it is the saved net; `CheckError` says where it is not."""
    folder, net = Path(path), saved.config["net"]
    kind = net["machine"].get("kind") if isinstance(net.get("machine"), dict) else None
    if saved.config["target"] != "decoder" or kind not in KINDS:
        raise Unchecked(
            "only exports of machines and programs on target 'decoder' are compared", where=str(path)
        )
    if not os.path.isdir(folder):
        raise Unchecked(f"{folder} is not a folder", advice="Give the folder that `tapegrad export` wrote.")
    others = sorted(name for name in os.listdir(folder) if name not in FILES)
    require(not others, f"there is a file that no export writes: {others[:1]}", ADVICE)
    found = _json(folder, CONFIG)
    family = found.get("model_type")
    require(isinstance(family, str) and family in FAMILIES, "no export is a model of this type", ADVICE)
    assert saved.network is not None  # it is proved by now
    stock = FAMILIES[str(family)](net, graph_of(saved.network, saved.part(OF_NETWORK)))
    _same_entries(CONFIG, found, stock.config())
    ends = {"bos_token_id": BEGIN, "eos_token_id": END, "pad_token_id": END}
    wanted = {"do_sample": False, "max_length": stock.tokens, **ends}
    _same_entries(GENERATION, _json(folder, GENERATION), wanted)
    _check_tokenizer(folder, stock, _words(net))
    _check_tensors(folder, stock)
    return [
        f"{folder} is this net as a stock {stock.title}: every tensor and every setting follows from it"
        + stock.trusting,
        f"its tokenizer calls each of {len(stock.embedding):,} tokens by the word for what it means; what "
        "README.md and labels.json say was not read",
    ]


def _check_tensors(folder: Path, stock: StockNet) -> None:
    names = set() if stock.table is None else {stock.table}
    try:
        with safe_open(str(folder / MODEL), framework="numpy") as file:
            for name, expected in stock.tensors():
                names.add(name)
                require(name in file.keys(), f"the tensor {name} is missing", ADVICE)  # noqa: SIM118
                _same_tensor(name, file.get_tensor(name), expected)
            require(set(file.keys()) == names, "there are other tensors than those of the net", ADVICE)
            if stock.table is not None:
                _check_positions(stock.table, file.get_slice(stock.table), stock)
    except (SafetensorError, OSError) as error:
        raise CheckError(f"{MODEL} cannot be read: {error}", where=str(folder), advice=ADVICE) from error


def _check_positions(table: str, rows: Any, stock: StockNet) -> None:
    shape = stock.tokens, stock.embedded
    require(tuple(rows.get_shape()) == shape, f"{table} has another shape", ADVICE)
    for first in range(0, stock.tokens, ROWS):
        last = min(first + ROWS, stock.tokens)
        _same_tensor(table, rows[first:last], stock.spread(stock.rows(np.arange(first, last))))


def _same_tensor(name: str, found: NDArray[Any], expected: Floats) -> None:
    require(found.dtype == np.float32 and found.shape == expected.shape, f"{name} has another shape", ADVICE)
    require(bool((found == expected).all()), f"{name} is not that of the net", ADVICE)


def _words(net: Mapping[str, Any]) -> list[str]:
    """What the tokens are called."""
    if net["machine"]["kind"] != "tapes":
        return subleq_words() if net["machine"]["kind"] == "subleq" else rv32_words()
    machine = model_of(net["machine"]["source"], {})
    assert isinstance(machine, Machine)  # it is proved by now
    return Text(machine, net["machine"]["digits"], net["tokens"]).words


def _check_tokenizer(folder: Path, stock: StockNet, words: list[str]) -> None:
    """Words are separated by white space, each is one token, and there is nothing else."""
    tokenizer = _json(folder, TOKENIZER)
    model = tokenizer.get("model")
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    require(isinstance(vocabulary, dict), "the tokenizer has no words", ADVICE)
    assert isinstance(vocabulary, dict)
    numbers = {number: word for word, number in vocabulary.items() if type(number) is int}
    fits = len(vocabulary) == len(numbers) and set(numbers) == set(range(len(stock.embedding)))
    require(fits and all(word.split() == [word] for word in vocabulary), "two tokens have one word", ADVICE)
    require(numbers == dict(enumerate(words)), "a token is called by a word that means another", ADVICE)
    specials = [
        {"id": number, "content": numbers[number], "special": True}
        | dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        for number in (END, BEGIN)
    ]
    nothing = dict.fromkeys(("truncation", "padding", "normalizer", "post_processor", "decoder"))
    require(vocabulary.get("<none>") is None, "the tokenizer has a word for all others", ADVICE)
    known = {"type": "WordLevel", "vocab": vocabulary, "unk_token": "<none>"}
    splits = {"type": "WhitespaceSplit"}
    wanted = {"version": "1.0", "added_tokens": specials, "pre_tokenizer": splits, "model": known, **nothing}
    _same_entries(TOKENIZER, tokenizer, wanted)
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": numbers[BEGIN],
        "eos_token": numbers[END],
        "pad_token": numbers[END],
        "padding_side": "left",
        "model_max_length": stock.tokens,
        "clean_up_tokenization_spaces": False,
    }
    _same_entries(TOKENIZER_CONFIG, _json(folder, TOKENIZER_CONFIG), settings)


def _same_entries(name: str, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    for key in [*wanted, *found]:
        same = key in found and key in wanted and json.dumps(found[key]) == json.dumps(wanted[key])
        require(same, f"{key!r} in {name} is not that of the net", ADVICE)


def _json(folder: Path, name: str) -> dict[str, Any]:
    return parsed(bytes_of(folder / name, LARGEST_TEXT), folder / name)
