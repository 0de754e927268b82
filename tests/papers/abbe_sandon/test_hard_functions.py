"""Random graphs and sums with hidden digits, and the compiled algorithms for them."""

from itertools import combinations, permutations

import numpy as np
import pytest

from tapegrad._compile import compile
from tapegrad._verify import verify
from tapegrad_papers.abbe_sandon import hard_functions
from tapegrad_papers.abbe_sandon.hard_functions import (
    aer,
    compiled_answers,
    connectivity_circuit,
    digit_sums,
    is_connected,
    papers_parameters,
    short_cycles,
    two_halves,
)


def complete(n: int) -> np.ndarray:
    return ~np.eye(n, dtype=bool)


def test_cycles_of_complete_graphs_are_counted() -> None:
    """K_5 has 10 triangles, 15 squares and 12 pentagons."""
    found = short_cycles(complete(5), 6)
    assert [sum(len(c) == k for c in found) for k in (3, 4, 5)] == [10, 15, 12]
    assert len({frozenset(zip(c, (*c[1:], c[0]), strict=True)) for c in found}) == len(found)
    assert len(short_cycles(complete(5), 4)) == 10
    assert short_cycles(complete(5), 3) == []


def has_cycle_of(graph: np.ndarray, k: int) -> bool:
    for vertices in combinations(range(len(graph)), k):
        for rest in permutations(vertices[1:]):
            order = (vertices[0], *rest)
            if all(graph[order[i - 1], order[i]] for i in range(k)):
                return True
    return False


@pytest.mark.parametrize("r", [4, 5])
def test_aer_has_no_short_cycles_and_is_no_forest(r: int) -> None:
    rng = np.random.default_rng(r)
    longest = 0
    for _ in range(10):
        graph = aer(9, 5, r, rng)
        assert (graph == graph.T).all()
        assert not graph.diagonal().any()
        assert not any(has_cycle_of(graph, k) for k in range(3, r))
        longest += len(short_cycles(graph, 10)) > 0
    assert longest > 5


def test_aer_without_pruning_is_erdos_renyi() -> None:
    rng = np.random.default_rng(0)
    counts = [aer(20, 6, 3, rng).sum() / 2 for _ in range(300)]
    assert abs(np.mean(counts) - 190 * 0.3) < 4 * np.sqrt(190 * 0.3 * 0.7 / 300)
    m, r = papers_parameters(8000)
    assert m == pytest.approx(10 * np.log(8000))
    assert r < 3 < papers_parameters(8200)[1]


def test_two_halves_are_never_connected() -> None:
    rng = np.random.default_rng(2)
    for _ in range(10):
        assert not is_connected(two_halves(10, 8, 3, rng))
    assert is_connected(complete(4))


@pytest.mark.slow
def test_the_compiled_circuit_searches() -> None:
    """All graphs of four vertices, beside depth-first search."""
    rows = np.arange(64)[:, None] >> np.arange(6) & 1
    expected = []
    for row in rows:
        graph = np.zeros((4, 4), bool)
        graph[np.triu_indices(4, 1)] = row
        expected.append(is_connected(graph | graph.T))
    assert sum(expected) == 38  # connected labelled graphs on four vertices
    assert (compiled_answers(connectivity_circuit(4), rows) == expected).all()


def test_sums_by_hand() -> None:
    """The paper's own example in base 3: 120 + 112 + 121 = 1200, and the question ??0?."""
    numbers = [1, 2, 0, 1, 1, 2, 1, 2, 1]
    identity = (0, 1, 2)
    digits = [0, 0, 2, 1]  # 120 + 112 + 121 = 15 + 14 + 16 = 45 = 1200 in base 3, units first
    for place, digit in enumerate(digits[:3]):
        for asked in range(3):
            found = hard_functions.matches(np.array([[*numbers, place, asked]]), 3, identity)[0]
            assert found == (asked == digit)
    other = (2, 0, 1)
    assert hard_functions.matches(np.array([[*numbers, 0, 0]]), 3, other)[0] == (
        (int("012", 3) + int("001", 3) + int("010", 3)) % 3 == 2
    )


def test_centred_values_have_mean_0_and_mean_square_1() -> None:
    x = hard_functions.all_inputs(2)
    for meaning in hard_functions.meanings(2):
        values = hard_functions.centred(hard_functions.matches(x, 2, meaning), 2)
        assert values.mean() == pytest.approx(0)
        assert (values**2).mean() == pytest.approx(1)


@pytest.mark.parametrize("n", [2, 3])
def test_the_learner_predicts_as_arithmetic_does(n: int) -> None:
    learner = digit_sums(n)
    rng = np.random.default_rng(n)
    x = hard_functions.draw_inputs(n, 60, rng)
    width = learner.inputs // (n * n + 2)
    bits = (x[:, :, None] >> np.arange(width) & 1).reshape(len(x), -1)
    meaning = hard_functions.meanings(n)[-1]
    y = hard_functions.matches(x, n, meaning)
    *_, last = learner.run(learner.start(bits, y.astype(int), 1, False))
    left = [m for m, out in zip(hard_functions.meanings(n), last.memory, strict=True) if not out]
    assert left == hard_functions.consistent(x, y, n) == [meaning]
    assert verify(compile(learner, "emulator"), [(bits[:12], y[:12].astype(int), 1)], engine="fast").agreed
