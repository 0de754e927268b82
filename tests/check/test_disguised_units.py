"""How far units in disguise, and what is read, may drift: each bound by hand, the linear algebra given."""

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tapegrad_check.folder import CheckError
from tapegrad_check.rasp import disguise
from tapegrad_check.rasp.disguise import Read
from tapegrad_check.rasp.disguised_heads import Slots
from tapegrad_check.rasp.tables import MIXED, WORD
from tests.check.test_disguised_heads import UP, near, part, stream


def read_of(found: Any, wanted: Any, error: float = 0.0, rounding: float = 0.0) -> Read:
    found = np.array(found, float)
    return Read(found, np.full_like(found, error), np.array(wanted, float), np.full(len(found), rounding))


def linear(**others: Any) -> Any:
    own = stream(**others)
    own.off_by = lambda rows, error, wanted: (
        own.largest(rows - wanted) + (np.abs(rows) + error) @ own.whole + error @ own.most
    )
    return own


def test_how_far_units_are_off_apart_from_one_coordinate() -> None:
    own = part(linear())
    read = read_of([[1, 2], [4, 8]], [[1, 1.5], [4, 8]], 0.01, 0.1)
    whole = [1 + 1.01 * 0.25 + 2.01 * 0.5, 4.01 * 0.25 + 8.01 * 0.5]
    near(own._apart_from(None, [0, 1], read), [(own_off + 0.03 + 0.1) * UP for own_off in whole])
    read = read_of([[1, 2], [4, 8]], [[1, 1.5], [4, 8]], 0.01, 0.1)
    assert own.drift.whole.tolist() == [0.25, 0.5]
    near(own._apart_from((7, 1.0), [1], read), [(4.01 * 0.25 + 0.03 + 0.1) * UP])


def ramp(raw: Any = None, below: Any = (), above: Any = (), **others: Any) -> float:
    """Two units that read the first feature once and the second a quarter; their difference is as wanted."""
    own = part(
        linear(whole=np.array([0.01, 0.02]), off=np.array([0.01, 0.02]), relative=np.array([0.0, 0.125]))
    )
    own.drift.__dict__.update(others)
    read = read_of([[1, 0.25], [1, 0.25]], [[1, 0.25], [1, 0.25]], 0.001)
    read = read._replace(rounding=np.array([0.003, 0.005]))
    return own._ramp(0, 1, read, Fraction(2), Fraction(3), list(below), list(above), raw)


UP_OFF, DOWN_OFF = ((1.001 * 0.01 + 0.251 * 0.02 + 0.003 + rounding) * UP for rounding in (0.003, 0.005))
BETWEEN = (0.002 * 0.03 + 0.002 * 3 + 0.008) * UP


def test_steps_between_two_values() -> None:
    near(ramp(), BETWEEN * UP)
    near(ramp(below=[Fraction(1)]), BETWEEN * UP)  # far enough below
    near(ramp(below=[Fraction(2)]), UP_OFF * UP * UP)
    near(ramp(below=[Fraction(2), Fraction(1)]), UP_OFF * UP * UP)
    near(ramp(below=[Fraction(17, 8)]), (0.125 + UP_OFF * UP) * UP)
    near(ramp(above=[Fraction(4)]), BETWEEN * UP)
    near(ramp(above=[Fraction(3)]), (UP_OFF + DOWN_OFF) * UP)
    near(ramp(above=[Fraction(3), Fraction(9)]), (UP_OFF + DOWN_OFF) * UP)


def test_steps_of_what_heads_bring() -> None:
    """Twice the second feature, which is off by 1/8 of its value and 0.02 beside, at a slope of 0.251."""
    up, down = ((1.001 * 0.01 + 0.003 + rounding) * UP for rounding in (0.003, 0.005))
    raw, slope = (7, 2.0), 0.251 * UP
    near(ramp(raw, below=[Fraction(1)]), (slope * (1 * 0.125 + 0.02) + up) * UP * UP)
    off = slope * (1.5 * 0.125 + 0.02)
    near(ramp(raw, above=[Fraction(3, 2)]), (2 * off + up + down) * UP)
    near(ramp(raw, above=[Fraction(2)]), BETWEEN * UP)


def test_units_of_a_step_that_are_too_far_apart() -> None:
    own = part(linear())
    for apart, fits in ((0.49, True), (0.5 * (1 - 2.0**-30), False)):  # enlarged, it is 1/2
        read = read_of([[1, 0], [1 - apart, 0]], [[1, 0], [1, 0]])
        own.drift.whole = np.zeros(2)
        if fits:
            own._ramp(0, 1, read, Fraction(0), Fraction(1), [], [], None)
        else:
            with pytest.raises(CheckError, match=r"steps of layer 0 may be off by 0\.5"):
                own._ramp(0, 1, read, Fraction(0), Fraction(1), [], [], None)


def test_coordinates_that_are_set() -> None:
    own = part(
        stream(), flag=0.0, bit=0.25, meanings=[("given", 0, 0)] * 5 + [("bit", 0, 1), None, ("number", 0, 0)]
    )
    own.drift.place = {5: 0, 7: 1, MIXED: 1}
    own._step = lambda forms, terms: None
    own._is_set(5, 0.0, {0: 9.0}, [], np.array([3.0, 5.0]))
    assert own.drift.most.tolist() == [1, 2]
    own._step = lambda forms, terms: terms
    own._is_set(5, 0.125, {0: 1.0}, [], np.array([3.0, 5.0]))
    assert (own.drift.off.tolist(), own.drift.most.tolist(), own.bit) == ([0.375, 0.5], [1, 2], 0.25)
    own._is_set(7, 0.5, {0: -1.0, 1: 2.0}, [], np.array([3.0, 5.0]))
    assert (own.drift.off.tolist(), own.drift.most.tolist(), own.bit) == ([0.375, 1.0], [1, 13], 0.5)
    own._is_set(7, 0.0, {0: 0.125}, [], np.array([3.0, 5.0]))
    assert own.drift.most.tolist() == [1, 1]
    own._is_set(MIXED, 0.125, {0: 1.0, 1: -2.0}, [], np.array([3.0, 5.0]))
    assert (own.flag, own.drift.most.tolist()) == (0.125, [1, 4])
    own.drift.loose = True
    own._is_set(5, 0.0, {0: 2.0}, [], np.array([3.0, 5.0]))
    assert own.drift.most.tolist() == [1, 4]
    own._step = lambda forms, terms: None
    own._is_set(5, 0.0, {0: 2.0}, [], np.array([3.0, 5.0]))
    assert own.drift.most.tolist() == [6, 4]


def test_features_that_are_erased() -> None:
    gone: list[Any] = []
    own = part(stream(replaced=lambda there, left: gone.append((there, left.tolist()))), known={3, 5, 7},
               meanings=[*[("given", 0, 0)] * 3, ("number", 0, 0), *[("bit", 0, 1)] * 3, ("raw", 0, 0)],
               slots=Slots([], [], [], [], [{7: 1}]), alive={3, 5, 7}, adds_to=[[4], [8]])  # fmt: skip
    own._there = lambda: sorted(own.alive)
    own._next_layer({7: 1}, np.array([0.125]))
    assert (own.layer, own.alive, gone) == (1, {3, 4, 5}, [([3, 4, 5], [0.0, 0.125])])
    for feature in (3, 6, 8):  # a number, a bit that is not set, a decoy
        with pytest.raises(CheckError, match="may be negative"):
            own._next_layer({feature: 1}, np.array([0.125]))
    own.drift.loose = True
    with pytest.raises(CheckError, match="watches for mixed values"):
        own._next_layer({5: 1}, np.array([0.125]))
    own.slots, own.layer = Slots([], [], [], [], [{}]), 0
    own._next_layer({}, np.array([]))
    assert (own.layer, len(gone)) == (1, 1)


def test_what_units_make() -> None:
    own = part(stream(), meanings=[("given", 0, 0)] * 5 + [("bit", 0, 2), ("raw", 1, 0), ("bit", 0, 1)])
    seen: list[Any] = []
    own._flag_drift = lambda terms, forms, read: 7.0
    own._ramp = lambda *of: seen.append(of) or 0.5
    own._label = lambda group: np.array([0, 1, 2, 3])
    own.brought = lambda place: ([Fraction(10), Fraction(11), Fraction(12), Fraction(13)],)
    own.parts, own.joint = (lambda form: form), (lambda parts: ("key", parts))
    own._labelled = lambda group, key, parts: (np.array([1.5, 3.0, 2.0, 5.0]), np.array([0, 2, 1, 2]))
    read, off = read_of([[1, 0]], [[1, 0]]), np.array([0.25, 0.5])
    assert own._made(MIXED, {}, [], read, off) == 7
    own._step = lambda forms, terms: None
    near(own._made(5, {0: -1.0, 1: 2.0}, [], read, off), 1.25 * UP)
    own._step = lambda forms, terms: SimpleNamespace(form={6: 2.0}, low=1, high=2)
    assert own._made(5, {0: -1.0, 1: 1.0}, [], read, off) == 0.5
    assert seen.pop() == (1, 0, read, 1, 2, [10, 11], [12, 13], (6, 2.0))
    own._step = lambda forms, terms: SimpleNamespace(form={7: 2.0}, low=1, high=2)
    own._made(5, {0: 1.0, 1: -1.0}, [], read, off)
    assert seen.pop() == (0, 1, read, 1, 2, [2], [3], None)
    own._labelled = lambda group, key, parts: (np.array([1.5]), np.array([0]))
    own._made(5, {0: 1.0, 1: -1.0}, [], read, off)
    assert seen.pop()[5:] == ([Fraction(3, 2)], [], None)
    own._labelled = lambda group, key, parts: (np.array([1.5]), np.array([2]))
    own._made(5, {0: 1.0, 1: -1.0}, [], read, off)
    assert seen.pop()[5:] == ([], [Fraction(3, 2)], None)


def test_the_flag_for_mixed_values() -> None:
    """Two steps for each coordinate: from 0 up to 1/n, and from 1 - 1/n up to 1, but for uneven weights."""
    own = part(stream(), uneven={9: 0.5})
    seen: list[Any] = []
    own._ramp = lambda *of: seen.append(of) or 0.5
    own._apart_from = lambda raw, units, read: np.array([0.25, 0.125]) * (1 + 3 * (units == [3, 0]))
    forms = [{9: 12.0, WORD: -12.0}, {9: 12.0, WORD: -1.0}, {9: 12.0}, {9: 12.0, WORD: -11.0}]
    read = read_of([[1, 0]], [[1, 0]])
    found = own._flag_drift(dict.fromkeys(range(4), 1.0), forms, read)
    part_of = Fraction(1, 12)
    assert seen == [
        (2, 1, read, 0, 1, [0], [part_of], (9, 12.0)),
        (3, 0, read, 11, 12, [1 - part_of], [1], (9, 12.0)),
    ]
    near(found, (0.5 + 1.5) * UP)
    own.program = SimpleNamespace(length=1)
    own._flag_drift(dict.fromkeys(range(4), 1.0), forms, read)
    assert seen[2][6] == [Fraction(1, 4)]


# What is read


def output(monkeypatch: pytest.MonkeyPatch, kind: str, **others: Any) -> Any:
    monkeypatch.setattr(disguise.DisguisedHeads, "_output", lambda self: None)
    monkeypatch.setattr(disguise, "row_of", lambda side, row: ({7: 1.0}, 0.0))
    drift = linear(
        whole=np.array([0.01, 0.02]), relative=np.array([0.0, 0.03125]), off=np.array([0.01, 0.02])
    )
    drift.read = lambda weights: (weights.T.copy(), np.full(weights.T.shape, 0.001))
    own = part(drift, weights={"unembed.W_U": np.array([[0.0], [1.0]]), "flag.W": np.array([[1.0], [0.0]])},
               unembedding=[None], says_so=False, flag=0.0)  # fmt: skip
    own.program = SimpleNamespace(output=0, nodes=[SimpleNamespace(kind=kind)])
    own.brought = lambda place: ([Fraction(4), Fraction(0), Fraction(1)],)
    own.drift.place[MIXED] = 0
    own.__dict__.update(others)
    own._output()
    return own


def test_logits(monkeypatch: pytest.MonkeyPatch) -> None:
    off = 0.001 * 0.01 + 1.001 * 0.02 + 0.003
    near(output(monkeypatch, "move").read_off, (off + 0.001) * UP)
    for more, fits in ((0.22, True), (0.24, False)):
        weights = {"unembed.W_U": np.array([[0.0], [1.0 + more]]), "flag.W": None}
        if fits:
            output(monkeypatch, "move", weights=weights)
        else:
            with pytest.raises(CheckError, match="logits may be off by"):
                output(monkeypatch, "move", weights=weights)


def test_numbers_that_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neighbours 0 and 1, and 1 and 4, are each off by 1/32 of their value, and by the same beside."""
    other = 0.003 + 0.001 + 0.001 * 0.01 + 2 * 0.02
    near(output(monkeypatch, "mean").read_off, other)
    room = 2 * (0.03125 + other)
    for apart, fits in ((room * 1.001, True), (room * 0.999, False)):
        second = Fraction(apart) + 1 if fits else Fraction(apart)
        centres = [Fraction(0), Fraction(1), Fraction(9)] if fits else [Fraction(0), Fraction(1), 1 + second]
        own = {"brought": lambda place, centres=centres: (centres,)}
        if fits:
            output(monkeypatch, "mean", **own)
        else:
            with pytest.raises(CheckError, match="cannot be told apart"):
                output(monkeypatch, "mean", **own)
    exact = 2 * UP * other / (1 - 2 * UP * 0.03125)
    for gap, fits in ((exact * 1.0001, True), (exact * 0.9999, False)):
        centres = [Fraction(0), Fraction(gap)]
        if fits:
            output(monkeypatch, "mean", brought=lambda place, centres=centres: (centres,))
        else:
            with pytest.raises(CheckError, match="cannot be told apart"):
                output(monkeypatch, "mean", brought=lambda place, centres=centres: (centres,))


def test_the_flag_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    assert output(monkeypatch, "move", flag=0.125).flag == 0.125
    off = 1.001 * 0.01 + 0.001 * 0.02 + 0.003 + 0.001
    near(output(monkeypatch, "move", flag=0.125, says_so=True).flag, 0.125 + off)
    with pytest.raises(CheckError, match="may go unnoticed"):
        output(monkeypatch, "move", flag=0.5 - off + 1e-9, says_so=True)
    output(monkeypatch, "move", flag=0.5 - off - 1e-9, says_so=True)


def test_the_borders_of_what_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of a logit is too much, and of the flag."""
    drift = linear(whole=np.zeros(2), rounding=lambda weights: np.zeros(1))
    drift.place = {7: 1, MIXED: 0}
    drift.read = lambda weights: (weights.T.copy(), np.zeros(weights.T.shape))
    flag, right = np.array([[1.0], [0.0]]), np.array([[0.0], [1.0]])
    output(monkeypatch, "move", drift=drift, weights={"unembed.W_U": right, "flag.W": flag}, says_so=True)
    with pytest.raises(CheckError, match="may go unnoticed"):
        output(
            monkeypatch,
            "move",
            drift=drift,
            weights={"unembed.W_U": right, "flag.W": flag},
            says_so=True,
            flag=0.5,
        )
    more = 0.25 * (1 - 2.0**-30)  # twice of it, enlarged, is 1/2
    with pytest.raises(CheckError, match="logits may be off by"):
        output(
            monkeypatch,
            "move",
            drift=drift,
            weights={"unembed.W_U": right + np.array([[0.0], [more]]), "flag.W": flag},
        )


# All units of a layer


@pytest.mark.parametrize("clean", [False, True])
def test_all_units_of_a_layer(clean: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two units of the plain net in slots 2 and 0, scaled by 2 and 1/2; slot 3 erases feature 7, and slot 1
    is a decoy. Clean ones are as they should be, without a decoy."""
    monkeypatch.setattr(disguise.DisguisedHeads, "_units", lambda self, layer: None, raising=False)
    monkeypatch.setattr(disguise, "row_of", lambda own, row: (own[row], 0.0))
    zero = np.zeros(2)
    drift = linear(whole=zero if clean else np.array([0.25, 0.5]), most=np.array([1.0, 2.0]))
    drift.off, drift.directions = np.array([0.25, 0.5]), np.arange(20.0).reshape(10, 2)
    drift.read = lambda weights: (weights.T.copy(), np.full(weights.T.shape, 0.0 if clean else 0.001))
    drift.rounding = lambda weights: np.full(weights.shape[1], 0.0 if clean else 0.002)
    drift.total = lambda weights: np.abs(weights).sum(axis=0)
    into, out = np.zeros((2, 5)), np.zeros((5, 2))
    into[:, 2], into[:, 0], into[:, 3] = (2.0, 0.0), (0.0, 1.0), (0.0, 1.0)  # that is 1, 2 and 1
    out[2], out[0], out[3] = (
        (9.0, 9.5),
        (-108.0, -114.0),
        (-14.0, -15.0),
    )  # that is 18 and 19, three times, and 7
    if not clean:
        into[:, 1], out[1], out[3] = (1.0, 1.0), (0.5, 0.25), (-14.0, -15.5)
    own = part(drift, units=[[{5: 1.0}, {7: 2.0}]], sums=[[{0: 1.0, 1: -3.0}]], adds_to=[[9]], watched=set(),
               slots=Slots([], [[2, 0]], [np.array([2.0, 0.5])], [], [{7: 3}]),
               weights={"blocks.0.mlp.W_in": into, "blocks.0.mlp.W_out": out})  # fmt: skip
    seen: dict[str, Any] = {}
    own._attended = lambda: seen.update(attended=True)
    own._made = lambda place, terms, forms, read, off: seen.update(made=(place, terms, forms, off)) or 0.125
    own._next_layer = lambda erased, off: seen.update(erased=(erased, off))
    own._is_set = lambda place, error, terms, forms, size: seen.update(set=(place, error, terms, size))
    own._settle = lambda lost: seen.update(lost=lost)
    own._units(0)
    off = (
        np.zeros(3)
        if clean
        else np.array([1.001 * 0.25 + 0.001 * 0.5, 0.001 * 0.25 + 2.001 * 0.5, 0.0]) + 0.003
    )  # and what was rounded, as it was scaled
    off[:2] += 0 if clean else np.array([0.002 / 2, 0.002 / 0.5])
    if not clean:
        off[2] = 0.001 * 0.25 + 1.001 * 0.5 + 0.005
    size = (np.array([1.0, 4.0, 2.0]) + off) * UP
    assert seen["attended"]
    assert own.last_there == [5, 7]
    assert seen["made"][:3] == (9, {0: 1.0, 1: -3.0}, [{5: 1.0}, {7: 2.0}])
    near(seen["made"][3], off)
    assert seen["erased"][0] == {7: 3}
    near(seen["erased"][1], off[2:])
    assert seen["set"][:3] == (9, 0.125, {0: 1.0, 1: -3.0})
    near(seen["set"][3], size)
    adds = np.array([[18.0, 19], [-54, -57], [-14, -15 if clean else -15.5]])
    more = np.zeros(2) if clean else np.array([0.0, 10 * 0.5]) * size[2]
    decoy = np.zeros(2) if clean else np.array([10 * 0.5, 10 * 0.25]) * 3
    near(own.drift.off, (np.array([0.25, 0.5]) + more + decoy) * UP)
    total = np.abs(adds).T @ size + (0 if clean else np.array([0.5, 0.25]) * 3)
    count = 3 if clean else 4
    near(seen["lost"], zero if clean else (count * 2.0**-24 / (1 - count * 2.0**-24) * total) * UP)
