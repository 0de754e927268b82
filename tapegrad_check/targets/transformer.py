"""Checks a saved transformer against appendix C of Wei, Chen and Ma, from its matrices alone.

The layers are written down a second time here, as formulas over the names of coordinates, and compared with
the matrices entry by entry. Then the numbers: all weights are integers, so on vectors of bits every sum is
an integer, exact in single precision; scores of full matches, the null key and the rest are 1 apart; the
correction returns bits.
"""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tapegrad_check.arithmetic import SINGLE, exact
from tapegrad_check.fields import array, texts, whole
from tapegrad_check.fields import number as finite
from tapegrad_check.folder import Checked, CheckError, require
from tapegrad_check.graph import Graph
from tapegrad_check.maps import Map, row_of
from tapegrad_check.products import times
from tapegrad_check.sources import Machine, Model
from tapegrad_check.targets import attention
from tapegrad_check.targets.steps import QUARTERS, Steps

Formula = tuple[dict[str, float], float]
"""A row: weights by the name of the coordinate, and a bias."""

Compared = list[tuple[str | None, str]]
"""The bits that an attention compares: of the query (None is the constant 1) and of the key."""

PASSED_ON = ("st", "sym1", "sym2", "pos1", "pos2", "pos3", "start", "borrow", "carry", "stays1", "becomes1",
             "scr1", "scr2", "scr3", "found", "given")  # fmt: skip


def check(
    config: dict[str, Any],
    own: dict[str, np.ndarray],
    claims: dict[str, Any],
    source: Model | None,
    graph: Graph,
) -> Checked:
    """The statements that hold; `CheckError` says which does not."""
    if config.get("form") == "memory":
        return attention.check(config, own, claims, source, graph)
    entries = {"states", "symbols", "steps", "rules", "start_state", "blank"}
    require(config.keys() == entries, "the net has other entries")
    machine = _machine(config, source)
    steps = whole(config["steps"], "the number of steps", 1, 1 << 40)
    net = Steps(graph)
    names = _names(machine, steps, net.width)
    require(list(net.names) == names, "the coordinates are not in their order, or have other names")
    require(list(net.tokens) == names, "tokens have other coordinates")
    expected = _layers(machine, names)
    purposes = [layer.about for layer in net.layers]
    require(purposes == _purposes(steps), "the layers are not named as appendix C has them")
    positions = [place for place, name in enumerate(names) if name.startswith("pos1[")]
    require(net.time == positions, "the number of a step is added elsewhere")
    require(own.keys() == {"E", "theta_cls"}, "there are other arrays than E and theta_cls beside the graph")
    for name, shape in (("E", (len(names), len(machine.symbols))), ("theta_cls", (len(names),))):
        array(own, name, np.float32, shape)
    require(len(net.layers) == len(expected), "there are more layers than those of appendix C, or fewer")
    arrays = own | _matrices(net)
    for number, rows in enumerate(expected):
        _compare_rows(arrays, number, names, rows)
    _check_attentions(machine, arrays, names, len(expected))
    _check_read_outs(machine, steps, arrays, names)
    _check_end(machine, net, names)
    corrections = {layer.correction for layer in net.layers}
    require(len(corrections) == 1, "layers have different corrections")
    ((low, high),) = (own for own in corrections if own is not None)
    kind = _Kind(steps, net.temperature, low, high)
    largest = _integers(arrays, len(expected))
    require(exact(largest, 1), "pre-activations are too large for single precision")
    statements = [
        f"the {len(expected)} layers are those of Lemmas C.1 to C.8 for T = {steps}, to the entry",
        f"the table of {len(machine.rules)} rules is in the columns of layer 1; theta_halt marks the rest",
        f"all weights are integers; on bits no pre-activation exceeds {largest:g}, below 2^24: no rounding",
        "a full match scores n, the null key n - 1, every other key at most n - 2",
        _correction(kind, largest, len(names)),
        _attention(kind),
    ]
    _claims(claims, kind, arrays, len(expected), largest)
    if source is not None:
        statements.append("states, symbols, rules, verdicts and halts are those of the source, by name")
    return Checked(statements)


class _Kind(NamedTuple):
    """What nets of one machine differ in."""

    steps: int
    temperature: float | None
    low: float
    high: float


def _matrices(net: Steps) -> dict[str, np.ndarray]:
    """The layers as the paper's matrices: `layer.<number>.ff.W_1`, `layer.<number>.dec.W_Q` and so on."""
    arrays = {"h_0": net.start}
    for number, layer in enumerate(net.layers):
        require(layer.correction is not None, "a layer is added to its vector")
        arrays |= _written(f"layer.{number}.ff", "1", layer.units)
        for head in layer.heads:
            where = f"layer.{number}.{'dec' if head.own_steps else 'enc'}"
            require(f"{where}.K_0" not in arrays, "a layer has two heads of a kind")
            for letter, own in (("Q", head.query), ("K", head.key), ("V", head.value)):
                arrays |= _written(where, letter, own)
            arrays[f"{where}.K_0"] = np.array(head.null_key, np.float32)
            arrays[f"{where}.V_0"] = np.array(head.null_value, np.float32)
    return arrays


def _written(where: str, letter: str, own: Map) -> dict[str, np.ndarray]:
    weight = np.zeros((len(own), own.width), np.float32)
    weight[np.repeat(np.arange(len(own)), np.diff(own.starts)), own.columns] = own.values
    return {f"{where}.W_{letter}": weight, f"{where}.b_{letter}": np.array(own.bias, np.float32)}


def _check_end(machine: "_Table", net: Steps, names: list[str]) -> None:
    """The end: `theta_halt` of the first layer's pairs of state and symbol for which there is no rule."""
    index = {name: place for place, name in enumerate(names)}
    wanted = [
        ({index[f"st[{q}]"]: 1.0, index[f"sym1[{a}]"]: 1.0}, -1.0)
        for q in machine.states
        for a in machine.symbols
        if (q, a) not in machine.rules
    ]
    require(len(net.halting) == 2, "the end is not read off pairs of state and symbol")
    units, read_out = net.halting
    found = [row_of(units, row) for row in range(len(units))]
    require(found == wanted, "theta_halt is not as in appendix C: it reads other pairs")
    every = list(range(len(wanted)))
    require(
        len(read_out) == 1 and read_out.row(0) == (every, [1.0] * len(wanted), 0.0),
        "theta_halt is not as in appendix C",
    )


@dataclass(frozen=True)
class _Table:
    """The machine, with its names as they stand in those of coordinates."""

    states: list[str]
    symbols: list[str]
    start: str
    blank: str
    rules: dict[tuple[str, str], tuple[str, str, int]]
    verdicts: dict[str, int] | None
    """1 for accepting states, -1 for rejecting ones; None if it is not known which these are."""


def _machine(config: dict[str, Any], source: Model | None) -> _Table:
    """The machine that the net itself names, once it is known to be the source."""
    states, symbols = texts(config["states"], "the states"), texts(config["symbols"], "the symbols")
    require(isinstance(config["rules"], list), "the rules are not a list")
    rules: dict[tuple[str, str], tuple[str, str, int]] = {}
    for state, symbol, new, write, move in config["rules"]:
        known = {state, new} <= set(states) and {symbol, write} <= set(symbols)
        require(known and type(move) is int and -1 <= move <= 1, "a rule has an unknown name or move")
        require((state, symbol) not in rules, "there are two rules for one case")
        rules[state, symbol] = new, write, move
    start, blank, verdicts = config["start_state"], config["blank"], None
    require(start in states and blank in symbols, "the start state or the blank is unknown")
    if source is not None:
        require(
            isinstance(source, Machine) and source.tapes == 1, "the source of the net is no one-tape machine"
        )
        assert isinstance(source, Machine)
        same = (states, symbols, start, blank) == (source.states, source.alphabet, source.start, source.blank)
        require(same, "states or symbols are not those of the source")
        table = {(q, read[0]): (r.state, r.write[0], r.moves[0]) for (q, read), r in source.rules.items()}
        require(rules == table, "the rules are not those of the source")
        verdicts = {_quoted(q): 1 for q in source.accept} | {_quoted(q): -1 for q in source.reject}
    quoted = {
        (_quoted(q), _quoted(a)): (_quoted(p), _quoted(b), move) for (q, a), (p, b, move) in rules.items()
    }
    own, letters = ([_quoted(name) for name in listed] for listed in (states, symbols))
    return _Table(own, letters, _quoted(start), _quoted(blank), quoted, verdicts)


def _names(machine: _Table, steps: int, width: int) -> list[str]:
    """The coordinates in order; those of a number have its lowest bit first."""
    states, symbols = machine.states, machine.symbols
    require(len(states) * len(symbols) <= width, "there are fewer coordinates than states and symbols need")
    positions, times = range((2 * steps).bit_length()), range(steps.bit_length())
    groups: list[tuple[str, Iterable[Any]]] = [
        ("st", states), ("sym1", symbols), ("sym2", symbols),
        ("pos1", positions), ("pos2", positions), ("pos3", positions),
        ("", ("start", "borrow", "carry", "stays1", "becomes1")),
        ("scr1", symbols), ("scr2", symbols), ("scr3", times),
        ("", ("found", "given", "bit")),
        ("pair", (f"{q},{a}" for q in states for a in symbols)),
    ]  # fmt: skip
    names = [f"{group}[{name}]" if group else name for group, listed in groups for name in listed]
    require(
        len(set(names)) == len(names) == width, "the coordinates do not fit the states, symbols and steps"
    )
    return names


def _purposes(steps: int) -> list[str]:
    """What each layer is for, as the net explains it."""
    positions, times = (2 * steps).bit_length(), steps.bit_length()
    return [
        "pair up state and symbol",
        "apply the machine's table",
        *(f"bit {bit} of the head's move" for bit in range(positions)),
        "last bit of the head's move",
        "was the cell written before?",
        *(f"bit {bit} of the search for the last write" for bit in reversed(range(times))),
        "copy the last write, and the input, at this cell",
        "written, given or blank?",
        "the new symbol and position",
    ]


def _layers(machine: _Table, names: list[str]) -> list[dict[str, Formula]]:
    """What every row of `W_1` and `b_1` should be; rows that are not named are 0."""
    positions = _count(names, "pos2")
    times = _count(names, "scr3")
    states, symbols = machine.states, machine.symbols
    keep = _identity(names, ("pos1", "pos2", "start"))
    pairs = {f"pair[{q},{a}]": ({f"st[{q}]": 1.0, f"sym1[{a}]": 1.0}, -1.0) for q in states for a in symbols}
    layers = [keep | pairs, keep | _table(machine)]
    for bit in range(positions + 1):
        layers.append(
            _identity(names, ("st", "sym2", "pos1", "pos2", "pos3", "start")) | _adder(bit, positions)
        )
    layers.append(_identity(names, PASSED_ON))
    for bit in reversed(range(times)):
        layers.append(_identity(names, PASSED_ON) | {f"scr3[{bit}]": ({"bit": 1.0}, 0.0)})
    layers.append(_identity(names, tuple(group for group in PASSED_ON if group != "scr3")))
    choose: dict[str, Formula] = {f"scr2[{a}]": ({f"scr2[{a}]": 1.0, "found": -1.0}, 0.0) for a in symbols}
    choose["bit"] = ({"found": -1.0, "given": -1.0}, 1.0)
    layers.append(_identity(names, ("st", "pos3", "scr1")) | choose)
    collect: dict[str, Formula] = {
        f"sym1[{a}]": ({f"scr1[{a}]": 1.0, f"scr2[{a}]": 1.0}, 0.0) for a in symbols
    }
    collect[f"sym1[{machine.blank}]"][0]["bit"] = 1.0
    collect |= {f"pos2[{bit}]": ({f"pos3[{bit}]": 1.0}, 0.0) for bit in range(positions)}
    layers.append(_identity(names, ("st",)) | collect)
    return layers


def _table(machine: _Table) -> dict[str, Formula]:
    """Lemma C.1: each pair switches on its next state, the symbol written and the move."""
    rows: dict[str, Formula] = {f"st[{machine.start}]": ({"start": 1.0}, 0.0)}
    for q in machine.states:
        for a in machine.symbols:
            new, write, move = machine.rules.get((q, a), (q, a, 0))
            lines = [f"st[{new}]", f"sym2[{write}]"] + {-1: ["borrow"], 0: [], 1: ["carry"]}[move]
            for line in lines:
                rows.setdefault(line, ({}, 0.0))[0][f"pair[{q},{a}]"] = 1.0
    return rows


def _adder(bit: int, positions: int) -> dict[str, Formula]:
    """Lemma C.2: x with borrow b or carry c becomes x xor (b + c)."""
    rows: dict[str, Formula] = {}
    if bit > 0:
        rows[f"pos3[{bit - 1}]"] = ({"stays1": 1.0, "becomes1": 1.0}, 0.0)
    if bit < positions:
        x = f"pos2[{bit}]"
        rows["stays1"] = ({x: 1.0, "borrow": -1.0, "carry": -1.0}, 0.0)
        rows["becomes1"] = ({x: -1.0, "borrow": 1.0, "carry": 1.0}, 0.0)
        rows["borrow"] = ({x: -1.0, "borrow": 1.0}, 0.0)
        rows["carry"] = ({x: 1.0, "carry": 1.0}, -1.0)
    return rows


def _check_attentions(machine: _Table, arrays: dict[str, np.ndarray], names: list[str], layers: int) -> None:
    """Claims C.4, C.5, C.6 and Lemma C.7: which bits are compared, and what is added where."""
    positions, times = _count(names, "pos2"), _count(names, "scr3")
    here: Compared = [(f"pos3[{b}]", f"pos2[{b}]") for b in range(positions)]
    first = 3 + positions
    wanted: dict[str, tuple[Compared, str | None, dict[str, str], dict[str, float]]] = {}
    wanted[f"layer.{first}.dec"] = (here, "start", {}, {"found": 1.0})
    for place, bit in enumerate(reversed(range(times))):
        known: Compared = [(f"scr3[{b}]", f"pos1[{b}]") for b in range(bit + 1, times)]
        compared = [*here, *known, (None, f"pos1[{bit}]")]
        wanted[f"layer.{first + 1 + place}.dec"] = (compared, "start", {}, {"bit": 1.0})
    last = first + 1 + times
    exact: Compared = [*here, *((f"scr3[{b}]", f"pos1[{b}]") for b in range(times))]
    symbols = machine.symbols
    wanted[f"layer.{last}.dec"] = (exact, "start", {f"scr1[{a}]": f"sym2[{a}]" for a in symbols}, {})
    given: Compared = [(f"pos3[{b}]", f"pos1[{b}]") for b in range(positions)]
    copied = {f"scr2[{a}]": f"sym1[{a}]" for a in symbols}
    wanted[f"layer.{last}.enc"] = (given, None, copied, {"given": 1.0})
    present = {name.rpartition(".")[0] for name in arrays if name.endswith(".W_Q")}
    require(present == wanted.keys(), "attention stands in the wrong layers")
    require(last + 2 == layers - 1, "the layers are in the wrong order")
    for where, (compared, barred, copies, constants) in wanted.items():
        _compare_attention(arrays, where, names, compared, barred, copies, constants)


def _compare_attention(
    arrays: dict[str, np.ndarray],
    where: str,
    names: list[str],
    compared: Compared,
    barred: str | None,
    copies: dict[str, str],
    constants: dict[str, float],
) -> None:
    bits = len(compared)
    queries: list[Formula] = [(({query: 2.0}, -1.0) if query else ({}, 1.0)) for query, _ in compared]
    keys: list[Formula] = [({key: 2.0}, -1.0) for _, key in compared]
    queries.append(({}, 1.0))
    keys.append(({barred: -2.0} if barred else {}, 0.0))
    null = np.zeros(bits + 1)
    null[-1] = bits - 1
    W_V, b_V = np.zeros((len(names), len(names))), np.zeros(len(names))
    index = {name: number for number, name in enumerate(names)}
    for to, source in copies.items():
        W_V[index[to], index[source]] = 1
    for to, value in constants.items():
        b_V[index[to]] = value
    W_Q, b_Q = _matrix(queries, names)
    W_K, b_K = _matrix(keys, names)
    for name, value in (
        ("W_Q", W_Q), ("b_Q", b_Q), ("W_K", W_K), ("b_K", b_K),
        ("W_V", W_V), ("b_V", b_V), ("K_0", null), ("V_0", np.zeros(len(names))),
    ):  # fmt: skip
        require(np.array_equal(arrays[f"{where}.{name}"], value), f"{where}.{name} is not as in appendix C")


def _check_read_outs(machine: _Table, steps: int, arrays: dict[str, np.ndarray], names: list[str]) -> None:
    index = {name: number for number, name in enumerate(names)}
    positions = _count(names, "pos2")
    h_0 = np.zeros(len(names))
    h_0[index["start"]] = 1
    for bit in range(positions):
        h_0[index[f"pos2[{bit}]"]] = steps >> bit & 1
    E = np.zeros((len(names), len(machine.symbols)))
    for number, symbol in enumerate(machine.symbols):
        E[index[f"sym1[{symbol}]"], number] = 1
    theta_cls = np.zeros(len(names))
    for q in machine.states:
        theta_cls[index[f"st[{q}]"]] = (machine.verdicts or {}).get(q, 0)
    if machine.verdicts is None:
        theta_cls = np.sign(arrays["theta_cls"]) * np.array([name.startswith("st[") for name in names])
    for name, value in (("h_0", h_0), ("E", E), ("theta_cls", theta_cls)):
        require(np.array_equal(arrays[name], value), f"{name} is not as in appendix C")


def _integers(arrays: dict[str, np.ndarray], layers: int) -> float:
    """The largest pre-activation on vectors of bits."""
    largest = 0.0
    for number in range(layers):
        W_1, b_1 = arrays[f"layer.{number}.ff.W_1"], arrays[f"layer.{number}.ff.b_1"]
        largest = max(largest, float((np.abs(W_1).sum(1) + np.abs(b_1)).max()))
    return largest


def _correction(kind: _Kind, largest: float, width: int) -> str:
    low = kind.low
    if (low, kind.high) == QUARTERS:
        return (
            "the correction 2 relu(z - 1/4) - 2 relu(z - 3/4) returns the bit itself, for floats within 1/4"
        )
    # Each relu rounds once, each product with the gain 3 once, the difference once: below 32 u altogether.
    error = 32 * SINGLE.u
    require(largest * error + largest * width * SINGLE.u < low, "errors reach the radius")
    return f"the correction returns bits to within {error:.1g}, and sums of such bits stay within 1/3 of bits"


def _attention(kind: _Kind) -> str:
    temperature, low = kind.temperature, kind.low
    if temperature is None:
        return "attention is hard-max: the keys with the largest score, and no others"
    keys = kind.steps + 2
    require(math.isclose(temperature, math.log(2 * keys / low)), "the temperature is not the one derived")
    astray, rounding = keys * math.exp(-temperature), 2 * keys * SINGLE.u
    require(astray + rounding <= low, "softmax errors reach the radius of the correction")
    return f"softmax at temperature {temperature:.3g} strays at most {astray:.3g} from hard-max"


def _claims(
    claims: dict[str, Any], kind: _Kind, arrays: dict[str, np.ndarray], layers: int, largest: float
) -> None:
    """Every claim of the certificate, worked out again."""
    steps, temperature, low, high = kind
    scores = [_largest_score(arrays, name.removesuffix("W_Q")) for name in arrays if name.endswith(".W_Q")]
    found = {
        "dtype": "float32",
        "steps": steps,
        "layers": layers,
        "largest_preactivation": largest,
        "largest_score": max(scores),
        "score_gap": 1.0,
        "correction": {"low": low, "high": high, "radius": low},
        "exact_correction": (low, high) == QUARTERS,
        "attention": "hardmax" if temperature is None else "softmax",
    }
    if temperature is not None:
        found |= {
            "temperature": temperature,
            "softmax_error": (steps + 2) * math.exp(-temperature),
            "rounding_error": 2 * (steps + 2) * SINGLE.u,
        }
    require(claims.keys() == found.keys(), "the certificate makes other claims than it should")
    for name, value in found.items():
        close = isinstance(value, float) and math.isclose(finite(claims[name], name), value)
        require(
            close or claims[name] == value, f"the certificate claims {name} = {claims[name]}, not {value}"
        )


def _largest_score(arrays: dict[str, np.ndarray], where: str) -> float:
    """No score can be larger, for vectors of bits."""
    queries, keys = (np.abs(arrays[f"{where}W_{x}"]).sum(1) + np.abs(arrays[f"{where}b_{x}"]) for x in "QK")
    return float(times(queries, np.maximum(keys, np.abs(arrays[f"{where}K_0"]))))


def _identity(names: list[str], groups: tuple[str, ...]) -> dict[str, Formula]:
    return {name: ({name: 1.0}, 0.0) for name in names if name.partition("[")[0] in groups}


def _quoted(part: str) -> str:
    """States and symbols as they stand in the names of coordinates."""
    return json.dumps(part) if set(part) & set(',[]":') else part


def _count(names: list[str], group: str) -> int:
    return sum(name.startswith(f"{group}[") for name in names)


def _matrix(rows: list[Formula], names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    weights, index = np.zeros((len(rows), len(names)), np.float32), {name: i for i, name in enumerate(names)}
    for number, (row, _) in enumerate(rows):
        for name, weight in row.items():
            weights[number, index[name]] = weight
    return weights, np.array([bias for _, bias in rows])


def _compare_rows(
    arrays: dict[str, np.ndarray], number: int, names: list[str], rows: dict[str, Formula]
) -> None:
    require(rows.keys() <= set(names), f"layer {number} lacks a coordinate")
    W_1, b_1 = _matrix([rows.get(name, ({}, 0.0)) for name in names], names)
    for name, value in (("W_1", W_1), ("b_1", b_1)):
        found = arrays[f"layer.{number}.ff.{name}"]
        if not np.array_equal(found, value):
            row = int(np.argmax((found != value).reshape(len(names), -1).any(1)))
            raise CheckError(f"layer {number} does not compute {names[row]} as in appendix C", where=name)
