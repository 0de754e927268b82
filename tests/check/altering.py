"""Nets as the checkers are given them, free to be altered, and ways to alter them in one place."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from tapegrad._compile import compile
from tapegrad._sources import source_to_json
from tapegrad.networks.network import Network
from tapegrad.networks.saving import arrays_of, from_json, to_json
from tapegrad.networks.wiring import Wiring
from tapegrad.source import Source
from tapegrad.targets.emulator.net import PracticalNet
from tapegrad.targets.emulator.paper_nets import NoisyNet
from tapegrad.targets.simplex.net import SimplexNet
from tapegrad.targets.tape.net import TapeNet
from tapegrad.targets.transformer.memory_net import MemoryNet
from tapegrad.targets.transformer.net import TransformerNet
from tapegrad_check import checked_by
from tapegrad_check.folder import OF_NETWORK, Checked
from tapegrad_check.graph import graph_of
from tapegrad_check.sources import GridMachine, Machine, Model, model_of
from tests.check import of_heads, of_losses
from tests.check.listed_maps import maps_of


@dataclass
class Net:
    """What a checker is given, free to be altered."""

    config: dict[str, Any]
    arrays: dict[str, np.ndarray]
    claims: dict[str, Any]
    source: Model | None
    network: dict[str, Any] | None = None
    """The graph, where the target has one; its arrays are among the others, as in a folder."""

    form: str = ""
    """`heads` or `paper` where config and arrays are those of `of_heads`, which makes the graph of them;
    a target where they are those of `of_losses`."""

    def put(self, name: str, place: Any, value: Any) -> None:
        """Another number in an array."""
        self.arrays[name] = self.arrays[name].copy()
        self.arrays[name][place] = value

    def add(self, name: str, place: Any, value: Any) -> None:
        """A number more, or less."""
        self.put(name, place, self.arrays[name][place] + value)

    def retype(self, name: str, dtype: Any) -> None:
        """The same numbers in another type."""
        self.arrays[name] = self.arrays[name].astype(dtype)

    def machine(self, **changes: Any) -> None:
        """Another source."""
        assert isinstance(self.source, Machine | GridMachine)
        self.source = replace(self.source, **changes)

    def verdict(self, target: str) -> str:
        """What the checker of a target says."""
        return self.checked(target).verdict

    def checked(self, target: str) -> Checked:
        """What it proves."""
        config, own, network, graph = self.config, self.arrays, self.network, None
        if self.form == "heads":
            config, (network, own) = of_heads.put_together(config, own)
        if self.form == "paper":
            config, own, (network, more) = of_heads.put_together_as_in_the_paper(config, own)
            own = own | more
        if self.form in of_losses.PUT_TOGETHER:
            (config, own), (network, more) = of_losses.PUT_TOGETHER[self.form](config, own)
            own = own | more
        if network is not None:
            named = {n: array for n, array in own.items() if n.startswith(OF_NETWORK)}
            graph = graph_of(network, {n.removeprefix(OF_NETWORK): array for n, array in named.items()})
            own = {n: array for n, array in own.items() if n not in named}
        return checked_by(target, config, own, self.claims, self.source, graph)


def net_of(source: Source, target: str, options: Mapping[str, Any]) -> Net:
    """A net as the compiler makes it."""
    compiled = compile(source, target, **options)
    net, lowered = compiled.net, compiled.source if target == "relu" else compiled.lowered
    model = model_of(*source_to_json(lowered))
    if isinstance(net, MemoryNet):
        return Net(*of_heads.taken_apart(net), net.certificate(), model, form="heads")
    if isinstance(net, TransformerNet):
        return Net(*of_heads.of_the_paper(net), net.certificate(), model, form="paper")
    if isinstance(net, SimplexNet):
        return Net(*of_losses.of_simplex(net), net.certificate(), model, form="simplex")
    if isinstance(net, PracticalNet | NoisyNet):
        return Net(*of_losses.of_emulator(net), net.certificate(), model, form="emulator")
    if isinstance(net, TapeNet):
        return Net(*of_losses.of_tape(net), net.certificate(), model, form="tape")
    arrays, network = {name: np.array(array) for name, array in net.arrays().items()}, None
    if net.saves_network:
        network, more = graph_arrays(net.network)
        arrays |= more
    return Net(net.config(), arrays, net.certificate(), model, network)


def network_of(net: Net) -> Network:
    """The network of a net, as the compiler reads it."""
    assert net.network is not None
    arrays = {n.removeprefix(OF_NETWORK): a for n, a in net.arrays.items() if n.startswith(OF_NETWORK)}
    return from_json(net.network, arrays)


def graph_arrays(network: Network) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """A network as a net has it: JSON, and arrays by their names in a folder."""
    arrays = {OF_NETWORK + name: np.array(array) for name, array in arrays_of(network).items()}
    return json.loads(json.dumps(to_json(network))), arrays


def rewire(net: Net, change: Callable[[Wiring], Wiring], *more: str) -> None:
    """Other rows in a network of layers, and names for more outputs."""
    network = network_of(net)
    names = network.inputs["bits"].columns, network.columns[network.outputs["outputs"]] + more
    made = change(Wiring.of(network)).network(network.name, network.inputs["bits"].dtype, *names)
    own = {n: array for n, array in net.arrays.items() if not n.startswith(OF_NETWORK)}
    net.network, arrays = graph_arrays(made)
    net.arrays = own | arrays


Change = Callable[[Net], Any]
"""Alters a net."""


def config(**changes: Any) -> Change:
    return lambda net: net.config.update(changes)


def constants(**changes: int) -> Change:
    def change(net: Net) -> None:
        net.config["constants"] |= {n: net.config["constants"][n] + more for n, more in changes.items()}

    return change


def claims(**changes: Any) -> Change:
    return lambda net: net.claims.update(changes)


def put(name: str, place: Any, value: Any) -> Change:
    return lambda net: net.put(name, place, value)


def add(name: str, place: Any, value: Any) -> Change:
    return lambda net: net.add(name, place, value)


def retype(name: str, dtype: Any) -> Change:
    return lambda net: net.retype(name, dtype)


def machine(**changes: Any) -> Change:
    return lambda net: net.machine(**changes)


def both(*changes: Change) -> Change:
    return lambda net: [change(net) for change in changes]


def without(name: str) -> Change:
    return lambda net: net.arrays.pop(name)


def cut(name: str) -> Change:
    """An array without its last entry."""
    return lambda net: net.arrays.update({name: net.arrays[name][:-1]})


def put_all(name: str, values: list[int]) -> Change:
    """An array of the same type with other numbers."""
    return lambda net: net.arrays.update({name: np.array(values, net.arrays[name].dtype)})


Rows = list[tuple[list[int], list[float], float]]


class Arrays(Protocol):
    """A net, or the files of one."""

    arrays: dict[str, np.ndarray]


class Maps(list[tuple[int, Rows]]):
    """The maps of one name, as widths and rows, free to be altered."""

    @classmethod
    def of(cls, net: Arrays, name: str) -> "Maps":
        found = maps_of(net.arrays, name)
        return cls((own.width, [own.row(row) for row in range(len(own))]) for own in found)

    def write(self, net: Arrays, name: str) -> None:
        sizes = [[len(rows), width, sum(len(c) for c, _, _ in rows)] for width, rows in self]
        entries = [
            (row, column, value)
            for _, rows in self
            for row, (columns, values, _) in enumerate(rows)
            for column, value in zip(columns, values, strict=True)
        ]
        rows, columns, values = zip(*entries, strict=True) if entries else ((), (), ())
        net.arrays |= {
            f"{name}.sizes": np.array(sizes, np.int64),
            f"{name}.rows": np.array(rows, np.int32),
            f"{name}.columns": np.array(columns, np.int32),
            f"{name}.values": np.array(values, np.float32),
            f"{name}.bias": np.array([bias for _, own in self for _, _, bias in own], np.float32),
        }


def maps(name: str, change: Callable[[Maps], Any]) -> Change:
    def changed(net: Net) -> None:
        found = Maps.of(net, name)
        change(found)
        found.write(net, name)

    return changed


def row(name: str, which: int, place: int, columns: list[int], values: list[float], bias: float) -> Change:
    """Another row of a map."""
    return maps(name, lambda found: found[which][1].__setitem__(place, (columns, values, bias)))


def form(of: str, which: int, place: int, terms: dict[int, float], bias: float = 0.0) -> Change:
    """Another row, by its terms."""
    return row(of, which, place, list(terms), list(terms.values()), bias)


def more(of: str, which: int, place: int, terms: dict[int, float]) -> Change:
    """Terms that are added to a row, or replace some of its own."""

    def change(net: Net) -> None:
        columns, values, bias = Maps.of(net, of)[which][1][place]
        form(of, which, place, dict(zip(columns, values, strict=True)) | terms, bias)(net)

    return change


def without_row(of: str, which: int, place: int) -> Change:
    return maps(of, lambda own: own[which][1].pop(place))


def another_row(of: str, which: int, terms: dict[int, float]) -> Change:
    return maps(of, lambda own: own[which][1].append((list(terms), list(terms.values()), 0.0)))


def twice(of: str) -> Change:
    """The first map of a name again."""
    return maps(of, lambda own: own.insert(0, own[0]))


RULES = "network.rules.index"
"""Of a filter, the units that say whether a rule applies."""


class Channels:
    """The filter of channels of an `rcnn` net, written out."""

    def __init__(self, net: Arrays) -> None:
        self.net, channels = net, len(net.arrays["network.first_grid"])
        self.bias = net.arrays["network.filter.0.bias"].copy()
        self.kernel = self._dense("0", 9 * channels).reshape(len(self.bias), channels, 3, 3)
        self.mix = self._dense("1", len(self.bias))

    def _dense(self, number: str, width: int) -> np.ndarray:
        parts = ("rows", "columns", "values", "bias")
        rows, columns, values, bias = (self.net.arrays[f"network.filter.{number}.{part}"] for part in parts)
        found = np.zeros((len(bias), width), np.float32)
        found[rows, columns] = values
        return found

    @property
    def largest(self) -> float:
        """The largest sum that a unit can come to."""
        sizes = np.abs(self.kernel.astype(float)).sum(axis=(1, 2, 3))
        return float((sizes + np.abs(self.bias.astype(float))).max())

    def write(self) -> None:
        biases = self.bias, np.zeros(len(self.mix), np.float32)
        matrices = self.kernel.reshape(len(self.kernel), -1), self.mix
        for number, (matrix, bias) in enumerate(zip(matrices, biases, strict=True)):
            rows, columns = np.nonzero(matrix)
            for part, array in (("rows", rows), ("columns", columns), ("values", matrix[rows, columns])):
                self.net.arrays[f"network.filter.{number}.{part}"] = array
            self.net.arrays[f"network.filter.{number}.bias"] = bias


def channels(change: Callable[[Channels], Any]) -> Change:
    """Alters a filter of channels."""

    def changed(net: Net) -> None:
        found = Channels(net)
        change(found)
        found.write()

    return changed


def settings(operation: str, **changes: Any) -> Change:
    """Other settings of the first node of an operation."""

    def changed(net: Net) -> None:
        assert net.network is not None
        node = next(own for own in net.network["nodes"] if own["operation"] == operation)
        node["settings"] = node["settings"] | changes

    return changed
