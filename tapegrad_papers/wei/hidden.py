"""Hidden vectors of the transformer against what the lemmas say of them, and the 1-norms of its modules."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad._compile import compile
from tapegrad.circuits.builder import CircuitBuilder
from tapegrad.circuits.model import Circuit
from tapegrad.machines.library import busy_beaver, ready
from tapegrad.machines.model import Configuration, TuringMachine
from tapegrad.networks.form import Dense, Matrix
from tapegrad.networks.numpy import chain
from tapegrad.targets.transformer import TransformerNet
from tapegrad_papers.wei.blocks import Chain
from tapegrad_papers.wei.chains import relu_chain
from tapegrad_papers.wei.section_3 import adder, compiled_relu, dense, every_pattern
from tapegrad_papers.wei.watched import Look, WatchedDecoder

# Runs of a decoder with every hidden vector, beside what the machine says they are.


Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Facts:
    """What a step of the machine is about, from its plain run: z_i, a_i, l_i, u_i, the move, and i', the last
    step before that wrote at l_i (0 if none did)."""

    step: int
    state: str
    symbol: str
    place: int
    place_before: int
    written: str
    move: int
    last_write: int
    last_written: str | None
    given: str | None
    """The input symbol at l_i, if l_i is part of the input."""


@dataclass(frozen=True)
class DecodedRun:
    """`hidden[i][l]` is the vector after layer l of decoder step i; `inputs[i]` what the step starts from."""

    net: TransformerNet
    facts: list[Facts]
    inputs: list[Vector]
    hidden: list[list[Vector]]
    looked: list[list[Look]]

    @property
    def first_search(self) -> int:
        """The number of the layer of Claim C.4."""
        return self.net.layout.position_bits + 3

    def after(self, layer: int) -> Iterator[tuple[Facts, Vector]]:
        """The hidden vectors after this layer in steps 1, 2, ..., with their facts."""
        for facts, hidden in zip(self.facts, self.hidden[1:], strict=True):
            yield facts, hidden[layer]

    def expected(self, **groups: Any) -> Vector:
        """A hidden vector from what its groups should hold: a name for one-hot groups, a number for binary
        ones, 1 for single coordinates; None or 0 leaves the group empty. All other coordinates are 0."""
        layout, vector = self.net.layout, np.zeros(self.net.layout.width)
        for group, value in groups.items():
            if isinstance(value, str):
                vector[layout.at(group, value)] = 1
            elif value:
                places = layout.group(group)
                vector[places] = value >> np.arange(len(places)) & 1
        return vector


def instances(long: bool) -> Iterator[tuple[TuringMachine, tuple[str, ...], int]]:
    """Machines, inputs and T."""
    yield ready("increment"), ("1011",), 16
    yield busy_beaver("3x2"), (), 24
    yield ready("palindrome"), ("aba",), 24
    if long:
        yield ready("palindrome"), ("abba",), 64
        yield busy_beaver("4x2"), (), 128


def decoded_runs(long: bool) -> list[DecodedRun]:
    """All instances, run by the decoder below."""
    return [decode(machine, words, steps) for machine, words, steps in instances(long)]


def transformer(machine: TuringMachine, steps: int) -> TransformerNet:
    """The net of the machine for runs of at most so many steps."""
    net = compile(machine, "transformer", form="paper", steps=steps).net
    assert isinstance(net, TransformerNet)
    return net


def decode(machine: TuringMachine, words: tuple[str, ...], steps: int) -> DecodedRun:
    """Section 4.1 in double precision, with three ReLU layers in each block."""
    net = transformer(machine, steps)
    start = machine.start(*words)
    facts = list(_facts(machine, start, net.layout.offset))
    written_out = replace(net.decoder, blocks=tuple(block.expanded() for block in net.layers))
    decoder = WatchedDecoder(written_out, net.start(start).tokens.astype(float))
    seen = [decoder.step() for _ in range(len(facts) + 1)]
    return DecodedRun(net, facts, [s.start for s in seen], [s.hidden for s in seen], [s.looks for s in seen])


def _facts(machine: TuringMachine, start: Configuration, offset: int) -> Iterator[Facts]:
    run = list(machine.run(start))
    writes: list[tuple[int, str]] = []
    given = start.tapes[0]
    cells = range(min(given), max(given) + 1) if given else range(0)
    for step, (before, after) in enumerate(pairwise(run), 1):
        rule = machine.rules[before.state, machine.read(before)]
        writes.append((before.heads[0], rule.write[0]))
        place = after.heads[0]
        last = max((t for t, (cell, _) in enumerate(writes, 1) if cell == place), default=0)
        yield Facts(
            step=step,
            state=after.state,
            symbol=machine.read(after)[0],
            place=place + offset,
            place_before=before.heads[0] + offset,
            written=rule.write[0],
            move=rule.moves[0],
            last_write=last,
            last_written=writes[last - 1][1] if last else None,
            given=given.get(place, machine.blank) if place in cells else None,
        )


LARGEST_CONSTANT = 16.0
"""No O(...) of the lemmas hides a larger constant in these nets: an attention spends 6 on each of up to
2 w_pos compared bits, 2 w_pos on its null key, and a ReLU layer 1 on every coordinate that it passes on."""


def mistakes(
    runs: Sequence[DecodedRun], layer: Callable[[DecodedRun], int], groups: Callable[[Facts], dict[str, Any]]
):
    """How many hidden vectors after a layer differ from what they should be, and how many there are."""
    wrong = total = 0
    for run in runs:
        for facts, found in run.after(layer(run)):
            wrong += not np.array_equal(found, run.expected(**groups(facts)))
            total += 1
    return wrong, total


def norm_ratios(
    norm: Callable[[TransformerNet], float], expression: Callable[[int, int, int], float]
) -> list[float]:
    """Norm over the lemma's expression in |Z|, |A| and w_pos, for two machines and T = 2^4, 2^8 and 2^16."""
    found = []
    for machine in (ready("increment"), busy_beaver("4x2")):
        for steps in (1 << 4, 1 << 8, 1 << 16):
            net = transformer(machine, steps)
            sizes = len(machine.states), len(machine.alphabet), net.layout.position_bits
            found.append(norm(net) / expression(*sizes))
    return found


def norm_checks(ratios: list[float], expression: str) -> dict[str, bool]:
    return {
        f"1-norm at most {LARGEST_CONSTANT:g} times {expression}, up to T = 65536": max(ratios)
        <= LARGEST_CONSTANT
    }


def state_groups(facts: Facts) -> dict[str, Any]:
    """(C.5) without the new position."""
    common = {"st": facts.state, "sym2": facts.written}
    return common | {"pos1": facts.step, "pos2": facts.place_before}


def look_up_layer(run: DecodedRun) -> int:
    return run.first_search + run.net.layout.time_bits + 1


def looked_up_groups(f: Facts) -> dict[str, Any]:
    """(C.15): what the last write and the input say."""
    own = {"pos3": f.place, "found": int(f.last_write > 0), "given": int(f.given is not None)}
    return state_groups(f) | own | {"scr1": f.last_written, "scr2": f.given}


def attends_to_one(runs: Sequence[DecodedRun], kind: str) -> bool:
    """Whether the attention of this kind in the look-up layer attends to one place, or to the null key."""
    return all(
        (look.scores == look.scores.max()).sum() == 1
        for run in runs
        for seen in run.looked[1:]
        for look in seen
        if look.block == look_up_layer(run) and look.kind == kind
    )


def gap_checks(runs: Sequence[DecodedRun], first: int, last: int | None = None) -> dict[str, bool]:
    """The best score leads by 1, and only equal values tie, in the search's layers first..last."""
    leads, ties = [], True
    for run in runs:
        wanted = range(run.first_search + first, run.first_search + (first if last is None else last) + 1)
        for seen in run.looked:
            for look in (look for look in seen if look.block in wanted and look.kind == "self"):
                best = look.scores == look.scores.max()
                if not best.all():
                    leads.append(float(look.scores.max() - look.scores[~best].max()))
                ties &= len(np.unique(look.values[best], axis=0)) == 1
    return {"the best score leads by at least 1": min(leads) >= 1, "only equal values tie": ties}


# A corrected ReLU network in plain NumPy with noise on any of its layers: the g_i and h_i of (D.1).


Matrices = list[NDArray[np.float64]]


@dataclass(frozen=True)
class CorrectedNetwork:
    """f_1, zeta_1, f_2, ..., f_d, each a list of matrices and biases, and what appendix D says of it."""

    functions: list[Matrices]
    corrections: list[Matrices]
    chain: Chain
    inputs: NDArray[np.float64]

    def run(self, theta: list[Matrices], xi: list[Matrices]) -> tuple[Matrices, Matrices]:
        """The values before each correction, and after it; the last value is the output."""
        before, after, values = [], [], self.inputs
        for number, layers in enumerate(theta):
            last = number == len(theta) - 1
            values = apply(layers, values, linear=last)
            before.append(values)
            if not last:
                values = apply(xi[number], values)
                after.append(values)
        return before, after


def apply(layers: Matrices, values: NDArray[np.float64], linear: bool = False) -> NDArray[np.float64]:
    """W, b, W, b, ... with a ReLU after each, or none."""
    maps = [Matrix(W, b) for W, b in zip(layers[::2], layers[1::2], strict=True)]
    return chain(tuple(Dense(own, "linear" if linear else "relu") for own in maps), values.T).T


def corrected_adder(bits: int) -> CorrectedNetwork:
    """An adder with the paper's corrections, on all its inputs."""
    return corrected_network(adder(bits), every_pattern(2 * bits).astype(float))


def corrected_network(circuit: Circuit, inputs: NDArray[np.float64]) -> CorrectedNetwork:
    """A circuit with the paper's corrections, on these inputs."""
    net = compiled_relu(circuit)[1]
    layers = [dense(net, number) for number in range(net.depth + 1)]
    pairs = [[part for layer in layers[i : i + 2] for part in layer] for i in range(0, net.depth, 2)]
    functions = [*pairs[::2], list(layers[-1])]
    return CorrectedNetwork(functions, pairs[1::2], relu_chain(net), inputs)


def noisy(matrices: Matrices, size: float, random: np.random.Generator, spread: bool) -> Matrices:
    """The matrices with noise of this 2-norm: spread over all entries, or on one of them."""
    lengths = [part.size for part in matrices]
    noise = np.zeros(sum(lengths))
    if spread:
        noise[:] = random.normal(size=len(noise))
    else:
        noise[random.integers(len(noise))] = random.choice([-1.0, 1.0])
    noise *= size / np.linalg.norm(noise)
    pieces = np.split(noise, np.cumsum(lengths)[:-1])
    return [part + piece.reshape(part.shape) for part, piece in zip(matrices, pieces, strict=True)]


def worst_noise(
    layers: Matrices, h: NDArray[np.float64], unit: int | None = None
) -> tuple[Matrices, NDArray[np.float64]]:
    """The change of all parameters of norm 1, and that of h, that move `relu(W2 relu(W1 h + b1) + b2)`
    most, to first order. Noise on (W2, b2) moves the output by `|(a, 1)|` times its norm in any direction,
    noise on (W1, b1) by `|(h, 1)|` times W2; units that are off do not move. The output's direction is the
    first singular vector of both together, or one unit's, and each change is of rank one."""
    W1, b1, W2, b2 = layers
    z = W1 @ h + b1
    a = np.maximum(z, 0)
    on = np.diag((W2 @ a + b2 > 0).astype(float))
    inner = on @ W2 * (z > 0)
    first, second = np.append(h, 1), np.append(a, 1)
    moves = np.hstack([np.linalg.norm(second) * on, np.linalg.norm(first) * inner])
    y = np.linalg.svd(moves)[0][:, 0] if unit is None else np.eye(len(b2))[unit]
    noise = np.outer(inner.T @ y, first), np.outer(on @ y, second)
    parts = [part for own in noise for part in (own[:, :-1], own[:, -1])]
    length = math.sqrt(sum(float((part**2).sum()) for part in parts)) or 1.0
    return [part / length for part in parts], np.linalg.svd(
        inner @ W1 if unit is None else y[None] @ inner @ W1
    )[2][0]


def with_noise(layers: Matrices, noise: Matrices, size: float) -> Matrices:
    return [part + size * own for part, own in zip(layers, noise, strict=True)]


def all_ands() -> CorrectedNetwork:
    """Three ANDs, all on: a layer in which every bound is nearly met."""
    make = CircuitBuilder()
    wires = [make.input(f"x{i}") for i in range(6)]
    for i in range(3):
        make.output(f"y{i}", make.and_(wires[2 * i], wires[2 * i + 1]))
    return corrected_network(make.circuit("three ANDs"), np.ones((1, 6)))


def random_noise(layers: Matrices, random: np.random.Generator) -> Matrices:
    """Of norm 1."""
    return [own - part for own, part in zip(noisy(layers, 1.0, random, spread=True), layers, strict=True)]
