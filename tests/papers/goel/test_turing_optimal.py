"""Sample sizes, Algorithm 2 and raw sampling."""

import math
from fractions import Fraction

import numpy as np
import pytest

from tapegrad.errors import InputError
from tapegrad.search.run import deviation_bound
from tapegrad_papers.goel.definitions import validation_size
from tapegrad_papers.goel.turing_optimal import algorithm_2, best_machine, observation_1


def test_the_validation_size_makes_twice_the_deviation_the_accuracy():
    for candidates in (1, 1000, 10**9):
        size = validation_size(candidates, 0.1, 0.05)
        assert 2 * deviation_bound(candidates, size, 0.05) <= 0.1
        assert 2 * deviation_bound(candidates, size - 2, 0.05) > 0.1


def test_the_deviation_bound_covers_what_happens():
    rng = np.random.default_rng(0)
    failures = 0
    for _ in range(200):
        errors = rng.random(20)
        seen = rng.binomial(100, errors) / 100
        failures += np.abs(seen - errors).max() > deviation_bound(20, 100, 0.1)
    assert failures <= 20


@pytest.mark.parametrize(("examples", "k"), [(1, 1), (7, 1), (8, 1), (9, 1), (10**6, 2), (4096, 4)])
def test_observation_1_is_the_power_of_two_in_its_interval(examples, k):
    r = observation_1(examples, k)
    edge = examples ** (-1 / (3 * k))
    assert edge / 2 <= float(r) * (1 + 1e-12)
    assert float(r) <= edge * (1 + 1e-12)
    assert r == Fraction(1, r.denominator)
    assert r.denominator & (r.denominator - 1) == 0


@pytest.mark.slow
def test_algorithm_2_tries_all_sizes_and_keeps_the_best_on_what_it_holds_back():
    rng = np.random.default_rng(2)
    X, extra = rng.choice([-1, 1], (4, 2)), rng.choice([-1, 1], (4000, 2))
    chosen = algorithm_2(best_machine, (X, X[:, 0]), (extra, extra[:, 0]), root=4)
    r = 7
    assert chosen.tried == r**3
    held_back = extra[-r:]
    wrong = np.mean([chosen.classifier(x) != x[0] for x in held_back])
    assert wrong == chosen.error == 0
    assert [chosen.classifier(np.array(x)) for x in ((1, 1), (1, -1), (-1, 1), (-1, -1))] == [1, 1, -1, -1]
    with pytest.raises(InputError, match="extra examples"):
        algorithm_2(best_machine, (X, X[:, 0]), (X[:0], X[:0, 0]))


def test_examples_are_not_both_learned_from_and_validated_on():
    """Of 9 examples with r = 5, the fifth would be both."""
    X = np.random.default_rng(0).choice([-1, 1], (9, 2))
    learner = lambda s, k, samples, extra, limit: lambda x: int(x[0])  # noqa: E731
    with pytest.raises(InputError, match="1 would be both"):
        algorithm_2(learner, (X, X[:, 0]), (X, X[:, 0]), root=math.log(9) / math.log(5))
    assert algorithm_2(learner, (X, X[:, 0]), (X, X[:, 0]), root=2).tried == 27
