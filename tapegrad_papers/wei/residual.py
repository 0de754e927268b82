"""Residual feed-forward layers (section 4.1), and Theorem D.6 for them.

A layer is `u + W_3 relu(W_2 relu(W_1 u + b_1) + b_2) + b_3`, with u what the attentions leave. (With a ReLU
behind W_3 nothing could ever be cleared.) Next to the units of the plain layer stand two more for each
coordinate, which carry relu(u) and relu(-u) to W_3, and W_3 takes u away again:

    z = relu(W_1 u + b_1)                              computes: theta_i, and the attentions
    u + zeta(z) - relu(u) + relu(-u)                   corrects: xi_i, the carrying rows of W_1, and W_2, W_3

So u passes beside the correction, and nothing of it is left: whatever u is, what comes out is zeta(z). That
is Definition D.1 for the pair g_i = (z, u), with the radius of zeta. With f_i giving the pair, Lemmas D.7 to
D.9 go through as they stand, with the constants below.
"""

import math
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any

import numpy as np

from tapegrad.networks.form import Dense, Matrix
from tapegrad.networks.heads import Block
from tapegrad.targets.transformer import TransformerNet
from tapegrad_papers.wei.blocks import Chain, Correction
from tapegrad_papers.wei.chains import TransformerBlock, transformer_chain


def residual(block: Block) -> Block:
    """A layer of three ReLU layers, of which two correct, as a residual one that computes the same."""
    first, cuts, difference = (layer.map.dense() for layer in block.feed_forward)
    width = len(difference)
    one, nothing = np.eye(width), np.zeros(2 * width)
    beside = np.zeros((len(cuts), 2 * width))
    maps = (
        Matrix(np.vstack([first.weight, one, -one]), np.append(first.bias, nothing)),
        Matrix(
            np.block([[cuts.weight, beside], [np.zeros((2 * width, width)), np.eye(2 * width)]]),
            np.append(cuts.bias, nothing),
        ),
        Matrix(np.hstack([difference.weight, -one, one]), np.asarray(difference.bias, float)),
    )
    layers = tuple(Dense(own, kind) for own, kind in zip(maps, ("relu", "relu", "linear"), strict=True))
    return replace(block, feed_forward=layers, adds_to=np.arange(width))


@dataclass(frozen=True)
class ResidualBlock(TransformerBlock):
    """f_i, which gives the pair (z, u). An error e of u is one of `(W_1 e, e)` in the pair: `|W_1|` becomes
    `sqrt(|W_1|^2 + 1)`."""

    def _slope(self, s: float) -> float:
        return math.hypot(self.first.norm + s, 1)

    def noise(self, s: float) -> float:
        return self._noise(self._slope(s), s)

    def gain(self, s: float) -> float:
        return self._slope(s) * self._widening(s)


@dataclass(frozen=True)
class ResidualCorrection(Correction):
    """`(z, u) -> u + V_2 relu(V_1 (z, a) + c_1) + c_2` with `a = relu(P u + p)`, P u = (u, -u)."""

    def kappa(self, s: float) -> float:
        """kappa_xi of Condition D.3, for all z and u. With G = max(|(z, u)|, 1), s_0, s_1, s_2 the noise of
        (P, p), (V_1, c_1), (V_2, c_2):

        - a errs by `s_0 sqrt(2) G`; `relu(u) - relu(-u)` by no more than the larger error of the two, and so
          does what V_2 makes of it.
        - The units of V_1 err by `s_1 sqrt(2) (1 + s) G` besides, which V_2 magnifies by |V_2| at most; its
          parts are the difference of two cuts, and (-1, 1) for each coordinate.
        - Unperturbed they are at most `max(|cuts|, 1) |(z, u)|`, since c_1 <= 0 and the rest is carried.
        """
        assert (self.cuts.bias <= 0).all()
        last = math.hypot(self.difference.norm, math.sqrt(2))
        units = max(self.cuts.norm, 1) + math.sqrt(2) * s * math.hypot(1 + s, 1)
        return math.hypot(math.sqrt(2) * (1 + s) * last, math.sqrt(2), units, 1)


@dataclass(frozen=True)
class ResidualChain(Chain):
    """The net as appendix D sees it, with pairs (z, u) for hidden vectors before a correction."""

    @property
    def lambda_(self) -> float:
        pairs = (math.hypot(own.inner_norm, after.input_norm) for own, after in pairwise(self.blocks))
        return max(1.0, self.final_norm, *pairs)


def residual_chain(net: TransformerNet) -> Chain:
    """What `transformer_chain` is for the net without residual layers."""
    plain = transformer_chain(net)
    *blocks, read_out = plain.blocks
    own = [ResidualBlock(**_fields(block)) for block in blocks]
    correction = ResidualCorrection(**_fields(plain.correction))
    return ResidualChain(**_fields(plain) | {"blocks": (*own, read_out), "correction": correction})


def _fields(instance: Any) -> dict[str, Any]:
    return {own.name: getattr(instance, own.name) for own in fields(instance)}
