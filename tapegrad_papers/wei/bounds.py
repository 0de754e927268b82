"""Theorem D.6: the all-layer margin of a net with corrections, from the constants of its own layers."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from tapegrad.errors import Refused
from tapegrad_papers.wei.blocks import Chain, with_one


def largest_log(holds: Callable[[float], bool], least: float) -> float:
    """The largest logarithm up to 0 at which a condition holds that fails from some point on; it does hold
    there. -inf if it fails at `least` already."""
    if holds(0.0):
        return 0.0
    if not holds(least):
        return -math.inf
    low, high = least, 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def largest(holds: Callable[[float], bool]) -> float:
    """The largest number up to 1 for which a condition holds that fails from some number on, or 0."""
    return math.exp(largest_log(lambda log: holds(math.exp(log)), -700.0))


@dataclass(frozen=True)
class MarginConstants:
    """The constants of Conditions D.3 and D.4. They hold for parameters within `sigma_theta` and `sigma_xi`
    of the net's own, and for hidden vectors within `sigma_h` of what they should be."""

    kappa_theta: float
    kappa_xi: float
    mu: float
    mu_0: float
    sigma_h: float
    sigma_theta: float
    sigma_xi: float
    sigma_zeta: float
    lambda_: float

    @property
    def terms(self) -> dict[str, float]:
        """The nine quantities whose least is the bound (D.5). The first two bound the noise of f_0 (D.6), the
        next three that of each f_i (D.7), the last four that of each correction (D.8)."""
        return {
            "lambda / mu_0": _over(self.lambda_, self.mu_0),
            "sigma_zeta / mu_0": _over(self.sigma_zeta, self.mu_0),
            "sigma_theta": self.sigma_theta,
            "1 / (2 kappa_theta)": 1 / (2 * self.kappa_theta),
            "sigma_zeta / (2 kappa_theta lambda)": self.sigma_zeta / (2 * self.kappa_theta * self.lambda_),
            "sigma_xi": self.sigma_xi,
            "sigma_h / (2 kappa_xi lambda)": self.sigma_h / (2 * self.kappa_xi * self.lambda_),
            "sigma_zeta / (4 lambda mu kappa_xi)": self.sigma_zeta
            / (4 * self.lambda_ * self.mu * self.kappa_xi),
            "1 / (4 mu kappa_xi)": 1 / (4 * self.mu * self.kappa_xi),
        }

    @property
    def bound(self) -> float:
        """No perturbation of smaller 2-norm changes a prediction, for any input (Lemmas D.7 to D.9)."""
        return min(self.terms.values())

    def to_json(self) -> dict[str, Any]:
        """Constants and terms; what is infinite becomes null."""
        numbers = {**asdict(self), "terms": self.terms, "bound": self.bound}
        return {
            name: {n: _finite(v) for n, v in value.items()} if isinstance(value, dict) else _finite(value)
            for name, value in numbers.items()
        }

    def __str__(self) -> str:
        lines = [f"{name.rstrip('_'):<12} {value:.6g}" for name, value in asdict(self).items()]
        # sigma_theta and sigma_xi were chosen to be no less than the others: they are not the reason.
        others = {
            name: value for name, value in self.terms.items() if name not in ("sigma_theta", "sigma_xi")
        }
        return "\n".join([*lines, f"least term   {min(others, key=others.__getitem__)}"])


def margin_constants(chain: Chain) -> MarginConstants:
    """The constants that give the best bound.

    All but the radii grow with `sigma_theta = sigma_xi = s`, and s is itself a term of the bound: the best s
    is the largest that no other term undercuts.
    """
    if chain.correction is None:
        raise Refused("Theorem D.6 needs corrections between the layers", advice="See uncorrected_log10.")

    def covers(s: float) -> bool:
        return constants_at(chain, s).bound >= s

    return constants_at(chain, largest(covers))


def constants_at(chain: Chain, s: float) -> MarginConstants:
    """Conditions D.3 and D.4 for parameters within s.

    kappa_theta lambda is what Lemma D.8 uses, so kappa_theta is the largest `noise / lambda`. f_0 of the
    transformer is its first block at step 0, which reads the parameter h_0: mu_0 has noise and gain.
    """
    assert chain.correction is not None
    norm = chain.lambda_
    first = chain.blocks[0]
    return MarginConstants(
        kappa_theta=max(block.noise(s) for block in chain.blocks) / norm,
        kappa_xi=chain.correction.kappa(s),
        mu=max(block.gain(s) for block in chain.blocks),
        mu_0=math.hypot(first.noise(s), first.gain(s)) if chain.first_parameters else 0.0,
        sigma_h=min(block.reach(s) for block in chain.blocks),
        sigma_theta=s,
        sigma_xi=s,
        sigma_zeta=chain.correction.radius,
        lambda_=norm,
    )


def _over(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator else math.inf


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


# Two more lower bounds of the all-layer margin: sharper than Theorem D.6, and one without corrections.


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
