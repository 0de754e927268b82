"""From a RASP program to the layers of a transformer: heads that select, and units that make bits.

Why it is exact stands in `tapegrad.attention.steps`. What costs nothing is not built: a function of one
sequence is another sum of its bits, and a sum of sequences a sum of sums. So there are heads for widths and
aggregates, units that round what heads bring, and units for functions of two sequences. Each stands in the
first layer in which what it reads is there, side by side with all others of that layer.

At the first position, which is none of the input, every coordinate is 0 but `begin`, after every layer: no
map has a constant; `word` is 1 at tokens and stands in its place.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tapegrad.attention.build import Stream
from tapegrad.attention.codes import (
    MIXED,
    START,
    WORD,
    Code,
    Filling,
    Group,
    Meaning,
    corners,
    relabelled,
)
from tapegrad.attention.conditions import Condition, conditions, indicator
from tapegrad.attention.steps import BETA, ROUNDOFF, Form, Scalar, TooNear, added, on_grid, power_above
from tapegrad.errors import Refused
from tapegrad.networks.form import Key, Rows
from tapegrad.networks.network import Network
from tapegrad.networks.texts import NAME, Head, Ladder, Layer, Parts, network_of
from tapegrad.rasp.functions import LINEAR, Value, is_number
from tapegrad.rasp.nodes import MOST_CASES, Aggregate, Apply, Full, Indices, Tokens, Width, needed
from tapegrad.rasp.program import RaspProgram

MOST_UNITS = 1 << 16
"""Of a function of two sequences."""
MOST_TERMS = 1 << 24
MANY_TERMS = 1 << 12
"""From so many terms on, all steps of a sum together, it is gathered in one coordinate before."""


@dataclass(frozen=True)
class Read:
    """How the output is read: by the greatest logit, or as the number nearest to a coordinate."""

    node: int
    code: Code | None
    scalar: Scalar | None


@dataclass(frozen=True)
class Built:
    """A network with names for its coordinates, and how to read it."""

    network: Network
    read: Read
    steps: tuple[tuple[str, Scalar, int], ...]
    """Every step that was made: its scalar, and the centre that it begins before."""
    watched: tuple[int, ...]
    """Aggregates that say where they would mix values."""
    heads: tuple[int, ...]
    """The node that each head is of."""
    groups: tuple[Group, ...]
    meanings: tuple[Meaning, ...]
    """Of coordinates."""


class Builder:
    """Codes and scalars of nodes, and layers as they fill."""

    def __init__(self, program: RaspProgram) -> None:
        self.program, self.length = program, program.length
        self.keys: list[Key] = [("begin", 0), ("word", 0), ("mixed", 0)]
        self.ready: list[int] = [0, 0, 0]
        """From which half-layer on a coordinate can be read: heads are at even ones, units at odd ones."""
        self.most: list[float] = [1.0, 1.0, 0.0]
        """The largest value that a coordinate has at the first position."""
        self.groups: list[Group] = []
        self.meanings: list[Meaning] = [("given", 0, 0)] * 3
        self.layers: list[Filling] = []
        self.steps: list[tuple[str, Scalar, int]] = []
        self.watched: list[int] = []
        self._taken: Counter[str] = Counter()
        self._roots = self._find_roots()
        self._codes: dict[int, Code] = {}
        self._scalars: dict[int, Scalar | None] = {}
        self._bits: dict[tuple[int, int], int] = {}
        self._sides: dict[tuple[object, ...], Code] = {}
        self._labels: dict[int, int] = {}
        self._kept: list[Scalar] = []
        for node, own in enumerate(program.nodes):
            if isinstance(own, Tokens | Indices):
                places = self.bits(type(own).__name__.lower(), self.one_node(node), 0)
                self._codes[node] = Code(program.values[node], tuple({place: 1.0} for place in places))

    def one_node(self, node: int, labels: Sequence[int] | None = None) -> Group:
        """The group of a node's values in their order, or in another."""
        return Group((node,), (tuple(labels or range(len(self.program.values[node]))),))

    def bits(self, name: str, group: Group, ready: int) -> list[int]:
        """New coordinates for all bits of a group."""
        self.groups.append(group)
        count = int(np.prod([1 + max(own) for own in group.labels])) - 1
        return self.new(
            name, [("bit", len(self.groups) - 1, number) for number in range(1, count + 1)], ready
        )

    def new(self, name: str, meanings: Sequence[Meaning], ready: int) -> list[int]:
        """New coordinates, which can be read from some half-layer on."""
        first, count = len(self.keys), len(meanings)
        self.keys += [(name, self._taken[name] + number) for number in range(count)]
        self._taken[name] += count
        self.meanings += meanings
        self.ready += [ready] * count
        self.most += [0.0] * count
        return list(range(first, first + count))

    def layer(self, number: int) -> Filling:
        """A layer, which is there from now on."""
        while len(self.layers) <= number:
            self.layers.append(Filling())
        return self.layers[number]

    def after(self, *forms: Form) -> int:
        """From which half-layer on forms can be read."""
        return max((self.ready[place] for form in forms for place in form), default=0)

    # Sequences as bits

    def code(self, node: int) -> Code:
        """The bits of a node."""
        if node not in self._codes:
            self._codes[node] = self.mapped(node, self.program.values[node])
        return self._codes[node]

    def mapped(self, node: int, labels: Sequence[Value]) -> Code:
        """A function of a node's value: a label for each of its values."""
        root, values = self.root(node)
        given = dict(zip(self.program.values[node], labels, strict=True))
        wanted = tuple(dict.fromkeys(labels))
        outcomes = dict(zip(self.program.values[root], (given[value] for value in values), strict=True))
        if (scalar := self.scalar(root)) is not None:
            return self._ladder(scalar, [outcomes[value] for value in scalar.values], wanted)
        own = self.own_code(root)
        return relabelled(own, [outcomes[value] for value in own.values], wanted)

    def root(self, node: int) -> tuple[int, list[Value]]:
        """The sequence that a node is a function of, if it is of one alone, and the node's value for each of
        that one's values; else the node itself."""
        roots = self._roots[node]
        if len(roots) != 1 or node in roots:
            return node, list(self.program.values[node])
        (root,) = roots
        between = [
            n for n in sorted(needed(self.program.nodes, node)) if self._roots[n] <= roots and n != root
        ]
        found = []
        for value in self.program.values[root]:
            known = {root: value}
            for number in between:
                own = self.program.nodes[number]
                if isinstance(own, Full):
                    known[number] = own.value
                elif isinstance(own, Apply):
                    known[number] = own.at(*(known[argument] for argument in own.arguments))
            found.append(known[node])
        return root, found

    def _find_roots(self) -> list[frozenset[int]]:
        """For each node those that it is a function of: itself, unless it is a function of just one other, or
        of none."""
        found: list[frozenset[int]] = []
        for node, own in enumerate(self.program.nodes):
            roots = frozenset[int]()
            if isinstance(own, Apply):
                roots = roots.union(*(found[argument] for argument in own.arguments))
            elif not isinstance(own, Full):
                roots = frozenset([node])
            found.append(roots if len(roots) <= 1 else frozenset([node]))
        return found

    def own_code(self, root: int) -> Code:
        """The bits of a node that is a function of no other one alone, and no scalar."""
        own = self.program.nodes[root]
        if isinstance(own, Full) or (isinstance(own, Apply) and not self._roots[root]):
            return Code(self.program.values[root], ())
        if root not in self._codes:
            self._codes[root] = (
                self._moved(root, own) if isinstance(own, Aggregate) else self._function(root, own)
            )
        return self._codes[root]

    def _ladder(self, scalar: Scalar, outcomes: Sequence[Value], wanted: tuple[Value, ...]) -> Code:
        """A function of a scalar: steps only where the outcome changes."""
        changes = [place for place in range(1, len(outcomes)) if outcomes[place] != outcomes[place - 1]]
        bits = [{self.step(scalar, place): 1.0} for place in changes]
        steps = Code((), tuple(bits))
        return relabelled(steps, [outcomes[place] for place in (0, *changes)], wanted)

    def step(self, scalar: Scalar, place: int) -> int:
        """The coordinate of the bit that a scalar is at this centre or above."""
        key = id(scalar), place
        if key not in self._bits:
            begins, wide = scalar.step(place)
            self.steps.append((scalar.name, scalar, place))
            number = self.after(scalar.form) // 2
            (self._bits[key],) = self.new(
                f"{scalar.name} step", [("bit", self._group(scalar), place)], 2 * number + 2
            )
            layer = self.layer(number)
            layer.purposes.append(f"steps of {scalar.name}")
            self._ramp(layer, scalar.form, begins, wide, [(self._bits[key], 1.0)])
        return self._bits[key]

    def _group(self, scalar: Scalar) -> int:
        """The group of a scalar: its values in the order of their centres."""
        if id(scalar) not in self._labels:
            self._kept.append(scalar)
            order = {value: place for place, value in enumerate(scalar.values)}
            self._labels[id(scalar)] = len(self.groups)
            self.groups.append(
                self.one_node(scalar.node, [order[value] for value in self.program.values[scalar.node]])
            )
        return self._labels[id(scalar)]

    def _ramp(
        self, layer: Filling, form: Form, begins: Fraction, wide: Fraction, adds: list[tuple[int, float]]
    ) -> None:
        """Two units, whose difference rises from 0 to 1 and is 0 at the first position."""
        gain = float(1 / wide)
        off = sum(abs(weight) * self.most[place] for place, weight in form.items())
        for edge, sign in ((begins, 1.0), (begins + wide, -1.0)):
            terms = added((form, gain), ({WORD: float(edge)}, -gain), ({START: off}, -gain))
            unit = layer.units.add(terms.items())
            for place, weight in adds:
                layer.sums.setdefault(place, []).append((unit, sign * weight))

    # Sequences as numbers

    def scalar(self, node: int) -> Scalar | None:
        """A node as a number, if that is how it arises."""
        if node not in self._scalars:
            own = self.program.nodes[node]
            self._scalars[node] = None
            if isinstance(own, Width):
                self._scalars[node] = self._width(node, own)
            elif isinstance(own, Aggregate) and own.mean:
                self._scalars[node] = self._mean(node, own)
            elif isinstance(own, Apply) and self._roots[node] == {node}:
                self._scalars[node] = self._sum(node, own)
        return self._scalars[node]

    def _width(self, node: int, own: Width) -> Scalar:
        name = self.program.title(node)
        (place,) = self._head(node, own.selector, [{START: 1.0}], counts=True)
        self.most[place] = 1.0
        counts = range(self.length, -1, -1)
        centres = tuple(Fraction(1, 1 + count) for count in counts)
        return Scalar(node, name, {place: 1.0}, centres, tuple(counts), Fraction(1), 4 * ROUNDOFF)

    def _mean(self, node: int, own: Aggregate) -> Scalar:
        """The least value is 0; None, where it is the default, is 1 above all."""
        name, values = self.program.title(node), self.program.values[node]
        numbers = [Fraction(value) for value in values if value is not None]
        least, none = min(numbers), max(numbers) + 1
        centres = [none - least if value is None else Fraction(value) - least for value in values]
        order = sorted(range(len(values)), key=lambda number: centres[number])
        top = power_above(2 * max(*centres, Fraction(1, 2)))
        form, error = self._number(own.sequence, least, top * ROUNDOFF)
        default = (none if own.default is None else Fraction(own.default)) - least
        begin = on_grid(default, top * ROUNDOFF)
        (place,) = self._head(node, own.selector, [added((form, 1.0), ({START: float(begin)}, 1.0))])
        self.most[place] = float(begin)
        return Scalar(
            node,
            name,
            {place: 1.0},
            tuple(centres[number] for number in order),
            tuple(values[number] for number in order),
            top,
            (self.length + 8) * ROUNDOFF,
            max(error, abs(begin - default)) * 2,
        )

    def _number(self, node: int, least: Fraction, grid: Fraction) -> tuple[Form, Fraction]:
        """The number that a code stands for, less another, in multiples of the grid; and how far it is
        off."""
        code = self.code(node)
        exact = [Fraction(value) - least for value in code.values]
        near = [on_grid(own, grid) for own in exact]
        form = added(
            ({WORD: float(near[0])}, 1.0),
            *((bit, float(near[place + 1] - near[place])) for place, bit in enumerate(code.bits)),
        )
        return form, max(abs(x - y) for x, y in zip(exact, near, strict=True))

    def _sum(self, node: int, own: Apply) -> Scalar | None:
        """A sum or difference of numbers, where that takes fewer units than a table."""
        parts = self._parts(node, 1)
        values = self.program.values[node]
        if own.function not in LINEAR or any(
            not all(is_number(value) for value in self.program.values[part]) for part, _ in parts
        ):
            return None
        if self._cases(own) <= MOST_CASES and 2 * len(values) > len(self._corners(node, own)):
            return None
        exact = [Fraction(value) for value in values]
        least = min(exact)
        reach = sum(
            sum(abs(Fraction(y) - Fraction(x)) for x, y in pairwise(vs)) + abs(Fraction(vs[0]))
            for vs in (self.code(part).values for part, _ in parts)
        )
        top = power_above(2 * max(reach + abs(least), Fraction(1, 2)))
        grid, form, error = top * ROUNDOFF, {WORD: -float(on_grid(least, top * ROUNDOFF))}, Fraction(0)
        for part, sign in parts:
            one, off = self._number(part, Fraction(0), grid)
            form, error = added((form, 1.0), (one, float(sign))), error + off
        error += abs(least - on_grid(least, grid)) + (grid if any(type(v) is float for v in values) else 0)
        order = sorted(range(len(values)), key=lambda number: exact[number])
        if len(form) * len(values) > MANY_TERMS:
            form = self._gathered(node, form)
        return Scalar(
            node, self.program.title(node), form, tuple(exact[place] - least for place in order),
            tuple(values[place] for place in order), top, Fraction(0), error,
        )  # fmt: skip

    def _gathered(self, node: int, form: Form) -> Form:
        """A sum of bits in one coordinate, by a unit for each bit."""
        number = self.after(form) // 2
        name = self.program.title(node)
        (place,) = self.new(f"{name} as a number", [("number", node, 0)], 2 * number + 2)
        layer = self.layer(number)
        layer.purposes.append(f"{name} as a number")
        layer.sums[place] = [(layer.units.add([(bit, 1.0)]), weight) for bit, weight in form.items()]
        return {place: 1.0}

    def _parts(self, node: int, sign: int) -> list[tuple[int, int]]:
        """What a sum consists of, with signs."""
        own = self.program.nodes[node]
        if not isinstance(own, Apply) or own.function not in LINEAR or self._roots[node] != {node}:
            return [(node, sign)]
        first, second = own.arguments
        return self._parts(first, sign) + self._parts(second, sign if own.function == "+" else -sign)

    # Functions of two sequences

    def _cases(self, own: Apply) -> int:
        return int(np.prod([len(self.program.values[argument]) for argument in own.arguments]))

    def _table(self, node: int, own: Apply) -> NDArray[np.int64]:
        """For each pair of values the number of the value that they give."""
        numbers = {value: number for number, value in enumerate(self.program.values[node])}
        first, second = (self.program.values[argument] for argument in own.arguments)
        return np.array([[numbers[own.at(x, y)] for y in second] for x in first], np.int64)

    def _corners(self, node: int, own: Apply) -> list[tuple[int, int]]:
        return corners(self._table(node, own))

    def _function(self, node: int, own: object) -> Code:
        assert isinstance(own, Apply)
        if self._cases(own) > MOST_CASES:
            raise Refused(
                f"{self.program.title(node)!r} is a function of {self._cases(own):,} pairs of values",
                advice="Ask for a shorter length, or map values to fewer before.",
            )
        first, second = (self.code(argument) for argument in own.arguments)
        code = self.pair(self.program.title(node), first, second, self._table(node, own), self.one_node(node))
        return Code(self.program.values[node], code.bits)

    def pair(self, name: str, first: Code, second: Code, table: NDArray[np.int64], group: Group) -> Code:
        """A function of two codes, by units that are 1 where both are at least so far on."""
        made = corners(table)
        if len(made) > MOST_UNITS:
            raise Refused(
                f"{name!r} takes {len(made):,} units, and at most {MOST_UNITS:,} are built",
                advice="Ask for a shorter length, or map values to fewer before.",
            )
        # At the first position all bits are 0, and so are all units.
        number = self.after(*first.bits, *second.bits) // 2
        places = self.bits(name, group, 2 * number + 2)
        layer = self.layer(number)
        layer.purposes.append(name)
        padded = np.pad(table, ((1, 0), (1, 0)))
        for x, y in made:
            sides = [code.bits[at - 1] for code, at in ((first, x), (second, y)) if at]
            terms = added(*((side, 1.0) for side in sides), ({WORD: 1.0}, 1.0 - len(sides)))
            unit = layer.units.add(terms.items())
            # The bits of the value here, less those left and above, and those of the corner again.
            four = padded[x : x + 2, y : y + 2].reshape(-1).tolist()
            levels, total = sorted(zip(four, (1.0, -1.0, -1.0, 1.0), strict=True)), 0.0
            for (value, sign), (below, _) in zip(levels[::-1], [*levels[-2::-1], (0, 0.0)], strict=True):
                total += sign
                for place in places[below:value] if total else ():
                    layer.sums.setdefault(place, []).append((unit, total))
        return Code(tuple(range(len(places) + 1)), tuple({place: 1.0} for place in places))

    # Heads

    def _moved(self, node: int, own: Aggregate) -> Code:
        """Bits of selected values: rounded, and watched where they could be mixed."""
        name, values = self.program.title(node), self.program.values[node]
        code = self.code(own.sequence)
        wanted = relabelled(code, code.values, values)
        raw = self._head(node, own.selector, list(wanted.bits))
        single = self.single(own.selector)
        if not single:
            self.watched.append(node)
        number = self.after(*({place: 1.0} for place in raw)) // 2
        bits, layer = self.bits(name, self.one_node(node), 2 * number + 2), self.layer(number)
        layer.purposes.append(f"bits of {name}")
        for place, to in zip(raw, bits, strict=True):
            self._ramp(layer, {place: 1.0}, *self._copied(node, place).step(1), [(to, 1.0)])
            if not single:
                self._watch(node, place)
        return Code(values, tuple({place: 1.0} for place in bits))

    def _copied(self, node: int, place: int, *between: Fraction) -> Scalar:
        """A bit that a head has copied, or a mixture of bits."""
        name = f"{self.program.title(node)} as it was copied"
        centres = (Fraction(0), *between, Fraction(1))
        off = (self.length + 8) * ROUNDOFF
        return Scalar(node, name, {place: 1.0}, centres, centres, Fraction(2), off)

    def _watch(self, node: int, place: int) -> None:
        """Where a copied bit is neither 0 nor 1, values are mixed: it is 1/n from both then, at least."""
        layer = self.layer(self.ready[place] // 2)
        part = Fraction(1, max(2, self.length))
        mixed = self._copied(node, place, part, 1 - part)
        for at, sign in ((1, 1.0), (3, -1.0)):
            self._ramp(layer, mixed.form, *mixed.step(at), [(MIXED, sign)])

    def single(self, selector: int) -> bool:
        """Whether no query can select two keys: one of the conditions asks for one value of the indices."""
        for own in self.conditions(selector):
            if len(own.keys) == 1 and self.root(own.keys[0])[0] == self._indices_node():
                values = self.root(own.keys[0])[1]
                labels = [own.key_labels[0][place] for place in self._places(own.keys[0], values)]
                of_class = np.bincount(labels, minlength=len(own.table))
                if (own.table * of_class[:, None]).sum(axis=0).max(initial=0) <= 1:
                    return True
        return False

    def _places(self, node: int, values: Sequence[Value]) -> list[int]:
        """Where values stand among those of a node."""
        numbers = {value: number for number, value in enumerate(self.program.values[node])}
        return [numbers[value] for value in values]

    def _indices_node(self) -> int:
        return next((n for n, own in enumerate(self.program.nodes) if isinstance(own, Indices)), -1)

    def conditions(self, selector: int) -> list[Condition]:
        """What a selector asks for, all of which must hold."""
        return conditions(self.program, selector)

    def _side(self, nodes: tuple[int, ...], labels: tuple[tuple[int, ...], ...]) -> Code:
        """The code of what stands on one side of a condition: classes of values, of one sequence or more."""
        if (nodes, labels) not in self._sides:
            codes = [self.mapped(node, own) for node, own in zip(nodes, labels, strict=True)]
            code, size = codes[0], len(codes[0].values)
            for count, other in enumerate(codes[1:], 2):
                both = np.arange(size * len(other.values)).reshape(size, -1)
                name, size = " with ".join(self.program.title(node) for node in nodes[:count]), both.size
                code = self.pair(name, code, other, both, Group(nodes[:count], labels[:count]))
            self._sides[nodes, labels] = code
        return self._sides[nodes, labels]

    def _head(self, node: int, selector: int, values: list[Form], counts: bool = False) -> list[int]:
        """A head, and the new coordinates that it brings values to."""
        name = self.program.title(node)
        query, key, value = Rows(), Rows(), Rows()
        asked = self.conditions(selector)
        for own in asked:
            keys = self._side(own.keys, own.key_labels)
            queries = self._side(own.queries, own.query_labels)
            for answers, asks in own.rows():
                there, here = self._indicated(keys, answers), self._indicated(queries, asks)
                if there and here:
                    key.add(there.items())
                    query.add(added((here, BETA)).items())
        height = BETA * len(asked)
        query.add([(WORD, height if counts else height - BETA / 2), (START, height)])
        key.add([(START, 1.0)])
        terms = sum(len(own) for rows in (query, key) for own in rows.entries)
        if terms > MOST_TERMS:
            raise Refused(
                f"the selector of {name!r} takes {terms:,} weights", advice="Ask for a shorter length."
            )
        forms = [dict(entries) for rows in (query, key) for entries in rows.entries]
        number = (self.after(*forms, *values) + 1) // 2
        for form in values:
            value.add(form.items())
        raw = self.new(f"raw {name}", [("raw", node, row) for row in range(len(values))], 2 * number + 1)
        self.layer(number).heads.append((node, query, key, value, raw))
        return raw

    def _indicated(self, code: Code, chosen: NDArray[np.bool_]) -> Form:
        """1 where the value is among the chosen ones."""
        return indicator(code.bits, chosen, WORD)

    # All together

    def build(self) -> Built:
        """The model."""
        output = self.program.output
        scalar = self.scalar(output)
        if scalar is not None and isinstance(self.program.nodes[output], Aggregate):
            for place in range(1, len(scalar.centres)):
                if scalar.centres[place] - scalar.centres[place - 1] <= scalar.error(place) + scalar.error(
                    place - 1
                ):
                    raise TooNear(scalar.name, scalar.centres[place] - scalar.centres[place - 1])
            read = Read(output, None, scalar)
            rows = Rows()
            rows.add(scalar.form.items())
        else:
            code = self.code(output)
            read, rows = Read(output, code, None), Rows()
            for number in range(len(code.values)):
                chosen = np.arange(len(code.values)) == number
                rows.add(self._indicated(code, chosen).items())
        width = len(self.keys)
        self.layer(0)
        ladders = {
            type(own): self._codes[n].bits for n, own in enumerate(self.program.nodes) if n in self._codes
        }
        tokens, indices = (
            [place for bit in ladders.get(kind, ()) for place in bit] for kind in (Tokens, Indices)
        )
        embedding = Rows()
        embedding.add([(START, 1.0)])
        for number in range(len(self.program.vocabulary)):
            embedding.add([(WORD, 1.0), *((place, 1.0) for place in tokens[:number])])
        parts = Parts(
            embedding.affine(width, np.float32),
            Ladder(len(indices), indices[0] if indices else 0),
            tuple(self._laid_out(layer, width) for layer in self.layers),
            rows.affine(width, np.float32),
            self.program.causal,
        )
        heads = tuple(node for layer in self.layers for node, *_ in layer.heads)
        names = Stream(tuple(self.keys)).names
        return Built(
            network_of(parts, NAME, names), read, tuple(self.steps), tuple(self.watched), heads,
            tuple(self.groups), tuple(self.meanings),
        )  # fmt: skip

    def _laid_out(self, layer: Filling, width: int) -> Layer:
        heads = tuple(
            Head(
                self.program.title(node),
                query.affine(width, np.float32),
                key.affine(width, np.float32),
                value.affine(width, np.float32),
                np.array(raw, np.int64),
            )
            for node, query, key, value, raw in layer.heads
        )
        sums, to = Rows(), sorted(layer.sums)
        for place in to:
            sums.add(layer.sums[place])
        return Layer(
            "; ".join(dict.fromkeys(layer.purposes)) or "nothing",
            heads,
            layer.units.affine(width, np.float32),
            sums.affine(len(layer.units.bias), np.float32),
            np.array(to, np.int64),
        )


def build(program: RaspProgram) -> Built:
    """The transformer of a program, or a refusal."""
    return Builder(program).build()
