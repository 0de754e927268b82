"""A net of target `decoder` as the folder of a stock checkpoint, with tokenizer and model card."""

import json
from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np
from safetensors.numpy import save as tensors_to_bytes

from tapegrad._compile import Compiled
from tapegrad._verify import default_inputs
from tapegrad.attention.tokens import BEGIN, END
from tapegrad.errors import InputError, Refused
from tapegrad.interop.exporting import FAMILY, net_of
from tapegrad.interop.rotary import HALF, GptNeox, Llama
from tapegrad.interop.stock import Gpt2, Stock
from tapegrad.networks.texts import Head, Parts
from tapegrad.targets.decoder.fast import Fast, read_tables
from tapegrad.targets.decoder.net import DecoderNet
from tapegrad.targets.net import Net

CANARY = 200
"""Most tokens of the run that the model card shows."""
TRIED = 16
"""Inputs that one is chosen from."""


def decoder_net(compiled: Compiled | Net) -> DecoderNet:
    """The net itself, if it is of target `decoder`."""
    net = net_of(compiled)
    if not isinstance(net, DecoderNet):
        raise Refused(
            f"only nets of target 'decoder' become language models, and this one is of {net.target!r}",
            advice="Compile with --target decoder.",
        )
    return net


FAMILIES: dict[str, Callable[[Parts, int], Stock]] = {
    Gpt2.family: Gpt2,
    Llama.family: Llama,
    GptNeox.family: GptNeox,
}
"""Classes of transformers by the name that the command line takes."""


def stock_of(compiled: Compiled | Net, family: str) -> Stock:
    """The net in a class of transformers."""
    if family not in FAMILIES:
        raise InputError(f"there is no family {family!r}", advice=f"Choose one of {', '.join(FAMILIES)}.")
    net = decoder_net(compiled)
    return FAMILIES[family](net.parts, net.tokens)


def files(compiled: Compiled, family: str = FAMILY) -> dict[str, bytes]:
    """The folder of a stock checkpoint, file by file."""
    stock, net = stock_of(compiled, family), decoder_net(compiled)
    words = [token.word for token in net.words.program.tokens]
    specials = [
        {"id": number, "content": words[number], "special": True}
        | dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        for number in (END, BEGIN)
    ]
    return settings(stock) | {
        "model.safetensors": tensors_to_bytes(stock.weights() | stock.positions(), {"format": "pt"}),
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
        "labels.json": _json(labels(stock, net)),
        "README.md": _card(stock, compiled).encode(),
    }


def settings(stock: Stock) -> dict[str, bytes]:
    """The configuration of the model, and how it generates: greedily, up to the horizon."""
    ends = {"bos_token_id": BEGIN, "eos_token_id": END, "pad_token_id": END}
    return {
        "config.json": _json(stock.config()),
        "generation_config.json": _json({"do_sample": False, "max_length": stock.tokens, **ends}),
    }


def labels(stock: Stock, net: DecoderNet) -> dict[str, Any]:
    """What heads do and what coordinates mean, by number. Where there are two copies, the second is the
    negative."""
    halves = stock.width - net.parts.width
    return {
        "heads": {
            f"{number}.{place}": _does(head, net)
            for number, own in enumerate(stock.layers)
            for place, head in enumerate(own.layer.heads)
        },
        "coordinates": {name: net.explain(name).partition(": ")[2] for name in net.names}
        | {f"half[{number}]": "where in its period a position is, not rounded" for number in range(halves)},
        "tokens": [token.word for token in net.words.program.tokens],
    }


def _does(head: Head, net: DecoderNet) -> str:
    if head.name.startswith(HALF):
        return f"{head.name}; asks by rotation, the first token answers"
    return net.described(head)


def canary(compiled: Compiled) -> tuple[str, str]:
    """A prompt, and the words that must follow, or the first of them. Of the inputs that `verify` would
    choose, it is the one with the longest run to an end: that shows a fault in few of the weights sooner."""
    net = decoder_net(compiled)
    tables = read_tables(net.network, net.tokens)
    longest: tuple[bool, int, list[int], list[int]] | None = None
    for given in islice(default_inputs(compiled, np.random.default_rng(0))[0], TRIED):
        try:
            prompt = net.words.prompt(compiled.encode(compiled.source.start(*given)), net.tokens)
        except (InputError, Refused):  # no room for it
            continue
        follows = Fast(tables).advance(prompt, min(len(prompt) + CANARY, net.tokens))[len(prompt) :]
        found = END in follows, len(follows), prompt, follows
        longest = found if longest is None else max(longest, found, key=lambda one: one[:2])
    if longest is None:
        raise Refused(
            f"no input that was tried fits into {net.tokens:,} tokens", advice="Compile with more `tokens`."
        )
    words = [token.word for token in net.words.program.tokens]
    prompt, follows = (" ".join(words[number] for number in text) for text in longest[2:])
    return prompt, follows


def _card(stock: Stock, compiled: Compiled) -> str:
    """The model card."""
    net = decoder_net(compiled)
    claims = net.certificate()
    prompt, follows = canary(compiled)
    heads = "\n".join(f"| {name} | {does} |" for name, does in labels(stock, net)["heads"].items())
    return CARD.format(
        name=compiled.source.name,
        architecture=stock.architecture,
        places=stock.places.format(finding=len(stock.layers) - len(net.parts.layers)),
        copies=" and ".join(["x", "-x"][: stock.copies]),
        often=["once", "twice"][stock.copies - 1],
        tokens=net.tokens,
        record=net.words.record,
        slots=", ".join(net.words.program.slots),
        about=net.words.about,
        width=stock.embedded,
        layers=len(stock.layers),
        score=claims["largest_score"],
        beta=claims["temperature"],
        stray=claims["softmax_error"],
        heads=heads,
        prompt=prompt,
        follows=follows,
        count=len(prompt.split()) + len(follows.split()),
    )


CARD = """---
library_name: transformers
pipeline_tag: text-generation
tags: [tapegrad, interpretability, algorithm]
---
# {name}, as a language model

This checkpoint of the stock class `{architecture}` was compiled, not trained. Greedy decoding runs the
machine `{name}` step by step: the prompt is its input, and the text that follows is its run, up to `<halt>`.

    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    prompt = tokenizer("{prompt}", return_tensors="pt")
    print(tokenizer.decode(model.generate(**prompt, max_length={count})[0]))

After `<begin>` come records of {record} tokens: {slots}. {about}

## What is proved

Every token is right for texts of up to **{tokens:,} tokens** in float32, prompt included. Scores of heads are
at most {score:,.0f}, and the best is 1/2 above all others at least; softmax at temperature 1/{beta:g} copies
bits that are off by {stray:.2g} at most, and they are rounded before they are used. The right logit is above
all others by 1 at least. Layer norms may find means, which are 0, up to 2^-20. `tapegrad check` derives this
from the weights.

It holds for greedy decoding in float32, with or without a cache, in eager and SDPA attention, batched with
padding on the left. It does not hold in float16, where the epsilon of norms is no number; nor in bfloat16,
where scores are rounded to 8 bits and old writes are taken for the last one; nor with sampling, nor beyond
{tokens:,} tokens, where `generate()` stops by itself. It is not proved with TF32, which is off by default in
PyTorch.

## Canary

The prompt `{prompt}` must be followed by

    {follows}

## Heads

{layers} layers, residual stream of width {width}: every coordinate stands there {often}, as {copies}, and
norms are the identity. {places} `labels.json` names all coordinates.

| head | what it does |
|---|---|
{heads}
"""


def _json(data: Any) -> bytes:
    return (json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
