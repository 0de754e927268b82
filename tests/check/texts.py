"""Nets that read a text, free to be altered part by part: what is altered is written as a graph again."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from tapegrad.networks import builder
from tapegrad.networks.form import Affine
from tapegrad.networks.network import Network
from tapegrad.networks.saving import arrays_of, from_json, to_json
from tapegrad.networks.texts import Head, Layer, Parts, network_of, parts_of
from tapegrad.source import Source
from tapegrad_check.folder import NETWORK, OF_NETWORK
from tapegrad_check.graph import Graph, graph_of
from tests.check.altering import Change, Maps, Net, net_of
from tests.check.forging import Saved

SIDES = ("query", "key", "value")


@dataclass
class TextNet(Net):
    """A net whose arrays are its maps, one after the other: `query`, `key`, `value`, `units`, `sums`,
    `embedding` and `unembedding`, as `Maps` has them; how many heads layers have; and where heads and units
    add to, `heads_to` and `adds_to`."""

    said: dict[str, Any] | None = None
    """What the graph says besides: `names` of heads, `purposes` of layers, `coordinates`, `words`, and
    `positions`."""

    def verdict(self, target: str) -> str:
        return self.written().verdict(target)

    def written(self) -> Net:
        """The net with its graph, whether that is whole or not: to say so is for the checker."""
        said = self.said
        assert said is not None
        found = {name: list(_maps(self.arrays, name)) for name in NAMES}
        counts = self.arrays["heads"].tolist()
        to = iter(np.split(self.arrays["heads_to"], np.cumsum(list(map(len, found["value"])))[:-1]))
        adds = np.split(self.arrays["adds_to"], np.cumsum(list(map(len, found["sums"])))[:-1])
        heads = iter(
            [Head(*own) for own in zip(said["names"], *(found[side] for side in SIDES), to, strict=True)]
        )
        layers = [
            Layer(purpose, tuple(next(heads) for _ in range(count)), units, sums, place)
            for purpose, count, units, sums, place in zip(
                said["purposes"], counts, found["units"], found["sums"], adds, strict=True
            )
        ]
        (embedding,), (unembedding,) = found["embedding"], found["unembedding"]
        parts = Parts(embedding, said["positions"], tuple(layers), unembedding, said["causal"])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(builder, "check", lambda network: {})
            network = network_of(parts, "decoder", said["coordinates"], said["words"])
        arrays = {OF_NETWORK + name: array for name, array in arrays_of(network).items()}
        arrays |= said.get("beside", {})
        graph = json.loads(json.dumps(to_json(network)))
        return Net(self.config, arrays, self.claims, self.source, graph)

    def graph(self) -> Graph:
        """The graph as the checker reads it."""
        own = self.written()
        assert own.network is not None
        return graph_of(own.network, {n.removeprefix(OF_NETWORK): array for n, array in own.arrays.items()})

    def into(self, saved: Saved) -> Saved:
        """A folder like this one, with the altered net in it."""
        forged, own = saved.copy(), self.written()
        forged.arrays = {n: a for n, a in forged.arrays.items() if not n.startswith(OF_NETWORK)} | own.arrays
        forged.beside[NETWORK] = own.network
        return forged


NAMES = (*SIDES, "units", "sums", "embedding", "unembedding")


def taken_apart(net: Net) -> TextNet:
    """The maps of a net that reads a text."""
    assert net.network is not None
    arrays = {name.removeprefix(OF_NETWORK): own for name, own in net.arrays.items()}
    network = from_json(net.network, arrays)
    parts = parts_of(network)
    heads = [head for layer in parts.layers for head in layer.heads]
    said = {
        "names": [head.name for head in heads],
        "purposes": [layer.purpose for layer in parts.layers],
        "coordinates": list(network.columns["embedding"]),
        "words": list(network.columns.get("unembedding", ())),
        "positions": parts.positions,
        "causal": parts.causal,
    }
    flat = {
        "heads": np.array([len(layer.heads) for layer in parts.layers], np.int32),
        "heads_to": _joined([head.to for head in heads]),
        "adds_to": _joined([layer.to for layer in parts.layers]),
    }
    made = TextNet(net.config, flat, net.claims, net.source, said=said)
    kinds: dict[str, list[Affine]] = {side: [getattr(head, side) for head in heads] for side in SIDES}
    kinds |= {part: [getattr(layer, part) for layer in parts.layers] for part in ("units", "sums")}
    kinds |= {"embedding": [parts.embedding], "unembedding": [parts.unembedding]}
    for name, own in kinds.items():
        Maps((one.width, _rows(one)) for one in own).write(made, name)
    return made


def read_back(network: Network) -> Graph:
    """The graph as the checker reads it."""
    return graph_of(json.loads(json.dumps(to_json(network))), arrays_of(network))


def saved_text(saved: Saved) -> TextNet:
    """The net of a folder."""
    arrays = {name: own for name, own in saved.arrays.items() if name.startswith(OF_NETWORK)}
    return taken_apart(Net(saved.config["net"], arrays, saved.claims, None, saved.beside[NETWORK]))


def text_net(source: Source, target: str, options: Mapping[str, Any]) -> TextNet:
    """A net as the compiler makes it."""
    return taken_apart(net_of(source, target, options))


def said(net: Any) -> dict[str, Any]:
    """What the graph says besides."""
    assert isinstance(net, TextNet)
    assert net.said is not None
    return net.said


def placed(**changes: int) -> Change:
    """Other numbers for what is known of positions."""
    return lambda net: said(net).update(positions=replace(said(net)["positions"], **changes))


def _rows(own: Affine) -> list[tuple[list[int], list[float], float]]:
    found: list[tuple[list[int], list[float], float]] = []
    for row, bias in enumerate(own.bias.tolist()):
        terms = list(own.row(row))
        found.append(([column for column, _ in terms], [value for _, value in terms], bias))
    return found


def _maps(arrays: dict[str, np.ndarray], name: str) -> Iterator[Affine]:
    """Maps as they stand there, right or wrong."""
    sizes, rows, columns, values, bias = (
        arrays[f"{name}.{part}"] for part in ("sizes", "rows", "columns", "values", "bias")
    )
    row = entry = 0
    for count, width, size in sizes.tolist():
        own = slice(entry, entry + size)
        yield Affine(rows[own], columns[own], values[own], bias[row : row + count], width)
        row, entry = row + count, entry + size


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.zeros(0, np.int32), *parts]).astype(np.int32)
