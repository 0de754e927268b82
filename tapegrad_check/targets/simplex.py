"""The independent checker of `simplex` nets: that descent on these weights walks from configuration to
configuration of the source, with the loss falling all the way.

It knows nothing of the compiler. It derives, from the arrays alone, the conditions (10) and (15) on the
weights, hence that the steepest descent from a vertex leads to its successor and from a halted one nowhere.
Then it takes every vertex as a configuration of the source, and its successor must be what one step of the
source makes of it. A net has no vertex for an input that it was not built for, and refuses it.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.fields import array, texts, whole
from tapegrad_check.folder import Arrays, Checked, require
from tapegrad_check.sources import Machine, Model
from tapegrad_check.targets.tape import LARGEST, LONE_LOSS

Case = tuple[int, ...]
"""The number of a state, and of the symbol under each head."""
Action = tuple[int, ...]
"""The number of the next state, of the symbols written, and the moves."""


def check(
    config: dict[str, Any], arrays: Arrays, certificate: dict[str, Any], source: Model | None
) -> Checked:
    """What was proved, in sentences; `CheckError` names the first thing that does not hold."""
    unit, most = (
        whole(config["unit"], "the unit", 1, LARGEST),
        whole(config["most_steps"], "the steps", 0, LARGEST),
    )
    require(isinstance(config["line_search"], bool), "there is a line search or there is none")
    vertices = _shapes(config, arrays)
    running = arrays["successor"] != np.arange(vertices)
    _edges(arrays, running)
    require(certificate["final_loss"] == LONE_LOSS, "a net without a primary network ends with another loss")
    _weights(arrays, running, unit, most)
    table = _one_machine(arrays, running, config["first_cell"])
    for name, found in (("vertices", vertices), ("steps", most), ("drop", 3 * unit)):
        require(
            certificate[name] == found, f"the certificate claims {name} = {certificate[name]}, not {found}"
        )
    statements = [
        f"the weights of {vertices:,} vertices and {int(running.sum()):,} edges satisfy (10) and (15)",
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
    types = {"state": np.int32, "successor": np.int32, "vertex_weight": np.float64}
    for name, dtype in types.items():
        array(arrays, name, dtype, (vertices,))
    array(arrays, "heads", np.int32, (vertices, tapes))
    edges = array(arrays, "edge_weight", np.float64, (None,)).shape
    for name in ("edge_from", "edge_to"):
        array(arrays, name, np.int32, edges)
    named = {*types, "cells", "heads", "edge_weight", "edge_from", "edge_to"}
    require(arrays.keys() == named, "there are other arrays than those of a simplex")
    for name, size in (("state", len(states)), ("cells", len(symbols)), ("successor", vertices)):
        require(
            bool(np.all((arrays[name] >= 0) & (arrays[name] < size))), f"a number in {name!r} is out of range"
        )
    places = arrays["heads"].astype(np.int64) - first
    require(bool(np.all((places >= 0) & (places < cells))), "a head is off its tape")
    return vertices


def _edges(arrays: Arrays, running: NDArray[np.bool_]) -> None:
    sources = np.flatnonzero(running)
    require(
        np.array_equal(arrays["edge_from"], sources), "there is not one edge from every vertex that runs on"
    )
    require(np.array_equal(arrays["edge_to"], arrays["successor"][sources]), "an edge misses the successor")


def _weights(arrays: Arrays, running: NDArray[np.bool_], unit: int, most: int) -> None:
    """Conditions on all weights. That no way back is steeper, the other half of (10), follows: the means of
    weights that fall are lower from edge to edge."""
    weight, edge = arrays["vertex_weight"], arrays["edge_weight"]
    source, target = arrays["edge_from"], arrays["edge_to"]
    outside = unit * (1 + 3 * (most + 1))
    require(outside < LARGEST, "the levels do not fit double precision")
    require(bool(np.all(np.abs(weight) < outside)), "(10) fails: B does not exceed every weight")
    require(
        bool(np.all((weight[source] > edge) & (edge > weight[target]))), "(15) fails: an edge is not downhill"
    )
    require(
        np.array_equal(edge, (weight[source] + weight[target]) / 2), "an edge is not the mean of its ends"
    )
    require(bool(np.all(weight[~running] == unit)), "a halted vertex does not weigh one unit, below B_stop")
    require(bool(np.all(weight[running] > 3 * unit)), "a running vertex is not above B_high")
    require(bool(np.all(weight[source] - weight[target] == 3 * unit)), "the loss falls unevenly")


def _one_machine(arrays: Arrays, running: NDArray[np.bool_], first_cell: int) -> dict[Case, Action | None]:
    """What the vertices show of a table: for each state and symbols read that occur, what is done, or that
    the machine halts. Equal cases must always lead to the same."""
    cells, (state, heads) = arrays["cells"], (arrays[name].astype(np.int64) for name in ("state", "heads"))
    rows, tape = np.arange(len(state))[:, None], np.arange(cells.shape[1])[None, :]
    read = cells[rows, tape, heads - first_cell].astype(np.int64)
    source, target = arrays["edge_from"], arrays["edge_to"]
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
