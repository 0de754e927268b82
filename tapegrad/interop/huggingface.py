"""A net of target `decoder` as a stock checkpoint of GPT-2, with tokenizer and model card. NumPy is enough.

Every coordinate x of the residual stream stands there twice, as x and -x, so that means are 0, and layer
norms are made the identity by an epsilon of 2^60 and a gain of 2^30 (why that is exact:
`tapegrad.attention.language`). Heads have a size that is a power of 4: its root, by which scores are divided,
is a power of two and is part of the queries. Biases of heads and units are those of GPT-2; logits have none.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save as tensors_to_bytes

from tapegrad._compile import Compiled
from tapegrad.attention.tokens import BEGIN, END
from tapegrad.errors import Refused
from tapegrad.interop.exporting import net_of
from tapegrad.networks.form import Affine
from tapegrad.source import Source, State
from tapegrad.targets.decoder.fast import Fast, read_tables
from tapegrad.targets.decoder.net import DecoderNet
from tapegrad.targets.net import Net

EPSILON, GAIN = 2.0**60, 2.0**30
LEAST_HEAD = 16
LARGEST = 8 << 30
"""Most bytes of weights."""
CANARY = 200
"""Most tokens of the run that the model card shows."""

Weights = dict[str, NDArray[np.float32]]


def decoder_net(compiled: Compiled | Net) -> DecoderNet:
    """The net itself, if it is of target `decoder`."""
    net = net_of(compiled)
    if not isinstance(net, DecoderNet):
        raise Refused(
            f"only nets of target 'decoder' become language models, and this one is of {net.target!r}",
            advice="Compile with --target decoder.",
        )
    return net


class Gpt2:
    """The sizes of a stock model that holds the net."""

    def __init__(self, net: DecoderNet) -> None:
        self.net, model = net, net.model
        self.width = model.width
        heads = [head for layer in model.layers for head in layer.heads]
        rows = max(max(len(head.key), len(head.value)) for head in heads)
        self.head = LEAST_HEAD
        while self.head < rows:
            self.head *= 4
        self.heads = max(*(len(layer.heads) for layer in model.layers), -(-2 * self.width // self.head))
        self.inner = max(len(layer.units) for layer in model.layers)
        if 4 * net.tokens * self.embedded > LARGEST:
            raise Refused(
                f"the table of positions would take {4 * net.tokens * self.embedded / 2**30:.1f} GiB",
                advice="Compile with fewer tokens.",
            )

    @property
    def embedded(self) -> int:
        """The width of the residual stream."""
        return self.head * self.heads

    def config(self) -> dict[str, Any]:
        """What `GPT2Config` takes."""
        return {
            "architectures": ["GPT2LMHeadModel"],
            "model_type": "gpt2",
            "vocab_size": len(self.net.model.embedding),
            "n_positions": self.net.tokens,
            "n_embd": self.embedded,
            "n_layer": len(self.net.model.layers),
            "n_head": self.heads,
            "n_inner": self.inner,
            "activation_function": "relu",
            "layer_norm_epsilon": EPSILON,
            "scale_attn_weights": True,
            "attn_pdrop": 0.0,
            "embd_pdrop": 0.0,
            "resid_pdrop": 0.0,
            "tie_word_embeddings": False,
            "dtype": "float32",
            "bos_token_id": BEGIN,
            "eos_token_id": END,
            "pad_token_id": END,
        }

    def weights(self) -> Weights:
        """Every tensor by its name in the checkpoint."""
        model, table = self.net.model, self.net.model.positions
        positions = np.zeros((self.net.tokens, self.width), np.float32)
        positions[:, table.first : table.first + table.width] = table.rows(np.arange(self.net.tokens))
        found = {
            "transformer.wte.weight": self._written(np.asarray(model.embedding.dense().weight)),
            "transformer.wpe.weight": self._written(positions),
            "lm_head.weight": self._read(model.unembedding).T,
        }
        norms = ["transformer.ln_f"]
        for number, layer in enumerate(model.layers):
            name = f"transformer.h.{number}"
            norms += [f"{name}.ln_1", f"{name}.ln_2"]
            found |= self._attention(f"{name}.attn", number)
            found |= {
                f"{name}.mlp.c_fc.weight": self._padded(self._read(layer.units), 1, self.inner),
                f"{name}.mlp.c_fc.bias": self._padded(layer.units.bias, 0, self.inner),
            }
            sums, bias = np.zeros((self.inner, self.width)), np.zeros(self.width)
            sums[: len(layer.units), np.asarray(layer.to)] = layer.sums.dense().weight.T
            bias[np.asarray(layer.to)] = layer.sums.bias
            found |= {
                f"{name}.mlp.c_proj.weight": self._written(sums),
                f"{name}.mlp.c_proj.bias": self._written(bias),
            }
        for norm in norms:
            found[f"{norm}.weight"] = np.full(self.embedded, GAIN)
            found[f"{norm}.bias"] = np.zeros(self.embedded)
        return {name: np.ascontiguousarray(array, np.float32) for name, array in found.items()}

    def _attention(self, name: str, layer: int) -> Mapping[str, NDArray[np.floating]]:
        """Queries, keys and values of all heads side by side, and what becomes of values."""
        together, bias = np.zeros((self.embedded, 3, self.embedded)), np.zeros((3, self.embedded))
        out = np.zeros((self.embedded, self.width))
        root = float(np.sqrt(self.head))
        for place, head in enumerate(self.net.model.layers[layer].heads):
            first = place * self.head
            for part, side in enumerate((head.query, head.key, head.value)):
                scale = root if part == 0 else 1.0
                together[:, part, first : first + len(side)] = scale * self._read(side)
                bias[part, first : first + len(side)] = scale * side.bias
            out[first + np.arange(len(head.to)), np.asarray(head.to)] = 1
        return {
            f"{name}.c_attn.weight": together.reshape(self.embedded, -1),
            f"{name}.c_attn.bias": bias.reshape(-1),
            f"{name}.c_proj.weight": self._written(out),
            f"{name}.c_proj.bias": np.zeros(self.embedded),
        }

    def _read(self, own: Affine) -> NDArray[np.floating]:
        """A map as a matrix from the residual stream, of which it reads the first copy."""
        return self._padded(np.asarray(own.dense().weight).T, 0, self.embedded)

    def _written(self, rows: NDArray[np.floating]) -> NDArray[np.floating]:
        """Rows of coordinates as rows of the residual stream: x, then -x, then nothing."""
        return self._padded(np.concatenate([rows, -rows], axis=-1), -1, self.embedded)

    @staticmethod
    def _padded(array: NDArray[np.floating], axis: int, size: int) -> NDArray[np.floating]:
        room = [(0, 0)] * array.ndim
        room[axis] = 0, size - array.shape[axis]
        return np.pad(array, room)


def files(compiled: Compiled | Net, source: Source) -> dict[str, bytes]:
    """The folder of a stock checkpoint, file by file."""
    net = decoder_net(compiled)
    stock = Gpt2(net)
    words = [token.word for token in net.words.program.tokens]
    specials = [
        {"id": number, "content": words[number], "special": True}
        | dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        for number in (END, BEGIN)
    ]
    ends = {"bos_token_id": BEGIN, "eos_token_id": END, "pad_token_id": END}
    return {
        "config.json": _json(stock.config()),
        "generation_config.json": _json({"do_sample": False, "max_length": net.tokens, **ends}),
        "model.safetensors": tensors_to_bytes(stock.weights(), {"format": "pt"}),
        "tokenizer.json": _json(
            {
                "version": "1.0",
                "truncation": None,
                "padding": None,
                "added_tokens": specials,
                "normalizer": None,
                "pre_tokenizer": {"type": "WhitespaceSplit"},
                "post_processor": None,
                "decoder": None,
                # A word that is not there is an error: the token for it is missing too.
                "model": {
                    "type": "WordLevel",
                    "vocab": {word: number for number, word in enumerate(words)},
                    "unk_token": "<none>",
                },
            }
        ),
        "tokenizer_config.json": _json(
            {
                "tokenizer_class": "PreTrainedTokenizerFast",
                "bos_token": words[BEGIN],
                "eos_token": words[END],
                "pad_token": words[END],
                "padding_side": "left",
                "model_max_length": net.tokens,
                "clean_up_tokenization_spaces": False,
            }
        ),
        "labels.json": _json(labels(net)),
        "README.md": _card(net, stock, source).encode(),
    }


def labels(net: DecoderNet) -> dict[str, Any]:
    """What heads do and what coordinates mean, by number; the second copy of each is its negative."""
    return {
        "heads": {
            f"{number}.{place}": net.explain(f"head {number}.{place}").partition(": ")[2]
            for number, layer in enumerate(net.model.layers)
            for place in range(len(layer.heads))
        },
        "coordinates": {name: net.explain(name).partition(": ")[2] for name in net.stream.names},
        "tokens": [token.word for token in net.words.program.tokens],
    }


def canary(net: DecoderNet, first: State) -> tuple[str, str]:
    """A prompt, and the words that must follow, or the first of them."""
    prompt = net.words.prompt(first, net.tokens)
    most = min(len(prompt) + CANARY, net.tokens)
    text = Fast(read_tables(net.model, net.tokens)).advance(prompt, most)
    words = [token.word for token in net.words.program.tokens]
    return (
        " ".join(words[number] for number in prompt),
        " ".join(words[number] for number in text[len(prompt) :]),
    )


def _card(net: DecoderNet, stock: Gpt2, source: Source) -> str:
    """The model card."""
    claims = net.certificate()
    prompt, follows = canary(net, source.start())
    heads = "\n".join(f"| {name} | {does} |" for name, does in labels(net)["heads"].items())
    return CARD.format(
        name=source.name,
        tokens=net.tokens,
        record=net.words.record,
        slots=", ".join(net.words.program.slots),
        about=net.words.about,
        width=stock.embedded,
        layers=claims["layers"],
        score=claims["largest_score"],
        beta=claims["temperature"],
        stray=claims["softmax_error"],
        heads=heads,
        prompt=prompt,
        follows=follows,
        count=len(follows.split()),
    )


CARD = """---
library_name: transformers
pipeline_tag: text-generation
tags: [tapegrad, interpretability, algorithm]
---
# {name}, as a language model

This checkpoint was compiled, not trained. Greedy decoding runs the machine `{name}` step by step: the prompt
is its input, and the text that follows is its run, up to `<halt>`.

    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    prompt = tokenizer("{prompt}", return_tensors="pt")
    print(tokenizer.decode(model.generate(**prompt, max_new_tokens={count})[0]))

After `<begin>` come records of {record} tokens: {slots}. {about}

## What is proved

Every token is right for texts of up to **{tokens:,} tokens** in float32, prompt included. Scores of heads are
at most {score:,.0f}, and the best is 1/2 above all others at least; softmax at temperature 1/{beta:g} copies
bits that are off by {stray:.2g} at most, and they are rounded before they are used. The right logit is above
all others by 1 at least. Layer norms may find means, which are 0, up to 2^-20. `tapegrad check` derives this
from the weights.

It holds for greedy decoding in float32, with or without a cache, in eager and SDPA attention, batched with
padding on the left. It does not hold in float16 or bfloat16, with TF32 (off by default in PyTorch), with
sampling, or beyond {tokens:,} tokens.

## Canary

The prompt `{prompt}` must be followed by

    {follows}

## Heads

{layers} layers, residual stream of width {width}: every coordinate stands there twice, as x and -x, and layer
norms are the identity. `labels.json` names all coordinates.

| head | what it does |
|---|---|
{heads}
"""


def _json(data: Any) -> bytes:
    return (json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
