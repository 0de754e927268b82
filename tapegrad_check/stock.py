"""Is a folder of `tapegrad export --to huggingface` the net that was checked? Every tensor, every setting.

The folder has a stock GPT-2. Each coordinate x of the certified net stands twice in its residual stream, as x
and -x, so that the mean is 0; gains of 2^30 and an epsilon of 2^60 make layer norms the identity. Heads have
a size that is a power of 4, by whose root scores are divided, and queries are larger by that root. Everything
else is 0. What the tensors and settings must be follows from the saved net, and each is compared with that;
transformers reads no other file of the folder, and others than these are refused.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from tapegrad_check.attention import Map, maps_of
from tapegrad_check.folder import CONFIG, MODEL, CheckError, Folder, Unchecked, require
from tapegrad_check.records import Text
from tapegrad_check.sources import Machine, array, model_of, whole
from tapegrad_check.token_nets import split

EPSILON, GAIN = 2.0**60, 2.0**30
LEAST_HEAD = 16
END, BEGIN = 0, 1
KINDS = ("tapes", "subleq", "rv32")
ROWS = 1 << 12
"""Rows of the table of positions that are compared at once."""
GENERATION, TOKENIZER, TOKENIZER_CONFIG = "generation_config.json", "tokenizer.json", "tokenizer_config.json"
FILES = {CONFIG, GENERATION, MODEL, TOKENIZER, TOKENIZER_CONFIG, "labels.json", "README.md"}
LARGEST_TEXT = 64 << 20
ADVICE = "Export the net again."

Floats = NDArray[np.float64]


class StockNet:
    """The sizes of the GPT-2 that holds a saved net, and what is in it."""

    def __init__(self, net: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        own = dict(arrays)
        self.tokens = whole(net["tokens"], "the horizon", 2, 1 << 23)
        self.names: list[list[Any]] = net["coordinates"]
        self.width = len(self.names)
        self.counts: list[int] = array(own, "heads", np.int32, (None,)).tolist()
        self.sides = [maps_of(own, side) for side in ("query", "key", "value")]
        self.units, self.sums = maps_of(own, "units"), maps_of(own, "sums")
        (self.embedding,), (self.unembedding,) = (maps_of(own, name) for name in ("embedding", "unembedding"))
        self.heads_to = split(own["heads_to"].tolist(), self.sides[2])
        self.adds_to = split(own["adds_to"].tolist(), self.sums)
        self.head = LEAST_HEAD
        while self.head < max(len(head) for side in self.sides for head in side):
            self.head *= 4
        self.heads = max(*self.counts, -(-2 * self.width // self.head))
        self.embedded = self.head * self.heads
        self.inner = max(map(len, self.units))

    def config(self) -> dict[str, Any]:
        """What the class is told."""
        return {
            "architectures": ["GPT2LMHeadModel"],
            "vocab_size": len(self.embedding),
            "tie_word_embeddings": False,
            "dtype": "float32",
            "bos_token_id": BEGIN,
            "eos_token_id": END,
            "pad_token_id": END,
            "model_type": "gpt2",
            "n_positions": self.tokens,
            "n_embd": self.embedded,
            "n_layer": len(self.units),
            "n_head": self.heads,
            "n_inner": self.inner,
            "activation_function": "relu",
            "layer_norm_epsilon": EPSILON,
            "scale_attn_weights": True,
            "attn_pdrop": 0.0,
            "embd_pdrop": 0.0,
            "resid_pdrop": 0.0,
        }

    def tensors(self) -> Iterator[tuple[str, Floats]]:
        """Every tensor but the table of positions, one after the other."""
        tokens = np.stack([self._row(self.embedding, number) for number in range(len(self.embedding))])
        yield "transformer.wte.weight", self._twice(tokens)
        yield "lm_head.weight", self._read(self.unembedding).T
        yield from self._norm("transformer.ln_f")
        first = 0
        for layer, count in enumerate(self.counts):
            name, own = f"transformer.h.{layer}", range(first, first + count)
            first += count
            yield from self._norm(f"{name}.ln_1")
            yield from self._norm(f"{name}.ln_2")
            weight, bias = self._attention(own)
            yield f"{name}.attn.c_attn.weight", weight
            yield f"{name}.attn.c_attn.bias", bias
            yield f"{name}.attn.c_proj.weight", self._copied(own)
            yield f"{name}.attn.c_proj.bias", np.zeros(self.embedded)
            units, sums = self.units[layer], self.sums[layer]
            yield f"{name}.mlp.c_fc.weight", _wide(self._read(units), self.inner)
            yield f"{name}.mlp.c_fc.bias", _wide(np.array(units.bias)[None], self.inner)[0]
            weight, bias = self._added(sums, self.adds_to[layer])
            yield f"{name}.mlp.c_proj.weight", weight
            yield f"{name}.mlp.c_proj.bias", bias

    def positions(self, numbers: NDArray[np.int64]) -> Floats:
        """Rows of the table: the record, the last one that is complete once the next token is there, the
        slot; nothing for the first token."""
        slots = sum(name == "slot" for name, _ in self.names)
        known = {"record": (numbers - 1) // slots, "before": np.maximum(numbers // slots - 1, 0)}
        rows = np.zeros((len(numbers), self.width))
        for place, (name, bit) in enumerate(self.names):
            if name == "slot":
                rows[:, place] = (numbers - 1) % slots == bit
            elif name in known:
                rows[:, place] = known[name] >> bit & 1
        rows[numbers == 0] = 0
        return self._twice(rows)

    def _row(self, own: Map, number: int) -> Floats:
        columns, values, _ = own.row(number)
        row = np.zeros(self.width)
        row[columns] = values
        return row

    def _read(self, own: Map) -> Floats:
        """A map from the first copy of the coordinates."""
        rows = [self._row(own, number) for number in range(len(own))]
        return _wide(np.array(rows).reshape(len(own), self.width), self.embedded).T

    def _twice(self, rows: Floats) -> Floats:
        return _wide(np.concatenate([rows, -rows], axis=1), self.embedded)

    def _norm(self, name: str) -> Iterator[tuple[str, Floats]]:
        yield f"{name}.weight", np.full(self.embedded, GAIN)
        yield f"{name}.bias", np.zeros(self.embedded)

    def _attention(self, own: Sequence[int]) -> tuple[Floats, Floats]:
        weight = np.zeros((self.embedded, 3, self.heads, self.head))
        bias = np.zeros((3, self.heads, self.head))
        for place, head in enumerate(own):
            for part, side in enumerate(self.sides):
                scale, size = float(np.sqrt(self.head)) if part == 0 else 1.0, len(side[head])
                weight[:, part, place, :size] = scale * self._read(side[head])
                bias[part, place, :size] = scale * np.array(side[head].bias)
        return weight.reshape(self.embedded, -1), bias.reshape(-1)

    def _copied(self, own: Sequence[int]) -> Floats:
        """Where values of heads go."""
        out = np.zeros((self.heads, self.head, self.width))
        for place, head in enumerate(own):
            to = self.heads_to[head]
            out[place, np.arange(len(to)), to] = 1
        return self._twice(out.reshape(-1, self.width))

    def _added(self, sums: Map, to: Sequence[int]) -> tuple[Floats, Floats]:
        weight, bias = np.zeros((self.inner, self.width)), np.zeros((1, self.width))
        for number, place in enumerate(to):
            columns, values, offset = sums.row(number)
            weight[columns, place] = values
            bias[0, place] = offset
        return self._twice(weight), self._twice(bias)[0]


def _wide(rows: Floats, size: int) -> Floats:
    """Rows with zeros at their ends."""
    return np.pad(rows, ((0, 0), (0, size - rows.shape[1])))


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
    stock = StockNet(net, saved.own)
    found = _json(folder, CONFIG)
    if found.get("model_type") != "gpt2":
        raise Unchecked("exports of family gpt2 are compared, and this is another", where=str(folder))
    _same_entries(CONFIG, found, stock.config())
    ends = {"bos_token_id": BEGIN, "eos_token_id": END, "pad_token_id": END}
    wanted = {"do_sample": False, "max_length": stock.tokens, **ends}
    _same_entries(GENERATION, _json(folder, GENERATION), wanted)
    words = _words(net) if kind == "tapes" else None
    _check_tokenizer(folder, stock, words)
    _check_tensors(folder, stock)
    return [
        f"{folder} is this net as a stock GPT-2: every tensor and every setting follows from it",
        f"its tokenizer gives each of {len(stock.embedding):,} words a number of its own; "
        + ("these are the names of the source" if words else "that a word says what it means was not checked")
        + ", and what README.md and labels.json say was not read",
    ]


def _check_tensors(folder: Path, stock: StockNet) -> None:
    table, names = "transformer.wpe.weight", set()
    try:
        with safe_open(str(folder / MODEL), framework="numpy") as file:
            for name, expected in stock.tensors():
                names.add(name)
                require(name in file.keys(), f"the tensor {name} is missing", ADVICE)  # noqa: SIM118
                _same_tensor(name, file.get_tensor(name), expected)
            require(
                set(file.keys()) == names | {table}, "there are other tensors than those of the net", ADVICE
            )
            rows = file.get_slice(table)
            require(
                tuple(rows.get_shape()) == (stock.tokens, stock.embedded),
                f"{table} has another shape",
                ADVICE,
            )
            for first in range(0, stock.tokens, ROWS):
                last = min(first + ROWS, stock.tokens)
                _same_tensor(table, rows[first:last], stock.positions(np.arange(first, last)))
    except (SafetensorError, OSError) as error:
        raise CheckError(f"{MODEL} cannot be read: {error}", where=str(folder), advice=ADVICE) from error


def _same_tensor(name: str, found: NDArray[Any], expected: Floats) -> None:
    require(found.dtype == np.float32 and found.shape == expected.shape, f"{name} has another shape", ADVICE)
    require(bool((found == expected).all()), f"{name} is not that of the net", ADVICE)


def _words(net: Mapping[str, Any]) -> list[str]:
    """What the tokens of a Turing machine are called."""
    machine = model_of(net["machine"]["source"], {})
    assert isinstance(machine, Machine)  # it is proved by now
    return Text(machine, net["machine"]["digits"], net["tokens"]).words


def _check_tokenizer(folder: Path, stock: StockNet, words: list[str] | None) -> None:
    """Words are separated by white space, each is one token, and there is nothing else."""
    tokenizer = _json(folder, TOKENIZER)
    vocabulary = tokenizer.get("model", {}).get("vocab")
    require(isinstance(vocabulary, dict), "the tokenizer has no words", ADVICE)
    numbers = {number: word for word, number in vocabulary.items() if type(number) is int}
    fits = len(vocabulary) == len(numbers) and set(numbers) == set(range(len(stock.embedding)))
    require(fits and all(word.split() == [word] for word in vocabulary), "two tokens have one word", ADVICE)
    named = words is None or numbers == dict(enumerate(words))
    require(named, "a token is called by another word than the machine's", ADVICE)
    specials = [
        {"id": number, "content": numbers[number], "special": True}
        | dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        for number in (END, BEGIN)
    ]
    nothing = dict.fromkeys(("truncation", "padding", "normalizer", "post_processor", "decoder"))
    require(vocabulary.get("<none>") is None, "the tokenizer has a word for all others", ADVICE)
    model = {"type": "WordLevel", "vocab": vocabulary, "unk_token": "<none>"}
    splits = {"type": "WhitespaceSplit"}
    wanted = {"version": "1.0", "added_tokens": specials, "pre_tokenizer": splits, "model": model, **nothing}
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
    try:
        with open(folder / name, "rb") as file:
            content = file.read(LARGEST_TEXT + 1)
        data: Any = json.loads(content) if len(content) <= LARGEST_TEXT else None
    except (OSError, ValueError, RecursionError) as error:
        raise CheckError(f"{name} cannot be read: {error}", where=str(folder), advice=ADVICE) from error
    require(isinstance(data, dict), f"{name} does not hold a JSON object", ADVICE)
    assert isinstance(data, dict)
    return data
