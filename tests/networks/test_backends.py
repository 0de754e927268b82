"""One network, several backends: every value of every node, on nets of every target."""

from itertools import product
from typing import Any

import jax
import numpy as np
import pytest

from tapegrad.networks.backends.jax import Jax, Rows
from tapegrad.networks.backends.numba import Numba
from tapegrad.networks.backends.numpy import NumPy
from tapegrad.networks.builder import Builder
from tapegrad.networks.network import OPERATIONS, Network
from tapegrad.targets.decoder.sequences import Pass
from tests.networks.cases import CASES, LAYER, compiled, given, network_of
from tests.networks.toy import Toy
from tests.table import fills

EVERY = (*CASES, LAYER)
EXACT = {
    name for name in EVERY if not any(word in name for word in ("softmax", "RASP", "decoder", "ternary"))
}
"""All numbers are bits or small whole numbers; others go through exponentials, or have fractions."""


def values(network: Network, values_given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {node.name: value for node, value in NumPy(network).values(values_given)}


def same(name: str, found: Any, wanted: np.ndarray) -> bool:
    found = np.asarray(found, np.float64)
    if not wanted.size:  # lists without rows do not know how long these would be
        return not found.size
    close = np.isclose(found, wanted, rtol=1e-5, atol=1e-5) | (found == wanted)
    return found.shape == wanted.shape and bool((found == wanted if name in EXACT else close).all())


@fills(EVERY, numba="every value")
def test_numba(name: str) -> None:
    network, own = network_of(name), given(name)
    wanted = values(network, own)
    for node, value in Numba(network).values(own):
        assert same(name, value, wanted[node.name]), node


@fills(EVERY, python="every value")
def test_a_backend_in_plain_python(name: str) -> None:
    network, own = network_of(name), given(name)
    wanted, toy = values(network, own), Toy(network)
    exact = {key: toy.constant_of(value) for key, value in own.items()}
    for node, value in toy.values(exact):
        assert same(name, value, wanted[node.name]), node


@fills(EVERY, jax="every value")
def test_jax(name: str) -> None:
    network, own = network_of(name), given(name)
    wanted = values(network, own)
    run = jax.jit(lambda values_given: {n.name: v for n, v in Jax(network).values(values_given)})
    for key, value in run(own).items():
        assert same(name, value, wanted[key]), key


@pytest.mark.parametrize(
    "name", [name for name in CASES if name.startswith(("transformer", "decoder, mach"))]
)
def test_jax_with_room_for_what_grows(name: str) -> None:
    """Keys and values in arrays with room to spare, filled up with numbers that must not count."""
    network, own = network_of(name), given(name)
    grows = [state for state, part in network.state.items() if isinstance(part.port.shape[0], str)]
    plain, run, padded = NumPy(network), jax.jit(Jax(network).run), dict[str, Any](own)
    for state in grows:
        room = np.full((9 + len(own["tokens"]), own[state].shape[1]), 7, own[state].dtype)
        room[: len(own[state])] = own[state]
        padded[state] = Rows(jax.numpy.asarray(room), jax.numpy.int32(len(own[state])))
    for _ in range(1 if "decoder" in name else 3):
        wanted, state = plain.run(own)
        found, after = run(padded)
        assert all(same(name, found[key], value) for key, value in wanted.items())
        own, padded = own | state, padded | after
        for key in grows:
            assert same(name, after[key].array[: int(after[key].size)], state[key])


@fills(EVERY, torch="every value")
def test_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch")
    from tapegrad.networks.backends.pytorch import NetworkModule, Torch

    network, own = network_of(name), given(name)
    wanted = values(network, own)
    with torch.no_grad():
        run = Torch(NetworkModule(network)).values({key: torch.tensor(value) for key, value in own.items()})
        for node, value in run:
            assert same(name, value.numpy(), wanted[node.name]), node


@fills(EVERY, onnx="outputs and state")
def test_onnx_step_by_step(name: str) -> None:
    runtime: Any = pytest.importorskip("onnxruntime")
    from tapegrad.networks.backends.onnx import model_of

    network, own = network_of(name), given(name)
    model = model_of(network, {})
    run = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names, plain = [out.name for out in run.get_outputs()], NumPy(network)
    read = {one.name for one in run.get_inputs()}
    for _ in range(3 if network.state and "decoder" not in name else 1):
        outputs, state = plain.run(own)
        wanted = [*outputs.values(), *state.values()]
        found = run.run(None, {key: value for key, value in own.items() if key in read})
        assert all(same(name, a, b) for a, b in zip(found, wanted, strict=True)), names
        own = own | state


@fills([name for name in CASES if name.startswith(("transformer", "rcnn"))], numpy="every step")
def test_the_network_takes_the_steps_of_the_net(name: str) -> None:
    own, plain = compiled(name), NumPy(compiled(name).net.network)
    handed, carry = given(name), own.start(*CASES[name].inputs)
    while not own.net.done(carry):
        carry = own.net.step(carry)
        outputs, state = plain.run(handed)
        handed = handed | state
        after = outputs["output"][0] if "output" in outputs else state["grid"]
        wanted = carry.output if "output" in outputs else np.asarray(carry.grid)
        assert same(name, after, wanted)
        if "halted" in outputs:
            assert bool(outputs["halted"][0, 0]) == own.net.done(carry)


@fills([name for name in CASES if name.startswith("relu")], numpy="every input")
def test_numpy_adds_as_python_does(name: str) -> None:
    rows = np.array(list(product((0, 1), repeat=4)), np.float32)
    found = NumPy(network_of(name)).run({"bits": rows})[0]["outputs"]
    totals = [int(a + 2 * b) + int(c + 2 * d) for a, b, c, d in rows]
    assert ((found > 0.5) @ [1, 2, 4] == totals).all()


@fills(["decoder, machine"], numpy="every token")
def test_numpy_writes_the_text_of_the_net(name: str) -> None:
    own, backend = compiled(name), NumPy(network_of(name))
    first = own.start(*CASES[name].inputs)
    text, handed = list(first.tokens), given(name)
    wanted = own.net.advance(first, 6).tokens
    while len(text) < len(wanted):
        outputs, state = backend.run(handed)
        text.append(int(outputs["logits"][-1].argmax()))
        handed = {**state, "tokens": np.array(text[-1:])}
    assert text == list(wanted)
    assert len(text) > len(first.tokens) + 8


@fills([name for name in CASES if "RASP" in name], numpy="every output")
def test_numpy_answers_as_the_program_does(name: str) -> None:
    own = compiled(name)
    outputs = NumPy(network_of(name)).run(given(name))[0]
    carry = own.start(*CASES[name].inputs)
    after = Pass(carry.tokens, 1, outputs["hidden"], outputs["logits"])
    *_, last = own.source.run(own.source.start(*CASES[name].inputs))
    assert own.net.decode(after) == last


def test_every_operation_is_tried() -> None:
    tried = {node.operation for name in EVERY for node in network_of(name).nodes}
    assert tried >= OPERATIONS.keys() - REST


REST = {"clip", "sqrt", "detach", "divide", "repeat", "reshape", "units"}
"""Operations of losses and of networks that are trained."""


def rest() -> Network:
    """clip(sqrt(x) / y) and, so many times, x + x / 2."""
    body = Builder("half as much again", np.float64)
    x = body.state("x", np.zeros((1, 3)))
    body.hand_on("x", x + x / 2.0)
    graph = Builder("rest", np.float64)
    x, y = graph.input("x", "rows", 3), graph.input("y", 3)
    ratio = graph.node("divide", graph.node("sqrt", x), graph.node("detach", y))
    graph.output("clipped", graph.node("clip", ratio, low=-1.0, high=2.0))
    graph.output("repeated", graph.node("repeat", x, body=body.network(), count=3))
    return graph.network()


X, Y = np.array([[4.0, 9.0, 16.0], [1.0, 0.25, 0.0]]), np.array([1.0, -2.0, 4.0])
CLIPPED, REPEATED = np.array([[2, -1, 1], [1, -0.25, 0]]), X * 27 / 8


def test_operations_of_losses_and_loops() -> None:
    network, own = rest(), {"x": X, "y": Y}
    toy, runtime = Toy(network), pytest.importorskip("onnxruntime")
    from tapegrad.networks.backends.onnx import model_of

    model = model_of(network, {})
    run = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    with jax.enable_x64(True):
        by_jax = list(
            Jax(network).run({key: jax.numpy.asarray(value) for key, value in own.items()})[0].values()
        )
    found = [
        [*NumPy(network).run(own)[0].values()],
        [*toy.run({key: toy.constant_of(value) for key, value in own.items()})[0].values()],
        by_jax,
        run.run(None, own),
    ]
    for clipped, repeated in found:
        assert np.array_equal(np.asarray(clipped, np.float64), CLIPPED)
        assert np.array_equal(np.asarray(repeated, np.float64), REPEATED)


def test_what_is_detached_has_no_derivative() -> None:
    network = rest()
    with jax.enable_x64(True):
        slopes = jax.grad(lambda x, y: Jax(network).run({"x": x, "y": y})[0]["clipped"].sum(), (0, 1))(
            X[1:, :2].repeat(2, 1)[:, :3], Y
        )
    assert np.asarray(slopes[0]).any()
    assert not np.asarray(slopes[1]).any()


def test_operations_of_losses_and_loops_in_pytorch() -> None:
    torch = pytest.importorskip("torch")
    from tapegrad.networks.backends.pytorch import NetworkModule

    clipped, repeated = NetworkModule(rest())(torch.tensor(X), torch.tensor(Y))
    assert np.array_equal(clipped.numpy(), CLIPPED)
    assert np.array_equal(repeated.numpy(), REPEATED)
