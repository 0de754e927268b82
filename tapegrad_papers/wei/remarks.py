"""What the paper says of its transformers without a number: that softmax would do as well, and
that log log T bits are precise enough."""

import math
from dataclasses import replace
from itertools import product
from typing import Any

import jax
import numpy as np

from tapegrad._compile import compile
from tapegrad.machines.library import ready
from tapegrad.machines.model import LEFT, RIGHT, Rule, TuringMachine
from tapegrad.networks.heads import Decoder
from tapegrad.targets.transformer import TransformerNet
from tapegrad.targets.transformer.exactness import correction_of, stray_weight
from tapegrad_papers.ledger import Outcome, holds
from tapegrad_papers.wei import PAPER
from tapegrad_papers.wei.chains import transformer_chain
from tapegrad_papers.wei.hidden import transformer
from tapegrad_papers.wei.margins import layerwise_bound, margin_constants
from tapegrad_papers.wei.watched import WatchedDecoder

WORD, STEPS = "abba", 64


def written_out(net: TransformerNet) -> Decoder:
    """The decoder with three ReLU layers in each block."""
    return replace(net.decoder, blocks=tuple(block.expanded() for block in net.layers))


def _run(
    decoder: Decoder, net: TransformerNet, machine: TuringMachine, word: str, steps: int
) -> WatchedDecoder:
    """So many steps and the one that reads the first symbol, in double precision."""
    running = WatchedDecoder(decoder, net.start(machine.start(word)).tokens.astype(float))
    for _ in range(steps + 1):
        running.step()
    return running


def _length(machine: TuringMachine, word: str) -> int:
    """Steps until the machine halts."""
    return sum(1 for _ in machine.run(machine.start(word))) - 1


def verdicts(decoder: Decoder, net: TransformerNet, machine: TuringMachine, longest: int) -> tuple[int, int]:
    """How many words up to this length are decided rightly, and how many there are."""
    right = words = 0
    for letters in [w for n in range(longest + 1) for w in product("ab", repeat=n)]:
        word = "".join(letters)
        output = _run(decoder, net, machine, word, _length(machine, word)).output
        with np.errstate(invalid="ignore"):
            right += np.sign(net.theta_cls @ output) == (1 if word == word[::-1] else -1)
        words += 1
    return int(right), words


def apart(
    one: Decoder, other: Decoder, net: TransformerNet, machine: TuringMachine, word: str
) -> tuple[float, float]:
    """The largest difference of hidden vectors after any layer of any step, and of what any attention
    adds."""
    tokens = net.start(machine.start(word)).tokens.astype(float)
    first, second = WatchedDecoder(one, tokens), WatchedDecoder(other, tokens)
    hidden = attended = 0.0
    for _ in range(_length(machine, word) + 1):
        a, b = first.step(), second.step()
        hidden = max(hidden, *(float(np.abs(x - y).max()) for x, y in zip(a.hidden, b.hidden, strict=True)))
        for x, y in zip(a.looks, b.looks, strict=True):
            attended = max(attended, float(np.abs(x.weights @ x.values - y.weights @ y.values).max()))
    return hidden, attended


TURNS = 14


def there_and_back() -> TuringMachine:
    """Goes to and fro between two cells, and then to a third, which is blank. Places are numbered so that
    the first and the third differ in one bit: half of all earlier steps nearly match, which is the worst
    case for softmax."""
    rules = {}
    for turn, symbol in product(range(2 * TURNS + 1), ("_", "x")):
        after = "look" if turn == 2 * TURNS else f"turn {turn + 1}"
        rules[f"turn {turn}", (symbol,)] = Rule(
            ("x",), (LEFT if turn % 2 and turn < 2 * TURNS else RIGHT,), after
        )
    rules["look", ("_",)] = Rule(("_",), (RIGHT,), "look again")
    rules["look", ("x",)] = Rule(("x",), (RIGHT,), "no")
    rules["look again", ("_",)] = Rule(("_",), (RIGHT,), "yes")
    rules["look again", ("x",)] = Rule(("x",), (RIGHT,), "no")
    return TuringMachine(
        rules, "turn 0", accept=frozenset({"yes"}), reject=frozenset({"no"}), name="there and back"
    )


@PAPER.claim("Softmax (section 4.1)", "The theory also applies to the standard softmax attention")
def softmax(long: bool) -> Outcome:
    machine, palindrome = there_and_back(), ready("palindrome")
    steps = 2 * TURNS + 4
    hard, soft, deciding = (
        compile(own, "transformer", form="paper", steps=T, attention=kind).net
        for own, T, kind in (
            (machine, steps, "hardmax"),
            (machine, steps, "softmax"),
            (palindrome, STEPS, "softmax"),
        )
    )
    assert isinstance(hard, TransformerNet)
    assert isinstance(soft, TransformerNet)
    assert isinstance(deciding, TransformerNet)
    right, words = verdicts(written_out(deciding), deciding, palindrome, 4 if long else 3)
    plain, smooth = written_out(hard), written_out(soft)
    hidden, attended = apart(plain, smooth, hard, machine, "")
    assert smooth.temperature is not None
    blunt = apart(plain, replace(smooth, temperature=smooth.temperature / 2), hard, machine, "")[0]
    allowed = stray_weight(steps, soft.temperature)
    exponents = range(4, 13, 1 if long else 4)
    betas, bounds = [], []
    for e in exponents:
        net = compile(ready("increment"), "transformer", form="paper", steps=1 << e, attention="softmax").net
        assert isinstance(net, TransformerNet)
        betas.append(net.temperature)
        chain = transformer_chain(net)
        bounds.append((margin_constants(chain).bound, layerwise_bound(chain)))
    lows = [low for low, _ in bounds]
    power = -np.polyfit(np.log(exponents), np.log(lows), 1)[0] if min(lows) > 0 else math.nan
    radius = correction_of(soft.layers).low
    checks = {
        "the verdict is right on every word": right == words,
        "after every layer of every step hidden vectors are those of hard-max": hidden < 1e-9,
        "attentions differ from hard-max by at most N exp(-beta), half of the correction's radius": attended
        <= allowed
        and math.isclose(allowed, radius / 2),
        "and by more than a quarter of that": attended > allowed / 4,
        "with half of beta hidden vectors are wrong": blunt > 0.1,
        "beta = ln(2 N / radius) grows like log T": all(
            math.isclose(beta, math.log(2 * ((1 << e) + 2) / radius))
            for beta, e in zip(betas, exponents, strict=True)
        ),
        "the margin that is proved with softmax falls like a power of log T": 0 < power < 4
        and all(0 < low <= layer for low, layer in bounds),
    }
    return holds(
        checks,
        stated="the theory also applies to the standard softmax attention (no proof is given)",
        measured=f"{words} words right; T = {steps}: attentions off by {attended:.3f} of at most "
        f"{allowed:.3f}, hidden "
        f"vectors by {hidden:.1g} after the corrections (with half of beta by {blunt:.2f}); margin like (log "
        f"T)^-{power:.2f}",
        note="beta is a constant of the architecture here. As a factor of W_Q it would multiply that part of "
        "alpha by "
        f"{betas[-1]:.1f} at T = {1 << exponents[-1]:,}, and alpha stays poly(k, |A|, log T).",
        attended=attended,
        allowed=allowed,
        blunt=blunt,
        betas=betas,
        bounds=bounds,
        margin_power=float(power),
    )


FRACTION = 2
"""Bits after the point: the corrections have thresholds 1/4 and 3/4."""


def _parameters(decoder: Decoder) -> np.ndarray:
    return np.concatenate([np.asarray(leaf, float).reshape(-1) for leaf in jax.tree.leaves(_floats(decoder))])


def _floats(decoder: Decoder) -> list[Any]:
    """All weights, biases, null keys and null values."""
    found = []
    for block in decoder.blocks:
        for layer in block.feed_forward:
            own = layer.map.entries()
            found += [own.values, own.bias]
        for attention in block.attentions():
            for side in (attention.query, attention.key, attention.value):
                found += [side.entries().values, side.entries().bias]
            found += [attention.null_key, attention.null_value]
    return found


def _in_fixed_point(decoder: Decoder, whole: int, fraction: int) -> Decoder:
    """Every parameter as a number with so many bits before and after the point: rounded, and cut off at the
    largest."""
    top = 2.0**whole - 2.0**-fraction

    def rounded(leaf: Any) -> Any:
        if not np.issubdtype(np.asarray(leaf).dtype, np.floating):
            return leaf
        return np.clip(np.round(np.asarray(leaf, float) * 2**fraction) / 2**fraction, -top, top)

    return replace(decoder, blocks=jax.tree.map(rounded, decoder.blocks))


@PAPER.claim("Precision (section 1)", "The construction only uses log log T bits of precision")
def precision(long: bool) -> Outcome:
    machine = ready("palindrome")
    rows = []
    for e in range(4, 17, 1 if long else 4):
        decoder = written_out(transformer(ready("increment"), 1 << e))
        values = _parameters(decoder)
        largest = float(np.abs(values).max())
        exact = bool((values * 2**FRACTION == np.round(values * 2**FRACTION)).all())
        rows.append(
            {"T": 1 << e, "exact": exact, "largest": largest, "whole": math.floor(math.log2(largest)) + 1}
        )
    net = transformer(machine, STEPS)
    decoder = written_out(net)
    whole = math.floor(math.log2(np.abs(_parameters(decoder)).max())) + 1
    longest = 4 if long else 3
    enough = verdicts(_in_fixed_point(decoder, whole, FRACTION), net, machine, longest)
    fewer = {
        "one bit less before the point": verdicts(
            _in_fixed_point(decoder, whole - 1, FRACTION), net, machine, longest
        ),
        "one bit less after it": verdicts(
            _in_fixed_point(decoder, whole, FRACTION - 1), net, machine, longest
        ),
    }
    slack = [row["whole"] - math.log2(math.log2(row["T"])) for row in rows]
    checks = {
        "all parameters have two bits after the point, for every T": all(row["exact"] for row in rows),
        "bits before the point are log2 log2 T and at most 2 more, up to T = 65,536": all(
            0 < s <= 2.5 for s in slack
        ),
        "in that format every verdict is right": enough[0] == enough[1],
        "with one bit less on either side verdicts are wrong": all(
            right < words for right, words in fewer.values()
        ),
    }
    return holds(
        checks,
        stated="the construction only uses log log T precision",
        measured="; ".join(f"T = {row['T']:,}: largest parameter {row['largest']:g}" for row in rows)
        + f"; palindromes up to {longest} letters with {whole} + {FRACTION} bits: "
        f"{enough[0]} of {enough[1]} right, "
        + ", ".join(f"{right} with {what}" for what, (right, _) in fewer.items()),
        note="Precision of the parameters. The two bits after the point are those of corrections at 1/4 and "
        "3/4; with "
        "the paper's 1/3 and 2/3 no binary number is exact.",
        rows=rows,
        bits={"whole": whole, "fraction": FRACTION},
        fewer=fewer,
    )
