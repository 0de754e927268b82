"""The losses of the targets that compute by training: a network each, in every backend, and its gradient."""

from functools import lru_cache
from typing import Any

import jax
import numpy as np
import pytest

import tapegrad as tg
from tapegrad._precision import in_double
from tapegrad.errors import BrokenNet, Refused
from tapegrad.learners.on_grid import single_coordinate
from tapegrad.networks.backends.jax import Jax, in_room
from tapegrad.networks.backends.numba import Numba
from tapegrad.networks.backends.numpy import NumPy
from tapegrad.networks.network import Network, Training, Update
from tapegrad.networks.saving import arrays_of, from_json, to_json
from tapegrad.targets.emulator.reference import roomy
from tapegrad.targets.rcnn.network import Rcnn
from tapegrad.targets.rcnn.training import RATE, memorise
from tests.networks.cases import EXACT_MEMORY, TRAINED, begun, compiled
from tests.networks.toy import Toy
from tests.table import fills

NAMES = list(TRAINED)


def case(name: str) -> tuple[Any, Any]:
    """A net, and what it is after some steps."""
    return compiled(name).net, begun(name)


DESCENT = ["simplex", "tape", "extended"]


MEMORY = "rcnn, trained memory"


@lru_cache
def grid_learner() -> tuple[Rcnn, np.ndarray, np.ndarray]:
    """A network that memorises three samples, and these."""
    x = np.array([[1.0, -1.0], [-1.0, -1.0], [1.0, 1.0]])
    return Rcnn.of(single_coordinate().machine, 3, 2, 10), x, x[:, 1]


def network_and_values(name: str) -> tuple[Network, dict[str, np.ndarray]]:
    if name == MEMORY:
        (own, x, y), dtype = grid_learner(), grid_learner()[0].network.inputs["z"].dtype
        *_, before, _ = memorise(own, x, y)
        z = np.append(x[2], 1)
        return own.network, {"memory": before.memory, "z": z.astype(dtype), "label": np.array(y[2], dtype)}
    net, carry = case(name)
    return net.network, net.given(carry)


def close(found: Any, wanted: np.ndarray) -> bool:
    return np.allclose(np.asarray(found, float), wanted, rtol=1e-12, atol=1e-12)


@fills(NAMES, numpy="loss")
def test_numpy_computes_the_loss_that_the_net_has(name: str) -> None:
    (net, carry), (network, given) = case(name), network_and_values(name)
    found = NumPy(network).run(given)[0]["loss"]
    if name in DESCENT:
        assert close(found, net.loss(carry))
    else:  # the squared difference of the label and what the next step, of another engine, puts out
        after = net.advance(carry, 1, "fast")
        assert np.allclose(found, (after.output - given["label"]) ** 2, rtol=1e-6)


@fills([*NAMES, MEMORY], python="loss", jax="loss")
def test_every_backend_computes_the_loss(name: str) -> None:
    network, given = network_and_values(name)
    wanted, _ = NumPy(network).run(given)
    toy = Toy(network)
    exact, _ = toy.run({key: toy.constant_of(own) for key, own in given.items()})
    traced, _ = in_double(jax.jit(Jax(network).run))(given)
    for key, value in wanted.items():
        assert close(exact[key], value), key
        assert close(traced[key], value), key
    if name in DESCENT:
        net, carry = case(name)
        assert net.loss(carry) == float(traced["loss"])


@fills([*NAMES, MEMORY], onnx="loss")
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


@fills([MEMORY], numpy="every sample", torch="every sample")
def test_memory_in_numpy_and_in_pytorch(name: str) -> None:
    """The outputs of the net's own training, and in PyTorch the memory after each sample, by its SGD."""
    torch = pytest.importorskip("torch")
    own: Any
    own, x, y = grid_learner()
    module, backend, memory = tg.to_torch(own), NumPy(own.network), own.empty_memory()
    optimiser = torch.optim.SGD([module.memory], lr=RATE)
    for row, label, step in zip(x, y, memorise(own, x, y), strict=False):
        given = {"memory": memory, "z": np.append(row, 1.0), "label": np.array(label)}
        assert np.isclose(backend.run(given)[0]["output"], step.output, atol=1e-6)
        optimiser.zero_grad()
        output = module(torch.tensor(np.append(row, 1.0)).to(module.memory))
        ((label - output) ** 2 / 2).backward()
        optimiser.step()
        memory = step.memory
        assert np.allclose(module.memory.detach().numpy(), memory, atol=1e-6)
    assert np.abs(memory).max() > 0.3


@fills([*NAMES, MEMORY], numba="loss")
def test_numba(name: str) -> None:
    network, given = network_and_values(name)
    found, wanted = (own(network).run(given)[0] for own in (Numba, NumPy))
    assert all(close(found[key], value) for key, value in wanted.items())


@fills(NAMES, torch="a step of training")
def test_a_step_of_training_in_pytorch(name: str) -> None:
    """By PyTorch's own differentiation and optimisers, and by the net."""
    torch = pytest.importorskip("torch")
    net, carry = case(name)
    module = tg.to_torch(net).start(carry)
    data = [torch.tensor(given) for key, given in net.given(carry).items() if key in module.data]
    module.loss(*([] if module.known else data)).backward()
    for optimiser in module.optimisers():
        optimiser.step()
    after = net.step(carry)
    for key in module.rule.updates:
        wanted = after.weights if name.startswith("emulator") else getattr(after.weights, key)
        found = getattr(module, key).detach().numpy()
        assert np.allclose(found, np.asarray(wanted, float), rtol=1e-9, atol=1e-12), key
        before = carry.weights if name.startswith("emulator") else getattr(carry.weights, key)
        assert key in ("z", "T", "H") or not np.array_equal(found, np.asarray(before, float)), key


@fills(NAMES, jax="gradient", torch="gradient")
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


@pytest.mark.parametrize("name", DESCENT)
def test_the_gradient_is_that_of_the_engines(name: str) -> None:
    net, carry = case(name)
    slopes, reference = gradient(*network_and_values(name)), net.gradient(carry)
    for key, own in slopes.items():
        assert close(own, getattr(reference, key))
        if hasattr(net, "fast_gradient"):
            assert close(own, getattr(net.fast_gradient(carry), key))


def test_with_room_a_network_computes_the_same() -> None:
    net, carry = case("emulator, practical")
    network, given = network_and_values("emulator, practical")
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
    assert name not in DESCENT or rule[-1].startswith("  until loss <= ")


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
        _ = compiled(EXACT_MEMORY).net.network
