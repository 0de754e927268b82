"""Two more lower bounds of the all-layer margin: sharper than Theorem D.6, and one without corrections."""

import math

from tapegrad.errors import Refused
from tapegrad_papers.theory.affine import with_one
from tapegrad_papers.theory.blocks import Chain
from tapegrad_papers.wei.bounds import largest, largest_log

CLOSE = 1e-9
"""Relative change at which the errors of one round of blocks count as those of the next."""


def layerwise_bound(chain: Chain) -> float:
    """The induction of Lemma D.8 with every layer's own constants instead of the worst of each kind, and
    with the correction's radius used for each coordinate instead of for the norm of all.

    Noise r_1, r_2, ... in different layers has `sum c_k r_k <= r sqrt(sum c_k^2)`. A correction whose input
    z has errors within its radius, cut noise included, sends 0 to 0 whatever its cuts' noise; for a 1 both
    cuts are on and the error of z cancels: what is left is `gain sqrt(2) r1 |(z, 1)| + r2 |(a, 1)|`.
    """
    if chain.correction is None:
        raise Refused("this bound needs corrections between the layers", advice="See uncorrected_log10.")
    return largest(lambda r: _certified(chain, r))


def _certified(chain: Chain, r: float) -> bool:
    """Whether noise r leaves every corrected value within reach and every output on its side."""
    correction = chain.correction
    assert correction is not None
    gain, radius = correction.difference.largest_row, correction.radius
    ideal = math.hypot(1 - correction.low, 1 - correction.high)
    *inner, read_out = chain.blocks
    after = 1.0 if chain.first_parameters else 0.0  # what the first block reads, for each unit of noise
    rounds = 1 if chain.rounds == 1 else 50
    for _ in range(rounds):
        before_round = after
        for number, block in enumerate(inner):
            if r * after > block.reach(r):
                return False
            apart = math.hypot(block.gain(r) * after, block.noise(r))
            apart_one = math.hypot(block.entry_gain(r) * after, block.entry_noise(r))
            output_norm = chain.blocks[number + 1].input_norm
            size = with_one(output_norm + r * apart)
            if r * math.hypot(apart_one, size) > radius:
                return False
            hidden = ideal * output_norm + math.sqrt(2) * r * apart + r * size
            after = math.hypot(gain * size, with_one(hidden))
        if r * math.hypot(read_out.entry_gain(r) * after, read_out.entry_noise(r)) >= 1:
            return False
        if after <= before_round * (1 + CLOSE):
            return True
    return rounds == 1


def uncorrected_log10(chain: Chain) -> float:
    """For a net without corrections there is no uniform bound, only the product of all Lipschitz constants:
    the decimal logarithm of what it gives.

    An error d becomes `gain d + noise r` in every block. Where each block has parameters of its own the
    errors add up as roots of squares; where they are shared, as in the steps of a decoder, plainly. The
    factor in front of r grows exponentially with depth, so only logarithms are kept.
    """
    if chain.correction is not None and chain.correction.softness:
        raise Refused("without corrections the errors of softmax add up even without noise")
    deepest = sum(math.log(1 + block.gain(1) + block.noise(1)) for block in chain.blocks) * chain.rounds
    return largest_log(lambda log_r: _survives(chain, log_r), -deepest - 100) / math.log(10)


def _survives(chain: Chain, log_r: float) -> bool:
    """Whether noise r is too small to move an output by 1."""
    r = math.exp(log_r)
    *inner, read_out = chain.blocks
    power = 2 if chain.rounds == 1 else 1
    log_error = 0.0 if chain.first_parameters else -math.inf  # for each unit of noise
    logs = [(_log(block.gain(r)), _log(block.noise(r)), _log(block.reach(r))) for block in inner]
    for _ in range(chain.rounds):
        for log_gain, log_noise, log_reach in logs:
            if log_r + log_error > log_reach:
                return False
            log_error = _log_sum(power * (log_gain + log_error), power * log_noise) / power
    at_output = power * (_log(read_out.entry_gain(r)) + log_error), power * _log(read_out.entry_noise(r))
    return log_r + _log_sum(*at_output) / power < 0


def _log(number: float) -> float:
    return math.log(number) if number > 0 else -math.inf


def _log_sum(a: float, b: float) -> float:
    """The logarithm of `exp(a) + exp(b)`."""
    top = max(a, b)
    return top if math.isinf(top) else top + math.log1p(math.exp(min(a, b) - top))
