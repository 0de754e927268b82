"""The all-layer margin of a net, bracketed: lower bounds that are proved (Theorem D.6), an upper bound that
is found."""

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad._compile import Compiled
from tapegrad.circuits.model import Circuit
from tapegrad.errors import Refused
from tapegrad.targets.relu import ReluNet
from tapegrad.targets.transformer import TransformerNet
from tapegrad_papers.wei.attack import Report, attack
from tapegrad_papers.wei.blocks import Chain, with_one
from tapegrad_papers.wei.chains import relu_chain, transformer_chain
from tapegrad_papers.wei.problems import Problem, relu_problem, transformer_problem

# Theorem D.6: the all-layer margin of a net with corrections, from the constants of its own layers.


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


def from_each_layer(norms: Iterable[float]) -> float:
    """Lemma D.9: if noise within these norms, each in its own layer, does no harm, then noise of the least of
    them on all parameters together does none: no layer gets more."""
    return min(norms)


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
        return from_each_layer(self.terms.values())

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
    """Whether noise r is too small to move an output by 1.

    A round of blocks makes `A e + B` of an error e, so that errors rise or fall from round to round, and the
    worst stands at the start of the first round or of the last. The last is found by repeated squaring.
    """
    r = math.exp(log_r)
    *inner, read_out = chain.blocks
    power = 2 if chain.rounds == 1 else 1
    logs = [(_log(block.gain(r)), _log(block.noise(r)), _log(block.reach(r))) for block in inner]

    def after_round(log_error: float) -> tuple[float, bool]:
        """For each unit of noise; and whether every block was reached by no more than it allows."""
        within = True
        for log_gain, log_noise, log_reach in logs:
            within &= log_r + log_error <= log_reach
            log_error = _log_sum(power * (log_gain + log_error), power * log_noise) / power
        return log_error, within

    first = 0.0 if chain.first_parameters else -math.inf
    last = first
    step = sum(log_gain for log_gain, _, _ in logs), after_round(-math.inf)[0]
    for bit in bin(chain.rounds - 1)[:1:-1]:
        if bit == "1":
            last = _log_sum(step[0] + last, step[1])
        step = 2 * step[0], _log_sum(step[0] + step[1], step[1])
    log_error, within = after_round(last)
    at_output = power * (_log(read_out.entry_gain(r)) + log_error), power * _log(read_out.entry_noise(r))
    return within and after_round(first)[1] and log_r + _log_sum(*at_output) / power < 0


def _log(number: float) -> float:
    return math.log(number) if number > 0 else -math.inf


def _log_sum(a: float, b: float) -> float:
    """The logarithm of `exp(a) + exp(b)`."""
    top = max(a, b)
    return top if math.isinf(top) else top + math.log1p(math.exp(min(a, b) - top))


MOST_PATTERNS = 64


@dataclass(frozen=True)
class Margins:
    """What is known of the all-layer margin (2.1). Lower bounds hold for every input, the upper bound for the
    input attacked. Without corrections `constants` and `layerwise` are None: no theorem gives them. With
    softmax what is said of the net without corrections is None: its errors add up even without noise."""

    constants: MarginConstants | None
    layerwise: float | None
    """The induction of Theorem D.6 with each layer's own constants: larger, and also proved."""
    uncorrected_log10: float | None
    """The decimal logarithm of the product-of-Lipschitz-constants bound for the net without corrections."""
    upper: float | None
    upper_without_corrections: float | None

    @property
    def lower(self) -> float:
        """The best lower bound that is proved for this net."""
        if self.layerwise is not None:
            return self.layerwise
        assert self.uncorrected_log10 is not None
        return 10**self.uncorrected_log10

    def to_json(self) -> dict[str, Any]:
        """As a plain dictionary."""
        return {
            "constants": None if self.constants is None else self.constants.to_json(),
            "theorem_d_6": None if self.constants is None else self.constants.bound,
            "layerwise": self.layerwise,
            "uncorrected_log10": self.uncorrected_log10,
            "lower": self.lower,
            "upper": self.upper,
            "upper_without_corrections": self.upper_without_corrections,
        }

    def __str__(self) -> str:
        bare = "10^{:.1f} (product of Lipschitz constants, without corrections)"
        bare = "" if self.uncorrected_log10 is None else bare.format(self.uncorrected_log10)
        if self.constants is None or self.layerwise is None:
            lines = [
                f"lower bound  {bare}",
                "             no theorem gives a better one: the net has no corrections",
            ]
        else:
            lines = [
                *("             " + line for line in str(self.constants).splitlines()),
                f"lower bound  {self.constants.bound:.6g} (Theorem D.6)",
                f"             {self.layerwise:.6g} (the same argument, layer by layer)",
                *([f"             {bare}"] if bare else []),
            ]
        if self.upper is not None:
            lines.append(f"upper bound  {self.upper:.6g} (an attack flips a prediction)")
        if self.upper_without_corrections is not None and self.constants is not None:
            lines.append(f"             {self.upper_without_corrections:.6g} (without corrections)")
        return "\n".join(lines)


def chain_of(net: Any) -> Chain:
    """The net as appendix D sees it."""
    if isinstance(net, ReluNet):
        return relu_chain(net)
    if isinstance(net, TransformerNet):
        return transformer_chain(net)
    raise Refused(
        "margins are defined for the targets relu and transformer in the paper's form",
        advice="Choose one of these, with form=paper.",
    )


def problem_of(compiled: Compiled, *inputs: Any, corrections: bool = True) -> Problem:
    """The net on an input, as the user writes it, as a function of its parameters. A ReLU net has or has no
    corrections by the option it was compiled with; `corrections=False` takes them out of a transformer."""
    net = compiled.net
    if isinstance(net, ReluNet):
        return relu_problem(net, compiled.encode(compiled.source.start(*inputs)).bits)  # type: ignore[union-attr]
    if isinstance(net, TransformerNet):
        return transformer_problem(net, compiled.start(*inputs), corrections)
    raise Refused(
        "margins are defined for the targets relu and transformer in the paper's form",
        advice="Choose one of these, with form=paper.",
    )


def patterns(circuit: Circuit) -> NDArray[np.bool_]:
    """What a circuit is attacked on where no input is given: all patterns if they are few, or else some."""
    count = len(circuit.inputs)
    if 1 << count <= MOST_PATTERNS:
        return (np.arange(1 << count)[:, None] >> np.arange(count) & 1).astype(bool)
    return np.random.default_rng(0).integers(0, 2, (MOST_PATTERNS, count)).astype(bool)


def lower_bounds(net: Any) -> Margins:
    """Only what is proved; quick even for large nets."""
    chain = chain_of(net)
    constants, layerwise, soft = None, None, False
    if chain.correction is not None:
        constants, layerwise = margin_constants(chain), layerwise_bound(chain)
        soft = chain.correction.softness > 0
    return Margins(constants, layerwise, None if soft else uncorrected_log10(chain), None, None)


def all_layer_margins(compiled: Compiled, *inputs: Any, progress: Report = lambda gradients: None) -> Margins:
    """The lower bounds, and upper bounds by attack on this input."""
    return attacked(lower_bounds(compiled.net), compiled, *inputs, progress=progress)


def attacked(
    lower: Margins, compiled: Compiled, *inputs: Any, progress: Report = lambda gradients: None
) -> Margins:
    """These lower bounds with upper ones beside them."""
    problem = problem_of(compiled, *inputs)
    upper, bare = attack(problem, progress=progress).radius, None
    if isinstance(compiled.net, TransformerNet) and lower.uncorrected_log10 is not None:
        without = problem_of(compiled, *inputs, corrections=False)
        bare = attack(without, start=1e-3, progress=progress).radius
    elif lower.constants is None:
        bare = upper
    return replace(lower, upper=upper, upper_without_corrections=bare)
