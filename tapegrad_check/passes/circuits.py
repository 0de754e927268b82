"""Passes that end in a circuit or a learner: gates of functions, layers, and machines step by step as gates.

A configuration of a machine lies on wires as one flag for each state, one for each cell that a head may be
on, and the symbols of all cells in binary. Here one step is written down a second time, as formulas over
those wires:

    read      bit j under the head = OR over cells of (head flag AND bit j of the cell)
    rule      fires = AND of a flag for each symbol read AND the flag of its state
    state     OR of the rules that enter it, and itself where none of its own rules fires
    symbol    bit j of a cell, changed if the head is there and a rule fires that changes bit j
    head      here and no rule moves it, OR next to here and a rule fires that moves it here

If exactly one flag of each kind is set, so it is after the step, and the wires hold the machine's next
configuration as long as no head leaves the window. The saved circuit, followed gate by gate, must give these
very formulas.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.core.nodes import FALSE, TRUE, Likely, Nodes
from tapegrad_check.fields import whole
from tapegrad_check.folder import require
from tapegrad_check.graph import graph_in
from tapegrad_check.passes.step import Step
from tapegrad_check.sources import MOVES, Circuit, Function, GridMachine, Learner, Machine, Model, digest_of
from tapegrad_check.targets import relu
from tapegrad_check.targets.layers import wired

Cell = tuple[int, ...]
NODES_PER_GATE, NODES_AT_LEAST = 64, 1 << 17
"""Gates that reach no output are not saved, so what is followed may be larger than the circuit, within this
limit."""


def _gates(before: Model, step: Step) -> Model:
    """A function is saved as its circuit."""
    require(isinstance(before, Function), "only a function has gates")
    assert isinstance(before, Function)
    return before.circuit


def _in_the_net(before: Model, step: Step) -> Model:
    """Layers are the net's own arrays; its checker shows that they compute the circuit."""
    require(isinstance(before, Circuit), "only a circuit has layers")
    assert isinstance(before, Circuit)
    if step.number == len(step.folder.pass_names) - 1:
        _layers_of_the_net(before, step)
    return before


def _layers_of_the_net(circuit: Circuit, step: Step) -> None:
    """The sum and the options of the last pass speak of the layers that the net has."""
    net, graph = step.folder.config["net"], graph_in(step.folder)
    require(graph is not None, "the net has no layers")
    assert graph is not None
    wires = wired(graph)
    gates = relu.gates_of(net, step.folder.own, wires)
    names = {"inputs": list(circuit.inputs), "outputs": list(circuit.outputs)}
    same = step.sha256 == digest_of({"kind": "layered circuit", **names}, gates.circuit())
    require(same, "the layers are not those that the pass gave")
    depth = len(wires.bounds) - 2 if step.name == "identity layers" else None
    own_values = {"correction": net["correction"], "dtype": wires.dtype, "width": net["padded_width"]}
    for name, value in (own_values | {"depth": depth}).items():
        chosen = step.target_option(name, value)
        same = chosen == value or (name, chosen, value) == ("correction", None, "thirds")
        require(same, f"the option {name!r} is for another net")
    form = step.target_option("form", "paper")
    require(form in (None, "paper"), "the option 'form' is for another net")


def _unroll(before: Model, step: Step) -> Model:
    """The circuit that takes the tapes of a start configuration to the configuration after some steps."""
    after = step.saved()
    require(isinstance(after, Circuit), "a machine unrolled is a circuit")
    assert isinstance(before, Machine | GridMachine)
    assert isinstance(after, Circuit)
    code = Configurations(before, step.option("cells"), step.option("first", default=None), after.outputs)
    steps = whole(step.option("steps"), "the number of steps")
    names = code.names()
    symbols = names[len(names) - code.tapes * len(code.window) * code.bits :]
    require(after.inputs == tuple(symbols), "the inputs of the circuit are not the cells of the tapes")
    require(after.outputs == tuple(names), "the outputs of the circuit are not a configuration")
    nodes = Nodes(NODES_AT_LEAST + NODES_PER_GATE * (len(names) + len(after.kinds)))
    inputs = nodes.variables(len(symbols))
    wires = code.first_wires(inputs)
    seen: dict[tuple[int, ...], int] = {}
    done = 0
    while done < steps:
        wires = code.step(nodes, wires)
        done += 1
        flat = tuple(wires.flat())
        if flat in seen:  # from here on everything comes round again
            done += (steps - done) // (done - seen[flat]) * (done - seen[flat])
        in_proportion = len(seen) * len(flat) <= nodes.most
        require(in_proportion, "the number of steps is out of proportion to the size of the files")
        seen[flat] = done
    nodes.require_same(nodes.outputs(after, inputs), wires.flat(), "the circuit is not the machine unrolled")
    step.statements.append(
        f"the circuit is {steps:,} steps of the machine on {len(code.window):,} cells, formula by formula; "
        "a head that leaves them leaves no flag behind"
    )
    return after


def _memory(before: Model, step: Step) -> Model:
    """The learner whose memory is a configuration, and whose way to learn from a sample is one step."""
    after = step.saved()
    require(isinstance(after, Learner) and isinstance(before, Machine), "a machine does not become a learner")
    assert isinstance(before, Machine)
    assert isinstance(after, Learner)
    whole(step.option("steps"), "the number of samples", 0, 1 << 40)
    circuit = after.circuit
    code = Configurations(before, step.option("cells"), None, circuit.outputs[2:])
    names = tuple(code.names())
    require(circuit.inputs == (*names, "random", "guess"), "the learner's inputs are not a configuration")
    require(circuit.outputs == ("answer", "finished", *names), "the learner does not give a configuration")
    require(after.bits == 0 and not any(after.first), "the learner's samples or its first memory are others")
    nodes = Nodes(NODES_AT_LEAST + NODES_PER_GATE * (len(names) + len(circuit.kinds)))
    inputs = nodes.variables(len(circuit.inputs))
    wires = code.wires(inputs[: len(names)])
    running = nodes.any_of([fired for _, fired in code.firing(nodes, wires)])
    accepted = FALSE
    for state in before.accept:
        accepted = nodes.or_(accepted, wires.states[before.states.index(state)])
    guess = inputs[-1]
    answer = nodes.xor(accepted, nodes.and_(running, nodes.xor(guess, accepted)))
    wanted = [answer, running ^ 1, *code.step(nodes, wires).flat()]
    found, what = nodes.outputs(circuit, inputs), "the learner is not the machine"
    nodes.require_same(found, wanted, what, circuit.outputs, code.likely(wires))
    step.statements.append(
        f"the learner's memory is a configuration on {len(code.window):,} cells, each lesson is one step of "
        "the machine, formula by formula, and a halted machine has finished"
    )
    return after


PASSES: dict[str, Callable[[Model, Step], Model]] = {
    "gates": _gates,
    "layers": _in_the_net,
    "identity layers": _in_the_net,
    "unroll": _unroll,
    "configuration as memory": _memory,
}


@dataclass(frozen=True)
class Wires:
    """A configuration as literals: flags in the order of states and of cells, symbols bit by bit."""

    states: list[int]
    heads: list[list[int]]
    tapes: list[list[list[int]]]

    def flat(self) -> list[int]:
        """All of them, in the order of the names."""
        symbols = [bit for tape in self.tapes for symbol in tape for bit in symbol]
        return [*self.states, *(flag for head in self.heads for flag in head), *symbols]


@dataclass(frozen=True)
class _Firing:
    """A rule of either kind of machine, in numbers."""

    state: int
    read: tuple[int, ...]
    write: tuple[int, ...]
    moves: tuple[Cell, ...]
    next_state: int


class Configurations:
    """How configurations of a machine lie on wires, and how they step."""

    def __init__(self, machine: Machine | GridMachine, cells: Any, first: Any, names: Sequence[str]) -> None:
        require(isinstance(machine, Machine | GridMachine), "only a machine has configurations")
        self.states, self.symbols = len(machine.states), len(machine.alphabet)
        self.tapes = machine.tapes if isinstance(machine, Machine) else 1
        self.bits = max(1, (self.symbols - 1).bit_length())
        # Every cell has names, so a window that fits them is no larger than the file.
        self.window = _window(1 if isinstance(machine, Machine) else 2, cells, first, len(names))
        self.place = {cell: number for number, cell in enumerate(self.window)}
        wires = self.states + self.tapes * len(self.window) * (1 + self.bits)
        require(len(names) == wires, "the wires are not those of a configuration on so many cells")
        self.rules = _firings(machine)
        counts = [0] * self.states
        for rule in self.rules:
            counts[rule.state] += 1
        self.total = [count == self.symbols**self.tapes for count in counts]

    def names(self) -> list[str]:
        """States in order, then all head flags, then all symbols."""
        tapes, bits = range(self.tapes), range(self.bits)
        cells = [",".join(map(str, cell)) for cell in self.window]
        return [
            *(f"state[{i}]" for i in range(self.states)),
            *(f"head{tape}[{cell}]" for tape in tapes for cell in cells),
            *(f"tape{tape}[{cell}][{j}]" for tape in tapes for cell in cells for j in bits),
        ]

    def wires(self, literals: Sequence[int]) -> Wires:
        """A configuration on these literals, in the order of the names."""
        rest = iter(literals)
        cells = range(len(self.window))
        return Wires(
            [next(rest) for _ in range(self.states)],
            [[next(rest) for _ in cells] for _ in range(self.tapes)],
            [[[next(rest) for _ in range(self.bits)] for _ in cells] for _ in range(self.tapes)],
        )

    def first_wires(self, symbols: Sequence[int]) -> Wires:
        """The start state, every head at cell 0, and these symbols."""
        origin = self.place[(0,) * len(self.window[0])]
        states = [TRUE, *[FALSE] * (self.states - 1)]
        head = [TRUE if cell == origin else FALSE for cell in range(len(self.window))]
        return self.wires([*states, *head * self.tapes, *symbols])

    def likely(self, wires: Wires) -> Likely:
        """Draws configurations, in which every state meets every symbol, for a learner's memory that is one.
        Bits at random mostly have many heads, which read a symbol that there is not."""

        def draw(random: np.random.Generator, words: int) -> dict[int, NDArray[np.uint64]]:
            count, cases = 64 * words, self.states * self.symbols**self.tapes
            case = np.arange(count) if cases <= count else random.integers(0, 1 << 62, count)
            case, state = np.divmod(case, self.states)
            found = {literal >> 1: _packed(state == own) for own, literal in enumerate(wires.states)}
            for flags, cells in zip(wires.heads, wires.tapes, strict=True):
                case, read = np.divmod(case, self.symbols)
                head = random.integers(0, len(self.window), count)
                for cell, (flag, bits) in enumerate(zip(flags, cells, strict=True)):
                    symbol = np.where(head == cell, read, random.integers(0, self.symbols, count))
                    found[flag >> 1] = _packed(head == cell)
                    found |= {bit >> 1: _packed(symbol >> j & 1) for j, bit in enumerate(bits)}
            return found

        return draw

    def firing(self, nodes: Nodes, wires: Wires) -> list[tuple[_Firing, int]]:
        """Every rule that can fire, with the literal that says whether it does."""
        flags = [self._symbol_flags(nodes, wires, tape) for tape in range(self.tapes)]
        found = []
        for rule in self.rules:
            reads = nodes.all_of([flags[tape][symbol] for tape, symbol in enumerate(rule.read)])
            fired = nodes.and_(reads, wires.states[rule.state])
            if fired != FALSE:
                found.append((rule, fired))
        return found

    def _symbol_flags(self, nodes: Nodes, wires: Wires, tape: int) -> list[int]:
        """For each symbol whether it is under the head: the bits read, decoded from the highest down."""
        heads, cells = wires.heads[tape], wires.tapes[tape]
        possible = [cell for cell, flag in enumerate(heads) if flag != FALSE]
        flags = [TRUE]
        for j in reversed(range(self.bits)):
            bit = nodes.any_of([nodes.and_(heads[cell], cells[cell][j]) for cell in possible])
            flags = [nodes.and_(flag, side) for flag in flags for side in (bit ^ 1, bit)]
            flags = flags[: -(-self.symbols >> j)]
        return flags[: self.symbols]

    def step(self, nodes: Nodes, wires: Wires) -> Wires:
        """The configuration after one step; a halted one fires no rule and stays as it is."""
        fires = self.firing(nodes, wires)
        entering: list[list[int]] = [[] for _ in wires.states]
        leaving: list[list[int]] = [[] for _ in wires.states]
        for rule, fired in fires:
            entering[rule.next_state].append(fired)
            leaving[rule.state].append(fired)
        for state, flag in enumerate(wires.states):
            if not self.total[state]:  # else one of its rules fires
                entering[state].append(nodes.and_(flag, nodes.any_of(leaving[state]) ^ 1))
        after = [self._tape_after(nodes, wires, tape, fires) for tape in range(self.tapes)]
        states = [nodes.any_of(flags) for flags in entering]
        return Wires(states, [heads for heads, _ in after], [cells for _, cells in after])

    def _tape_after(
        self, nodes: Nodes, wires: Wires, tape: int, fires: list[tuple[_Firing, int]]
    ) -> tuple[list[int], list[list[int]]]:
        changing: list[list[int]] = [[] for _ in range(self.bits)]
        moving: dict[Cell, list[int]] = {}
        for rule, fired in fires:
            difference = rule.read[tape] ^ rule.write[tape]
            for j in range(self.bits):
                if difference >> j & 1:
                    changing[j].append(fired)
            if any(rule.moves[tape]):
                moving.setdefault(rule.moves[tape], []).append(fired)
        changes = [nodes.any_of(flags) for flags in changing]
        moves = {offset: nodes.any_of(flags) for offset, flags in moving.items()}
        stays = nodes.any_of(list(moves.values())) ^ 1
        heads = wires.heads[tape]
        heads_after = []
        for cell, head in zip(self.window, heads, strict=True):
            arriving = [nodes.and_(head, stays)]
            for offset, flag in moves.items():
                origin = self.place.get(tuple(c - o for c, o in zip(cell, offset, strict=True)))
                arriving.append(FALSE if origin is None else nodes.and_(flag, heads[origin]))
            heads_after.append(nodes.any_of([flag for flag in arriving if flag != FALSE]))
        cells_after = [
            [nodes.xor(bit, nodes.and_(head, change)) for bit, change in zip(symbol, changes, strict=True)]
            for head, symbol in zip(heads, wires.tapes[tape], strict=True)
        ]
        return heads_after, cells_after


def _packed(values: NDArray[Any]) -> NDArray[np.uint64]:
    """Bits, 64 to a word."""
    return np.packbits(values.astype(bool), bitorder="little").view(np.uint64)


def _window(dimensions: int, cells: Any, first: Any, most: int) -> list[Cell]:
    """The cells that are kept, of which cell 0 is one; by default it is in the middle."""
    lengths = [cells] * dimensions if type(cells) is int else cells
    require(isinstance(lengths, list) and len(lengths) == dimensions, "the window has another dimension")
    total = 1
    for length in lengths:
        total *= whole(length, "a side of the window", 1, most)
        require(total <= most, "the window has more cells than the circuit has wires")
    corner = [-(length // 2) for length in lengths] if first is None else first
    corner = [corner] * dimensions if type(corner) is int else corner
    require(isinstance(corner, list) and len(corner) == dimensions, "the window has another dimension")
    for start, length in zip(corner, lengths, strict=True):
        require(type(start) is int and start <= 0 < start + length, "cell 0 is not in the window")
    return list(product(*(range(start, start + n) for start, n in zip(corner, lengths, strict=True))))


def _firings(machine: Machine | GridMachine) -> list[_Firing]:
    state = {name: number for number, name in enumerate(machine.states)}
    code = {symbol: number for number, symbol in enumerate(machine.alphabet)}

    def codes(symbols: Sequence[str]) -> tuple[int, ...]:
        return tuple(code[symbol] for symbol in symbols)

    if isinstance(machine, GridMachine):
        return [
            _Firing(state[q], codes([read]), codes([rule.write]), (MOVES[rule.move],), state[rule.state])
            for (q, read), rule in machine.rules.items()
        ]
    return [
        _Firing(
            state[q], codes(read), codes(rule.write), tuple((move,) for move in rule.moves), state[rule.state]
        )
        for (q, read), rule in machine.rules.items()
    ]
