"""Batches (Welper, Remark 2.4): an extended network that reads one batch of labels after the other, each by a
step of gradient descent, and keeps room for one.

Figure 1 reads labels where z = 0, and only the first step finds it so. Here the machine asks for more: at
some vertices of s, known beforehand, 1/2 |z|^2 is added to l_TM. Then

    f_TM = sqrt(2 l_TM + |z|^2) f_perp(z)        (f_perp behind its stop-gradient, and orthogonal to y = z)

gives the squared error the gradient z in z, as it gives it that of l_TM in s, T and H: the step that takes
the machine on makes z zero. The network puts out 0 then; the step after it makes z the labels that are at
hand, and moves nothing else; and the machine goes on from where it stood, on other data. All else is as in
figure 1.

Whoever supplies the data looks at the output alone: where it is 0 the network waits for labels, and the next
batch is due; the stopping criterion (4) is not asked there, as it is not before the first step.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tapegrad.errors import BrokenNet, InputError, Refused
from tapegrad.networks.builder import Value
from tapegrad.targets.descent.loss import ExtendedNetwork, Numbers, Trained
from tapegrad.targets.descent.net import Descent
from tapegrad.targets.extended.build import DATA_TAPE
from tapegrad.targets.extended.formats import FixedPoint
from tapegrad.targets.extended.net import Extended, Shape, extend
from tapegrad.targets.extended.primary import MLP
from tapegrad.targets.extended.rosenblatt import ASKING, batch_machine, perceptron_rule
from tapegrad.targets.tape.net import TapeNet

SAMPLED = (0, 7, 56)
"""So many steps apart, after labels are read, gradients of the fast engine are compared with those of
automatic differentiation. The machine takes more steps with any batch."""


@dataclass(frozen=True, eq=False)
class BatchNetwork(ExtendedNetwork):
    """Figure 1 with a machine that asks for labels."""

    asking: Numbers
    """1 at the vertices where it does."""

    def traced(self, weights: Trained) -> Value:
        """l_TM, and 1/2 |z|^2 where the machine asks."""
        s, z = weights.s.detach(), weights.z
        asks = (s * s.builder.constant(self.asking, "asking")).total()
        return ExtendedNetwork.traced(self, weights) + asks * (z * z).total(2) / 2


class Turn(NamedTuple):
    """What training on one batch came to: the weights of the primary network as the tape holds them at its
    end, and all weights, from which training goes on."""

    steps: int
    theta: NDArray[np.float64]
    weights: Descent
    halted: bool
    """Whether the machine has ended; otherwise it waits for a next batch."""
    compared: int
    """At how many steps the fast engine was compared with automatic differentiation."""


@dataclass(frozen=True)
class Batched:
    """An extended network that is trained on batches, one after the other."""

    extended: Extended

    @property
    def network(self) -> BatchNetwork:
        """F(x; s, T, H, z)."""
        found = self.extended.net.error.network
        assert isinstance(found, BatchNetwork)
        return found

    def start(self) -> Descent:
        """All weights before training, z among them: 0."""
        return self.extended.net.start(self.extended.algorithm.start)

    def train(self, batches: Iterable[tuple[ArrayLike, ArrayLike]], steps: int = 10**7) -> Iterator[Turn]:
        """Gradient steps, at most so many on any batch, and nothing else. Where labels are read or given up
        a step is one of automatic differentiation; elsewhere one of the fast engine, which stops there."""
        carry = self.start()
        for x, y in batches:
            training = self.extended.on(x, y)
            net = training.net
            assert isinstance(net, TapeNet)
            if not self.waiting(training.forward(carry)):
                raise InputError("the machine has ended, and there is another batch")
            before = carry.steps
            carry = net.step(carry)
            _require_labels(net, carry)
            for after in SAMPLED:
                carry = net.advance_fast(carry, after)
                training.compare_gradients(carry)
            carry = net.advance_fast(carry, steps)
            halted = net.done(carry)
            if not halted:
                carry = net.step(carry)
                if not self.waiting(training.forward(carry)):
                    raise Refused(f"the machine asks for no other batch within {steps:,} gradient steps")
            yield Turn(carry.steps - before, training.theta(carry), carry, halted, len(SAMPLED))

    def waiting(self, output: NDArray[np.float64]) -> bool:
        """Whether this is the output of a network that has no labels, 0; rounding in the square root may
        leave some 1e-16 of those that it had. The primary network puts out -1 and 1."""
        return bool(np.sum(output**2) < self.network.thresholds.epsilon / 3)


def _require_labels(net: TapeNet, carry: Descent) -> None:
    """What rounding left of the labels before may be in the last digit of those that were read. The tape must
    show these all the same."""
    exact = carry._replace(weights=carry.weights._replace(z=net.error.y))
    if not np.array_equal(net.all_tapes(carry), net.all_tapes(exact)):
        raise BrokenNet(
            "the labels were read with another last digit", where=f"gradient step {carry.steps:,}"
        )


def perceptron_on_batches(x_shape: Shape, y_shape: Shape, data_format: FixedPoint, batches: int) -> Batched:
    """Rosenblatt's rule, one pass over so many batches of these shapes, around one unit with a sign."""
    rule, weights = perceptron_rule(x_shape, y_shape, data_format, epochs=batches)
    rule = replace(rule, machine=batch_machine(), rule=None)
    primary = MLP((x_shape[1], 1), "sign")
    network = extend(primary, rule, x_shape, y_shape, data_format=data_format, weight_format=weights)
    net = network.net
    assert isinstance(net, TapeNet)
    asking = _vertices(net, ASKING, len(net.graph.down[0]) // rule.machine.tapes)
    own = net.error.network
    other = BatchNetwork(own.machine, own.primary, own.thresholds, asking)
    known = net.arrays_for_fast
    # To the fast engine these vertices are as if the machine had ended: it stops there.
    stopping = known._replace(vertex_weight=np.where(asking > 0, -np.inf, known.vertex_weight))
    error = replace(net.error, network=other)
    return Batched(replace(network, net=replace(net, error=error, arrays_for_fast=stopping)))


def _vertices(net: TapeNet, state: str, tracks: int) -> NDArray[np.float64]:
    """1 at the vertices of a state of the machine before it was made ready, with a blank under the head of
    the data, which lie on the first so many tapes."""
    ready = [name.partition(".")[0] == state for name in net.states]
    first = DATA_TAPE * tracks
    blank = (net.graph.down[:, first : first + tracks] < 0).all(axis=1)
    return (np.repeat(ready, 2**net.tapes) & blank).astype(float)
