"""The networks of the kit, compiled from sources whose results are known, with inputs for each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad._compile import compile
from tapegrad._conformance.graph import Graph, Layer
from tapegrad.circuits import UInt, trace
from tapegrad.circuits.evaluator import Evaluator
from tapegrad.circuits.model import Circuit
from tapegrad.errors import BrokenNet
from tapegrad.machines.library import ready
from tapegrad.machines.model import GridConfiguration, GridMachine, GridRule
from tapegrad.networks.form import Affine, Attention, Matrix, Stack
from tapegrad.networks.numpy import WatchedDecoder
from tapegrad.targets.rcnn import RcnnNet
from tapegrad.targets.relu import CompactNet, ReluNet
from tapegrad.targets.transformer.net import TransformerNet

PATTERNS = 64
NUMBER_BITS = 16
ROUND_CONSTANT = 0x428A2F98
"""The first of SHA-256."""
GRID_STEPS = 4
FAR = 64.0
"""What is taken off the score of a later step, which may not be seen: more than any score."""


@dataclass(frozen=True)
class Case:
    """A network, inputs for it, and what its last layer must give by another route: the source's own
    interpreter, or plain arithmetic."""

    graph: Graph
    inputs: dict[str, NDArray[Any]]
    answer: NDArray[Any]


def adder(bits: int = 8) -> Circuit:
    """a + b with the carry lost."""
    return trace(lambda a, b: a + b, UInt(bits), UInt(bits)).circuit


def sha256_round() -> Circuit:
    """One round of SHA-256: eight words and one of the message to the two words that are new."""

    def rotated(x: Any, by: int) -> Any:
        return (x >> by) | (x << (32 - by))

    def one_round(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any, w: Any) -> Any:
        one = rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)
        zero = rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)
        first = h + one + ((e & f) ^ (~e & g)) + ROUND_CONSTANT + w
        return first + zero + ((a & b) ^ (a & c) ^ (b & c)), d + first

    return trace(one_round, *[UInt(32)] * 9).circuit


def relu_case(
    name: str, about: str, circuit: Circuit, kind: str, *, signs: bool = True, **options: Any
) -> Case:
    """A circuit on target `relu`, its layers written out (`dense`) or by the inputs of each unit (`sparse`).
    Without `signs` the last layer, 2 z - 1, is left out, and the bits themselves come out."""
    net = compile(circuit, "relu", **options).net
    assert isinstance(net, ReluNet | CompactNet)
    own = net.stack if isinstance(net, ReluNet) else net.stack()
    # Off the device, at once.
    inputs, weights, biases = (np.asarray(array) for array in (own.inputs, own.weights, own.biases))
    stack = Stack(inputs, weights, biases, own.bounds, own.width)
    layers = stack.layers if signs else stack.layers - 1
    made = tuple(_stacked(stack, number, kind) for number in range(layers))
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, (PATTERNS, len(circuit.inputs))).astype(bool)
    answer = Evaluator(circuit)(bits).astype(np.float64)
    graph = Graph(name, about, {"bits": (len(circuit.inputs),)}, made)
    return Case(graph, {"bits": bits.astype(np.float64)}, 2 * answer - 1 if signs else answer)


def _stacked(stack: Stack, number: int, kind: str) -> Layer:
    name = f"layer_{number}"
    reads = (f"layer_{number - 1}",) if number else ("bits",)
    relu = number < stack.layers - 1
    if kind == "dense":
        return Layer(name, kind, reads, _written(stack.layer(number)), relu)
    own = slice(int(stack.bounds[number]), int(stack.bounds[number + 1]))
    arrays = {
        "inputs": stack.inputs[own].astype(np.int64),
        "weight": stack.weights[own].astype(np.float64),
        "bias": stack.biases[own].astype(np.float64),
    }
    return Layer(name, kind, reads, arrays, relu)


def _written(own: Affine | Matrix) -> dict[str, NDArray[Any]]:
    written = own.dense()
    weight = np.ascontiguousarray(np.asarray(written.weight).T.astype(np.float64))
    return {"weight": weight, "bias": np.asarray(written.bias).astype(np.float64)}


def number_case(bits: int = NUMBER_BITS) -> Case:
    """Bits, put together to one number in one unit, and taken apart again, the highest first: for whole x,
    `relu(x - (2^i - 1)) - relu(x - 2^i)` is 1 if x >= 2^i, and 0 otherwise. It needs more bits than
    the formats have that accelerators prefer."""
    layers = [
        Layer("number", "dense", ("bits",), _row(np.ldexp(1.0, np.arange(bits))[:, None]), True, "the number")
    ]
    for found, place in enumerate(range(bits - 1, -1, -1)):
        width, before = 1 + found, layers[-1].name
        cuts = np.zeros((width, width + 2))
        cuts[:, :width] = np.eye(width)
        cuts[0, width:] = 1
        thresholds = np.append(np.zeros(width), [1 - 2.0**place, -(2.0**place)])
        layers.append(Layer(f"cut_{place}", "dense", (before,), _row(cuts, thresholds), True))
        bit = np.zeros((width + 2, width + 1))
        bit[:width, :width] = np.eye(width)
        bit[width:, width] = 1, -1
        layers.append(Layer(f"bit_{place}", "dense", (f"cut_{place}",), _row(bit), True))
        rest = np.eye(width + 1)
        rest[width, 0] = -(2.0**place)
        layers.append(Layer(f"rest_{place}", "dense", (f"bit_{place}",), _row(rest), True))
    drop = np.eye(1 + bits)[:, 1:]
    layers.append(Layer("bits_again", "dense", (layers[-1].name,), _row(drop), False, "highest bit first"))
    given = np.random.default_rng(1).integers(0, 2, (PATTERNS, bits)).astype(np.float64)
    about = f"a number of {bits} bits in one unit, taken apart again"
    return Case(Graph("number", about, {"bits": (bits,)}, tuple(layers)), {"bits": given}, given[:, ::-1])


def _row(weight: NDArray[np.float64], bias: NDArray[np.float64] | None = None) -> dict[str, NDArray[Any]]:
    return {"weight": weight, "bias": np.zeros(weight.shape[1]) if bias is None else bias}


def convolution_case(steps: int = GRID_STEPS) -> Case:
    """A turmite on target `rcnn`: the filter, an ordinary convolution, applied several times."""
    rules = {
        ("A", "0"): GridRule("1", "right", "B"),
        ("A", "1"): GridRule("1", "left", "B"),
        ("B", "0"): GridRule("1", "left", "A"),
        ("B", "1"): GridRule("1", "stay", "stop"),
    }
    machine = GridMachine(rules, "A", name="turmite")
    net = compile(machine, "rcnn", margin=steps).net
    assert isinstance(net, RcnnNet)
    filter_layers = net.filter.convolution.layers
    if net.filter.convolution.padding or len(net.filter.convolution.cells) != 9:
        raise BrokenNet("the filter is no ordinary convolution")
    layers: list[Layer] = []
    for step in range(steps):
        for number, own in enumerate(filter_layers):
            written, size = own.map.dense(), 3 if number == 0 else 1
            kernel = np.asarray(written.weight).astype(np.float64).reshape(len(own.map), -1, size, size)
            arrays = {"kernel": kernel, "bias": np.asarray(written.bias).astype(np.float64)}
            before = layers[-1].name if layers else "grid"
            name = f"step_{step}.{number}"
            layers.append(Layer(name, "convolution", (before,), arrays, own.activation == "relu"))
    start = GridConfiguration("A", {(0, 1): "1", (1, 0): "1"}, (0, 0))
    sheet = net.start(start)
    grid = np.asarray(sheet.grid).astype(np.float64)[None]
    states = [state for state, _ in zip(machine.run(start), range(steps + 1), strict=False)]
    answer = _drawn(net, sheet.corner, grid.shape[2:], states[-1])
    graph = Graph(
        "convolution", f"{steps} steps of a machine on a grid", {"grid": grid.shape[1:]}, tuple(layers)
    )
    return Case(graph, {"grid": grid}, answer)


def _drawn(
    net: RcnnNet, corner: tuple[int, int], shape: Sequence[int], state: GridConfiguration
) -> NDArray[Any]:
    """A configuration of the interpreter as a grid of this place and size: what starting there gives,
    shifted."""
    sheet = net.start(state)
    blank = np.asarray(net.start(GridConfiguration(state.state, {}, (0, 0))).grid)[:, 0, 0]
    answer = np.empty((len(blank), *shape))
    answer[:] = blank[:, None, None]
    own = np.asarray(sheet.grid)
    rows, columns = (
        np.arange(n) + c - d for n, c, d in zip(own.shape[1:], sheet.corner, corner, strict=True)
    )
    inside = np.ix_((rows >= 0) & (rows < shape[0]), (columns >= 0) & (columns < shape[1]))
    kept = own[:, inside[0], inside[1]] if own.size else own
    answer[:, rows[inside[0]], columns[inside[1]]] = kept
    return answer[None].astype(np.float64)


def attention_case(word: str = "10110111", steps: int = 32) -> Case:
    """A Turing machine on target `transformer`, all steps of its run at once: each row is given the output of
    the step before, and sees earlier rows alone."""
    machine = ready("increment")
    net = compile(machine, "transformer", steps=steps).net
    assert isinstance(net, TransformerNet)
    start = machine.start(word)
    carry = net.start(start)
    watched = WatchedDecoder(net.decoder, carry.tokens.astype(np.float64))
    count = sum(1 for _ in machine.run(start))
    seen = [watched.step() for _ in range(count)]
    given = np.stack([one.start for one in seen])
    layers: list[Layer] = []
    h = "decoder"
    visible = np.where(np.tri(count, count + 1, 1), 0.0, -FAR)
    for number, block in enumerate(net.decoder.blocks):
        name = f"block_{number}"
        if block.adds_to is not None:
            raise BrokenNet("a block of this network adds to its vector")
        if block.self_attention is not None:
            h = _attended(layers, f"{name}.self", block.self_attention, h, h, visible)
        if block.encoder_attention is not None:
            tokens = len(carry.tokens)
            every = np.zeros((count, 1 + tokens))
            h = _attended(layers, f"{name}.encoder", block.encoder_attention, h, "tokens", every)
        for place, own in enumerate(block.expanded().feed_forward):
            arrays = _written(own.map)
            layers.append(
                Layer(f"{name}.{place}", "dense", (h,), arrays, own.activation == "relu", block.purpose)
            )
            h = layers[-1].name
    inputs = {"decoder": given, "tokens": carry.tokens.astype(np.float64)}
    shapes = {name: own.shape[1:] for name, own in inputs.items()}
    graph = Graph("attention", f"{count} steps of a Turing machine by hard attention", shapes, tuple(layers))
    return Case(graph, inputs, np.stack([one.hidden[-1] for one in seen]))


def _attended(
    layers: list[Layer], name: str, own: Attention, h: str, seen: str, mask: NDArray[np.float64]
) -> str:
    """The layers of one attention; the last adds what was attended to."""
    layers.append(Layer(f"{name}.query", "dense", (h,), _written(own.query)))
    for side, side_map, null in (("key", own.key, own.null_key), ("value", own.value, own.null_value)):
        layers.append(Layer(f"{name}.{side}", "dense", (seen,), _written(side_map)))
        first = {"first": np.asarray(null)[None].astype(np.float64)}
        layers.append(Layer(f"{name}.{side}s", "join", (f"{name}.{side}",), first))
    layers.append(Layer(f"{name}.scores", "scores", (f"{name}.query", f"{name}.keys"), {"mask": mask}))
    layers.append(Layer(f"{name}.shares", "choose", (f"{name}.scores",)))
    layers.append(Layer(f"{name}.sum", "mix", (f"{name}.shares", f"{name}.values", h)))
    return layers[-1].name


def _adder_paper() -> Case:
    about = "8-bit addition, the paper's form with corrections at quarters"
    return relu_case("adder", about, adder(), "dense", form="paper", correction="quarters")


def _adder_ternary() -> Case:
    about = "8-bit addition, all weights -1, 0 or 1"
    return relu_case("adder-ternary", about, adder(), "dense", form="paper", correction="none", signs=False)


def _sha256_paper() -> Case:
    about = "a round of SHA-256, the paper's form, matrices written out"
    return relu_case("sha256", about, sha256_round(), "dense", form="paper", correction="none")


def _sha256_compact() -> Case:
    about = "a round of SHA-256, compact form, by the inputs of each unit"
    return relu_case("sha256-compact", about, sha256_round(), "sparse", form="compact")


CASES: dict[str, Callable[[], Case]] = {
    "adder": _adder_paper,
    "adder-ternary": _adder_ternary,
    "sha256": _sha256_paper,
    "sha256-compact": _sha256_compact,
    "number": number_case,
    "convolution": convolution_case,
    "attention": attention_case,
}
