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


@pytest.mark.parametrize("symbols", [2, 3, 5])
@pytest.mark.parametrize("encoding", ["ternary", "channels"])
def test_sizes_are_those_of_the_net_that_is_saved(encoding, symbols):
    machine = random_grid_machine(symbols, states=3, symbols=symbols)
    size, arrays = filter_size(machine, encoding), RcnnNet.of(machine, encoding, 2).arrays()
    assert size.parameters == sum(array.size for array in arrays.values())
    assert size.bytes == sum(array.nbytes for array in arrays.values())
    if encoding == "channels":
        filters = [arrays[name] for name in ("kernel", "bias", "mix")]
        assert size.dense == size.weights == sum(part.size for part in filters)
        assert (size.width, size.depth) == (len(arrays["kernel"]), 2)
        return
    shapes = [(len(arrays[f"V{n}.bias"]), int(arrays[f"V{n}.width"][0])) for n in range(1, 6)]
    assert size.dense == sum(rows * (columns + 1) for rows, columns in shapes)
    assert (size.width, size.depth) == (max(rows for rows, _ in shapes), 5)
    parts = [arrays[f"V{n}.{part}"] for n in range(1, 6) for part in ("values", "bias")]
    assert size.weights == sum(part.size for part in parts)


def test_what_the_theorem_claims_for_three_states():
    counted = count_weights(random_grid_machine(1, states=3, symbols=3))
    assert (counted.claimed_width, counted.claimed_values) == (300, 24 * 16 * 3 + 5)
    assert counted.log10_success == -counted.dense_parameters * np.log10(counted.values)


def test_a_learner_with_one_state_has_weights_too():
    assert 0 < len(initialisation_set(1)) <= len(initialisation_set(2))
