"""Corollary 2 and section 5: random restarts with a validation set, and one filter for many tasks."""

import math

import numpy as np

from tapegrad.learners.on_grid import GRID_LEARNERS
from tapegrad.search import Family, SearchOptions, run, task_named
from tapegrad.search.tasks import draw_instances
from tapegrad.search.tree import COMPLETE, GO_ON, evaluate, sample
from tapegrad.targets.rcnn.weights import count_weights, idle_machine
from tapegrad_papers.claims.goel.instances import by_interpreter
from tapegrad_papers.claims.goel.paper import PAPER
from tapegrad_papers.claims.ledger import Outcome, holds, holds_corrected
from tapegrad_papers.goel.bounds import deviation_bound, validation_size

EPSILON, DELTA = 0.2, 0.2
TASK, FAMILY, EXPONENT = "last-label", Family(2), 2


def _best_of(restarts: int, validation: int, seed: int) -> float:
    """The error, on fresh problems, of the best of so many random machines on a validation set."""
    drawn = (draw_instances(task_named(TASK), validation, seed + shift) for shift in (0, 10_000))
    problems, fresh = (instances.problems(EXPONENT) for instances in drawn)
    _, tables, errors, _ = sample(FAMILY.code(), problems, validation, seed, restarts, 1, GO_ON)
    if errors[0] > validation:
        return 1.0  # not one of them answered
    right = evaluate(tables, FAMILY.states, fresh)
    return 1 - float(right[0]) / validation


def _chance(draws: int) -> float:
    """How often a random machine solves the task: no error on 60 problems."""
    problems = draw_instances(task_named(TASK), 60, 5).problems(EXPONENT)
    counts, *_ = sample(FAMILY.code(), problems, 0, 9, draws, 1, GO_ON)
    return counts[COMPLETE] / draws


@PAPER.claim(
    "Corollary 2", "Restarts and a validation set make Algorithm 1 (epsilon, delta, s, k)-Turing-optimal"
)
def corollary_2(long: bool) -> Outcome:
    trials = 40 if long else 10
    chance = _chance(300_000)
    restarts = math.ceil(math.log(2 / DELTA) / chance)
    validation = validation_size(restarts, EPSILON, DELTA / 2)
    printed = math.ceil(DELTA / (2 * chance))
    failures, printed_failures = (
        sum(_best_of(count, validation, seed) > EPSILON for seed in range(trials))
        for count in (restarts, printed)
    )
    large, larger = (count_weights(idle_machine(s)).dense_parameters for s in (256, 512))
    growth = larger / large
    checks = {
        "log(2/delta)/p restarts and the N of B.5 fail in a share of delta at most (2 deviations)": failures
        <= trials * DELTA + 2 * math.sqrt(trials * DELTA),
        "delta/(2p) restarts, as B.5 has it, fail in most trials": printed_failures > trials / 2,
        "2 sqrt(log(2M/delta)/2N) <= epsilon": 2 * deviation_bound(restarts, validation, DELTA / 2)
        <= EPSILON,
        "the places to fill nearly quadruple when s doubles: s^2 of them, not s": growth > 3,
    }
    return holds_corrected(
        checks,
        stated="s^(c1 s) log(1/delta) restarts, c2 s log s log(1/delta)/epsilon^2 examples; in B.5 M = delta "
        "s^(c2 s^2)/2",
        measured=f"random machines of 2 states, a share p = {chance:.4f} of them good: {restarts} restarts "
        f"with {validation} examples fail {failures} times in {trials}, the printed {printed} restarts "
        f"{printed_failures} times",
        correction="One candidate in s^(c s^2) is good (Theorem 1), so M = s^(c s^2) log(2/delta). B.5 sets "
        "M s^(-c s^2) = delta/2, with which a good one is met with probability delta/2 only. N is then of "
        "the order s^2 log s log(1/delta)/epsilon^2.",
        chance=chance,
        restarts=restarts,
        validation=validation,
        failures=failures / trials,
        printed_failures=printed_failures / trials,
    )


@PAPER.claim("Section 5", "One filter, chosen on a few learning problems, learns new ones")
def section_5(long: bool) -> Outcome:
    found = run("single-coordinate", SearchOptions(single=2, pairs=1, mirrored=True, allowed_errors=2))
    rng, task = np.random.default_rng(77), task_named("single-coordinate")
    problems = [task.draw(rng) for _ in range(200 if long else 60)]
    ready = GRID_LEARNERS["single-coordinate"]().machine

    def wrong(machine) -> float:
        runs = [by_interpreter(machine, p.X, p.y, p.x)[0] != p.answer for p in problems]
        return float(np.mean(runs))

    reused, by_hand = wrong(found.machine), wrong(ready)
    special = run("first-coordinate", SearchOptions(allowed_errors=0))
    specialised = wrong(special.machine)
    checks = {
        "the machine found by search solves new problems nearly as well as the one written by hand": reused
        <= by_hand + 0.05,
        "a machine chosen for one problem (the first coordinate) does not": specialised > 0.15,
    }
    return holds(
        checks,
        stated="the filter that does best on some learning problems does as well on future ones",
        measured=f"best of {found.candidates:,} machines on 24 problems, each with a coordinate of its own: "
        f"wrong on {reused:.1%} of {len(problems)} new ones (by hand {by_hand:.1%}, first coordinate only "
        f"{specialised:.1%})",
        candidates=found.candidates,
        error=reused,
    )
