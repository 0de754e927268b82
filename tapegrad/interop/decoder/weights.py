"""A decoder-only transformer whose next token is the machine's next step, in the names of HookedTransformer.

Three blocks, no layer norm, causal softmax attention. The paper's construction (Theorem 4.1) finds the last
write to a cell by a binary search over time with an attention for each bit; a decoder that sees its own
tokens can do with less:

    block 0  odometer: the head's cell is the sum of all moves so far
    block 1  rulers: that cell, and the cell written to, as exact binary digits, copied from the position
             embedding of the token with that number (a head never gets further than there are tokens)
    block 2  last write: of the tokens that wrote to the head's cell, the latest; then the table, as an MLP
             with a unit for each pair of state and symbol

Why each is exact is derived in `tapegrad.interop.decoder.sharpness`.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tapegrad.interop.decoder.coordinates import RULERS, Coordinates
from tapegrad.interop.decoder.sharpness import check_context, pointing_gap, scale_for
from tapegrad.interop.decoder.vocabulary import BEGIN, HALT

BLOCKS, HEADS_OF_A_BLOCK = 3, 4
Weights = dict[str, NDArray[np.float32]]

SETTINGS = {
    "act_fn": "relu",
    "normalization_type": None,
    "positional_embedding_type": "standard",
    "attention_dir": "causal",
    "use_attn_scale": False,
    "default_prepend_bos": False,
}
"""The rest of a HookedTransformerConfig, beside the sizes."""


@dataclass(frozen=True)
class Sizes:
    """The sizes of the network, in the words of HookedTransformerConfig."""

    d_model: int
    d_head: int
    d_mlp: int
    d_vocab: int
    n_ctx: int
    n_layers: int = BLOCKS
    n_heads: int = HEADS_OF_A_BLOCK


def sizes(here: Coordinates) -> Sizes:
    """Sizes for a vocabulary and a context."""
    words = here.vocabulary
    return Sizes(
        d_model=here.width,
        d_head=max(2 * here.bits + 2, len(words.symbols)),
        d_mlp=len(words.states) * len(words.symbols),
        d_vocab=len(words.tokens),
        n_ctx=here.context,
    )


def weights(here: Coordinates) -> Weights:
    """Every parameter under the name it has in a HookedTransformer's `state_dict`."""
    check_context(here.context, here.bits)
    size = sizes(here)
    found: Weights = {
        "embed.W_E": _embedding(here),
        "pos_embed.W_pos": _positions(here),
        "unembed.W_U": _unembedding(here),
        "unembed.b_U": np.zeros(size.d_vocab, np.float32),
    }
    for block in range(BLOCKS):
        name = f"blocks.{block}"
        for part in "QKV":
            found[f"{name}.attn.W_{part}"] = np.zeros((size.n_heads, size.d_model, size.d_head), np.float32)
            found[f"{name}.attn.b_{part}"] = np.zeros((size.n_heads, size.d_head), np.float32)
        found[f"{name}.attn.W_O"] = np.zeros((size.n_heads, size.d_head, size.d_model), np.float32)
        found[f"{name}.attn.b_O"] = np.zeros(size.d_model, np.float32)
        found[f"{name}.mlp.W_in"] = np.zeros((size.d_model, size.d_mlp), np.float32)
        found[f"{name}.mlp.b_in"] = np.zeros(size.d_mlp, np.float32)
        found[f"{name}.mlp.W_out"] = np.zeros((size.d_mlp, size.d_model), np.float32)
        found[f"{name}.mlp.b_out"] = np.zeros(size.d_model, np.float32)
    _odometer(here, found)
    _rulers(here, found)
    _last_write(here, found)
    _table(here, found)
    return found


def _embedding(here: Coordinates) -> NDArray[np.float32]:
    words = here.vocabulary
    rows = np.zeros((len(words.tokens), here.width), np.float32)
    rows[BEGIN, here.at("begin")] = 1
    rows[BEGIN, here.at("symbol", words.blank)] = 1
    for number, token in enumerate(words.tokens):
        if token is not None:
            rows[number, here.at("symbol", token.write)] = 1
            rows[number, here.at("move")] = token.move
            if token.state is not None:
                rows[number, here.at("state", token.state)] = 1
    return rows


def _positions(here: Coordinates) -> NDArray[np.float32]:
    """N, the number that all weights of the odometer add up to 1 of, is the length of the context."""
    rows = np.zeros((here.context, here.width), np.float32)
    p = np.arange(here.context)
    rows[:, here.at("sink")] = [math.log(here.context - index) for index in range(here.context)]
    rows[:, here.at("index")] = p
    rows[:, here.at("square")] = p**2
    rows[:, here.group("code")] = 2 * (p[:, None] >> np.arange(here.bits) & 1) - 1
    return rows


def _odometer(here: Coordinates, found: Weights) -> None:
    """The first token scores ln(N - p), the p others 0: in softmax each of those weighs 1/N. Its value, N
    times its move, is added up; the first token's value is 0."""
    name = "blocks.0.attn"
    found[f"{name}.W_Q"][0, here.at("sink"), 0] = 1
    found[f"{name}.W_K"][0, here.at("begin"), 0] = 1
    found[f"{name}.W_V"][0, here.at("move"), 0] = here.context
    found[f"{name}.W_O"][0, 0, here.at("place")] = 1


def _rulers(here: Coordinates, found: Weights) -> None:
    """Score `beta (2 x k - k^2)`: best at the index k nearest to x. The value is the code of that index."""
    name, beta = "blocks.1.attn", scale_for(pointing_gap(here.context))
    for head, ruler in enumerate(RULERS):
        sign = 1 if ruler.endswith("+") else -1
        found[f"{name}.W_Q"][head, here.at("place"), 0] = 2 * beta * sign
        if ruler.startswith("wrote"):
            found[f"{name}.W_Q"][head, here.at("move"), 0] = -2 * beta * sign
        found[f"{name}.b_Q"][head, 1] = -beta
        found[f"{name}.W_K"][head, here.at("index"), 0] = 1
        found[f"{name}.W_K"][head, here.at("square"), 1] = 1
        for bit in range(here.bits):
            found[f"{name}.W_V"][head, here.at("code", bit), bit] = 1
            found[f"{name}.W_O"][head, bit, here.at(ruler, bit)] = 1


def _last_write(here: Coordinates, found: Weights) -> None:
    """All m = 2 bits digits agree: score `A m + index`; some do not: at most `A (m - 2) + index`. The first
    token scores `A (m - 1)`, so it wins where nothing matches. With A = N, larger than any index, all gaps
    are at least 1. The first token's own digits, all -1 since its cell is 0, are cancelled by `begin`."""
    name, beta = "blocks.2.attn", scale_for(1.0)
    asked, told = here.group("here+", "here-"), here.group("wrote+", "wrote-")
    m, A = len(asked), here.context
    for digit, (query, key) in enumerate(zip(asked, told, strict=True)):
        found[f"{name}.W_Q"][0, query, digit] = beta * A
        found[f"{name}.W_K"][0, key, digit] = 1
        found[f"{name}.W_K"][0, here.at("begin"), digit] = 1
    found[f"{name}.b_Q"][0, m] = beta
    found[f"{name}.W_K"][0, here.at("index"), m] = 1
    found[f"{name}.b_Q"][0, m + 1] = beta * A * (m - 1)
    found[f"{name}.W_K"][0, here.at("begin"), m + 1] = 1
    for place, symbol in enumerate(here.vocabulary.symbols):
        found[f"{name}.W_V"][0, here.at("symbol", symbol), place] = 1
        found[f"{name}.W_O"][0, place, here.at("read", symbol)] = 1


def _table(here: Coordinates, found: Weights) -> None:
    """A unit `relu(state + read - 1)` for each pair; what it puts out is the rule's right-hand side."""
    words, name = here.vocabulary, "blocks.2.mlp"
    rules = {(state, symbol): rest for state, symbol, *rest in words.rules}
    pairs = [(state, symbol) for state in words.states for symbol in words.symbols]
    for unit, (state, symbol) in enumerate(pairs):
        found[f"{name}.W_in"][[here.at("state", state), here.at("read", symbol)], unit] = 1
        found[f"{name}.b_in"][unit] = -1
        if (state, symbol) in rules:
            new, write, move = rules[state, symbol]
            to = [here.at("next state", new), here.at("next symbol", write), here.at("next move", move)]
        else:
            to = [here.at("halt")]
        found[f"{name}.W_out"][unit, to] = 1


def _unembedding(here: Coordinates) -> NDArray[np.float32]:
    """A step scores one for its state, one for its symbol, one for its move: 3 is only reached by the right
    one. Tokens that only write are never generated; before the prompt is over all logits are 0."""
    words = here.vocabulary
    columns = np.zeros((here.width, len(words.tokens)), np.float32)
    columns[here.at("halt"), HALT] = 3
    for number, token in enumerate(words.tokens):
        if token is not None and token.state is not None:
            parts = (("next state", token.state), ("next symbol", token.write), ("next move", token.move))
            columns[[here.at(*part) for part in parts], number] = 1
    return columns
