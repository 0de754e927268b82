"""The independent checker of trained extended networks: that their weights are what the algorithm makes of
the data.

The graph is that of a `tape` net and is checked as such. Then the algorithm is run once more, by a plain
interpreter, on the data that the folder holds, in bits and at their places: it must halt, after as many
steps as training took, in the very configuration that the weights show. Its result tape holds theta, and the
primary network with this theta gives the output and the loss claimed. Where bits lie is part of what is
trained and taken from the folder; so is what lies on the tapes at first beside the data. Only where the tapes
that are written on are blank, or where the rule has a name and is computed here once more in whole numbers,
is theta sure to be the work of the algorithm: otherwise the verdict does not speak of it.
"""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.fields import array, number, whole
from tapegrad_check.folder import OWN_TABLE, Arrays, Checked, require, tested_on
from tapegrad_check.products import times
from tapegrad_check.sources import MOST_TAPES, Machine, Model
from tapegrad_check.targets.tape import about_graph

NEAR = 1e-9
"""How far trained weights and outputs may be from their ideal values; double precision leaves far less."""

LARGEST = 2.0**160
"""More than any number of a number format."""

MOST_STEPS = 1 << 24
"""Longer runs are not repeated: these take half a minute."""

MOST_GATES = 1 << 27
"""Of a learner, in all samples and rounds: half a minute."""

Tapes = list[set[int]]
"""For each tape the cells that are not blank."""


def check(config: dict[str, Any], arrays: Arrays, claims: dict[str, Any], source: Model | None) -> Checked:
    """What was proved, in sentences; `CheckError` names the first thing that does not hold."""
    graph = {name.removeprefix("graph."): a for name, a in arrays.items() if name.startswith("graph.")}
    statements = about_graph(config, graph, claims, source)
    _types(config, arrays, graph)
    _constants(config["constants"], graph["down"].shape[1])
    s, T, H = (arrays[f"weight.{name}"] for name in "sTH")
    deviation = _halted(config, graph, s, T, H)
    require(
        np.array_equal(arrays["weight.z"], arrays["y"]), "the labels that training copied are not the labels"
    )
    theta = _theta(config, arrays["result_places"], T)
    require(np.array_equal(theta, claims["theta"]), "the result tape does not hold the theta claimed")
    output = _output(config["primary"], theta, arrays["x"])
    require(_near(output, claims["output"]), "the primary network does not give the output claimed")
    loss = float(np.sum((output - arrays["y"]) ** 2) / 2)
    require(_near(loss, claims["final_loss"]), "the output does not give the loss claimed")
    require(_near(deviation, claims["deviation"]), "the weights are farther from their ideal values")
    statements += [
        f"the weights show a halted machine, at most {deviation:.3g} from their ideal values",
        f"its result tape holds {len(theta)} numbers, which are the theta claimed",
        f"the primary network with this theta has a loss of {loss:g}, below B_stop",
    ]
    steps = whole(config["training"]["steps"], "the number of steps of training", 1)
    number(config["training"]["seconds"], "the time of training")
    require(isinstance(config["training"]["engine"], str), "the engine of training has no name")
    rule = config.get("rule")
    computed = [] if rule is None else [_named_rule(rule, config, arrays, theta)]
    if not isinstance(source, Machine) or steps > MOST_STEPS:
        statements.append(f"that {steps:,} steps of training led to these weights is not shown")
        return Checked([*statements, *computed], OWN_TABLE)
    written = _run(source, config, arrays, steps - 1, s, T, H)
    statements.append(
        f"the algorithm, started on these data, halts after {steps - 1:,} steps in the configuration that "
        "the weights show"
    )
    if computed:
        statements += computed
    elif written:
        statements.append(f"{written} cells of its own tapes are filled at first, as the folder says")
        return Checked(statements, OWN_TABLE)
    else:
        statements.append("its own tapes are blank at first")
    return Checked(statements, tested_on(1))


def _named_rule(rule: Any, config: dict[str, Any], arrays: Arrays, theta: NDArray) -> str:
    """A rule that is computed here once more, without its machine."""
    rules = {"perceptron": _perceptron, "learner": _learner}
    require(isinstance(rule, dict) and rule.get("name") in rules, "there is no rule of this name")
    return rules[rule["name"]](rule, config, arrays, theta)


def _learner(rule: dict[str, Any], config: dict[str, Any], arrays: Arrays, theta: NDArray) -> str:
    """The learner's circuit, gate by gate, on one sample after the other: from what is remembered, x and y
    (and a bit that it does not use) to what is remembered then."""
    require(rule.keys() == {"name", "rounds", "first", "gates", "outputs"}, "the rule is described otherwise")
    rounds = whole(rule["rounds"], "the number of rounds", 1, 1 << 31)
    memory = _whole_numbers(rule["first"], 2, "what is remembered at first")
    samples, inputs = arrays["x"].shape
    fits = arrays["y"].shape == (samples, 1) and len(theta) == len(memory)
    require(fits, "the learner is for other data")
    given = len(memory) + inputs + 2
    gates = _gates(rule["gates"], given)
    outputs = _whole_numbers(rule["outputs"], given + len(gates), "the outputs of the learner")
    require(len(outputs) == len(memory), "the learner does not remember what it should")
    if rounds * samples * len(gates) > MOST_GATES:
        # Every gate takes the machine a step at least, so that such a run is not repeated either.
        require(config["training"]["steps"] > MOST_STEPS, "training has fewer steps than the learner gates")
        return "nor is it shown that theta is what the learner remembers of these data: it has too many gates"
    rows = [[int(number > 0) for number in row] for row in np.concatenate([arrays["x"], arrays["y"]], axis=1)]
    for _ in range(rounds):
        for row in rows:
            values = [*memory, *row, 0]
            for table, a, b in gates:
                values.append(table >> (2 * values[a] + values[b]) & 1)
            memory = [values[wire] for wire in outputs]
    require(np.array_equal(theta, memory), "theta is not what the learner remembers of these data")
    return f"theta is what {len(gates):,} gates remember of these data, computed sample by sample"


def _whole_numbers(found: Any, end: int, what: str) -> list[int]:
    fits = isinstance(found, list) and all(type(one) is int and 0 <= one < end for one in found)
    require(fits, f"{what} are not whole numbers in their range")
    return found


def _gates(found: Any, inputs: int) -> list[list[int]]:
    """Table and two operands each, which come before the gate."""
    require(isinstance(found, list), "the gates are no list")
    for wire, gate in enumerate(found, inputs):
        own = isinstance(gate, list) and len(gate) == 3 and all(type(one) is int for one in gate)
        require(own and 0 <= gate[0] < 16 and min(gate[1:]) >= 0 and max(gate[1:]) < wire, "a gate is none")
    return found


def _perceptron(rule: dict[str, Any], config: dict[str, Any], arrays: Arrays, theta: NDArray) -> str:
    """Rosenblatt's rule, with Python's whole numbers, on the data in units of their last place."""
    require(rule.keys() == {"name", "epochs"}, "the rule is described otherwise")
    epochs = whole(rule["epochs"], "the number of rounds", 1, 1 << 31)
    (samples, inputs), forms = arrays["x"].shape, (config["data_format"], config["weight_format"])
    fits = arrays["y"].shape == (samples, 1) and len(theta) == inputs + 1
    same_unit = all(f["kind"] == "fixed" and f["fraction"] == forms[0]["fraction"] for f in forms)
    require(fits and same_unit, "the perceptron rule is for other data")
    one = 1 << forms[0]["fraction"]
    units = arrays["x"] * one
    require((units == np.rint(units)).all(), "the data hold a number that their format does not have")
    rows = [[*(int(value) for value in row), one] for row in units]
    signs = [1 if label > 0 else -1 for label in arrays["y"][:, 0]]
    weights, mistakes = [0] * (inputs + 1), 1
    while epochs and mistakes:
        epochs, mistakes = epochs - 1, 0
        for row, sign in zip(rows, signs, strict=True):
            if sign * sum(map(int.__mul__, weights, row)) <= 0:
                weights = [w + sign * x for w, x in zip(weights, row, strict=True)]
                mistakes += 1
    require(np.array_equal(theta * one, weights), "theta is not what the perceptron rule gives on these data")
    return "theta is what the perceptron rule gives on these data, computed in whole numbers"


def _types(config: dict[str, Any], arrays: Arrays, graph: Arrays) -> None:
    names = {"x", "y", "data_places", "result_places", *(f"weight.{name}" for name in "sTHz")}
    require(arrays.keys() == names | {f"graph.{name}" for name in graph}, "there are other arrays")
    samples, inputs = array(arrays, "x", np.float64, (None, None)).shape
    labels = array(arrays, "y", np.float64, (samples, None)).shape
    array(arrays, "weight.z", np.float64, labels)
    for name in "xy":
        require(bool(np.all(np.abs(arrays[name]) < LARGEST)), "the data hold a number that is too large")
    vertices, tapes = graph["down"].shape
    cells, given = config["cells"], whole(config["read_only"], "the number of read-only tapes", 0, tapes)
    array(arrays, "weight.s", np.float64, (vertices,))
    array(arrays, "weight.T", np.float64, (cells, tapes - given))
    array(arrays, "weight.H", np.float64, (cells, tapes))
    for name, first, end in (("data_places", 0, given), ("result_places", given, tapes)):
        _, on, at, signs = array(arrays, name, np.int64, (None, 4)).T
        inside = (on >= first) & (on < end) & (at >= -(cells // 2)) & (at < cells - cells // 2)
        require(
            np.all(inside & (np.abs(signs) == 1)), "a bit of the data or of the result lies beside its tape"
        )
    sizes = _sizes(config["primary"])
    require(isinstance(sizes, list) and len(sizes) > 1, "the primary network has no layers")
    for size in sizes:
        whole(size, "the size of a layer", 1, 1 << 31)
    require((sizes[0], sizes[-1]) == (inputs, labels[1]), "the data do not fit the primary network")
    for name in ("data_format", "weight_format"):
        form = config[name]
        most = {"fixed": {"width": 32, "fraction": 32}, "floating": {"exponent": 8, "mantissa": 23}}[
            form["kind"]
        ]
        require(form.keys() == {"kind", "continuous", *most}, "a number format has other entries")
        require(isinstance(form["continuous"], bool), "a number format is continuous or not")
        for part, largest in most.items():
            whole(form[part], "a number of bits", int(part != "fraction"), largest)


def _constants(constants: dict[str, Any], tapes: int) -> None:
    """What is said of the constants besides: for how many tapes they are, and whether the chain rule of the
    square root rounds at a loss that occurs."""
    require(constants.keys() == {"tapes", "b", "c", "low", "high", "exact"}, "there are other constants")
    require(constants["tapes"] == tapes, "the constants are for another number of tapes")
    counts = np.arange(tapes + 1.0)
    changed, read = 2 * counts[:, None], 8 * constants["b"] ** 2 * counts[None, :]
    root = np.sqrt(2 * (constants["c"] + tapes + changed + read))
    exact = bool(np.all(root * (0.5 / root) == 0.5))
    require(constants["exact"] is exact, "the chain rule rounds where the constants say otherwise")


def _sizes(primary: dict[str, Any]) -> Any:
    """Of the layers; a learner's answers are one output."""
    if "gates" not in primary:
        require(primary["activation"] in ("relu", "step", "sign"), "the activation is unknown")
        return primary["sizes"]
    require(primary.keys() == {"memory", "inputs", "gates", "answer"}, "the answers are described otherwise")
    memory, inputs = (whole(primary[name], "a number of bits", 0, 1 << 31) for name in ("memory", "inputs"))
    gates = _gates(primary["gates"], memory + inputs)
    whole(primary["answer"], "the answer", 0, memory + inputs + len(gates) - 1)
    return [inputs, 1]


def _near(found: Any, claimed: Any) -> bool:
    expected = np.asarray(claimed, float)
    return np.shape(found) == expected.shape and bool(np.allclose(found, expected, rtol=NEAR, atol=NEAR))


def _halted(config: dict[str, Any], graph: Arrays, s: NDArray, T: NDArray, H: NDArray) -> float:
    """How far the weights are from a halted machine: s at a vertex, a head on each tape, symbols -1 and +1,
    and under the heads what the vertex shows."""
    tapes, read_only = graph["down"].shape[1], config["read_only"]
    vertex, heads = int(np.argmax(s)), np.argmax(H, axis=0)
    at_vertex, at_heads = np.zeros_like(s), np.zeros_like(H)
    at_vertex[vertex] = 1.0
    at_heads[heads, np.arange(tapes)] = 1.0
    distances = (np.abs(s - at_vertex), np.abs(H - at_heads), np.abs(np.abs(T) - 1))
    deviation = max(float(distance.max(initial=0.0)) for distance in distances)
    require(deviation < NEAR, f"some weight is {deviation:.3g} away from what a machine can show")
    require(graph["vertex_weight"][vertex] < 0, "s stands at a vertex that does not halt")
    under = np.sign(T[heads[read_only:], np.arange(tapes - read_only)])
    shown = graph["down"][vertex, read_only:]
    require(np.array_equal(under, shown), "under the heads lie other symbols than the vertex shows")
    return deviation


# The algorithm once more


def _run(
    machine: Machine, config: dict[str, Any], arrays: Arrays, steps: int, s: NDArray, T: NDArray, H: NDArray
) -> int:
    """How many cells of the tapes that are written on were filled at first."""
    first, given = -(config["cells"] // 2), config["read_only"]
    state, tapes, heads = _start(machine, config, arrays)
    written = sum(map(len, tapes[given:]))
    follow = _followed(machine, given)
    number, taken = machine.states.index(state), 0
    while True:  # at most `steps` times
        read = 0
        for bit, tape, head in zip(_POWERS, tapes, heads, strict=False):
            if head in tape:
                read |= bit
        rule = follow[number].get(read)
        if rule is None:
            break
        require(taken < steps, "the algorithm has not halted where training ends")
        number, changed, moves = rule
        for i in changed:
            tapes[i] ^= {heads[i]}
        heads = [head + move for head, move in zip(heads, moves, strict=True)]
        taken += 1
    state = machine.states[number]
    require(taken == steps, "the algorithm halts before training ends")
    vertex = machine.states.index(state) << machine.tapes
    vertex += sum((head in tape) << i for i, (tape, head) in enumerate(zip(tapes, heads, strict=True)))
    ends = int(np.argmax(s)) == vertex and (np.argmax(H, axis=0) + first).tolist() == heads
    require(ends, "the algorithm does not halt in the state or at the cells that the weights show")
    for column, tape in enumerate(tapes[given:]):
        marks = {int(row) + first for row in np.flatnonzero(T[:, column] > 0)}
        require(marks == tape, "the algorithm leaves something else on its tapes than the weights show")
    return written


_POWERS = [1 << tape for tape in range(MOST_TAPES)]

Followed = list[dict[int, tuple[int, list[int], tuple[int, ...]]]]
"""For each state, by the symbols read as a number: the next state, the tapes that change, and the moves."""


def _followed(machine: Machine, given: int) -> Followed:
    """The rules of a machine with two symbols, by numbers."""
    numbers = {state: number for number, state in enumerate(machine.states)}
    follow: Followed = [{} for _ in machine.states]
    for (state, read), rule in machine.rules.items():
        changed = [i for i, (old, new) in enumerate(zip(read, rule.write, strict=True)) if old != new]
        require(all(i >= given for i in changed), "the algorithm writes on a tape of its data")
        code = sum((symbol != machine.blank) << tape for tape, symbol in enumerate(read))
        follow[numbers[state]][code] = numbers[rule.state], changed, rule.moves
    return follow


def _start(machine: Machine, config: dict[str, Any], arrays: Arrays) -> tuple[str, Tapes, list[int]]:
    """The first configuration, with the bits of the data at their places."""
    start, cells = config["start"], config["cells"]
    lists = [*start["tapes"], start["heads"]]
    whole_numbers = all(isinstance(one, list) and all(type(cell) is int for cell in one) for one in lists)
    require(whole_numbers and len(lists) == machine.tapes + 1, "the first configuration is none")
    inside = all(-(cells // 2) <= cell < cells - cells // 2 for one in lists for cell in one)
    require(inside and len(start["heads"]) == machine.tapes, "the first configuration lies beside the tapes")
    require(start["state"] == machine.start, "the algorithm is not started in its first state")
    require(not any(start["heads"]), "the heads do not start at cell 0")
    tapes = [set(one) for one in start["tapes"]]
    require(sum(map(len, tapes)) == sum(map(len, start["tapes"])), "a cell is named twice")
    numbers = np.concatenate([arrays["x"].ravel(), arrays["y"].ravel()])
    bits = _bits(numbers, config["data_format"]).ravel()
    places = arrays["data_places"].tolist()
    require(
        {bit for bit, *_ in places} == set(range(len(bits))), "a bit of the data has no place, or is none"
    )
    require(len({(tape, cell) for _, tape, cell, _ in places}) == len(places), "two bits share a cell")
    for bit, tape, cell, sign in places:  # a bit that is 1 turns what lies there into its sign
        require((cell in tapes[tape]) == (sign == -1), "a place of the data does not show a 0 at first")
        if bits[bit]:
            tapes[tape] ^= {cell}
    return start["state"], tapes, list(start["heads"])


# Numbers and bits


def _bits(numbers: NDArray[np.float64], form: dict[str, Any]) -> NDArray[np.int64]:
    """The bits of numbers of the format, a row for each."""
    whole_part = 2.0 ** (
        form["width"] - 1 - form["fraction"] if form["kind"] == "fixed" else 2 ** form["exponent"]
    )
    require(bool(np.all(np.abs(numbers) <= whole_part)), "the data hold a number beyond their format")
    if form["kind"] == "fixed":
        width = form["width"]
        rows = np.rint(numbers * 2.0 ** form["fraction"]).astype(np.int64)[:, None] >> np.arange(width) & 1
        back = _fixed(rows.astype(float), form)
    else:
        m, e = form["mantissa"], form["exponent"]
        units = 2.0 ** (np.maximum(np.arange(1 << e), 1) - (2 ** (e - 1) - 1) - m)
        size = np.abs(numbers)
        stored = np.sum(size[:, None] >= units[1:] * 2.0**m, axis=1)
        low = np.rint(size / units[stored]).astype(np.int64)  # bit m is the hidden one, and not stored
        columns = low[:, None] >> np.arange(m) & 1, stored[:, None] >> np.arange(e) & 1, numbers[:, None] < 0
        rows = np.concatenate(columns, axis=1).astype(np.int64)
        back = _floating(rows.astype(float), form)
    require(np.array_equal(back, numbers), "the data hold a number that their format does not have")
    return rows


def _theta(config: dict[str, Any], places: NDArray, T: NDArray) -> NDArray[np.floating]:
    """The numbers on the result tape, cell by cell."""
    bits, tapes, cells, signs = places.T
    require(np.array_equal(bits, np.arange(len(bits))), "the bits of the result are not in order")
    form = config["weight_format"]
    found = (T[cells + config["cells"] // 2, tapes - config["read_only"]] * signs > 0).astype(float)
    return _fixed(found, form) if form["kind"] == "fixed" else _floating(found, form)


def _fixed(bits: NDArray, form: dict[str, Any]) -> NDArray[np.floating]:
    """Two's complement, least significant bit first."""
    places = 2.0 ** np.arange(form["width"])
    places[-1] *= -1
    return times(bits.reshape(-1, form["width"]), places) / 2.0 ** form["fraction"]


def _floating(bits: NDArray, form: dict[str, Any]) -> NDArray[np.floating]:
    """Mantissa, exponent, sign; the numbers with exponent 0 have no hidden bit."""
    m, e = form["mantissa"], form["exponent"]
    rows = bits.reshape(-1, m + e + 1)
    exponent = times(rows[:, m : m + e], 2.0 ** np.arange(e))
    whole = times(rows[:, :m], 2.0 ** np.arange(m)) + np.where(exponent > 0, 2.0**m, 0.0)
    unit = 2.0 ** (np.maximum(exponent, 1) - (2 ** (e - 1) - 1) - m)
    return np.where(rows[:, -1] > 0, -1.0, 1.0) * whole * unit


def _output(primary: dict[str, Any], theta: NDArray, x: NDArray) -> NDArray[np.floating]:
    """Fully connected layers: matrix rows one after the other in theta, the bias last in each."""
    if "gates" in primary:
        return _answers(primary, theta, x)
    used = 0
    for layer, (columns, rows) in enumerate(pairwise(primary["sizes"]), 1):
        matrix = theta[used : used + rows * (columns + 1)].reshape(rows, columns + 1)
        used += matrix.size
        x = times(x, matrix[:, :-1].T) + matrix[:, -1]
        if primary["activation"] == "step":
            x = (x >= 0).astype(float)
        elif primary["activation"] == "sign":
            x = np.where(x > 0, 1.0, -1.0)
        elif layer < len(primary["sizes"]) - 1:
            x = np.maximum(x, 0.0)
    require(used == len(theta) and np.isfinite(x).all(), "theta does not fit the primary network")
    return x


def _answers(primary: dict[str, Any], theta: NDArray, x: NDArray) -> NDArray[np.floating]:
    """The gates of a learner's answer, for all samples at once: a wire is a number with a bit for each."""
    require(len(theta) == primary["memory"], "theta does not fit the primary network")
    every = (1 << len(x)) - 1
    values = [every if number > 0 else 0 for number in theta]
    values += [sum(int(number > 0) << i for i, number in enumerate(column)) for column in x.T]
    for table, a, b in primary["gates"]:
        pairs = ((every ^ values[a], values[a]), (every ^ values[b], values[b]))
        cases = (pairs[0][i >> 1] & pairs[1][i & 1] for i in range(4) if table >> i & 1)
        value = 0
        for case in cases:
            value |= case
        values.append(value)
    answer = values[primary["answer"]]
    return np.array([[2.0 * (answer >> i & 1) - 1] for i in range(len(x))])
