"""A bad net for every condition of the checkers of learners, and for every bound one on either side: what is
just inside is refused for another reason, or not at all."""

import copy
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from tapegrad.learners import conjunction, parity
from tapegrad_check import CheckError
from tapegrad_check.folder import COMPUTES_SOURCE, OWN_TABLE
from tapegrad_check.sources import Learner
from tapegrad_check.targets import vertices
from tapegrad_check.targets.emulator import for_the_first
from tapegrad_check.targets.exact_memory import _Constants, _short
from tapegrad_check.targets.noise_tolerant_memory import _algebra
from tests.check.altering import (
    Change,
    Net,
    add,
    both,
    claims,
    config,
    cut,
    net_of,
    put,
    put_all,
    retype,
    without,
)

NETS: dict[str, tuple[Any, dict[str, Any]]] = {
    "emulator": (parity(2), {}),
    "emulator exact": (parity(2), {"form": "paper"}),
    "emulator noisy": (conjunction(1, 2), {"form": "noise-tolerant", "samples": 2}),
}


@cache
def genuine(name: str) -> Net:
    source, options = NETS[name]
    return net_of(source, name.split()[0], options)


@pytest.mark.parametrize("name", NETS)
def test_genuine_nets_pass(name: str) -> None:
    wanted = for_the_first(2) if name == "emulator noisy" else COMPUTES_SOURCE
    assert genuine(name).verdict(name.split()[0]) == wanted


def learner(**changes: Any) -> Change:
    def change(net: Net) -> None:
        assert isinstance(net.source, Learner)
        net.source = replace(net.source, **changes)

    return change


def _no_learner(net: Net) -> None:
    assert isinstance(net.source, Learner)
    net.source = net.source.circuit


def edge(name: str, vertex: int, place: int, value: float) -> Change:
    """Another number at an edge of a vertex, counted from the last where it is negative."""

    def change(net: Net) -> None:
        offsets = net.arrays["offsets"]
        net.put(name, int(offsets[vertex if vertex >= 0 else vertex - 1]) + place, value)

    return change


GIVEN, CELLS, FIRST_CONTROL, LAST = 5, 5, 47, 77
"""Of the net with practical memory: its vertices are the constant and the inputs, two for each cell, those
that compute, six for each cell, and the output."""
AND_OF_THREE = 25
"""A vertex with three operands and the constant."""


def at(vertex: int) -> int:
    """The number of a vertex among those with edges."""
    return vertex - GIVEN


E = 2.0**-33
EMULATOR: list[tuple[str, Change]] = [
    ("that of a learner", _no_learner),
    ("another kind of memory", claims(memory="exact")),
    ("kind of memory is unknown", both(claims(memory="none"), config(memory="none"))),
    ("other entries or claims", config(extra=1)),
    ("other entries or claims", claims(extra=1)),
    ("the arrays are others", without("cells")),
    ("the arrays are others", lambda net: net.arrays.update(extra=np.zeros(1))),
    ("reads what comes after it", config(inputs=-1)),
    ("number of inputs", config(inputs=10**9)),
    ("reads whole numbers", retype("weights", np.int64)),
    ("not a list of floats", lambda net: net.arrays.update(weights=net.arrays["weights"][None])),
    ("'cells' is not of type", retype("cells", np.int32)),
    ("'offsets' is not of type", retype("offsets", np.int32)),
    ("'sources' is not of type", retype("sources", np.int64)),
    (
        "do not follow one another|has entries without a weight",
        both(config(inputs=1), put_all("offsets", [0])),
    ),
    ("do not follow one another|has entries without a weight", put("offsets", 0, 1)),
    ("do not follow one another|has entries without a weight", add("offsets", -1, 1)),
    ("do not follow one another", put("offsets", 1, 3)),
    ("reads what comes after it", put("sources", 0, -1)),
    ("reads what comes after it", put("sources", 0, GIVEN)),
    ("place of the computation", config(computation=[-1, FIRST_CONTROL])),
    ("place of the computation", config(computation=[GIVEN + 2 * CELLS, LAST + 1])),
    ("does not begin after the cells", config(computation=[16, FIRST_CONTROL])),
    ("computation ends elsewhere", config(computation=[15, 46])),
    ("computation ends elsewhere", config(computation=[15, LAST])),
    ("w0 is not a power of two", config(w0=3 * E)),
    ("w0 is not a power of two", config(w0=-E)),
    ("w0 is not a power of two", config(w0=0.0)),
    ("gate is not a power of two", config(gate=0.375)),
    ("out of the range of the precision", config(w0=1.0)),
    ("the rule of training is another", config(w0=0.5)),
    ("out of the range of the precision", config(w0=2.0**-510)),
    ("the rule of training is another", config(w0=2.0**-509)),
    ("out of the range of the precision", both(retype("weights", np.float32), config(w0=2.0**-62))),
    ("the rule of training is another", both(retype("weights", np.float32), config(w0=2.0**-61))),
    ("gates are out of range", config(gate=2.0)),
    ("gates are out of range", config(gate=0.25)),
    ("gates are out of range", config(gate=2.0**-49)),
    ("the rule of training is another", config(gate=2.0**-48)),
    ("gates are out of range", both(retype("weights", np.float32), config(gate=2.0**-20))),
    ("the rule of training is another", both(retype("weights", np.float32), config(gate=2.0**-19))),
    ("the rule of training is another", config(rate=0.0)),
    ("cell is not the edge", add("cells", 0, 1)),
    ("counts other cells", claims(cells=4)),
    ("reads one that does not", edge("sources", at(17), 0, GIVEN)),
    ("no AND or OR of them", add("offsets", at(32) + 1, 2)),
    ("computes no gate", edge("weights", at(AND_OF_THREE), 3, 0.0)),
    ("computes no gate", edge("weights", at(AND_OF_THREE), 0, 6.0)),
    ("does not compute what", edge("weights", at(AND_OF_THREE), 3, 8.0)),
    ("no small whole numbers", edge("weights", at(FIRST_CONTROL), 0, 0.5)),
    ("no small whole numbers", edge("weights", at(FIRST_CONTROL), 0, 65.0)),
    ("a control has other weights", edge("weights", at(FIRST_CONTROL), 3, -64.0)),
    ("a control has other weights", edge("weights", at(FIRST_CONTROL), 3, 64.0)),
    ("not as flat as claimed", claims(flat_margin=-0.5)),
    ("not as flat as claimed", claims(flat_margin=0)),
    ("not as flat as claimed", claims(flat_margin=1.5)),
    ("not as flat as claimed", claims(flat_margin=2.5)),
    ("begin at the constant", put("sources", 0, 1)),
    ("another weight than w0", add("weights", 0, E)),
    ("reader reads another cell", put("sources", 3, GIVEN)),
    ("reader is not at", add("weights", 1, 1.0)),
    ("gate is at another cell", edge("sources", at(FIRST_CONTROL + 4), 0, GIVEN + 2)),
    ("gate is not at 1/2", edge("weights", at(FIRST_CONTROL + 4), 0, 1.0)),
    ("gate is not at 1/2", edge("weights", at(FIRST_CONTROL + 5), 0, 1.0)),
    ("gate has other controls", edge("sources", at(FIRST_CONTROL + 4), 1, FIRST_CONTROL + 1)),
    ("gate has other controls", edge("sources", at(FIRST_CONTROL + 5), 2, FIRST_CONTROL + 1)),
    ("opens its gate by another", edge("weights", at(FIRST_CONTROL + 4), 2, 1.0)),
    ("another number of edges", add("offsets", at(FIRST_CONTROL + 5), -1)),
    ("disagree on when it flips", edge("sources", at(FIRST_CONTROL + 1), 0, 16)),
    ("looks at another answer", edge("sources", at(FIRST_CONTROL + 2), 1, 16)),
    ("control reads another cell", edge("sources", at(FIRST_CONTROL + 3), 2, GIVEN + 3)),
    ("lacks its constant", edge("sources", at(FIRST_CONTROL), 3, 1)),
    ("half the answer", edge("weights", -1, 0, 1.0)),
    ("output reads other vertices", edge("sources", -1, 1, FIRST_CONTROL)),
    ("another share of the output", edge("weights", -1, 1, 0.25)),
    ("another share of the output", edge("weights", -1, 3, 3 / 64 * (1 - 2.0**-52))),
    ("another share of the output", edge("weights", -1, 3, 9 / 64)),
    ("closed cells do not cancel", edge("weights", -1, 3, 1 / 16)),
    ("open cell is not made up for", both(add("weights", -28, 1 / 64), add("weights", -27, -1 / 64))),
    ("claim about rounding", claims(changes_vanish=False)),
    ("claim about rounding", claims(changes_vanish=1)),
    ("number of steps is not", config(steps=0)),
    ("number of steps is not", config(steps=(1 << 53) + 1)),
    ("for another number of steps", config(steps=1 << 53)),
    ("for another number of steps", claims(steps=1)),
    ("drift is another", claims(drift=1.0)),
    ("drift is another", lambda net: net.claims.update(drift=net.claims["drift"] * (1 + 1e-8))),
    ("training is not exact", lambda net: net.arrays.update(trained=net.arrays["weights"][:-1])),
    ("training is not exact", lambda net: net.arrays.update(trained=net.arrays["weights"].astype("f4"))),
    ("more than the signs", lambda net: net.arrays.update(trained=2 * net.arrays["weights"])),
    ("more than the signs", lambda net: net.arrays.update(trained=-net.arrays["weights"])),
    ("more or fewer names", lambda net: net.config["names"].pop()),
    ("names of inputs are not texts", config(names=[1])),
    ("does not compute it", config(finished=GIVEN)),
    ("takes columns that there are not", config(finished=-1)),
    ("the learner is another", learner(bits=1)),
    ("the learner is another", learner(first=(0,) * 4)),
    ("other names than in the learner", lambda net: config(names=[*net.config["names"][:-1], "x"])(net)),
    ("first memory is not the learner's", learner(first=(1, 0, 0, 0, 0))),
    ("does not compute what", lambda net: _other_gate(net)),
]


def _other_kinds(net: Net, kinds: np.ndarray) -> None:
    assert isinstance(net.source, Learner)
    net.source = replace(net.source, circuit=replace(net.source.circuit, kinds=kinds))


def _other_gate(net: Net) -> None:
    assert isinstance(net.source, Learner)
    kinds = net.source.circuit.kinds.copy()
    place = np.flatnonzero(kinds == 8)[0]
    kinds[place] = 14
    _other_kinds(net, kinds)


def same_number(**changes: str) -> Change:
    """In the net and in what it claims."""
    return both(config(**changes), claims(**changes))


EXACT: list[tuple[str, Change]] = [
    ("other entries", config(extra=1)),
    ("other arrays", without("copied")),
    ("'kinds' is not of type", retype("kinds", np.int64)),
    ("'signs' is not of type", retype("signs", np.int64)),
    ("not a fraction", config(p="3.0")),
    ("not a fraction", config(p="1e9")),
    ("not a fraction", config(p="\N{ARABIC-INDIC DIGIT THREE}")),
    ("not a fraction", config(p="1000001/100000")),
    ("path 1: an edge has another", same_number(p="100001/100000")),
    ("not text", config(p=3)),
    ("not a fraction", config(m0="1" * 4001)),
    ("the claims are others", config(m0="1" * 4000)),
    ("the claims are others", claims(p="4")),
    ("the claims are others", claims(cells=4)),
    ("the claims are others", claims(flat_margin=0.25)),
    ("the claims are others", config(p="6/2")),
    ("the claims are others", config(m0="01")),
    ("out of range", same_number(p="1")),
    ("out of range", same_number(p="41/10")),
    ("another weight|below 1", same_number(p="4")),
    ("out of range", same_number(m0="4")),
    ("below 1", same_number(m0="5")),
    ("not given by four", lambda net: net.config["sizes"][0].pop()),
    ("not given by four", lambda net: net.config["sizes"].__setitem__(0, None)),
    ("no positive size", lambda net: net.config["sizes"][0].__setitem__(0, "0")),
    ("not in the list", put("kinds", 0, -1)),
    ("not in the list", lambda net: net.put("kinds", 0, len(net.config["sizes"]))),
    ("signs are not", put("signs", 0, 0)),
    ("signs are not", cut("signs")),
    ("number of inputs", config(inputs=-1)),
    ("path 1: an edge comes from", lambda net: _more_cells(net, 7)),
    ("network lacks vertices", lambda net: _more_cells(net, 8)),
    ("opened and closed", put("kinds", 0, 2)),
    ("opened and closed", put("signs", 0, -1)),
    ("path 1: an edge comes from", put("sources", 1, 0)),
    ("path 1: an edge has another", put("kinds", 1, 0)),
    ("cells differ", put("cells", 0, 2)),
    ("spare component begins", put("signs", 6, -1)),
    ("reader: an edge comes from", put("sources", 13, 6)),
    ("reader: an edge has another", put("kinds", 13, 0)),
    ("positive weight is not read", put("signs", 13, 1)),
    ("first two weights of a path", put("signs", 214, -1)),
    ("another number of edges", add("offsets", 10, 1)),
    ("path 3: an edge comes from|path 2: an edge comes from", add("sources", 214, 1)),
    ("another sign, or a control", put("signs", 220, -1)),
    ("another sign, or a control", put("signs", 221, -1)),
    ("another sign, or a control", put("signs", 222, 1)),
    ("another sign, or a control", put("signs", 223, -1)),
    ("path 3: an edge has another", put("kinds", 220, 0)),
    ("path 4: an edge has another", put("kinds", 221, 0)),
    ("control: an edge has another", put("kinds", 222, 0)),
    ("path 5: an edge has another", put("kinds", 223, 0)),
    ("path 6: an edge has another", put("kinds", -1, 0)),
    ("path 4: an edge comes from", put("sources", 221, 0)),
    ("control: an edge comes from", put("sources", 222, 0)),
    ("path 5: an edge comes from", put("sources", 223, 0)),
    ("output reads another vertex", put("sources", -1, 0)),
    ("do not have opposite signs", put("signs", -1, 1)),
    ("do not have opposite signs", put("signs", -2, -1)),
    ("copies are not", put("copied", 0, 1)),
    ("copies are not", lambda net: net.arrays.update(copied=net.arrays["copied"][::-1].copy())),
    ("does not compute it", config(finished=5)),
    ("finished is not", config(finished=-1)),
    ("more or fewer names", lambda net: net.config["names"].pop()),
    ("names of inputs are not texts", config(names=[1])),
    ("learner has other inputs", learner(bits=1)),
    ("learner has other inputs", learner(first=(0,) * 4)),
    ("learner has other inputs", lambda net: config(names=[*net.config["names"][:-1], "x"])(net)),
    ("first memory is not", learner(first=(1, 0, 0, 0, 0))),
    ("does not compute what", lambda net: _other_gate(net)),
]


def _more_cells(net: Net, count: int) -> None:
    """From eight on, their components take all vertices there are."""
    net.arrays["cells"] = np.arange(count)
    m0 = str(10 * int(net.config["m0"]))
    both(same_number(m0=m0), claims(cells=count))(net)


def _weight(number: int, value: str) -> Change:
    """Another weight in the list, and on all edges that have it."""

    def change(net: Net) -> None:
        net.config["weights"][number] = value
        net.put("weights", net.arrays["kinds"] == number, float(value))

    return change


def _kind(place: int, number: int) -> Change:
    """Another weight of the list at an edge."""

    def change(net: Net) -> None:
        net.put("kinds", place, number)
        net.put("weights", place, float(net.config["weights"][number]))

    return change


NOISY: list[tuple[str, Change]] = [
    ("other entries", config(extra=1)),
    ("other arrays", without("answers")),
    ("'weights' is not of type", retype("weights", np.float32)),
    ("'memories' has another shape", lambda net: net.arrays.update(memories=net.arrays["memories"][0])),
    ("reads what comes after it", config(inputs=-1)),
    ("memorises nothing", lambda net: net.arrays.update(written=net.arrays["written"][:0])),
    ("not text", lambda net: net.config["weights"].__setitem__(0, 0.25)),
    ("not finite", lambda net: net.config["weights"].__setitem__(0, "NaN")),
    ("not finite", lambda net: net.config["weights"].__setitem__(0, "Infinity")),
    ("not in the list", put("kinds", 0, -1)),
    ("not in the list", lambda net: net.put("kinds", 0, len(net.config["weights"]))),
    ("not those of the list", add("weights", 0, 1.0)),
    ("arithmetic is unknown", config(arithmetic="half")),
    ("arithmetic is unknown", config(arithmetic=["double"])),
    ("claims are others", claims(extra=1)),
    ("another number of samples", claims(samples=3)),
    ("another number of samples", claims(flat_margin=0.25)),
    ("dead zone is another", claims(dead_zone="1")),
    ("dead zone is another", lambda net: _scaled_dead_zone(net, "1." + "0" * 58 + "1")),
    ("dead zone is another", config(arithmetic="decimal")),
    ("seed is not", config(seed=-1)),
    ("noise is not", config(noise="0")),
    ("noise is negative", config(noise=-1.0)),
    ("path 0: an edge comes from", put("sources", 0, 1)),
    ("path 0: an edge has another", _kind(0, 1)),
    ("path 1: an edge has another", _kind(1, 0)),
    ("read: an edge has another", _kind(2, 0)),
    ("tell: an edge has another", _kind(3, 0)),
    ("level: an edge has another", _kind(4, 0)),
    ("tell: an edge comes from", put("sources", 3, 0)),
    ("level: an edge comes from", put("sources", 4, 1)),
    ("half: an edge comes from", put("sources", 693, 0)),
    ("answer: an edge has another", _kind(-1, 0)),
    ("answer: an edge comes from", put("sources", -1, 0)),
    ("hold: an edge has another", _kind(-2, 0)),
    ("path 4: an edge has another", _kind(-4, 0)),
    ("half: an edge has another|one: an edge has another", _kind(693, 0)),
    ("not written one after the other", add("sources", 56, 1)),
    ("not written one after the other", add("sources", 57, -1)),
    ("another weight", lambda net: _nearly(net, 0, "1." + "0" * 58 + "1")),
    ("other inputs or another memory", learner(bits=2)),
    ("other inputs or another memory", learner(first=(0,) * 9)),
    ("first memory is not", lambda net: net.put("first", 0, 1 - net.arrays["first"][0])),
    ("network lacks vertices", lambda net: _other_kinds(net, np.zeros(1000, np.uint8))),
    ("one for each sample", cut("memories")),
    ("one for each sample", cut("answers")),
    ("does not compute it", put("answers", (0, 0), 0 - 1)),
    ("does not compute what", lambda net: net.put("answers", 0, net.arrays["answers"][0][::-1])),
    ("does not compute what", lambda net: _other_gate(net)),
]


def _scaled_dead_zone(net: Net, by: str) -> None:
    with localcontext(prec=80):
        net.claims["dead_zone"] = str(Decimal(net.claims["dead_zone"]) * Decimal(by))


def _nearly(net: Net, number: int, by: str) -> None:
    with localcontext(prec=80):
        _weight(number, str(Decimal(net.config["weights"][number]) * Decimal(by)))(net)


ALL = {
    "emulator": EMULATOR,
    "emulator exact": EXACT,
    "emulator noisy": NOISY,
}


@pytest.mark.parametrize(
    ("name", "reason", "change"),
    [(name, *case) for name, cases in ALL.items() for case in cases],
    ids=[f"{name}: {reason}" for name, cases in ALL.items() for reason, _ in cases],
)
def test_a_bad_net_is_refused_for_its_reason(name: str, reason: str, change: Change) -> None:
    net = copy.deepcopy(genuine(name))
    change(net)
    with pytest.raises(CheckError, match=reason):
        net.verdict(name.split()[0])


@pytest.mark.parametrize(
    ("arithmetic", "most"), [("double", 2.0**-85 / 3**9), ("decimal", 2.0**-134 / 3**11)]
)
def test_more_noise_than_the_lemma_allows_leaves_nothing_proved(arithmetic: str, most: float) -> None:
    net = net_of(parity(1), "emulator", {"form": "noise-tolerant", "samples": 1, "arithmetic": arithmetic})
    for noise, verdict in ((most * (1 - 1e-9), for_the_first(1)), (most * (1 + 1e-9), OWN_TABLE)):
        net.config["noise"] = noise
        assert net.verdict("emulator") == verdict


def test_a_vertex_has_no_more_edges_than_can_be_added_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vertices, "MOST_EDGES", 3)
    with pytest.raises(CheckError, match="too many edges"):
        genuine("emulator").verdict("emulator")


def with_cells_of(w0: float, steps: int, vanish: bool) -> Net:
    """The net with other weights in its cells, and all that depends on them."""
    net = copy.deepcopy(genuine("emulator"))
    size = np.abs(net.arrays["weights"])
    scale = np.where(size == E, w0 / E, np.where((size == 4 / E) | (size == 0.5 / E), E / w0, 1))
    net.arrays["weights"] = net.arrays["weights"] * scale
    u = net.config["gate"]
    each = 20 * (6 * CELLS + 1) / u + 41 + 28 / u**2
    drift = CELLS**0.5 * steps**2 / 2 * w0**2 * each
    net.config |= {"w0": w0, "rate": w0**2 / u, "steps": steps}
    net.claims |= {"changes_vanish": vanish, "steps": steps, "drift": drift}
    return net


@pytest.mark.parametrize(("exponent", "vanish"), [(-30, False), (-31, False), (-32, True)])
def test_changes_round_away_from_some_size_of_the_cells_on(exponent: int, vanish: bool) -> None:
    """A step changes a weight of the output, at least u = 1/8, by at most 8 w0^2 / u = 64 w0^2. That rounds
    away if it is at most a quarter of the distance 2^-55 to the next larger double: below a power of two they
    are twice as dense."""
    wanted = COMPUTES_SOURCE if vanish else for_the_first(1)
    assert with_cells_of(2.0**exponent, 1, vanish).verdict("emulator") == wanted
    with pytest.raises(CheckError, match="about rounding"):
        with_cells_of(2.0**exponent, 1, not vanish).verdict("emulator")


def test_where_changes_stay_the_drift_is_bounded_and_no_training_is_exact() -> None:
    """At w0 = 2^-31 the drift is about 1.65e-15 T^2: 1/4 at T = 12,320,875."""
    net = with_cells_of(2.0**-31, 12_300_000, False)
    assert net.claims["drift"] < 1 / 4
    assert net.verdict("emulator") == for_the_first(12_300_000)
    net.arrays["trained"] = net.arrays["weights"]
    with pytest.raises(CheckError, match="training is not exact"):
        net.verdict("emulator")
    net = with_cells_of(2.0**-31, 12_400_000, False)
    assert net.claims["drift"] > 1 / 4
    with pytest.raises(CheckError, match="neither rounding nor"):
        net.verdict("emulator")
    exact = copy.deepcopy(genuine("emulator"))
    exact.arrays["trained"] = exact.arrays["weights"].copy()
    exact.arrays["trained"][exact.arrays["cells"]] *= -1
    assert exact.verdict("emulator") == COMPUTES_SOURCE


def test_the_algebra_of_noise_tolerant_memory_depends_on_every_weight() -> None:
    with localcontext(prec=80):
        path = [1 / (4 * Decimal(3).sqrt() ** t) for t in range(5)]
        before, after = -(Decimal(2) ** -81) * Decimal(3) ** -9, -(Decimal(2) ** -41) * Decimal(3) ** -9
        _algebra(path, before, after)
        more = 1 + Decimal(10) ** -50
        for number in range(5):
            other = [weight * more if t == number else weight for t, weight in enumerate(path)]
            with pytest.raises(CheckError, match="does not close" if number < 4 else "does not double"):
                _algebra(other, before, after)
        for controls in ((before * more, after), (before, after * more)):
            with pytest.raises(CheckError, match="does not close"):
                _algebra(path, *controls)


def test_monomials_are_equal_as_numbers() -> None:
    """Exponents may differ by whole numbers, within a bound on the work."""
    own, zero, far = _Constants(Fraction(3), 10**80), Fraction(0), Fraction(1 << 14)
    one = Fraction(1), (zero, zero, zero)
    assert (_short(10**19 - 1), _short(12345 * 10**15)) == ("9" * 19, "1.234e+19")
    assert own.equal((Fraction(1, 6), (Fraction(1), Fraction(1), zero)), one)
    assert not own.equal((Fraction(1, 6), (Fraction(1), Fraction(2), zero)), one)
    assert not own.equal((Fraction(1), (Fraction(1, 2), zero, zero)), one)
    assert own.equal((1 / Fraction(2) ** (1 << 14), (far, zero, zero)), one)
    assert not own.equal((1 / Fraction(2) ** (1 + (1 << 14)), (far + 1, zero, zero)), one)
