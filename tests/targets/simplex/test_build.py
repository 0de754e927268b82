"""Vertices and weights of a simplex by hand, and the bounds within which there are any."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tapegrad.errors import BrokenNet, InputError, Refused, SourceError
from tapegrad.machines.model import Configuration, Rule, TuringMachine
from tapegrad.targets.simplex import build
from tapegrad.targets.simplex.build import (
    Levels,
    choose,
    configuration,
    key,
    look_up,
    reachable,
    starts_up_to,
)

MACHINE = TuringMachine(
    {
        ("a", ("x", "_")): Rule(("y", "x"), (1, -1), "a"),
        ("a", ("_", "_")): Rule(("_", "y"), (-1, 0), "b"),
    },
    "a",
    alphabet=("_", "x", "y"),
)
"""Runs over the x of its first tape."""
RUN = list(MACHINE.run(MACHINE.start("x")))
"""Of two steps: to cells -1 to 1."""


def test_every_configuration_is_a_vertex() -> None:
    found = reachable(MACHINE, [MACHINE.start("x"), MACHINE.start("y"), RUN[1]], 9, strict=True)
    assert found.successor.tolist() == [1, 2, 2, 3]
    assert (found.state.tolist(), found.first_cell) == ([0, 0, 1, 0], -1)
    assert found.heads.tolist() == [[0, 0], [1, -1], [0, -1], [0, 0]]
    assert found.cells[:, 0].tolist() == [[0, 1, 0], [0, 2, 0], [0, 2, 0], [0, 2, 0]]
    assert found.cells[:, 1].tolist() == [[0, 0, 0], [0, 1, 0], [2, 1, 0], [0, 0, 0]]
    assert [configuration(found, row, MACHINE.states, MACHINE.alphabet) for row in range(3)] == RUN
    table = {key(own): row for row, own in enumerate(RUN)}
    assert [look_up(table, own) for own in RUN] == [0, 1, 2]
    with pytest.raises(InputError, match="no vertex for this input"):
        look_up(table, MACHINE.start("xx"))
    assert build.all_configurations(MACHINE, 3) == 2 * 3**6 * 3**2


def test_words_up_to_a_length_have_no_blanks() -> None:
    words = [start.tapes[0] for start in starts_up_to(MACHINE, 2)]
    assert words[:3] == [{}, {0: "x"}, {0: "y"}]
    assert words[3:] == [{0: a, 1: b} for a in "xy" for b in "xy"]
    assert len(starts_up_to(MACHINE, 0)) == 1


def test_runs_that_are_too_long_are_refused_or_left_out() -> None:
    starts = [MACHINE.start("x"), MACHINE.start("xx")]
    assert len(reachable(MACHINE, starts, 3, strict=True).state) == 7
    assert len(reachable(MACHINE, starts, 2, strict=False).state) == 3
    with pytest.raises(Refused, match="does not halt within 2 steps") as refused:
        reachable(MACHINE, starts, 2, strict=True)
    assert refused.value.where == "input 2 of 2"
    with pytest.raises(Refused, match="halts on none of 2 inputs within 1 steps"):
        reachable(MACHINE, starts, 1, strict=False)


def test_limits_on_vertices_and_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four vertices of two tapes with three cells each are 24."""
    starts = [MACHINE.start("x"), MACHINE.start("y")]
    assert (build.MOST_VERTICES, build.MOST_CELLS) == (1 << 18, 1 << 28)
    for name, enough in (("MOST_VERTICES", 4), ("MOST_CELLS", 24)):
        monkeypatch.setattr(build, name, enough)
        assert len(reachable(MACHINE, starts, 9, strict=True).state) == 4
        monkeypatch.setattr(build, name, enough - 1)
        with pytest.raises(Refused, match=r"would need 4 vertices and more, each with [26] cells"):
            reachable(MACHINE, starts, 9, strict=True)
        monkeypatch.undo()
    far = [Configuration("a", ({0: "x", 99: "x"}, {}), (0, 0))]
    monkeypatch.setattr(build, "MOST_CELLS", 200)  # room for one vertex of two tapes with 100 cells
    with pytest.raises(Refused, match="would need 2 vertices and more"):
        reachable(MACHINE, far, 9, strict=True)


BAD: list[tuple[str, dict[str, Any]]] = [
    ("do not fit together", {"state": np.zeros(2, int)}),
    ("do not fit together", {"heads": np.zeros((3, 1), int)}),
    ("do not fit together", {"heads": np.zeros(3, int)}),
    ("do not fit together", {"cells": np.zeros((3, 2), int)}),
    ("do not fit together", {"cells": np.zeros((2, 2, 3), int)}),
    ("do not fit together", {"successor": np.zeros((3, 1), int)}),
    ("whole numbers", {"heads": np.zeros((3, 2))}),
    ("whole numbers", {"state": np.zeros(3)}),
    ("that there is not", {"state": np.array([0, 0, 2])}),
    ("that there is not", {"state": np.array([0, 0, -1])}),
    ("that there is not", {"successor": np.array([0, 1, 3])}),
    ("that there is not", {"cells": np.full((3, 2, 3), 3)}),
]


@pytest.mark.parametrize(("reason", "change"), BAD)
def test_arrays_that_do_not_fit_are_refused(reason: str, change: dict[str, Any]) -> None:
    vertices = reachable(MACHINE, RUN[:1], 9, strict=True)
    assert vertices.checked(2, 3) is vertices
    with pytest.raises(BrokenNet, match=reason):
        replace(vertices, **change).checked(2, 3)


def test_levels_by_hand() -> None:
    levels = Levels(4, 5)
    assert (levels.low, levels.high, levels.outside) == (8, 12, 4 * 19)
    assert [choose(1, loss).unit for loss in (0.0, 0.5, 1.9, 2.0, 3.9, 4.0, 100.0)] == [1, 1, 1, 2, 2, 4, 64]
    most = (2**50 - 4) // 3
    assert choose(most, 0.5).outside == 2**50
    with pytest.raises(Refused, match="too much for double precision"):
        choose(most + 1, 0.5)


def test_steps_that_are_left() -> None:
    successor = np.array([1, 2, 3, 3, 0, 5, 5, 4], np.int32)
    assert build.steps_left(successor).tolist() == [3, 2, 1, 0, 4, 0, 1, 5]
    with pytest.raises(SourceError, match="go round in a circle"):
        build.steps_left(np.array([1, 2, 0, 3], np.int32))


def test_weights_by_hand() -> None:
    found = build.weighted(np.array([1, 2, 2, 1], np.int32), Levels(2, 3))
    assert found["vertex_weight"].tolist() == [14.0, 8.0, 2.0, 14.0]
    assert [found[name].tolist() for name in ("edge_from", "edge_to")] == [[0, 1, 3], [1, 2, 1]]
    assert found["edge_weight"].tolist() == [11.0, 5.0, 11.0]
