"""What `verify` says of nets that are played: each shows the states that a test has written down for it, so
that every way to go wrong can be tried in no time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from tapegrad import _verify
from tapegrad._compile import Compiled
from tapegrad._lockstep import ENDED, NOTHING, STOPPED, Leaps, Lockstep, at_the_pace_of_the_net
from tapegrad._sources import read
from tapegrad._verify import run_and_verify, verify
from tapegrad.circuits import library as circuits
from tapegrad.errors import InputError, Refused
from tapegrad.learners import parity
from tapegrad.machines.model import Configuration, Rule, TuringMachine
from tapegrad.source import Rewriting, Source, State
from tapegrad.targets import target_named


@dataclass
class Played:
    """Shows one state after the other, None between two; then it is done, or stays where it is."""

    states: Sequence[State | None]
    ends: bool = True
    off: dict[int, float] = field(default_factory=dict)
    """Deviations, by the step."""
    no_room: tuple[State, ...] = ()
    engines: list[str] = field(default_factory=list)
    """What the steps were taken with."""
    known: bool = False
    """Whether it says beforehand how far it is to the next state."""

    def start(self, first: State) -> int:
        if first in self.no_room:
            raise Refused(f"no room for {sorted(first.tapes[0])}", advice="")
        return 0

    def begin(self, first: State, engine: str) -> int:
        return self.start(first)

    def advance(self, carry: int, steps: int, engine: str) -> int:
        self.engines.append(engine)
        return min(carry + steps, len(self.states) - 1 if self.ends else carry + steps)

    def decode(self, carry: int) -> State | None:
        return self.states[min(carry, len(self.states) - 1)]

    def deviation(self, carry: int) -> float:
        return self.off.get(carry, 0.0)

    def done(self, carry: int) -> bool:
        return self.ends and carry == len(self.states) - 1

    def steps_taken(self, carry: int) -> int:
        return carry

    @property
    def one_pass(self) -> bool:
        return False

    def all_arrays(self) -> dict[str, Any]:
        return {}

    def silent(self, carry: int) -> int:
        later = range(carry + 1, len(self.states)) if self.known else ()
        return next((place - carry for place in later if self.states[place] is not None), 1)

    def engine_for(self, carry: int, steps: int) -> str:
        return f"for {steps} steps"


def compiled(net: Any, source: Source, *passes: Rewriting) -> Compiled:
    return Compiled(net, target_named("tape"), source, passes, {})


def machine(text: str) -> TuringMachine:
    found = read(text)
    assert isinstance(found, TuringMachine)
    return found


BEAVER = machine("1RB1LB_1LA1RZ")
STATES = list(BEAVER.run(BEAVER.start()))
"""Of a run of six steps."""


def test_a_net_that_shows_the_run_agrees() -> None:
    net = Played([None, *STATES[:3], None, *STATES[3:]], off={2: 0.5, 6: 0.25})
    report = verify(compiled(net, BEAVER), [()])
    assert report.agreed
    assert report.complete
    assert (report.states, report.steps, report.deviation) == (7, 8, 0.5)
    assert (report.engine, report.every, report.exhaustive, report.coverage) == ("reference", 1, False, None)
    pair = Lockstep(compiled(net, BEAVER), ())
    assert (pair.steps, pair.states, pair.agrees, pair.ended) == (0, 0, True, False)
    while not pair.ended:
        pair.step()
    assert pair.agrees
    assert (pair.source_state, pair.lowered_state) == (STATES[-1], STATES[-1])
    passed = {(before.state, before.tapes[0].get(before.heads[0], "0")) for before in STATES[:-1]}
    assert len(pair.rules) == len(passed)


@pytest.mark.parametrize("at", range(7))
def test_the_first_state_that_differs_is_told(at: int) -> None:
    wrong = Configuration("B", ({5: "1"},), (at,))
    shown = [*STATES[:at], wrong, *STATES[at + 1 :]]
    report = verify(compiled(Played(shown), BEAVER), [()])
    assert not report.agreed
    assert report.mismatch is not None
    found = report.mismatch.step, report.mismatch.expected, report.mismatch.found
    assert found == (at, repr(STATES[at]), repr(wrong))
    pair = Lockstep(compiled(Played(shown), BEAVER), ())
    for _ in range(6):
        assert pair.agrees == (pair.steps != at)
        pair.step()
    assert pair.parted == (STATES[at], wrong)
    assert (pair.source_state, pair.states) == (STATES[-1], 7)  # the interpreters go on


def test_a_side_that_ends_first_is_told() -> None:
    early = verify(compiled(Played(STATES[:5]), BEAVER), [()]).mismatch
    assert early is not None
    assert (early.step, early.expected, early.found) == (4, repr(STATES[5]), STOPPED)
    late = verify(compiled(Played([*STATES, STATES[-1]]), BEAVER), [()]).mismatch
    assert late is not None
    assert (late.step, late.expected, late.found) == (7, ENDED, repr(STATES[-1]))
    silent = verify(compiled(Played([*STATES[:4], None, None]), BEAVER), [()]).mismatch
    assert silent is not None
    assert silent.expected == repr(STATES[4])


def wrapped(before: Source, after: Source, **options: Any) -> Rewriting:
    """States of the one are those of the other in brackets."""
    return Rewriting("in brackets", before, after, lambda state: (state,), _unwrapped, **options)


def _unwrapped(state: Any) -> State | None:
    return state[0]


@dataclass(frozen=True)
class Bracketed:
    """A source whose states are those of another in brackets, one of them twice."""

    source: Source
    name: str = "bracketed"

    def start(self, *inputs: Any) -> State:
        return (self.source.start(*inputs),)

    def run(self, state: Any, /) -> Any:
        return ((own,) for own in self.source.run(state[0]))


def test_both_sources_are_compared() -> None:
    """The net is that of the lowered source, which is not that of the user's."""
    other = machine("1RB1LB_1LA0RZ")
    theirs = list(other.run(other.start()))
    first = next(n for n, (a, b) in enumerate(zip(STATES, theirs, strict=False)) if a != b)
    way = wrapped(BEAVER, Bracketed(other))
    pair = Lockstep(compiled(Played([(state,) for state in theirs]), BEAVER, way), ())
    while pair.parted is None:
        assert pair.agrees
        pair.step()
    assert not pair.agrees
    assert (pair.steps, pair.parted) == (first, (STATES[first], theirs[first]))
    same = wrapped(BEAVER, Bracketed(BEAVER))
    report = verify(compiled(Played([(state,) for state in STATES]), BEAVER, same), [()])
    assert report.agreed
    assert report.states == 7


@pytest.mark.parametrize("covers", [3, 6, 9])
def test_where_only_the_last_state_is_shown_that_one_is_compared(covers: int) -> None:
    """After as many steps as were unrolled, or at the halt."""

    class Unrolled(Bracketed):
        def run(self, state: Any, /) -> Any:
            return iter([state, ("end", STATES[min(covers, 6)])])

    def decoded(state: Any) -> State | None:
        return state[1] if state[0] == "end" else None

    after = Unrolled(BEAVER)
    way = Rewriting("unrolled", BEAVER, after, lambda state: (state,), decoded, covers=covers)
    for shown, agreed in ((min(covers, 6), True), (min(covers, 6) - 1, False)):
        net = Played([(STATES[0],), ("end", STATES[shown])])
        report = verify(compiled(net, BEAVER, way), [()])
        assert (report.agreed, report.states) == (agreed, 1)
    never = replace(way, decode=lambda state: None)
    net = Played([(STATES[0],), ("end", STATES[min(covers, 6)])])
    with pytest.raises(Refused, match="between two steps of the source"):
        verify(compiled(net, BEAVER, never), [()])
    wrong = Played([(STATES[0],), ("end", STATES[1])])
    assert not verify(compiled(wrong, BEAVER, never), [()]).agreed


@pytest.mark.parametrize(
    ("halted", "found"),
    [(lambda state: state[0], None), (lambda state: STATES[0], repr(STATES[0])), (None, NOTHING)],
)
def test_what_is_left_between_two_steps_is_the_last_state(
    halted: Callable[[Any], State] | None, found: str | None
) -> None:
    """The lowered source halts in a state that is none of the user's; what it was last can still be read."""

    class WithTail(Bracketed):
        def run(self, state: Any, /) -> Any:
            return iter([*((own,) for own in STATES), (STATES[-1], "tail")])

    def decoded(state: Any) -> State | None:
        return state[0] if len(state) == 1 else None

    way = Rewriting("tailed", BEAVER, WithTail(BEAVER), lambda state: (state,), decoded, halted=halted)
    net = Played([*((state,) for state in STATES), (STATES[-1], "tail")])
    mismatch = verify(compiled(net, BEAVER, way), [()]).mismatch
    told = None if mismatch is None else (mismatch.expected, mismatch.found)
    assert told == (None if found is None else (repr(STATES[-1]), found))


def test_sources_without_rules_have_none_to_exercise() -> None:
    circuit = circuits.ready("parity4")
    states = list(circuit.run(circuit.start([[1, 0, 1, 1]])))
    assert len(states) > 1
    pair = Lockstep(compiled(Played(states), circuit), ([[1, 0, 1, 1]],))
    while not pair.ended:
        pair.step()
    assert pair.agrees
    assert pair.rules == set()


def test_what_lies_between_two_states_is_passed_over_at_once() -> None:
    """If the net says where the next state is; and a run of known length is followed beyond the usual limit,
    but not beyond one that is asked for."""
    between: list[State | None] = [None] * 7
    shown = [own for state in STATES for own in (state, *between)][: -len(between)]
    net = Played(shown, known=True)
    report = verify(compiled(net, BEAVER), [()])
    assert (report.agreed, report.complete, report.steps, report.states) == (True, True, 48, 7)
    assert len(net.engines) == 6
    wrong = Configuration("B", ({5: "1"},), (0,))
    mismatch = verify(compiled(Played([*shown[:16], wrong, *shown[17:]], known=True), BEAVER), [()]).mismatch
    assert mismatch is not None
    assert mismatch.step == 16
    cut = verify(compiled(Played(shown, known=True), BEAVER), [()], steps=12)
    assert (cut.agreed, cut.complete, cut.steps, cut.states) == (True, False, 12, 2)
    circuit = circuits.ready("parity4")
    first, last = circuit.run(circuit.start([[1, 0, 1, 1]]))
    far = Played([first, *[None] * 12_000, last], known=True)
    assert verify(compiled(far, circuit), [([[1, 0, 1, 1]],)]).complete
    assert not verify(compiled(far, circuit), [([[1, 0, 1, 1]],)], steps=10_000).complete


# In leaps


def test_leaps_compare_now_and_then_and_at_the_end() -> None:
    for every, compared in ((2, 4), (3, 3), (4, 3), (6, 2), (9, 2)):
        net = Played(STATES)
        report = verify(compiled(net, BEAVER), [()], every=every)
        assert report.agreed, report
        assert report.complete
        assert (report.steps, report.states, report.every) == (6, compared, every)
    report = verify(compiled(Played(STATES), BEAVER), [()], every=2, steps=5)
    assert report.agreed
    assert (report.steps, report.complete) == (5, False)
    net = Played([None, None, *STATES[:1]], ends=False)
    assert Leaps(compiled(net, BEAVER), (), "fast", 2, 9).carry == 2
    assert net.engines == ["fast", "fast"]


def in_leaps(net: Compiled, every: int) -> Leaps:
    """A net that was followed to its end, or to where it parts from its source."""
    pair = Leaps(net, (), "fast", every, 99)
    while pair.parted is None and not pair.ended:
        pair.step()
    return pair


def test_leaps_notice_what_is_where_they_look() -> None:
    wrong = Configuration("B", ({5: "1"},), (0,))
    for at, every, noticed in ((2, 2, True), (3, 2, False), (6, 4, True), (0, 2, True)):
        shown = [*STATES[:at], wrong, *STATES[at + 1 :]]
        assert verify(compiled(Played(shown), BEAVER), [()], every=every).agreed is not noticed
        parted = in_leaps(compiled(Played(shown), BEAVER), every).parted
        assert parted == ((STATES[at], wrong) if noticed else None)
    assert in_leaps(compiled(Played(STATES[:5]), BEAVER), 2).parted == (STATES[5], STOPPED)
    late = compiled(Played([*STATES, STATES[-1], STATES[-1]]), BEAVER)
    assert in_leaps(late, 4).parted == (ENDED, STATES[-1])
    report = verify(compiled(Played(STATES, off={4: float("nan")}), BEAVER), [()], every=2)
    assert not report.agreed


def test_leaps_end_where_the_source_of_the_user_ends() -> None:
    """The machine is followed step by step, and the user's own run to its end."""
    same = replace(BEAVER, name="another")
    way = wrapped(BEAVER, same)
    way = replace(way, encode=lambda state: state, decode=lambda state: state)
    assert verify(compiled(Played(STATES), BEAVER, way), [()], every=2).agreed
    lost = compiled(Played(STATES), BEAVER, replace(way, halted=lambda state: None))
    assert in_leaps(lost, 2).parted == (STATES[-1], NOTHING)
    astray = compiled(Played(STATES), BEAVER, replace(way, halted=lambda state: STATES[1]))
    assert in_leaps(astray, 2).parted == (STATES[-1], STATES[1])
    other = machine("1RB1LB_1LA0RZ")
    report = verify(compiled(Played(STATES), other, replace(way, before=other)), [()], every=2)
    assert not report.agreed
    pair = Leaps(compiled(Played(STATES), BEAVER, way), (), "fast", 4, 9)
    pair.step()
    assert pair.source_state == STATES[4]
    hidden = replace(way, decode=lambda state: None)
    assert Leaps(compiled(Played(STATES), BEAVER, hidden), (), "fast", 4, 9).source_state is None


def test_a_net_goes_at_the_pace_of_the_source_before_its_last_pass() -> None:
    """A learner has no compiled interpreter; the machine that it is in step with has one."""
    learner = parity(1)
    inner = wrapped(BEAVER, learner, in_step=True)
    assert at_the_pace_of_the_net(compiled(Played([]), BEAVER, inner)) == (BEAVER, (inner,))
    out_of_step = replace(inner, in_step=False)
    assert at_the_pace_of_the_net(compiled(Played([]), BEAVER, out_of_step)) == (learner, ())
    outer = replace(wrapped(BEAVER, BEAVER), encode=lambda state: state, decode=lambda state: state)
    both = compiled(Played([(state,) for state in STATES]), BEAVER, outer, inner)
    assert at_the_pace_of_the_net(both) == (BEAVER, (inner,))
    assert at_the_pace_of_the_net(compiled(Played([]), BEAVER, inner, replace(outer, in_step=True)))[1] == ()
    pair = Leaps(both, (), "fast", 4, 99)
    assert (pair.outer, pair.inner, pair.reached) == ((outer,), (inner,), STATES[0])
    pair.step()
    assert (pair.reached, pair.source_state, pair.parted) == (STATES[4], STATES[4], None)
    assert verify(both, [()], every=2).agreed
    longer = Played([*((state,) for state in STATES), None, None])
    report = verify(compiled(longer, BEAVER, replace(inner, decode=lambda s: s and s[0])), [()], every=3)
    assert not report.agreed  # it ends in nothing
    silent = compiled(Played([(state,) for state in STATES]), BEAVER, replace(inner, decode=lambda s: None))
    assert Leaps(silent, (), "fast", 4, 99).parted == (STATES[0], None)
    going_on = Played([*((state,) for state in STATES), None], ends=False)
    pair = Leaps(compiled(going_on, BEAVER, replace(inner, decode=lambda s: s and s[0])), (), "fast", 4, 99)
    for _ in range(3):
        pair.step()
    assert (pair.reached, pair.halted, pair.parted) == (STATES[-1], True, None)
    with pytest.raises(InputError, match="in leaps"):
        verify(compiled(Played([]), BEAVER, out_of_step), [()], every=2)


# The report


RIGHT = TuringMachine({("a", ("0",)): Rule(("0",), (1,), "a")}, "a", blank="0", alphabet=("0", "1"))
"""Goes to the right for ever."""


@dataclass(frozen=True)
class ForEver(Sequence[State]):
    """The states of that."""

    def __len__(self) -> int:
        return 1 << 40

    def __getitem__(self, step: Any) -> State:
        return Configuration("a", ({},), (step,))


def test_runs_without_an_end_meet_the_limit() -> None:
    net = compiled(Played(ForEver()), RIGHT)
    report = verify(net, [()], every=5_000)
    assert report.agreed, report
    assert (report.steps, report.complete) == (10_000, False)
    run, report = run_and_verify(net, every=50_000)
    assert (run.steps, run.halted, report.steps, report.complete) == (100_000, False, 100_000, False)
    assert 0 < report.seconds < run.seconds < 60
    assert verify(net, [()], steps=7).steps == 7


def test_each_net_chooses_its_engine_where_none_is_named() -> None:
    net = Played(STATES)
    assert verify(compiled(net, BEAVER), [()], engine=None, steps=9).engine == "for 9 steps"
    assert set(net.engines) == {"for 9 steps"}
    assert verify(compiled(net, BEAVER), [()]).engine == "reference"
    run, _ = run_and_verify(compiled(Played(STATES), BEAVER))
    assert run.state == STATES[-1]


def test_progress_and_states_are_shown_on_the_way() -> None:
    told: list[int] = []
    seen: list[State] = []
    run_and_verify(compiled(Played(STATES), BEAVER), progress=told.append, watch=seen.append)
    assert told == [1, 2, 3, 4, 5, 6]
    assert seen == STATES[1:]
    wrong = [*STATES[:2], STATES[0], *STATES[3:]]
    seen.clear()
    run_and_verify(compiled(Played(wrong), BEAVER), watch=seen.append)
    assert seen[0] == STATES[1]
    assert STATES[2] not in seen  # nothing of the source once they have parted
    hidden = replace(wrapped(BEAVER, BEAVER), encode=lambda state: state, decode=lambda state: None)
    seen.clear()
    run_and_verify(compiled(Played(STATES), BEAVER, hidden), every=3, watch=seen.append)
    assert seen == []


def test_inputs_without_room_are_left_out_if_they_were_chosen_here(monkeypatch: pytest.MonkeyPatch) -> None:
    other = BEAVER.start("1")
    net = compiled(Played(STATES, no_room=(other,)), BEAVER)
    monkeypatch.setattr(_verify, "default_inputs", lambda compiled, random: ([("1",), (), ("1",)], True))
    report = verify(net)
    assert (report.inputs, report.agreed, report.exhaustive) == (1, True, False)
    assert report.coverage is not None
    assert verify(net, every=2).coverage is None
    for given in ([("1",)], [(), ("1",)]):
        with pytest.raises(Refused, match="no room"):
            verify(net, given)
    monkeypatch.setattr(_verify, "default_inputs", lambda compiled, random: ([("1",), ("11",)], True))
    with pytest.raises(Refused, match=r"no room for \[0\]"):  # the first that was left out
        verify(compiled(Played(STATES, no_room=(other, BEAVER.start("11"))), BEAVER))
    monkeypatch.setattr(_verify, "default_inputs", lambda compiled, random: ([()], True))
    assert verify(net).exhaustive
    wrong = compiled(Played(STATES[:3]), BEAVER)
    monkeypatch.setattr(_verify, "default_inputs", lambda compiled, random: ([(), ()], True))
    report = verify(wrong)
    assert (report.inputs, report.exhaustive) == (1, False)  # nothing after the first mismatch


def test_a_net_is_tried_on_inputs_that_it_was_built_for() -> None:
    words = [["1" * n] for n in range(70)]
    built = Compiled(Played(STATES), target_named("simplex"), BEAVER, (), {"inputs": words})  # type: ignore[arg-type]
    assert built.built_for() is not None
    chosen, exhaustive = _verify.default_inputs(built, np.random.default_rng(0))
    found = [len(word) for (word,) in chosen]
    assert (len(found), exhaustive) == (64, False)
    assert found == sorted(set(found))
    few = replace(built, options={"inputs": words[:3]})
    assert [len(word) for (word,) in _verify.default_inputs(few, np.random.default_rng(0))[0]] == [0, 1, 2]
