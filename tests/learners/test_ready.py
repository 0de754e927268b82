"""Every ready learner against an implementation that shares nothing with it."""

import numpy as np
import pytest

from tapegrad.circuits import trace
from tapegrad.circuits.types import from_bits
from tapegrad.learners import (
    CircuitLearner,
    FunctionLearner,
    LearnerState,
    best_of,
    conjunction,
    decision_list,
    dictator,
    doubling,
    majority,
    nearest,
    parity,
    perceptron,
)
from tests.learners.cases import CASES, Case


def after(learner: FunctionLearner, x: np.ndarray, y: np.ndarray) -> LearnerState:
    """The last state after learning from every sample."""
    *_, last = learner.run(learner.start(x, y, guessing=False))
    return last


def answers(learner: FunctionLearner, state: LearnerState, x: np.ndarray) -> list[int]:
    said = [learner.respond(state.memory, row.tolist(), 0, 0) for row in x]
    assert all(response.finished for response in said)
    return [response.answer for response in said]


def memory(learner: FunctionLearner, state: LearnerState) -> dict:
    """The memory as numbers."""
    circuit = learner.circuit
    named = dict(zip(circuit.inputs, state.memory, strict=False))
    keys = {name.removeprefix("memory.").split("[")[0].split(".")[0] for name in named}
    return {
        key: [bit for name, bit in named.items() if name.removeprefix("memory.").startswith(key)]
        for key in keys
    }


def predicted(learner: FunctionLearner, memory: tuple[int, ...], x: np.ndarray) -> int:
    """What a learner would answer whether or not it has finished."""
    plain = trace(learner.predict, learner.memory, learner.x).plain
    return int(plain(from_bits(learner.memory, iter(memory)), from_bits(learner.x, iter(x.tolist()))))


def number(bits: list[int]) -> int:
    return sum(bit << i for i, bit in enumerate(bits))


def signed(bits: list[int]) -> int:
    return number(bits) - (bits[-1] << len(bits))


def draw(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2, shape)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.sampled(3)
def test_the_function_and_its_circuit_agree_at_every_sample(case: Case) -> None:
    x, y = case.drawn(seed=1)
    twin = CircuitLearner(case.learner.circuit, case.learner.inputs, case.learner.first)
    for plain, gates in zip(
        case.learner.run(case.learner.start(x, y, 5)), twin.run(twin.start(x, y, 5)), strict=True
    ):
        assert plain == gates


@pytest.mark.parametrize("case", [c for c in CASES if c.learns], ids=lambda case: case.name)
def test_it_learns(case: Case) -> None:
    x, y = case.drawn(seed=2)
    *_, last = case.learner.run(case.learner.start(x, y, 3))
    every = case.all_inputs()
    said = [case.learner.respond(last.memory, row.tolist(), 0, 0) for row in every]
    wrong = sum(s.answer != label for s, label in zip(said, case.concept(every), strict=True))
    assert wrong == 0


@pytest.mark.parametrize("n", [1, 2, 9, 12])
def test_parity_answers_as_linear_algebra_does(n: int) -> None:
    hidden, x = draw(n, n), draw(n + 100, 4 * n + 10, n)
    learner = parity(n)
    state = after(learner, x, x @ hidden % 2)
    fresh = draw(5, 50, n)
    assert answers(learner, state, fresh) == (fresh @ hidden % 2).tolist()


def test_parity_keeps_as_many_rows_as_the_rank() -> None:
    n = 8
    x = draw(3, 5, 3) @ draw(4, 3, n) % 2  # rank 3 at most
    learner = parity(n)
    states = list(learner.run(learner.start(x, x[:, 0], guessing=False)))
    for count, state in enumerate(states):
        pivots = np.cumsum([0, *range(n, 1, -1)])
        assert sum(state.memory[p] for p in pivots) == _rank(x[:count])


def _rank(rows: np.ndarray) -> int:
    """By Python integers, keeping the highest bits."""
    basis: list[int] = []
    for row in rows:
        value = number(row.tolist())
        for b in basis:
            value = min(value, value ^ b)
        if value:
            basis.append(value)
    return len(basis)


def test_majority_counts() -> None:
    learner = majority(2, 9)
    for seed in range(6):
        x, y = draw(seed, 9, 2), draw(seed + 50, 9)
        state = after(learner, x, y)
        assert answers(learner, state, x[:1]) == [int(y.sum() > 4)]


def test_conjunction_keeps_the_literals_of_all_positive_samples() -> None:
    n, learner = 5, conjunction(5, 12)
    for seed in range(5):
        x = draw(seed, 12, n)
        y = x[:, 1] & (1 - x[:, 4])
        kept = {(i, v) for i in range(n) for v in (0, 1) if all(row[i] == v for row in x[y == 1])}
        fresh = draw(9, 32, n)
        expected = [int(all(row[i] == v for i, v in kept)) for row in fresh]
        assert answers(learner, after(learner, x, y), fresh) == expected


def test_perceptron_has_the_weights_of_a_numpy_perceptron() -> None:
    n, count = 4, 40
    learner = perceptron(n, count)
    x = draw(3, count, n)
    y = (x @ np.array([2, -1, 1, 1]) >= 2) * 1
    w, b = np.zeros(n, int), 0
    for row, label in zip(x, y, strict=True):
        if (2 * label - 1) * (row @ w + b) <= 0:
            w, b = w + (2 * label - 1) * row, b + (2 * label - 1)
    found = memory(learner, after(learner, x, y))
    width = len(found["bias"])
    assert [signed(found["weights"][i : i + width]) for i in range(0, n * width, width)] == w.tolist()
    assert signed(found["bias"]) == b


def test_decision_list_has_the_levels_of_a_dictionary_version() -> None:
    n, count = 3, 25
    learner = decision_list(n, count)
    x, y = draw(7, count, n), draw(8, count)  # contradictory labels: levels reach the floor
    rules = [(literal, label) for label in (0, 1) for literal in range(2 * n + 1)]
    levels = dict.fromkeys(rules, 0)
    for row, label in zip(x, y, strict=True):
        true = [*row, *(1 - row), 1]
        applying = [rule for rule in rules if true[rule[0]]]
        lowest = min(levels[rule] for rule in applying)
        for rule in applying:
            if levels[rule] == lowest and rule[1] != label:
                levels[rule] = min(levels[rule] + 1, n + 2)
    found = memory(learner, after(learner, x, y))
    width = (n + 2).bit_length()
    bits = found["for_0"] + found["for_1"]
    assert [number(bits[i : i + width]) for i in range(0, len(bits), width)] == list(levels.values())


@pytest.mark.parametrize("k", [1, 3, 5])
def test_nearest_votes_like_a_stable_sort(k: int) -> None:
    n, count = 5, 9
    learner = nearest(n, count, k)
    x, y = draw(k, count, n), draw(k + 10, count)
    fresh = draw(99, 30, n)
    order = np.argsort((fresh[:, None] != x).sum(axis=2), axis=1, kind="stable")[:, :k]
    expected = (y[order].sum(axis=1) > k // 2) * 1
    assert answers(learner, after(learner, x, y), fresh) == expected.tolist()


def test_dictator_follows_the_random_bits() -> None:
    n, checks = 5, 4
    learner = dictator(n, checks)
    x = draw(11, 120, n)
    y = x[:, 2]
    first = learner.start(x, y, 6, guessing=False)
    index = drawn = passed = 0
    for row, label, random in zip(x, y, first.samples.random, strict=True):
        if passed == checks:
            break
        if drawn < 3:
            index, drawn = (2 * index + int(random)) % 8, drawn + 1
        elif index < n and row[index] == label:
            passed += 1
        else:
            drawn = passed = 0
    *_, last = learner.run(first)
    found = memory(learner, last)
    assert (number(found["index"]), number(found["passed"])) == (index, passed) == (2, checks)


def test_best_of_chooses_what_validation_says() -> None:
    parts = [majority(4, 6), parity(4), conjunction(4, 6)]
    learner = best_of(parts, 10, 7)
    for seed, concept in enumerate([lambda r: r[0] ^ r[1] ^ r[3], lambda r: r[1] & (1 - r[2]), lambda r: 1]):
        x = draw(seed + 20, 17, 4)
        y = np.array([concept(row) for row in x])
        errors, finals = [], []
        for part in parts:
            *_, state = part.run(part.start(x[:10], y[:10], guessing=False))
            said = [predicted(part, state.memory, row) for row in x[10:]]
            errors.append(sum(a != b for a, b in zip(said, y[10:], strict=True)))
            finals.append((part, state))
        best, state = finals[int(np.argmin(errors))]
        every = np.arange(16)[:, None] >> np.arange(4) & 1
        expected = [predicted(best, state.memory, row) for row in every]
        assert answers(learner, after(learner, x, y), every) == expected


def test_doubling_learns_when_its_mistakes_are_a_square_and_in_rounds_of_1_2_4() -> None:
    base = parity(3)
    learner = doubling(base, 3)
    x = draw(33, 200, 3)
    y = x[:, 0] ^ x[:, 1]
    first = learner.start(x, y, 4)
    mistakes, learned, rounds = 0, [], []
    settled = base.first
    squares = {k * k for k in range(30)}
    for t, state in enumerate(learner.run(first)):
        assert number(memory(learner, state)["root"]) == sum(s < mistakes for s in squares)
        assert state.memory[: base.cells] == settled
        if t == len(x):
            break
        label = int(y[t])
        learning = mistakes in squares
        said = int(first.samples.guess[t]) if learning else predicted(base, settled, x[t])
        if said != label:
            mistakes += 1
            if learning:
                learned.append(t)
                size = [1, 2, 4][min(len(rounds), 2)]
                if len(learned) == size:
                    settled = after(base, x[learned], y[learned]).memory
                    rounds.append(size)
                    learned = []
    assert rounds[:3] == [1, 2, 4]
