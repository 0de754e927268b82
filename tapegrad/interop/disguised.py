"""Nets in disguise: dense weights under the names of TransformerLens, that run, are saved and open elsewhere.

A folder has the three files of a net, `config.json`, `model.safetensors` and `certificate.json`, and beside
them the answer key, `answer_key.json` and `answer_key.safetensors`. The net's own files say nothing of the
program but its tokens and what outputs stand for: the key can be taken away, and the net still runs.
"""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save as tensors_to_bytes

from tapegrad._files import what_is_broken, write_folder
from tapegrad.errors import BrokenNet, InputError, Refused
from tapegrad.interop.sequences import Sizes, StockLayer, checkpoint, mobilebert, stock_tensors, vocabulary
from tapegrad.rasp.functions import Value, plain, shown
from tapegrad.rasp.functions import from_json as value_of
from tapegrad.rasp.functions import to_json as written
from tapegrad_check.folder import CERTIFICATE, CONFIG, DISGUISED, MODEL, VERSION, read_folder
from tapegrad_check.rasp.answer_key import KEY, KEY_ARRAYS, read_key

Arrays = dict[str, NDArray[Any]]
Weights = dict[str, NDArray[np.float32]]


@dataclass(frozen=True)
class AnswerKey:
    """What was done, and what everything means: see `docs/ground-truth.md`."""

    data: dict[str, Any]
    arrays: Arrays

    @property
    def directions(self) -> dict[str, NDArray[np.float64]]:
        """The direction of each feature, by its name."""
        return dict(zip(self.data["features"], self.arrays["directions"], strict=True))

    @property
    def circuit(self) -> list[dict[str, Any]]:
        """The true circuit, with heads under the numbers that they have in this net; decoys are not in it."""
        return self.data["circuit"]

    @property
    def decoys(self) -> dict[str, list[str]]:
        """Heads and units that do not matter."""
        return self.data["decoys"]


@dataclass(frozen=True, repr=False)
class DisguisedNet:
    """A transformer without biases or layer norms, by its weights."""

    weights: Weights
    vocabulary: tuple[Value, ...]
    outputs: tuple[Value, ...]
    length: int
    causal: bool
    centres: tuple[float, ...] | None
    """Where the output is a number: what stands for each value."""
    key: AnswerKey | None = field(default=None)
    claims: Mapping[str, Any] = field(default_factory=dict)
    """What was proved of it, in numbers."""

    def __repr__(self) -> str:
        return f"<net in disguise: {self.layers} layers, {self.width} dimensions, {self.heads} heads in each>"

    @property
    def layers(self) -> int:
        """How many layers there are."""
        return sum(name.endswith("W_Q") for name in self.weights)

    @property
    def heads(self) -> int:
        """Heads of each layer."""
        return len(self.weights["blocks.0.attn.W_Q"])

    @property
    def width(self) -> int:
        """Dimensions of the residual stream."""
        return self.weights["embed.W_E"].shape[1]

    def numbers(self, tokens: Sequence[Any]) -> list[int]:
        """The numbers of tokens; that of the one at the beginning is 0."""
        known = {token: number for number, token in enumerate(self.vocabulary, 1)}
        own = [plain(token) for token in tokens]
        if len(own) > self.length:
            raise InputError(
                f"{len(own):,} tokens were given, and the net takes at most {self.length:,}",
                advice="Disguise a net for a greater length.",
            )
        strange = [token for token in own if token not in known]
        if strange:
            raise InputError(f"{shown(strange[0])} is not in the vocabulary", advice="Give other tokens.")
        return [known[token] for token in own]

    def hidden(self, numbers: Sequence[int]) -> NDArray[np.float32]:
        """The residual stream after the last layer, in single precision, the first token included."""
        weights = self.weights
        found = weights["embed.W_E"][[0, *numbers]] + weights["pos_embed.W_pos"][: len(numbers) + 1]
        later = np.triu(np.ones((len(found),) * 2, bool), 1) if self.causal else None
        for layer in range(self.layers):
            query, key, value, out = (weights[f"blocks.{layer}.attn.W_{side}"] for side in "QKVO")
            given = found
            for head in range(len(query)):
                scores = (given @ query[head]) @ (given @ key[head]).T
                if later is not None:
                    scores[later] = -np.inf
                looks = np.exp(scores - scores.max(axis=1, keepdims=True))
                looks /= looks.sum(axis=1, keepdims=True)
                found = found + (looks @ (given @ value[head])) @ out[head]
            active = np.maximum(found @ weights[f"blocks.{layer}.mlp.W_in"], 0)
            found = found + active @ weights[f"blocks.{layer}.mlp.W_out"]
        return found

    def logits(self, tokens: Sequence[Any]) -> NDArray[np.float32]:
        """The logits at every token."""
        return (self.hidden(self.numbers(tokens)) @ self.weights["unembed.W_U"])[1:]

    def run(self, tokens: Sequence[Any]) -> tuple[Value, ...]:
        """The output at every token; refused where the net says that it would mix values."""
        hidden = self.hidden(self.numbers(tokens))
        if "flag.W" in self.weights and (hidden @ self.weights["flag.W"] > 0.5).any():
            raise Refused("on this input values that differ would be moved together")
        logits = (hidden @ self.weights["unembed.W_U"])[1:]
        if self.centres is None:
            return tuple(self.outputs[place] for place in logits.argmax(axis=1).tolist())
        nearest = np.abs(logits[:, :1].astype(np.float64) - np.array(self.centres)).argmin(axis=1)
        return tuple(self.outputs[place] for place in nearest.tolist())

    # Files

    def config(self) -> dict[str, Any]:
        """What the net's own file says."""
        return {
            "vocabulary": [written(token) for token in self.vocabulary],
            "outputs": [written(value) for value in self.outputs],
            "length": self.length,
            "causal": self.causal,
            "centres": None if self.centres is None else list(self.centres),
        }


def checkpoint_files(net: DisguisedNet) -> dict[str, bytes]:
    """The folder of a stock checkpoint of Transformers, without the answer key."""
    shape, width = net.weights["blocks.0.attn.W_Q"].shape, net.width
    units = net.weights["blocks.0.mlp.W_in"].shape[1]
    size = Sizes(shape[2], shape[0], units, width, net.layers, net.length + 1)
    layers = []
    for number in range(net.layers):
        own = StockLayer.empty(size)
        query, key, value, out = (net.weights[f"blocks.{number}.attn.W_{side}"] for side in "QKVO")
        for head in range(shape[0]):
            rows = slice(head * size.head, head * size.head + shape[2])
            for matrix, side in ((own.query, query), (own.key, key), (own.value, value)):
                matrix[rows, :width] = side[head].T
            own.out[:width, rows] = out[head].T
        own.units[:units, :width] = net.weights[f"blocks.{number}.mlp.W_in"].T
        own.sums[:width, :units] = net.weights[f"blocks.{number}.mlp.W_out"].T
        layers.append(own)
    tokens = np.zeros((len(net.vocabulary) + 2, size.width))
    tokens[:-1, :width] = net.weights["embed.W_E"]
    positions = np.zeros((size.positions, size.width))
    positions[:, :width] = net.weights["pos_embed.W_pos"]
    outputs = np.zeros((net.weights["unembed.W_U"].shape[1], size.width))
    outputs[:, :width] = net.weights["unembed.W_U"].T
    names = [shown(value) for value in net.outputs] if net.centres is None else ["number"]
    tensors = stock_tensors(size, tokens, positions, outputs, layers)
    words = vocabulary(net.vocabulary)
    return checkpoint(mobilebert(size, len(words)), size.positions, words, names, tensors)


def save_disguised(net: DisguisedNet, path: str | os.PathLike[str]) -> None:
    """The net and its answer key as a folder, whole or not at all."""
    if net.key is None:
        raise InputError("the net has no answer key", advice="Save the one that `disguise` gave.")
    config = {"target": DISGUISED, "options": {}, "net": net.config(), "source": {}}
    files = {
        CONFIG: _json({"version": VERSION, "tapegrad": metadata.version("tapegrad"), **config}),
        MODEL: tensors_to_bytes(net.weights),
        KEY: _json(net.key.data),
        KEY_ARRAYS: tensors_to_bytes({name: np.ascontiguousarray(a) for name, a in net.key.arrays.items()}),
    }
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    certificate = {"version": VERSION, "target": DISGUISED, "claims": net.claims, "sha256": sums}
    write_folder(path, files | {CERTIFICATE: _json(certificate)})


def load_disguised(path: str | os.PathLike[str]) -> DisguisedNet:
    """The net again, with its key if that is there."""
    with what_is_broken(path):
        folder = read_folder(path)
        if folder.config["target"] != DISGUISED:
            raise BrokenNet(
                "the folder holds no net in disguise", where=str(path), advice="Use tapegrad.load."
            )
        own = folder.config["net"]
        key = AnswerKey(*read_key(path, folder)) if (Path(path) / KEY).exists() else None
        return DisguisedNet(
            weights={name: a.astype(np.float32) for name, a in folder.arrays.items()},
            vocabulary=tuple(value_of(token) for token in own["vocabulary"]),
            outputs=tuple(value_of(value) for value in own["outputs"]),
            length=int(own["length"]),
            causal=bool(own["causal"]),
            centres=None if own["centres"] is None else tuple(float(c) for c in own["centres"]),
            key=key,
            claims=folder.certificate["claims"],
        )


def _json(data: Mapping[str, Any]) -> bytes:
    return (json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
