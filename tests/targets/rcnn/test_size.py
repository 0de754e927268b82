"""Width O(s), O(s^2) places, and a weight set that s alone decides."""

import numpy as np
import pytest

from tapegrad.machines.sampler import random_grid_machine
from tapegrad.targets.rcnn.exactness import count_weights, filter_size, initialisation_set, weight_values
from tapegrad.targets.rcnn.net import RcnnNet


@pytest.mark.parametrize("states", [3, 4, 8, 50, 200])
def test_width_and_weight_set_are_within_the_claims(states):
    machine = random_grid_machine(states=states, symbols=3, seed=states)
    counted = count_weights(machine)
    assert counted.width <= counted.claimed_width
    assert counted.values <= counted.claimed_values
    assert counted.nonzero_weights < 300 * states + 600
    assert counted.log10_success < -1000


def test_two_states_are_the_exception_to_the_claimed_width():
    width = filter_size(random_grid_machine(states=2, symbols=3, seed=1), "ternary").width
    assert 200 < width < 250


@pytest.mark.parametrize("seed", range(3))
def test_every_filter_draws_its_weights_from_the_set(seed):
    machine = random_grid_machine(states=5, symbols=3, seed=seed)
    used = weight_values(RcnnNet.of(machine, "ternary", 2).filter)
    assert np.isin(used, initialisation_set(5)).all()
