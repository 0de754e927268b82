"""The independent checker of `tape` nets: that gradient descent on these arrays is the machine they show.

It knows nothing of the compiler. From the arrays it derives, in whole numbers, that at every vertex that does
not halt the steepest descent leads, for whatever symbols lie under the next places of the heads, to the one
vertex that shows the successor's state and exactly these symbols; and that the loss tells halted from
running. It takes from the paper that at s = e_v the gradient of the loss (21) in s is the sum of

    4 w(v, u) for edges v -> u,  2 w(u, v) for edges u -> v,  4 w(v) at v,
    4 b^2 (symbols of v - symbols next to be read) . (symbols of u);

the numbers 4 and 2 are worked out again below, from the function (34), in exact fractions.
"""

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import BrokenNet

Arrays = dict[str, NDArray[Any]]


def check(config: dict[str, Any], arrays: Arrays, certificate: dict[str, Any]) -> list[str]:
    """What was re-derived, in sentences; `BrokenNet` names the first thing that does not hold."""
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
        _require(
            certificate[name] == found, f"the certificate claims {name} = {certificate[name]}, not {found}"
        )
    return [
        f"b = {b}, c and both bounds satisfy (18) and keep halted apart from running as (23) needs",
        f"of {len(running):,} vertices {int(running.sum()):,} have a successor for each combination of "
        "symbols, weighted as in (17), and the others halt",
        f"no two of {len(arrays['edge_from']):,} edges lead back and forth: condition (20)",
        f"at every vertex and for all symbols read next, the intended successor is steeper by {lead} or more",
    ]


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise BrokenNet(otherwise, advice="Compile and save the net again.")


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
    _require(tapes >= 1 and b > 1, "b and the number of tapes are positive")
    first, second = 2 * b**3 >= b**3 + tapes * b, b**3 - 2 * tapes * b >= 4 * tapes * b**2
    _require(first and second and b**2 > b, f"b = {b} does not satisfy (18) for {tapes} tapes")
    _require(c > b**3, "c <= b^3: the loss of a halted state would not be positive")
    _require(
        _halted_at_most(constants) < low < high <= c, "the bounds B_low, B_high do not lie in the gap of (23)"
    )
    _require(final_loss < low, "B_stop does not exceed the final loss of the primary network")


def _layout(config: dict[str, Any], arrays: Arrays, tapes: int) -> None:
    vertices = len(config["states"]) * 2**tapes
    for name in ("down", "written", "moves"):
        _require(
            arrays[name].shape == (vertices, tapes), f"the array {name!r} does not fit the states and tapes"
        )
    signs = np.where(np.arange(2**tapes)[:, None] >> np.arange(tapes) & 1, 1, -1)
    _require(
        np.array_equal(arrays["down"], np.tile(signs, (len(config["states"]), 1))),
        "some vertex does not show the symbols that its number says",
    )
    _require(arrays["vertex_weight"].shape == (vertices,), "there is not one weight for each vertex")
    _require(len(set(config["states"])) == len(config["states"]), "two states have the same name")
    _require(1 <= len(set(config["symbols"])) == len(config["symbols"]) <= 2, "there are not two symbols")
    _require(config["cells"] >= 2, "the tapes have no room")


def _vertices(arrays: Arrays, b: int) -> NDArray[np.bool_]:
    """Which vertices run on; the others must halt in every respect."""
    weight, moves, written = arrays["vertex_weight"], arrays["moves"], arrays["written"]
    running = weight == 0
    _require(bool(np.all(running | (weight == -(b**3)))), "a vertex weighs neither 0 nor -b^3")
    _require(bool(np.all(np.abs(moves[running]) == 1)), "a head stays at a vertex that does not halt")
    _require(bool(np.all(np.abs(written[running]) == 1)), "a symbol to write is neither -1 nor +1")
    halted = ~running
    _require(bool(np.all(moves[halted] == 0)), "a head moves at a vertex that halts")
    _require(
        np.array_equal(written[halted], arrays["down"][halted]), "something is written at a vertex that halts"
    )
    return running


def _edges(arrays: Arrays, running: NDArray[np.bool_], tapes: int, b: int) -> None:
    source, target = arrays["edge_from"].astype(np.int64), arrays["edge_to"].astype(np.int64)
    weight, vertices, fan = arrays["edge_weight"], len(running), 2**tapes
    _require(len(source) == len(target) == len(weight), "edges lack an end or a weight")
    inside = (source >= 0) & (source < vertices) & (target >= 0) & (target < vertices)
    _require(bool(np.all(inside)), "an edge ends at a vertex that does not exist")
    counts = np.bincount(source, minlength=vertices)
    _require(
        np.array_equal(counts, fan * running), "a vertex has not one edge for each combination of symbols"
    )
    order = np.lexsort((target, source))
    blocks = target[order].reshape(-1, fan)
    whole = blocks == (blocks[:, :1] // fan * fan + np.arange(fan))
    _require(bool(np.all(whole)), "the edges from a vertex do not lead to one state with all symbols")
    same = np.sum(arrays["down"][source] == arrays["down"][target], axis=1)
    _require(np.array_equal(weight, -(b**3 + b * same)), "an edge has another weight than (17) gives it")
    forth, back = source * vertices + target, target * vertices + source
    _require(not np.isin(forth, back).any(), "two edges lead back and forth, against condition (20)")


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
    _require(min(leads) > 0, "some other vertex would be steeper than the intended successor")
    return int(min(leads))
