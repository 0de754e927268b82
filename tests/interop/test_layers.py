"""Compiled nets as layers of other people's models."""

import copy
import io
import re
import subprocess
import sys
from itertools import product
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapegrad as tg
from tapegrad.errors import InputError, Refused

ROWS = np.array(list(product((0, 1), repeat=4)), np.float32)
"""The bits of two numbers of two bits, lowest first."""


def sums(rows: np.ndarray) -> np.ndarray:
    """The bits of a + b, by Python's own addition."""
    totals = [int(a + 2 * b) + int(c + 2 * d) for a, b, c, d in rows]
    return np.array([[total >> place & 1 for place in range(3)] for total in totals], np.float32)


def extension(x: np.ndarray) -> np.ndarray:
    """The multilinear extension of the sum: its mean where each bit is drawn with its own probability."""
    chances = np.where(ROWS, x, 1 - x).prod(axis=1)
    return chances @ sums(ROWS)


def slopes_of_the_extension(x: np.ndarray) -> np.ndarray:
    step = np.eye(4) / 2  # it is linear in each input, so that any step will do
    return np.array([extension(x + own) - extension(x - own) for own in step])


@pytest.fixture(scope="module", params=["practical", pytest.param("paper", marks=pytest.mark.slow)])
def adder(request: pytest.FixtureRequest) -> tg.Compiled:
    return tg.compile("adder2", "relu", form=request.param)


def test_equinox_layer_adds_what_it_rounds(adder) -> None:
    layer = tg.to_equinox(adder)
    noisy = jnp.asarray(ROWS + np.random.default_rng(0).uniform(-0.49, 0.49, ROWS.shape))
    assert (np.asarray(layer(noisy)) == sums(ROWS)).all()
    assert layer(noisy.reshape(2, 8, 4)).shape == (2, 8, 3)
    assert (np.asarray(eqx.filter_jit(layer)(noisy)) == sums(ROWS)).all()


def test_equinox_gradient_is_that_of_the_multilinear_extension(adder) -> None:
    layer = tg.to_equinox(adder)
    for row in ROWS:
        found = jax.jacobian(layer)(jnp.asarray(row))
        assert np.allclose(np.asarray(found).T, slopes_of_the_extension(row))
    without = tg.to_equinox(adder, gradient="none")
    assert not np.asarray(jax.jacobian(without)(jnp.asarray(ROWS[5]))).any()


def test_frozen_and_trainable_weights_in_equinox(adder) -> None:
    frozen, free = tg.to_equinox(adder), tg.to_equinox(adder, trainable=True)
    assert not jax.tree.leaves(eqx.filter(frozen, eqx.is_inexact_array))
    weights = jax.tree.leaves(eqx.filter(free, eqx.is_inexact_array))
    network = adder.net.network  # which also takes results from 0 and 1 to what the circuit's outputs are
    constants = sum(
        network.array(node, "value").size for node in network.nodes if node.operation == "constant"
    )
    assert sum(own.size for own in weights) == adder.counts.fixed - constants > 0
    gradients = eqx.filter_grad(lambda layer: layer(jnp.asarray(ROWS)).sum())(free)
    assert any(np.asarray(own).any() for own in jax.tree.leaves(gradients))


NUMBERS = np.array([[200, 100], [255, 255], [0, 0], [17, 4]])


@pytest.mark.parametrize("target", ["relu", "transformer"])
def test_numbers_are_numbers(target: str) -> None:
    """Integers in, integers out, in any shape; the sums are Python's."""
    net = tg.compile("adder8", target)
    wanted = [[int(a) + int(b)] for a, b in NUMBERS]
    found = tg.to_equinox(net)(jnp.asarray(NUMBERS))
    assert found.tolist() == wanted
    assert jnp.issubdtype(found.dtype, jnp.integer)
    torch = pytest.importorskip("torch")
    layer = tg.to_layer(net)
    assert layer(torch.tensor([200, 100])).tolist() == [300]
    assert layer(torch.tensor(NUMBERS).reshape(2, 2, 2)).reshape(4, 1).tolist() == wanted
    assert layer(torch.tensor(NUMBERS, dtype=torch.uint8)).tolist() == wanted  # which holds no sum
    with pytest.raises(Refused, match="more than 31 bits"):
        tg.to_equinox(tg.compile("adder32", target))(jnp.asarray(NUMBERS))


@pytest.mark.parametrize("shape", [(2, 7), (), (4, 3)])
def test_the_last_axis_has_a_place_for_each_bit(adder, shape: tuple[int, ...]) -> None:
    says = rf"shape \(..., 4\), and was given {re.escape(str(shape))}.*a\[0\] ... b\[1\]"
    with pytest.raises(InputError, match=says):
        tg.to_equinox(adder)(jnp.zeros(shape))
    torch = pytest.importorskip("torch")
    with pytest.raises(InputError, match=says):
        tg.to_layer(adder)(torch.zeros(shape))


def test_a_source_is_compiled_first() -> None:
    with pytest.raises(InputError, match="a layer is made of a compiled net, and this is the str 'adder2'"):
        tg.to_equinox("adder2")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="a network is exported, and this is the str 'adder2'"):
        tg.to_onnx("adder2")  # type: ignore[arg-type]


def test_no_other_gradient() -> None:
    with pytest.raises(InputError, match="no gradient 'some'"):
        tg.to_equinox(tg.compile("adder2", "relu"), gradient="some")


def in_a_model(target: str):
    """A compiled adder between layers of PyTorch's own, and some rows."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    layer = tg.to_layer(tg.compile("adder2", target))
    parts = [torch.nn.Linear(4, 4), torch.nn.Sigmoid(), layer, torch.nn.Linear(3, 2)]
    return torch, torch.nn.Sequential(*parts).eval(), torch.randn(16, 4)


def exported(torch, model, x):
    sizes = ({0: torch.export.Dim("rows")},)
    made = torch.export.export(model, (x,), dynamic_shapes=sizes).module()
    return torch.cat([made(x[:5]), made(x[5:])])


def by_onnx(torch, model, x, dynamo: bool):
    """Any number of rows."""
    runtime = pytest.importorskip("onnxruntime")
    if dynamo:
        pytest.importorskip("onnxscript")
        sizes = {"dynamic_shapes": ({0: torch.export.Dim("rows", min=2)},), "verbose": False}
        file = torch.onnx.export(model, (x,), dynamo=True, **sizes).model_proto.SerializeToString()
    else:
        kept = io.BytesIO()
        sizes = {"input_names": ["x"], "dynamic_axes": {"x": {0: "rows"}}}
        torch.onnx.export(model, (x,), kept, dynamo=False, **sizes)
        file = kept.getvalue()
    run = runtime.InferenceSession(file, providers=["CPUExecutionProvider"])
    name = run.get_inputs()[0].name
    return torch.cat([torch.tensor(run.run(None, {name: own.numpy()})[0]) for own in (x[:5], x[5:])])


def with_its_state(torch, model, x):
    other = copy.deepcopy(model)
    for own in other[0].parameters():
        torch.nn.init.zeros_(own)
    other.load_state_dict(model.state_dict())
    return other(x)


WAYS = {
    "export": exported,
    "legacy ONNX": lambda torch, model, x: by_onnx(torch, model, x, dynamo=False),
    "dynamo ONNX": lambda torch, model, x: by_onnx(torch, model, x, dynamo=True),
    "trace": lambda torch, model, x: torch.jit.trace(model, (x,))(x),
    "compile": lambda torch, model, x: torch.compile(model, fullgraph=True, backend="aot_eager")(x),
    "vmap": lambda torch, model, x: torch.func.vmap(model)(x),
    "half": lambda torch, model, x: copy.deepcopy(model).half()(x.half()).float(),
    "bfloat16": lambda torch, model, x: copy.deepcopy(model).bfloat16()(x.bfloat16()).float(),
    "state_dict": with_its_state,
}
SLOW = {"inductor": lambda torch, model, x: torch.compile(model, fullgraph=True)(x)}
"""A compiler of C++ is asked, for a minute or two."""


@pytest.mark.parametrize("target", ["relu", "transformer"])
@pytest.mark.parametrize("way", [*WAYS, pytest.param("inductor", marks=pytest.mark.slow)])
def test_a_model_with_a_layer_leaves_pytorch_as_any_other(target: str, way: str) -> None:
    torch, model, x = in_a_model(target)
    wanted = model(x).detach()
    found = (WAYS | SLOW)[way](torch, model, x).detach()
    assert torch.allclose(found, wanted, atol=0.05 if way in ("half", "bfloat16") else 1e-6)
    x.requires_grad_()
    model(x).sum().backward()
    assert x.grad is not None
    assert x.grad.any()


@pytest.mark.parametrize("trainable", [False, True])
def test_rows_are_added_up_in_two_ways(adder, trainable: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values and derivatives, by inputs and by weights, are those of what other formats can hold: bit for bit
    where all numbers are whole, and up to rounding for the paper's thirds."""
    torch = pytest.importorskip("torch")
    from tapegrad.networks.backends import pytorch

    module = pytorch.NetworkModule(adder.net.network, trainable=trainable)
    found = []
    for just_run in (True, False):
        monkeypatch.setattr(pytorch, "_is_just_run", lambda own=just_run: own)
        rows = torch.tensor(ROWS, requires_grad=True)
        outputs = module(rows)
        weights = [own for own in module.parameters() if own.requires_grad]
        found.append([outputs, *torch.autograd.grad((outputs * outputs).sum(), [rows, *weights])])
    assert len(found[0]) == 2 + 2 * trainable
    off = 0 if adder.net.form == "practical" else 1e-5
    assert all(torch.allclose(one, other, rtol=off, atol=off) for one, other in zip(*found, strict=True))
    moves = found[0] if off == 0 else found[0][:1]  # the paper's corrections are flat at bits
    assert all(own.any() for own in moves)


def test_what_leaves_pytorch_has_no_bags(adder) -> None:
    torch = pytest.importorskip("torch")
    x = torch.tensor(ROWS)
    made = torch.export.export(tg.to_layer(adder), (x,)), torch.jit.trace(tg.to_layer(adder), (x,))
    assert not any("embedding_bag" in str(own.graph) for own in made)


def test_torch_layer_adds_and_has_the_same_gradient(adder) -> None:
    torch = pytest.importorskip("torch")
    layer = tg.to_layer(adder)
    noisy = torch.tensor(ROWS + np.random.default_rng(0).uniform(-0.49, 0.49, ROWS.shape))
    assert layer(noisy).dtype == torch.float64
    assert (layer(noisy).numpy() == sums(ROWS)).all()
    assert layer(noisy.reshape(2, 8, 4)).shape == (2, 8, 3)
    for row in ROWS:
        found = torch.autograd.functional.jacobian(layer, torch.tensor(row))
        assert np.allclose(found.numpy().T, slopes_of_the_extension(row))
    assert not any(own.requires_grad for own in layer.parameters())
    free = tg.to_layer(adder, trainable=True)
    free(torch.tensor(ROWS)).sum().backward()
    assert any(own.grad is not None and own.grad.any() for own in free.parameters())


def test_a_model_learns_through_the_layer() -> None:
    """A layer in front that takes every bit for a 1 at first: it learns better from the sums alone."""
    torch = pytest.importorskip("torch")
    read = torch.nn.Linear(1, 1)
    torch.nn.init.constant_(read.weight, 0.5)
    torch.nn.init.constant_(read.bias, 2.0)
    layer = tg.to_layer(tg.compile("adder2", "relu"))
    inputs, wanted = torch.tensor(2 * ROWS - 1), torch.tensor(sums(ROWS))
    optimiser = torch.optim.Adam(read.parameters(), lr=0.05)

    def model():
        return layer(torch.sigmoid(read(inputs[..., None]))[..., 0])

    assert not (model() == wanted).all()
    for _ in range(200):
        loss = (model() - wanted).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert (model() == wanted).all()


@pytest.mark.slow
def test_the_example_is_right_on_lengths_it_was_not_trained_on() -> None:
    pytest.importorskip("torch")
    path = Path(__file__).parents[2] / "examples" / "adder_in_the_middle.py"
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()[1:]]
    shares = {(kind, int(bits)): [float(own.rstrip("%")) for own in rest] for kind, bits, _, *rest in rows}
    assert all(share == 100 for bits in (4, 8, 16, 32) for share in shares["WithAdder", bits])
    assert all(share < 90 for share in shares["Without", 32])


@pytest.mark.parametrize("trainable", [False, True])
def test_a_layer_on_another_device(adder, trainable: bool) -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("there is no accelerator")
    layer = tg.to_layer(adder, trainable=trainable).to("cuda")
    rows = torch.tensor(np.tile(ROWS, (64, 1)), device="cuda", requires_grad=True)
    found = layer(rows)
    assert found.device.type == "cuda"
    assert (found.detach().cpu().numpy() == sums(rows.detach().cpu().numpy())).all()
    found.sum().backward()
    wanted = [slopes_of_the_extension(row).sum(1) for row in ROWS]
    assert np.allclose(rows.grad.cpu().numpy(), np.tile(wanted, (64, 1)))
    assert any(own.grad is not None for own in layer.parameters()) == trainable
