"""The perturbation test: parameter noise below the lower bound must not change anything that is decoded."""

from dataclasses import dataclass

import jax
import numpy as np

from tapegrad._precision import in_double
from tapegrad_papers.theory.problem import Problem
from tapegrad_papers.wei.attack import Vector, flattened


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
