"""Nets that take steps, or that are trained, as modules with explicit state: every step beside the net's own;
and layers of bits beside Python's own addition."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapegrad as tg
from tapegrad.errors import InputError, Refused
from tapegrad.targets.decoder.sequences import Pass
from tests.networks.cases import CASES, COMPILED, TRAINED, compiled
from tests.networks.test_backends import same
from tests.table import fills

MAKERS: tuple[Callable[..., Any], ...] = (tg.to_equinox, tg.to_layer)[: 1 + bool(find_spec("torch"))]
"""Of layers, as far as there is PyTorch."""

OF_BITS = [name for name in CASES if name.startswith("relu") or name == "transformer, circuit"]
OF_STEPS = [name for name in CASES if name not in OF_BITS]
STEPS = 5
"""Of a decoder, the tokens that are written."""
ROOM = 60
"""Rows of what grows: so one compiled program takes all steps."""
Step = Callable[[dict[str, Any]], tuple[dict[str, Any], dict[str, Any]]]


def follow(name: str, step: Step, state: dict[str, Any], token: Callable[[int], Any]) -> None:
    """A module and the net side by side, up to the halt."""
    own: Any = compiled(name)
    carry = own.start(*COMPILED[name].inputs)
    outputs: dict[str, Any] = {}
    if name in TRAINED:
        outputs, _ = step(state)
        after = own.net.step(carry)
        wanted = (
            (after.output - float(own.net.given(carry)["label"])) ** 2
            if "emulator" in name
            else own.net.loss(carry)
        )
        assert np.allclose(float(outputs["loss"]), wanted, rtol=1e-6)
    elif "RASP" in name:
        outputs, _ = step(state)
        found = (np.asarray(outputs[key]) for key in ("hidden", "logits"))
        *_, last = own.source.run(own.source.start(*CASES[name].inputs))
        assert own.net.decode(Pass(carry.tokens, 1, *found)) == last
    elif name == "decoder, machine":
        text, wanted = list(carry.tokens), list(own.net.advance(carry, 2).tokens)
        for _ in range(STEPS):
            outputs, state = step(state)
            text.append(int(np.asarray(outputs["logits"])[-1].argmax()))
            state = {**state, "tokens": token(text[-1])}
        assert text == wanted[: len(text)]
    else:
        steps = 0
        while not own.net.done(carry):
            carry, steps = own.net.step(carry), steps + 1
            outputs, state = step(state)
            found = state["grid"] if "grid" in state else outputs["output"][0]
            wanted = carry.grid if "grid" in state else carry.output
            assert same(name, np.asarray(found), np.asarray(wanted))
        assert steps > 2 or "circuit" in name
        assert "halted" not in outputs or float(outputs["halted"][0, 0]) == 1


@fills(OF_STEPS, torch_layer="every step")
def test_steps_in_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch")
    layer = tg.to_layer(compiled(name))
    assert not any(own.requires_grad for own in layer.parameters())
    with torch.no_grad():
        follow(name, layer, layer.start(*CASES[name].inputs), lambda token: torch.tensor([token]))


@fills(OF_STEPS, equinox="every step")
def test_steps_in_equinox(name: str) -> None:
    with jax.enable_x64("ternary" in name):
        layer, step = tg.to_equinox(compiled(name)), eqx.filter_jit(lambda own, state: own(state))
        state = layer.start(*CASES[name].inputs, room=ROOM)
        follow(name, lambda state: step(layer, state), state, lambda token: jnp.array([token]))


@fills(TRAINED, torch_layer="loss, gradient")
def test_losses_in_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch")
    layer = tg.to_layer(compiled(name))
    state = layer.start(*COMPILED[name].inputs)
    with torch.no_grad():
        follow(name, layer, state, int)
    rule = compiled(name).net.network.training
    assert rule is not None
    trained = rule.updates
    for key in trained:
        state[key].requires_grad_()
    layer(state)[0]["loss"].backward()
    slopes = equinox_slopes(name)
    for key in trained:
        found = np.zeros(state[key].shape) if state[key].grad is None else state[key].grad.numpy()
        assert np.allclose(found, slopes[key], rtol=1e-9, atol=1e-12)


@fills(TRAINED, equinox="loss, gradient")
def test_losses_in_equinox(name: str) -> None:
    """The gradient is a difference of losses, where that is not lost in rounding."""
    with jax.enable_x64(True):
        layer = tg.to_equinox(compiled(name))
        state = layer.start(*COMPILED[name].inputs)
        follow(name, layer, state, int)
        if "emulator" in name:
            assert any(np.asarray(own).any() for own in equinox_slopes(name).values())
            return
        slope, step = equinox_slopes(name)["s"], 1e-6
        for place in range(3):
            moved = np.eye(len(slope))[place] * step
            up, down = (layer({**state, "s": state["s"] + own})[0]["loss"] for own in (moved, -moved))
            assert np.isclose((up - down) / (2 * step), slope[place], rtol=1e-4, atol=1e-6)


def equinox_slopes(name: str) -> dict[str, np.ndarray]:
    with jax.enable_x64(True):
        layer = tg.to_equinox(compiled(name))
        state = layer.start(*COMPILED[name].inputs)
        rule = compiled(name).net.network.training
        assert rule is not None
        updates = rule.updates
        found = jax.grad(lambda own: layer({**state, **own})[0]["loss"])({key: state[key] for key in updates})
        return {key: np.asarray(own) for key, own in found.items()}


@fills(OF_BITS, torch_layer="sums, gradient", equinox="sums, gradient")
def test_layers_of_bits(name: str) -> None:
    """By an input the gradient is the output with this bit 1 less the output with it 0."""
    torch = pytest.importorskip("torch")
    layer, other = tg.to_layer(compiled(name)), tg.to_equinox(compiled(name))
    rows = np.array([[n >> place & 1 for place in range(4)] for n in range(16)], np.float32)
    totals = {tuple(row): int(row[0] + 2 * row[1] + row[2] + 2 * row[3]) for row in rows.tolist()}
    wanted = np.array([[totals[tuple(row)] >> place & 1 for place in range(3)] for row in rows.tolist()])
    assert (layer(torch.tensor(rows)).numpy() == wanted).all()
    assert (np.asarray(other(jnp.asarray(rows))) == wanted).all()
    x = torch.tensor(rows, requires_grad=True)
    layer(x).sum().backward()
    flips = [[ones(totals, row, place) for place in range(4)] for row in rows.tolist()]
    assert (x.grad.numpy() == flips).all()
    assert (np.asarray(jax.grad(lambda x: other(x).sum())(jnp.asarray(rows))) == flips).all()


def ones(totals: dict[tuple[float, ...], int], row: list[float], place: int) -> int:
    """By how many more bits of the sum are 1 with this bit."""
    with_it, without = ([*row[:place], bit, *row[place + 1 :]] for bit in (1.0, 0.0))
    return totals[tuple(with_it)].bit_count() - totals[tuple(without)].bit_count()


def test_one_compiled_program_takes_all_steps() -> None:
    layer, traced = tg.to_equinox(compiled("transformer, paper")), []

    @eqx.filter_jit
    def step(module: Any, state: dict[str, Any]) -> Any:
        traced.append(1)
        return module(state)

    for room, programs in ((ROOM, 1), (None, 3)):
        traced.clear()
        state = layer.start("11", room=room)
        for _ in range(3):
            _, state = step(layer, state)
        assert len(traced) == programs


def test_weights_of_steps_can_be_trained() -> None:
    torch = pytest.importorskip("torch")
    layer = tg.to_layer(compiled("transformer, paper"), trainable=True)
    layer(layer.start("11"))[0]["output"].sum().backward()
    assert any(own.grad is not None and own.grad.any() for own in layer.parameters())
    free = tg.to_equinox(compiled("transformer, paper"), trainable=True)
    state = free.start("11")
    slopes = eqx.filter_grad(lambda own: own(state)[0]["output"].sum())(free)
    assert any(np.asarray(own).any() for own in jax.tree.leaves(slopes))
    assert torch is not None


@pytest.mark.parametrize("gradient", ["none", "flips", "some"])
def test_steps_have_their_own_gradient(gradient: str) -> None:
    for make in MAKERS:
        with pytest.raises(InputError, match="no layer of bits, and has its own gradient"):
            make(compiled("tape" if make is tg.to_equinox else "transformer, paper"), gradient=gradient)


def test_double_precision_is_asked_for() -> None:
    with pytest.raises(Refused, match="jax_enable_x64"):
        tg.to_equinox(compiled("tape")).start("11")


def test_exact_memory_is_no_module() -> None:
    for make in MAKERS:
        with pytest.raises(Refused, match="80 digits"):
            make(compiled("emulator, exact"))


@pytest.mark.parametrize("name", [*OF_BITS, *OF_STEPS, *TRAINED])
def test_on_an_accelerator(name: str) -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("there is no accelerator")
    layer = tg.to_layer(compiled(name)).to("cuda")
    if name in OF_BITS:
        rows = torch.tensor([[1.0, 0, 1, 1], [1, 1, 1, 1]], device="cuda")
        assert layer(rows).tolist() == [[0, 0, 1], [0, 1, 1]]
        return

    def step(state: dict[str, Any]) -> Any:
        outputs, after = layer(state)
        assert all(own.device.type == "cuda" for own in (*outputs.values(), *after.values()))
        cpu = [{key: own.cpu() for key, own in part.items()} for part in (outputs, after)]
        return cpu[0], {key: own.cuda() for key, own in cpu[1].items()}

    def at_home(state: dict[str, Any]) -> Any:
        outputs, after = step({key: own.cuda() for key, own in state.items()})
        return outputs, {key: own.cpu() for key, own in after.items()}

    with torch.no_grad():
        follow(name, at_home, layer.start(*COMPILED[name].inputs), lambda token: torch.tensor([token]))
