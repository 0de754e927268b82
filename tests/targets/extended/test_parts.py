"""Switches, the orthogonal vector and the number formats: the properties that section 5 asks for."""

import jax
import numpy as np
import pytest

from tapegrad._precision import in_double
from tapegrad.errors import InputError, Refused
from tapegrad.networks.backends.jax import function_of
from tapegrad.networks.backends.numpy import applied
from tapegrad.targets.descent.loss import halt_switch, label_switch, orthogonal
from tapegrad.targets.extended.formats import FixedPoint, FloatingPoint, bits_of, require_in_format
from tapegrad.targets.extended.primary import MLP, linear, perceptron


def perpendicular(z, epsilon):
    return applied(lambda own: orthogonal(own, epsilon), z)


@in_double
def test_the_label_switch_has_the_gradients_of_52():
    u, zero, y = np.array([[1.0, -2.0, 3.0]]), np.zeros((1, 3)), np.array([[0.5, 0.5, 0.5]])
    switch = function_of(lambda a, b: label_switch(a, b, 0.5))
    for z, value, by_u, by_z in ((zero, zero, 0.0, 1.0), (y, u, 1.0, 0.0)):
        assert np.array_equal(switch(u, z), value)
        in_u, in_z = (own.reshape(3, 3) for own in jax.jacobian(switch, argnums=(0, 1))(u, z))
        assert np.array_equal(in_u, by_u * np.eye(3))
        assert np.array_equal(in_z, by_z * np.eye(3))


@in_double
def test_the_halt_switch_has_the_gradients_of_27_and_28():
    f, switch = np.array([[4.0, 5.0]]), function_of(lambda a, b: halt_switch(a, b, 1.0, 2.0))
    for size, value_is_f in ((0.9, True), (1e3, False), (2.1, False)):
        u = np.array([[0.0, np.sqrt(2 * size)]])
        assert np.array_equal(switch(f, u), f if value_is_f else u)
        in_f, in_u = (own.reshape(2, 2) for own in jax.jacobian(switch, argnums=(0, 1))(f, u))
        assert np.array_equal(in_f, float(value_is_f) * np.eye(2))
        assert np.array_equal(in_u, float(not value_is_f) * np.eye(2))


@in_double
@pytest.mark.parametrize("size", [2, 3, 7])
def test_the_orthogonal_vector_has_unit_length_also_where_z_is_nearly_parallel_to_an_axis(size):
    random = np.random.default_rng(size)
    vectors = [
        *random.normal(size=(20, size)),
        *(10.0 ** random.integers(-3, 3, (20, 1)) * random.normal(size=(20, size))),
    ]
    for tiny in (0.0, 1e-17, 1e-9, 1e-3):
        vectors += [np.eye(size)[0] + tiny * random.normal(size=size), np.eye(size)[1] + tiny]
    for z in vectors:
        found = perpendicular(z, float(min(z @ z, 1.0)))
        assert np.linalg.norm(found) == pytest.approx(1, abs=1e-14)
        assert found @ z / np.linalg.norm(z) == pytest.approx(0, abs=1e-14)


@in_double
def test_the_orthogonal_vector_is_finite_at_zero_and_exact_for_unit_labels():
    assert np.isfinite(perpendicular(np.zeros((2, 2)), 1.0)).all()
    assert np.array_equal(perpendicular(np.array([[1.0, 0.0]]), 1.0), [[0, 1]])


def quantise(form, numbers):
    return bits_of(form, np.asarray(numbers))


def dequantise(form, bits):
    return applied(form.dequantise, bits)[:, 0]


def every_pattern(width):
    return (np.arange(2**width)[:, None] >> np.arange(width) & 1).astype(float)


@in_double
@pytest.mark.parametrize("continuous", [False, True])
@pytest.mark.parametrize(("width", "fraction"), [(1, 0), (8, 4)])
def test_fixed_point_networks_are_exact_on_every_number(width, fraction, continuous):
    form = FixedPoint(width, fraction, continuous)
    bits = every_pattern(width)
    whole = np.arange(2**width)
    whole = np.where(whole >= 2 ** (width - 1), whole - 2**width, whole)  # two's complement, by hand
    assert np.array_equal(dequantise(form, bits), whole / 2**fraction)
    assert np.array_equal(quantise(form, np.asarray(whole / 2**fraction)), bits)


@in_double
@pytest.mark.parametrize("continuous", [False, True])
@pytest.mark.parametrize(("exponent", "mantissa"), [(1, 1), (4, 3)])
def test_floating_point_networks_are_exact_on_every_number(exponent, mantissa, continuous):
    form = FloatingPoint(exponent, mantissa, continuous)
    bits = every_pattern(form.width)
    low = np.arange(2**form.width) % 2**mantissa
    stored = np.arange(2**form.width) >> mantissa & (2**exponent - 1)
    size = np.where(stored > 0, 2**mantissa + low, low) * 2.0 ** (
        np.maximum(stored, 1) - form.bias - mantissa
    )
    value = np.where(bits[:, -1] > 0, -size, size)
    assert np.array_equal(dequantise(form, bits), value)
    kept = value != 0  # zero has two patterns
    assert np.array_equal(np.asarray(quantise(form, np.asarray(value)))[kept], bits[kept])
    assert not np.any(quantise(form, np.zeros(1)))


@in_double
def test_half_precision_is_the_same_as_numpys():
    """float16 is 5 and 10 bits; beyond its largest finite number it has infinities, we have none."""
    form = FloatingPoint(5, 10)
    patterns = np.arange(0, 2**16, 7, dtype=np.uint16)
    numbers = patterns.view(np.float16).astype(float)
    finite = np.isfinite(numbers) & (numbers != 0)
    bits = (patterns[:, None].astype(int) >> np.arange(16) & 1).astype(float)
    assert np.array_equal(dequantise(form, bits[finite]), numbers[finite])
    assert np.array_equal(quantise(form, np.asarray(numbers[finite])), bits[finite])


@in_double
def test_numbers_that_a_format_does_not_have_are_refused():
    require_in_format(FixedPoint(4, 1), np.array([[3.5, -4.0]]), "the inputs")
    for number in (4.0, 0.25, -4.5, np.nan, np.inf):
        with pytest.raises(InputError, match="the inputs hold"):
            require_in_format(FixedPoint(4, 1), np.array([[0.0, number]]), "the inputs")
    for arguments in ((0, 0), (40, 0), (4, 50)):
        with pytest.raises(Refused):
            FixedPoint(*arguments)
    with pytest.raises(Refused):
        FloatingPoint(12, 3)


@in_double
def test_primary_networks_compute_what_they_say():
    x = np.array([[1.0, 2.0], [0.0, -1.0]])
    assert np.array_equal(applied(linear(2), np.array([3.0, -1.0, 0.5]), x), [[1.5], [1.5]])
    assert np.array_equal(applied(perceptron(2), np.array([1.0, 0.0, -1.0]), x), [[1.0], [0.0]])
    net = MLP((2, 2, 1))
    theta = np.array([1.0, 0, 0, 0, 1, 0, 2, 3, 1])
    assert net.weights == 9
    assert np.array_equal(applied(net, theta, x), [[2 * 1 + 3 * 2 + 1], [0 + 0 + 1]])
    assert net.largest_output(2.0, 3.0) == (2 * 2 * 3 + 3) * 2 * 3 + 3
    with pytest.raises(InputError):
        MLP((2,))
    with pytest.raises(InputError):
        MLP((2, 1), "tanh")
