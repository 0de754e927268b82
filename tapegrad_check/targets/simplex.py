"""The independent checker of `simplex` nets: that descent on these weights walks from configuration to
configuration of the source, with the loss falling all the way.

It knows nothing of the compiler. It writes the loss (13) down once more, with the weights and edges of the
network, and the network must be that, node by node. It derives from the numbers alone the conditions (10) and
(15) on the weights, hence that the steepest descent from a vertex leads to its successor and from a halted
one nowhere. Then it takes every vertex as a configuration of the source, and its successor must be what one
step of the source makes of it. A net has no vertex for an input that it was not built for, and refuses it.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.fields import array, texts, whole
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
    stop_of,
    value_of,
)
from tapegrad_check.sources import Machine, Model
from tapegrad_check.targets.tape import LARGEST, LONE_LOSS
from tapegrad_check.terms import Terms

Case = tuple[int, ...]
"""The number of a state, and of the symbol under each head."""
Action = tuple[int, ...]
"""The number of the next state, of the symbols written, and the moves."""


ENTRIES = {"states", "symbols", "first_cell"}


class Edges(NamedTuple):
    """An edge from every vertex that runs on to its successor, and the weights of (10) and (15)."""

    source: NDArray[np.int64]
    target: NDArray[np.int64]
    edge_weight: NDArray[np.float64]
    vertex_weight: NDArray[np.float64]
    running: NDArray[np.bool_]


def check(
    config: dict[str, Any], arrays: Arrays, certificate: dict[str, Any], source: Model | None, graph: Graph
) -> Checked:
    """What was proved, in sentences; `CheckError` names the first thing that does not hold."""
    require(config.keys() == ENTRIES, "the net has other entries than one of a simplex")
    vertices = _shapes(config, arrays)
    outside = number_of(graph, "outside")
    edges = _edges(graph, vertices, outside)
    unit, most = _levels(stop_of(graph), outside)
    line_search = _loss(graph, vertices, unit, outside)
    require(certificate["final_loss"] == LONE_LOSS, "a net without a primary network ends with another loss")
    _weights(edges, unit, outside)
    table = _one_machine(arrays, edges, config["first_cell"])
    for name, found in (("vertices", vertices), ("steps", most), ("drop", 3 * unit)):
        require(
            certificate[name] == found, f"the certificate claims {name} = {certificate[name]}, not {found}"
        )
    statements = [
        f"the network is the loss (13), trained {'with a line search' if line_search else 'in unit steps'}",
        f"the weights of {vertices:,} vertices and {len(edges.source):,} edges satisfy (10) and (15)",
        f"from every vertex the steepest descent leads to its successor, and the loss falls by {3 * unit}",
        f"halted lies below B_stop, running above, and no run takes more than {most:,} steps",
        f"all successors obey one table of {sum(action is not None for action in table.values()):,} rules",
    ]
    if source is not None:
        require(isinstance(source, Machine), "the source of the net is no machine")
        assert isinstance(source, Machine)
        _is_of(source, config, table, arrays["cells"].shape[1])
        statements.append(
            "states, symbols and rules are those of the source: every vertex is one of its configurations, "
            "and an input that has no vertex is refused"
        )
    return Checked(statements)


def _is_of(machine: Machine, config: dict[str, Any], table: Mapping[Case, Action | None], tapes: int) -> None:
    require(tuple(config["states"]) == machine.states, "the states are not those of the source")
    require(tuple(config["symbols"]) == machine.alphabet, "the symbols are not those of the source")
    require(tapes == machine.tapes, "the net has another number of tapes than the source")
    state = {name: index for index, name in enumerate(machine.states)}
    symbol = {name: index for index, name in enumerate(machine.alphabet)}
    for (number, *read), action in table.items():
        rule = machine.rules.get((machine.states[number], tuple(machine.alphabet[one] for one in read)))
        wanted = rule and (state[rule.state], *(symbol[one] for one in rule.write), *rule.moves)
        require(
            action == wanted,
            f"in state {machine.states[number]!r} the net does something else than its source",
        )


def _shapes(config: dict[str, Any], arrays: Arrays) -> int:
    """The number of vertices."""
    states, symbols = texts(config["states"], "the states"), texts(config["symbols"], "the symbols")
    first = whole(config["first_cell"], "the first cell", -(1 << 31), 1 << 31)
    vertices, tapes, cells = array(arrays, "cells", np.uint16, (None, None, None)).shape
    require(vertices > 0 and tapes > 0, "there are no vertices, or no tapes")
    array(arrays, "state", np.int32, (vertices,))
    array(arrays, "heads", np.int32, (vertices, tapes))
    require(arrays.keys() == {"state", "heads", "cells"}, "there are other arrays than those of a simplex")
    for name, size in (("state", len(states)), ("cells", len(symbols))):
        require(
            bool(np.all((arrays[name] >= 0) & (arrays[name] < size))), f"a number in {name!r} is out of range"
        )
    places = arrays["heads"].astype(np.int64) - first
    require(bool(np.all((places >= 0) & (places < cells))), "a head is off its tape")
    return vertices


def _edges(graph: Graph, vertices: int, outside: float) -> Edges:
    """Weights stand in the loss less B, in double precision, where such numbers differ exactly."""
    shape = sizes_of(graph, "s", 1)
    require(shape == (vertices,), "there are other vertices than configurations")
    source, target = index_of(graph, "edge_from"), index_of(graph, "edge_to")
    weight, level = (value_of(graph, f"{name}_weight") for name in ("edge", "vertex"))
    fits = weight.shape == source.shape == target.shape and level.shape == shape
    require(fits and abs(outside) < LARGEST, "there is not a weight for each vertex and edge")
    require((np.abs(level) < LARGEST).all() and (np.abs(weight) < LARGEST).all(), "a weight is out of range")
    require((np.diff(source) > 0).all(), "there is not one edge from every vertex that runs on")
    require((source != target).all(), "an edge leads back to where it begins")
    running = np.isin(np.arange(vertices), source)
    return Edges(source, target, weight + outside, level + outside, running)


def successors(graph: Graph) -> list[int]:
    """Where the edge from each vertex leads, of a net that was checked; the vertex itself where there is
    none."""
    found = np.arange(*sizes_of(graph, "s", 1))
    found[index_of(graph, "edge_from")] = index_of(graph, "edge_to")
    return found.tolist()


def _levels(stop: float, outside: float) -> tuple[int, int]:
    """The unit, and the most steps of a run: B_stop = 2 units, B = (1 + 3 (steps + 1)) units."""
    unit = whole(int(stop / 2), "the unit", 1, LARGEST)
    most = whole(int((outside / unit - 4) / 3), "the steps", 0, LARGEST)
    require(stop == 2 * unit, "B_stop is not two units")
    require(outside == unit * (1 + 3 * (most + 1)), "B is not the weight of a step more than there are")
    return unit, most


def _loss(graph: Graph, vertices: int, unit: int, outside: float) -> bool:
    """(13) with B taken out, node by node; gives whether a line search finds the length of a step."""
    terms = Terms()
    s, z = terms.input("s"), terms.input("z")
    first, second = (s.take(index_of(graph, name), name) for name in ("edge_from", "edge_to"))
    edge = (2 * (first + second) - 1).relu() - corner(first, 1 / 2) - corner(second, 1 / 2)
    at_vertices, at_edges = (
        (terms.constant(value_of(graph, name), name, about) * shown).total()
        for name, about, shown in (
            ("vertex_weight", "w_v - B", corner(s, 1 / 2)),
            ("edge_weight", "w_vw - B", edge),
        )
    )
    traced = terms.constant(outside, "outside", "B") + at_vertices + at_edges
    labels, bounds = z.detach("labels", "dotted in figure 1"), Switches(1.0, 2.0 * unit, 3.0 * unit)
    output = extended(traced, terms.constant(0.0), z, labels, LONE["z"], bounds)
    rule = graph.training
    search = rule is not None and "s" in rule.updates and rule.updates["s"].line_search
    updates = {"s": Update("vertex", 1.0, search), "z": GRADIENT}
    require_loss(graph, terms, output, {"s": (vertices,), **LONE}, Training("loss", updates, bounds.low))
    return search


def _weights(edges: Edges, unit: int, outside: float) -> None:
    """Conditions on all weights. That no way back is steeper, the other half of (10), follows: the means of
    weights that fall are lower from edge to edge."""
    weight, edge, running = edges.vertex_weight, edges.edge_weight, edges.running
    before, after = weight[edges.source], weight[edges.target]
    require(bool(np.all(np.abs(weight) < outside)), "(10) fails: B does not exceed every weight")
    require(bool(np.all((before > edge) & (edge > after))), "(15) fails: an edge is not downhill")
    require(np.array_equal(edge, (before + after) / 2), "an edge is not the mean of its ends")
    require(bool(np.all(weight[~running] == unit)), "a halted vertex does not weigh one unit, below B_stop")
    require(bool(np.all(weight[running] > 3 * unit)), "a running vertex is not above B_high")
    require(bool(np.all(before - after == 3 * unit)), "the loss falls unevenly")


def _one_machine(arrays: Arrays, edges: Edges, first_cell: int) -> dict[Case, Action | None]:
    """What the vertices show of a table: for each state and symbols read that occur, what is done, or that
    the machine halts. Equal cases must always lead to the same."""
    cells, (state, heads) = arrays["cells"], (arrays[name].astype(np.int64) for name in ("state", "heads"))
    rows, tape = np.arange(len(state))[:, None], np.arange(cells.shape[1])[None, :]
    read = cells[rows, tape, heads - first_cell].astype(np.int64)
    source, target, running = edges.source, edges.target, edges.running
    written = cells[target[:, None], tape, heads[source] - first_cell].astype(np.int64)
    moves = heads[target] - heads[source]
    require(bool(np.all(np.abs(moves) <= 1)), "a head moves by more than one cell")
    expected = cells[source]
    expected[np.arange(len(source))[:, None], tape, heads[source] - first_cell] = written
    require(np.array_equal(expected, cells[target]), "a cell changes that is under no head")
    situation = np.column_stack([state[:, None], read])
    action = np.column_stack([state[target][:, None], written, moves])
    table: dict[Case, Action | None] = {}
    for case in np.unique(situation[~running], axis=0).tolist():
        table[tuple(case)] = None
    pairs = np.unique(np.column_stack([situation[source], action]), axis=0).tolist()
    for pair in pairs:
        case, done = tuple(pair[: situation.shape[1]]), tuple(pair[situation.shape[1] :])
        require(
            table.get(case, done) == done, "equal states and symbols lead to different actions, or to a halt"
        )
        table[case] = done
    return table
