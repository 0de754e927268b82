"""The independent checker of `emulator` nets: from the saved arrays to "SGD changes the cells alone".

It knows nothing of the compiler. Vertices that compute are shown to be flat on all Boolean inputs, and their
functions are worked out one by one and compared with the circuit of the learner. Practical memory, in this
file: every cell is followed through the situations that can arise, and every other change that a step of SGD
could make is shown to round away. The two memories of the paper are in files of their own.
"""

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.core.nodes import FALSE
from tapegrad_check.fields import array, number, texts, whole
from tapegrad_check.folder import COMPUTES_SOURCE, WITHOUT, Arrays, Checked, require
from tapegrad_check.graph import Graph as Network
from tapegrad_check.products import times
from tapegrad_check.sources import Learner, Model
from tapegrad_check.targets.emulator_loss import edges_of, hard_tanh, require_emulation, watched_at
from tapegrad_check.targets.exact_memory import check_exact
from tapegrad_check.targets.noise_tolerant_memory import check_noise_tolerant
from tapegrad_check.targets.vertices import Computation, Graph

SATURATION = 2.0
"""The activation of practical memory is max(-2, min(2, x))."""
PRECISIONS = {"float64": (53, 1021), "float32": (24, 125)}
"""Bits of precision, and the largest size of an exponent that is surely in range."""
ENTRIES = {"memory", "w0", "gate", "computation", "steps", "names"}
TRAINED = "trained"
"""The weights of a classifier that has been trained, beside those that it began with."""
CLAIMS = {"memory", "cells", "flat_margin", "changes_vanish", "steps", "drift"}
MARGIN = 2.0
"""How far beyond the linear range vertices that compute must stay; noise may take this much off."""


PROVED = COMPUTES_SOURCE.partition(",")[0]
"""How every verdict begins that speaks of the source, whatever bound it names."""


def for_the_first(samples: int) -> str:
    """The verdict on a net that computes its source for so many samples, and may do something else then."""
    return f"{PROVED}, for the first {'sample' if samples == 1 else f'{samples:,} samples'}"


def check(
    config: dict[str, Any],
    arrays: Arrays,
    certificate: dict[str, Any],
    source: Model | None,
    network: Network | None = None,
) -> Checked:
    """What was re-derived, in sentences; `CheckError` names the first thing that does not hold. All memories
    but the exact one have a network."""
    require(source is None or isinstance(source, Learner), "an emulator net is that of a learner")
    learner = source if isinstance(source, Learner) else None
    require(certificate.get("memory") == config["memory"], "the certificate is for another kind of memory")
    require(
        (network is None) == (config["memory"] == WITHOUT), "the kind of memory is another than the network's"
    )
    if network is None:
        return check_exact(config, arrays, certificate, learner)
    if config["memory"] == "noise-tolerant":
        checked = check_noise_tolerant(config, arrays, certificate, learner, network)
        whole_proof = checked.verdict == COMPUTES_SOURCE  # but later samples are not memorised
        return replace(checked, verdict=for_the_first(len(arrays["written"]))) if whole_proof else checked
    require(config["memory"] == "practical", "the kind of memory is unknown")
    return _check_practical(config, arrays, certificate, learner, network)


class _Net(NamedTuple):
    graph: Graph
    cells: int
    first_copy: int
    first_control: int
    w0: float
    u: float

    @property
    def rate(self) -> float:
        """The learning rate, as the loader derives it."""
        return self.w0**2 / self.u

    def output(self) -> NDArray[Any]:
        """The edges of the output: the answer, then six of each cell."""
        return self.graph.edges(np.array([self.graph.last]), 6 * self.cells + 1)[0]


def _check_practical(
    config: dict[str, Any],
    arrays: Arrays,
    certificate: dict[str, Any],
    learner: Learner | None,
    network: Network,
) -> Checked:
    noisy = "noise" in config
    entries, claims = (ENTRIES | {"noise"}, CLAIMS | {"error"}) if noisy else (ENTRIES, CLAIMS)
    require(config.keys() == entries and certificate.keys() == claims, "the net has other entries or claims")
    require(arrays.keys() - {TRAINED} == {"weights", "cells"}, "the arrays are others")
    edges, given = edges_of(network, 2)
    net, finished = _shape(config, arrays | edges, given), watched_at(network, "finished")
    require_emulation(network, arrays["weights"].dtype.name, hard_tanh, net.rate, {"finished": finished})
    require(certificate["cells"] == net.cells, "the certificate counts other cells")
    margin = _flat(net)
    claimed = number(certificate["flat_margin"], "the claimed margin")
    require(margin >= claimed == MARGIN, "the computation is not as flat as claimed, or as it must be")
    _cells(net)
    answer, flips = _controls(net)
    _output(net, answer)
    statements = [
        "the network is (output - label)^2 of these vertices, and SGD trains every weight",
        f"each of {net.first_control - net.first_copy:,} vertices that compute is flat on all Boolean "
        f"inputs, by a margin of {margin:g}",
        f"every one of {net.cells:,} cells flips, exactly, at a wrong output while it is open",
        "whatever is flipped, the output stays exactly at -1 or 1",
    ]
    vanish = _changes_vanish(net)
    require(vanish is certificate["changes_vanish"], "the claim about rounding does not hold")
    if vanish:
        statements.append("every other change that SGD could make rounds away: exact for any number of steps")
    steps = whole(config["steps"], "the number of steps", 1, 1 << 53)
    require(certificate["steps"] == steps, "the certificate is for another number of steps")
    drift = _drift(net.w0, net.u, net.cells, steps)
    same = math.isclose(drift, number(certificate["drift"], "the drift"), rel_tol=1e-9)
    require(same, "the bound on the drift is another")
    require(vanish or drift <= 1 / 4, "neither rounding nor the bound on the drift protects the cells")
    statements.append(f"without rounding, cells would drift by at most {drift:.2g} in {steps:,} steps")
    if noisy:
        statements.append(_noise(net, config["noise"], certificate["error"], drift, steps))
    if TRAINED in arrays:
        count = _same_but_for_cells(arrays, vanish)
        each = "" if count == 1 else f" of each of {count:,} networks"
        statements.append(
            f"the weights{each} after training are those before, but for the signs of the cells"
        )
    names = texts(config["names"], "the names of inputs")
    compute = _computation(net)
    require(len(names) == net.cells + net.graph.given - 1, "there are more or fewer names than inputs")
    seen = [compute[answer], compute[finished], *(compute[flip] for flip in flips.tolist())]
    if TRAINED in arrays:
        never = arrays["cells"][np.array(seen[2:]) == FALSE]
        same = arrays[TRAINED][..., never] == arrays["weights"][never]
        require(same.all(), "training has changed a bit of memory that never changes")
    if learner is not None:
        _same_learner(net, compute, learner, seen, arrays, names)
        statements.append(
            "answer, finished and when each cell flips are the functions of the learner's circuit; names and "
            "first memory are the learner's"
        )
    lasts = vanish and not noisy
    return Checked(statements, COMPUTES_SOURCE if lasts else for_the_first(steps))


def _same_but_for_cells(arrays: Arrays, vanish: bool) -> int:
    """Where there is a network for each class, there is a row of weights for each; gives their number."""
    weights, trained = arrays["weights"], arrays[TRAINED]
    rows = trained.reshape(1, -1) if trained.ndim == 1 else trained
    alike = trained.dtype == weights.dtype and rows.shape[1:] == weights.shape and len(rows) > 0
    require(vanish and alike, "the training is not exact")
    cells = arrays["cells"]
    for row in rows:
        expected = weights.copy()
        expected[cells] = np.where(np.signbit(row[cells]), -1, 1) * np.abs(weights[cells])
        require(np.array_equal(row, expected), "training has changed more than the signs of the cells")
    return len(rows)


def _shape(config: dict[str, Any], arrays: Arrays, given: int) -> _Net:
    weights = arrays["weights"]
    require(weights.ndim == 1 and weights.dtype.name in PRECISIONS, "the weights are not a list of floats")
    cells = array(arrays, "cells", np.int64, (None,))
    graph = Graph.of(arrays, given, weights)
    begin, end = (
        whole(vertex, "a place of the computation", 0, graph.last) for vertex in config["computation"]
    )
    require(begin == given + 2 * len(cells), "the computation does not begin after the cells")
    require(begin <= end and end + 6 * len(cells) == graph.last, "the computation ends elsewhere")
    w0, u = (_power_of_two(config[name], name) for name in ("w0", "gate"))
    digits, exponents = PRECISIONS[weights.dtype.name]
    # Every weight and every change is a power of two in between, or a sum of a few multiples of u/4 below 8.
    require(2.0 ** -((exponents - 2) // 2) <= w0 < 1, "w0 is out of the range of the precision")
    require(2.0**5 / 2.0**digits <= u <= 1 and u * len(cells) <= 1, "the gates are out of range")
    net = _Net(graph, len(cells), begin, end, w0, u)
    amplifiers = given + 2 * np.arange(net.cells)
    require((graph.edges(amplifiers, 1)[:, 0] == cells).all(), "a cell is not the edge of its amplifier")
    return net


def _power_of_two(value: Any, what: str) -> float:
    found = number(value, what)
    require(found > 0 and math.frexp(found)[0] == 0.5, f"{what} is not a power of two")
    return found


def _flat(net: _Net) -> float:
    """How far from the linear range all total inputs stay: copies, gates, controls."""
    graph = net.graph
    controls = net.first_control + (6 * np.arange(net.cells)[:, None] + np.arange(4)).ravel()
    vertices = np.concatenate([np.arange(net.first_copy, net.first_control), controls])
    readers = graph.given + 1 + 2 * np.arange(net.cells)
    read = graph.sources[np.isin(graph.ends(), vertices)]
    computing = np.isin(read[read >= graph.given], np.concatenate([readers, vertices]))
    require(computing.all(), "a vertex that computes reads one that does not")
    return graph.flat_margin(vertices, SATURATION)


def _cells(net: _Net) -> None:
    """Amplifiers, readers, gates; and the rate turns the weight of an open cell into its negative."""
    graph, cell = net.graph, np.arange(net.cells)
    sources, weights = graph.sources, graph.weights
    amplifier, reader = graph.given + 2 * cell, graph.given + 1 + 2 * cell
    own, read = graph.edges(amplifier, 1)[:, 0], graph.edges(reader, 1)[:, 0]
    require((sources[own] == 0).all(), "a cell does not begin at the constant")
    require((np.abs(weights[own]) == net.w0).all(), "a cell has another weight than w0")
    require((sources[read] == amplifier).all(), "a reader reads another cell")
    require((weights[read].astype(np.float64) * net.w0 == -4).all(), "a reader is not at -4 or 4")
    first = net.first_control + 6 * cell
    for gate, controls in ((4, (0, 3)), (5, (1, 2))):
        edges = graph.edges(first + gate, 3)
        require((sources[edges[:, 0]] == amplifier).all(), "a gate is at another cell")
        require((weights[edges[:, 0]].astype(np.float64) * net.w0 == 0.5).all(), "a gate is not at 1/2")
        for place, control in enumerate(controls, start=1):
            require((sources[edges[:, place]] == first + control).all(), "a gate has other controls")
            require((weights[edges[:, place]] == -1).all(), "a control opens its gate by another weight")
    require(net.rate * 4 * net.u * (0.5 / net.w0) == 2 * net.w0, "the rate does not flip a cell")


def _controls(net: _Net) -> tuple[int, NDArray[Any]]:
    """Each control is on if its cell is to flip, the answer is so and the bit is so; gives the answer, and
    for each cell the vertex that says whether it is to flip."""
    graph, cell = net.graph, np.arange(net.cells)
    answer = int(graph.sources[graph.offsets[-2]])
    flips = graph.sources[graph.edges(net.first_control + 6 * cell, 4)[:, 0]]
    for control, (said, holds) in enumerate(((1, -1), (1, 1), (-1, -1), (-1, 1))):
        edges = graph.edges(net.first_control + 6 * cell + control, 4)
        sources, weights = graph.sources[edges], graph.weights[edges]
        require((sources[:, 0] == flips).all(), "controls of a cell disagree on when it flips")
        require((sources[:, 1] == answer).all(), "a control looks at another answer")
        require((sources[:, 2] == graph.given + 1 + 2 * cell).all(), "a control reads another cell")
        require((sources[:, 3] == 0).all(), "a control lacks its constant")
        require((weights == np.array([2, 2 * said, 2 * holds, -8])).all(), "a control has other weights")
    return answer, flips


def _output(net: _Net, answer: int) -> None:
    """In each of the five situations of a cell, its shares of the output cancel."""
    edges = net.output()
    sources, weights = net.graph.sources[edges], net.graph.weights[edges].astype(np.float64)
    require(sources[0] == answer and weights[0] == 0.5, "the output does not begin with half the answer")
    parts = sources[1:].reshape(-1, 6) - net.first_control - 6 * np.arange(net.cells)[:, None]
    require((parts == np.array([4, 5, 0, 1, 2, 3])).all(), "the output reads other vertices")
    shares = weights[1:].reshape(-1, 6)
    eighths = shares / net.u * 8  # whole and few, so that no sum of them is rounded, here or in the net
    few = (eighths == np.round(eighths)) & (np.abs(eighths) <= 8)
    require(few.all() and (shares[:, 0] == net.u).all(), "a gate has another share of the output")
    closed = np.array([2.0, 2.0, -2.0, -2.0, -2.0, -2.0])
    require((times(shares, closed) == 0).all(), "closed cells do not cancel")
    for control, (gate, at) in enumerate(((0, 0.5), (1, -0.5), (1, 0.5), (0, -0.5))):
        open_cell = closed.copy()
        open_cell[gate], open_cell[2 + control] = at, 2.0
        require((times(shares, open_cell) == 0).all(), "an open cell is not made up for")
    require((shares[:, 1] == -net.u).all(), "the second gate of a cell is not the opposite of the first")


def _changes_vanish(net: _Net) -> bool:
    """Whether the largest change that a wrong output (slope 4) makes to a weight leaves it as it is."""
    weights = net.graph.weights
    gates = (net.first_control + 6 * np.arange(net.cells)[:, None] + np.array([4, 5])).ravel()
    inner = net.graph.edges(gates, 3)
    changes = [(net.output(), net.rate * 4 * 2), (inner[:, 1:], net.rate * 4 * net.u * 2)]
    changes.append((inner[:, :1], net.rate * 4 * net.u * net.w0))
    return all(
        bool((weights[edges] + weights.dtype.type(sign * change) == weights[edges]).all())
        for edges, change in changes
        for sign in (-1, 1)
    )


def _drift(w0: float, u: float, cells: int, steps: int) -> float:
    """Each step moves 6M + 1 edges of the output by 10 rate and their shares by 20 rate; gates by 41 w0^2;
    the product of the two gains by 11 w0^2/u^2. Errors add up over the steps, and over the cells in the
    Euclidean norm, which the steps do not lengthen."""
    each = 20 * (6 * cells + 1) / u + 41 + 28 / u**2
    return math.sqrt(cells) * steps**2 / 2 * w0**2 * each


def _noise(net: _Net, settings: Any, claimed: Any, drift: float, steps: int) -> str:
    """Noise of at most kappa on a cell and rho on another weight, relative to it, in equal shares at all
    steps, together with rounding: vertices that compute stay flat, and the cells' errors, in the Euclidean
    norm, add up. Of the output, noise on edges (9 rho) and on the inputs of open gates (5 rho) makes 14 rho
    of each step's error, gains 5 rho, the errors of the cells themselves 1 rho."""
    require(isinstance(settings, dict), "the noise is not described")
    require(settings.keys() == {"absolute", "relative", "seed"}, "the noise is described by other entries")
    absolute, relative = (number(settings[kind], f"the {kind} noise") for kind in ("absolute", "relative"))
    whole(settings["seed"], "the seed")
    require(absolute >= 0 and relative >= 0 and absolute + relative > 0, "the noise is not positive")
    unit = 2.0 ** -PRECISIONS[net.graph.weights.dtype.name][0]
    kappa, rho = absolute / net.w0 + relative, absolute * 8 / (3 * net.u) + relative
    graph = net.graph
    sizes = np.abs(graph.weights.astype(np.float64)) * graph.size(graph.sources)
    loads = np.bincount(graph.ends(), sizes, graph.last + 1)
    controls = net.first_control + (6 * np.arange(net.cells)[:, None] + np.arange(4)).ravel()
    load = max(loads[net.first_copy : net.first_control].max(initial=0), loads[controls].max(initial=0))
    require(rho * load <= 2, "with the noise, a vertex that computes may not be flat")
    rho += steps * unit
    require(rho <= 1 / 64, "the noise is too large for its bound")
    each = 20 * rho + 10 * (6 * net.cells + 1) * unit
    error = math.sqrt(net.cells) * (kappa + steps * each) + 1.1 * drift
    same = math.isclose(error, number(claimed, "the error"), rel_tol=1e-9)
    require(same, "the bound on the error that noise makes is another")
    require(error <= 1 / 4, "the noise may turn a cell")
    return (
        f"with noise of {absolute:.2g} + {relative:.2g} |weight| in all on every weight, in equal shares at "
        f"{steps:,} steps, no cell is off by more than {error:.2g} of its size"
    )


def _computation(net: _Net) -> Computation:
    """The functions of all vertices that compute, of the bits of memory and of the inputs."""
    graph = net.graph
    nodes = graph.nodes()
    variables = nodes.variables(net.cells + graph.given - 1)
    memory, inputs = variables[: net.cells], variables[net.cells :]
    known = {graph.given + 1 + 2 * cell: bit for cell, bit in enumerate(memory)}
    compute = Computation(graph, nodes, known | {1 + i: bit for i, bit in enumerate(inputs)})
    compute.run(range(net.first_copy, net.first_control))
    return compute


def _same_learner(
    net: _Net,
    compute: Computation,
    learner: Learner,
    seen: list[int],
    arrays: Arrays,
    names: tuple[str, ...],
) -> None:
    """Answer, finished and flips are the learner's functions; a cell flips where its new bit is another."""
    require(learner.bits == net.graph.given - 3 and len(learner.first) == net.cells, "the learner is another")
    require(names == learner.circuit.inputs, "inputs have other names than in the learner")
    negative = np.signbit(arrays["weights"][arrays["cells"]])
    require((negative == np.array(learner.first, bool)).all(), "the first memory is not the learner's")
    nodes = compute.nodes
    variables = [2 * (1 + i) for i in range(len(names))]
    answer, finished, *memory = nodes.outputs(learner.circuit, variables)
    flips = [nodes.xor(old, new) for old, new in zip(variables, memory, strict=False)]
    nodes.require_same(seen, [answer, finished, *flips], "the net does not compute what the learner does")
