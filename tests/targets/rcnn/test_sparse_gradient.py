"""The engine `fast` of SGD against automatic differentiation of the whole network, right and broken."""

import numpy as np
import pytest

from tapegrad.errors import InputError, Refused
from tapegrad.learners.on_grid import parity, single_coordinate
from tapegrad.networks.form import Affine
from tapegrad.targets.rcnn.network import Frame, Rcnn
from tapegrad.targets.rcnn.sparse_gradient import local_maps, slope_of
from tapegrad.targets.rcnn.training import memorise, memorise_many, memorising_part
from tests.targets.rcnn.altered import with_altered
from tests.targets.rcnn.test_learning import TOLERANCE, lemma_2

ENCODINGS = ["channels", pytest.param("ternary", marks=pytest.mark.slow)]


def drawn(m, d, seed=0):
    rng = np.random.default_rng(seed)
    return rng.choice([-1.0, 1.0], (m, d)), rng.choice([-1.0, 1.0], m)


def both(network, X, y):
    """The memories after every step, by automatic differentiation and by the engine `fast`."""
    return ([step.memory for step in memorise(network, X, y, engine=e)] for e in ("reference", "fast"))


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize(
    ("m", "d", "layers", "frame"), [(3, 4, 5, Frame(2, 1, 3, 1)), (6, 2, 9, Frame()), (1, 1, 30, Frame())]
)
def test_every_step_is_that_of_automatic_differentiation(encoding, m, d, layers, frame):
    X, y = drawn(m, d)
    network = Rcnn.of(single_coordinate().machine, m, d, layers, encoding=encoding, frame=frame)
    for slow, fast in zip(*both(network, X, y), strict=True):
        assert np.abs(slow - fast).max() < TOLERANCE[encoding]


def with_weight(network, layer, place, factor):
    """The network with one weight of its filter changed."""
    own = network.filter.maps[layer].dense()
    weight = np.array(own.weight)
    weight[place] *= factor
    changed = Affine.of(weight, np.asarray(own.bias))
    return with_altered(network, layer, rows=changed.rows, columns=changed.columns, values=changed.values)


@pytest.mark.parametrize("factor", [0.5, 2.0, 0.0])
def test_a_filter_that_passes_the_gradient_wrongly_is_differentiated_as_it_is(factor):
    """The weight of the trace in a passing unit changes no activation, and every gradient."""
    X, y = drawn(2, 2)
    network = Rcnn.of(single_coordinate().machine, 2, 2, 6)
    kernel = np.asarray(network.filter.maps[0].dense().weight)
    trace = 3 * 9 + 4  # the fourth channel, the centre
    (unit, *_) = np.flatnonzero(kernel[:, trace])
    broken = with_weight(network, 0, (unit, trace), factor)
    slow, fast = (next(memorise(broken, X, y, engine=e)).memory for e in ("reference", "fast"))
    assert np.allclose(slow, fast, rtol=1e-6)
    assert not np.isclose(np.abs(fast[0]), 1 / 3).any()
    if factor == 0.5:
        with pytest.raises(Refused, match="thirds of signs"):
            memorise_many([network, broken], X, y)


def test_filters_that_leave_the_phase_or_the_margin_are_refused():
    X, y = drawn(2, 2)
    network = Rcnn.of(single_coordinate().machine, 2, 2, 6)
    bias = np.asarray(network.filter.maps[0].bias)
    kinked = with_altered(network, 0, bias=np.round(bias / 2) * 2)
    with pytest.raises(InputError, match="so layers cannot be left out"):
        list(memorise(kinked, X, y, engine="fast"))
    mix = np.asarray(network.filter.maps[1].dense().weight)
    stray = with_weight(network, 1, np.nonzero(mix), 3)
    with pytest.raises(InputError, match="leaves the memorising phase"):
        list(memorise(stray, X, y, engine="fast"))
    part = memorising_part(network)
    with pytest.raises(Refused, match="thirds of signs"):
        slope_of(part, local_maps(part), np.full((3, 3), 0.2), np.ones(3))


def test_the_message_takes_as_many_layers_as_rows_and_no_more_are_gone_through():
    X, y = drawn(40, 3)
    network = Rcnn.of(parity().machine, 40, 3, 10**12)
    steps = list(memorise(network, X, y, engine="fast"))
    assert [step.layers for step in steps] == [max(i, 40 - i) + 1 for i in range(41)]
    assert np.abs(steps[-1].memory - lemma_2(X, y, 41)).max() < 1e-7
    assert all((step.memory == lemma_2(X, y, i + 1).astype(np.float32)).all() for i, step in enumerate(steps))
