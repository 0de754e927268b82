"""Is a language model this Turing machine? Every weight of its heads, and its units in all that can happen.

What is proved, by induction over the tokens of a text: if all tokens so far are those of a run, told as a
prompt and then record by record, the next one has the greatest logit. The heads are compared with the
formulas by which they look for a slot of a record, or for the latest record with an address; scores, the
temperature and the error of softmax are worked out. The units of the last layer are evaluated for every digit
and carry, every symbol, and every state with everything that can lie under the heads; what they choose must
be what the arithmetic of digits, or the table of the source, says.

Words for what a head copies: `raw` is near a bit, and rounded by two units before it is compared.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.arithmetic import Matrix, evaluated, exact, rounding, step_of
from tapegrad_check.fields import whole
from tapegrad_check.folder import OWN_TABLE, Arrays, Checked, require
from tapegrad_check.graph import Graph
from tapegrad_check.in_tokens import program_texts
from tapegrad_check.in_tokens.records import (
    BASE,
    BORROW,
    CARRY,
    DIGIT,
    DIGITS,
    END,
    RULE,
    SAME,
    SYMBOLS,
    Key,
    Text,
    copies_of,
    ones,
    raw_of,
)  # fmt: skip
from tapegrad_check.in_tokens.token_nets import purposes
from tapegrad_check.maps import Map, row_of
from tapegrad_check.products import times
from tapegrad_check.rasp import program as rasp
from tapegrad_check.sources import Machine, Model, digest, model_of
from tapegrad_check.texts import Text as Written
from tapegrad_check.texts import named, text_of

LOW, HIGH = 3 / 8, 5 / 8
"""Where bits are cut; a slope of 4 between."""
MEAN, MOST_TERMS = 2.0**-20, 1 << 12
"""How far from 0 layer norms may find means, and the most that a unit may read."""
MOST_TOKENS = 1 << 23
MOST_WORK = 1 << 32
"""Cases times units: more would take minutes."""

Terms = Mapping[Key, float]


def check(
    config: dict[str, Any], arrays: Arrays, claims: dict[str, Any], source: Model | None, graph: Graph
) -> Checked:
    """The statements that hold; `CheckError` says which does not."""
    data = config["machine"]
    require(isinstance(data, dict), "the net has no machine")
    require(not arrays, "there are arrays beside those of the graph")
    if data.get("kind") == "rasp":
        return rasp.check(config, claims, source, graph)
    require(config.keys() == {"machine", "tokens"}, "the net has other entries")
    if data.get("kind") in program_texts.KINDS:
        return program_texts.check(config, claims, source, graph)
    require(data.get("kind") == "tapes", "the net has no machine that there is")
    require(data.keys() == {"kind", "digits", "source"}, "the machine has other entries")
    machine = model_of(data["source"], {})
    require(isinstance(machine, Machine), "the machine of the net has no tapes")
    assert isinstance(machine, Machine)
    require(source is None or digest(machine) == digest(source), "the machine is not the source")
    tokens = whole(config["tokens"], "the horizon", 2, MOST_TOKENS)
    text = Text(machine, whole(data["digits"], "the number of digits", 1, 6), tokens)
    net = _Net(text_of(graph, causal=True), text)
    net.check_embedding()
    net.check_heads()
    net.check_rounding()
    net.check_logits()
    statements = [
        f"the {len(text.tokens):,} tokens have the bits that their words say",
        f"{len(text.slots)} heads gather the tokens of a record, two look at the record before",
        f"{machine.tapes * len(text.layers)} head(s) find the latest record that wrote to an address, in "
        f"{len(text.layers)} round(s); scores are at most {text.largest:,}, and those that differ, differ by "
        "1, or by 1/2 where layer norms find means up to 2^-20",
        f"softmax strays by at most {text.stray:.3g}, and what is copied is rounded to the bit itself",
        f"cells up to {text.records:,} from the start have digits of their own: the horizon is {tokens:,} "
        "tokens",
    ]
    work = len(machine.states) * len(machine.alphabet) ** machine.tapes * max(1, len(net.units))
    if work > MOST_WORK:
        _claims(claims, text)
        return Checked([*statements, "the table was not compared: there are too many cases"], OWN_TABLE)
    net.check_cases()
    _claims(claims, text)
    statements.append(
        f"for every digit and move, every symbol, and all of {len(machine.rules):,} rules and the cases "
        "without one, the units choose the token that the source says; its logit is above all others by 1"
    )
    return Checked(statements)


def _claims(claims: dict[str, Any], text: "Text") -> None:
    found = {
        "dtype": "float32",
        "tokens": text.horizon,
        "record": text.record,
        "layers": 1 + len(text.layers),
        "largest_score": float(text.largest),
        "score_gap": 0.5,
        "mean_error": MEAN,
        "temperature": text.beta,
        "softmax_error": text.stray,
        "logit_gap": 1.0,
    }
    require(claims == found, "the certificate claims something else than what holds")


class _Net:
    """The arrays of a net, with the names of coordinates."""

    def __init__(self, net: Written, text: Text) -> None:
        self.text = text
        require(net.coordinates == named(text.coordinates), "coordinates have other names")
        require(list(net.words) == text.words, "tokens have other words")
        self.at = {key: place for place, key in enumerate(text.coordinates)}
        net.check_records(text.record, text.bits, self.at["record", 0])
        layers, tapes = 1 + len(text.layers), text.machine.tapes
        counts = [len(layer.heads) for layer in net.layers]
        require(counts == [len(text.gathered), *[tapes] * len(text.layers)], "layers have other heads")
        wanted = [*text.gathered, *(self._named(t, n) for n in range(layers - 1) for t in range(tapes))]
        require([head.name for head in net.heads] == wanted, "heads have other names")
        require([layer.purpose for layer in net.layers] == purposes(layers), "layers have other purposes")
        self.sides, self.heads_to = net.sides, [head.to for head in net.heads]
        self.layers, self.sums = [own.units for own in net.layers], [own.sums for own in net.layers]
        self.units, self.adds_to = self.layers[-1], [layer.to for layer in net.layers]
        self.embedding, self.unembedding = net.embedding, net.unembedding

    def _named(self, tape: int, number: int) -> str:
        name = self.text.recall(tape)
        last = number == len(self.text.layers) - 1
        return name if last else f"{name}: digit {number + 1} of its record"

    def _is(self, own: Map, row: int, terms: Terms, bias: float, what: str) -> None:
        expected = {self.at[key]: weight for key, weight in terms.items()}
        require(row_of(own, row) == (expected, bias), what)

    def check_embedding(self) -> None:
        """Every token has its bits, and nothing else."""
        tokens = self.text.tokens
        require(len(self.embedding) == len(self.unembedding) == len(tokens), "there are other tokens")
        for number, bits in enumerate(tokens):
            self._is(self.embedding, number, dict.fromkeys(bits, 1.0), 0, "a token has other bits")

    def check_heads(self) -> None:
        """What every head asks, answers and copies."""
        text, beta, head = self.text, self.text.beta, 0
        last = text.record - 1
        for name, copies in text.gathered.items():
            before = name in (SAME, RULE)
            if name == SAME:
                asked = {own: (own + 1) % text.record for own in range(text.record)}
            elif name == RULE:
                asked = dict.fromkeys(range(text.record), last)
            else:
                slot = text.slots.index(name.removeprefix("this "))
                asked = dict.fromkeys(range(slot, text.record), slot)
            rows: list[tuple[Terms, float, Terms, float]] = [
                ({("before" if before else "record", bit): 2 * beta}, -beta,
                 {("record", bit): 2.0, ("begin", 0): 1.0}, -1.0)
                for bit in range(text.bits)
            ]  # fmt: skip
            for slot in range(text.record):
                asking = {("slot", own): 2 * beta for own, other in asked.items() if other == slot}
                rows.append((asking, 0.0, {("slot", slot): 1.0}, 0.0))
            rows.append(({}, beta * (text.bits + 1), {("begin", 0): 1.0}, 0.0))
            self._head(head, rows, copies)
            head += 1
        for number, bits in enumerate(text.layers):
            for tape in range(text.machine.tapes):
                self._recall(head, tape, bits, number == len(text.layers) - 1)
                head += 1

    def _recall(self, head: int, tape: int, bits: range, last: bool) -> None:
        """A round of the search for the latest write to an address."""
        text, beta, scale, name = self.text, self.text.beta, float(1 << len(bits)), self.text.recall(tape)
        asks = [({key: 2 * beta}, -beta, key) for key in text.address(tape)]
        asks.append(({}, beta, (f"on {tape}", 0)))
        for bit in range(bits.stop, text.bits):
            asks.append(({(f"{name}: record", bit): 2 * beta}, -beta, ("record", bit)))
        rows: list[tuple[Terms, float, Terms, float]] = [
            (terms, bias, {answer: 2 * scale, ("begin", 0): scale}, -scale) for terms, bias, answer in asks
        ]
        rows.append(({}, beta, {("record", bit): float(1 << place) for place, bit in enumerate(bits)}, 0.0))
        rows.append(({}, beta, {("begin", 0): scale * (len(asks) - 1)}, 0.0))
        if last:
            copies = copies_of(name, f"write {tape}", len(text.machine.alphabet))
        else:
            copies = copies_of(name, "record", 0, bits)
        self._head(head, rows, copies)

    def _head(
        self, head: int, rows: list[tuple[Terms, float, Terms, float]], copies: list[tuple[Key, Key]]
    ) -> None:
        query, key, value = (side[head] for side in self.sides)
        require(len(query) == len(key) == len(rows), "a head compares something else")
        require(len(value) == len(copies), "a head copies something else")
        for row, (asks, bias, answers, other) in enumerate(rows):
            self._is(query, row, asks, bias, "a head asks something else")
            self._is(key, row, answers, other, "a head answers something else")
        for row, (there, _) in enumerate(copies):
            self._is(value, row, {there: 1.0}, 0.0, "a head copies something else")
        to = [self.at[raw_of(here)] for _, here in copies]
        require(self.heads_to[head] == to, "what a head copies goes elsewhere")

    def check_rounding(self) -> None:
        """Before it is compared, what was copied is cut to bits."""
        gathered = [pair for copies in self.text.gathered.values() for pair in copies]
        for number, copies in enumerate((gathered, *map(self.text.searched, self.text.layers[:-1]))):
            units, sums = self.layers[number], self.sums[number]
            require(len(units) == 2 * len(copies) == 2 * len(sums), "there are other units that round")
            for row, (_, here) in enumerate(copies):
                for side, cut in enumerate((LOW, HIGH)):
                    self._is(units, 2 * row + side, {raw_of(here): 1.0}, -cut, "a bit is cut elsewhere")
                expected = [2 * row, 2 * row + 1], [4.0, -4.0], 0.0
                require(sums.row(row) == expected, "a bit is not rounded")
            require(self.adds_to[number] == [self.at[here] for _, here in copies], "a bit goes elsewhere")

    def check_logits(self) -> None:
        """Signs of the numbers of tokens, and the last layer writes there."""
        bits = (len(self.text.tokens) - 1).bit_length()
        require(self.adds_to[-1] == [self.at["next", bit] for bit in range(bits)], "nothing is chosen")
        for number in range(len(self.text.tokens)):
            signs = {("next", bit): 1.0 if number >> bit & 1 else -1.0 for bit in range(bits)}
            self._is(self.unembedding, number, signs, 0.0, "a token has other logits")

    # The last layer, in all that can happen

    def check_cases(self) -> None:
        """What follows in every slot."""
        text, machine = self.text, self.text.machine
        for slot in range(text.record):
            tape, place = divmod(slot + 1, text.digits + 1)
            if slot == text.record - 2:
                self._expect(slot, self._rules(), self._known_to_rules())
            elif place == text.digits and slot < text.record - 1:
                name = f"raw {text.recall(tape)}: write {tape}"
                cases = [({(name, n)}, SYMBOLS + n) for n in range(len(machine.alphabet))]
                self._expect(slot, cases, {(name, n) for n in range(len(machine.alphabet))})
            else:
                tape = tape if slot < text.record - 1 else 0
                first = place == 0 or slot == text.record - 1
                up, down = (
                    ((f"{RULE}: right {tape}", 0), (f"{RULE}: left {tape}", 0))
                    if first
                    else (("up", 0), ("down", 0))
                )
                digit = {(f"{SAME}: digit", bit) for bit in range(DIGIT)}
                self._expect(slot, _additions(up, down), digit | {up, down})

    def _known_to_rules(self) -> set[Key]:
        known = {(f"{RULE}: state", bit) for bit in range(self.text.state_bits)}
        tapes, bits = range(self.text.machine.tapes), range(self.text.letters)
        return known | {(f"tape {tape} symbol: symbol", bit) for tape in tapes for bit in bits}

    def _rules(self) -> Iterator[tuple[set[Key], int]]:
        """Every state with everything that can be seen, and what the machine does."""
        text, machine = self.text, self.text.machine
        seen = list(product(range(len(machine.alphabet)), repeat=machine.tapes))
        for number, state in enumerate(machine.states):
            for symbols in seen:
                bits = ones(f"{RULE}: state", number)
                for tape, symbol in enumerate(symbols):
                    bits |= ones(f"tape {tape} symbol: symbol", symbol)
                rule = machine.rules.get((state, tuple(machine.alphabet[symbol] for symbol in symbols)))
                yield bits, END if rule is None else text.outcomes[rule]

    def _expect(self, slot: int, cases: Any, known: set[Key]) -> None:
        """In this slot, where these bits are 1 and no other that is known, these tokens follow."""
        places = {self.at[key] for key in known}
        here = self.at["slot", slot]
        raw = {place for place in places if self.text.coordinates[place][0].startswith("raw ")}
        used = []
        for unit, (terms, bias) in enumerate(self._rows):
            if self._can_be_on(terms, bias, here):
                require(terms.keys() - self._slots <= places, "a choice depends on something else")
                require(len(terms) <= MOST_TERMS, "a unit reads too much")
                used.append(unit)
        columns = {place: number for number, place in enumerate(sorted(places | {here}))}
        weights, bias = np.zeros((len(used), len(columns))), np.array([self._rows[unit][1] for unit in used])
        for row, unit in zip(weights, used, strict=True):
            for place, value in self._rows[unit][0].items():
                if place in columns:
                    row[columns[place]] = value
        reads_raw = np.array([bool(raw & self._rows[unit][0].keys()) for unit in used], bool)
        sums, offset = self._dense_sums[:, used], np.array(self.sums[-1].bias)
        off, uneven = (own[used] for own in self._off)
        amounts = np.where(reads_raw, uneven, off)
        for bits, following in _in_chunks(cases):
            x = np.zeros((len(bits), len(columns)))
            for number, own in enumerate(bits):
                x[number, [columns[self.at[key]] for key in (*own, ("slot", slot))]] = 1
            z, rounded = evaluated(weights, bias, x)
            plain, cut = z[:, ~reads_raw], z[:, reads_raw]
            require((np.abs(plain) >= 1 / 2).all(), "a unit is not sure whether it is on")
            # Values that are read raw may be off, which must not matter to the sum of the two.
            safe = (cut <= -1 / 4) | np.isin(cut, (1 - LOW, 1 - HIGH))
            require(safe.all() and self._paired(used, reads_raw), "a recalled bit is not rounded")
            active = np.maximum(z, 0)
            found, more = evaluated(sums, offset, active, step_of(active))
            require(not (rounded.any() or more.any()), "a choice is rounded in single precision")
            wanted = (following[:, None] >> np.arange(len(offset)) & 1) * 2 - 1
            require((found == wanted).all(), "another token follows than the source says")
            astray = times((z > 0) * amounts, np.abs(sums).T)
            require((astray <= 1 / 2).all(), "another token may follow, as units are off")

    def _paired(self, used: Sequence[int], reads_raw: NDArray[np.bool_]) -> bool:
        """Whether units that read a recalled bit come in pairs, one for each cut, with opposite weights."""
        units = [unit for unit, raw in zip(used, reads_raw.tolist(), strict=True) if raw]
        for low, high in zip(units[::2], units[1::2], strict=True):
            (first, bias), (second, other) = self._rows[low], self._rows[high]
            opposite = (self._dense_sums[:, low] == -self._dense_sums[:, high]).all()
            if first != second or bias - other != HIGH - LOW or not opposite:
                return False
        return len(units) % 2 == 0

    @cached_property
    def _rows(self) -> list[tuple[dict[int, float], float]]:
        return [row_of(self.units, unit) for unit in range(len(self.units))]

    @cached_property
    def _off(self) -> tuple[Matrix, Matrix]:
        """How far units of the last layer may be off, since layer norms find means, heads do not copy quite
        the bit, and what is no bit is rounded; and the last alone. On bits they are exact."""
        own, raw = self.units, [name.startswith("raw ") for name, _ in self.text.coordinates]
        read, bias = own.totals(np.ones(own.width)), np.abs(own.bias)
        require(exact(read + bias, own.steps()).all(), "a unit is rounded in single precision")
        rounded = rounding(np.diff(own.starts) + 1, 2 * (read + bias), 0.0)
        off = read * MEAN + own.totals(np.array(raw) * self.text.stray) + rounded
        require((off <= 1 / 4).all(), "a unit is not sure whether it is on")
        return off, rounded

    @cached_property
    def _slots(self) -> set[int]:
        return {self.at["slot", slot] for slot in range(self.text.record)}

    @cached_property
    def _dense_sums(self) -> NDArray[np.float64]:
        sums = np.zeros((len(self.sums[-1]), len(self.units)))
        for row in range(len(sums)):
            columns, values, _ = self.sums[-1].row(row)
            sums[row, columns] = values
        return sums

    def _can_be_on(self, terms: Mapping[int, float], bias: float, here: int) -> bool:
        most = sum(value for at, value in terms.items() if value > 0 and at not in self._slots)
        # Where it cannot, it is off by a margin that no rounding overcomes.
        return bias + most + terms.get(here, 0.0) > -1 / 4


def _additions(up: Key, down: Key) -> list[tuple[set[Key], int]]:
    """A digit plus a move, and a carry where that leaves the digits."""
    cases = []
    for digit in range(BASE):
        for move, bits in ((0, set()), (1, {up}), (-1, {down})):
            total = digit + move
            token = CARRY if total == BASE else BORROW if total < 0 else DIGITS + total
            cases.append((ones(f"{SAME}: digit", digit) | bits, token))
    return cases


def _in_chunks(cases: Any, size: int = 1024) -> Iterator[tuple[list[set[Key]], NDArray[np.int64]]]:
    chunk: list[tuple[set[Key], int]] = []
    for case in cases:
        chunk.append(case)
        if len(chunk) == size:
            yield [bits for bits, _ in chunk], np.array([token for _, token in chunk])
            chunk = []
    if chunk:
        yield [bits for bits, _ in chunk], np.array([token for _, token in chunk])
