"""The independent checker of `tape` nets and of trained extended networks: that gradient descent on these
arrays is the machine they show.

It knows nothing of the compiler. From the arrays it derives, in whole numbers, that at every vertex that does
not halt the steepest descent leads, for whatever symbols lie under the next places of the heads, to the one
vertex that shows the successor's state and exactly these symbols; and that the loss tells halted from
running. It takes from the paper that at s = e_v the gradient of the loss (21) in s is the sum of

    4 w(v, u) for edges v -> u,  2 w(u, v) for edges u -> v,  4 w(v) at v,
    4 b^2 (symbols of v - symbols next to be read) . (symbols of u);

the numbers 4 and 2 are worked out again below, from the function (34), in exact fractions.

An extended network has the same graph. From its weights alone: they show a halted machine, its result tape
holds theta, and the primary network with this theta gives the output and the loss claimed. That training led
to these weights is not shown here; training again, from the same data, shows it.
"""

from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.folder import OWN_TABLE, Arrays, Checked, require
from tapegrad_check.sources import Model

NEAR = 1e-9
"""How far trained weights and outputs may be from their ideal values; double precision leaves far less."""


def check(
    config: dict[str, Any], arrays: Arrays, certificate: dict[str, Any], source: Model | None = None
) -> Checked:
    """What was re-derived, in sentences; `CheckError` names the first thing that does not hold."""
    constants = config["constants"]
    tapes, b = int(constants["tapes"]), int(constants["b"])
    forward, backward = _slopes()
    _constants(constants, float(certificate["final_loss"]))
    _layout(config, arrays, tapes)
    running = _vertices(arrays, b)
    _edges(arrays, running, tapes, b)
    lead = _lead(tapes, b, forward, backward)
    for name, found in (
        ("vertices", len(arrays["down"])),
        ("edges", len(arrays["edge_from"])),
        ("lead", lead),
        ("running_at_least", int(constants["c"])),
        ("halted_at_most", _halted_at_most(constants)),
    ):
        require(
            certificate[name] == found, f"the certificate claims {name} = {certificate[name]}, not {found}"
        )
    return Checked(
        [
            f"b = {b}, c and both bounds satisfy (18) and keep halted apart from running as (23) needs",
            f"of {len(running):,} vertices {int(running.sum()):,} have a successor for each combination of "
            "symbols, weighted as in (17), and the others halt",
            f"no two of {len(arrays['edge_from']):,} edges lead back and forth: condition (20)",
            f"at every vertex and for all symbols read next, the intended successor is steeper by {lead} or more",
        ],
        OWN_TABLE,
    )


def _slopes() -> tuple[int, int]:
    """How steeply (34) rises on leaving either end of its edge, before any kink."""

    def directed(x_v: Fraction, x_w: Fraction) -> Fraction:
        relu = [max(Fraction(0), r) for r in (2 * (x_v + x_w) - 1, 2 * x_w - 1, 2 * x_v - 2 * x_w - 1)]
        return relu[0] - relu[1] - relu[2]

    step = Fraction(1, 8)
    forward = directed(1 - step, step) / step
    backward = directed(step, 1 - step) / step
    return int(forward), int(backward)


def _halted_at_most(constants: dict[str, Any]) -> int:
    c, b, tapes = (int(constants[name]) for name in ("c", "b", "tapes"))
    return c + 8 * b**2 * tapes + 3 * tapes - b**3


def _constants(constants: dict[str, Any], final_loss: float) -> None:
    c, b, tapes, low, high = (int(constants[name]) for name in ("c", "b", "tapes", "low", "high"))
    require(tapes >= 1 and b > 1, "b and the number of tapes are positive")
    first, second = 2 * b**3 >= b**3 + tapes * b, b**3 - 2 * tapes * b >= 4 * tapes * b**2
    require(first and second and b**2 > b, f"b = {b} does not satisfy (18) for {tapes} tapes")
    require(c > b**3, "c <= b^3: the loss of a halted state would not be positive")
    require(
        _halted_at_most(constants) < low < high <= c, "the bounds B_low, B_high do not lie in the gap of (23)"
    )
    require(final_loss < low, "B_stop does not exceed the final loss of the primary network")


def _layout(config: dict[str, Any], arrays: Arrays, tapes: int) -> None:
    vertices = len(config["states"]) * 2**tapes
    for name in ("down", "written", "moves"):
        require(
            arrays[name].shape == (vertices, tapes), f"the array {name!r} does not fit the states and tapes"
        )
    signs = np.where(np.arange(2**tapes)[:, None] >> np.arange(tapes) & 1, 1, -1)
    require(
        np.array_equal(arrays["down"], np.tile(signs, (len(config["states"]), 1))),
        "some vertex does not show the symbols that its number says",
    )
    require(arrays["vertex_weight"].shape == (vertices,), "there is not one weight for each vertex")
    require(len(set(config["states"])) == len(config["states"]), "two states have the same name")
    require(1 <= len(set(config["symbols"])) == len(config["symbols"]) <= 2, "there are not two symbols")
    require(config["cells"] >= 2, "the tapes have no room")


def _vertices(arrays: Arrays, b: int) -> NDArray[np.bool_]:
    """Which vertices run on; the others must halt in every respect."""
    weight, moves, written = arrays["vertex_weight"], arrays["moves"], arrays["written"]
    running = weight == 0
    require(bool(np.all(running | (weight == -(b**3)))), "a vertex weighs neither 0 nor -b^3")
    require(bool(np.all(np.abs(moves[running]) == 1)), "a head stays at a vertex that does not halt")
    require(bool(np.all(np.abs(written[running]) == 1)), "a symbol to write is neither -1 nor +1")
    halted = ~running
    require(bool(np.all(moves[halted] == 0)), "a head moves at a vertex that halts")
    require(
        np.array_equal(written[halted], arrays["down"][halted]), "something is written at a vertex that halts"
    )
    return running


def _edges(arrays: Arrays, running: NDArray[np.bool_], tapes: int, b: int) -> None:
    source, target = arrays["edge_from"].astype(np.int64), arrays["edge_to"].astype(np.int64)
    weight, vertices, fan = arrays["edge_weight"], len(running), 2**tapes
    require(len(source) == len(target) == len(weight), "edges lack an end or a weight")
    inside = (source >= 0) & (source < vertices) & (target >= 0) & (target < vertices)
    require(bool(np.all(inside)), "an edge ends at a vertex that does not exist")
    counts = np.bincount(source, minlength=vertices)
    require(
        np.array_equal(counts, fan * running), "a vertex has not one edge for each combination of symbols"
    )
    order = np.lexsort((target, source))
    blocks = target[order].reshape(-1, fan)
    whole = blocks == (blocks[:, :1] // fan * fan + np.arange(fan))
    require(bool(np.all(whole)), "the edges from a vertex do not lead to one state with all symbols")
    same = np.sum(arrays["down"][source] == arrays["down"][target], axis=1)
    require(np.array_equal(weight, -(b**3 + b * same)), "an edge has another weight than (17) gives it")
    forth, back = source * vertices + target, target * vertices + source
    require(not np.isin(forth, back).any(), "two edges lead back and forth, against condition (20)")


def _lead(tapes: int, b: int, forward: int, backward: int) -> int:
    """By how much the intended successor wins. Edge weights and the read term are sums over the tapes, so the
    successors compete tape by tape; against all other vertices what counts is the number of tapes on which
    the symbol changes."""
    leads = []
    for shown, following in product((-1, 1), repeat=2):
        slope = {
            symbol: forward * -b * (symbol == shown) + 4 * b**2 * (shown - following) * symbol
            for symbol in (-1, 1)
        }
        leads.append(slope[-following] - slope[following])
    for changed in range(tapes + 1):
        reading = -8 * b**2 * changed  # the least that the read term can add anywhere
        intended = -forward * (b**3 + b * (tapes - changed)) + reading
        against_predecessors = -backward * (b**3 + b * tapes) + reading
        leads.append(min(against_predecessors, reading) - intended)
    require(min(leads) > 0, "some other vertex would be steeper than the intended successor")
    return int(min(leads))


def check_extended(
    config: dict[str, Any], arrays: Arrays, claims: dict[str, Any], source: Model | None = None
) -> Checked:
    """The same for a trained extended network."""
    graph = {name.removeprefix("graph."): a for name, a in arrays.items() if name.startswith("graph.")}
    s, T, H, z = (arrays[f"weight.{name}"] for name in ("s", "T", "H", "z"))
    about_graph = check(config, graph, claims).statements
    deviation = _halted(config, graph, s, T, H)
    require(np.array_equal(z, arrays["y"]), "the labels that training copied are not the labels")
    theta = _theta(config, arrays["result_places"], T)
    require(np.array_equal(theta, claims["theta"]), "the result tape does not hold the theta claimed")
    output = _output(config["primary"], theta, arrays["x"])
    require(_near(output, claims["output"]), "the primary network does not give the output claimed")
    loss = float(np.sum((output - arrays["y"]) ** 2) / 2)
    require(_near(loss, claims["final_loss"]), "the output does not give the loss claimed")
    require(_near(deviation, claims["deviation"]), "the weights are farther from their ideal values")
    return Checked(
        [
            *about_graph,
            f"the weights show a halted machine, at most {deviation:.3g} from their ideal values",
            f"its result tape holds {len(theta)} numbers, which are the theta claimed",
            f"the primary network with this theta has a loss of {loss:g}, below B_stop",
        ],
        OWN_TABLE,
    )


def _near(found: Any, claimed: Any) -> bool:
    expected = np.asarray(claimed, float)
    return np.shape(found) == expected.shape and bool(np.allclose(found, expected, rtol=NEAR, atol=NEAR))


def _halted(config: dict[str, Any], graph: Arrays, s: NDArray, T: NDArray, H: NDArray) -> float:
    """How far the weights are from a halted machine: s at a vertex, a head on each tape, symbols -1 and +1,
    and under the heads what the vertex shows."""
    tapes, cells, read_only = graph["down"].shape[1], int(config["cells"]), int(config["read_only"])
    require(0 <= read_only <= tapes, "there are more read-only tapes than tapes")
    require(s.shape == graph["vertex_weight"].shape, "s has not one entry for each vertex")
    require(T.shape == (cells, tapes - read_only) and H.shape == (cells, tapes), "T or H has another shape")
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


def _theta(config: dict[str, Any], places: NDArray, T: NDArray) -> NDArray[np.floating]:
    """The numbers on the result tape, cell by cell."""
    bits, tapes, cells, signs = places.T
    rows, columns = cells + int(config["cells"]) // 2, tapes - int(config["read_only"])
    inside = (rows >= 0) & (rows < T.shape[0]) & (columns >= 0) & (columns < T.shape[1])
    require(bool(np.all(inside)), "a bit of the result lies beside its tape")
    require(np.array_equal(bits, np.arange(len(bits))), "the bits of the result are not in order")
    form = config["weight_format"]
    found = (T[rows, columns] * signs > 0).astype(float)
    return _fixed(found, form) if form["kind"] == "fixed" else _floating(found, form)


def _fixed(bits: NDArray, form: dict[str, Any]) -> NDArray[np.floating]:
    """Two's complement, least significant bit first."""
    width = int(form["width"])
    places = 2.0 ** np.arange(width)
    places[-1] *= -1
    return bits.reshape(-1, width) @ places / 2.0 ** int(form["fraction"])


def _floating(bits: NDArray, form: dict[str, Any]) -> NDArray[np.floating]:
    """Mantissa, exponent, sign; the numbers with exponent 0 have no hidden bit."""
    m, e = int(form["mantissa"]), int(form["exponent"])
    rows = bits.reshape(-1, m + e + 1)
    exponent = rows[:, m : m + e] @ 2.0 ** np.arange(e)
    whole = rows[:, :m] @ 2.0 ** np.arange(m) + np.where(exponent > 0, 2.0**m, 0.0)
    unit = 2.0 ** (np.maximum(exponent, 1) - (2 ** (e - 1) - 1) - m)
    return np.where(rows[:, -1] > 0, -1.0, 1.0) * whole * unit


def _output(primary: dict[str, Any], theta: NDArray, x: NDArray) -> NDArray[np.floating]:
    """Fully connected layers: matrix rows one after the other in theta, the bias last in each."""
    sizes, used = [int(size) for size in primary["sizes"]], 0
    for layer, (columns, rows) in enumerate(pairwise(sizes), 1):
        matrix = theta[used : used + rows * (columns + 1)].reshape(rows, columns + 1)
        used += matrix.size
        x = x @ matrix[:, :-1].T + matrix[:, -1]
        if primary["activation"] == "step":
            x = (x >= 0).astype(float)
        elif layer < len(sizes) - 1:
            x = np.maximum(x, 0.0)
    require(used == len(theta), "theta has another length than the primary network takes")
    return x
