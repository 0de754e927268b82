"""Gradient descent where some parameters live on a simplex, written once for every loss of that form.

Welper's (3), (14) and (22): a parameter on a simplex moves by the conditional gradient (Frank and Wolfe),
`s + a (argmin - s)` with `argmin` the vertex of steepest descent; every other parameter moves by plain
gradient descent at its own rate. The paper prints the first rule with a minus sign, which would lead out of
the simplex. Where no vertex is strictly better than the present point, the point stays: the paper relies on
this in its first step, where the whole gradient is zero.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tapegrad._trees import static, tree
from tapegrad.networks.backends.jax import Jax
from tapegrad.networks.network import Network, Training

Parameters = Any
"""A pytree of arrays."""

Loss = Callable[[Parameters], Array]


@tree
class NetworkLoss:
    """The loss of a network that is trained, as a function of what is trained: values by their names."""

    network: Network
    data: Mapping[str, Any]
    """What else it is given."""
    loss: str = static(default="loss")
    """The output."""

    def __call__(self, parameters: Parameters) -> Array:
        return Jax(self.network).run({**self.data, **parameters})[0][self.loss]


class OnSimplex(eqx.Module):
    """Stands in the place of a rate: this parameter moves by the conditional gradient. The step is 1, or
    found by a line search (then for one parameter only)."""

    line_search: bool = eqx.field(static=True, default=False)
    vertices: Array | np.ndarray | None = None
    """How many coordinates, from the first, the simplex has; any others are padding. None: it has all."""


def rates_of(rule: Training, vertices: int | None = None) -> dict[str, Any]:
    """In the place of each input that is trained how it moves; of a padded point of a simplex only so many
    coordinates, from the first, are vertices."""
    count = None if vertices is None else np.asarray(vertices)
    return {
        name: OnSimplex(update.line_search, count) if update.kind == "vertex" else update.rate
        for name, update in rule.updates.items()
    }


class Trained(NamedTuple):
    """Where training stands: the parameters, and the steps taken."""

    parameters: Parameters
    steps: Array


LINE_SEARCH_GRID = 64
"""Step lengths 1, 63/64, ..., 0 are tried. The losses of section 4.3 are piecewise linear along an edge with
kinks at multiples of 1/4, so one of their minimisers is always among them."""


def descend(loss: Loss, parameters: Parameters, rates: Parameters, gradient: Parameters) -> Parameters:
    """The parameters after one step along a given gradient of the loss."""

    def moved(rate: Any, parameter: Array, slope: Array) -> Array:
        if isinstance(rate, OnSimplex):
            return _best_vertex(parameter, slope, rate.vertices)
        return parameter - rate * slope

    new = jax.tree.map(moved, rates, parameters, gradient, is_leaf=_is_on_simplex)
    kinds = jax.tree.leaves(rates, is_leaf=_is_on_simplex)
    if any(isinstance(kind, OnSimplex) and kind.line_search for kind in kinds):
        return _searched(loss, parameters, rates, new)
    return new


def train(loss: Loss, parameters: Parameters, rates: Parameters, stop: float, budget: int) -> Trained:
    """Steps until the loss is at most `stop`, for at most `budget` steps. The bound is asked after every
    step and not before the first: with the label copy still empty the extended network puts out 0, whose
    loss says nothing about the machine. Compiled once for each shape of the parameters."""
    return _train(loss, parameters, rates, jnp.asarray(stop), jnp.asarray(budget))


@eqx.filter_jit
def _train(loss: Loss, parameters: Parameters, rates: Parameters, stop: Array, budget: Array) -> Trained:
    """Each round asks the bound about the step before it, then takes one: so the gradient, which is most of
    what there is to compile, stands in the loop once."""

    def going(state: tuple[Trained, Array]) -> Array:
        trained, stopped = state
        return ~stopped & (trained.steps < budget)

    def step(state: tuple[Trained, Array]) -> tuple[Trained, Array]:
        (old, steps), _ = state
        value, gradient = jax.value_and_grad(loss)(old)
        stopped = (steps > 0) & (value <= stop)
        stepped = descend(loss, old, rates, gradient)
        new = jax.tree.map(lambda before, after: jnp.where(stopped, before, after), old, stepped)
        return Trained(new, jnp.where(stopped, steps, steps + 1)), stopped

    first = Trained(parameters, jnp.asarray(0))
    return jax.lax.while_loop(going, step, (first, jnp.asarray(False)))[0]


def _is_on_simplex(rate: Any) -> bool:
    return isinstance(rate, OnSimplex)


def _best_vertex(point: Array, slope: Array, vertices: Array | np.ndarray | None) -> Array:
    """The vertex of steepest descent, or the point itself if no vertex is strictly better."""
    real = True if vertices is None else jnp.arange(len(slope)) < vertices
    best = jnp.argmin(jnp.where(real, slope, jnp.inf))
    vertex = jax.nn.one_hot(best, len(point), dtype=point.dtype)
    return jnp.where(slope[best] < slope @ point, vertex, point)


def _searched(loss: Loss, old: Parameters, rates: Parameters, new: Parameters) -> Parameters:
    """The step with the length that minimises the loss, the other parameters held; the longest of equals."""

    def point(length: Array) -> Parameters:
        def along(rate: Any, start: Array, end: Array) -> Array:
            if isinstance(rate, OnSimplex) and rate.line_search:
                return jnp.where(length == 1, end, start + length * (end - start))
            return start

        return jax.tree.map(along, rates, old, new, is_leaf=_is_on_simplex)

    lengths = jnp.linspace(1.0, 0.0, LINE_SEARCH_GRID + 1)
    best = point(lengths[jnp.argmin(jax.lax.map(lambda length: loss(point(length)), lengths))])

    def chosen(rate: Any, searched: Array, stepped: Array) -> Array:
        return searched if isinstance(rate, OnSimplex) and rate.line_search else stepped

    return jax.tree.map(chosen, rates, best, new, is_leaf=_is_on_simplex)
