"""The independent checker of trained extended networks: that their weights are what the algorithm makes of
the data.

The graph must be the loss of the extended network, node by node, and that of its machine is checked as a
`tape` net is. Then the algorithm is run once more, by a plain interpreter, on the data that the folder holds,
as the graph puts them on its tapes: it must halt, after as many steps as training took, in the very
configuration that the weights show. Theta, output and loss are what the graph computes with these weights.
Where bits lie is part of what is trained and taken from the graph; what lies at first on the tapes that are
written on is taken from the folder. Only where these are blank, or where the rule has a name and is computed
here once more in whole numbers, is theta sure to be the work of the algorithm: otherwise the verdict does not
speak of it.
"""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.fields import array, number, whole
from tapegrad_check.folder import OWN_TABLE, Arrays, Checked, require, tested_on
from tapegrad_check.graph import Graph
from tapegrad_check.sources import MOST_TAPES, Machine, Model
from tapegrad_check.targets.extended_loss import Form, Places, require_network, width
from tapegrad_check.targets.tape import about_graph, read
from tapegrad_check.values import outputs_of

NEAR = 1e-9
"""How far trained weights and outputs may be from their ideal values; double precision leaves far less."""

MOST_STEPS = 1 << 24
"""Longer runs are not repeated: these take half a minute."""

MOST_GATES = 1 << 27
"""Of a learner, in all samples and rounds: half a minute."""

ENTRIES = {"states", "symbols", "primary", "data_format", "weight_format", "tapes", "rule", "training"}

Tapes = list[set[int]]
"""For each tape the rows that are not blank."""


def check(
    config: dict[str, Any], arrays: Arrays, claims: dict[str, Any], source: Model | None, graph: Graph
) -> Checked:
    """What was proved, in sentences; `CheckError` names the first thing that does not hold."""
    require(config.keys() == ENTRIES, "the net has other entries than a trained extended network")
    found, own = read(graph)
    statements = about_graph(config | found, own, claims, source)
    places = Places.of(graph, found["cells"], own["down"].shape[1])
    _types(config, arrays, own, found["cells"], places)
    require_network(graph, config, arrays, found, own, places)
    deviation = _halted(own, len(places.blank), arrays)
    require(np.array_equal(arrays["z"], arrays["y"]), "the labels that training copied are not the labels")
    values = outputs_of(graph, arrays)
    theta, output, loss = (values[name] for name in ("theta", "output", "loss"))
    require(np.array_equal(theta, claims["theta"]), "the result tape does not hold the theta claimed")
    require(_near(output, claims["output"]), "the primary network does not give the output claimed")
    require(_near(loss, claims["final_loss"]), "the output does not give the loss claimed")
    require(_near(deviation, claims["deviation"]), "the weights are farther from their ideal values")
    statements = [
        "the network is that of figure 1 around the loss (21), node by node, and everything is trained by it",
        *statements,
        f"the weights show a halted machine, at most {deviation:.3g} from their ideal values",
        f"its result tape holds {len(theta)} numbers, which are the theta claimed",
        f"with these weights the network has a loss of {loss:g}, below B_stop",
    ]
    steps = whole(config["training"]["steps"], "the number of steps of training", 1)
    computed = [] if config["rule"] is None else [_named_rule(config["rule"], config, arrays, theta)]
    if not isinstance(source, Machine) or steps > MOST_STEPS:
        statements.append(f"that {steps:,} steps of training led to these weights is not shown")
        return Checked([*statements, *computed], OWN_TABLE)
    written = _written(config["tapes"], found["cells"], source.tapes - len(places.blank))
    tapes = [set(np.flatnonzero(tape > 0).tolist()) for tape in values["data"].T]
    _run(source, [*tapes, *map(set, written)], found["cells"] // 2, len(tapes), steps - 1, arrays)
    statements.append(
        f"the algorithm, started on these data, halts after {steps - 1:,} steps in the configuration that "
        "the weights show"
    )
    filled = sum(map(len, written))
    if computed:
        statements += computed
    elif filled:
        statements.append(f"{filled} cells of its own tapes are filled at first, as the folder says")
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
    rows = [[*(int(value) for value in row), one] for row in arrays["x"] * one]
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


def _types(config: dict[str, Any], arrays: Arrays, graph: Arrays, cells: int, places: Places) -> None:
    """Data and weights, formats and primary network fit one another."""
    require(arrays.keys() == {*"sTHzxy"}, "there are other arrays than what the network is given")
    (vertices, tapes), given = graph["down"].shape, len(places.blank)
    samples, inputs = array(arrays, "x", np.float64, (None, None)).shape
    labels = array(arrays, "y", np.float64, (samples, None)).shape
    shapes = {"s": (vertices,), "T": (cells, tapes - given), "H": (cells, tapes), "z": labels}
    for name, shape in shapes.items():
        array(arrays, name, np.float64, shape)
    require(arrays["y"].any() and arrays["y"].size > 1, "the labels are all 0, or there is one alone")
    for name in ("data_format", "weight_format"):
        form = config[name]
        most = {"fixed": {"width": 32, "fraction": 32}, "floating": {"exponent": 8, "mantissa": 23}}[
            form["kind"]
        ]
        require(form.keys() == {"kind", "continuous", *most}, "a number format has other entries")
        require(isinstance(form["continuous"], bool), "a number format is continuous or not")
        for part, largest in most.items():
            whole(form[part], "a number of bits", int(part != "fraction"), largest)
    sizes, weights = _sizes(config["primary"])
    require((sizes[0], sizes[-1]) == (inputs, labels[1]), "the data do not fit the primary network")
    numbers = np.concatenate([arrays["x"].ravel(), arrays["y"].ravel()])
    require(
        _in_format(numbers, config["data_format"]), "the data hold a number that their format does not have"
    )
    count = len(numbers) * width(config["data_format"])
    require({*places.bits.tolist()} == {*range(count)}, "a bit of the data has no place, or is none")
    require(
        weights * width(config["weight_format"]) == len(places.ends), "theta does not fit the primary network"
    )
    training = config["training"]
    require(training.keys() == {"steps", "engine", "seconds"}, "training is described otherwise")
    require(isinstance(training["engine"], str), "the engine of training has no name")
    number(training["seconds"], "the time of training")


def _sizes(primary: dict[str, Any]) -> tuple[list[int], int]:
    """Of the layers, of which a learner's answers are one, and how many weights they have."""
    if "gates" not in primary:
        sizes = primary["sizes"]
        require(primary.keys() == {"sizes", "activation"}, "the layers are described otherwise")
        require(primary["activation"] in ("relu", "step", "sign"), "the activation is unknown")
        require(isinstance(sizes, list) and len(sizes) > 1, "the primary network has no layers")
        for size in sizes:
            whole(size, "the size of a layer", 1, 1 << 31)
        return sizes, sum(rows * (columns + 1) for columns, rows in pairwise(sizes))
    require(primary.keys() == {"memory", "inputs", "gates", "answer"}, "the answers are described otherwise")
    memory, inputs = (whole(primary[name], "a number of bits", 0, 1 << 31) for name in ("memory", "inputs"))
    gates = _gates(primary["gates"], memory + inputs)
    whole(primary["answer"], "the answer", 0, memory + inputs + len(gates) - 1)
    return [inputs, 1], memory


def _in_format(numbers: NDArray[np.float64], form: Form) -> bool:
    """Whether all are numbers of the format: whole multiples of its units, and not too large."""
    if form["kind"] == "fixed":
        units, half = numbers * 2.0 ** form["fraction"], 2.0 ** (form["width"] - 1)
        return bool(((units == np.rint(units)) & (units >= -half) & (units < half)).all())
    bias, size = 2 ** (form["exponent"] - 1) - 1, np.abs(numbers)
    below = np.frexp(size)[1] - 1  # the power of two at or below a number
    units = size / 2.0 ** (np.maximum(below, 1 - bias) - form["mantissa"])
    return bool(((units == np.rint(units)) & (size < 2.0 ** (2 ** form["exponent"] - bias))).all())


def _near(found: Any, claimed: Any) -> bool:
    expected = np.asarray(claimed, float)
    return np.shape(found) == expected.shape and bool(np.allclose(found, expected, rtol=NEAR, atol=NEAR))


def _halted(graph: Arrays, given: int, arrays: Arrays) -> float:
    """How far the weights are from a halted machine: s at a vertex, a head on each tape, symbols -1 and +1,
    and under the heads what the vertex shows."""
    s, T, H = (arrays[name] for name in "sTH")
    tapes = H.shape[1]
    vertex, heads = int(np.argmax(s)), np.argmax(H, axis=0)
    at_vertex, at_heads = np.zeros_like(s), np.zeros_like(H)
    at_vertex[vertex] = 1.0
    at_heads[heads, np.arange(tapes)] = 1.0
    distances = (np.abs(s - at_vertex), np.abs(H - at_heads), np.abs(np.abs(T) - 1))
    deviation = max(float(distance.max(initial=0.0)) for distance in distances)
    require(deviation < NEAR, f"some weight is {deviation:.3g} away from what a machine can show")
    require(graph["vertex_weight"][vertex] < 0, "s stands at a vertex that does not halt")
    under = np.sign(T[heads[given:], np.arange(tapes - given)])
    require(
        np.array_equal(under, graph["down"][vertex, given:]),
        "under the heads lie other symbols than the vertex shows",
    )
    return deviation


# The algorithm once more


def _written(found: Any, cells: int, count: int) -> list[list[int]]:
    """The rows of the tapes that are written on which are filled at first."""
    require(
        isinstance(found, list) and len(found) == count,
        "there is not a list for each tape that is written on",
    )
    first = -(cells // 2)
    for tape in found:
        inside = isinstance(tape, list) and all(
            type(cell) is int and 0 <= cell - first < cells for cell in tape
        )
        require(inside, "what a tape is filled with at first lies beside it")
        require(len(set(tape)) == len(tape), "a cell is named twice")
    return [[cell - first for cell in tape] for tape in found]


def _run(machine: Machine, tapes: Tapes, middle: int, given: int, steps: int, arrays: Arrays) -> None:
    """From the first state, with all heads in the middle, to the weights."""
    s, T, H = (arrays[name] for name in "sTH")
    follow, heads = _followed(machine, given), [middle] * machine.tapes
    state, taken, due, last = machine.states.index(machine.start), 0, 0, len(T) - 1
    while True:  # at most `steps` times
        if taken == due:  # a head moves by a cell at most
            room = min(*heads, *(last - head for head in heads))
            require(room >= 0, "a head of the algorithm leaves its tape")
            due += room + 1
        seen = 0
        for bit, tape, head in zip(_POWERS, tapes, heads, strict=False):
            if head in tape:
                seen |= bit
        rule = follow[state].get(seen)
        if rule is None:
            break
        require(taken < steps, "the algorithm has not halted where training ends")
        state, changed, moves = rule
        for i in changed:
            tapes[i] ^= {heads[i]}
        heads = [head + move for head, move in zip(heads, moves, strict=True)]
        taken += 1
    require(taken == steps, "the algorithm halts before training ends")
    vertex = (state << machine.tapes) + seen
    ends = int(np.argmax(s)) == vertex and np.argmax(H, axis=0).tolist() == heads
    require(ends, "the algorithm does not halt in the state or at the cells that the weights show")
    for column, tape in zip(T.T, tapes[given:], strict=True):
        marks = set(np.flatnonzero(column > 0).tolist())
        require(marks == tape, "the algorithm leaves something else on its tapes than the weights show")


_POWERS = [1 << tape for tape in range(MOST_TAPES)]

Followed = list[dict[int, tuple[int, list[int], tuple[int, ...]]]]
"""For each state, by the symbols read as a number: the next state, the tapes that change, and the moves."""


def _followed(machine: Machine, given: int) -> Followed:
    """The rules of a machine with two symbols, by numbers."""
    numbers = {state: number for number, state in enumerate(machine.states)}
    follow: Followed = [{} for _ in machine.states]
    for (state, symbols), rule in machine.rules.items():
        changed = [i for i, (old, new) in enumerate(zip(symbols, rule.write, strict=True)) if old != new]
        require(all(i >= given for i in changed), "the algorithm writes on a tape of its data")
        code = sum((symbol != machine.blank) << tape for tape, symbol in enumerate(symbols))
        follow[numbers[state]][code] = numbers[rule.state], changed, rule.moves
    return follow
