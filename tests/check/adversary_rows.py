"""The arrays of saved nets as rows of entries, whatever their format, free to be altered and written back.

A layer has rows, which read columns, and readers, which read these rows; so that what is done to a row can be
undone where it is read. A head has rows of its query and of its key, which are multiplied with one another.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]


@dataclass
class Row:
    """Entries are a column, a value, and whatever else is kept for each; a row without a bias has None."""

    entries: list[list[Any]]
    bias: Any = None

    def copy(self) -> "Row":
        return Row([list(entry) for entry in self.entries], self.bias)


class Layer(NamedTuple):
    """Rows, and the rows that read them: their column `base + i` is row i."""

    rows: list[Row]
    readers: list[Row]
    base: int
    width: int
    """Columns that rows may read."""
    grows: bool
    """Whether there may be more rows than there were."""


@dataclass
class Rows:
    """Some arrays of a net as rows. `write` gives the arrays again."""

    arrays: Arrays
    layers: list[Layer] = field(default_factory=list)
    heads: list[tuple[list[Row], list[Row]]] = field(default_factory=list)

    def write(self) -> Arrays:
        """The arrays of these rows."""
        raise NotImplementedError


def opened(arrays: Arrays, config: Mapping[str, Any]) -> list[Rows]:
    """All that is known to be rows."""
    found: list[Rows] = [
        Maps(arrays, name.removesuffix("units.sizes")) for name in arrays if name.endswith("units.sizes")
    ]
    if "offsets" in arrays:  # the constant, the inputs, a random bit and, but for one memory, a guess
        found.append(Graph(arrays, int(config["inputs"]) + (2 if "written" in arrays else 3)))
    if f"{UNITS}starts" in arrays:
        found.append(Units(arrays))
    for kind, name in (
        (Steps, "network.first_output"),
        (Chain, "network.filter.0.bias"),
        (Blocks, "blocks.0.mlp.W_in"),
    ):
        if name in arrays:
            found.append(kind(arrays))
    return found


def _cut(row_of: NDArray[Any], count: int, *columns: NDArray[Any]) -> list[list[list[Any]]]:
    """For each row its entries."""
    found: list[list[list[Any]]] = [[] for _ in range(count)]
    for row, *entry in zip(row_of.tolist(), *(own.tolist() for own in columns), strict=True):
        found[row].append(entry)
    return found


def _joined(rows: list[Row]) -> tuple[list[int], Iterator[list[Any]]]:
    """The number of the row of each entry, and the entries by what they have: columns, values and so on."""
    of = [number for number, row in enumerate(rows) for _ in row.entries]
    return of, (list(one) for one in zip(*(entry for row in rows for entry in row.entries), strict=True))


class Maps(Rows):
    """Sparse maps, as language models have them."""

    def __init__(self, arrays: Arrays, prefix: str) -> None:
        super().__init__(arrays)
        self.prefix, self.maps, self.widths = prefix, dict[str, list[list[Row]]](), dict[str, list[int]]()
        names = [
            name.removeprefix(prefix).removesuffix(".sizes") for name in arrays if name.endswith(".sizes")
        ]
        for name in names:
            self._read(name)
        for name, maps in self.maps.items():
            read_by = self.maps.get("sums", []) if name == "units" else [[] for _ in maps]
            grows = name in ("units", "query", "key")
            for rows, readers, width in zip(maps, read_by, self.widths[name], strict=False):
                self.layers.append(Layer(rows, readers, 0, width, grows and bool(readers)))
        self.heads = list(zip(self.maps.get("query", []), self.maps.get("key", []), strict=False))
        self.keys = [len(rows) for rows in self.maps.get("key", [])]

    def _read(self, name: str) -> None:
        part = {
            own: self.arrays[f"{self.prefix}{name}.{own}"] for own in ("rows", "columns", "values", "bias")
        }
        self.maps[name], self.widths[name] = [], []
        entry = row = 0
        for count, width, size in self.arrays[f"{self.prefix}{name}.sizes"].tolist():
            own = slice(entry, entry + size)
            found = _cut(part["rows"][own], count, part["columns"][own], part["values"][own])
            bias = part["bias"][row : row + count].tolist()
            self.maps[name].append([Row(*both) for both in zip(found, bias, strict=True)])
            self.widths[name].append(width)
            entry, row = entry + size, row + count

    def write(self) -> Arrays:
        arrays = dict(self.arrays)
        for layer, units in enumerate(self.maps.get("units", [])):
            self.widths["sums"][layer] = len(units)
        for name, maps in self.maps.items():
            both = list(zip(maps, self.widths[name], strict=True))
            sizes = [(len(rows), width, sum(len(row.entries) for row in rows)) for rows, width in both]
            rows = [np.array(_joined(own)[0], np.int32) for own in maps]
            entries = [entry for own in maps for row in own for entry in row.entries]
            written = {
                "sizes": np.array(sizes, np.int64).reshape(-1, 3),
                "rows": np.concatenate([np.zeros(0, np.int32), *rows]),
                "columns": np.array([column for column, _ in entries], np.int32),
                "values": np.array([value for _, value in entries], np.float32),
                "bias": np.array([row.bias for own in maps for row in own], np.float32),
            }
            arrays |= {f"{self.prefix}{name}.{own}": array for own, array in written.items()}
        if (null := self.prefix + "null_key") in arrays:  # of rows that a head has more, behind its own
            parts = np.split(arrays[null], np.cumsum(self.keys)[:-1])
            more = [len(rows) - count for rows, count in zip(self.maps["key"], self.keys, strict=True)]
            arrays[null] = np.concatenate(
                [np.pad(own, (0, extra)) for own, extra in zip(parts, more, strict=True)]
            )
        return arrays


class Graph(Rows):
    """Vertices with edges to them; whatever stands for each edge goes with it. So many are given."""

    def __init__(self, arrays: Arrays, given: int) -> None:
        super().__init__(arrays)
        self.names = [name for name in ("weights", "kinds", "signs") if name in arrays]
        offsets, sources = arrays["offsets"], arrays["sources"]
        ends = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        found = _cut(ends, len(offsets) - 1, sources, *(arrays[name] for name in self.names))
        self.rows, self.given = [Row(entries) for entries in found], given
        self.layers = [Layer(self.rows, self.rows, given, given + len(self.rows), False)]

    def write(self) -> Arrays:
        _, (sources, *others) = _joined(self.rows)
        offsets = np.cumsum([0, *(len(row.entries) for row in self.rows)])
        arrays = self.arrays | {"offsets": offsets.astype(np.int64), "sources": np.array(sources, np.int32)}
        return arrays | {
            name: np.array(own, self.arrays[name].dtype) for name, own in zip(self.names, others, strict=True)
        }


UNITS = "network.units."


class Units(Rows):
    """Layers on slots: rows read inputs, and rows of earlier layers. A slot that is read before anything is
    written to it is that of an input."""

    def __init__(self, arrays: Arrays) -> None:
        super().__init__(arrays)
        bounds, starts, columns, values, biases, to = (
            arrays[UNITS + part].tolist()
            for part in ("bounds", "starts", "columns", "values", "biases", "to")
        )
        writer: dict[int, int] = {}
        reads: list[int | None] = []
        for begin, end in pairwise(bounds):
            reads += [writer.get(slot) for slot in columns[starts[begin] : starts[end]]]
            writer |= {to[row]: row for row in range(begin, end)}
        given = [slot for slot, row in zip(columns, reads, strict=True) if row is None]
        self.inputs = 1 + max(given, default=-1)
        places = [
            slot if row is None else self.inputs + row for slot, row in zip(columns, reads, strict=True)
        ]
        self.rows = [
            Row([[place, value] for place, value in zip(places[a:b], values[a:b], strict=True)], bias)
            for (a, b), bias in zip(pairwise(starts), biases, strict=True)
        ]
        width = self.inputs + len(self.rows)
        self.layers = [Layer(self.rows, self.rows, self.inputs, width, False)]

    def write(self) -> Arrays:
        _, (places, values) = _joined(self.rows)
        slots = [*range(self.inputs), *self.arrays[f"{UNITS}to"].tolist()]
        own = {
            "starts": np.cumsum([0, *(len(row.entries) for row in self.rows)]),
            "columns": [slots[place] for place in places],
            "values": values,
            "biases": [row.bias for row in self.rows],
        }
        return self.arrays | {
            UNITS + name: np.array(part, self.arrays[UNITS + name].dtype) for name, part in own.items()
        }


class Chain(Rows):
    """A filter: maps one after the other, each the entries of a node."""

    def __init__(self, arrays: Arrays) -> None:
        super().__init__(arrays)
        self.maps: list[list[Row]] = []
        while f"network.filter.{len(self.maps)}.bias" in arrays:
            rows, *entries, bias = (own for _, own in self._parts(len(self.maps)))
            self.maps.append(
                [Row(*both) for both in zip(_cut(rows, len(bias), *entries), bias.tolist(), strict=True)]
            )
        widths = [9 * len(arrays["network.first_grid"]), *map(len, self.maps)]
        for rows, readers, width in zip(self.maps, [*self.maps[1:], []], widths, strict=False):
            self.layers.append(Layer(rows, readers, 0, width, bool(readers)))

    def _parts(self, number: int) -> Iterator[tuple[str, NDArray[Any]]]:
        for part in ("rows", "columns", "values", "bias"):
            yield (name := f"network.filter.{number}.{part}"), self.arrays[name]

    def write(self) -> Arrays:
        arrays = dict(self.arrays)
        for number, rows in enumerate(self.maps):
            of, (columns, values) = _joined(rows)
            own = of, columns, values, [row.bias for row in rows]
            for (name, before), part in zip(self._parts(number), own, strict=True):
                arrays[name] = np.array(part, before.dtype)
        return arrays


class Steps(Rows):
    """A step of heads and gates: maps, which are nodes, and levels of units and sums, many in a node."""

    def __init__(self, arrays: Arrays) -> None:
        super().__init__(arrays)
        width = arrays["network.first_output"].shape[1]
        self.maps: dict[str, list[Row]] = {}
        self.levels: dict[str, list[Row]] = {}
        self.units: list[list[Row]] = []
        for name in arrays:
            node, _, part = name.rpartition(".")
            if part == "bias":
                parts = (arrays[f"{node}.{own}"] for own in ("rows", "columns", "values"))
                found = _cut(next(parts), len(arrays[name]), *parts)
                both = zip(found, arrays[name].tolist(), strict=True)
                self.maps[node] = [Row(*own) for own in both]
            elif part == "bounds":
                self._level(node, width)
        for node, rows in self.maps.items():
            before, _, last = node.rpartition(".")
            if last in ("0", "1"):
                readers = self.maps.get(f"{before}.{int(last) + 1}", [])
                inputs = width if last == "0" else len(self.maps[f"{before}.0"])
                grows = last == "0" and bool(readers) and f"{before}.2" not in self.maps
                self.layers.append(Layer(rows, readers, 0, inputs, grows))
            elif last.endswith("query"):
                self.heads.append((rows, self.maps[node.removesuffix("query") + "key"]))

    def _level(self, node: str, width: int) -> None:
        starts, biases = self.arrays[f"{node}.starts"], self.arrays[f"{node}.biases"]
        of = np.repeat(np.arange(len(biases)), np.diff(starts))
        found = _cut(of, len(biases), self.arrays[f"{node}.columns"], self.arrays[f"{node}.values"])
        rows = self.levels[node] = [Row(*own) for own in zip(found, biases.tolist(), strict=True)]
        bounds = self.arrays[f"{node}.bounds"].tolist()
        for first, middle, end in zip(bounds[:-1:2], bounds[1::2], bounds[2::2], strict=True):
            self.units.append(rows[first:middle])
            self.layers.append(Layer(self.units[-1], rows[middle:end], width, width, False))

    def write(self) -> Arrays:
        arrays = dict(self.arrays)
        for node, rows in (*self.maps.items(), *self.levels.items()):
            of, columns_and_values = _joined(rows)
            columns, values = list(columns_and_values) or ([], [])
            own = {"columns": columns, "values": values}
            if node in self.maps:
                own |= {"rows": of, "bias": [row.bias for row in rows]}
            else:
                starts = np.cumsum([0, *(len(row.entries) for row in rows)])
                own |= {"starts": starts, "biases": [row.bias for row in rows]}
            for part, new in own.items():
                arrays[f"{node}.{part}"] = np.array(new, arrays[f"{node}.{part}"].dtype)
        return arrays


def _dense(matrix: NDArray[Any]) -> list[Row]:
    return [Row([[int(i), float(row[i])] for i in np.flatnonzero(row)]) for row in matrix]


def _filled(rows: list[Row], like: NDArray[Any]) -> NDArray[Any]:
    found = np.zeros((len(rows), int(np.prod(like.shape[1:]))), like.dtype)
    for number, row in enumerate(rows):
        for column, value in row.entries:
            found[number, column] += value
    return found.reshape(len(rows), *like.shape[1:])


class Blocks(Rows):
    """Units and heads of a net in disguise, matrices of which a column is a row."""

    def __init__(self, arrays: Arrays) -> None:
        super().__init__(arrays)
        self.parts: list[tuple[str, int | None, list[Row]]] = []
        for number in range(sum(name.endswith("mlp.W_in") for name in arrays)):
            into, out, query, key = (
                f"blocks.{number}.{name}" for name in ("mlp.W_in", "mlp.W_out", "attn.W_Q", "attn.W_K")
            )
            units, sums = (self._part(name, None) for name in (into, out))
            self.layers.append(Layer(units, sums, 0, len(arrays[into]), False))
            for head in range(len(arrays[query])):
                self.heads.append((self._part(query, head), self._part(key, head)))

    def _part(self, name: str, head: int | None) -> list[Row]:
        matrix = self.arrays[name] if head is None else self.arrays[name][head]
        self.parts.append((name, head, _dense(matrix.T)))
        return self.parts[-1][2]

    def write(self) -> Arrays:
        arrays = dict(self.arrays)
        for name, head, rows in self.parts:
            own = arrays[name] if head is None else arrays[name][head]
            found = _filled(rows, own.T).T
            if head is not None:
                found = np.concatenate([arrays[name][:head], found[None], arrays[name][head + 1 :]])
            arrays[name] = found
        return arrays
