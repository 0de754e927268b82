"""The losses of the targets that compute by training: a network each, in every backend, and its gradient."""

from functools import lru_cache
from typing import Any

import jax
import numpy as np
import pytest

import tapegrad as tg
from tapegrad._precision import in_double
from tapegrad.errors import BrokenNet, Refused
from tapegrad.learners import Learner, dictator
from tapegrad.networks.backends.jax import Jax, in_room
from tapegrad.networks.backends.numpy import NumPy
from tapegrad.networks.network import Network, Training, Update
from tapegrad.networks.saving import arrays_of, from_json, to_json
from tapegrad.targets.emulator.reference import roomy
from tapegrad.targets.extended import FixedPoint, linear
from tests.networks.toy import Toy
from tests.targets.extended.algorithms import copy_bits, training

X, Y = np.array([[1.0, -2.0], [0.5, 1.5]]), np.array([[-1.0], [0.5]])
Case = tuple[Any, Any]


def _learner() -> Learner:
    return dictator(2, 2)


@lru_cache
def case(name: str) -> Case:
    """A net, and what it is after three steps."""
    if name == "extended":
        extended = training(linear(2), copy_bits(12), X, Y, data_format=FixedPoint(4, 1), cells=64)
        net, carry = extended.net, extended.start()
    else:
        target, source, options, inputs = COMPILED[name]
        compiled = tg.compile(source(), target, **options)
        net, carry = compiled.net, compiled.start(*inputs)
    for _ in range(3):
        carry = net.step(carry)
    return net, carry


SAMPLES = [[0, 1], [1, 1], [1, 0], [0, 0], [1, 0]], [1, 1, 0, 0, 1], 3
COMPILED: dict[str, Any] = {
    "simplex": ("simplex", lambda: "increment", {"inputs": [["11"]]}, ("11",)),
    "tape": ("tape", lambda: "increment", {"cells": 8}, ("11",)),
    "emulator": ("emulator", _learner, {}, SAMPLES),
}
NAMES = [*COMPILED, "extended"]


def network_and_values(name: str) -> tuple[Network, dict[str, np.ndarray]]:
    net, carry = case(name)
    return net.network, net.given(carry)


def close(found: Any, wanted: np.ndarray) -> bool:
    return np.allclose(np.asarray(found, float), wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_every_backend_computes_the_loss(name: str) -> None:
    network, given = network_and_values(name)
    wanted, _ = NumPy(network).run(given)
    toy = Toy(network)
    exact, _ = toy.run({key: toy.constant_of(own) for key, own in given.items()})
    traced, _ = in_double(jax.jit(Jax(network).run))(given)
    for key, value in wanted.items():
        assert close(exact[key], value), key
        assert close(traced[key], value), key
    net, carry = case(name)
    if name != "emulator":
        assert net.loss(carry) == float(traced["loss"])


@pytest.mark.parametrize("name", NAMES)
def test_onnx(name: str) -> None:
    runtime: Any = pytest.importorskip("onnxruntime")
    from tapegrad.networks.backends.onnx import model_of

    network, given = network_and_values(name)
    model = model_of(network, {})
    run = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    read = {one.name for one in run.get_inputs()}
    found = run.run(list(network.outputs), {key: own for key, own in given.items() if key in read})
    for own, wanted in zip(found, NumPy(network).run(given)[0].values(), strict=True):
        assert close(own, wanted)


@pytest.mark.parametrize("name", NAMES)
def test_gradients_in_jax_and_in_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch")
    from tapegrad.networks.backends.pytorch import NetworkModule

    network, given = network_and_values(name)
    assert network.training is not None
    slopes = gradient(network, given)
    tensors = {key: torch.tensor(own, requires_grad=key in slopes) for key, own in given.items()}
    outputs = dict(zip(network.outputs, NetworkModule(network)(*tensors.values()), strict=True))
    outputs["loss"].backward()
    assert any(own.any() for own in slopes.values())
    for key, own in slopes.items():
        slope = tensors[key].grad
        assert close(np.zeros_like(own) if slope is None else slope.numpy(), own), key


@in_double
def gradient(network: Network, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    def loss(trained: Any) -> Any:
        return Jax(network).run(given | trained)[0]["loss"]

    assert network.training is not None
    found = jax.grad(loss)({key: given[key] for key in network.training.updates})
    return {key: np.asarray(own) for key, own in found.items()}


@pytest.mark.parametrize("name", ["simplex", "tape", "extended"])
def test_the_gradient_is_that_of_the_engines(name: str) -> None:
    net, carry = case(name)
    slopes, reference = gradient(*network_and_values(name)), net.gradient(carry)
    for key, own in slopes.items():
        assert close(own, getattr(reference, key))
        if hasattr(net, "fast_gradient"):
            assert close(own, getattr(net.fast_gradient(carry), key))


def test_with_room_a_network_computes_the_same() -> None:
    net, carry = case("emulator")
    network, given = network_and_values("emulator")
    wanted, _ = NumPy(network).run(given)
    found, _ = in_double(Jax(in_room(network)).run)(roomy(given, net.graph.vertices))
    assert float(found["loss"]) == float(wanted["loss"])
    assert np.array_equal(np.asarray(found["values"])[: net.graph.vertices], wanted["values"])
    weights = given["weights"] - net.constants.rate * gradient(network, given)["weights"]
    assert np.array_equal(weights, net.advance(carry, 1, "fast").weights)


@pytest.mark.parametrize("name", NAMES)
def test_saved_and_listed_with_the_rule(name: str) -> None:
    network, given = network_and_values(name)
    again = from_json(to_json(network), arrays_of(network))
    assert again.training == network.training
    assert str(again) == str(network)
    own, wanted = (NumPy(one).run(given)[0]["loss"] for one in (again, network))
    assert own == wanted
    rule = str(network).splitlines()[-5:]
    assert any(line.lstrip().startswith("train ") and line.endswith("by loss") for line in rule)
    assert name == "emulator" or rule[-1].startswith("  until loss <= ")


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (Training("losses", {}), "loss"),
        (Training("output", {}), "no single number"),
        (Training("loss", {"q": Update("gradient")}), "'q'"),
        (Training("loss", {"s": Update("momentum")}), "'s'"),
        (Training("loss", {"s": Update("gradient", float("inf"))}), "'s'"),
        (Training("loss", {}, float("nan")), "no number"),
    ],
)
def test_rules_that_fit_no_network_are_refused(rule: Training, said: str) -> None:
    network, _ = network_and_values("simplex")
    data = to_json(network) | {
        "training": {
            "loss": rule.loss,
            "updates": {name: own._asdict() for name, own in rule.updates.items()},
            "stop": rule.stop,
        }
    }
    with pytest.raises(BrokenNet, match=said):
        from_json(data, arrays_of(network))


def test_exact_memory_has_no_network() -> None:
    with pytest.raises(Refused, match="80 digits"):
        _ = tg.compile(_learner(), "emulator", memory="exact").net.network
