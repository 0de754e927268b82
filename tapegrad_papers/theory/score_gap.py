"""How far attention scores are apart, and how much they move: when the attended positions stay the same."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import Refused
from tapegrad.networks.form import Affine as Map
from tapegrad.networks.form import Attention, Matrix
from tapegrad_papers.theory.affine import Affine, with_one


@dataclass(frozen=True)
class Gaps:
    """Over all hidden vectors of bits: by how much a full match beats any other key, and by how much the
    null key is beaten by a full match and beats the rest, whichever is less."""

    keys: float
    null: float


def score_gaps(attention: Attention) -> Gaps:
    """Read off the matrices. Every row of query and key depends on one bit, so that a row has at most two
    values on either side. The best product of a row must be the same for both values of the query: then
    the best score is a constant S, and a key with any row that is not best is below it by that row's gap."""
    queries, keys = _row_values(attention.query), _row_values(attention.key)
    best, gap, null = 0.0, np.inf, 0.0
    for query, key, null_key in zip(queries, keys, attention.null_key, strict=True):
        products = [sorted({q * k for k in key}, reverse=True) for q in query]
        if len({p[0] for p in products}) > 1 or (null_key != 0 and len(query) > 1):
            raise Refused("the scores of this attention have no gap that its matrices show")
        best += products[0][0]
        null += query[0] * float(null_key)
        gap = min([gap, *(p[0] - p[1] for p in products if len(p) > 1)])
    return Gaps(float(gap), float(min(best - null, null - (best - gap))))


def _row_values(side: Map | Matrix) -> list[list[float]]:
    own = side.entries()
    if (np.bincount(own.rows) > 1).any():
        raise Refused("a row of this attention reads more than one bit")
    ends = np.bincount(own.rows, own.values, len(own)) + own.bias
    return [sorted({float(low), float(high)}) for low, high in zip(own.bias, ends, strict=True)]


@dataclass(frozen=True, eq=False)
class Scores:
    """The scores of one attention under noise."""

    query: Affine
    key: Affine
    K_0: NDArray[np.float64]
    gaps: Gaps

    @classmethod
    def of(cls, attention: Attention, leeway: float | None = None) -> "Scores":
        """From the paper's matrices. `leeway`, where given, is how far scores may move against each other;
        hard-max lets them move as far as their gaps."""
        return cls(
            Affine.measured(attention.query),
            Affine.measured(attention.key),
            np.asarray(attention.null_key, np.float64),
            score_gaps(attention) if leeway is None else Gaps(leeway, leeway),
        )

    @cached_property
    def _null_slope(self) -> float:
        """`|W_Q^T K_0|`: how much the null score changes with the hidden vector that asks."""
        share = self.query.values * self.K_0[self.query.rows]
        return float(np.linalg.norm(np.bincount(self.query.columns, share))) if len(share) else 0.0

    def stay(self, s: float, asks: tuple[float, float], answers: tuple[float, float]) -> bool:
        """Whether the same positions win, for noise s in each matrix and pairs (norm, error) of the vector
        that asks and of those that answer.

        With q = W_Q h + b_Q and k likewise, `dq = s |(h, 1)| + (|W_Q| + s) d`, and a score moves by at most
        `|q| dk + |k| dq + dq dk`, the null score by `|q| s + |K_0| s |(h', 1)| + |W_Q^T K_0| d + s dq`.
        """
        (norm, error), (norm_k, error_k) = asks, answers
        dq = s * with_one(norm) + (self.query.norm + s) * error
        dk = s * with_one(norm_k) + (self.key.norm + s) * error_k
        q, k, k_0 = self.query.on_bits, self.key.on_bits, float(np.linalg.norm(self.K_0))
        score = q * dk + k * dq + dq * dk
        null = q * s + k_0 * s * with_one(norm + error) + self._null_slope * error + s * dq
        return 2 * score < self.gaps.keys and score + null < self.gaps.null
