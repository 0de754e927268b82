"""What a report says and counts, without any net."""

from dataclasses import replace

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import _verify
from tapegrad._lockstep import FINITE, _Followed, same
from tapegrad._verify import Coverage, Mismatch, Report, _brief, _patterns, _Seen
from tapegrad.circuits import library as circuits
from tapegrad.errors import InputError, Refused
from tapegrad.machines import library as machines

AGREED = Report(
    agreed=True,
    inputs=1234,
    steps=56_789,
    states=9,
    complete=True,
    exhaustive=False,
    deviation=0.125,
    mismatch=None,
    engine="fast",
    every=1,
    seconds=1.0,
)


def test_reports_in_words() -> None:
    said = "agreed at every one of 56,789 steps on 1,234 input(s); largest deviation 0.125"
    assert str(AGREED) == said
    assert str(replace(AGREED, exhaustive=True)) == said.replace("1,234 input(s)", "all inputs")
    assert str(replace(AGREED, every=1000)) == said.replace("every one of", "every 1,000th of")
    for every, ordinal in (
        (2, "2nd"),
        (21, "21st"),
        (113, "113th"),
        (1_333, "1,333rd"),
        (12, "12th"),
        (32, "32nd"),
        (10, "10th"),
        (20, "20th"),
        (119, "119th"),
    ):
        assert f"every {ordinal} of" in str(replace(AGREED, every=every))
    assert str(replace(AGREED, complete=False)) == said.replace("(s);", "(s) (stopped at the step limit);")
    covered = replace(AGREED, coverage=Coverage(1000, 2000))
    assert str(covered) == f"{said}; 1,000 of 2,000 rules exercised"
    parted = replace(AGREED, agreed=False, mismatch=Mismatch("x", 7, "a", "b"))
    assert str(parted) == "MISMATCH at step 7 on input x:\n  source  a\n  network b"
    assert parted.to_json()["mismatch"] == {"input": "x", "step": 7, "expected": "a", "found": "b"}


def test_long_values_are_cut() -> None:
    kept = ("x" * 496,)  # with brackets, quotes and a comma 501 characters
    assert _brief("y" * 600) == "y" * 600
    assert _brief(("x" * 495,)) == repr(("x" * 495,))
    assert _brief(kept) == repr(kept)[:480] + " ... (501 characters)"
    assert _brief(np.array([True, False])) == "array([1, 0])"


def test_a_batch_counts_its_rows() -> None:
    batch = np.zeros((5, 3), bool)
    assert _patterns((batch,)) == 5
    assert [_patterns(inputs) for inputs in ((), ("10",), ([1, 2, 3],), (batch, batch))] == [1, 1, 1, 1]


def test_states_are_equal_as_wholes() -> None:
    ones = np.ones(3)
    assert same(ones, ones.copy())
    assert not same(ones, np.zeros(3))
    assert not same(ones, np.ones(2))
    assert not same(ones, "ended")
    assert not same("ended", ones)
    assert same((1, 2), (1, 2))
    assert not same((1, 2), (1, 3))


class _Pair:
    """Stands for an input that was followed."""

    def __init__(self, parted=None, ended=True, deviation=0.0, engine="fast") -> None:
        self.engine = engine
        self.parted, self.ended, self.deviation, self.steps, self.states = parted, ended, deviation, 3, 2


def test_inputs_are_added_up() -> None:
    seen = _Seen(7)
    seen.add((np.zeros((4, 1), bool),), _Pair(deviation=0.5))  # type: ignore[arg-type]
    seen.add(("1",), _Pair(deviation=0.25))  # type: ignore[arg-type]
    report = seen.report(exhaustive=True)
    found = report.inputs, report.steps, report.states, report.deviation, report.engine, report.every
    assert found == (5, 6, 4, 0.5, "fast", 7)
    assert report.agreed
    assert report.complete
    assert report.exhaustive
    assert not seen.report().exhaustive
    seen.add(("0",), _Pair(("a", "b"), ended=False, engine="reference"))  # type: ignore[arg-type]
    report = seen.report(exhaustive=True)
    assert not report.agreed
    assert not report.complete
    assert not report.exhaustive
    assert report.mismatch == Mismatch("('0',)", 3, "a", "b")
    assert report.engine == "fast and reference"


@pytest.mark.parametrize("deviation", [float("nan"), float("inf"), 0.25])
def test_a_deviation_that_is_no_number_is_a_mismatch(deviation: float) -> None:
    net = tg.compile(circuits.ready("parity4"), "relu")
    followed = _Followed(net, "reference", net.encode(net.source.start([[0, 0, 0, 0]])))
    stub = type("Net", (), {"deviation": lambda self, carry: deviation})()
    followed.compiled = replace(net, net=stub)
    finite = deviation == 0.25
    assert followed._finite() is finite
    assert (followed.parted is None) is finite
    if not finite:
        assert followed.parted is not None
        assert followed.parted[0] == FINITE
    first = followed.parted
    followed._part("later", "still later")
    assert followed.parted == (first or ("later", "still later"))


def test_nothing_to_verify_is_an_error_and_a_bad_input_is_one_too() -> None:
    net = tg.compile(machines.ready("increment"), "tape", cells=16)
    with pytest.raises(InputError, match="no input to verify"):
        tg.verify(net, [])
    with pytest.raises((InputError, Refused)):
        tg.verify(net, [("1" * 40,)])


def test_coverage_is_told_where_the_inputs_were_chosen_here() -> None:
    net = tg.compile(tg.read("1RB1LB_1LA1RZ"), "relu", steps=2, cells=4)
    coverage = tg.verify(net).coverage
    assert coverage is not None
    assert 0 < coverage.exercised <= coverage.rules == len(net.source.rules)  # type: ignore[attr-defined]
    assert tg.verify(net, [()]).coverage is None
    chosen = tg.verify(tg.compile(circuits.ready("parity4"), "relu"))
    assert chosen.coverage is None
    assert chosen.exhaustive
    assert chosen.inputs == 16


# Which inputs count, and who watches.


def without_room(monkeypatch: pytest.MonkeyPatch, *refused: str) -> tg.Compiled:
    """A net for which three words are chosen, of which some are refused."""
    monkeypatch.undo()
    net = tg.compile(machines.ready("increment"), "tape", cells=32)
    true = _verify._followed

    def followed(compiled: tg.Compiled, inputs: tuple[str, ...], *rest: object) -> object:
        if inputs[0] in refused:
            raise InputError(f"no room for {inputs[0]}")
        return true(compiled, inputs, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(_verify, "default_inputs", lambda *_: ([("1",), ("11",), ("0",)], True))
    monkeypatch.setattr(_verify, "_followed", followed)
    return net


def test_inputs_without_room_are_left_out_where_they_were_chosen_and_refused_where_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    report = tg.verify(without_room(monkeypatch, "1", "11"), engine="fast")
    assert (report.inputs, report.exhaustive, report.agreed) == (1, False, True)
    with pytest.raises(InputError, match=r"no room for 1\b"):
        tg.verify(without_room(monkeypatch, "1", "11", "0"), engine="fast")
    with pytest.raises(InputError, match="no room for 11"):
        tg.verify(without_room(monkeypatch, "11"), [("1",), ("11",)], engine="fast")
    assert tg.verify(without_room(monkeypatch), engine="fast").exhaustive


def test_rules_are_counted_where_every_step_is_looked_at() -> None:
    net = tg.compile(machines.ready("busy-beaver-3x2"), "tape", cells=32)
    assert tg.verify(net, engine="fast").coverage is not None
    assert tg.verify(net, [()], engine="fast").coverage is None
    assert tg.verify(net, engine="fast", every=2).coverage is None


class Stepping:
    """A run of five steps, whose second state cannot be told, and which parts at its fourth."""

    def __init__(self, *_: object) -> None:
        self.steps, self.parted, self.ended = 0, None, False

    def step(self, most: int) -> None:
        assert most > 0
        self.steps += 1
        self.parted = ("a", "b") if self.steps == 4 else None

    @property
    def source_state(self) -> str | None:
        return None if self.steps == 2 else f"state {self.steps}"


def test_who_watches_sees_states_that_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_verify, "Lockstep", Stepping)
    seen: list[object] = []
    counted: list[int] = []
    pair = _verify._followed(None, (), 9, "fast", 1, counted.append, seen.append)  # type: ignore[arg-type]
    assert (seen, counted, pair.steps) == (["state 1", "state 3"], [1, 2, 3, 4], 4)
    assert _verify._followed(None, (), 2, "fast", 1, None).steps == 2  # type: ignore[arg-type]
