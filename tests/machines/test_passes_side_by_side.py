"""Every pass: the rewritten machine, decoded, runs exactly as the original does."""

from itertools import product

import pytest
from hypothesis import given, settings

from tapegrad.errors import Refused
from tapegrad.lowering.one_tape import one_tape
from tapegrad.lowering.tables import (
    binary_tracks,
    on_grid,
    one_way,
    stay_free,
    to_grid,
    total_table,
    triple_states,
)
from tapegrad.machines import LEFT, RIGHT, STAY, Configuration, Rule, TuringMachine
from tapegrad.machines.sampler import random_machine
from tapegrad.source import Rewriting
from tests.machines.side_by_side import check_side_by_side
from tests.machines.strategies import machines_with_words

quick = settings(deadline=None, max_examples=30)
Case = tuple[TuringMachine, list[str]]


@quick
@given(machines_with_words(most_tapes=3))
def test_binary_tracks(case: Case) -> None:
    machine, words = case
    rewriting = binary_tracks(machine)
    assert set(check_side_by_side(rewriting, words, 40)) <= {1}
    after = rewriting.after
    assert isinstance(after, TuringMachine)
    assert after.alphabet == ("0", "1")
    assert 2 ** (after.tapes // machine.tapes) >= len(machine.alphabet)
    width = after.tapes // machine.tapes
    for rule in after.rules.values():
        groups = [set(rule.moves[i : i + width]) for i in range(0, after.tapes, width)]
        assert all(len(group) == 1 for group in groups)


@quick
@given(machines_with_words(most_tapes=3))
def test_stay_free(case: Case) -> None:
    machine, words = case
    rewriting = stay_free(machine)
    assert set(check_side_by_side(rewriting, words, 40)) <= {1, 2}
    assert isinstance(rewriting.after, TuringMachine)
    assert all(STAY not in rule.moves for rule in rewriting.after.rules.values())


@quick
@given(machines_with_words(most_tapes=1))
def test_stay_free_costs_a_step_only_where_one_tape_stays(case: Case) -> None:
    machine, words = case
    overheads = check_side_by_side(stay_free(machine), words, 40)
    run = list(zip(machine.run(machine.start(*words)), range(len(overheads)), strict=False))
    for (state, _), overhead in zip(run, overheads, strict=True):
        rule = machine.rules[state.state, machine.read(state)]
        assert overhead == (2 if rule.moves == (STAY,) else 1)


def test_stay_free_moves_one_head_and_not_the_other() -> None:
    rules = {
        ("q", ("a", "_")): Rule(("a", "a"), (RIGHT, STAY), "q"),
        ("q", ("a", "a")): Rule(("a", "a"), (STAY, LEFT), "q"),
    }
    assert check_side_by_side(stay_free(TuringMachine(rules, "q")), ["aaa", ""], 20) == [2] * 5


@quick
@given(machines_with_words(most_tapes=2))
def test_triple_states(case: Case) -> None:
    machine, words = case
    rewriting = triple_states(machine)
    assert set(check_side_by_side(rewriting, words, 40)) <= {1}
    assert isinstance(rewriting.after, TuringMachine)
    arrows = {(state, rule.state) for (state, _), rule in rewriting.after.rules.items()}
    assert not arrows & {(b, a) for a, b in arrows}


@quick
@given(machines_with_words(most_tapes=3, most_symbols=3, most_states=3))
def test_one_tape(case: Case) -> None:
    machine, words = case
    rewriting = one_tape(machine)
    steps = 12
    times = check_side_by_side(rewriting, words, steps)
    assert isinstance(rewriting.after, TuringMachine)
    assert rewriting.after.tapes == 1
    if machine.tapes > 1:
        assert all(STAY not in rule.moves for rule in rewriting.after.rules.values())
    for state, taken in zip(machine.run(machine.start(*words)), times, strict=False):
        spread = max(state.heads) - min(state.heads)
        assert taken <= max(1, 2 * machine.tapes * (spread + machine.tapes + 3))


@pytest.mark.parametrize("seed", range(58))
@pytest.mark.parametrize("tapes", [2, 3])
@pytest.mark.sampled(5)
def test_the_last_state_is_known_where_a_machine_on_several_tapes_halts(seed: int, tapes: int) -> None:
    machine = random_machine(seed, tapes=tapes, states=3, halt=0.3)
    first = machine.start(*["101", "11", "0"][:tapes])
    own = [state for state, _ in zip(machine.run(first), range(100), strict=False)]
    if len(own) == 100:
        pytest.skip("this one runs on")
    for rewriting in (one_tape(machine), on_grid(machine)):
        *_, last = rewriting.after.run(rewriting.encode(first))
        assert rewriting.decode_last(last) == own[-1]


@quick
@given(machines_with_words(most_tapes=2, most_symbols=3))
def test_one_way(case: Case) -> None:
    machine, words = case
    rewriting = one_way(machine)
    assert set(check_side_by_side(rewriting, words, 40)) <= {1}
    run = rewriting.after.run(rewriting.encode(machine.start(*words)))
    assert all(min(state.heads) >= 0 for state, _ in zip(run, range(40), strict=False))


@quick
@given(machines_with_words())
def test_to_grid(case: Case) -> None:
    machine, words = case
    assert set(check_side_by_side(to_grid(machine), words, 40)) <= {1}


def test_to_grid_refuses_two_tapes() -> None:
    machine = TuringMachine({}, "q", tapes=2)
    with pytest.raises(Refused, match="one_tape"):
        to_grid(machine)


@quick
@given(machines_with_words(most_tapes=2))
def test_total_table(case: Case) -> None:
    machine, words = case
    rewriting = total_table(machine)
    assert set(check_side_by_side(rewriting, words, 40)) <= {1}
    after = rewriting.after
    assert isinstance(after, TuringMachine)
    working = {state for state, _ in machine.rules}
    every_read = product(machine.alphabet, repeat=machine.tapes)
    assert set(after.rules) == set(product(working, every_read))


@quick
@given(machines_with_words(most_tapes=2, most_symbols=3, most_states=2))
def test_passes_compose(case: Case) -> None:
    """The road to Welper's tape target, and the one to the grid: each pass takes the last one's machine."""
    machine, words = case
    state = machine.start(*words)
    for road in (
        (stay_free, binary_tracks, triple_states),
        (one_tape, one_way, total_table, to_grid),
    ):
        here, first = machine, state
        for rewrite in road:
            assert isinstance(here, TuringMachine)
            rewriting = rewrite(here)
            assert rewriting.decode(rewriting.encode(first)) == first
            check_from(rewriting, first)
            here, first = rewriting.after, rewriting.encode(first)


def check_from(rewriting: Rewriting, first: Configuration) -> None:
    """Side by side from a given first state rather than from an input."""
    expected = [state for state, _ in zip(rewriting.before.run(first), range(8), strict=False)]
    decoded = (rewriting.decode(state) for state in rewriting.after.run(rewriting.encode(first)))
    found = (state for state in decoded if state is not None)
    assert [state for state, _ in zip(found, range(8), strict=False)] == expected


@quick
@given(machines_with_words(most_tapes=2, most_symbols=3, most_states=2))
def test_passes_are_deterministic(case: Case) -> None:
    machine, _ = case
    for rewrite in (binary_tracks, stay_free, triple_states, one_tape, one_way, total_table):
        once, again = rewrite(machine).after, rewrite(machine).after
        assert isinstance(once, TuringMachine)
        assert isinstance(again, TuringMachine)
        assert list(once.rules.items()) == list(again.rules.items())
        assert (once.states, once.alphabet) == (again.states, again.alphabet)
