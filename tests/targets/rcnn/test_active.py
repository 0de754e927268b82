"""The units that a patch can make active, beside all units of the filter in NumPy."""

import numpy as np
import pytest

from tapegrad.networks.numpy import chain
from tapegrad.targets.rcnn import active
from tapegrad.targets.rcnn.active import MOST_TOUCHED, evaluate, ready
from tapegrad.targets.rcnn.build import build_filter
from tapegrad.targets.rcnn.encoding import Cells, Encoding, clauses_of
from tests.targets.rcnn.altered import altered
from tests.targets.rcnn.test_many import random_learner

ROUNDING = 1e-9


def filter_of(states, seed=0, encoding="ternary"):
    machine = random_learner(np.random.default_rng(seed), states)
    coded = Encoding(encoding, Cells(len(machine.alphabet), len(machine.states)))
    return build_filter(coded, clauses_of(machine))[0], coded.table().astype(float)


def patches(table, count=300, seed=1):
    """Contents of nine cells, few of them with a head."""
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, len(table), (count, 9))
    return np.where(rng.random((count, 9)) < 0.5, drawn, rng.integers(0, 8, (count, 9)))


def every_unit(filter, table, contents):
    """The filter on each patch, with every unit, and whether a unit of a rule is above 1/2."""
    x = np.moveaxis(table[contents], 2, 1).reshape(len(contents), -1).T
    layers = filter.layers
    deciding = chain(layers[:3] if len(layers) == 5 else layers[:1], x)
    return chain(layers, x).T, (deciding[filter.rule_units] > 0.5).any(axis=0)


def agree(filter, table, contents):
    own = ready(filter, table)
    values, runs = every_unit(filter, table, contents)
    for patch, value, running in zip(contents, values, np.asarray(runs), strict=True):
        found, active_rule = evaluate(own, patch, table)
        np.testing.assert_allclose(found, value, rtol=0, atol=ROUNDING)
        assert active_rule == running
    return own


@pytest.mark.parametrize("states", [1, 3, 40])
def test_what_is_left_out_is_0(states):
    filter, table = filter_of(states, seed=states)
    own = agree(filter, table, patches(table))
    assert own.by_answers
    assert len(own.always) == 0


def test_a_patch_touches_few_units():
    filter, table = filter_of(200)
    own, room = ready(filter, table), np.empty(MOST_TOUCHED, np.int64)
    touched = [active._touched(own, patch, len(table), room) for patch in patches(table)]
    assert 0 < max(touched) < 80 < len(own.clauses.bias) / 10


@pytest.mark.parametrize(
    ("place", "name"), [(0, "bias"), (1, "bias"), (1, "values"), (2, "bias"), (2, "values")]
)
def test_filters_that_were_tampered_with(place, name):
    """Answers that are nowhere 0, thresholds that are always passed: these are computed too."""
    filter, table = filter_of(3)
    rng = np.random.default_rng(place)
    own = getattr(filter.maps[place], name)
    noise = rng.normal(0, 0.7, len(own)) * (rng.random(len(own)) < 0.2)
    broken = altered(filter, place, **{name: own + noise})
    agree(broken, table, patches(table, 100))


def test_more_units_than_there_is_room_for():
    filter, table = filter_of(3)
    own, little = ready(filter, table), np.empty(1, np.int64)
    assert min(active._touched(own, patch, len(table), little) for patch in patches(table)) == -1


def test_filters_of_another_form_are_computed_as_a_whole():
    filter, table = filter_of(3, encoding="channels")
    assert not agree(filter, table, patches(table, 60)).by_answers
    filter, table = filter_of(3)
    answers, rules = (one.entries() for one in filter.maps[:2])
    columns = np.array(answers.columns)
    (first, *others) = np.asarray(rules.columns)[np.asarray(rules.rows) == 0]
    columns[first] = 4 if columns[first] != 4 else 1  # an answer about two cells
    assert others
    broken = altered(filter, 0, columns=columns)
    assert not agree(broken, table, patches(table, 60)).by_answers
