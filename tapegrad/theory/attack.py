"""Upper bounds of the all-layer margin: the smallest change of the parameters that is found to flip a prediction."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from tapegrad.precision import in_double
from tapegrad.theory.problem import Parameters, Problem, added, masked, norm, random_like, scaled

STEPS = 25
"""Gradient steps at one radius."""
TRIED = 4
"""How many parts of the net are tried."""
HALVINGS = 5
"""How often the gap between a radius that flips and one that does not is halved, on a logarithmic scale."""
LARGEST_RADIUS = 64.0


@dataclass(frozen=True)
class Attack:
    """What was found. `change` is a pytree like the parameters; it flips a prediction and has norm `radius`."""

    radius: float
    change: Parameters
    window: int
    """Which part of the net was changed."""


@in_double
def attack(problem: Problem, start: float = 0.02, seed: int = 0) -> Attack:
    """Projected gradient descent on the smallest margin, within a ball that shrinks while it succeeds.

    The parts of the net on which the guided slope is longest are tried; a part that cannot beat the best
    radius so far costs two tries, one with the true derivatives and one with the guide. Whatever is found is
    a valid upper bound of (2.1): the flipped prediction is that of the unaltered function.
    """
    search = jax.jit(lambda p, radius, window, guide: _descend(p, problem, radius, window, guide, seed))
    tries = partial(_either, partial(search, problem.parameters))
    best: Attack | None = None
    for number in _promising(problem):
        window = problem.windows[number]
        radius = best.radius * 0.97 if best else start
        change = tries(radius, window)
        while best is None and change is None and radius < LARGEST_RADIUS:
            radius *= 2
            change = tries(radius, window)
        if change is not None:
            best = _smallest(problem, tries, number, change)
    if best is None:
        raise ArithmeticError(f"no change of norm up to {LARGEST_RADIUS} flips a prediction")
    return best


def descend(problem: Problem, radius: float, seed: int = 0) -> list[Parameters]:
    """Where the descent ends at this radius, in every promising part of the net, flipped or not."""
    search = jax.jit(lambda p, window: _descend(p, problem, radius, window, 1.0, seed)[1])
    return [search(problem.parameters, problem.windows[number]) for number in _promising(problem)]


def _promising(problem: Problem) -> list[int]:
    """The windows with the longest guided slopes, longest first."""
    slope = jax.jit(jax.grad(lambda p: problem.margins(p, 1.0).min()))(problem.parameters)
    lengths = [float(norm(masked(slope, problem.real, window))) for window in problem.windows]
    return np.argsort(lengths)[::-1][:TRIED].tolist()


def _either(search: Callable[..., Any], radius: float, window: Parameters) -> Parameters | None:
    for guide in (0.0, 1.0):
        flipped, change = search(radius, window, guide)
        if flipped:
            return change
    return None


def _smallest(problem: Problem, tries: Callable[..., Any], number: int, change: Parameters) -> Attack:
    """Bisects the radius; afterwards the change itself is shortened as far as it still flips."""
    high = float(norm(change))
    low = high / 2
    for _ in range(HALVINGS):
        middle = float(np.sqrt(low * high))
        found = tries(middle, problem.windows[number])
        if found is None:
            low = middle
        else:
            change, high = found, float(norm(found))
            low = min(low, high / 2)
    change = shortened(problem, change)
    return Attack(float(norm(change)), change, number)


def shortened(problem: Problem, change: Parameters) -> Parameters:
    """The shortest multiple of a change that still flips a prediction, by bisection."""

    @jax.jit
    def flips(p: Parameters, change: Parameters, factor: float) -> Array:
        return problem.margins(added(p, scaled(change, factor)), 0.0).min() <= 0

    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if flips(problem.parameters, change, middle) else (middle, high)
    return scaled(change, high)


def _descend(
    p: Parameters, problem: Problem, radius: Array | float, window: Parameters, guide: Array | float, seed: int
) -> tuple[Array, Parameters]:
    """Normalised gradient steps, each put back into the ball. Returns whether a prediction flips, and the
    first change that does it, or else the last one."""

    def smallest(change: Parameters) -> tuple[Array, Array]:
        margin = problem.margins(added(p, change), guide).min()
        return margin, margin

    def step(number: Array, carry: tuple[Parameters, Array, Parameters]):
        change, flipped, found = carry
        slope, margin = jax.grad(smallest, has_aux=True)(change)
        now = margin <= 0
        found = jax.tree.map(lambda old, new: jnp.where(flipped, old, new), found, change)
        slope = masked(slope, problem.real, window)
        length = radius * 0.5 * (1 - number / (STEPS + 1))
        moved = added(change, scaled(slope, -length / (norm(slope) + 1e-30)))
        moved = scaled(moved, jnp.minimum(1.0, radius / (norm(moved) + 1e-30)))
        return moved, flipped | now, found

    noise = random_like(p, seed)
    noise = masked(noise, problem.real, window)
    first = scaled(noise, 0.05 * radius / (norm(noise) + 1e-30))
    change, flipped, found = lax.fori_loop(0, STEPS, step, (first, jnp.asarray(False), first))
    found = jax.tree.map(lambda old, new: jnp.where(flipped, old, new), found, change)
    return flipped | (smallest(change)[0] <= 0), found
