"""Networks that take steps, at work in NumPy. What depends on the inputs alone is computed once."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from numpy.typing import NDArray

from tapegrad.networks.backends.numba import Numba
from tapegrad.networks.checking import check
from tapegrad.networks.network import Network, Port

Values = dict[str, NDArray[Any]]


class Running(NamedTuple):
    """What a run keeps from step to step: inputs and what was made of them, and the state."""

    kept: Values
    state: Values


class Steps:
    """A network, ready to be run from many inputs."""

    def __init__(self, network: Network) -> None:
        before, step = split(network)
        self.network, self._before, self._step = network, Numba(before), Numba(step)

    def begin(self, given: Mapping[str, NDArray[Any]]) -> Running:
        """A run from these inputs and this state, where it is not the network's first one."""
        network = self.network
        inputs = {name: given[name] for name in network.inputs}
        state = {name: given.get(name, own) for name, own in network.first_state().items()}
        return Running(inputs | self._before.run(inputs)[0], state)

    def step(self, running: Running) -> tuple[Values, Running]:
        """The outputs of the next step, and the run after it."""
        outputs, state = self._step.run(running.kept | running.state)
        return outputs, Running(running.kept, state)

    def watch(self, running: Running) -> tuple[Values, Running]:
        """All values of the next step by name, and the run after it."""
        found = running.kept | running.state
        for node, value in self._step.values(found):
            found[node.name] = value
        state = {name: found[own.next] for name, own in self.network.state.items()}
        return found, Running(running.kept, state)

    def to_the_halt(self, running: Running, first: int, last: int) -> tuple[NDArray[Any], int, Running]:
        """Steps from number `first` up to `last`, or up to the one that halts: its output, the number of the
        next step, and the run after it."""
        outputs, running = self.step(running)
        while first < last and not outputs["halted"][0, 0] > 0.5:
            outputs, running = self.step(running)
            first += 1
        return outputs["output"][0], first + 1, running


def split(network: Network) -> tuple[Network, Network]:
    """A network of the values that depend on the inputs alone, and the step, which is given them."""
    fixed = set(network.inputs)
    for node in network.nodes:
        if fixed.issuperset(node.reads):
            fixed.add(node.name)
    early = tuple(node for node in network.nodes if node.name in fixed)
    late = tuple(node for node in network.nodes if node.name not in fixed)
    wanted = network.results.union(*(node.reads for node in late))
    made = [node.name for node in early if node.name in wanted]
    shapes = check(network)
    ports = {name: Port(shapes[name].sizes, shapes[name].dtype) for name in made}
    before = replace(
        network,
        name=f"{network.name}, before the first step",
        state={},
        nodes=early,
        outputs=dict(zip(made, made, strict=True)),
    )
    return before, replace(network, inputs={**network.inputs, **ports}, nodes=late)
