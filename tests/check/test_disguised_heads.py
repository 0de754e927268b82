"""How far heads in disguise may drift: each bound by hand, the linear algebra given."""

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tapegrad_check.folder import CheckError
from tapegrad_check.rasp import disguised_heads
from tapegrad_check.rasp.disguise import Disguised
from tapegrad_check.rasp.disguised_heads import Added, Raw, Slots
from tapegrad_check.rasp.heads import BETA
from tapegrad_check.rasp.tables import MIXED, START, WORD

UP, U = 1 + 2.0**-30, 2.0**-24
LIBRARY = 16 * U


def near(found: Any, wanted: Any) -> None:
    """Nearer than any factor by which a bound is enlarged."""
    np.testing.assert_allclose(np.asarray(found, float), np.asarray(wanted, float), rtol=1e-12, atol=0)


def stream(**others: Any) -> Any:
    """Two features, at most 1 and 2 and off by 1/4 and 1/2; what the linear algebra says is told apart by
    powers of 1/10."""
    most = np.array([1.0, 2.0])
    own = SimpleNamespace(
        basis=np.eye(2), most=most, off=np.array([0.25, 0.5]), relative=np.zeros(2), grid=0.5,
        place={5: 0, 7: 1}, features=[5, 7], loose=False, step=1.0,
        largest=lambda rows: np.abs(rows) @ most,
        magnitude=lambda weights: np.full(weights.shape[1], 3.0),
        rounding=lambda weights: np.full(weights.shape[1], 0.001),
        in_features=lambda columns, error: 10 * np.abs(columns) + error,
        signed=lambda columns, error: (columns, 0.01 + error),
        size=np.array([4.0, 8.0]), lost=[],
    )  # fmt: skip
    own.adds = own.lost.append
    own.__dict__.update(others)
    own.whole = others.get("whole", own.off + own.relative * own.most)
    return own


def part(drift: Any, **others: Any) -> Any:
    """Heads or units with nothing but what the bound looks at."""
    own = object.__new__(Disguised)
    own.drift, own.layer = drift, 0
    own.program = SimpleNamespace(length=6, nodes=[])  # type: ignore[assignment]
    own.added = Added(2)
    own.__dict__.update(others)
    return own


def given(monkeypatch: pytest.MonkeyPatch, *errors: Any) -> None:
    """Products are exact but for these errors, one after the other."""
    left = [np.array(error) for error in errors]

    def product(*factors: Any) -> Any:
        found = factors[0]
        for factor in factors[1:]:
            found = found @ factor
        return found, left.pop(0)

    monkeypatch.setattr(disguised_heads, "product", product)


# Scores


def test_how_far_scores_are_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """(x + e) M (y + f) beside x W y: M - W, then e M y, x M f and e M f, each with the error of M; then both
    streams rounded, and the sum of their products."""
    error = np.array([[0.01, 0.02], [0.03, 0.05]])
    query, key = np.array([[1.0], [2.0]]), np.array([[1.0], [3.0]])  # M = [[1, 3], [2, 6]]
    asks, answers = np.array([[1.0, 2.0]]), np.array([[1.0, 2.5]])  # W = [[1, 2.5], [2, 5]]
    given(monkeypatch, error)
    apart = 1 * (0.5 * 2 + 0.05) + 2 * (1.0 * 2 + 0.13)
    left = 0.25 * (7 + 0.05) + 0.5 * (14 + 0.13)
    right = 0.25 * (5 + 0.07) + 0.5 * (15 + 0.12)
    both = 0.25 * (1.01 * 0.25 + 3.02 * 0.5) + 0.5 * (2.03 * 0.25 + 6.05 * 0.5)
    streams = stream(magnitude=lambda w: np.array([3.0 if w is query else 5.0]),
                     rounding=lambda w: np.array([0.001 if w is query else 0.0001]))  # fmt: skip
    rounding = 0.001 * 5 + 3 * 0.0001
    summed = (1 * U / (1 - U) * 15) * UP
    near(
        part(streams)._score_drift(query, key, asks, answers),
        (apart + left + right + both + rounding + summed) * UP,
    )


@pytest.mark.parametrize(
    ("first", "second", "size", "exact"),
    [
        (0.0, 0.0, 2.0**18, True),
        (0.0, 0.0, 2.0**19 * 1.5, False),
        (0.0, 1e-9, 2.0**18, False),
        (1e-9, 0.0, 2.0**18, False),
    ],
)
def test_scores_that_are_not_rounded(
    first: float, second: float, size: float, exact: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In steps of 1/2 on both sides, and of 1/2 and 1/4 in the weights: up to 2^24 times 1/32."""
    zero = np.zeros(2)
    query, key = np.array([[0.5], [1.0]]), np.array([[1.0], [0.25]])
    given(monkeypatch, np.zeros((2, 2)))
    streams = stream(off=zero, whole=zero, magnitude=lambda w: np.array([1.0 if w is query else size]),
                     rounding=lambda w: np.array([first if w is query else second]))  # fmt: skip
    found = part(streams)._score_drift(query, key, query.T, key.T)
    rounded = (U / (1 - U) * size) * UP
    near(found, 0 if exact else (first * size + second + rounded) * UP)


# What heads bring


@pytest.mark.parametrize(("copies", "one"), [(True, False), (False, False), (False, True)])
def test_how_far_what_a_head_adds_is_off(copies: bool, one: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    value, out = np.array([[1.0], [0.5]]), np.array([[2.0, 4.0]])  # adds [[2, 1], [4, 2]]
    rows = np.array([[1.0, 0.0]]) if one else np.array([[1.0, 0.25]])  # should add it to feature 7 alone
    zero = np.zeros((2, 2))
    error, more = (zero, zero) if one else (np.full((2, 2), 0.001), np.full((2, 2), 0.002))
    given(monkeypatch, error, more)
    streams = stream(rounding=lambda w: np.zeros(1) if one else np.array([0.125]))
    if one:
        streams.whole = np.zeros(2)
        streams.signed = lambda columns, error: (np.zeros((2, 2)), np.zeros((2, 2)))
    streams.place = {5: 0, 7: 1, START: 0}
    own = part(streams)
    own._brings_off([7], rows, value, out, copies)
    found, apart = np.array([[2.0, 1], [4, 2]]), np.array([[2.0, 1], [3, 1.75]])
    if one:
        assert not own.added.off.any()
    else:
        off = apart @ [1, 2] + (0.01 + 0.003) * 3
        near(own.added.off, off + (10 * found + 0.001) @ streams.whole)
    terms = 0 if copies else 2 if one else 7
    near(own.added.bound, [w * ((0 if one else 0.125) + terms * U * 3) for w in (2, 4)])
    assert own.added.size.tolist() == [6, 12]
    assert own.added.terms.tolist() == [1, 1]
    assert own.added.step == (0.5 * 0.5 * 2 if copies else 0)


@pytest.mark.parametrize("what", ["rounding", "apart", "spare", "whole", "rows"])
def test_only_the_first_position_has_a_value_where_all_else_is_nothing(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = 1e-6
    given(monkeypatch, np.zeros((2, 2)), np.zeros((2, 2)))
    zero = np.zeros((2, 2))
    streams = stream(
        place={7: 1, START: 0},
        rounding=lambda w: np.array([small if what == "rounding" else 0.0]),
        signed=lambda c, e: (zero + small * (what == "apart"), zero + small * (what == "spare")),
        whole=np.full(2, small if what == "whole" else 0.0),
    )
    own = part(streams)
    rows = np.array([[1.0, small if what == "rows" else 0.0]])
    own._brings_off([7], rows, np.array([[1.0], [0.0]]), np.array([[0.0, 1.0]]), False)
    near(own.added.bound[1], (small if what == "rounding" else 0) + 7 * U * 3)


def test_room_that_heads_take() -> None:
    own = part(stream())
    own._takes_room(np.array([[1.0, 0], [-2, 3]]), np.array([5.0, 7]), 0.25)
    own._takes_room(np.array([[1.0, 1], [0, 0]]), np.array([1.0, 1]), 0.5)
    assert own.added.size.tolist() == [20, 22]
    assert own.added.terms.tolist() == [3, 2]
    assert own.added.step == 0.25


def test_decoy_heads_are_off_by_all_that_they_add() -> None:
    weights = {f"blocks.0.attn.W_{side}": np.ones((4, 2, 1)) for side in "QKV"}
    weights["blocks.0.attn.W_O"] = np.array([[[9.0, 9]], [[1, 2]], [[0, 0]], [[5, 5]]])
    weights["blocks.0.attn.W_V"][3] = 0
    own = part(stream(), weights=weights, slots=Slots([[0]], [], [], [], []))
    own._decoy_heads()
    size = 3 * (1 + 38 * U)
    near(own.added.off, [10 * size, 20 * size])
    near(own.added.size, [size, 2 * size])
    assert own.added.step == 0
    assert own.added.terms.tolist() == [1, 1]
    weights["blocks.0.attn.W_O"][1] = 0
    own = part(stream(), weights=weights, slots=Slots([[0]], [], [], [], []))
    own._decoy_heads()
    assert (own.added.off.any(), own.added.step) == (False, 1)


def test_all_that_heads_of_a_layer_add() -> None:
    own = part(
        stream(whole=np.zeros(2)),
        weights={"blocks.0.attn.W_Q": np.ones((0, 2, 1))},
        slots=Slots([[]], [], [], [], []),
    )
    own.added.off, own.added.bound = np.array([1.0, 2]), np.array([3.0, 5])
    own.added.size, own.added.terms, own.added.step = np.array([7.0, 11]), np.array([2, 4]), 0.0
    own.added.raw = [Raw(1, 9.0, 0.125, 0.0625)]
    own._attended()
    total = 1 + 38 * U
    near(own.drift.off, [(0.25 + total) * UP, (0.5625 + 2 * total) * UP])
    assert (own.drift.most.tolist(), own.drift.relative.tolist()) == ([1, 9], [0, 0.125])
    lost = [n * U / (1 - n * U) * size for n, size in ((2, 7), (4, 11))]
    near(own.drift.lost[0], [3 * total + lost[0] * UP, 5 * total + lost[1] * UP])
    assert not own.added.off.any()
    assert own.added.raw == []


@pytest.mark.parametrize(("whole", "grid"), [(0.0, 0.5), (1e-9, 0.0)])
def test_sums_with_what_was_there_are_rounded(whole: float, grid: float) -> None:
    own = part(stream(whole=np.array([0.0, whole])))
    own._settle(np.array([1.0, 2]))
    assert own.drift.grid == grid
    assert own.drift.lost[0].tolist() == [1, 2]
    near(own.drift.lost[1], [0, 0] if grid else [(U / (1 - U) * size) * UP for size in (4, 8)])
    own = part(stream(whole=np.zeros(2), size=np.array([2.0**22, 2.0**24])))
    own._settle(np.zeros(2))
    near(own.drift.lost[1], [0, (U / (1 - U) * 2.0**24) * UP])


def head(
    monkeypatch: pytest.MonkeyPatch, kind: str, off: float, single: bool = True, heat: float = 1.0
) -> Any:
    """One head of length 6 that brings coordinate 7, with scores that are off by so much."""
    monkeypatch.setattr(disguised_heads.RaspNet, "_head", lambda self, number: [7])
    monkeypatch.setattr(disguised_heads, "row_of", lambda side, row: ({}, 0.0))
    own = part(
        stream(), slots=Slots([[0, 2]], [], [], [heat], []), counts=[2], heads=[3, 4], scores=0.0, uneven={},
        off={4: Fraction(1, 4)} if kind == "mean" else {}, sides=[[[], []]] * 3,
    )  # fmt: skip
    own.program = SimpleNamespace(length=6, nodes=[None] * 4 + [SimpleNamespace(kind=kind, reads=[9])])
    own.seen = []
    own._sides = lambda slot: (own.seen.append(slot), "k", "v", "o")
    own.rows = lambda forms: np.ones((1, 2))
    own._score_drift = lambda query, key, asks, answers: own.seen.append(asks.tolist()) or off
    own._brings_off = lambda places, rows, value, out, copies: own.seen.append((places, value, out, copies))
    own._single = lambda selector: single and selector == 9
    own.brought = lambda place: ([Fraction(1), Fraction(3)],)
    assert own._head(1) == [7]
    return own


@pytest.mark.parametrize(
    ("kind", "off", "heat", "single", "copies"),
    [
        ("move", 0.0, 1.0, True, True),
        ("move", 0.0, 1.0, False, False),
        ("move", 0.0, 0.125, True, False),
        ("move", 59.0, 1.0, True, False),
        ("width", 0.0, 1.0, True, False),
        ("width", 0.0, 0.0625, True, False),
        ("mean", 0.0, 0.125, True, False),
        ("mean", 2.0, 1.0, True, False),
        ("width", 0.001, 1.0, True, False),
    ],
)
def test_what_a_head_brings(
    kind: str, off: float, heat: float, single: bool, copies: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = head(monkeypatch, kind, off, single, heat)
    gap = heat * BETA * (1 if kind == "width" else 0.5) - 2 * off
    stray = 0 if gap >= 104 else 6 * np.exp(-gap) * UP
    uneven = (np.expm1(2 * off) * UP if off else 0) + LIBRARY + stray
    relative = uneven if kind != "move" else 0 if copies else 6 * U + LIBRARY + stray
    (raw,) = own.added.raw
    assert raw[:2] == (1, 3)
    near(raw[2:], [relative, (0.25 if kind == "mean" else 0) + stray * 3])
    near(own.uneven[7], np.exp(-2 * off) * (1 - 70 * U - stray) / UP)
    assert own.seen[0] == 2
    assert own.seen[2] == ([7], "v", "o", copies)
    assert own.scores == off


def test_scores_that_are_too_far_off(monkeypatch: pytest.MonkeyPatch) -> None:
    assert head(monkeypatch, "mean", 60.0).scores == 60
    assert head(monkeypatch, "width", 124.0).scores == 124
    assert head(monkeypatch, "mean", 28.0, heat=0.5).seen[1] == [[0.5, 0.5]]
    for kind, off, heat in (("mean", 60.1, 1.0), ("width", 124.1, 1.0), ("move", 28.1, 0.5)):
        with pytest.raises(CheckError, match="may be off by"):
            head(monkeypatch, kind, off, heat=heat)
    assert head(monkeypatch, "move", 12.0).seen[2][3]  # a gap of 104 leaves nothing of the others
    assert not head(monkeypatch, "move", 12.1).seen[2][3]


def test_embeddings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens 1/4 off in one place, positions as they should be: a ladder that begins at the third."""
    monkeypatch.setattr(disguised_heads.RaspNet, "_embedding", lambda self: None)
    monkeypatch.setattr(disguised_heads, "row_of", lambda side, row: ({5: 1.0} if row else {}, 0.0))
    given(monkeypatch, np.full((2, 2), 0.001), np.full((3, 2), 0.002))
    tokens, positions = np.array([[0.0, 0], [1.25, 0]]), np.array([[0.0, 0], [0, 0], [0, 1]])
    own = part(stream(off=np.zeros(2), most=np.zeros(2)), embedding=None, known={5, MIXED},
               weights={"embed.W_E": tokens, "pos_embed.W_pos": positions})  # fmt: skip
    own.drift.place[MIXED] = 1
    own.positions = lambda: {7}
    own._embedding()
    assert own.drift.most.tolist() == [1, 0]
    near(own.drift.off, [2.5 + 0.001 + 0.002, 0.001 + 0.002])
    assert own.drift.grid == 0
    near(own.drift.lost[0], [(U / (1 - U) * size) * UP for size in (1.25, 1)])


def test_embeddings_on_a_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disguised_heads.RaspNet, "_embedding", lambda self: None)
    monkeypatch.setattr(disguised_heads, "row_of", lambda side, row: ({5: 0.5, 7: 2.0}, 0.0))
    tokens, positions = np.array([[0.5, 2]]), np.array([[0.0, 0]])
    for step, grid in ((1.0, 0.5), (0.25, 0.25)):
        given(monkeypatch, np.zeros((1, 2)), np.zeros((1, 2)))
        own = part(stream(off=np.zeros(2), step=step), embedding=None, known=set(), positions=set,
                   weights={"embed.W_E": tokens, "pos_embed.W_pos": positions})  # fmt: skip
        own._embedding()
        assert own.drift.grid == grid
        assert not own.drift.lost[0].any()


def test_features_that_are_there() -> None:
    own = part(
        stream(), slots=Slots([], [], [], [], [{}, {}]), features=9, counts=[1, 2], heads_to=[[3], [4], [6]]
    )
    own.meanings = [("given", 0, 0)] * 3 + [("bit", 0, 1), ("bit", 1, 1), ("raw", 1, 0), ("bit", 0, 2)]
    own.groups = [((2,), []), ((0,), [])]
    own.program = SimpleNamespace(
        nodes=[SimpleNamespace(kind=kind) for kind in ("tokens", "full", "indices")]
    )
    own.embedding = SimpleNamespace(columns=[4])
    assert own.positions() == {3, 6}
    assert own._there() == list(range(9))
    own.slots = Slots([], [], [], [], [{}, {8: 1}])
    own.groups[0] = ((1,), [])
    own.program.nodes.pop()
    assert own.positions() == set()
    assert own._there() == [START, WORD, MIXED, 3, 4, 7, 8]
    own.layer = 1
    assert own._there() == [START, WORD, MIXED, 3, 4, 6, 7, 8]
    own.layer, own.alive = 2, {1}
    assert own._there() == [1]


def test_rows_over_features() -> None:
    own = part(stream())
    assert own.rows([{7: 2.0}, {5: -1.0, 7: 3.0}, {}]).tolist() == [[0, 2], [-1, 3], [0, 0]]
    with pytest.raises(CheckError, match="has been erased"):
        own.rows([{6: 1.0}])
