"""The reference engine: JAX differentiates the network, and the rule beside it moves the weights."""

from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import Array

from tapegrad._optimise import NetworkLoss, rates_of, train
from tapegrad._precision import in_double
from tapegrad.targets.descent.loss import Numbers, Weights, in_room
from tapegrad.targets.descent.net import Descent, DescentNet


class Reference:
    """Of one net. Its network is padded, so that a machine of like size needs no compilation of its own. Only
    a primary network, which may look at all of a tape, keeps it as it is."""

    def __init__(self, net: DescentNet) -> None:
        self.net, self._padded = net, net.error.network.primary is None

    @cached_property
    def error(self) -> NetworkLoss:
        """The loss, on the device, where it is used at every step."""
        net, error = self.net, self.net.error
        network = error.in_room(net.shapes) if self._padded else net.network
        return jax.device_put(NetworkLoss(network, error.data()))

    @cached_property
    def rates(self) -> dict[str, Any]:
        """The rule, in the place of each weight."""
        return rates_of(self.net.training, self.net.vertex_count)

    @in_double
    def train(self, carry: Descent, budget: int) -> Descent:
        """Steps until the loss is at most B_stop, for at most `budget` steps."""
        result = train(self.error, self._given(carry), self.rates, self.net.stop, budget)
        return Descent(self._taken(result.parameters, carry.weights), carry.steps + int(result.steps))

    @in_double
    def loss(self, carry: Descent) -> float:
        """1/2 |F(x) - y|^2 at these weights."""
        return float(_value(self.error, self._given(carry)))

    @in_double
    def gradient(self, carry: Descent) -> Weights[Numbers]:
        """Its gradient; 0 in what is no input of the network, there being nothing of it."""
        nothing = Weights(*map(np.zeros_like, carry.weights))
        return self._taken(_gradient(self.error, self._given(carry)), nothing)

    def _given(self, carry: Descent) -> dict[str, Numbers]:
        """What is trained, with as much room as the network has."""
        weights = carry.weights._asdict()
        if self._padded:
            weights |= {name: in_room(weights[name]) for name in "sTH"}
        return {name: np.asarray(weights[name]) for name in self.net.training.updates}

    def _taken(self, found: dict[str, Any], like: Weights[Numbers]) -> Weights[Numbers]:
        """The weights again, padding left out."""
        cut = {
            name: np.asarray(found[name])[tuple(map(slice, own.shape))]
            for name, own in like._asdict().items()
            if name in found
        }
        return like._replace(**cut)


@eqx.filter_jit
def _value(error: NetworkLoss, weights: dict[str, Numbers]) -> Array:
    return error(weights)


@eqx.filter_jit
def _gradient(error: NetworkLoss, weights: dict[str, Numbers]) -> dict[str, Array]:
    return jax.grad(error)(weights)
