"""Nets of RASP programs in other tools: stock checkpoints, the parts of TransformerLens, and the true
circuit.

Transformers has one architecture with attention to all positions, ReLU units, learned positions and no layer
norms: MobileBERT, with its bottlenecks left out. So a net opens as a stock
`MobileBertForTokenClassification`, weight by weight, and everything that is proved of it holds. Its layer
norms, of type `no_norm`, multiply by 1 and add 0. A causal program needs a causal mask, which is given with
the input.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save as tensors_to_bytes

from tapegrad._compile import Compiled
from tapegrad.errors import InputError, Refused
from tapegrad.interop.exporting import net_of
from tapegrad.interop.sequences_gpt2 import SequenceGpt2
from tapegrad.networks.backends.numpy import NumPy
from tapegrad.networks.form import Affine
from tapegrad.networks.texts import BEGIN, NAME, Parts, network_of
from tapegrad.rasp.functions import Value, shown
from tapegrad.targets.decoder.sequences import SequenceNet
from tapegrad.targets.net import Net

LEAST_HEAD = 4
BEGINNING, PADDING = "<begin>", "<pad>"
LARGEST = 8 << 30
"""Most bytes of weights."""

Weights = dict[str, NDArray[np.float32]]


def sequence_net(compiled: Compiled | Net) -> SequenceNet:
    """The net itself, if it is of a RASP program."""
    net = net_of(compiled)
    if not isinstance(net, SequenceNet):
        raise Refused("this is not the net of a RASP program", advice="Compile one with --target decoder.")
    return net


class Sizes:
    """Sizes of a transformer whose layers are all alike. The size of heads is a power of 4, so that the root
    by which scores are divided is a power of two."""

    def __init__(self, rows: int, heads: int, units: int, width: int, layers: int, positions: int) -> None:
        self.head = LEAST_HEAD
        while self.head < rows:
            self.head *= 4
        self.heads, self.units = max(1, heads, -(-width // self.head)), max(1, units)
        self.width = self.head * self.heads
        self.layers, self.positions = layers, positions
        entries = self.layers * self.width * (4 * self.width + 2 * self.units)
        if 4 * entries > LARGEST:
            raise Refused(
                f"a checkpoint of this net would take {4 * entries / 2**30:.0f} GiB: its layers are dense",
                advice="Make the program for a shorter length.",
            )

    @classmethod
    def of(cls, net: SequenceNet) -> Self:
        """Those that a net needs."""
        layers = net.parts.layers
        rows = [max(len(head.key), len(head.value)) for layer in layers for head in layer.heads]
        return cls(
            max(rows, default=1),
            max(len(layer.heads) for layer in layers),
            max(len(layer.units) for layer in layers),
            net.parts.width,
            len(layers),
            net.program.length + 1,
        )


@dataclass
class StockLayer:
    """Matrices of one layer, as they are multiplied with columns."""

    query: NDArray[Any]
    key: NDArray[Any]
    value: NDArray[Any]
    out: NDArray[Any]
    units: NDArray[Any]
    sums: NDArray[Any]

    @classmethod
    def empty(cls, size: Sizes) -> Self:
        """All zeros."""
        square, wide = (size.width, size.width), (size.units, size.width)
        query, key, value, out = (np.zeros(square) for _ in range(4))
        return cls(query, key, value, out, np.zeros(wide), np.zeros(wide[::-1]))


def weights(net: SequenceNet) -> Weights:
    """Every tensor of the stock checkpoint by its name."""
    model, size = net.parts, Sizes.of(net)
    width = size.width
    table = np.zeros((size.positions, width))
    table[:, : model.width] = model.table(size.positions)
    tokens = np.zeros((len(model.embedding) + 1, width))
    tokens[:-1, : model.width] = model.embedding.dense().weight
    layers = []
    for layer in model.layers:
        own = StockLayer.empty(size)
        for place, head in enumerate(layer.heads):
            first = place * size.head
            for matrix, side in ((own.query, head.query), (own.key, head.key), (own.value, head.value)):
                matrix[first : first + len(side)] = _padded(side, width, None)
            own.out[np.asarray(head.to), first + np.arange(len(head.to))] = 1
        own.units[:] = _padded(layer.units, width, size.units)
        own.sums[np.asarray(layer.to), : len(layer.units)] = layer.sums.dense().weight
        layers.append(own)
    return stock_tensors(size, tokens, table, _padded(model.unembedding, width, None), layers)


def stock_tensors(
    size: Sizes,
    tokens: NDArray[Any],
    positions: NDArray[Any],
    outputs: NDArray[Any],
    layers: Sequence[StockLayer],
) -> Weights:
    """Matrices under the names of the stock checkpoint. Scores are divided by the root of the size of heads
    there, so that queries are multiplied by it."""
    width, root = size.width, float(np.sqrt(size.head))
    base = "mobilebert.embeddings"
    found: dict[str, NDArray[Any]] = {
        f"{base}.word_embeddings.weight": tokens,
        f"{base}.position_embeddings.weight": positions,
        f"{base}.token_type_embeddings.weight": np.zeros((1, width)),
        f"{base}.embedding_transformation.weight": np.eye(width),
        f"{base}.embedding_transformation.bias": np.zeros(width),
        **_identity(f"{base}.LayerNorm", width),
        "classifier.weight": outputs,
        "classifier.bias": np.zeros(len(outputs)),
    }
    for number, layer in enumerate(layers):
        name = f"mobilebert.encoder.layer.{number}"
        sides = {"query": root * layer.query, "key": layer.key, "value": layer.value}
        for side, matrix in sides.items():
            found[f"{name}.attention.self.{side}.weight"] = matrix
            found[f"{name}.attention.self.{side}.bias"] = np.zeros(width)
        found |= {
            f"{name}.attention.output.dense.weight": layer.out,
            f"{name}.attention.output.dense.bias": np.zeros(width),
            f"{name}.intermediate.dense.weight": layer.units,
            f"{name}.intermediate.dense.bias": np.zeros(size.units),
            f"{name}.output.dense.weight": layer.sums,
            f"{name}.output.dense.bias": np.zeros(width),
            **_identity(f"{name}.attention.output.LayerNorm", width),
            **_identity(f"{name}.output.LayerNorm", width),
        }
    return {name: np.ascontiguousarray(array, np.float32) for name, array in found.items()}


def _identity(name: str, width: int) -> dict[str, NDArray[Any]]:
    return {f"{name}.weight": np.ones(width), f"{name}.bias": np.zeros(width)}


def _padded(own: Affine, width: int, rows: int | None) -> NDArray[np.floating]:
    matrix = np.asarray(own.dense().weight)
    return np.pad(matrix, ((0, (rows or len(matrix)) - len(matrix)), (0, width - matrix.shape[1])))


FAMILIES = ("mobilebert", "gpt2")
"""Classes of checkpoints, the usual one first."""


def files(compiled: Compiled | Net, family: str | None = None) -> dict[str, bytes]:
    """The folder of a stock checkpoint, file by file."""
    net = sequence_net(compiled)
    words = vocabulary(net.program.vocabulary)
    if family not in (None, *FAMILIES):
        raise Refused(
            f"RASP programs do not become checkpoints of the family {family!r}",
            advice=f"Choose one of {', '.join(FAMILIES)}.",
        )
    values, centres = net.read
    names = [shown(value) for value in values] if centres is None else ["number"]
    size = Sizes.of(net)
    if family == "gpt2":
        gpt2 = SequenceGpt2(net)
        settings, tensors = gpt2.sizes(len(words)), gpt2.tensors(len(words))
    else:
        settings, tensors = mobilebert(size, len(words)), weights(net)
    stock = checkpoint(settings, size.positions, words, names, tensors)
    return stock | {"labels.json": _json(labels(net)), "circuit.json": _json(circuit(net))}


def checkpoint(
    settings: Mapping[str, Any],
    positions: int,
    words: dict[str, int],
    names: Sequence[str],
    tensors: Weights,
) -> dict[str, bytes]:
    """The folder of a stock checkpoint: settings of its class, the numbers of words, names of outputs, and
    weights."""
    special = [
        {"id": words[own], "content": own, "special": True}
        | dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        for own in (BEGINNING, PADDING)
    ]
    config = {
        **settings,
        "pad_token_id": words[PADDING],
        "bos_token_id": BEGIN,
        "dtype": "float32",
        "id2label": {str(number): name for number, name in enumerate(names)},
        "label2id": {name: number for number, name in enumerate(names)},
    }
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": special,
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [
                {"SpecialToken": {"id": BEGINNING, "type_id": 0}},
                {"Sequence": {"id": "A", "type_id": 0}},
            ],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
            "special_tokens": {BEGINNING: {"id": BEGINNING, "ids": [BEGIN], "tokens": [BEGINNING]}},
        },
        "decoder": None,
        # A word that is not there is an error: the token for it is missing too.
        "model": {"type": "WordLevel", "vocab": words, "unk_token": "<none>"},
    }
    return {
        "config.json": _json(config),
        "model.safetensors": tensors_to_bytes(tensors, {"format": "pt"}),
        "tokenizer.json": _json(tokenizer),
        "tokenizer_config.json": _json(
            {
                "tokenizer_class": "PreTrainedTokenizerFast",
                "bos_token": BEGINNING,
                "pad_token": PADDING,
                "model_max_length": positions,
                "clean_up_tokenization_spaces": False,
            }
        ),
    }


def mobilebert(size: Sizes, words: int) -> dict[str, Any]:
    """The settings of a stock checkpoint of the usual class."""
    return {
        "architectures": ["MobileBertForTokenClassification"],
        "model_type": "mobilebert",
        "vocab_size": words,
        "hidden_size": size.width,
        "embedding_size": size.width,
        "num_hidden_layers": size.layers,
        "num_attention_heads": size.heads,
        "intermediate_size": size.units,
        "max_position_embeddings": size.positions,
        "type_vocab_size": 1,
        "hidden_act": "relu",
        "normalization_type": "no_norm",
        "trigram_input": False,
        "use_bottleneck": False,
        "use_bottleneck_attention": False,
        "num_feedforward_networks": 1,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "tie_word_embeddings": False,
    }


def vocabulary(tokens: Sequence[Value]) -> dict[str, int]:
    """The words of a checkpoint: the beginning, tokens, and padding."""
    words = [token if isinstance(token, str) else shown(token) for token in tokens]
    if any(word.split() != [word] for word in words) or len({*words, BEGINNING, PADDING}) < len(words) + 2:
        raise Refused("a token has spaces in it, or looks like another one", advice="Use other tokens.")
    return {word: number for number, word in enumerate([BEGINNING, *words, PADDING])}


def labels(net: SequenceNet) -> dict[str, Any]:
    """What heads do and what coordinates mean."""
    return {
        "heads": {
            f"{number}.{place}": net.explain(f"head {number}.{place}").partition(": ")[2]
            for number, layer in enumerate(net.parts.layers)
            for place in range(len(layer.heads))
        },
        "coordinates": {name: net.meaning(place) for place, name in enumerate(net.names)},
    }


# The true circuit


def written_by(net: SequenceNet) -> dict[str, set[int]]:
    """For every part of the net the coordinates that it writes."""
    ladder = net.parts.positions
    found = {
        "embed": set(net.parts.embedding.columns.tolist()),
        "positions": set(range(ladder.first, ladder.first + ladder.width)),
    }
    for number, layer in enumerate(net.parts.layers):
        found |= {
            f"a{number}.h{place}": set(np.asarray(head.to).tolist()) for place, head in enumerate(layer.heads)
        }
        found[f"m{number}"] = set(np.asarray(layer.to).tolist())
    return {name: places for name, places in found.items() if places}


def read_by(net: SequenceNet) -> dict[str, set[int]]:
    """For every part, and each side of a head, the coordinates that it reads."""
    found: dict[str, set[int]] = {}
    for number, layer in enumerate(net.parts.layers):
        for place, head in enumerate(layer.heads):
            for side, own in (("q", head.query), ("k", head.key), ("v", head.value)):
                found[f"a{number}.h{place}<{side}>"] = set(own.columns.tolist())
        found[f"m{number}"] = set(layer.units.columns.tolist())
    return found | {"logits": set(net.parts.unembedding.columns.tolist())}


def circuit(compiled: Compiled | Net) -> dict[str, Any]:
    """Nodes and edges: which part reads what which part wrote. Nodes are `embed`, `positions`, heads as
    `a0.h1`, layers of units as `m0`, and `logits`; where an edge ends at a head, `<q>`, `<k>` or `<v>` says
    at which side."""
    net = sequence_net(compiled)
    writes, reads, names = written_by(net), read_by(net), net.names
    edges = [
        {"from": source, "to": target, "coordinates": [names[place] for place in sorted(places & wanted)]}
        for target, wanted in reads.items()
        for source, places in writes.items()
        if places & wanted and _earlier(source, target)
    ]
    does = labels(net)["heads"]
    nodes = [{"name": name, "does": does.get(name[1:].replace("h", ""), "")} for name in (*writes, "logits")]
    return {"nodes": nodes, "edges": edges}


def _earlier(source: str, target: str) -> bool:
    """Whether what one part writes is there when the other reads."""

    def place(name: str) -> float:
        if name in ("embed", "positions"):
            return -1
        if name == "logits":
            return np.inf
        return int(name[1:].partition(".")[0]) + (0.5 if name.startswith("m") else 0.0)

    return place(source) < place(target)


def ablated(compiled: Compiled | Net, tokens: Any, source: str, target: str) -> tuple[Any, Any]:
    """What the net gives for these tokens, and what it must give where `target` reads 0 in place of all that
    `source` wrote: the logits of all positions. They are the same, to the last bit, where there is no such
    edge."""
    net = sequence_net(compiled)
    writes = written_by(net)
    if source not in writes or target not in read_by(net):
        raise InputError(
            f"there is no edge from {source!r} to {target!r}",
            advice="Edges go from a node of the circuit to another, such as 'a0.h0<q>', 'm1' or 'logits'.",
        )
    given = {"tokens": np.array([BEGIN, *net.numbers(tokens)])}
    blind = writes[source] if _earlier(source, target) else set()
    without = network_of(_blinded(net.parts, target, sorted(blind)), NAME, net.names)
    plain, other = (NumPy(own).run(given)[0]["logits"][1:] for own in (net.network, without))
    return plain, other


def _blinded(parts: Parts, reader: str, unseen: list[int]) -> Parts:
    """The same, where a node of the circuit reads 0 in some columns."""
    if reader == "logits":
        return parts._replace(unembedding=_without(parts.unembedding, unseen))
    number, _, rest = reader[1:].partition(".")
    layer, layers = parts.layers[int(number)], list(parts.layers)
    if rest:
        place, side = int(rest[1:-3]), {"q": "query", "k": "key", "v": "value"}[rest[-2]]
        heads = list(layer.heads)
        heads[place] = heads[place]._replace(**{side: _without(getattr(heads[place], side), unseen)})
        layers[int(number)] = layer._replace(heads=tuple(heads))
    else:
        layers[int(number)] = layer._replace(units=_without(layer.units, unseen))
    return parts._replace(layers=tuple(layers))


def _without(own: Affine, columns: list[int]) -> Affine:
    """A map that reads 0 in these columns."""
    kept = np.where(np.isin(own.columns, columns), np.float32(0), own.values)
    return Affine(own.rows, own.columns, kept, own.bias, own.width)


def _json(data: Mapping[str, Any]) -> bytes:
    return (json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
