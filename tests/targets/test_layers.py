"""Layers of a function, read from its graph."""

import numpy as np
import pytest

from tapegrad.targets.descent.layers import grown, layers
from tapegrad.targets.simplex.target import network_size

MATRIX = np.ones((3, 2))


@pytest.mark.parametrize(
    ("function", "units"),
    [
        (lambda x: 2 * x @ MATRIX + 1, []),
        (lambda x: (x @ MATRIX).relu(), [2]),
        (lambda x: ((x - 1).relu() @ MATRIX).relu(), [3, 2]),
        (lambda x: x.relu() + (1 - x).relu(), [6]),
        (lambda x: x / 3, []),
        (lambda x: x.builder.value(3.0) / x, [3]),
        (lambda x: x * x, [3]),
        (lambda x: (x * x).total() * x, [3, 3]),
        (lambda x: x.sqrt(), [3]),
        (lambda x: x > 0, [3]),
        (lambda x: (x > 0) * x, [3, 3]),
        (lambda x: x.detach().reshape(1, 3, 1).transpose(), []),
    ],
)
def test_operations_that_are_not_affine_are_layers(function, units):
    assert layers(function, (3,)) == units


def test_what_is_given_is_constant():
    assert layers(lambda x: (np.ones(3) * x).relu(), (3,)) == [3]
    assert layers(lambda a, x: (a * x).relu(), (3,), (3,)) == [3, 3]


def test_sizes_follow_from_small_ones():
    """A simplex of many vertices has the layers that its graph, written out, has."""
    assert grown(lambda a, b: [a + 2 * b, 7], 5, 9) == [23, 7]
    small, large = network_size(2, 2), network_size(50, 80)
    assert large[0] - small[0] == 48 + 3 * 78
    assert large[1:] == small[1:]
