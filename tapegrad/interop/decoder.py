"""From a net of target `transformer` to the decoder-only network of the same machine."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tapegrad._compile import Compiled
from tapegrad.errors import InputError, Refused
from tapegrad.interop.exporting import net_of
from tapegrad.machines.model import LEFT, RIGHT, Configuration
from tapegrad.networks import form
from tapegrad.targets.net import Net
from tapegrad.targets.transformer.memory_net import ADVICE, NO_FORM, MemoryNet
from tapegrad.targets.transformer.net import TransformerNet

# The tokens: each says what is written and where the head goes, and steps of the machine also the new state.
#
# An input is told as a writer would write it: from right to left, then back to the cell of the head. The last
# token of a prompt enters the start state. So the prompt needs no rules of its own: head position and tape
# content follow from it as they follow from the machine's steps.


BEGIN, HALT = 0, 1
"""Numbers of the first token of every prompt, and of the token that ends a run."""

MOVES = {LEFT: "left", 0: "stay", RIGHT: "right"}


@dataclass(frozen=True)
class Token:
    """`state` is None for tokens that only write."""

    state: str | None
    write: str
    move: int

    def __str__(self) -> str:
        enters = "" if self.state is None else f", enter {self.state}"
        return f"write {self.write}, {MOVES[self.move]}{enters}"


Rules = tuple[tuple[str, str, str, str, int], ...]
"""State, symbol, new state, symbol written, move."""


@dataclass(frozen=True)
class Vocabulary:
    """BEGIN, HALT, a token for each symbol and direction to write inputs with, a token for each way into the
    start state, and a token for each outcome of a rule."""

    states: tuple[str, ...]
    symbols: tuple[str, ...]
    blank: str
    start_state: str
    rules: Rules

    @cached_property
    def tokens(self) -> tuple[Token | None, ...]:
        """By number; None for BEGIN and HALT."""
        writing = [Token(None, symbol, move) for move in (LEFT, RIGHT) for symbol in self.symbols]
        entering = [Token(self.start_state, symbol, RIGHT) for symbol in self.symbols]
        stepping = [Token(new, write, move) for _, _, new, write, move in self.rules]
        return (None, None, *dict.fromkeys([*writing, *entering, *stepping]))

    @cached_property
    def number(self) -> dict[Token, int]:
        """The number of a token."""
        return {token: number for number, token in enumerate(self.tokens) if token is not None}

    @property
    def names(self) -> tuple[str, ...]:
        """Every token in words, by number."""
        return ("begin", "halt", *(str(token) for token in self.tokens[2:]))

    def prompt(self, first: Configuration) -> list[int]:
        """The first configuration as tokens."""
        if first.state != self.start_state:
            raise InputError(f"the net starts in state {self.start_state!r}, not in {first.state!r}")
        return [BEGIN, *(self.number[token] for token in self._writing(first))]

    def _writing(self, first: Configuration) -> Iterator[Token]:
        tape, before_head = first.tapes[0], first.heads[0] - 1
        at = before_head
        if tape:
            at = max(tape)
            while at >= min(tape):
                yield Token(None, tape.get(at, self.blank), LEFT)
                at -= 1
        while at != before_head:
            move = RIGHT if at < before_head else LEFT
            yield Token(None, tape.get(at, self.blank), move)
            at += move
        yield Token(self.start_state, tape.get(at, self.blank), RIGHT)

    def steps(self, numbers: Sequence[int]) -> list[Token]:
        """Generated tokens as steps of the machine, up to HALT."""
        found = []
        for number in numbers:
            token = self.tokens[number] if 0 <= number < len(self.tokens) else None
            if token is None or token.state is None:
                break
            found.append(token)
        return found

    def configurations(self, first: Configuration, numbers: Sequence[int]) -> Iterator[Configuration]:
        """The machine's configurations that a run of generated tokens tells, the first one included."""
        current = first
        yield current
        for token in self.steps(numbers):
            tape = dict(current.tapes[0]) | {current.heads[0]: token.write}
            shown = {cell: symbol for cell, symbol in tape.items() if symbol != self.blank}
            assert token.state is not None
            current = Configuration(token.state, (shown,), (current.heads[0] + token.move,))
            yield current


# What each coordinate of the residual stream means, and what each head does.


RULERS = ("here+", "here-", "wrote+", "wrote-")
"""The head's cell after a token, and the cell that the token wrote to: each as the digits of its positive and
of its negative part, of which one is 0."""


@dataclass(frozen=True)
class Coordinates(form.Coordinates):
    """The residual stream of the network for a vocabulary and a context length."""

    vocabulary: Vocabulary
    context: int

    @property
    def bits(self) -> int:
        """Digits of a token's index."""
        return (self.context - 1).bit_length()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Every coordinate by number, as `state[A]`."""
        return tuple(f"{group}[{rest[0]}]" if rest else str(group) for group, *rest in self._index)

    def keys(self) -> list[form.Key]:
        """The key of every coordinate, in order."""
        states, symbols = self.vocabulary.states, self.vocabulary.symbols
        keys: list[form.Key] = [("begin",), ("move",), *(("state", q) for q in states)]
        keys += [("symbol", a) for a in symbols]
        keys += [("sink",), ("index",), ("square",), *(("code", bit) for bit in range(self.bits))]
        keys += [("place",), *((ruler, bit) for ruler in RULERS for bit in range(self.bits))]
        keys += [("read", a) for a in symbols]
        keys += [("next state", q) for q in states] + [("next symbol", a) for a in symbols]
        keys += [*(("next move", move) for move in MOVES), ("halt",)]
        return keys


MEANING = {
    "begin": "token embedding: this is the first token",
    "move": "token embedding: -1, 0 or +1, where the head goes",
    "state": "token embedding: the state that the token enters; none for tokens that only write",
    "symbol": "token embedding: the symbol that the token writes (the first token: the blank)",
    "sink": "position embedding: ln(N - p), the score of the first token when moves are counted",
    "index": "position embedding: p",
    "square": "position embedding: p^2",
    "code": "position embedding: the binary digits of p, as -1 and +1",
    "place": "block 0: the head's cell after this token, the sum of all moves, up to rounding",
    "here+": "block 1: binary digits of the head's cell, 0 if that is negative, exact",
    "here-": "block 1: binary digits of minus the head's cell, 0 if that is negative, exact",
    "wrote+": "block 1: binary digits of the cell that this token wrote to, likewise",
    "wrote-": "block 1: binary digits of minus the cell that this token wrote to, likewise",
    "read": "block 2: the symbol under the head",
    "next state": "block 2, MLP: the state that the rule enters",
    "next symbol": "block 2, MLP: the symbol that the rule writes",
    "next move": "block 2, MLP: where the rule moves the head",
    "halt": "block 2, MLP: there is no rule",
}
"""Every group of coordinates: who writes it, and what it means."""


@dataclass(frozen=True)
class Head:
    """An attention head: where it is and what it does."""

    block: int
    head: int
    name: str
    does: str


HEADS = (
    Head(0, 0, "odometer", "weighs all tokens alike and adds up their moves: the head's cell"),
    Head(1, 0, "ruler here+", "attends to token number x, x the head's cell, and copies its index exactly"),
    Head(1, 1, "ruler here-", "attends to token number -x likewise; to the first token if x > 0"),
    Head(1, 2, "ruler wrote+", "the same for the cell that this token wrote to, x minus its own move"),
    Head(1, 3, "ruler wrote-", "the same for minus that cell"),
    Head(2, 0, "last write", "attends to the last token that wrote to the head's cell and copies its symbol; "
         "to the first token, which stands for the blank, if none did"),
)  # fmt: skip
"""All heads that do something; the others of the same blocks have weights 0."""


def decoder_of(compiled: Compiled | Net, context: int) -> Coordinates:
    """The vocabulary and the residual stream for the machine that the net's matrices hold."""
    net = net_of(compiled)
    if isinstance(net, MemoryNet):
        raise Refused(NO_FORM.format("TransformerLens"), advice=ADVICE)
    if not isinstance(net, TransformerNet):
        raise Refused(
            f"only nets of target 'transformer' become transformers, and this one is of {net.target!r}"
        )
    words = Vocabulary(net.layout.states, net.layout.symbols, net.blank, net.start_state, rules_of(net))
    return Coordinates(words, context)


def rules_of(net: TransformerNet) -> Rules:
    """The machine's table, read off the matrix that applies it (Lemma C.1) and off `theta_halt`: a column for
    each pair of state and symbol, with ones in the rows of what follows."""
    layout, table = net.layout, np.asarray(net.layers[1].feed_forward[0].map.dense().weight)
    found = []
    for state in layout.states:
        for symbol in layout.symbols:
            pair = layout.at("pair", state, symbol)
            if not net.theta_halt[pair]:
                new = layout.states[int(table[layout.group("st"), pair].argmax())]
                write = layout.symbols[int(table[layout.group("sym2"), pair].argmax())]
                move = int(table[layout.at("carry"), pair] - table[layout.at("borrow"), pair])
                found.append((state, symbol, new, write, move))
    return tuple(found)


# How sharp softmax must be to be hard, and how long a context single precision can carry.
#
# The network of `tapegrad.interop.decoder.weights` uses softmax in two ways.
#
# *Pointing.* The best score beats the others by a gap g. Scaled by beta with `beta g >= 150 ln 2`, every
# other weight is at most `2^-150`, half the smallest float: it is rounded to 0, the best weight is 1, and
# what is copied is copied bit for bit. No error is left that could add up over layers or steps.
#
# *Counting.* Head 0 of block 0 gives each of p tokens the weight 1/N, by a score of ln(N - p) for the first
# token. Here rounding stays. With u = 2^-24, the weights are off by `(2 ln N + p + 9) u` relatively
# (logarithm, exp, sum of p + 1 terms, quotient), and summing p moves adds `(p + 1) u`; so the count, at most
# p, is off by at most `n (2 n + 2 ln n + 10) u` for a context of n tokens.
#
# The count x is then used to point at token number |x|: score `2 x k - k^2`, whose gap is 1 for whole x, and
# `1 - 2 e` for an x that is off by e. Products and sums in these scores, at most 3 n^2 in size, are off by
# `8 n^2 u` at most.


UNIT_ROUNDOFF = 2.0**-24
UNDERFLOW = 150 * math.log(2)
"""exp(-UNDERFLOW) is half the smallest positive float."""
LEAST_GAP = 1 / 2
EXACT_INTEGERS = 1 << 24


def count_error(context: int) -> float:
    """How far the count of moves may be off."""
    return context * (2 * context + 2 * math.log(context) + 10) * UNIT_ROUNDOFF


def pointing_gap(context: int) -> float:
    """By how much, at least, the right token beats any other when a count points at it."""
    return 1 - 2 * count_error(context) - 2 * 8 * context**2 * UNIT_ROUNDOFF


def largest_context() -> int:
    """The longest context for which the gap is still LEAST_GAP."""
    context = 2
    while pointing_gap(context + 1) >= LEAST_GAP:
        context += 1
    return context


def scale_for(gap: float) -> float:
    """The power of two (which scales scores without rounding) that makes softmax hard."""
    return 2.0 ** math.ceil(math.log2(UNDERFLOW / gap))


def check_context(context: int, position_bits: int) -> None:
    """Refuses contexts that single precision cannot carry exactly."""
    if context < 2:
        raise Refused(f"a context of {context} tokens holds no run")
    if context > largest_context():
        raise Refused(
            f"in single precision a context of {context} tokens is too long to count moves exactly",
            advice=f"At most {largest_context()} tokens, input and steps together.",
        )
    largest_score = scale_for(1.0) * (context * (2 * position_bits + 1))
    assert largest_score < EXACT_INTEGERS, "follows from the bound above"


# A decoder-only transformer whose next token is the machine's next step, in the names of HookedTransformer.
#
# Three blocks, no layer norm, causal softmax attention. The paper's construction (Theorem 4.1) finds the last
# write to a cell by a binary search over time with an attention for each bit; a decoder that sees its own
# tokens can do with less:
#
#     block 0  odometer: the head's cell is the sum of all moves so far
#     block 1  rulers: that cell, and the cell written to, as exact binary digits, copied from the position
#              embedding of the token with that number (a head never gets further than there are tokens)
#     block 2  last write: of the tokens that wrote to the head's cell, the latest; then the table, as an MLP
#              with a unit for each pair of state and symbol
#
# Why each is exact is derived in `tapegrad.interop.decoder.sharpness`.


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
