"""The independent checker of `simplex` nets: that descent on these weights walks from configuration to
configuration of one and the same machine, with the loss falling all the way.

It knows nothing of the compiler. It derives, from the arrays alone, the conditions (10) and (15) on the
weights, hence that the steepest descent from a vertex leads to its successor and from a halted one nowhere;
and that all successors together obey one table of rules: equal state and equal symbols under the heads always
mean equal action, nothing changes away from the heads, and no head moves by more than one cell.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.folder import OWN_TABLE, Arrays, Checked, require
from tapegrad_check.sources import Model


def check(
    config: dict[str, Any], arrays: Arrays, certificate: dict[str, Any], source: Model | None = None
) -> Checked:
    """What was re-derived, in sentences; `CheckError` names the first thing that does not hold."""
    vertices, unit, most = len(arrays["state"]), int(config["unit"]), int(config["most_steps"])
    _shapes(config, arrays, vertices)
    running = arrays["successor"] != np.arange(vertices)
    _edges(arrays, running)
    _weights(arrays, running, unit, most, float(certificate["final_loss"]))
    rules = _one_machine(arrays, running, int(config["first_cell"]))
    for name, found in (("vertices", vertices), ("steps", most), ("drop", 3 * unit)):
        require(
            certificate[name] == found, f"the certificate claims {name} = {certificate[name]}, not {found}"
        )
    return Checked(
        [
            f"the weights of {vertices:,} vertices and {int(running.sum()):,} edges satisfy (10) and (15)",
            f"from every vertex the steepest descent leads to its successor, and the loss falls by {3 * unit}",
            f"halted lies below B_stop, running above, and no run takes more than {most:,} steps",
            f"all successors obey one table of {rules:,} rules",
        ],
        OWN_TABLE,
    )


def _shapes(config: dict[str, Any], arrays: Arrays, vertices: int) -> None:
    tapes = arrays["cells"].shape[1]
    require(
        arrays["cells"].ndim == 3 and len(arrays["cells"]) == vertices > 0, "cells do not fit the vertices"
    )
    require(arrays["heads"].shape == (vertices, tapes), "heads do not fit the vertices")
    require(arrays["successor"].shape == (vertices,), "successors do not fit the vertices")
    require(arrays["vertex_weight"].shape == (vertices,), "weights do not fit the vertices")
    for name, size in (
        ("state", len(config["states"])),
        ("cells", len(config["symbols"])),
        ("successor", vertices),
    ):
        require(
            bool(np.all((arrays[name] >= 0) & (arrays[name] < size))), f"a number in {name!r} is out of range"
        )
    places = arrays["heads"] - int(config["first_cell"])
    require(bool(np.all((places >= 0) & (places < arrays["cells"].shape[2]))), "a head is off its tape")


def _edges(arrays: Arrays, running: NDArray[np.bool_]) -> None:
    sources = np.flatnonzero(running)
    require(
        np.array_equal(arrays["edge_from"], sources), "there is not one edge from every vertex that runs on"
    )
    require(np.array_equal(arrays["edge_to"], arrays["successor"][sources]), "an edge misses the successor")


def _weights(arrays: Arrays, running: NDArray[np.bool_], unit: int, most: int, final_loss: float) -> None:
    weight, edge = arrays["vertex_weight"], arrays["edge_weight"]
    source, target = arrays["edge_from"], arrays["edge_to"]
    outside = unit * (1 + 3 * (most + 1))
    require(unit >= 1 and outside < 2**50, "the levels do not fit double precision")
    require(
        bool(np.all((weight[source] > edge) & (edge > weight[target]))), "(15) fails: an edge is not downhill"
    )
    require(
        np.array_equal(edge, (weight[source] + weight[target]) / 2), "an edge is not the mean of its ends"
    )
    onward = np.full(len(weight), np.inf)
    onward[source] = edge
    require(
        bool(np.all(edge[running[target]] > onward[target][running[target]])),
        "(10) fails: a way back is steeper",
    )
    require(float(weight.max()) < outside, "(10) fails: B does not exceed every weight")
    low, high = 2 * unit, 3 * unit
    require(
        bool(np.all(weight[~running] < low)) and float(weight.min()) > 0,
        "a halted vertex is not below B_stop",
    )
    require(bool(np.all(weight[running] > high)), "a running vertex is not above B_high")
    require(final_loss < low, "B_stop does not exceed the final loss of the primary network")
    require(bool(np.all(weight[source] - weight[target] == 3 * unit)), "the loss falls unevenly")


def _one_machine(arrays: Arrays, running: NDArray[np.bool_], first_cell: int) -> int:
    """The number of different rules that the edges show; each (state, symbols read) must have one."""
    state, cells, heads = arrays["state"], arrays["cells"], arrays["heads"]
    rows, tape = np.arange(len(state))[:, None], np.arange(cells.shape[1])[None, :]
    read = cells[rows, tape, heads - first_cell].astype(np.int64)
    source, target = arrays["edge_from"], arrays["edge_to"]
    written = cells[target[:, None], tape, heads[source] - first_cell].astype(np.int64)
    moves = heads[target] - heads[source]
    require(bool(np.all(np.abs(moves) <= 1)), "a head moves by more than one cell")
    expected = cells[source].copy()
    expected[np.arange(len(source))[:, None], tape, heads[source] - first_cell] = written
    require(np.array_equal(expected, cells[target]), "a cell changes that is under no head")
    situation = np.column_stack([state[:, None], read])
    action = np.column_stack([state[target][:, None], written, moves])
    different = np.unique(situation[source], axis=0)
    pairs = np.unique(np.column_stack([situation[source], action]), axis=0)
    require(len(different) == len(pairs), "equal states and symbols lead to different actions")
    halted = {tuple(row) for row in np.unique(situation[~running], axis=0).tolist()}
    require(halted.isdisjoint(map(tuple, different.tolist())), "a vertex halts where the machine has a rule")
    return len(pairs)
