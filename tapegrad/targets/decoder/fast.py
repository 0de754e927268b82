"""The fast engine of language models that were compiled: the same tokens, without keys and values.

What heads compare is read off their weights, and refused where it is anything else than a slot of a record or
the bits of an address, which are bits of tokens or say which slot this is. Then a gather is a look at one
token, a recall is a look into a table of the latest positions by address, and of the units only those are
computed that can be on in this slot.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad._jit import njit
from tapegrad.attention.analysis import softmax_error
from tapegrad.attention.engines import ONE, Lists, Row, read_scores, require
from tapegrad.attention.language import LARGEST, ROUNDING, STRAY, slot_bits
from tapegrad.attention.tokens import BEGIN, END
from tapegrad.errors import Refused
from tapegrad.networks.form import Affine
from tapegrad.networks.network import Network
from tapegrad.networks.texts import Head, Layer, Parts, Records, parts_of
from tapegrad_check.arithmetic import exact, step_of

MOST_CELLS = 1 << 26
Terms = tuple[dict[int, float], float]


class Recalled(NamedTuple):
    """What a head that recalls looks for."""

    asks: list["Sided"]
    answers: list["Sided"]
    """Where the bits of an address are asked for and answered."""
    must: list[tuple[int, int]]
    """Coordinates of the answer, and the bits that they must have."""
    copies: list[tuple[int, int]]


class Sided(NamedTuple):
    """A bit: at a coordinate, or, where that is -1, as the slot has it."""

    at: int
    slots: tuple[int, ...]


class Sides(NamedTuple):
    """The bits of addresses of all recalls."""

    at: Lists
    slots: NDArray[np.uint8]
    """For every one its value in each slot."""


class Tables(NamedTuple):
    """A language model, read."""

    record: int
    first: int
    """Where the bits of a record's number begin, then those of the record before, then slots."""
    bits: int
    embedding: NDArray[np.uint8]
    slots: NDArray[np.int64]
    """For each gather and own slot the slot looked at, or -1."""
    before: NDArray[np.uint8]
    gathers: Lists
    """For each gather pairs of coordinates, from and to."""
    asks: Sides
    answers: Sides
    """For each recall the bits of the address, here and there."""
    must: Lists
    """For each recall pairs, coordinates and the bits that must be there."""
    recalls: Lists
    cells: NDArray[np.int64]
    """Where the cells of each recall begin."""
    units: Lists
    """For each slot the units that can be on."""
    terms: Lists
    """For each unit its coordinates."""
    weights: NDArray[np.float32]
    bias: NDArray[np.float32]
    sums: NDArray[np.float32]
    """Units by digits of the next token's number."""
    offset: NDArray[np.float32]
    unembedding: NDArray[np.float32]


class Fast:
    """A run: the latest position of every address, and how many tokens have been read."""

    def __init__(self, tables: Tables) -> None:
        self.tables, self.read = tables, 0
        self.cells = np.zeros(tables.cells[-1], np.int32)

    def advance(self, tokens: list[int], last: int) -> list[int]:
        """The text with more tokens, so many in all, or fewer if it ends."""
        text = np.zeros(last, np.int32)
        text[: len(tokens)] = tokens
        count = _generate(self.tables, self.cells, text, self.read, len(tokens))
        self.read = count - 1
        # To heads a first token that comes again would be one more place where nothing is found.
        require(bool((text[max(1, len(tokens)) : count] != BEGIN).all()))
        return text[:count].tolist()


def read_tables(network: Network, tokens: int) -> Tables:
    """What the weights say, or a refusal. No text is longer than so many tokens."""
    model = parts_of(network)
    layers, positions = list(model.layers), model.positions
    assert isinstance(positions, Records)
    require(len(layers) >= 2 and not np.asarray(model.unembedding.bias).any())
    gathering, *searching, choosing = layers
    reader = _Reader(model, positions, tokens)
    gathers = [reader.gather(head) for head in gathering.heads]
    gathered = reader.rounded(gathering, {to for *_, copies in gathers for _, to in copies})
    recalls = reader.recalls(searching, choosing, set(gathered.values()))
    recalled = {to for own in recalls for _, to in own.copies}
    require(not recalled & reader.set and reader.bits_of_tokens())
    cells = np.cumsum([0, *(1 << len(own.asks) for own in recalls)])
    if cells[-1] > MOST_CELLS:
        raise Refused("the fast engine would need too large a table", advice="Ask for fewer tokens.")
    units = _by_row(choosing.units)
    most, step = _exact(choosing.units, np.ones(choosing.units.width), 1.0)
    _exact(choosing.sums, most, step)
    known = reader.own | set(gathered.values()) | recalled
    require(all(terms.keys() <= known for terms, _ in units))
    digits, unembedding = np.asarray(choosing.to), model.unembedding.dense().weight
    require(bool(np.isin(np.flatnonzero(unembedding.any(axis=0)), digits).all()))
    taken = reader.own | reader.set | recalled
    require(not taken & set(digits.tolist()) and len(set(digits.tolist())) == len(digits))
    return Tables(
        positions.record,
        positions.first,
        positions.bits,
        np.ascontiguousarray(model.embedding.dense().weight.astype(np.uint8)),
        np.array([slots for slots, *_ in gathers], np.int64).reshape(-1, positions.record),
        np.array([before for _, before, _ in gathers], np.uint8),
        Lists.of([[place for at, to in copies for place in (at, gathered[to])] for *_, copies in gathers]),
        _sides([own.asks for own in recalls], positions.record),
        _sides([own.answers for own in recalls], positions.record),
        Lists.of([[part for pair in own.must for part in pair] for own in recalls]),
        Lists.of([[place for pair in own.copies for place in pair] for own in recalls]),
        cells.astype(np.int64),
        Lists.of(_can_be_on(choosing.units, reader.slots)),
        Lists.of([list(terms) for terms, _ in units]),
        np.array([weight for terms, _ in units for weight in terms.values()], np.float32),
        np.array([bias for _, bias in units], np.float32),
        np.ascontiguousarray(choosing.sums.dense().weight.T),
        np.asarray(choosing.sums.bias, np.float32),
        np.ascontiguousarray(unembedding[:, digits]),
    )  # fmt: skip


class _Reader:
    """What heads and units compute, from their weights."""

    def __init__(self, model: Parts, table: Records, tokens: int) -> None:
        self.embedding, self.tokens = model.embedding, tokens
        self.record = range(table.first, table.first + table.bits)
        self.before = range(self.record.stop, self.record.stop + table.bits)
        self.slots = range(self.before.stop, self.before.stop + table.record)
        require(tokens // table.record < 1 << table.bits)
        embedding = model.embedding.dense().weight
        self.first = embedding[BEGIN]
        self.features = set(range(table.first))
        self.own = self.features | set(self.record) | set(self.before) | set(self.slots)
        alone = [at for at in self.features if np.array_equal(np.flatnonzero(embedding[:, at]), [BEGIN])]
        require(bool(alone))
        self.begin = min(alone)
        self.set: set[int] = set()
        """Coordinates that layers have added to."""

    def bits_of_tokens(self) -> bool:
        """Whether embeddings are bits, apart from positions."""
        own = self.embedding
        return bool((own.values == 1).all() and (own.columns < self.record.start).all())

    def gather(self, head: Head) -> tuple[list[int], bool, list[tuple[int, int]]]:
        """For each slot the one looked at; in which record; and what is copied where."""
        query, key, bits = _by_row(head.query), _by_row(head.key), len(self.record)
        coded = len(query) == bits + slot_bits(len(self.slots)) + 1 and len(key[bits][0]) == len(self.slots)
        beta = self._temperature(query[-1], len(query) - 2 if coded else bits + 1)
        before = query[0] == ({self.before[0]: 2 * beta}, -beta)
        asks = self.before if before else self.record
        for bit, at in enumerate(asks):
            require(query[bit] == ({at: 2 * beta}, -beta))
            require(key[bit] == ({self.record[bit]: 2.0, self.begin: 1.0}, -1.0))
        looked = (self._coded if coded else self._one_hot)(query[bits:-1], key[bits:-1], beta)
        require(key[-1] == ({self.begin: 1.0}, 0.0))
        copies = self._copies(head)
        require(all(at in self.features for at, _ in copies))
        return looked, before, copies

    def _one_hot(self, query: list[Terms], key: list[Terms], beta: float) -> list[int]:
        """The slots that are looked at, where each has a row."""
        require(len(query) == len(key) == len(self.slots))
        looked = [-1] * len(self.slots)
        for slot, at in enumerate(self.slots):
            terms, bias = query[slot]
            require(key[slot] == ({at: 1.0}, 0.0) and bias == 0)
            for own, weight in terms.items():
                require(own in self.slots and weight == 2 * beta and looked[own - self.slots[0]] < 0)
                looked[own - self.slots[0]] = slot
        return looked

    def _coded(self, query: list[Terms], key: list[Terms], beta: float) -> list[int]:
        """The slots that are looked at, where each bit of their numbers has a row."""
        require(len(query) == len(key))
        asking = query[0][0].keys()
        looked = [0 if at in asking else -1 for at in self.slots]
        for bit, ((terms, bias), answers) in enumerate(zip(query, key, strict=True)):
            signs = {at: 1.0 if slot >> bit & 1 else -1.0 for slot, at in enumerate(self.slots)}
            require(answers == (signs, 0.0) and bias == 0 and terms.keys() == asking <= set(self.slots))
            for own, weight in terms.items():
                require(abs(weight) == beta)
                looked[own - self.slots[0]] |= (weight > 0) << bit
        require(max(looked) < len(self.slots))
        return looked

    def rounded(self, layer: Layer, raw: set[int]) -> dict[int, int]:
        """From each raw coordinate to where its bit is."""
        units, found = _by_row(layer.units), {}
        for (terms, bias), to in zip(_by_row(layer.sums), np.asarray(layer.to).tolist(), strict=True):
            cuts = [(units[unit], weight) for unit, weight in terms.items()]
            require(bias == 0 and len(cuts) == 2 and len(cuts[0][0][0]) == 1)
            (at,) = cuts[0][0][0]
            expected = [
                (({at: 1.0}, -cut), gain)
                for cut, gain in ((ROUNDING.low, ROUNDING.gain), (ROUNDING.high, -ROUNDING.gain))
            ]
            require(cuts == expected and at in raw and at not in found)
            found[at] = to
        new = raw | set(found.values())
        require(found.keys() == raw and len(new) == 2 * len(raw) and not new & (self.own | self.set))
        self.set |= new
        return found

    def recalls(self, searching: list[Layer], choosing: Layer, gathered: set[int]) -> list[Recalled]:
        """What the heads of the last layer look for, where each is at the end of a search."""
        rest = len(self.record)
        known: list[dict[int, int]] = [{} for _ in choosing.heads]
        """For each, where bits of the record's number were found."""
        recalls: list[Recalled] = []
        for layer in (*searching, choosing):
            require(len(layer.heads) == len(known))
            parts = [
                self._recall(head, gathered, found) for head, found in zip(layer.heads, known, strict=True)
            ]
            digits = {digit for _, digit in parts}
            require(len(digits) == 1)
            digit = digits.pop()
            asked = [own[:3] for own, _ in parts]
            require(not recalls or asked == [own[:3] for own in recalls])
            recalls = [own for own, _ in parts]
            if layer is choosing:
                require(digit == rest and all(at in self.features for own in recalls for at, _ in own.copies))
                return recalls
            require(digit < rest)
            bits = self.rounded(layer, {to for own in recalls for _, to in own.copies})
            high = self.record[rest - digit : rest]
            for own, found in zip(recalls, known, strict=True):
                require([at for at, _ in own.copies] == list(high))
                found |= {at: bits[to] for at, to in own.copies}
            rest -= digit
        raise AssertionError("the last layer is among them")

    def _recall(self, head: Head, gathered: set[int], found: Mapping[int, int]) -> tuple[Recalled, int]:
        """What a head looks for and copies, and how many bits its digit has."""
        sides: list[Sided] = []

        def by_slot(row: Row, scale: float) -> int:
            columns, values, bias = row
            require(set(columns) <= set(self.slots) and len(set(columns)) == len(columns))
            terms = dict(zip(columns, values, strict=True))
            signs = [bias + terms.get(at, 0.0) for at in self.slots]
            require(all(abs(sign) == scale for sign in signs))
            sides.append(Sided(-1, tuple(int(sign > 0) for sign in signs)))
            return ONE - len(sides)

        def side(sign: int) -> Sided:
            if sign < ONE:
                return sides[ONE - 1 - sign]
            at = -1 if sign in self.slots else max(sign, -1)
            return Sided(at, tuple(int(sign in (ONE, own)) for own in self.slots))

        query, key = head.query, head.key
        rest, last = len(self.record) - len(found), len(query) - 1
        beta = self._temperature((dict(query.row(last)), float(query.bias[last])), 1)
        # The first token is the place that wins where none fits. It takes no part in what is compared.
        null = np.bincount(key.rows, key.values * self.first[key.columns], len(key)).astype(np.float64)
        own = key.columns != self.begin
        key = Affine(key.rows[own], key.columns[own], key.values[own], key.bias, key.width)
        query = Affine(query.rows, query.columns, query.values / beta, query.bias / beta, query.width)
        compared, digit = read_scores(query, key, null + key.bias, LARGEST, by_slot)
        require(digit == list(self.record[rest - len(digit) : rest]))
        asks, answers, must, searched = [], [], [], {}
        for asked, answered in compared:
            if answered in self.record:
                require(asked >= 0)
                searched[answered] = asked
                continue
            ask, answer = side(asked), side(answered)
            bits = gathered | self.features | {-1}
            require({ask.at, answer.at} <= bits)
            require(answer.at < 0 or not self.first[answer.at])
            if ask.at < 0 and len(set(ask.slots)) == 1 and answer.at >= 0:
                must.append((answer.at, ask.slots[0]))
            else:
                asks.append(ask)
                answers.append(answer)
        require(searched == found)
        return Recalled(asks, answers, must, self._copies(head)), len(digit)

    def _temperature(self, row: Terms, times: int) -> float:
        """The power of two of a row that is a constant times it."""
        terms, bias = row
        beta = bias / times
        require(not terms and beta > 0 and float(np.log2(beta)).is_integer())
        require(softmax_error(self.tokens, beta / 2) <= STRAY)
        return beta

    def _copies(self, head: Head) -> list[tuple[int, int]]:
        pairs = []
        for (terms, bias), to in zip(_by_row(head.value), np.asarray(head.to).tolist(), strict=True):
            require(bias == 0 and len(terms) == 1 and set(terms.values()) == {1.0})
            (at,) = terms
            require(at in self.features or at in self.record)
            pairs.append((at, to))
        return pairs


def _can_be_on(units: Affine, slots: range) -> list[list[int]]:
    """For each slot the units that can be on there: the bias, what is positive among the other terms, and the
    weight of the slot, come to more than 0."""
    of_slots = (units.columns >= slots.start) & (units.columns < slots.stop)
    others = np.where(of_slots, 0, np.maximum(units.values, 0)).astype(np.float64)
    most = units.bias + np.bincount(units.rows, others, len(units))
    by_slot = np.zeros((len(slots), len(units)))
    np.add.at(by_slot, (units.columns[of_slots] - slots.start, units.rows[of_slots]), units.values[of_slots])
    return [np.flatnonzero(most + own > 0).tolist() for own in by_slot]


def _exact(own: Affine, most: NDArray[np.float64], step: float) -> tuple[NDArray[np.float64], float]:
    """How large rows can be, and what they are multiples of, where columns are multiples of a step and so
    large at most; refused if single precision rounds any of them, since engines differ then."""
    terms = np.abs(own.values) * most[own.columns]
    found = np.bincount(own.rows, terms, len(own)).astype(np.float64) + np.abs(own.bias)
    finest = min(step * float(step_of(own.values)), float(step_of(own.bias)))
    require(bool(np.all(exact(found, finest))))
    return found, finest


def _by_row(own: Affine) -> list[Terms]:
    require(len(np.unique(own.rows * np.int64(own.width) + own.columns)) == len(own.columns))
    return [(dict(zip(columns, values, strict=True)), bias) for columns, values, bias in own.by_row()]


def _sides(parts: list[list[Sided]], record: int) -> Sides:
    values = [side.slots for part in parts for side in part]
    return Sides(
        Lists.of([[side.at for side in part] for part in parts]),
        np.array(values, np.uint8).reshape(-1, record),
    )


@njit()
def _gathered(x, sides, which, slot):
    """The number whose bits, lowest first, stand at these coordinates, or are those of the slot."""
    number, starts = 0, sides.at.starts
    for place in range(starts[which], starts[which + 1]):
        at = sides.at.items[place]
        bit = x[at] if at >= 0 else sides.slots[place, slot]
        number |= np.int64(bit) << (place - starts[which])
    return number


@njit()
def _generate(tables, cells, text, position, count):
    """Reads the text from a position on, then adds tokens until it is full or ends; how many there are."""
    x = np.zeros(tables.embedding.shape[1], np.uint8)
    z = np.zeros(len(tables.offset), np.float32)
    first, bits, record = tables.first, tables.bits, tables.record
    while count < len(text):
        x[:] = tables.embedding[text[position]]
        own, slot = (position - 1) // record, (position - 1) % record
        complete = max(position // record - 1, 0)
        if position > 0:
            for bit in range(bits):
                x[first + bit] = own >> bit & 1
                x[first + bits + bit] = complete >> bit & 1
            x[first + 2 * bits + slot] = 1
        for head in range(len(tables.before)):
            at, looked = 0, tables.slots[head, slot]
            if position > 0 and looked >= 0:
                asked = 1 + (complete if tables.before[head] else own) * record + looked
                at = asked if asked <= position else 0
            for place in range(tables.gathers.starts[head], tables.gathers.starts[head + 1], 2):
                source, to = tables.gathers.items[place], tables.gathers.items[place + 1]
                x[to] = tables.embedding[text[at], source]
        for head in range(len(tables.cells) - 1):
            answers = position > 0
            for place in range(tables.must.starts[head], tables.must.starts[head + 1], 2):
                answers = answers and x[tables.must.items[place]] == tables.must.items[place + 1]
            if answers:
                cells[tables.cells[head] + _gathered(x, tables.answers, head, slot)] = position
        position += 1
        if position < count:
            continue
        for head in range(len(tables.cells) - 1):
            at = cells[tables.cells[head] + _gathered(x, tables.asks, head, slot)]
            for place in range(tables.recalls.starts[head], tables.recalls.starts[head + 1], 2):
                source, to = tables.recalls.items[place], tables.recalls.items[place + 1]
                x[to] = tables.embedding[text[at], source]
        z[:] = tables.offset
        # The first token is in no slot, and nothing is asked about it.
        for own_unit in range(tables.units.starts[slot], tables.units.starts[slot + 1]):
            unit = tables.units.items[own_unit]
            total = tables.bias[unit]
            for term in range(tables.terms.starts[unit], tables.terms.starts[unit + 1]):
                total += tables.weights[term] * x[tables.terms.items[term]]
            if total > 0:
                z += tables.sums[unit] * total
        best, chosen = np.float32(-np.inf), 0
        for token in range(len(tables.unembedding)):
            logit = np.float32(0)
            for digit in range(len(z)):
                logit += tables.unembedding[token, digit] * z[digit]
            if logit > best:
                best, chosen = logit, token
        text[count] = chosen
        count += 1
        if chosen == END:
            break
    return count
