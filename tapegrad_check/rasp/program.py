"""Is a transformer this RASP program? Every head's score over all values, and every unit.

What is proved, half-layer by half-layer: each coordinate is what its meaning says, at every position and for
every input up to the length, in single precision; and the first position is 0 in all but one. A `bit` is the
value of one sequence, or of a few, in terms of labels; `raw` is a count as 1 / (1 + count), a mean, or a bit
that was copied; a `number` is a sum of bits. The sets of values are worked out from the program, and so is
what is selected; heads and units are evaluated for all values. Softmax and steps: what is selected weighs the
same, what is not weighs less than the smallest float, and a step rises between two multiples of a grid, where
nothing rounds.
"""

from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.arithmetic import exact, step_of
from tapegrad_check.folder import OWN_TABLE, Checked, NotProved, require
from tapegrad_check.graph import Graph
from tapegrad_check.maps import row_of
from tapegrad_check.rasp.heads import BETA, Heads
from tapegrad_check.rasp.tables import MIXED, START, UNIT, WORD, Key, Parts
from tapegrad_check.sources import Model, digest
from tapegrad_check.sources.rasp import rasp_of

FEW_CASES = 1 << 16
"""Up to so many, values are not drawn together."""


class Step(NamedTuple):
    """Two units that rise from 0 to 1: what they read, times the gain; where they rise; the term at the
    start."""

    form: dict[int, float]
    low: Fraction
    high: Fraction
    start: float


def check(config: dict[str, Any], claims: dict[str, Any], source: Model | None, graph: Graph) -> Checked:
    """The statements that hold; `CheckError` says which does not."""
    machine = config["machine"]
    require(machine.keys() == {"kind", "source"}, "the program has other entries")
    data = machine["source"]
    require(data.get("kind") == "rasp program", "the net is of no program")
    program = rasp_of(data, {})
    require(source is None or digest(program) == digest(source), "the program is not the source")
    try:
        net = RaspNet(config, graph, program)
        net.check()
    except NotProved as reason:
        return Checked([f"not everything was compared: {reason}"], OWN_TABLE)
    require(claims == certificate_of(net), "the certificate claims something else than what holds")
    most = max((len(own) for own in program.values), default=0)
    return Checked(
        [
            f"{len(program.nodes)} expressions have at most {most:,} values each, for every input of up to "
            f"{program.length:,} tokens",
            f"{len(net.heads)} heads select what the program selects, for all values of keys and queries; "
            f"scores differ by {BETA / 2:g} at least, so that what is not selected weighs nothing",
            f"{net.bits:,} coordinates are bits of values, set by units that were evaluated for all of them; "
            f"{len(net.widths):,} steps tell numbers apart without rounding",
            "values that differ are never moved together, or the net says so"
            if net.says_so
            else "no head moves two values at once",
            "the first position is 0 in all coordinates but one, in every layer; names of coordinates, heads "
            "and layers are notes",
        ]
    )


def certificate_of(net: "RaspNet") -> dict[str, Any]:
    """What a certificate says, once everything is proved."""
    return {
        "dtype": "float32",
        "length": net.program.length,
        "causal": net.program.causal,
        "layers": len(net.units),
        "heads": len(net.heads),
        "temperature": BETA,
        "steps": len(net.widths),
        "narrowest_step": float(min(net.widths)) if net.widths else None,
    }


class RaspNet(Heads):
    """Layer by layer, from the embedding to the output."""

    def check(self) -> None:
        """Embedding, layer by layer heads and units, and the output."""
        self._embedding()
        head = 0
        for layer, count in enumerate(self.counts):
            made = [self._head(number) for number in range(head, head + count)]
            head += count
            for places in made:
                require(not self.known & set(places), "a head adds to what is set")
                self.known |= set(places)
            self._units(layer)
        self._watches()
        self._output()

    def _embedding(self) -> None:
        kinds = {node.kind: number for number, node in enumerate(self.program.nodes)}
        require(len(self.embedding) == len(self.program.vocabulary) + 1, "there are other tokens")
        bits = {kind: [p for p, (what, group, _) in enumerate(self.meanings)
                       if what == "bit" and self.groups[group][0] == (kinds.get(kind),)]
                for kind in ("tokens", "indices")}  # fmt: skip
        require(row_of(self.embedding, 0) == ({START: 1.0}, 0.0), "the first token has other bits")
        self._spend(32 * len(self.program.vocabulary) * len(bits["tokens"]))
        for number in range(len(self.program.vocabulary)):
            own = {WORD: 1.0} | {place: 1.0 for place in bits["tokens"] if self.indicator(place)[1][number]}
            require(row_of(self.embedding, number + 1) == (own, 0.0), "a token has other bits")
        count = self.program.length - 1 if "indices" in kinds else 0
        places = bits["indices"]
        require(len(places) == count, "positions have other bits")
        wanted = list(range(places[0], places[0] + count)) if count else []
        require(places == self.placed == wanted, "positions are elsewhere")
        self._spend(count * self.program.length)
        for number, place in enumerate(places):
            right = np.arange(self.program.length) > number
            require(np.array_equal(self.indicator(place)[1], right), "positions have other bits")
        self.known |= {*bits["tokens"], *places}
        self.bits += len(bits["tokens"]) + count

    def _units(self, layer: int) -> None:
        """Every coordinate that a layer of units sets."""
        units, sums, places = self.units[layer], self.sums[layer], self.adds_to[layer]
        require(sums.width == len(units) and len(set(places)) == len(places), "units and sums do not fit")
        made: list[tuple[int, Parts | None]] = []
        rows = [row_of(units, row)[0] for row in range(len(units))]
        for own in rows:
            require(own.keys() <= self.known, "a unit reads what is not set")
        for row, place in enumerate(places):
            terms = row_of(sums, row)[0]
            if place == MIXED:
                self._mixed(rows, terms)
                continue
            require(place not in self.known, "a unit adds to what is set")
            if self.meanings[place][0] == "number":
                made.append((place, self._number(place, rows, terms)))
                continue
            require(self.meanings[place][0] == "bit", "a unit sets what is no bit")
            step = self._step(rows, terms)
            if step is not None:
                self._is_step(place, step)
            else:
                self._is_function(place, rows, terms)
            made.append((place, None))
        for place, parts in made:
            self.known.add(place)
            self.bits += parts is None
            if parts is not None:
                self.numbers[place] = parts

    def _step(self, rows: list[dict[int, float]], terms: dict[int, float]) -> Step | None:
        """Two units with the same terms but the constant, one added and one subtracted, 1 apart."""
        if sorted(terms.values()) != [-1.0, 1.0]:
            return None
        up, down = sorted(terms, key=lambda unit: -terms[unit])
        first, second = rows[up], rows[down]
        same = {place: weight for place, weight in first.items() if place not in (WORD, START)}
        if same != {p: w for p, w in second.items() if p not in (WORD, START)} or not same:
            return None
        if first.get(START, 0.0) != second.get(START, 0.0):
            return None
        low, high = (Fraction(-own.get(WORD, 0.0)) for own in (first, second))
        return Step(same, low, high, first.get(START, 0.0)) if high - low == 1 else None

    def _is_step(self, place: int, step: Step) -> None:
        """Where the coordinate is to be 0, what is read is at most where the step begins; where it is to be
        1, at least where it ends; and nothing rounds."""
        (read, gain), *more = step.form.items()
        group, number = self.meanings[place][1:]
        kind, node = self.meanings[read][:2]
        start = step.start + sum(weight * self.at_start.get(own, 0.0) for own, weight in step.form.items())
        require(start <= 0, "a unit is on at the first position")
        if kind != "raw":
            self.exact({**step.form, WORD: float(max(abs(step.low), abs(step.high)))})
            found, labels = self._labelled(group, *self.joint(self.parts(step.form)))
            below = found[labels < number].max(initial=-np.inf)
            above = found[labels >= number].min(initial=np.inf)
            require(below <= step.low and above >= step.high, "a step is elsewhere")
            return
        require(not more, "a raw coordinate is added to others")
        low, high = step.low / Fraction(gain), step.high / Fraction(gain)
        require(
            gain > 0 and 2.0 ** round(np.log2(gain)) == gain, "a step has another slope than a power of two"
        )
        own = self.program.nodes[node].kind
        require(self.groups[group][0] == (node,), "a step is of another sequence")
        labels = self._label(group)
        centres, top, relative, absolute = self.brought(read)
        if own == "move":
            bits = [centre == 1 for centre in centres]
            require(np.array_equal(labels >= number, bits), "a bit is another one than was copied")
        grid = top * UNIT
        require(low >= 0 and high <= top and low % grid == high % grid == 0, "a step is not on the grid")
        below = [
            c * (1 + relative) + absolute for c, label in zip(centres, labels, strict=True) if label < number
        ]
        above = [
            c * (1 - relative) - absolute for c, label in zip(centres, labels, strict=True) if label >= number
        ]
        require(max(below, default=low) <= low and min(above, default=high) >= high, "a step is elsewhere")
        if own != "move":
            self.widths.append(high - low)

    def brought(self, read: int) -> tuple[list[Fraction], Fraction, Fraction, Fraction]:
        """What a head brings to a raw coordinate: for each value of its node the number that stands for it;
        what it is not above; how far it may be off, relatively, and besides."""
        _, node, row = self.meanings[read]
        kind, values = self.program.nodes[node].kind, self.values[node]
        if kind == "move":
            bits = [Fraction(place > row) for place in range(len(values))]
            return bits, Fraction(2), self._many, Fraction(0)
        if kind == "width":
            return [Fraction(1, 1 + count) for count in values], Fraction(1), 4 * UNIT, Fraction(0)
        least, none, top = self._scale(node)
        centres = [(none if v is None else Fraction(v)) - least for v in values]
        return centres, top, self._many, self.off[node]

    def _is_function(self, place: int, rows: list[dict[int, float]], terms: dict[int, float]) -> None:
        """Units on bits: each is evaluated for all values, and their sum is the bit."""
        group, number = self.meanings[place][1:]
        forms = {unit: rows[unit] for unit in terms}
        finest, most = Fraction(1), Fraction(0)
        for unit, weight in terms.items():
            require(START not in forms[unit], "a unit is on at the first position")
            step, size = self.exact(forms[unit])
            finest, most = min(finest, step * Fraction(step_of(weight))), most + abs(Fraction(weight)) * size
        require(exact(most, finest), "a sum of units is rounded")
        self.chosen = self._representatives(group, [self.parts(form) for form in forms.values()])
        total: Parts = {}
        for unit, weight in terms.items():
            parts = self.parts(forms[unit])
            several = len([key for key in parts if key]) > 1
            key, found = self.joint(parts) if several else self._one(parts)
            total[key] = total.get(key, 0.0) + weight * np.maximum(found, 0.0)
        found, labels = self._labelled(group, *self.joint(total))
        require(np.array_equal(found, labels >= number), "units set something else than the bit")
        self.chosen = {}

    def _representatives(self, group: int, forms: list[Parts]) -> dict[int, NDArray[np.int64]]:
        """Where there are many cases: of the values of each node one for all that neither the units nor the
        functions between the node and the bit tell apart."""
        nodes: Key = tuple(dict.fromkeys(node for parts in forms for key in parts for node in key))
        bases = {own: None for node in self.groups[group][0] for own in self._bases(node, nodes)}
        every = tuple(dict.fromkeys((*nodes, *bases)))
        if np.prod(self._shape(every), dtype=float) <= FEW_CASES:
            return {}
        found: dict[int, NDArray[np.int64]] = {}
        between = {node: self._between(group, node, every) for node in every}
        for node in every:
            tables = [parts[key] for parts in forms for key in parts if node in key]
            if any(table.ndim != 1 for table in tables):
                continue
            functions = [self.places_of(own, (node,)) for own in between[node]]
            columns = [*tables, *(own.astype(np.float64) for own in functions if own is not None)]
            if columns:
                self._spend(16 * len(columns) * len(columns[0]))
                found[node] = np.unique(np.stack(columns), axis=1, return_index=True)[1]
        return found

    def _between(self, group: int, node: int, nodes: Key) -> list[int]:
        """The last functions of this node alone on the way to what a group is about."""
        found, waiting = [], list(self.groups[group][0])
        while waiting:
            own = waiting.pop()
            bases = self._bases(own, nodes)
            if bases == [node]:
                found.append(own)
            elif node in bases:
                waiting += self.program.nodes[own].reads
        return list(dict.fromkeys(found))

    def _number(self, own: int, rows: list[dict[int, float]], terms: dict[int, float]) -> Parts:
        """Units that hand on one bit each, with weights."""
        form: dict[int, float] = {}
        for unit, weight in terms.items():
            require(len(rows[unit]) == 1, "a number is of something else than bits")
            ((place, one),) = rows[unit].items()
            kind = self.meanings[place][0]
            require(
                one == 1.0 and (place == WORD or kind == "bit") and place not in form,
                "a number is of no bits",
            )
            form[place] = weight
        self.quanta[own] = self.exact(form)
        return self.parts(form)

    def _mixed(self, rows: list[dict[int, float]], terms: dict[int, float]) -> None:
        """Two steps for each bit that was copied: up before 1/n, down after 1 - 1/n."""
        by_place: dict[int, list[int]] = {}
        for unit in terms:
            read = [place for place in rows[unit] if place not in (WORD, START)]
            require(len(read) == 1 and self.meanings[read[0]][0] == "raw", "what is watched is not copied")
            by_place.setdefault(read[0], []).append(unit)
        part = Fraction(1, max(2, self.program.length))
        for place, units in by_place.items():
            require(
                self.program.nodes[self.meanings[place][1]].kind == "move", "what is watched is not moved"
            )
            ordered = sorted(units, key=lambda unit: -rows[unit].get(WORD, 0.0) / rows[unit][place])
            require(len(units) == 4, "what is watched is not watched by two steps")
            signs = [terms[unit] for unit in ordered]
            require(signs == [1.0, -1.0, -1.0, 1.0], "what is watched has other signs")
            edges = []
            for unit in ordered:
                gain = rows[unit][place]
                require(gain > 0 and 2.0 ** round(np.log2(gain)) == gain, "a step has another slope")
                require(rows[unit].get(START, 0.0) <= 0, "a unit is on at the first position")
                edges.append(Fraction(-rows[unit].get(WORD, 0.0)) / Fraction(gain))
                require(edges[-1] % (2 * UNIT) == 0, "a step is not on the grid")
            for first, second in ((0, 1), (2, 3)):
                wide = (edges[second] - edges[first]) * Fraction(rows[ordered[first]][place])
                same = rows[ordered[first]][place] == rows[ordered[second]][place]
                require(wide == 1 and same, "a step does not rise to 1")
            low, high = 1 - self._many, 1 + self._many
            require(edges[0] >= 0 and edges[1] <= part * low, "a mixture of values goes unnoticed")
            require(edges[2] >= (1 - part) * high and edges[3] <= low, "a mixture of values goes unnoticed")
            self.watched.discard(place)
            self.says_so = True

    def _watches(self) -> None:
        require(not self.watched, "values that differ may be moved together, and nothing says so")

    def _output(self) -> None:
        output = self.program.output
        rows = [row_of(self.unembedding, row)[0] for row in range(len(self.unembedding))]
        if self.program.nodes[output].kind == "mean":
            places = [p for p, meaning in enumerate(self.meanings) if meaning == ("raw", output, 0)]
            require(len(places) == 1 and rows == [{places[0]: 1.0}], "another number is read")
            least, none, _ = self._scale(output)
            centres = sorted((none if v is None else Fraction(v)) - least for v in self.values[output])
            for low, high in pairwise(centres):
                room = (low + high) * self._many + 2 * self.off[output]
                require(high - low > room, "numbers that are read cannot be told apart")
            return
        require(len(rows) == len(self.values[output]), "there are other outputs")
        for number, form in enumerate(rows):
            require(START not in form, "the first position is read")
            self.exact(form)
            nodes, found = self.joint(self.parts(form))
            _, found, places = self._with(output, nodes, found)
            require(np.array_equal(found, places == number), "the output is another one")
