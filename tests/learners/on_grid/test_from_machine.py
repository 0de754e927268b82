"""One-tape machines as learners on the grid, against the machines themselves and against plain Python."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapegrad.errors import InputError, Refused
from tapegrad.learners.on_grid import start
from tapegrad.lowering.grid_learner import from_machine
from tapegrad.machines import compiled
from tapegrad.machines.builder import MachineBuilder
from tapegrad.machines.model import Rule, TuringMachine

LINE = "+-=,?"


def last_label() -> TuringMachine:
    b = MachineBuilder("last label", symbols=LINE)
    b.seek("right", "?")
    b.seek("left", ",")
    b.move("left")
    with b.if_("+"):
        b.accept()
    b.reject()
    return b.machine()


def parity_of_the_point() -> TuringMachine:
    """Accepts if an even number of signs of the test point are -."""
    b = MachineBuilder("parity of the point", symbols=LINE)
    b.seek("right", "?")
    b.move("left")
    with b.loop():
        b.skip("left", "+")
        with b.if_(","):
            b.accept()
        b.move("left")
        b.skip("left", "+")
        with b.if_(","):
            b.reject()
        b.move("left")
    return b.machine()


def majority_label() -> TuringMachine:
    """Crosses out pairs of opposite labels; what is left is the majority. It accepts a draw."""
    b = MachineBuilder("majority label", symbols=[*LINE, "0"])  # a symbol that is the grid's blank
    with b.loop():
        b.seek("right", "=", "?")
        with b.if_("?"):
            b.accept()
        b.write("0")
        b.move("right")
        for label in b.each("+", "-"):
            with b.loop() as search:
                b.seek("right", "=", "?")
                with b.if_("?"):
                    (b.accept if label == "+" else b.reject)()
                b.move("right")
                with b.if_("-" if label == "+" else "+"):
                    b.move("left")
                    b.write("0")
                    b.break_(search)
        b.seek("left", "_")
        b.move("right")
    return b.machine()


CASES = {
    "last label": (last_label(), lambda X, y, x: y[-1]),
    "parity of the point": (parity_of_the_point(), lambda X, y, x: x.prod()),
    "majority label": (majority_label(), lambda X, y, x: 1 if y.sum() >= 0 else -1),
}


def problem(rng: Any, m: int, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return rng.choice([-1, 1], (m, d)), rng.choice([-1, 1], m), rng.choice([-1, 1], d)


def line(X: Any, y: Any, x: Any) -> str:
    """The line as the documentation has it, written without the grid."""
    signs = ["".join("+" if bit > 0 else "-" for bit in row) for row in [*X, x]]
    samples = [f"{row}={'+' if label > 0 else '-'}," for row, label in zip(signs, y, strict=False)]
    return "".join(samples) + signs[-1] + "?"


@pytest.mark.parametrize("name", CASES)
@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 4))
def test_answers_what_the_machine_answers(name, seed, m, d):
    machine, expected = CASES[name]
    made = from_machine(machine, m, d)
    X, y, x = problem(np.random.default_rng(seed), m, d)
    ended = compiled.run(made.machine, start(made.machine, X, y, x), 100_000)
    main = {c: s for c, s in ended.final.cells.items() if 0 <= c[0] <= m and 0 <= c[1] <= d}
    own = compiled.run(machine, machine.start(line(X, y, x)), 100_000)
    assert ended.halted
    assert main == {(0, 0): "+" if own.final.state in machine.accept else "-"}
    assert main == {(0, 0): "+" if expected(X, y, x) > 0 else "-"}


@pytest.mark.parametrize("name", CASES)
def test_every_step_of_the_machine_is_a_step_on_the_line_and_the_head_stays_in_the_frame(name):
    machine, _ = CASES[name]
    m, d = 3, 2
    made = from_machine(machine, m, d)
    top, bottom, left, right = made.frame
    X, y, x = problem(np.random.default_rng(1), m, d)
    states, seen = list(machine.run(machine.start(line(X, y, x)))), []
    for now in made.machine.run(start(made.machine, X, y, x)):
        row, column = now.head
        assert -top <= row <= m + bottom
        assert -left <= column <= d + right
        if now.state.startswith("run "):
            tape = {c: s for (r, c), s in now.cells.items() if r == m + 2}
            seen.append((now.state, column, {c: s.replace("0.2", "0") for c, s in tape.items()}))
    assert seen == [(f"run {s.state}", s.heads[0], dict(s.tapes[0])) for s in states]


def test_states_depend_on_the_machine_alone():
    machine = majority_label()
    sizes = [len(from_machine(machine, m, d).machine.states) for m, d in ((1, 1), (9, 2), (40, 30))]
    assert all(a == b for a, b in pairwise(sizes))


def test_a_machine_that_halts_without_a_word_answers_minus():
    silent = TuringMachine({("a", ("+",)): Rule(("+",), (1,), "a")}, "a")
    made = from_machine(silent, 1, 1)
    X, y, x = np.array([[1]]), np.array([1]), np.array([1])
    ended = compiled.run(made.machine, start(made.machine, X, y, x), 10_000)
    assert ended.final.cells[0, 0] == "-"


def test_network_trained_by_sgd_answers_as_the_machine_does():
    pytest.importorskip("sklearn")
    from tapegrad.sklearn import RCNNClassifier

    machine, expected = CASES["majority label"]
    made = from_machine(machine, 3, 2)
    rng = np.random.default_rng(0)
    X, y, _ = problem(rng, 3, 2)
    network: Any = RCNNClassifier(made).fit(X, y)
    points = rng.choice([-1, 1], (4, 2))
    assert network.predict(points).tolist() == [expected(X, y, x) for x in points]


def test_refusals():
    with pytest.raises(Refused, match="tapes"):
        from_machine(TuringMachine({}, "a", tapes=2), 1, 1)
    with pytest.raises(Refused, match="blank"):
        from_machine(TuringMachine({}, "a", blank="="), 1, 1)
    with pytest.raises(InputError, match="at least one sample"):
        from_machine(last_label(), 0, 1)
