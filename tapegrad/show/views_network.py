"""Any network, value by value: the lines of `print(net.network)`, and what each value is at this step.

Every net has this, beside a view of its own where there is one. Targets have views of their own for what a
network does not say: relu its gates and units as they are computed, transformer and decoder the text or the
position that is written and where heads look in it, RASP its sequences, rcnn the plane, simplex the ring of
configurations, tape the states of the machine, emulator the memory.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad._compile import Compiled
from tapegrad._panels import plain
from tapegrad.errors import Refused
from tapegrad.networks.explaining import Explained
from tapegrad.networks.network import Network
from tapegrad.targets import Carry

Values = Mapping[str, NDArray[Any]]
"""Of a network at work, by name."""

MOST_LINES = 120
"""Values that have a line."""
MOST_COLUMNS = 64
"""Columns of a value that are shown."""
MOST_TOLD = 600
"""Rows whose formulas are told."""
MOST_DATA = 200_000
"""Characters of all values of a run; of longer ones fewer columns are shown."""
MOST_NUMBERS = 3_000_000
"""Numbers of a network that is computed for every frame."""
PASSED_OVER = ("constant", "take", "join", "transpose", "reshape")
"""Operations whose values are seen elsewhere: of a large network they have no lines."""


class NetworkValues:
    """The values of a net's network, frame by frame: those that the net's own view has computed; else, of a
    network without state, those of the step that comes; of a large network none."""

    def __init__(self, compiled: Compiled, carry: Carry) -> None:
        from tapegrad.networks.backends.numpy import NumPy  # brings scipy

        self.net, self._found = compiled.net, dict[str, Any]()
        self.network = network_of(compiled)
        self._small = self.network is not None and _numbers(self.network) <= MOST_NUMBERS
        self._backend = NumPy(self.network) if self.network is not None and self._small else None
        self._first = carry
        self._changes = bool(self.network and (self.network.training or self.network.state))

    def at(self, carry: Carry, own: Values | None) -> Values | None:
        """Those of a frame; `own` are those that a view knows."""
        if own is not None or self._backend is None or self.network is None:
            return own
        if self.network.state.keys() - {"grid"}:
            return None  # its own view follows it, or nobody does
        if not self._found or (self._changes and not self.net.done(carry)):
            given = self.net.given(carry if self._changes else self._first)
            if max((own.size for own in given.values()), default=0) > MOST_NUMBERS:
                return None
            known = self.network.first_state() | given
            self._found = known | {node.name: value for node, value in self._backend.values(known)}
        return self._found


def network_of(compiled: Compiled) -> Network | None:
    """The network as data; None of a net that has none."""
    try:
        return compiled.net.network
    except Refused:
        return None


def _numbers(network: Network) -> int:
    return sum(array.size for array in network.arrays.values())


Shown = tuple[int, tuple[Any, ...]] | None
"""Of a value how many columns it has, and the first of them."""


class Listing:
    """The panel. A frame is what each line shows."""

    def __init__(self, explained: Explained) -> None:
        self.explained, network = explained, explained.network
        named, nodes = [*network.inputs, *network.state], list(network.nodes)
        self.every = len(named) + len(nodes)
        if self.every > MOST_LINES:
            nodes = [node for node in nodes if node.operation not in PASSED_OVER]
        if len(named) + len(nodes) > MOST_LINES:
            nodes = [node for node in nodes if node.about or node.name in network.results] or nodes
        self.lines = [*named, *(node.name for node in nodes)][:MOST_LINES]

    def frame(self, values: Values | None) -> list[Shown]:
        """One row of every value."""
        known = values or {}
        return [shown_of(known[name]) if name in known else None for name in self.lines]

    def finish(self, collected: list[list[Shown]]) -> tuple[dict[str, Any], list[Any]]:
        """Each row once, however often it occurs; a frame names them by number, and by -1 where there is
        none."""
        columns = MOST_COLUMNS
        rows, frames = _numbered(collected, columns)
        while columns > 1 and len(json.dumps(rows)) > MOST_DATA:
            columns //= 2
            rows, frames = _numbered(collected, columns)
        note = "Each line is a value, as print(net.network) lists them; of one with several rows, one row."
        if len(self.lines) < self.every:
            note += f" {len(self.lines)} of {self.every:,} values have a line."
        said = [(name, self.explained.explain(name) or name) for name in self.lines]
        panel = {
            "kind": "network",
            "title": "The network, value by value",
            "note": note,
            "lines": [[name, told.partition(": ")[2], self._reason(name)] for name, told in said],
            "words": self._words(columns),
            "values": rows,
        }
        return panel, frames

    def _reason(self, name: str) -> str:
        """What a value is for."""
        if (node := self.explained.nodes.get(name)) is not None:
            return node.about
        network = self.explained.network
        return (network.state[name].port if name in network.state else network.inputs[name]).about

    def _words(self, columns: int) -> list[list[str]]:
        """What is said of each column: the formula of a row, the name of a column."""
        left, words = MOST_TOLD, []
        for name in self.lines:
            node, named = self.explained.nodes.get(name), self.explained.names.get(name, ())[:columns]
            if node is not None and node.operation == "affine" and left > 0:
                count = min(columns, len(self.explained.rows_of(node)), left)
                left -= count
                units = (self.explained.name_of(node, row) for row in range(count))
                words.append([self.explained.explain(unit) or unit for unit in units])
            else:
                words.append([f"{name}: {column}" for column in named])
        return words


def _numbered(collected: list[list[Shown]], columns: int) -> tuple[list[list[Any]], list[list[int]]]:
    """The rows that occur, each with the number of its columns in front; and for each frame their numbers."""
    numbers: dict[tuple[Any, ...], int] = {}
    frames = [
        [
            -1 if own is None else numbers.setdefault((own[0], *own[1][:columns]), len(numbers))
            for own in frame
        ]
        for frame in collected
    ]
    return [list(row) for row in numbers], frames


def shown_of(array: NDArray[Any]) -> Shown:
    """What is shown of a value: of many rows the last; on a plane that which differs most from the first."""
    if not array.size:
        return (array.shape or (0,))[-1], ()
    row = array.reshape(-1)
    if array.ndim > 1:
        rows = array.reshape(-1, array.shape[-1])
        row = rows[-1 if array.ndim == 2 else int((rows != rows[0]).sum(axis=1).argmax())]
    numbers = row[:MOST_COLUMNS].tolist()
    return len(row), tuple(plain(own) if np.isfinite(own) else str(own) for own in numbers)
