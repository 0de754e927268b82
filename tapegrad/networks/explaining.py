"""What the names of a network stand for, read off its graph.

    pos2[3]            a column of a value: what makes it, as a formula of other columns
    block_4.0          an input, a state, a node or an output: its line of `print(network)`
    block_4.0: carry   a row of a map: the formula that it computes, by the name of its column
    units[17]          or by its number where its column has no name

Few values have names of their own: those of inputs, of state, of outputs. The others follow. What is put to
columns of a value has their names; a ReLU keeps names; and a row that has none serves the one column that all
who read it serve.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tapegrad.networks.checking import check
from tapegrad.networks.form import formula
from tapegrad.networks.listing import lines
from tapegrad.networks.network import LAYERS, MAP, Network, Node

KEEPS = ("relu", "clip", "detach")
"""Operations that work column by column on one value."""
WITH_ROWS = ("affine", "layers")
DEEPEST = 2
"""How many layers of units a formula has inside each other; beyond, their rows are named."""
MOST_MAKERS = 3
"""How many of the rows that make a column are told."""
SLIGHT = 1e-5
NOTHING = ("0", "relu(0)", "rounded(0)")
"""Formulas of what was cleared."""
Names = tuple[str, ...]


class Row(NamedTuple):
    """A row of a node: the places it reads, with weights; its bias; and whether a ReLU follows."""

    terms: list[tuple[int, float]]
    bias: float
    relu: bool


class Explained:
    """The names of a network. Those of columns may be known of more values than the graph says."""

    def __init__(self, network: Network, known: Mapping[str, Sequence[str]] | None = None) -> None:
        self.network = network
        self.nodes, self.shapes = {node.name: node for node in network.nodes}, check(network)
        self.readers: dict[str, list[Node]] = {}
        for node in network.nodes:
            for name in node.reads:
                self.readers.setdefault(name, []).append(node)
        self.names: dict[str, Names] = {name: tuple(own) for name, own in (known or {}).items()}
        self._served: dict[str, Names] = {}
        self._rows: dict[str, list[Row]] = {}
        self._find_names()

    # Names

    def _find_names(self) -> None:
        network = self.network
        ports = {name: (port, name) for name, port in network.inputs.items()}
        ports |= {name: (own.port, name) for name, own in network.state.items()}
        for port, value in [*ports.values(), *((own.port, own.next) for own in network.state.values())]:
            if port.columns:
                self.names.setdefault(value, port.columns)
        self.names |= network.columns
        before = -1
        while before < len(self.names):
            before = len(self.names)
            for node in reversed(network.nodes):
                if (own := self.names.get(node.name)) is not None:
                    self._hand_down(node, own)
            for node in network.nodes:
                if node.name not in self.names and (found := self._taken_over(node)):
                    self.names[node.name] = found

    def _hand_down(self, node: Node, own: Names) -> None:
        """The names of a value are those of what it is made of."""
        if node.operation in KEEPS or node.operation == "put":
            self.names.setdefault(node.reads[0], own)
        if node.operation == "put":
            to = self.network.array(node, "to").tolist()
            self.names.setdefault(node.reads[1], tuple(own[column] for column in to))

    def _taken_over(self, node: Node) -> Names:
        """The names that a value has from those it is made of."""
        known = [self.names.get(name, ()) for name in node.reads]
        if node.operation in (*KEEPS, "put"):
            return known[0]
        if node.operation == "take" and known[0]:
            return tuple(known[0][column] for column in np.ravel(self.network.array(node, "index")).tolist())
        if node.operation in ("add", "multiply"):
            numbers = [self._is_number(name) for name in node.reads]
            return known[0] if numbers[1] else known[1] if numbers[0] else ()
        if node.operation == "join" and node.whole("axis") == -1 and all(known):
            return known[0] + known[1]
        return ()

    def _is_number(self, name: str) -> bool:
        node = self.nodes.get(name)
        return (
            node is not None and node.operation == "constant" and self.network.array(node, "value").size == 1
        )

    def of_rows(self, node: Node) -> Names:
        """For each row of a map the column that it is or serves; nothing where that is none or several."""
        if node.name not in self._served:
            served = self._of_layers(node) if node.operation == "layers" else self._of_value(node.name)
            self._served[node.name] = served
        return self._served[node.name]

    def _of_value(self, name: str) -> Names:
        if (own := self.names.get(name)) is not None:
            return own
        found: dict[int, set[str]] = {}
        for reader in self.readers.get(name, ()):
            if reader.operation in KEEPS:
                own = self._of_value(reader.name)
                pairs = [(place, said) for place, said in enumerate(own)]
            elif reader.operation == "affine":
                own = self.of_rows(reader)
                rows, columns = (self.network.array(reader, part).tolist() for part in ("rows", "columns"))
                pairs = [(column, own[row]) for row, column in zip(rows, columns, strict=True)]
            else:
                pairs = []
            for place, said in pairs:
                found.setdefault(place, set()).add(said)
        node = self.nodes[name]
        width = (
            len(self.network.array(node, "bias"))
            if node.operation == "affine"
            else 1 + max(found, default=-1)
        )
        return tuple(_only(found.get(place, ())) for place in range(width))

    def _of_layers(self, node: Node) -> Names:
        """Rows are written to slots: that of a column, that of an output, or one that others read."""
        inputs, rows = self._inputs(node), self.rows_of(node)
        to, out = (self.network.array(node, part).tolist() for part in ("to", "out"))
        names = [self._of_slot(node, slot) for slot in to]
        last = {slot: row for row, slot in enumerate(to)}
        for column, slot in zip(self.names.get(node.name, ()), out, strict=False):
            if slot in last:
                names[last[slot]] = column
        serves: list[set[str]] = [set() for _ in rows]
        for row in reversed(range(len(rows))):
            names[row] = names[row] or _only(serves[row])
            for place, _ in rows[row].terms:
                if place >= inputs:
                    serves[place - inputs].add(names[row])
        return tuple(names)

    def _of_slot(self, node: Node, slot: int) -> str:
        """The column that is kept in a slot, where the value of the layers has the columns of its input."""
        own = self.names.get(node.reads[0], ())
        return own[slot] if slot < len(own) and self.names.get(node.name) == own else ""

    def _inputs(self, node: Node) -> int:
        """Columns of what a node `layers` reads: the slots that are read before anything is written there."""
        width = self.shapes[node.reads[0]].width
        assert isinstance(width, int)
        return width

    # Rows

    def rows_of(self, node: Node) -> list[Row]:
        """Of a node `layers` a row reads the columns of the input and, behind these, the rows before it."""
        if node.name not in self._rows:
            self._rows[node.name] = self._layers(node) if node.operation == "layers" else self._affine(node)
        return self._rows[node.name]

    def _affine(self, node: Node) -> list[Row]:
        rows, columns, values, bias = (self.network.array(node, part).tolist() for part in MAP)
        found = [Row([], own, False) for own in bias]
        for row, column, value in zip(rows, columns, values, strict=True):
            found[row].terms.append((column, value))
        return found

    def _layers(self, node: Node) -> list[Row]:
        bounds, starts, columns, values, biases, to, relu, _ = (
            self.network.array(node, part).tolist() for part in LAYERS
        )
        inputs = self._inputs(node)
        holder = {slot: slot for slot in range(inputs)}
        found = []
        for begin, end in pairwise(bounds):
            for row in range(begin, end):
                part = slice(starts[row], starts[row + 1])
                terms = [
                    (holder[c], v) for c, v in zip(columns[part], values[part], strict=True) if c in holder
                ]
                found.append(Row(terms, biases[row], bool(relu[row])))
            holder |= {to[row]: inputs + row for row in range(begin, end)}
        return found

    def formula_of(self, node: Node, row: int, deepest: int = DEEPEST) -> str:
        """What a row computes; units that have no name are written out, and those that round in a word."""
        own = self.rows_of(node)[row]
        if deepest and (inner := self._rounded(node, own)) is not None:
            made = self._place(*inner, deepest)
            bare = made.removeprefix("relu(").removesuffix(")") if made.startswith("relu(") else made
            return f"rounded({bare})"
        made = formula([(self._place(node, place, deepest), weight) for place, weight in own.terms], own.bias)
        return f"relu({made})" if own.relu else made

    def _rounded(self, node: Node, own: Row) -> tuple[Node, int] | None:
        """What a row rounds, and by which node it is read: s relu(v - a) - s relu(v - b), s (b - a) = 1, is 0
        up to a and 1 from b on. A ReLU of v before it changes nothing where a is not negative."""
        units = self.nodes.get(node.reads[0])
        units = self.nodes.get(units.reads[0]) if units is not None and units.operation == "relu" else None
        if node.operation != "affine" or units is None or units.operation != "affine":
            return None
        if node.reads[0] in self.names or len(own.terms) != 2 or own.bias:
            return None
        (first, up), (last, down) = own.terms
        low, high = (self.rows_of(units)[place] for place in (first, last))
        same = low.terms == high.terms and [weight for _, weight in low.terms] == [1]
        if not same or up != -down or low.bias > 0 or abs(up * (low.bias - high.bias) - 1) > SLIGHT:
            return None
        return units, low.terms[0][0]

    def _place(self, node: Node, place: int, deepest: int) -> str:
        """What a row reads there."""
        value = node.reads[0]
        if node.operation == "layers" and place >= (inputs := self._inputs(node)):
            row = place - inputs
            if named := self._of_slot(node, int(self.network.array(node, "to")[row])):
                return named
            inner = self.rows_of(node)[row].relu and deepest > 0
            return self.formula_of(node, row, deepest - 1) if inner else f"{node.name}[{row}]"
        if value in self.names:
            return self.names[value][place]
        maker = self.nodes.get(value)
        relu = maker is not None and maker.operation == "relu"
        if relu and maker is not None:
            maker = self.nodes.get(maker.reads[0])
        if maker is not None and maker.operation == "affine" and deepest > 0:
            made = self.formula_of(maker, place, deepest - 1)
            return f"relu({made})" if relu else f"({made})"
        return f"{value}[{place}]"

    # Words

    @cached_property
    def makers(self) -> dict[str, list[str]]:
        """For every named column what makes it, step by step, but for those that hand it on as it is."""
        found: dict[str, list[str]] = {}

        def made(name: str, node: Node, what: str) -> None:
            if name and what not in (name, f"relu({name})", f"rounded({name})", *NOTHING):
                found.setdefault(name, []).append(f"{node.name} makes it {what}{_reason(node)}")

        for node in self.network.nodes:
            if node.operation == "layers":
                to, out = (self.network.array(node, part).tolist() for part in ("to", "out"))
                columns = set(out)
                for row, name in enumerate(self.of_rows(node)):
                    if to[row] in columns:
                        made(name, node, self.formula_of(node, row))
            elif node.operation == "affine" and self._is_named(node):
                for row, name in enumerate(self.of_rows(node)):
                    made(name, node, self.formula_of(node, row))
            elif node.operation == "put" and (source := self.nodes.get(node.reads[1])) is not None:
                names = self.names.get(node.reads[1], ())
                for column, name in enumerate(names):
                    if (copied := self._copied(source, column)) is not None:
                        head, what = copied
                        part = head.name.rpartition(".")[0]
                        why = next((own for own in self._parts[part] if own.about), head)
                        said = f"{part} copies {what} from the place it finds{_reason(why)}"
                        found.setdefault(name, []).append(said)
        return found

    @cached_property
    def _parts(self) -> dict[str, list[Node]]:
        """Nodes by what their names begin with."""
        found: dict[str, list[Node]] = {}
        for node in self.network.nodes:
            found.setdefault(node.name.rpartition(".")[0], []).append(node)
        return found

    def _copied(self, node: Node, column: int) -> tuple[Node, str] | None:
        """If a column is one of a head's means: the head, and what it copies."""
        while node.operation == "join" and node.whole("axis") == -1:
            first, last = (self.shapes[name].width for name in node.reads)
            assert isinstance(first, int)
            assert isinstance(last, int)
            name, column = (node.reads[0], column) if column < first else (node.reads[1], column - first)
            node = self.nodes[name]
        if node.operation != "product" or self.nodes[node.reads[0]].operation not in ("hardmax", "softmax"):
            return None
        head, values = node, self.nodes[node.reads[1]]
        while values.operation in ("take", "join"):
            if values.operation == "take":
                column = int(np.ravel(self.network.array(values, "index"))[column])
            own = [self.nodes[name] for name in values.reads if name in self.nodes]
            rows = [one for one in own if one.operation in ("affine", "join", "take")]
            if not rows:
                return None
            values = rows[-1]
        return (head, self.formula_of(values, column)) if values.operation == "affine" else None

    def _is_named(self, node: Node) -> bool:
        """Whether the rows of a map are columns with names, perhaps after a ReLU."""
        reads = self.readers.get(node.name, ())
        return node.name in self.names or any(
            own.operation in KEEPS and own.name in self.names for own in reads
        )

    def units(self) -> Iterator[str]:
        """Every name: columns, then values, then rows."""
        yield from self._columns
        yield from self._values
        for node in self.network.nodes:
            if node.operation in WITH_ROWS:
                for row in range(len(self.rows_of(node))):
                    yield self.name_of(node, row)

    @cached_property
    def _columns(self) -> dict[str, str]:
        """The names of columns, each with the first value that has it."""
        return {name: value for value, names in reversed(self.names.items()) for name in names}

    @cached_property
    def _values(self) -> dict[str, str]:
        """The line of every input, state, node and output."""
        found = dict(lines(self.network))
        outputs = {name: f"output = {value}" for name, value in self.network.outputs.items()}
        return outputs | found

    def name_of(self, node: Node, row: int) -> str:
        """A row by its column, or its number."""
        names = self.of_rows(node)
        single = names[row] and names.count(names[row]) == 1
        return f"{node.name}: {names[row]}" if single else f"{node.name}[{row}]"

    def explain(self, unit: str) -> str | None:
        """What a name stands for; None if there is none of this name."""
        if (line := self._values.get(unit)) is not None:
            return f"{unit}: {' '.join(line.split()).removeprefix(f'{unit}: ')}"
        if unit in self._columns:
            return self._column(unit)
        name, colon, column = unit.partition(": ")
        number = ""
        if not colon:
            name, _, number = unit.removesuffix("]").rpartition("[")
        node = self.nodes.get(name)
        if node is None or node.operation not in WITH_ROWS:
            return None
        names = self.of_rows(node)
        if colon and names.count(column) == 1:
            row = names.index(column)
        elif not colon and number.isascii() and number.isdecimal() and int(number) < len(self.rows_of(node)):
            row = int(number)
        else:
            return None
        made, does = self.formula_of(node, row, 1 if node.operation == "affine" else 0), _reason(node)
        serves = f"; it serves {names[row]}" if names[row] and not colon else ""
        return f"{self.name_of(node, row)} = {made}{serves}{does}"

    def _column(self, name: str) -> str:
        """What makes a column."""
        ports = {**self.network.inputs} | {state: own.port for state, own in self.network.state.items()}
        given = [
            f"a column of {value}: {port.about}" for value, port in ports.items() if name in port.columns
        ]
        return f"{name}: {self.made(name) or '; '.join(given) or f'a column of {self._columns[name]}'}"

    def made(self, name: str) -> str:
        """What makes a column, in words; nothing where it is given."""
        makers = self.makers.get(name, [])
        if len(makers) > MOST_MAKERS:
            makers = [*makers[:MOST_MAKERS], f"and {len(makers) - MOST_MAKERS} more"]
        return "; ".join(makers)


def _only(names: set[str] | tuple[str, ...]) -> str:
    return next(iter(names)) if len(names) == 1 else ""


def _reason(node: Node) -> str:
    return f" ({node.about})" if node.about else ""
