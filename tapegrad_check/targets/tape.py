"""The independent checker of `tape` nets: that gradient descent on these arrays is the machine of the source.

It knows nothing of the compiler. From the arrays it derives, in whole numbers, that at every vertex that does
not halt the steepest descent leads, for whatever symbols lie under the next places of the heads, to the one
vertex that shows the successor's state and exactly these symbols; and that the loss tells halted from
running. It takes from the paper that at s = e_v the gradient of the loss (21) in s is the sum of

    4 w(v, u) for edges v -> u,  2 w(u, v) for edges u -> v,  4 w(v) at v,
    4 b^2 (symbols of v - symbols next to be read) . (symbols of u);

the numbers 4 and 2 are worked out again below, from the function (34), in exact fractions.
"""

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.fields import array, number, texts, whole
from tapegrad_check.folder import Arrays, Checked, require
from tapegrad_check.graph import Graph, Training, Update
from tapegrad_check.losses import (
    GRADIENT,
    LONE,
    Switches,
    corner,
    extended,
    index_of,
    number_of,
    require_loss,
    sizes_of,
    squared,
    stop_of,
    value_of,
)
from tapegrad_check.sources import Machine, Model
from tapegrad_check.terms import Term, Terms

LARGEST = 1 << 50
"""Whole numbers and their thirds are exact in double precision up to here."""

MOST_CELLS = 1 << 22

LONE_LOSS = 0.5
"""Of an empty primary network, whose output is 0, for the labels (1, 0)."""

ARRAYS = {"down", "written", "moves", "vertex_weight", "edge_from", "edge_to", "edge_weight"}


def check(
    config: dict[str, Any], arrays: Arrays, certificate: dict[str, Any], source: Model | None, graph: Graph
) -> Checked:
    """What was proved, in sentences; `CheckError` names the first thing that does not hold."""
    require(config.keys() == {"states", "symbols"}, "the net has other entries than the names of a machine")
    require(not arrays, "the net has arrays beside its network")
    require(certificate["final_loss"] == LONE_LOSS, "a net without a primary network ends with another loss")
    found, own = read(graph)
    statements = about_graph(config | found, own, certificate, source)
    terms = Terms()
    s, T, H, z = (terms.input(name) for name in "sTHz")
    labels = z.detach("labels", "dotted in figure 1")
    loss = traced(terms, graph, (s, T, H), found, own)
    bounds = Switches(1.0, float(found["constants"]["low"]), float(found["constants"]["high"]))
    tape = own["down"].shape[1:]
    shapes = {"s": own["vertex_weight"].shape, **dict.fromkeys("TH", (found["cells"], *tape)), **LONE}
    output = extended(loss, terms.constant(0.0), z, labels, LONE["z"], bounds)
    require_loss(graph, terms, output, shapes, TRAINING._replace(stop=bounds.low))
    return Checked(
        ["the network is the loss (21), node by node, and everything is trained by it", *statements]
    )


TRAINING = Training("loss", {"s": Update("vertex", 1.0, False), **dict.fromkeys("THz", GRADIENT)}, None)
"""The conditional gradient for s, plain gradient descent at the rate 1 for all else."""


def read(graph: Graph) -> tuple[dict[str, Any], Arrays]:
    """The number of cells and the constants of a network; its maps as signs and moves, weights and edges."""
    cells, _ = sizes_of(graph, "H", 2)
    maps = {name: value_of(graph, name) for name in ("down", "written", "right", "left")}
    require(all(own.ndim == 2 for own in maps.values()), "a map of vertices to tapes is no matrix")
    fits = all((np.abs(own) < 1 << 7).all() for own in maps.values())
    require(fits, "a map of vertices to tapes is out of range")
    arrays: Arrays = {
        "down": maps["down"].astype(np.int8),
        "written": maps["written"].astype(np.int8),
        "moves": (maps["right"] - maps["left"]).astype(np.int8),
        **{name: value_of(graph, name) for name in ("vertex_weight", "edge_weight")},
        **{name: index_of(graph, name) for name in ("edge_from", "edge_to")},
    }
    square, c, low = number_of(graph, "4 b^2"), number_of(graph, "c"), stop_of(graph)
    fits = all(own == int(own) and 0 < own <= LARGEST for own in (square, c, low))
    require(fits, "a constant is no whole number in its range")
    b = math.isqrt(int(square) // 4)
    high = (int(low) + int(c)) // 2
    return {"cells": cells, "constants": {"b": b, "c": int(c), "low": int(low), "high": high}}, arrays


def traced(
    terms: Terms, graph: Graph, weights: tuple[Term, Term, Term], found: dict[str, Any], arrays: Arrays
) -> Term:
    """(21): l_S of (19), and how far the cells under the heads are from what is to be written, what the
    vertex shows from what the heads read next, and the heads from where they go."""
    (s, T, H), cells, tapes = weights, found["cells"], arrays["down"].shape[1]

    def mapped(name: str, signs: NDArray[Any], about: str = "") -> Term:
        return s.mapped(terms.constant(signs.astype(np.float64), name, about))

    rows = H.join(np.zeros((1, tapes)), -2).turned()
    place = np.arange(cells)
    shifted = [
        rows.take(np.where((moved >= 0) & (moved < cells), moved, cells), name).turned()
        for name, moved in (("to_right", place - 1), ("to_left", place + 1))
    ]
    right, left, still = (
        mapped(name, arrays["moves"] == way) for name, way in (("right", 1), ("left", -1), ("still", 0))
    )
    moved = (right * shifted[0] + left * shifted[1] + still * H).detach("moved", "where the heads go next")
    under = (T * H.detach()).turned().total()
    following = (T * moved).turned().total().detach()
    write = squared(under - mapped("written", arrays["written"], "T_next").detach(), 1) / 2
    read = squared(following - mapped("down", arrays["down"], "T_down"), 1) / 2
    constants = found["constants"]
    terms_of_tapes = (
        write + terms.constant(4 * constants["b"] ** 2, "4 b^2") * read + squared(moved - H, 2) / 2
    )
    first, second = (s.take(index_of(graph, name), name) for name in ("edge_from", "edge_to"))
    skew = (2 * first - 2 * second - 1).relu()
    directed = (2 * (first + second) - 1).relu() - corner(second, 1 / 2) - skew
    vertices, edges = (terms.constant(arrays[name], name) for name in ("vertex_weight", "edge_weight"))
    on_simplex = (vertices * corner(s, 1 / 4)).total() + (edges * directed).total()
    return terms.constant(constants["c"], "c") + on_simplex + 1 * terms_of_tapes


def about_graph(
    config: dict[str, Any], arrays: Arrays, certificate: dict[str, Any], source: Model | None
) -> list[str]:
    constants = config["constants"]
    tapes = _layout(config, arrays)
    forward, backward = _slopes()
    b = _constants(constants, tapes, number(certificate["final_loss"], "the final loss"))
    running = _vertices(arrays, b)
    successors = _edges(arrays, running, tapes, b)
    lead = _lead(tapes, b, forward, backward)
    for name, found in (
        ("vertices", len(arrays["down"])),
        ("edges", len(arrays["edge_from"])),
        ("lead", lead),
        ("running_at_least", int(constants["c"])),
        ("halted_at_most", _halted_at_most(constants, tapes)),
    ):
        require(
            certificate[name] == found, f"the certificate claims {name} = {certificate[name]}, not {found}"
        )
    statements = [
        f"b = {b}, c and both bounds satisfy (18) and keep halted apart from running as (23) needs; no "
        "number that occurs is beyond 2^50",
        f"of {len(running):,} vertices {int(running.sum()):,} have a successor for each combination of "
        "symbols, weighted as in (17), and the others halt",
        f"no two of {len(arrays['edge_from']):,} edges lead back and forth: condition (20)",
        f"at every vertex and for all symbols read next, the intended successor is steeper by {lead} or more",
    ]
    if source is not None:
        require(isinstance(source, Machine), "the source of the net is no machine")
        assert isinstance(source, Machine)
        _is_of(source, config, arrays, running, successors)
        statements.append(
            f"the vertices and edges are the {len(source.rules):,} rules of the machine, by name"
        )
    return statements


def _is_of(
    machine: Machine,
    config: dict[str, Any],
    arrays: Arrays,
    running: NDArray[np.bool_],
    successors: NDArray[np.int64],
) -> None:
    """Names and numbers of states and symbols are the machine's, and at each vertex its rule, or its halt."""
    require(tuple(config["states"]) == machine.states, "the states are not those of the source")
    require(tuple(config["symbols"]) == machine.alphabet, "the symbols are not those of the source")
    tapes = machine.tapes
    require(arrays["down"].shape[1] == tapes, "the net has another number of tapes than the source")
    vertex_of = {state: index << tapes for index, state in enumerate(machine.states)}
    wanted = np.zeros(len(running), bool)
    for (state, read), rule in machine.rules.items():
        vertex = vertex_of[state] + sum((symbol != machine.blank) << i for i, symbol in enumerate(read))
        wanted[vertex] = True
        signs = [1 if symbol != machine.blank else -1 for symbol in rule.write]
        same = arrays["written"][vertex].tolist() == signs and arrays["moves"][vertex].tolist() == [
            *rule.moves
        ]
        require(
            same and successors[vertex] == vertex_of[rule.state],
            f"in state {state!r}, reading {read}, the net does something else than its source",
        )
    require(np.array_equal(running, wanted), "the net runs on where its source halts")


def _slopes() -> tuple[int, int]:
    """How steeply (34) rises on leaving either end of its edge, before any kink."""

    def directed(x_v: Fraction, x_w: Fraction) -> Fraction:
        relu = [max(Fraction(0), r) for r in (2 * (x_v + x_w) - 1, 2 * x_w - 1, 2 * x_v - 2 * x_w - 1)]
        return relu[0] - relu[1] - relu[2]

    step = Fraction(1, 8)
    forward = directed(1 - step, step) / step
    backward = directed(step, 1 - step) / step
    return int(forward), int(backward)


def _halted_at_most(constants: dict[str, Any], tapes: int) -> int:
    c, b = (int(constants[name]) for name in ("c", "b"))
    return c + 8 * b**2 * tapes + 3 * tapes - b**3


def _constants(constants: dict[str, Any], tapes: int, final_loss: float) -> int:
    """b, once all constants are known to be in order."""
    b, c = whole(constants["b"], "b", 2, 1 << 16), whole(constants["c"], "c", 1, LARGEST)
    low, high = (whole(constants[name], f"the bound {name!r}", 1, LARGEST) for name in ("low", "high"))
    # (18) has two conditions more, 2 b^3 >= b^3 + d b and b^2 > b, which follow.
    require(b**3 - 2 * tapes * b >= 4 * tapes * b**2, f"b = {b} does not satisfy (18) for {tapes} tapes")
    require(c > b**3, "c <= b^3: the loss of a halted state would not be positive")
    require(c + 16 * b**3 <= LARGEST, "c is too large: losses would be rounded")
    require(
        _halted_at_most(constants, tapes) < low < high <= c,
        "the bounds B_low, B_high do not lie in the gap of (23)",
    )
    require(final_loss < low, "B_stop does not exceed the final loss of the primary network")
    return b


def _layout(config: dict[str, Any], arrays: Arrays) -> int:
    """The number of tapes. Vertex q 2^d + code shows state q and the symbols that are the bits of code."""
    require(arrays.keys() == ARRAYS, "there are other arrays than those of a graph")
    states, symbols = texts(config["states"], "the states"), texts(config["symbols"], "the symbols")
    require(states and 1 <= len(symbols) <= 2, "there are no states, or not two symbols")
    whole(config["cells"], "the number of cells", 2, MOST_CELLS)
    down = array(arrays, "down", np.int8, (None, None))
    vertices, tapes = down.shape
    fits = 1 <= tapes < 32 and vertices == len(states) << tapes
    require(fits, "the array 'down' does not fit the states and tapes")
    for name in ("written", "moves"):
        array(arrays, name, np.int8, down.shape)
    array(arrays, "vertex_weight", np.float64, (vertices,))
    edges = array(arrays, "edge_weight", np.float64, (None,)).shape
    for name in ("edge_from", "edge_to"):
        fits = arrays[name].shape == edges and arrays[name].dtype.kind == "i"
        require(fits, "there is not a weight for each edge")
    signs = np.where(np.arange(1 << tapes)[:, None] >> np.arange(tapes) & 1, 1, -1)
    require(
        np.array_equal(down, np.tile(signs, (len(states), 1))),
        "some vertex does not show the symbols that its number says",
    )
    return tapes


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


def _edges(arrays: Arrays, running: NDArray[np.bool_], tapes: int, b: int) -> NDArray[np.int64]:
    """For each vertex the first one of the state that comes next; -1 where it halts."""
    source, target = arrays["edge_from"].astype(np.int64), arrays["edge_to"].astype(np.int64)
    weight, vertices, fan = arrays["edge_weight"], len(running), 1 << tapes
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
    successors = np.full(vertices, -1, np.int64)
    successors[source[order][::fan]] = blocks[:, 0]
    return successors


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
