"""The claim that residual layers would do as well (section 4.1): Theorem D.6 for them, each constant compared
with noise that nearly attains it."""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tapegrad.machines.library import ready
from tapegrad.machines.model import TuringMachine
from tapegrad.networks.form import Dense, Matrix
from tapegrad.networks.heads import Attention, Block, Decoder
from tapegrad.targets.transformer import TransformerNet
from tapegrad.targets.transformer.exactness import one_norm
from tapegrad_papers.ledger import Outcome, holds
from tapegrad_papers.wei import PAPER
from tapegrad_papers.wei.attack import attack
from tapegrad_papers.wei.blocks import Chain
from tapegrad_papers.wei.chains import transformer_chain
from tapegrad_papers.wei.hidden import Matrices, noisy, transformer, with_noise
from tapegrad_papers.wei.margins import margin_constants
from tapegrad_papers.wei.problems import transformer_problem
from tapegrad_papers.wei.remarks import STEPS, WORD, apart, verdicts, written_out
from tapegrad_papers.wei.residual import ResidualCorrection, residual, residual_chain
from tapegrad_papers.wei.theorem_d_6 import even_ones
from tapegrad_papers.wei.tight import limits
from tapegrad_papers.wei.watched import WatchedDecoder

Vector = NDArray[np.float64]

SMALL = 1e-4
"""Noise with which constants are compared: small enough for first order."""


# zeta(z, u) with its parameters P, p, V_1, c_1, V_2, c_2, read off a residual layer.


def _correcting(layer: Block) -> Matrices:
    first, second, third = (own.map.dense() for own in layer.feed_forward)
    width = len(third)
    carrying = np.asarray(first.weight)[width:], np.asarray(first.bias)[width:]
    rest = (part for own in (second, third) for part in (own.weight, own.bias))
    return [np.asarray(part, float) for part in (*carrying, *rest)]


def _zeta(xi: Matrices, z: Vector, u: Vector) -> Vector:
    P, p, V_1, c_1, V_2, c_2 = xi
    carried = np.maximum(P @ u + p, 0)
    return u + V_2 @ np.maximum(V_1 @ np.append(z, carried) + c_1, 0) + c_2


def _restored(xi: Matrices, radius: float) -> tuple[float, float]:
    """For bits, and z that is off by the radius in one coordinate, and any u: the largest error that is left;
    and the same with twice the radius."""
    random = np.random.default_rng(0)
    width = len(xi[-1])
    worst = []
    for distance in (radius, 2 * radius):
        errors = []
        for trial in range(40):
            bits = random.integers(0, 2, width).astype(float)
            noise = distance * random.choice([-1.0, 1.0]) * np.eye(width)[random.integers(width)]
            u = 10.0 ** (trial % 4) * random.normal(size=width)
            errors.append(float(np.abs(_zeta(xi, bits + noise, u) - bits).max()) / max(1, np.abs(u).max()))
        worst.append(max(errors))
    return worst[0], worst[1]


def _share_of_kappa(xi: Matrices, correction: ResidualCorrection) -> tuple[float, float]:
    """The largest change of zeta by noise in xi, as a share of kappa_xi: by the worst noise there is for one
    coordinate with z = 0.76 and u = 0.65, and the largest by random noise anywhere.

    There every unit of V_1 can be pushed the way that raises the output: both cuts are on, relu(u) is on and
    falls, relu(-u) is at 0 and rises. Every change is of rank one.
    """
    random = np.random.default_rng(1)
    P, _, V_1, _, V_2, _ = xi
    width = len(xi[-1])

    def share(noise: Matrices, z: Vector, u: Vector) -> float:
        change = _zeta(with_noise(xi, noise, SMALL), z, u) - _zeta(xi, z, u)
        size = max(float(np.linalg.norm(np.append(z, u))), 1)
        return float(np.linalg.norm(change)) / (SMALL * size * correction.kappa(SMALL))

    def unit(noise: Matrices) -> Matrices:
        length = math.sqrt(sum(float((part**2).sum()) for part in noise))
        return [part / length for part in noise]

    one = np.eye(width)[0]
    z, u = 0.76 * one, 0.65 * one
    carried = np.maximum(P @ u, 0)
    units = np.maximum(V_1 @ np.append(z, carried) + xi[3], 0)
    pushes = V_2[0]
    first = pushes[-2 * width :] * (carried > 0)
    rank_one = ((first, u), (pushes, np.append(z, carried)), (one, units))
    worst = unit([part for left, right in rank_one for part in (np.outer(left, right), left)])
    others = [
        share(
            unit([random.normal(size=part.shape) for part in xi]),
            *(random.normal(size=(2, width)) * 10.0**size),
        )
        for size in (-1, 0, 1, 2)
    ]
    return share(worst, z, u), max(others)


# f_i, which gives (z, u), on vectors of a run: for layers whose attentions have all parameters 0.


def _computing(layer: Block) -> Block:
    """Gives z and u next to each other, in place of what the layer gives."""
    own = layer.feed_forward[0].map.dense()
    width = own.width
    one, none = np.eye(width), np.zeros((width, width))
    read = Matrix(np.block([[one, none, none], [none, one, -one]]), np.zeros(2 * width))
    return replace(layer, feed_forward=(Dense(own, "relu"), Dense(read, "linear")), adds_to=None)


def _weak_attention(value: NDArray[np.float64]) -> Attention:
    """One whose null key loses by a hair: every vector attends to itself, or to the one token there is."""
    rows, width = value.shape[0], value.shape[1] - 1
    hair = Matrix(np.zeros((1, width)), np.full(1, 1e-7))
    return Attention(hair, hair, Matrix(value[:, :-1], value[:, -1]), np.zeros(1), np.zeros(rows))


def _pair(layer: Block, h: Vector, token: Vector, noise: Matrices, size: float) -> Vector:
    """(z, u) with noise in the computing rows of W_1 and in the values of both attentions."""
    first, read = _computing(layer).feed_forward
    own = first.map.dense()
    width = own.width
    extra = np.pad(noise[0], ((0, 2 * width), (0, 0)))
    moved = Matrix(own.weight + size * extra[:, :-1], own.bias + size * extra[:, -1])
    decoder, encoder = (_weak_attention(size * part) for part in noise[1:])
    block = Block("", (Dense(moved, "relu"), read), decoder, encoder)
    running = WatchedDecoder(Decoder((block,), h, (), (), None), token[None])
    return running.step().hidden[-1]


def _shares_of_f(net: TransformerNet, chain: Chain, machine: TuringMachine, word: str) -> tuple[float, float]:
    """The largest change of (z, u) by the worst noise and by the worst error of h, as shares of what the
    layer's constants allow, over all layers without attention and all hidden vectors of a run."""
    tokens = net.start(machine.start(word)).tokens.astype(float)
    token = tokens[np.linalg.norm(tokens, axis=1).argmax()]
    running = WatchedDecoder(written_out(net), tokens)
    layers = [residual(block) for block in running.decoder.blocks]
    noise_share = gain_share = 0.0
    for _ in range(4):
        seen = running.step()
        for layer, bound, h in zip(layers, chain.blocks[:-1], [seen.start, *seen.hidden[:-1]], strict=True):
            if layer.attentions():
                continue
            own = layer.feed_forward[0].map.dense()
            width = own.width
            z = np.asarray(own.weight)[:width] @ h + np.asarray(own.bias)[:width]
            slope = np.vstack([np.asarray(own.weight)[:width] * (z > 0)[:, None], np.eye(width)])
            on = np.vstack([np.diag((z > 0).astype(float)), np.zeros((width, width))])
            reads = np.append(h, 1), np.append(h, 1), np.append(token, 1)
            parts = [np.linalg.norm(v) * moves for v, moves in zip(reads, (on, slope, slope), strict=True)]
            y = np.linalg.svd(np.hstack(parts))[0][:, 0]
            noise = [np.outer(moves.T @ y, v) for v, moves in zip(reads, (on, slope, slope), strict=True)]
            length = math.sqrt(sum(float((part**2).sum()) for part in noise))
            nothing = [np.zeros_like(part) for part in noise]
            before = _pair(layer, h, token, nothing, 0.0)
            direction = np.linalg.svd(slope)[2][0]
            for sign in (-1, 1):
                by_noise = _pair(layer, h, token, noise, sign * SMALL / length) - before
                by_error = _pair(layer, h + sign * SMALL * direction, token, nothing, 0.0) - before
                noise_share = max(noise_share, float(np.linalg.norm(by_noise)) / (SMALL * bound.noise(SMALL)))
                gain_share = max(gain_share, float(np.linalg.norm(by_error)) / (SMALL * bound.gain(SMALL)))
    return noise_share, gain_share


def _share_of_lambda(net: TransformerNet, chain: Chain, machine: TuringMachine, word: str) -> float:
    """The largest norm of a pair (z, u) in a run."""
    tokens = net.start(machine.start(word)).tokens.astype(float)
    decoder = written_out(net)
    running, largest = WatchedDecoder(decoder, tokens), 0.0
    for _ in range(8):
        seen = running.step()
        looks = {
            number: [look for look in seen.looks if look.block == number]
            for number in range(len(seen.hidden))
        }
        for number, (h, after) in enumerate(zip([seen.start, *seen.hidden[:-1]], seen.hidden, strict=True)):
            u = h + sum((look.weights @ look.values for look in looks[number]), np.zeros_like(h))
            largest = max(largest, float(np.linalg.norm(np.append(u, after))))
    return largest / chain.lambda_


def _at_the_limits(layer: Block, theta: float, xi: float, random: np.random.Generator) -> Block:
    """A residual layer with noise of these norms in what computes and in what corrects."""
    first, *_, last = (own.map.dense() for own in layer.feed_forward)
    width = len(last)
    attentions = [a for a in (layer.self_attention, layer.encoder_attention) if a is not None]
    sides = [side.dense() for a in attentions for side in (a.query, a.key, a.value)]
    computing = [np.asarray(part, float)[:width] for part in (first.weight, first.bias)]
    computing += [np.asarray(part, float) for side in sides for part in (side.weight, side.bias)]
    moved = iter(noisy(computing, theta, random, spread=True))
    P, p, V_1, c_1, V_2, c_2 = noisy(_correcting(layer), xi, random, spread=True)
    maps = [
        Matrix(np.vstack([next(moved), P]), np.append(next(moved), p)),
        Matrix(V_1, c_1),
        Matrix(V_2, c_2),
    ]
    own, encoder = (
        None
        if a is None
        else replace(a, **{side: Matrix(next(moved), next(moved)) for side in ("query", "key", "value")})
        for a in (layer.self_attention, layer.encoder_attention)
    )
    layers = tuple(replace(old, map=new) for old, new in zip(layer.feed_forward, maps, strict=True))
    return replace(layer, feed_forward=layers, self_attention=own, encoder_attention=encoder)


def _noisy_runs(
    net: TransformerNet, chain: Chain, machine: TuringMachine, word: str, runs: int
) -> tuple[float, int]:
    """With noise at the limits (D.7) and (D.8) in every layer: how far a hidden vector is off at most, as a
    share of `2 lambda kappa_xi |xi|` (Lemma D.8); and how many bits of hidden vectors are wrong."""
    constants = margin_constants(chain)
    theta, xi, _ = limits(constants)
    allowed = 2 * constants.lambda_ * constants.kappa_xi * xi
    random = np.random.default_rng(5)
    tokens = net.start(machine.start(word)).tokens.astype(float)
    plain = written_out(net)
    furthest, wrong = 0.0, 0
    for _ in range(runs):
        layers = tuple(_at_the_limits(residual(block), theta, xi, random) for block in plain.blocks)
        right, other = WatchedDecoder(plain, tokens), WatchedDecoder(replace(plain, blocks=layers), tokens)
        for _ in range(8):
            for h, moved in zip(right.step().hidden, other.step().hidden, strict=True):
                furthest = max(furthest, float(np.linalg.norm(moved - h)) / allowed)
                wrong += int(((moved > 0.5) != (h > 0.5)).sum())
    return furthest, wrong


@PAPER.claim("Residual layers (section 4.1)", "The theory also allows for residual feedforward layers")
def residual_layers(long: bool) -> Outcome:
    machine = ready("palindrome")
    net = transformer(machine, STEPS)
    plain, chain = written_out(net), residual_chain(net)
    with_residuals = replace(plain, blocks=tuple(map(residual, plain.blocks)))
    hidden, _ = apart(plain, with_residuals, net, machine, WORD)
    right, words = verdicts(with_residuals, net, machine, 3 if long else 2)
    # Theorem D.6's assumptions, each with something that comes near it.
    correction = chain.correction
    assert isinstance(correction, ResidualCorrection)
    xi = _correcting(with_residuals.blocks[0])
    restored, beyond = _restored(xi, correction.radius)
    kappa, kappa_elsewhere = _share_of_kappa(xi, correction)
    small = even_ones()
    assert isinstance(small.net, TransformerNet)
    assert isinstance(small.source, TuringMachine)
    small_chain = residual_chain(small.net)
    noise, gain = _shares_of_f(small.net, small_chain, small.source, "11")
    lambda_ = _share_of_lambda(small.net, small_chain, small.source, "11")
    furthest, wrong = _noisy_runs(net, chain, machine, WORD, 5 if long else 1)
    # What it costs.
    norms, bounds = [], []
    for e in (4, 8, 12):
        own = transformer(ready("increment"), 1 << e)
        blocks = written_out(own).blocks
        added = sum(one_norm(*residual(b).feed_forward) - one_norm(*b.feed_forward) for b in blocks)
        norms.append(added / (len(blocks) * own.layout.width))
        bounds.append([margin_constants(one).bound for one in (residual_chain(own), transformer_chain(own))])
    power = -float(np.polyfit(np.log([4, 8, 12]), np.log([low for low, _ in bounds]), 1)[0])
    checks = {
        "after every layer of every step hidden vectors are the same": hidden == 0,
        "the verdict is right on every word": right == words,
        "Definition D.1: zeta(z, u) are the bits for every z within the radius and every u": restored < 1e-12,
        "not so at twice the radius": beyond > 0.01,
        "Condition D.3: zeta changes by at most kappa_xi max(|(z, u)|, 1) |xi - xi'|": max(
            kappa, kappa_elsewhere
        )
        <= 1,
        "and not by 0.95 of it": kappa > 0.95,
        "(z, u) changes by at most kappa_theta lambda |theta - theta'|, and not by 0.75 of it": 0.75
        < noise
        <= 1,
        "and by at most mu |h - h'|, and not by 0.9 of it": 0.9 < gain <= 1,
        "Condition D.4: |(z, u)| <= lambda, and not 0.7 of it": 0.7 < lambda_ <= 1,
        "Lemma D.8: noise at every layer's limits leaves hidden vectors within 2 lambda kappa_xi |xi|": 0
        < furthest
        <= 1,
        "and no bit wrong": wrong == 0,
        "residual layers cost 6 for every coordinate of every layer in 1-norm, at any T": all(
            math.isclose(norm, 6.0) for norm in norms
        ),
        "the margin that is proved is more than half of that without them": all(
            0.5 * without < low < without for low, without in bounds
        ),
        "and falls like a power of log T": 0 < power < 1,
    }
    attacked = ""
    if long:
        lower = margin_constants(small_chain).bound
        upper = attack(transformer_problem(small.net, small.start("11"), residual_layers=True)).radius
        checks["an attack needs more than the bound, and does succeed"] = 0 < lower <= upper < 4
        attacked = f"; an attack needs {upper:.2g}, the bound is {lower:.2g}"
    return holds(
        checks,
        stated="the theory also allows for residual feedforward layers (no proof is given)",
        measured=f"T = {STEPS}: hidden vectors differ by {hidden:g}; {right} of {words} words right; worst "
        f"noise: {kappa:.3f} of kappa_xi, {noise:.3f} of kappa_theta, {gain:.3f} of mu; noise in every layer "
        f"moves hidden vectors by {furthest:.2g} of what Lemma D.8 allows; 1-norm {norms[0]:g} more for each "
        "coordinate and layer; margin "
        + ", ".join(f"{low / without:.2f}" for low, without in bounds)
        + " of that without them"
        + attacked,
        note="Theorem D.6 holds with u + W_3 relu(W_2 relu(W_1 u)) where W_1 and W_2 carry relu(u) and "
        "relu(-u) beside the correction and W_3 takes u away: u then comes out as 0 whatever its error, the "
        "radius is that of the plain correction, and f_i gives (z, u) in place of z. Behind W_3 there is no "
        "ReLU: with one a residual layer could clear nothing. The all-layer margin counts W_3 and the "
        "carrying rows.",
        kappa=kappa,
        noise=noise,
        gain=gain,
        lambda_share=lambda_,
        norms=norms,
        bounds=bounds,
    )
