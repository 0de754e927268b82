"""Checks a saved transformer against appendix C of Wei, Chen and Ma, from its matrices alone.

The layers are written down a second time here, as formulas over the names of coordinates, and compared with
the matrices entry by entry. Then the numbers: all weights are integers, so on vectors of bits every sum is
an integer, exact in single precision; scores of full matches, the null key and the rest are 1 apart; the
correction returns bits.
"""

import json
import math
from typing import Any

import numpy as np

from tapegrad_check.folder import OWN_TABLE, Checked, CheckError, require
from tapegrad_check.sources import Model

Formula = tuple[dict[str, float], float]
"""A row: weights by the name of the coordinate, and a bias."""

Compared = list[tuple[str | None, str]]
"""The bits that an attention compares: of the query (None is the constant 1) and of the key."""

UNIT_ROUNDOFF = 2.0**-24
EXACT_BELOW = 2.0**24
"""Integers below this are exact in single precision."""

PASSED_ON = ("st", "sym1", "sym2", "pos1", "pos2", "pos3", "start", "borrow", "carry", "stays1", "becomes1",
             "scr1", "scr2", "scr3", "found", "given")  # fmt: skip


def check(
    config: dict[str, Any], arrays: dict[str, np.ndarray], claims: dict[str, Any], source: Model | None = None
) -> Checked:
    """The statements that hold; `CheckError` says which does not."""
    names: list[str] = config["coordinates"]
    config = config | {key: [_quoted(name) for name in config[key]] for key in ("states", "symbols")}
    config["rules"] = [[*map(_quoted, rule[:4]), rule[4]] for rule in config["rules"]]
    config |= {key: _quoted(config[key]) for key in ("start_state", "blank")}
    require(len(set(names)) == len(names), "two coordinates have the same name")
    expected = _layers(config, names)
    require(len(expected) == len(config["purposes"]) == claims["layers"], "the number of layers is wrong")
    for number, rows in enumerate(expected):
        _compare_rows(arrays, number, names, rows)
    _check_attentions(config, arrays, names, len(expected))
    _check_read_outs(config, arrays, names)
    largest = _integers(arrays, len(expected))
    require(largest == claims["largest_preactivation"] < EXACT_BELOW, "pre-activations are not as claimed")
    statements = [
        f"the {len(expected)} layers are those of Lemmas C.1 to C.8 for T = {config['steps']}, to the entry",
        f"the table of {len(config['rules'])} rules is in the columns of layer 1; theta_halt marks the rest",
        f"all weights are integers; on bits no pre-activation exceeds {largest:g}, below 2^24: no rounding",
        "a full match scores n, the null key n - 1, every other key at most n - 2",
        _correction(config, claims, largest),
    ]
    if config["attention"] == "softmax":
        statements.append(_softmax(config, claims))
    return Checked(statements, OWN_TABLE)


def _layers(config: dict[str, Any], names: list[str]) -> list[dict[str, Formula]]:
    """What every row of `W_1` and `b_1` should be; rows that are not named are 0."""
    positions = _count(names, "pos2")
    times = _count(names, "scr3")
    states, symbols = config["states"], config["symbols"]
    keep = _identity(names, ("pos1", "pos2", "start"))
    pairs = {f"pair[{q},{a}]": ({f"st[{q}]": 1.0, f"sym1[{a}]": 1.0}, -1.0) for q in states for a in symbols}
    layers = [keep | pairs, keep | _table(config)]
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
    collect[f"sym1[{config['blank']}]"][0]["bit"] = 1.0
    collect |= {f"pos2[{bit}]": ({f"pos3[{bit}]": 1.0}, 0.0) for bit in range(positions)}
    layers.append(_identity(names, ("st",)) | collect)
    return layers


def _table(config: dict[str, Any]) -> dict[str, Formula]:
    """Lemma C.1: each pair switches on its next state, the symbol written and the move."""
    rows: dict[str, Formula] = {f"st[{config['start_state']}]": ({"start": 1.0}, 0.0)}
    rules = {(q, a): (new, write, move) for q, a, new, write, move in config["rules"]}
    for q in config["states"]:
        for a in config["symbols"]:
            new, write, move = rules.get((q, a), (q, a, 0))
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


def _check_attentions(
    config: dict[str, Any], arrays: dict[str, np.ndarray], names: list[str], layers: int
) -> None:
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
    symbols = config["symbols"]
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
    for to, source in copies.items():
        W_V[names.index(to), names.index(source)] = 1
    for to, value in constants.items():
        b_V[names.index(to)] = value
    W_Q, b_Q = _matrix(queries, names)
    W_K, b_K = _matrix(keys, names)
    for name, value in (
        ("W_Q", W_Q), ("b_Q", b_Q), ("W_K", W_K), ("b_K", b_K),
        ("W_V", W_V), ("b_V", b_V), ("K_0", null), ("V_0", np.zeros(len(names))),
    ):  # fmt: skip
        require(np.array_equal(arrays[f"{where}.{name}"], value), f"{where}.{name} is not as in appendix C")


def _check_read_outs(config: dict[str, Any], arrays: dict[str, np.ndarray], names: list[str]) -> None:
    index = {name: number for number, name in enumerate(names)}
    positions = _count(names, "pos2")
    h_0 = np.zeros(len(names))
    h_0[index["start"]] = 1
    for bit in range(positions):
        h_0[index[f"pos2[{bit}]"]] = config["steps"] >> bit & 1
    E = np.zeros((len(names), len(config["symbols"])))
    for number, symbol in enumerate(config["symbols"]):
        E[index[f"sym1[{symbol}]"], number] = 1
    theta_halt = np.zeros(len(names))
    rules = {(q, a) for q, a, *_ in config["rules"]}
    for q in config["states"]:
        for a in config["symbols"]:
            theta_halt[index[f"pair[{q},{a}]"]] = (q, a) not in rules
    for name, value in (("h_0", h_0), ("E", E), ("theta_halt", theta_halt)):
        require(np.array_equal(arrays[name], value), f"{name} is not as in appendix C")
    require(2 * config["steps"] < 1 << positions, "positions do not fit their bits")
    require(config["steps"] < 1 << _count(names, "scr3"), "times do not fit their bits")


def _integers(arrays: dict[str, np.ndarray], layers: int) -> float:
    """The largest pre-activation on vectors of bits."""
    largest = 0.0
    for number in range(layers):
        W_1, b_1 = arrays[f"layer.{number}.ff.W_1"], arrays[f"layer.{number}.ff.b_1"]
        largest = max(largest, float((np.abs(W_1).sum(1) + np.abs(b_1)).max()))
    return largest


def _correction(config: dict[str, Any], claims: dict[str, Any], largest: float) -> str:
    low, high = config["low"], config["high"]
    if (low, high) == (0.25, 0.75):
        require(
            claims["exact_correction"] is True, "the correction is exact, but the certificate says otherwise"
        )
        return (
            "the correction 2 relu(z - 1/4) - 2 relu(z - 3/4) returns the bit itself, for floats within 1/4"
        )
    require(0 < low < high < 1 and abs(low - 1 / 3) < 1e-9 and abs(high - 2 / 3) < 1e-9, "unknown correction")
    # Each relu rounds once, each product with the gain 3 once, the difference once: below 32 u altogether.
    error = 32 * UNIT_ROUNDOFF
    require(
        largest * error + largest * len(config["coordinates"]) * UNIT_ROUNDOFF < low,
        "errors reach the radius",
    )
    return f"the correction returns bits to within {error:.1g}, and sums of such bits stay within 1/3 of bits"


def _softmax(config: dict[str, Any], claims: dict[str, Any]) -> str:
    keys = config["steps"] + 2
    astray = keys * math.exp(-config["temperature"])
    rounding = 2 * keys * UNIT_ROUNDOFF
    require(
        math.isclose(astray, claims["softmax_error"], rel_tol=1e-9), "the softmax error is not as claimed"
    )
    require(
        astray + rounding <= config["low"] * (1 + 1e-9), "softmax errors reach the radius of the correction"
    )
    return f"softmax at temperature {config['temperature']:.3g} strays at most {astray:.3g} from hard-max"


def _identity(names: list[str], groups: tuple[str, ...]) -> dict[str, Formula]:
    return {name: ({name: 1.0}, 0.0) for name in names if name.partition("[")[0] in groups}


def _quoted(part: str) -> str:
    """States and symbols as they stand in the names of coordinates."""
    return json.dumps(part) if set(part) & set(',[]":') else part


def _count(names: list[str], group: str) -> int:
    return sum(name.startswith(f"{group}[") for name in names)


def _matrix(rows: list[Formula], names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    weights = np.zeros((len(rows), len(names)))
    for number, (row, _) in enumerate(rows):
        for name, weight in row.items():
            weights[number, names.index(name)] = weight
    return weights, np.array([bias for _, bias in rows])


def _compare_rows(
    arrays: dict[str, np.ndarray], number: int, names: list[str], rows: dict[str, Formula]
) -> None:
    require(rows.keys() <= set(names), f"layer {number} lacks a coordinate")
    W_1, b_1 = _matrix([rows.get(name, ({}, 0.0)) for name in names], names)
    for name, value in (("W_1", W_1), ("b_1", b_1)):
        found = arrays[f"layer.{number}.ff.{name}"]
        if not np.array_equal(found, value):
            row = (
                int(np.argmax((found != value).reshape(len(names), -1).any(1)))
                if found.shape == value.shape
                else 0
            )
            raise CheckError(f"layer {number} does not compute {names[row]} as in appendix C", where=name)
