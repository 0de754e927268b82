"""A compiled net as a layer of somebody else's model, in PyTorch or in Equinox.

The layer takes floats and takes those above 1/2 for 1, all others for 0. It gives 0 and 1, exactly what the
source gives for these bits. Integers it takes as the numbers that the inputs are, modulo 2 to their widths,
and gives integers. That is a step function, whose derivative is 0 or does not exist. What a model
can learn from is the *multilinear extension* of the circuit: the one function that is linear in each input
and agrees with the circuit on all bits. At a row of bits x its derivative is a difference that the net
computes itself,

    d out_j / d x_i  =  out_j(x with x_i = 1) - out_j(x with x_i = 0),

and the rounding before it is passed straight through. `gradient="flips"` gives this, for two forward passes
for each input; `gradient="none"` gives none. (Weights that are trained have the network's own gradient; the
outputs of the paper's form, which are 0 and 1 up to rounding, are rounded and that is passed straight through
as well.) Where x is drawn, each bit by itself with probability p_i, the
mean of this difference is the derivative of the expected output by p_i: the gradient is right on average.

A net that takes steps is a module with explicit state: `outputs, state = module(state)`, from `module.start`.
Of a net that is trained the outputs are its loss. Such a module computes what the network says and rounds
nothing; its gradient is the network's own.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from numpy.typing import NDArray

from tapegrad._compile import Compiled
from tapegrad.circuits.inputs import BUS
from tapegrad.errors import InputError, Refused, described
from tapegrad.networks.backends.jax import Jax, Rows
from tapegrad.networks.form import Affine, Dense
from tapegrad.networks.network import Network
from tapegrad.targets.relu import LayeredNet
from tapegrad.targets.transformer.memory_net import MemoryNet

GRADIENTS = ("flips", "none")


def bits_to_bits(compiled: Compiled) -> Network | None:
    """The network of a circuit or a function, from `bits` to `outputs`; None of a net that takes steps or is
    trained."""
    if not isinstance(compiled, Compiled):
        raise InputError(
            f"a layer is made of a compiled net, and this is {described(compiled)}",
            advice='Compile it first, with tg.compile(source, "relu").',
        )
    net = compiled.net
    if isinstance(net, LayeredNet):
        return net.network
    return net.one_step() if isinstance(net, MemoryNet) else None


def gradient_of_bits(gradient: str | None) -> str:
    """The gradient of a layer of bits; `flips` where none is asked for."""
    if gradient is not None and gradient not in GRADIENTS:
        raise InputError(
            f"there is no gradient {gradient!r}", advice=f"Choose one of {', '.join(GRADIENTS)}."
        )
    return gradient or GRADIENTS[0]


def check_own_gradient(compiled: Compiled, gradient: str | None) -> None:
    """Refuses another gradient than the network's own."""
    if gradient is not None:
        raise InputError(
            f"a net of target {compiled.target.name!r} is no layer of bits, and has its own gradient",
            advice="Leave `gradient` out.",
        )


def first_state(compiled: Compiled, *inputs: Any) -> dict[str, NDArray[Any]]:
    """What the network of a net is given before its first step, for an input as a user writes it."""
    return compiled.net.network.first_state() | compiled.net.given(compiled.start(*inputs))


def dense_layers(net: LayeredNet) -> list[Dense]:
    """A network of target `relu` as layers that each read the one before, from bits to bits: of the last
    layer, which gives -1 and +1, half and a half."""
    chain = net.chain()
    *maps, last = (chain.layer(number) for number in range(chain.layers))
    bits = Affine(last.rows, last.columns, last.values / 2, (last.bias + 1) / 2, last.width)
    return [*(Dense(own, "relu") for own in maps), Dense(bits, "linear")]


class Words(NamedTuple):
    """Bits of a layer as words: of each bit which word it is in, and where."""

    word: list[int]
    place: list[int]

    @classmethod
    def of(cls, names: Sequence[str]) -> "Words":
        """From names such as `a[3]`; a bit without a number is a word of its own."""
        found = [BUS.fullmatch(name) for name in names]
        keys = [bus[1] if bus else name for name, bus in zip(names, found, strict=True)]
        order = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        return cls([order[key] for key in keys], [int(bus[2]) if bus else 0 for bus in found])

    @property
    def total(self) -> int:
        """How many words there are."""
        return 1 + max(self.word, default=-1)

    def bits(self, library: Any, numbers: Any) -> Any:
        """Numbers (..., words) as bits, by PyTorch or by JAX."""
        place = library.asarray(self.place)
        place = place.to(numbers.device) if hasattr(place, "to") and hasattr(place, "new_zeros") else place
        return numbers[..., library.asarray(self.word)] >> place & 1

    def numbers(self, library: Any, bits: Any) -> Any:
        """Bits that are integers as numbers, unsigned."""
        columns = [bits[..., i] << place for i, place in enumerate(self.place)]
        words = [
            sum(own for own, at in zip(columns, self.word, strict=True) if at == word)
            for word in range(self.total)
        ]
        return library.stack(words, -1)


def takes_numbers(x: Any, floats: bool, inputs: Words, outputs: Words, widest: int) -> bool:
    """Whether an array holds a number for each word; refused where results are wider than arrays can hold."""
    if floats or x.ndim == 0 or x.shape[-1] != inputs.total or inputs.total == len(inputs.word):
        return False
    if max(inputs.place + outputs.place) >= widest:
        raise Refused(
            f"numbers of more than {widest} bits do not fit an array's integers", advice="Give bits."
        )
    return True


def rows_of(x: Any, inputs: tuple[str, ...]) -> Any:
    """A row for each pattern; refused where the last axis has not a place for each input."""
    if x.ndim == 0 or x.shape[-1] != len(inputs):
        ends = inputs if len(inputs) < 3 else (inputs[0], "...", inputs[-1])
        raise InputError(
            f"the layer takes arrays of shape (..., {len(inputs)}), and was given {tuple(x.shape)}",
            advice=f"The last axis has a place for each bit, {' '.join(ends)}, the lowest of a number first.",
        )
    return x.reshape(-1, len(inputs))


class EquinoxLayer(eqx.Module):
    """The net as an Equinox module: `layer(x)` for `x` of shape (..., inputs) gives (..., outputs). Weights
    that are frozen are part of the network, which `eqx.filter_grad` passes over."""

    weights: dict[str, Array]
    network: Network = eqx.field(static=True)
    gradient: str = eqx.field(static=True)
    precision: str = eqx.field(static=True)

    def __init__(self, network: Network, *, gradient: str, trainable: bool) -> None:
        self.network, self.gradient = network, gradient
        names = self.network.weights() if trainable else ()
        self.weights = {name: jnp.asarray(self.network.arrays[name]) for name in names}
        self.precision = self.network.inputs["bits"].dtype

    def bits(self, x: Array) -> Array:
        """The net's outputs, 0 and 1, for rows of bits."""
        found = Jax(self.network, self.weights).run({"bits": x})[0]["outputs"]
        fixed = jax.lax.stop_gradient(found)
        return (fixed > 0.5).astype(found.dtype) + (found - fixed)

    def __call__(self, x: Array) -> Array:
        names = self.network.inputs["bits"].columns
        words, results = Words.of(names), Words.of(self.network.columns[self.network.outputs["outputs"]])
        integer = jnp.asarray(0).dtype  # of 32 bits, or 64 where JAX is told so
        widest = jnp.iinfo(integer).bits - 1
        if takes_numbers(x, jnp.issubdtype(x.dtype, jnp.floating), words, results, widest):
            found = self(words.bits(jnp, x.astype(integer)).astype(self.precision))
            return results.numbers(jnp, found.astype(integer))
        rows = rows_of(x, names)
        hard = jax.lax.stop_gradient(rows > 0.5).astype(self.precision)
        found = self.bits(hard)
        if self.gradient == "flips":
            flat = flipped(jnp, hard)
            ones, zeros = (jax.lax.stop_gradient(self.bits(own)) for own in flat)
            slopes = (ones - zeros).reshape(*hard.shape, found.shape[-1])
            nothing = rows - jax.lax.stop_gradient(rows)
            found = found + jnp.einsum("bi,bio->bo", nothing.astype(found.dtype), slopes)
        return found.reshape(*x.shape[:-1], -1)


class EquinoxStep(eqx.Module):
    """A net that takes steps, or that is trained, as an Equinox module: see `TorchStep`."""

    weights: dict[str, Array]
    network: Network = eqx.field(static=True)
    begin: Callable[..., dict[str, NDArray[Any]]] = eqx.field(static=True)

    def __init__(self, compiled: Compiled, *, trainable: bool) -> None:
        self.begin, self.network = partial(first_state, compiled), compiled.net.network
        names = self.network.weights() if trainable else ()
        self.weights = {name: jnp.asarray(self.network.arrays[name]) for name in names}

    def start(self, *inputs: Any, room: int | None = None) -> dict[str, Any]:
        """The state before the first step. With `room` what grows from step to step (keys and values) has
        room for so many rows from the beginning, so that one compiled program takes all steps."""
        ports = {**self.network.inputs} | {name: own.port for name, own in self.network.state.items()}
        if any(port.dtype == "float64" for port in ports.values()) and not jax.config.read("jax_enable_x64"):
            raise Refused(
                "the network computes in double precision, which JAX is not told to",
                advice='Try: jax.config.update("jax_enable_x64", True).',
            )
        state: dict[str, Any] = {}
        for name, own in self.begin(*inputs).items():
            grows = name in self.network.state and isinstance(ports[name].shape[0], str)
            state[name] = jnp.asarray(own)
            if grows and room is not None:
                behind = [(0, room), *[(0, 0)] * (own.ndim - 1)]
                state[name] = Rows(jnp.pad(state[name], behind), jnp.int32(len(own)))
        return state

    def __call__(self, state: Mapping[str, Any]) -> tuple[dict[str, Array], dict[str, Any]]:
        outputs, after = Jax(self.network, self.weights).run(state)
        return outputs, {**state, **after}


def flipped(library: Any, hard: Any) -> tuple[Any, Any]:
    """For every row and every input the row with this input 1, and with it 0, by PyTorch or by JAX."""
    one = library.eye(hard.shape[-1], dtype=hard.dtype)
    one = one.to(hard.device) if hasattr(one, "to") and hasattr(hard, "new_zeros") else one
    others = hard[:, None, :] * (1 - one)
    width = hard.shape[-1]
    return (others + one).reshape(-1, width), others.reshape(-1, width)
