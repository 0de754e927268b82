"""The reference engine: JAX differentiates the network, and the rule beside it moves the weights.

The sums of the practical network are exact, in whatever order they are taken (`constants.py`). In the
noise-tolerant one the order does not matter for the gradient, since every vertex has at most one successor
with a derivative other than 0.
"""

from dataclasses import replace
from typing import Any

import jax
import numpy as np
from jax import Array
from numpy.typing import NDArray

from tapegrad._optimise import descend, rates_of
from tapegrad._precision import in_double
from tapegrad.networks.backends.jax import Jax, in_room
from tapegrad.networks.network import Network
from tapegrad.networks.tiles import power_of_two

Values = dict[str, Any]


class Reference:
    """Of one network, with room, so that networks of similar size share one compiled step."""

    @in_double
    def __init__(self, network: Network, vertices: int) -> None:
        rule = network.training
        assert rule is not None
        bare = replace(network, training=None)  # the rate is no part of what is compiled
        self.network, self.vertices = jax.device_put(in_room(bare)), vertices
        self.rates = rates_of(rule)

    @in_double
    def step(self, given: Values) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
        """One step of plain SGD in the precision of the weights; the new weights, and the value of every
        vertex that it saw."""
        count = len(given["weights"])
        after, outputs = sgd_step(self.network, roomy(given, self.vertices), self.rates)
        return np.asarray(after)[:count], np.asarray(outputs["values"])[: self.vertices]


def roomy(given: Values, vertices: int) -> Values:
    """What a network is given, with as much room."""
    widths = {"weights": power_of_two(len(given["weights"])), "row": power_of_two(vertices)}
    return {
        name: np.append(own, np.zeros(widths[name] - len(own), own.dtype)) if name in widths else own
        for name, own in given.items()
    }


@jax.jit
def sgd_step(network: Network, given: Values, rates: Values) -> tuple[Array, dict[str, Array]]:
    """One step, of a network with room; the new weights, and what the network put out."""

    def loss(trained: Values) -> tuple[Array, dict[str, Array]]:
        outputs, _ = Jax(network).run(given | trained)
        return outputs["loss"], outputs

    trained = {"weights": given["weights"]}
    gradient, outputs = jax.grad(loss, has_aux=True)(trained)
    return descend(lambda weights: loss(weights)[0], trained, rates, gradient)["weights"], outputs
