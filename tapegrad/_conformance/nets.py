"""The networks of the kit, compiled from sources whose results are known, with inputs for each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad._compile import compile
from tapegrad._conformance.writing import Player, at_once
from tapegrad.circuits import UInt, trace
from tapegrad.circuits.evaluator import Evaluator
from tapegrad.circuits.model import Circuit
from tapegrad.machines.model import GridConfiguration, GridMachine, GridRule
from tapegrad.networks.builder import Builder, Value
from tapegrad.networks.form import Affine
from tapegrad.networks.network import Network
from tapegrad.networks.steps import Steps

PATTERNS = 64
NUMBER_BITS = 16
ROUND_CONSTANT = 0x428A2F98
"""The first of SHA-256."""
GRID_STEPS = 4
WORD = "10110111"
TRACE = [[cycle % 3 != 1, cycle == 5] for cycle in range(8)]
"""Of a counter: enabled, cleared."""


@dataclass(frozen=True)
class Case:
    """A network, inputs for it, and what it must give by another route: the source's own interpreter, plain
    arithmetic, or the network's steps one by one."""

    network: Network
    inputs: dict[str, NDArray[Any]]
    answer: NDArray[Any]
    written: bool = True
    """Whether matrices are written out, in runtimes too; else units gather what they read."""


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


def relu_case(circuit: Circuit, *, written: bool = True, signs: bool = True, **options: Any) -> Case:
    """A circuit on target `relu`. Without `signs` the last layer, 2 z - 1, is left out, and the bits
    themselves come out."""
    own = compile(circuit, "relu", **options).net.network
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, (PATTERNS, len(circuit.inputs))).astype(bool)
    answer = Evaluator(circuit)(bits).astype(np.float64)
    graph, inputs = Builder("relu", own.inputs["bits"].dtype), dict[str, NDArray[Any]]()
    player = Player(own, graph, inputs)
    played = player.values({"bits": player.given("bits", bits.astype(graph.dtype))})
    node, last = next((node, value) for node, value in played if node.operation == "layers")
    layers = len(own.array(node, "bounds")) - 1
    graph.output("outputs", last if signs else Value(graph, f"{node.name}.{layers - 2}"))
    return Case(graph.network(), inputs, 2 * answer - 1 if signs else answer, written)


def number_case(bits: int = NUMBER_BITS) -> Case:
    """Bits, put together to one number in one unit, and taken apart again, the highest first: for whole x,
    `relu(x - (2^i - 1)) - relu(x - 2^i)` is 1 if x >= 2^i, and 0 otherwise. It needs more bits than
    the formats have that accelerators prefer."""
    graph = Builder("number")

    def dense(x: Value, name: str, weight: Any, bias: Any = 0.0, about: str = "") -> Value:
        biases = np.broadcast_to(np.float32(bias), weight.shape[1])
        sums = graph.affine(x, Affine.of(weight.T.astype(np.float32), biases), f"{name}.sum", about)
        return graph.node("relu", sums, name=name)

    given = np.random.default_rng(1).integers(0, 2, (PATTERNS, bits)).astype(np.float32)
    h = graph.input("bits", *given.shape)
    h = dense(h, "number", np.ldexp(1.0, np.arange(bits))[:, None], about="the number")
    for found, place in enumerate(range(bits - 1, -1, -1)):
        width = 1 + found
        cuts = np.zeros((width, width + 2))
        cuts[:, :width] = np.eye(width)
        cuts[0, width:] = 1
        h = dense(h, f"cut_{place}", cuts, np.append(np.zeros(width), [1 - 2.0**place, -(2.0**place)]))
        bit = np.zeros((width + 2, width + 1))
        bit[:width, :width] = np.eye(width)
        bit[width:, width] = 1, -1
        h = dense(h, f"bit_{place}", bit)
        rest = np.eye(width + 1)
        rest[width, 0] = -(2.0**place)
        h = dense(h, f"rest_{place}", rest)
    last = Affine.of(np.eye(1 + bits, dtype=np.float32)[1:], np.zeros(bits, np.float32))
    graph.output("bits_again", graph.affine(h, last, "bits_again", "highest bit first"))
    return Case(graph.network(), {"bits": given}, given[:, ::-1].astype(np.float64))


TURMITE = GridMachine(
    {
        ("A", "0"): GridRule("1", "right", "B"),
        ("A", "1"): GridRule("1", "left", "B"),
        ("B", "0"): GridRule("1", "left", "A"),
        ("B", "1"): GridRule("1", "stay", "stop"),
    },
    "A",
    name="turmite",
)
START = GridConfiguration("A", {(0, 1): "1", (1, 0): "1"}, (0, 0))


def convolution_case(steps: int = GRID_STEPS) -> Case:
    """A turmite on target `rcnn`: the filter, an ordinary convolution, applied several times."""
    compiled, inputs = compile(TURMITE, "rcnn", margin=steps), dict[str, NDArray[Any]]()
    network, own = compiled.net.network, Steps(compiled.net.network)
    graph = Builder("convolution", network.state["grid"].port.dtype)
    given = compiled.net.given(compiled.net.start(START))
    running = own.begin(given)
    state = {"grid": Player(network, graph, inputs).given("grid", given["grid"])}
    for step in range(steps):
        state = Player(network, graph, inputs, f"step_{step}.").run(state)[1]
        running = own.step(running)[1]
    graph.output("grid", state["grid"])
    answer = running.state["grid"].astype(np.float64)
    return Case(graph.network(), inputs, answer)


def decoder_case(source: str, *given: Any, far: float = 64.0, written: bool = True, **options: Any) -> Case:
    """The steps of a source on target `transformer`, all at once: each row is given the output of the step
    before, and sees the keys and values of earlier rows alone."""
    compiled = compile(source, "transformer", **options)
    own = compiled.net.given(compiled.start(*given))
    network, inputs, answer = at_once(compiled.net.network, own, far)
    return Case(network, inputs, answer.astype(np.float64), written)


ABOUT = {
    "adder": "8-bit addition, the paper's form with corrections at quarters",
    "adder-ternary": "8-bit addition, all weights -1, 0 or 1",
    "sha256": "a round of SHA-256, the paper's form, matrices written out",
    "sha256-compact": "a round of SHA-256, compact form, by the inputs of each unit",
    "number": f"a number of {NUMBER_BITS} bits in one unit, taken apart again",
    "convolution": f"{GRID_STEPS} steps of a machine on a grid",
    "attention": "14 steps of a Turing machine by hard attention",
    "clock": "8 cycles of a counter, a circuit with latches, by hard attention",
    "training-": "8 steps of SGD on 425 weights, which emulate a learner of parities",
    "program": "20 instructions of SUBLEQ, with its memory, by hard attention",
}
CASES: dict[str, Callable[[], Case]] = {
    "adder": lambda: relu_case(adder(), form="paper", correction="quarters"),
    "adder-ternary": lambda: relu_case(adder(), signs=False, form="paper", correction="none"),
    "sha256": lambda: relu_case(sha256_round(), form="paper", correction="none"),
    "sha256-compact": lambda: relu_case(sha256_round(), written=False, form="practical", skips=False),
    "number": number_case,
    "convolution": convolution_case,
    "attention": lambda: decoder_case("increment", WORD, form="paper", steps=32),
    "clock": lambda: decoder_case("counter8", TRACE, steps=len(TRACE)),
    "program": lambda: decoder_case("subleq-hello", far=512.0, written=False, steps=64, input=1, output=4),
}
