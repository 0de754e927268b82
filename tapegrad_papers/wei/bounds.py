"""Theorem D.6: the all-layer margin of a net with corrections, from the constants of its own layers."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from tapegrad.errors import Refused
from tapegrad_papers.theory.blocks import Chain


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
