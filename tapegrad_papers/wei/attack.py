"""Upper bounds of the all-layer margin: a small change of the parameters that flips a prediction."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from numpy.typing import NDArray

from tapegrad._precision import in_double
from tapegrad.errors import Refused
from tapegrad_papers.wei.problems import Parameters, Problem

Vector = NDArray[np.float64]

STEPS = 25
"""Gradient steps at one radius."""
TRIED = 4
"""How many parts of the net are tried."""
HALVINGS = 5
"""How often the gap between a radius that flips and one that does not is halved, on a logarithmic scale."""
LARGEST_RADIUS = 64.0
SHORTENINGS = 20


class FlatProblem:
    """All parameters of a problem in one vector, and one compiled program: smallest margin and slope."""

    def __init__(self, problem: Problem) -> None:
        flat, self.unravel = ravel_pytree(problem.parameters)
        self.start: Vector = np.asarray(flat)
        self.gradients = 0
        self.real = _flat(problem.parameters, problem.real)
        slope = jax.value_and_grad(lambda p, guide: problem.margins(self.unravel(p), guide).min())
        self._margin_and_slope = jax.jit(slope)
        slope = self.margin_and_slope(np.zeros_like(self.start), 1.0)[1]
        masks = [self.real * _flat(problem.parameters, window) for window in problem.windows]
        lengths = [np.linalg.norm(slope * mask) for mask in masks]
        self.promising = {int(n): masks[n] for n in np.argsort(lengths)[::-1][:TRIED]}
        """The parts of the net on which the guided slope is longest, longest first."""

    def margin_and_slope(self, change: Vector, guide: float) -> tuple[float, Vector]:
        """The smallest margin with the parameters changed, and its (guided) derivatives."""
        self.gradients += 1
        margin, slope = self._margin_and_slope(self.start + change, guide)
        return float(margin), np.asarray(slope)

    def flips(self, change: Vector) -> bool:
        """Whether the change makes a prediction wrong."""
        return self.margin_and_slope(change, 0.0)[0] <= 0

    def descend(self, radius: float, mask: Vector, guide: float, seed: int) -> tuple[bool, Vector]:
        """Normalised gradient steps, each put back into the ball. Returns whether a prediction flips, and the
        first change that does it, or else the last one."""
        noise = np.random.default_rng(seed).normal(size=len(self.start)) * mask
        change = _with_norm(noise, 0.05 * radius)
        for number in range(STEPS):
            margin, slope = self.margin_and_slope(change, guide)
            if margin <= 0:
                return True, change
            change = change - _with_norm(slope * mask, 0.5 * radius * (1 - number / STEPS))
            change = _with_norm(change, min(radius, float(np.linalg.norm(change))))
        return self.flips(change), change

    def shortened(self, change: Vector) -> Vector:
        """The shortest multiple of a change that still flips a prediction, by bisection."""
        low, high = 0.0, 1.0
        for _ in range(SHORTENINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if self.flips(middle * change) else (middle, high)
        return high * change


@lru_cache(maxsize=4)
def flattened(problem: Problem) -> FlatProblem:
    """Kept for a while, so that an attack and a test with noise compile one program between them."""
    return FlatProblem(problem)


@dataclass(frozen=True)
class Attack:
    """What was found: `change`, a pytree like the parameters, flips a prediction and has norm `radius`."""

    radius: float
    change: Parameters
    window: int
    """Which part of the net was changed."""


Report = Callable[[int], None]
"""Told how many gradients were computed so far."""


@in_double
def attack(
    problem: Problem, start: float = 0.02, seed: int = 0, progress: Report = lambda gradients: None
) -> Attack:
    """Projected gradient descent on the smallest margin, within a ball that shrinks while it succeeds.

    A part of the net that cannot beat the best radius so far costs two tries, one with the true derivatives
    and one with the guide. Whatever is found is a valid upper bound of (2.1): the flipped prediction is that
    of the unaltered function.
    """
    flat = flattened(problem)
    best, part = None, 0
    for number, mask in flat.promising.items():

        def tries(radius: float, mask: Vector = mask) -> Vector | None:
            for guide in (0.0, 1.0):
                flipped, change = flat.descend(radius, mask, guide, seed)
                progress(flat.gradients)
                if flipped:
                    return change
            return None

        radius = start if best is None else 0.97 * float(np.linalg.norm(best))
        change = tries(radius)
        while best is None and change is None and radius < LARGEST_RADIUS:
            radius *= 2
            change = tries(radius)
        if change is not None:
            best, part = flat.shortened(_smallest(tries, change)), number
    if best is None:
        raise Refused(f"no change of norm up to {LARGEST_RADIUS:g} was found that flips a prediction")
    return Attack(float(np.linalg.norm(best)), flat.unravel(jnp.asarray(best)), part)


def _smallest(tries: Callable[[float], Vector | None], change: Vector) -> Vector:
    """Bisects the radius."""
    high = float(np.linalg.norm(change))
    low = high / 2
    for _ in range(HALVINGS):
        middle = float(np.sqrt(low * high))
        found = tries(middle)
        if found is None:
            low = middle
        else:
            change, high = found, float(np.linalg.norm(found))
            low = min(low, high / 2)
    return change


def _flat(parameters: Parameters, mask: Parameters) -> Vector:
    """A mask of one number for each layer, or each entry, as one for each parameter."""
    parts = jax.tree.map(lambda leaf, m: np.broadcast_to(m, leaf.shape).reshape(-1), parameters, mask)
    return np.concatenate(jax.tree.leaves(parts))


def _with_norm(vector: Vector, length: float) -> Vector:
    own = float(np.linalg.norm(vector))
    return vector * (length / own) if own else vector


# The perturbation test: parameter noise below the lower bound must not change anything that is decoded.


@dataclass(frozen=True)
class PerturbationReport:
    """How many perturbations of one norm were tried, and how many changed a decoded bit."""

    radius: float
    random: int
    adversarial: int
    changed: int

    def __str__(self) -> str:
        tried = (
            f"{self.random} random and {self.adversarial} adversarial perturbations of norm {self.radius:.4g}"
        )
        return f"{tried}: {self.changed} changed a decoded bit"


@in_double
def perturbation_test(problem: Problem, radius: float, trials: int = 10, seed: int = 0) -> PerturbationReport:
    """Noise of norm `radius` on all parameters: in random directions, and down the guided slope of the
    smallest margin within every promising part of the net. All decoded bits are compared, not only the
    prediction: of a transformer, every output of every decoder step."""
    flat = flattened(problem)
    bits = jax.jit(lambda p: problem.bits(flat.unravel(p)))
    before = np.asarray(bits(flat.start))

    def changes_a_bit(change: Vector) -> bool:
        full = change * (radius / np.linalg.norm(change))
        return bool((np.asarray(bits(flat.start + full)) != before).any())

    random = np.random.default_rng(seed)
    noises = (random.normal(size=len(flat.start)) * flat.real for _ in range(trials))
    found = [flat.descend(radius, mask, 1.0, seed)[1] for mask in flat.promising.values()]
    changed = sum(map(changes_a_bit, noises)) + sum(map(changes_a_bit, found))
    return PerturbationReport(radius, trials, len(found), changed)
