"""Theorem 4.1, layer by layer: the lemmas of appendix C as matrices.

Decoder step i takes `o_{i-1} + beta(i)` and makes `o_i`, which encodes state, symbol under the head and head
position after step i of the machine. Step 0 is ours: it starts from a fixed vector (the paper's trainable
h_0), whose coordinate `start` stands for the first state, and only reads. The paper assumes that the first
symbol is known; a constant vector cannot know it.
"""

from collections.abc import Iterable

import numpy as np

from tapegrad.machines.model import LEFT, RIGHT, TuringMachine
from tapegrad.targets.transformer.layers import Attention, FeedForward, TransformerLayer
from tapegrad.targets.transformer.layout import Layout

CORRECTIONS = {"quarters": (0.25, 0.75), "thirds": (1 / 3, 2 / 3)}
"""Kinks of the correction. `thirds` is the paper's; `quarters` is exact in binary floating point: for every
float z within 1/4 of a bit, `2 relu(z - 1/4) - 2 relu(z - 3/4)` *is* that bit, without rounding."""


class _FirstLayer:
    """`W_1` and `b_1`, written row by row. Rows not named are 0, which clears the coordinate."""

    def __init__(self, layout: Layout, correction: str) -> None:
        self.layout, self.correction = layout, correction
        self.W_1 = np.zeros((layout.width, layout.width), np.float32)
        self.b_1 = np.zeros(layout.width, np.float32)

    def keep(self, coordinates: Iterable[int]) -> "_FirstLayer":
        """Copies these coordinates."""
        for c in coordinates:
            self.W_1[c, c] = 1
        return self

    def set(self, to: int, plus: Iterable[int] = (), minus: Iterable[int] = (), bias: float = 0) -> None:
        """Coordinate `to` becomes relu(sum of plus - sum of minus + bias)."""
        self.W_1[to] = 0
        for c in plus:
            self.W_1[to, c] += 1
        for c in minus:
            self.W_1[to, c] -= 1
        self.b_1[to] = bias

    def done(self) -> FeedForward:
        """The three layers, correction included."""
        return FeedForward(self.W_1, self.b_1, *CORRECTIONS[self.correction])


def build_layers(machine: TuringMachine, layout: Layout, correction: str) -> tuple[TransformerLayer, ...]:
    """All layers of one decoder step."""
    return (
        _pairs(layout, correction),
        _transition(machine, layout, correction),
        *(_add_bit(layout, bit, correction) for bit in range(layout.position_bits + 1)),
        _exists(layout, correction),
        *(_search(layout, bit, correction) for bit in reversed(range(layout.time_bits))),
        _look_up(layout, correction),
        _choose(layout, correction),
        _collect(machine, layout, correction),
    )


def _pairs(layout: Layout, correction: str) -> TransformerLayer:
    """Lemma C.1, first half: `pair = relu(st + sym1 - 1)`, an AND of two one-hot bits."""
    first = _FirstLayer(layout, correction)
    first.keep(layout.group("pos1", "pos2", "start"))
    for state in layout.states:
        for symbol in layout.symbols:
            both = [layout.at("st", state), layout.at("sym1", symbol)]
            first.set(layout.at("pair", state, symbol), both, bias=-1)
    return TransformerLayer("pair up state and symbol", first.done())


def _transition(machine: TuringMachine, layout: Layout, correction: str) -> TransformerLayer:
    """Lemma C.1, second half: the columns of `W_1` are the machine's table. Where it has no entry the
    machine has halted: it keeps state and symbol and stays."""
    first = _FirstLayer(layout, correction)
    first.keep(layout.group("pos1", "pos2", "start"))
    first.W_1[layout.at("st", machine.start_state), layout.at("start")] = 1
    for state in layout.states:
        for symbol in layout.symbols:
            column = layout.at("pair", state, symbol)
            rule = machine.rules.get((state, (symbol,)))
            new, write, move = (rule.state, rule.write[0], rule.moves[0]) if rule else (state, symbol, 0)
            first.W_1[layout.at("st", new), column] = 1
            first.W_1[layout.at("sym2", write), column] = 1
            if move == LEFT:
                first.W_1[layout.at("borrow"), column] = 1
            if move == RIGHT:
                first.W_1[layout.at("carry"), column] = 1
    return TransformerLayer("apply the machine's table", first.done())


def _add_bit(layout: Layout, bit: int, correction: str) -> TransformerLayer:
    """Lemma C.2. A bit x with an incoming borrow b or carry c (never both) becomes `x xor (b + c)`: the sum
    of `stays1 = relu(x - b - c)` and `becomes1 = relu(b + c - x)`, which the next layer adds up. The borrow
    goes on as `relu(b - x)`, the carry as `relu(x + c - 1)`. One sweep does both; the paper takes two."""
    first = _FirstLayer(layout, correction)
    old, new = layout.group("pos2"), layout.group("pos3")
    first.keep(layout.group("st", "sym2", "pos1", "pos2", "pos3", "start"))
    borrow, carry, stays1, becomes1 = (layout.at(n) for n in ("borrow", "carry", "stays1", "becomes1"))
    if bit > 0:
        first.set(new[bit - 1], [stays1, becomes1])
    if bit < layout.position_bits:
        first.set(stays1, [old[bit]], [borrow, carry])
        first.set(becomes1, [borrow, carry], [old[bit]])
        first.set(borrow, [borrow], [old[bit]])
        first.set(carry, [old[bit], carry], bias=-1)
        return TransformerLayer(f"bit {bit} of the head's move", first.done())
    return TransformerLayer("last bit of the head's move", first.done())


def _exists(layout: Layout, correction: str) -> TransformerLayer:
    """Claim C.4: `found` if some step wrote where the head is now."""
    attention = _self_attention(layout, [], None, {layout.at("found"): 1.0}, None)
    return TransformerLayer("was the cell written before?", _pass_on(layout, correction).done(), attention)


def _search(layout: Layout, bit: int, correction: str) -> TransformerLayer:
    """Claim C.5: with the bits above known, is this bit of the last writing step a 1? Any step that wrote
    here, agrees in the bits above and has a 1 here says yes; the larger number wins, so yes means 1."""
    known = list(range(bit + 1, layout.time_bits))
    attention = _self_attention(layout, known, bit, {layout.at("bit"): 1.0}, None)
    first = _pass_on(layout, correction)
    first.set(layout.group("scr3")[bit], [layout.at("bit")])
    return TransformerLayer(f"bit {bit} of the search for the last write", first.done(), attention)


def _look_up(layout: Layout, correction: str) -> TransformerLayer:
    """Claim C.6 and Lemma C.7: copy what the step found wrote, and the input at this cell."""
    copy = (layout, "sym2", "scr1")
    attention = _self_attention(layout, list(range(layout.time_bits)), None, {}, copy)
    first = _pass_on(layout, correction)
    for c in layout.group("scr3"):
        first.set(c)
    return TransformerLayer(
        "copy the last write, and the input, at this cell",
        first.done(),
        attention,
        _encoder_attention(layout),
    )


def _choose(layout: Layout, correction: str) -> TransformerLayer:
    """Lemma C.8: the input counts only where nothing was written, the blank only where there is neither."""
    first = _FirstLayer(layout, correction)
    found, given = layout.at("found"), layout.at("given")
    first.keep(layout.group("st", "pos3", "scr1"))
    for symbol in layout.symbols:
        first.set(layout.at("scr2", symbol), [layout.at("scr2", symbol)], [found])
    first.set(layout.at("bit"), (), [found, given], bias=1)
    return TransformerLayer("written, given or blank?", first.done())


def _collect(machine: TuringMachine, layout: Layout, correction: str) -> TransformerLayer:
    """Lemma C.8, end: (C.16), the encoding that the next step starts from."""
    first = _FirstLayer(layout, correction)
    first.keep(layout.group("st"))
    for symbol in layout.symbols:
        found = [layout.at("scr1", symbol), layout.at("scr2", symbol)]
        if symbol == machine.blank:
            found.append(layout.at("bit"))
        first.set(layout.at("sym1", symbol), found)
    for old, new in zip(layout.group("pos2"), layout.group("pos3"), strict=True):
        first.set(old, [new])
    return TransformerLayer("the new symbol and position", first.done())


def _pass_on(layout: Layout, correction: str) -> _FirstLayer:
    """What the search carries along: everything but the pairs and its own scratch bit."""
    dropped = set(layout.group("pair", "bit"))
    return _FirstLayer(layout, correction).keep(c for c in range(layout.width) if c not in dropped)


def _self_attention(
    layout: Layout,
    known: list[int],
    asked: int | None,
    constant: dict[int, float],
    copy: tuple[Layout, str, str] | None,
) -> Attention:
    """Finds the steps t that wrote at the head's new position, whose number has the `known` bits as found so
    far and a 1 in the bit `asked`. Query and key compare bits as +-1, so a step that fits scores the number
    of bits compared, any other at most 2 less; the null key scores 1 less than a fit. Step 0, which wrote
    nothing, loses 2."""
    position, time = layout.group("pos3"), layout.group("scr3")
    queries = [(position[b], 2.0, -1.0) for b in range(layout.position_bits)]
    keys = [(c, 2.0, -1.0) for c in layout.group("pos2")]
    queries += [(time[b], 2.0, -1.0) for b in known]
    keys += [(layout.group("pos1")[b], 2.0, -1.0) for b in known]
    if asked is not None:
        queries.append((0, 0.0, 1.0))
        keys.append((layout.group("pos1")[asked], 2.0, -1.0))
    compared = len(keys)
    queries.append((0, 0.0, 1.0))
    keys.append((layout.at("start"), -2.0, 0.0))
    return _attention(layout.width, queries, keys, compared - 1, constant, copy)


def _encoder_attention(layout: Layout) -> Attention:
    """Lemma C.7: the token of the input whose position is the head's."""
    queries = [(c, 2.0, -1.0) for c in layout.group("pos3")] + [(0, 0.0, 1.0)]
    keys = [(c, 2.0, -1.0) for c in layout.group("pos1")] + [(0, 0.0, 0.0)]
    return _attention(
        layout.width,
        queries,
        keys,
        layout.position_bits - 1,
        {layout.at("given"): 1.0},
        (layout, "sym1", "scr2"),
    )


def _attention(
    width: int,
    queries: list[tuple[int, float, float]],
    keys: list[tuple[int, float, float]],
    null_score: float,
    constant: dict[int, float],
    copy: tuple[Layout, str, str] | None,
) -> Attention:
    """Rows are `(coordinate, weight, bias)`; the last row is where the null key stands."""
    W_V, b_V = np.zeros((width, width), np.float32), np.zeros(width, np.float32)
    for coordinate, value in constant.items():
        b_V[coordinate] = value
    if copy is not None:
        layout, source, to = copy
        for symbol in layout.symbols:
            W_V[layout.at(to, symbol), layout.at(source, symbol)] = 1
    K_0 = np.zeros(len(keys), np.float32)
    K_0[-1] = null_score
    W_Q, b_Q = _rows(width, queries)
    W_K, b_K = _rows(width, keys)
    return Attention(W_Q, b_Q, W_K, b_K, W_V, b_V, K_0, np.zeros(width, np.float32))


def _rows(width: int, rows: list[tuple[int, float, float]]) -> tuple[np.ndarray, np.ndarray]:
    weights = np.zeros((len(rows), width), np.float32)
    for number, (coordinate, weight, _) in enumerate(rows):
        weights[number, coordinate] = weight
    return weights, np.array([bias for _, _, bias in rows], np.float32)
