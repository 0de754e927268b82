"""How many samples suffice: Proposition 2.2, Lemma 2.3 and Corollary A.1 with their constants written out,
and Theorems 3.1 and 4.1 for concrete networks.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tapegrad.errors import InputError, Refused
from tapegrad.machines.model import TuringMachine
from tapegrad.targets.relu import ReluNet
from tapegrad.targets.transformer import TransformerNet
from tapegrad.targets.transformer.exactness import parameter_norm
from tapegrad.targets.transformer.target import LARGEST, estimate_machine
from tapegrad_papers.wei.chains import relu_chain, transformer_chain
from tapegrad_papers.wei.margins import margin_constants

FAILURE = 0.01
"""delta: the definition of statistically meaningful approximation asks for probability 0.99."""


def surrogate_loss(margins: ArrayLike, gamma: float) -> NDArray[np.float64]:
    """(2.2): 1 where the margin is 0 (a wrong prediction), 0 from gamma on, and linear in between."""
    if gamma <= 0:
        raise InputError(f"gamma is {gamma}, but must be positive")
    return np.clip(1 - np.asarray(margins, float) / gamma, 0, 1)


def log_covering_number(scale: float, alpha: float, gamma: float, parameters: float) -> float:
    """For the losses (2.2) of all parameters with 1-norm at most alpha, in the largest difference.

    The margin changes by at most `|theta - theta'|_2`, hence the loss by that over gamma; and a ball of the
    1-norm has a cover at distance e in 2-norm of `(2p + 1)^ceil(alpha^2 / e^2)` points (Maurey).
    """
    return math.ceil((alpha / (gamma * scale)) ** 2) * math.log(2 * parameters + 1)


def rademacher_bound(samples: float, alpha: float, gamma: float, parameters: float) -> float:
    """Dudley's integral over that cover, cut off at `1 / sqrt(n)`:

        Rad_n <= 4 / sqrt(n) + 12 / sqrt(n) * integral from 1/sqrt(n) to 1 of sqrt(log N(e)) de
              <= (4 + 12 sqrt(ln(2p + 1)) (alpha / gamma * ln(n) / 2 + 1)) / sqrt(n)

    with `sqrt(ceil(z)) <= sqrt(z) + 1`.
    """
    entropy = math.sqrt(math.log(2 * parameters + 1))
    return (4 + 12 * entropy * (alpha / gamma * math.log(samples) / 2 + 1)) / math.sqrt(samples)


@dataclass(frozen=True)
class SampleComplexity:
    """With this many samples, minimising the surrogate loss over all nets of 1-norm at most alpha gives 0-1
    loss at most epsilon, with probability 1 - delta."""

    samples: float
    epsilon: float
    alpha: float
    gamma: float
    log_parameters: float
    expression: float
    """`alpha^2 log(p) / (gamma epsilon)^2`: Lemma 2.3 without its constants and further logarithms."""

    def to_json(self) -> dict[str, Any]:
        """As a plain dictionary."""
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"{self.samples:.3g} samples for error {self.epsilon:g} (alpha = {self.alpha:.6g}, gamma = "
            f"{self.gamma:.3g}, ln p = {self.log_parameters:.4g}; alpha^2 ln p / (gamma epsilon)^2 = "
            f"{self.expression:.3g})"
        )


def largest_deviation(rademacher: float, samples: float, failure: float = FAILURE) -> float:
    """(A.1): `2 Rad_n + sqrt(ln(2 / delta) / n)`. With probability 1 - delta no loss of the class is further
    from its mean over the samples."""
    return 2 * rademacher + math.sqrt(math.log(2 / failure) / samples)


def proposition_2_2(rademacher: float, samples: float, best: float, failure: float = FAILURE) -> float:
    """Its proof: the empirical minimiser is worse than the best by at most twice the largest deviation. With
    `best <= epsilon` and `Rad_n <= epsilon` that is `5 epsilon + 2 sqrt(ln(2 / delta) / n)`."""
    return best + 2 * largest_deviation(rademacher, samples, failure)


def lemma_2_3(alpha: float, gamma: float, parameters: float, epsilon: float) -> SampleComplexity:
    """The least n at which Proposition 2.2 gives epsilon, or less. The best net has surrogate loss 0, as the
    constructed nets have margin at least gamma on every input."""
    if not 0 < epsilon < 1:
        raise InputError(f"epsilon is {epsilon}, but must be between 0 and 1")
    if not (0 < alpha < math.inf and 0 < gamma < math.inf and 1 <= parameters < math.inf):
        raise InputError("alpha, gamma and the number of parameters must be positive")

    def enough(log_n: float) -> bool:
        n = math.exp(log_n)
        return proposition_2_2(rademacher_bound(n, alpha, gamma, parameters), n, 0.0) <= epsilon

    low, high = 2.0, 4.0  # the bound falls from n = e^2 on
    while not enough(high):
        low, high = high, 2 * high
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    log_p = math.log(parameters)
    expression = (alpha / (gamma * epsilon)) ** 2 * log_p
    return SampleComplexity(math.exp(high), epsilon, alpha, gamma, log_p, expression)


# Corollary A.1, by averages of k corners: a proof with constants.
#
# Let theta have 1-norm at most alpha. Some average theta' of k corners 0, +-alpha e_i of the ball is within
# e = alpha / sqrt(k) of it (Maurey); for k = 0 it is theta' = 0 and e = alpha. A margin is the distance from
# a set of parameters, the wrong ones, and so 1-Lipschitz:
#
#     theta wrong at (x, y)      =>  rho(theta', x, y) <= e
#     rho(theta', x_i, y_i) <= e =>  rho(theta, x_i, y_i) <= 2 e
#
# The middle is an event for each of (2p + 1)^k points theta', and its share of the samples bounds its
# probability (Chernoff), for all points and all k at once.


def nearest_average(alpha: float, k: int) -> float:
    """How far a point of the ball is from the nearest average of k corners, at most."""
    return alpha / math.sqrt(max(k, 1))


def share_within_reach(margins: ArrayLike, alpha: float, k: int) -> float:
    """Of the samples, those at which an average of k corners may have a margin of `nearest_average`."""
    return float(np.mean(np.asarray(margins) <= 2 * nearest_average(alpha, k)))


def share_by_mean_square(mean_square: float, alpha: float, k: int) -> float:
    """At least that, from the mean of 1 / rho^2 alone (Chebyshev)."""
    return mean_square * (2 * nearest_average(alpha, k)) ** 2


def nats_of_averages(k: int, parameters: float, failure: float) -> float:
    """`ln(1 / delta')` with a delta' for each of the `(2p + 1)^k` averages of k corners. They add up to
    delta for all k = 0, 1, ... together, as k gets `delta / 2^(k + 1)` of it."""
    return k * math.log(4 * parameters + 2) + math.log(2 / failure)


def largest_mean(share: float, nats: float) -> float:
    """Chernoff: an event with this share q of n samples has probability at most `q + sqrt(2 q L) + L`, except
    with probability `exp(-n L)`.

    The exception's probability is at most `exp(-n kl(q, pi))` for every pi above, and `kl(q, pi) >= pi - q -
    q ln(pi / q)`. That is L at least where `exp(v) >= pi / q = 1 + v + v^2 / 2`, with `v = sqrt(2 L / q)`.
    """
    return share + math.sqrt(2 * share * nats) + nats


@dataclass(frozen=True)
class GeneralisationBound:
    """The two parts of (A.2), and what the proof gives for these very margins, with the best k."""

    leading: float
    low_order: float
    by_averages: float


def corollary_a_1(
    margins: ArrayLike, alpha: float, parameters: float, failure: float = FAILURE
) -> GeneralisationBound:
    """(A.2): `11 alpha sqrt(ln(4p + 2) / n)` times the root mean square of 1 / margin over the n training
    samples, all of them predicted right, and `2 ln(2 / delta) / n`."""
    own = np.asarray(margins, float)
    if not own.size or own.min() <= 0:
        raise InputError("every sample must be predicted right, that is, have a positive margin")
    n, mean_square = own.size, float(np.mean(own**-2.0))
    leading, low_order = closed_corollary(n, mean_square, alpha, parameters, failure)
    best = best_average(n, lambda k: share_within_reach(own, alpha, k), parameters, failure)
    return GeneralisationBound(leading, low_order, best)


def closed_corollary(
    samples: float, mean_square: float, alpha: float, parameters: float, failure: float
) -> tuple[float, float]:
    """Both terms. With `l = ln(4p + 2)`, `t = alpha sqrt(mean l / n)`, `r = ln(2 / delta) / n`: k is the next
    integer from `x = 2 alpha sqrt(mean n / l)` on, or 0 if x < 1. Then the share q is at most 2 t and
    `L <= 4 t + r`, so that `q + sqrt(2 q L) + L <= 10 t + 2 sqrt(t r) + r <= 11 t + 2 r`."""
    t = alpha * math.sqrt(mean_square * math.log(4 * parameters + 2) / samples)
    return 11 * t, 2 * math.log(2 / failure) / samples


def best_average(samples: float, share: Callable[[int], float], parameters: float, failure: float) -> float:
    """What the proof gives with the best k, of 0, 1 and all powers of 2^(1/4): more than n never pay."""
    tried = {0, *(math.ceil(2 ** (j / 4)) for j in range(4 * math.ceil(math.log2(samples)) + 1))}
    return min(largest_mean(share(k), nats_of_averages(k, parameters, failure) / samples) for k in tried)


def relu_norm(net: ReluNet) -> float:
    """alpha: the 1-norm of all weights and biases. Padding adds nothing."""
    own = net.wiring.values, net.wiring.biases
    return sum(float(np.abs(part.astype(float)).sum()) for part in own)


def transformer_norm(net: TransformerNet) -> float:
    """alpha: the 1-norm of all layers, h_0, E and theta_cls."""
    own = sum(float(np.abs(array).sum()) for array in (net.h_0, net.E, net.theta_cls))
    return own + sum(parameter_norm(layer) for layer in net.layers)


def relu_parameters(net: ReluNet, width: int) -> int:
    """p for the class `F_{w,d}`: W_0 is w x m, then d - 1 times w x w, a row for each output; biases."""
    inputs, outputs, depth = len(net.input_names), len(net.output_names), net.depth
    return width * inputs + (depth - 1) * width * width + outputs * width + depth * width + outputs


def transformer_parameters(width: int, depth: int, symbols: int) -> int:
    """p for the class `F_{w,d,T}`: in each layer two attentions of three w x w matrices, biases, null key and
    null value, and three ReLU layers, the middle one of width 2 w; and h_0, E, theta_cls. It does not depend
    on T: all decoder steps share their weights."""
    attention = 3 * (width * width + width) + 2 * width
    feed_forward = (width * width + width) + (2 * width * width + 2 * width) + (2 * width * width + width)
    return depth * (2 * attention + feed_forward) + (2 + symbols) * width


def theorem_3_1(net: ReluNet, epsilon: float = 0.1, width: int | None = None) -> SampleComplexity:
    """Samples that suffice to learn what the net computes, within all nets of this width, depth and norm."""
    width = _at_least(net.width, width)
    gamma = margin_constants(relu_chain(net)).bound
    return lemma_2_3(relu_norm(net), gamma, relu_parameters(net, width), epsilon)


def theorem_4_1(net: TransformerNet, epsilon: float = 0.1, width: int | None = None) -> SampleComplexity:
    """Samples that suffice to learn what the transformer computes, within its class."""
    width = _at_least(net.layout.width, width)
    gamma = margin_constants(transformer_chain(net)).bound
    parameters = transformer_parameters(width, len(net.layers), len(net.layout.symbols))
    return lemma_2_3(transformer_norm(net), gamma, parameters, epsilon)


@dataclass(frozen=True)
class WidthRow:
    """Samples that suffice when every layer is padded to this width."""

    width: int
    samples: float
    ratio: float
    """To the row before; a bound that grows like w would have 10."""

    def to_json(self) -> dict[str, Any]:
        """As a plain dictionary."""
        return asdict(self)


def width_rows(
    net: ReluNet | TransformerNet, exponents: Iterable[int] = range(3, 13), epsilon: float = 0.1
) -> list[WidthRow]:
    """Width 10^e for each exponent. Only `log p` changes: padding adds nothing to the norm, and nothing to
    the constants of Theorem D.6."""
    theorem = cache(lambda width: _theorem(net, epsilon, width).samples)
    rows: list[WidthRow] = []
    for exponent in exponents:
        samples = theorem(10**exponent)
        rows.append(WidthRow(10**exponent, samples, samples / rows[-1].samples if rows else 1.0))
    return rows


def _theorem(net: ReluNet | TransformerNet, epsilon: float, width: int) -> SampleComplexity:
    if isinstance(net, ReluNet):
        return theorem_3_1(net, epsilon, width)
    return theorem_4_1(net, epsilon, width)


def _at_least(own: int, width: int | None) -> int:
    if width is not None and width < own:
        raise InputError(f"the net is {own:,} wide and cannot be padded to {width:,}")
    return width or own


# Layers, width and parameter norm of the transformer beside the expressions of Theorem 4.1.


BUILT = (2, 3, 4)
"""The T = 2^e of the nets that are built."""
EPSILON = 0.1


@dataclass(frozen=True)
class SizeRow:
    """What the theorem bounds: d ~ log T, w > k |A| + log T, alpha = poly(k, |A|, log T)."""

    exponent: int
    steps: int
    layers: int
    layers_over_log: float
    """d / log2 T: settles at a constant."""
    width: int
    width_expression: int
    """k |A| + log2 T."""
    norm: float
    norm_over_expression: float
    """alpha / ((k |A| + log2 T) log2 T): settles at a constant."""
    margin: float | None
    """Theorem D.6; None where the net is not built."""
    samples: float | None
    """Theorem 4.1 for error 0.1."""

    def to_json(self) -> dict[str, Any]:
        """As a plain dictionary."""
        return asdict(self)


def transformer_sizes(
    machine: TuringMachine, exponents: Iterable[int] = range(4, 17), largest: int = 1 << 27
) -> list[SizeRow]:
    """A row for T = 2^e. Margins are computed where the net has at most `largest` bytes; the rest needs no
    building. For T = 2^e the bits of positions and of time are e + 2 and e + 1; layers, and the norm of each,
    are linear in these, so that the norm of the whole is a quadratic polynomial in e: the nets of three small
    T give it exactly."""
    if machine.tapes != 1:
        raise Refused("the transformer takes machines with one tape", advice="Put its tapes on one first.")
    if estimate_machine(machine, 1 << BUILT[-1]).bytes > LARGEST:
        raise Refused("even the smallest nets of this machine are too large to build")
    norm = quadratic(BUILT, [transformer_norm(_net(machine, e)) for e in BUILT])
    pairs = len(machine.states) * len(machine.alphabet)
    rows = []
    for e in exponents:
        cost = estimate_machine(machine, 1 << e)
        alpha = norm(e)
        margin = samples = None
        if cost.bytes <= largest:
            margin = margin_constants(transformer_chain(_net(machine, e))).bound
            p = transformer_parameters(cost.width, cost.depth, len(machine.alphabet))
            samples = lemma_2_3(alpha, margin, p, EPSILON).samples
        rows.append(
            SizeRow(
                exponent=e,
                steps=1 << e,
                layers=cost.depth,
                layers_over_log=cost.depth / e,
                width=cost.width,
                width_expression=pairs + e,
                norm=alpha,
                norm_over_expression=alpha / ((pairs + e) * e),
                margin=margin,
                samples=samples,
            )
        )
    return rows


def quadratic(places: Sequence[int], values: Sequence[float]):
    """The polynomial of degree 2 through three points (Newton's differences)."""
    (a, b, c), (x, y, z) = values, places
    first = (b - a) / (y - x)
    second = ((c - b) / (z - y) - first) / (z - x)
    return lambda at: a + (at - x) * (first + (at - y) * second)


def size_table(rows: Iterable[SizeRow]) -> str:
    """The rows as text."""
    lines = [
        "T     layers d/log T   width k|A|+log T       alpha alpha/((k|A|+log T) log T)    margin  samples"
    ]
    for row in rows:
        margin = "-" if row.margin is None else f"{row.margin:.3g}"
        samples = "-" if row.samples is None else f"{row.samples:.2e}"
        lines.append(
            f"2^{row.exponent:<3} {row.layers:>6} {row.layers_over_log:>7.2f} {row.width:>7} "
            f"{row.width_expression:>10} {row.norm:>11.1f} {row.norm_over_expression:>26.2f} {margin:>9} "
            f"{samples:>8}"
        )
    return "\n".join(lines)


def _net(machine: TuringMachine, exponent: int) -> TransformerNet:
    return TransformerNet.build(machine, 1 << exponent, "hardmax", "quarters")
