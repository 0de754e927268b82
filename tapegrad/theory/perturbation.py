"""The perturbation test: parameter noise below the lower bound must not change anything that is decoded."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from tapegrad.precision import in_double
from tapegrad.theory.attack import descend
from tapegrad.theory.problem import Parameters, Problem, added, masked, norm, random_like, scaled


@dataclass(frozen=True)
class PerturbationReport:
    """How many perturbations of one norm were tried, and how many changed a decoded bit."""

    radius: float
    random: int
    adversarial: int
    changed: int

    def __str__(self) -> str:
        tried = f"{self.random} random and {self.adversarial} adversarial perturbations of norm {self.radius:.4g}"
        return f"{tried}: {self.changed} changed a decoded bit"


@in_double
def perturbation_test(problem: Problem, radius: float, trials: int = 10, seed: int = 0) -> PerturbationReport:
    """Noise of norm `radius` on all parameters: in random directions, and down the guided slope of the
    smallest margin within every promising part of the net. All decoded bits are compared, not only the
    prediction: of a transformer, every output of every decoder step."""
    bits = jax.jit(problem.bits)
    before = bits(problem.parameters)

    def changed(change: Parameters) -> bool:
        length = norm(change)
        full = scaled(change, radius / length) if length else change
        return bool(jnp.any(bits(added(problem.parameters, full)) != before))

    noises = (masked(random_like(problem.parameters, seed + trial), problem.real) for trial in range(trials))
    count = sum(changed(noise) for noise in noises)
    changes = descend(problem, radius, seed)
    return PerturbationReport(radius, trials, len(changes), count + sum(map(changed, changes)))
