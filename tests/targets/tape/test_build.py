"""The constants and the graph of a tape net by hand, and a bad one for every condition."""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from tapegrad.errors import BrokenNet, Refused
from tapegrad.machines.model import Rule, TuringMachine
from tapegrad.targets.tape import build
from tapegrad.targets.tape.build import Constants, Graph, build_graph, choose


@pytest.mark.parametrize("tapes", range(1, 9))
@pytest.mark.parametrize("final_loss", [0.0, 0.5, 1e4, 123456.7])
@pytest.mark.sampled(4)
def test_constants_are_the_smallest_that_will_do(tapes: int, final_loss: float) -> None:
    found = choose(tapes, final_loss)
    b, c = found.b, found.c
    assert b & (b - 1) == 0

    def gap(b: int) -> int:
        return b**3 - 8 * b**2 * tapes - 3 * tapes

    assert gap(b) > 3 >= gap(b // 2)
    assert 2 * b**3 >= b**3 + tapes * b  # (18)
    assert b**3 - 2 * tapes * b >= 4 * tapes * b**2
    assert b**2 > b
    assert found.halted_at_most == c - gap(b) < found.low < found.high < c
    assert found.high - found.low == c - found.high == gap(b) // 3
    assert found.low > final_loss
    assert found.exact
    losses = [c + tapes + 2 * i + 8 * b**2 * j for i, j in product(range(tapes + 1), repeat=2)]
    for smaller in range(max(b**3 + 1, int(np.ceil(final_loss)) + 2 * (gap(b) // 3) + 1), c + 1):
        roots = np.sqrt(2.0 * (np.array(losses) - c + smaller))
        assert (roots * (0.5 / roots) == 0.5).all() == (smaller == c)


def test_losses_that_are_too_large_are_refused() -> None:
    """c and 16 b^3 are to be at most 2^50; b is 16 for one tape, and two thirds of the gap are 1,362."""
    most = 2**50 - 2**16 - 1363
    assert choose(1, most).c + 2**16 <= 2**50 + build._TRIES
    with pytest.raises(Refused, match="too large for double precision"):
        choose(1, most + 1)


def test_where_no_chain_rule_is_exact_the_constants_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert build._first_exact(4097, 1, 16) == 1
    monkeypatch.setattr(build, "_TRIES", 0)
    assert build._first_exact(4097, 1, 16) is None
    choose.cache_clear()
    found = choose(1, 0.5)
    choose.cache_clear()
    assert (found.c, found.exact) == (4097, False)


MACHINE = TuringMachine(
    {
        ("a", ("0", "1")): Rule(("1", "0"), (1, -1), "b"),
        ("b", ("1", "1")): Rule(("1", "1"), (-1, -1), "c"),
    },
    "a",
    blank="0",
    alphabet=("0", "1"),
)
CONSTANTS = Constants(2, 10, 0, 0, 0, True)


def test_the_graph_of_a_machine() -> None:
    """Vertices are a00, a10, a01, a11, b00, ...: the first tape is the lowest bit."""
    graph = build_graph(MACHINE, CONSTANTS)
    assert graph.checked() is graph
    assert build.sizes(MACHINE) == (12, 8)
    assert graph.down.tolist() == [[-1, -1], [1, -1], [-1, 1], [1, 1]] * 3
    assert graph.vertex_weight.tolist() == [0.0 if vertex in (2, 7) else -1000.0 for vertex in range(12)]
    moving = {vertex: graph.moves[vertex].tolist() for vertex in range(12) if graph.moves[vertex].any()}
    assert moving == {2: [1, -1], 7: [-1, -1]}
    changed = np.flatnonzero((graph.written != graph.down).any(axis=1)).tolist()
    assert (changed, graph.written[2].tolist()) == ([2], [1, -1])
    assert graph.edge_from.tolist() == [2] * 4 + [7] * 4
    assert graph.edge_to.tolist() == [4, 5, 6, 7, 8, 9, 10, 11]
    assert (-graph.edge_weight).tolist() == [1010, 1000, 1020, 1010, 1000, 1010, 1010, 1020]


def rule(state: str, move: int = 1, write: str = "1") -> Rule:
    return Rule((write,), (move,), state)


BAD: list[tuple[str, TuringMachine]] = [
    ("has 3 symbols", TuringMachine({("a", ("0",)): rule("b", write="2")}, "a", blank="0", alphabet=("1",))),
    ("may stay in its place", TuringMachine({("a", ("0",)): rule("b", 0)}, "a", blank="0")),
    ("lead to each other", TuringMachine({("a", ("0",)): rule("a")}, "a", blank="0")),
    (
        "lead to each other",
        TuringMachine({("a", ("0",)): rule("b"), ("b", ("1",)): rule("a")}, "a", blank="0"),
    ),
]


@pytest.mark.parametrize(("reason", "machine"), BAD)
def test_a_machine_that_this_loss_does_not_know_is_refused(reason: str, machine: TuringMachine) -> None:
    with pytest.raises(Refused, match=reason):
        build_graph(machine, CONSTANTS)


def test_limits_on_vertices_and_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (build.MOST_VERTICES, build.MOST_EDGES) == (1 << 22, 1 << 24)
    for vertices, edges, enough in ((12, 8, True), (11, 8, False), (12, 7, False)):
        monkeypatch.setattr(build, "MOST_VERTICES", vertices)
        monkeypatch.setattr(build, "MOST_EDGES", edges)
        if enough:
            build_graph(MACHINE, CONSTANTS)
        else:
            with pytest.raises(Refused, match="would have 12 vertices and 8 edges"):
                build_graph(MACHINE, CONSTANTS)


BROKEN: list[tuple[str, dict[str, Any]]] = [
    ("do not fit together", {"down": np.zeros((12, 3), np.int8)}),
    ("do not fit together", {"written": np.zeros((11, 2), np.int8)}),
    ("do not fit together", {"moves": np.zeros((12, 2))}),
    ("do not fit together", {name: np.zeros(12, np.int8) for name in ("down", "written", "moves")}),
    ("do not fit together", {"vertex_weight": np.zeros(11)}),
    ("do not fit together", {"vertex_weight": np.zeros((12, 1))}),
    ("do not fit together", {"vertex_weight": np.zeros(12, int)}),
    ("do not fit together", {"edge_weight": np.zeros(7)}),
    ("do not fit together", {"edge_from": np.zeros(7, np.int32)}),
    ("do not fit together", {"edge_to": np.zeros(8)}),
    ("moves by more than a cell", {"moves": np.full((12, 2), 2, np.int8)}),
    ("moves by more than a cell", {"moves": np.full((12, 2), -128, np.int8)}),
    ("leads to no vertex", {"edge_to": np.full(8, 12, np.int32)}),
    ("leads to no vertex", {"edge_from": np.full(8, -1, np.int32)}),
]


@pytest.mark.parametrize(("reason", "change"), BROKEN)
def test_arrays_that_do_not_fit_are_refused(reason: str, change: dict[str, Any]) -> None:
    graph: Graph = replace(build_graph(MACHINE, CONSTANTS), **change)
    with pytest.raises(BrokenNet, match=reason):
        graph.checked()
