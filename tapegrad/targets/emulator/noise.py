"""The practical memory under noise: how much every weight may be disturbed at every step.

The noise is Theorem 5's: at each of T steps, after the update of SGD, every weight is moved by at most a T-th
of a given sum, in whatever direction is worst. The sum is `absolute + relative * |first weight|`. Relative to
the weights it is at most kappa for a cell, whose size is w0, and rho for any other weight, of which 3u/8 is
the smallest. p bits of precision add T 2^-p to rho, for all weights are rounded T times.

Let d be the vector of the relative errors of the M cells; suppose |d| <= 1/4 and rho <= 1/64.

1. **Flat vertices.** Copies, gates and controls have total inputs of at least 4, and are flat from 2 on. The
   noise moves a total input by at most rho L, where L is the largest sum of |weight| |value| over the edges
   of such a vertex (8k - 4 for an AND of k operands). While rho L <= 2 they stay right, and their edges are
   not trained. A reader's total input is at least 4 (1 - rho)(1 - |d|) > 2. A gate of a cell, closed, is at
   4 - (1 + |d|)(1 + rho)/2 - 4 rho > 2 or more, and flat; open, at (1 + |d|)(1 + rho)/2 + 4 rho < 2 or less,
   and linear.
2. **The output.** Its edges carry 1 for the answer and 8u for each cell, in sizes, and M u <= 1: noise on
   them is worth 9 rho. The input of an open gate is off by 4 rho from its controls and 5/8 rho from its gain,
   which is worth u for each: 4.7 rho in all. So the output is off by 14 rho, apart from what d does.
3. **One step.** An open cell moves by (output - label) w0, times the noise on its gain and on its gate's
   edge, (1 + rho)^2; so it is off by 14 rho (1 + rho)^2 + 2 (2 rho + rho^2) <= 19 rho. What d does to the
   output moves d to (I - (u/2) s s^T) d, which does not lengthen it (`constants.py`); noise in that matrix
   adds 2.1 rho |d| <= rho to each cell.
4. **All steps.** The noise on the cells themselves adds at most sqrt(M) kappa to |d|, step 3 at most
   20 sqrt(M) T rho, the training of all other weights 1.1 times the `drift` of `constants.py`, and the
   rounding of the 6M + 1 terms of the output at most 10 sqrt(M) T (6M + 1) 2^-p:

       |d| <= sqrt(M) (kappa + 20 T rho + 10 T (6M + 1) 2^-p) + 1.1 drift <= 1/4.

**For a learner that is known better.** If no cell is open in more than K steps, and no more than m are at
once, the largest entry of d can be followed instead: it grows by 19 rho and by 0.55 u m times itself each
time that the cell is open, so that with 0.55 u m K < 1

    max |d_c| <= (kappa + 19 K rho + 10 K (6M + 1) 2^-p + 1.1 drift) / (1 - 0.55 u m K) <= 1/4.

The bounds are for every noise of this size. Random noise, whose signs cancel, is borne in far larger amounts.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import Refused
from tapegrad.targets.emulator.constants import (
    LARGEST_DRIFT,
    PRECISIONS,
    Constants,
    choose,
    drift,
    gate_weight,
)
from tapegrad.targets.emulator.graph import Graph

LARGEST_ERROR = 1 / 4
"""Of a cell, relative to w0."""
LARGEST_RHO = 1 / 64
SMALLEST_SHARE = 3 / 8
"""Times u: the smallest weight that is no cell."""


@dataclass(frozen=True)
class Noise:
    """The sum, over all steps, of the sizes of the noise on a weight: a part that is the same for all, and
    one in proportion to the weight."""

    absolute: float = 0.0
    relative: float = 0.0
    seed: int = 0

    def __bool__(self) -> bool:
        return self.absolute > 0 or self.relative > 0

    def at(self, step: int, first: NDArray[np.floating], steps: int) -> NDArray[np.floating]:
        """The noise of one step, evenly distributed, at most a share of 1/steps of the sum."""
        random = np.random.default_rng([self.seed, step]).uniform(-1, 1, len(first))
        return (random * ((self.absolute + self.relative * np.abs(first)) / steps)).astype(first.dtype)


NO_NOISE = Noise()


class Opened(NamedTuple):
    """What is known of a learner: in how many steps a cell is open at most, and how many are at once."""

    steps: int
    together: int


def error(
    noise: Noise,
    cells: int,
    steps: int,
    constants: Constants,
    precision: str = "float64",
    opened: Opened | None = None,
) -> float:
    """Bound on the relative error of a cell after so many steps; infinite where nothing is proved."""
    rounding = 2.0 ** -PRECISIONS[precision][0]
    kappa = noise.absolute / constants.w0 + noise.relative
    rho = noise.absolute / (SMALLEST_SHARE * constants.gate) + noise.relative + steps * rounding
    moved = 1.1 * drift(constants.w0, cells, steps)
    sums = 10 * (6 * cells + 1) * rounding
    if rho > LARGEST_RHO:
        return float("inf")
    if opened is None:
        return cells**0.5 * (kappa + steps * (20 * rho + sums)) + moved
    fed_back = 0.55 * constants.gate * opened.together * opened.steps
    if fed_back >= 1:
        return float("inf")
    return (kappa + opened.steps * (19 * rho + sums) + moved) / (1 - fed_back)


def load(graph: Graph, weights: NDArray[np.floating], cells: int) -> float:
    """L: the largest sum of |weight| |value| over the edges of a flat vertex. The first vertices after the
    inputs are amplifiers and readers, the last ones cells' controls and gates, and the output."""
    sizes = np.where(graph.sources < graph.inputs, 1.0, 2.0) * np.abs(weights)
    sums = np.add.reduceat(sizes, graph.offsets[:-1])
    rest = sums[2 * cells : -1]
    controls = rest[len(rest) - 6 * cells :].reshape(cells, 6)[:, :4]
    return float(max(rest[: len(rest) - 6 * cells].max(initial=0), controls.max(initial=0)))


def largest(
    kind: str, cells: int, steps: int, constants: Constants, load: float, opened: Opened | None = None
) -> float:
    """The most noise, `absolute` or `relative`, that the bound allows; found by halving an interval."""
    low, high = 0.0, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        fits = borne(Noise(**{kind: middle}), cells, steps, constants, load, opened)
        low, high = (middle, high) if fits else (low, middle)
    return low


def borne(
    noise: Noise,
    cells: int,
    steps: int,
    constants: Constants,
    load: float,
    opened: Opened | None = None,
    precision: str = "float64",
) -> bool:
    """Whether the bound proves that the network does its work with this noise."""
    rho = noise.absolute / (SMALLEST_SHARE * constants.gate) + noise.relative
    flat = rho * load <= 2
    return flat and error(noise, cells, steps, constants, precision, opened) <= LARGEST_ERROR


def choose_for_noise(cells: int, steps: int, precision: str) -> Constants:
    """The largest w0 whose drift is within bounds: with noise nothing is left to rounding, and large cells
    bear the most."""
    u, least = gate_weight(cells), choose(cells, steps, precision)
    w0 = u
    while drift(w0, cells, steps) > LARGEST_DRIFT:
        w0 /= 2
    return Constants(max(w0, least.w0), u)


def require_borne(
    noise: Noise, cells: int, steps: int, constants: Constants, load: float, precision: str
) -> None:
    """Refuses more noise than is proved to do no harm."""
    if borne(noise, cells, steps, constants, load, precision=precision):
        return
    most = [largest(kind, cells, steps, constants, load) for kind in ("absolute", "relative")]
    raise Refused(
        f"{cells:,} bits of memory bear, over {steps:,} steps, noise of {most[0]:.2g} on every weight, or of "
        f"{most[1]:.2g} times the weight, but not this much in {precision}",
        advice="Ask for less noise or fewer `steps`.",
    )
