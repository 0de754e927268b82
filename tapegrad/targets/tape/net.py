"""The target `tape`: training runs the machine, and its tapes and heads are weights."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import BrokenNet, InputError, Refused
from tapegrad.machines.model import Configuration, TuringMachine
from tapegrad.networks.network import Network, Port
from tapegrad.targets.descent.loss import (
    LONE_FINAL_LOSS,
    LONE_INPUTS,
    LONE_LABELS,
    ExtendedNetwork,
    Numbers,
    Primary,
    SquaredError,
    Thresholds,
    Weights,
)
from tapegrad.targets.descent.net import MOST_EDGE_STEPS, Descent, DescentNet, with_rule
from tapegrad.targets.tape import fast
from tapegrad.targets.tape.build import Constants, Graph, build_graph, choose
from tapegrad.targets.tape.loss import TapeLoss
from tapegrad_check.folder import NETWORK

MOST_CELLS = 1 << 22


@dataclass(frozen=True, eq=False)
class TapeNet(DescentNet):
    """The extended network around the loss (21) of a machine; without data, around an empty primary network.
    Proposition 4.3: each gradient step after the first is a step of the machine, until the loss drops."""

    target: ClassVar[str] = "tape"
    engines: ClassVar[tuple[str, ...]] = ("reference", "fast")

    saves_network: ClassVar[bool] = True

    error: SquaredError
    arrays_for_fast: fast.FastArrays
    graph: Graph
    constants: Constants
    states: tuple[str, ...]
    symbols: tuple[str, ...]
    """The blank, which is -1 on the tape, and the other symbol, +1, if the machine has one."""
    cells: int
    read_only: int = 0
    """How many of the tapes, the first ones, are filled by the data and are no weights."""

    @property
    def tapes(self) -> int:
        """Number of tapes."""
        return self.graph.down.shape[1]

    @property
    def first_cell(self) -> int:
        """The machine's cell that row 0 of T and H stands for; its cell 0 is in the middle."""
        return -(self.cells // 2)

    @property
    def shapes(self) -> Weights[tuple[int, ...]]:
        tapes, written = (self.cells, self.tapes), (self.cells, self.tapes - self.read_only)
        return Weights((len(self.graph.down),), written, tapes, self.error.y.shape)

    def start(self, state: Configuration) -> Descent:
        """s, T and H as the configuration says, z = 0: the labels are not known yet. Read-only tapes hold the
        data of the extended network, and no others."""
        T = np.full((self.cells, self.tapes), -1.0)
        H = np.zeros((self.cells, self.tapes))
        for tape, (content, head) in enumerate(zip(state.tapes, state.heads, strict=True)):
            for cell, symbol in content.items():
                T[self._row(cell, tape), tape] = self._sign(symbol)
            H[self._row(head, tape), tape] = 1.0
        code = sum(1 << tape for tape in range(self.tapes) if T[H[:, tape].argmax(), tape] > 0)
        s = np.zeros(len(self.graph.down))
        s[self._number(state.state) * 2**self.tapes + code] = 1.0
        weights = Weights(s, T[:, self.read_only :], H, self.error.y)
        if self.read_only and not np.array_equal(self.all_tapes(Descent(weights, 1)), T):
            raise InputError(
                "the first tapes hold other data than the extended network has",
                advice="Start where its training does, as in `training.compiled.start(training.first)`.",
            )
        return Descent(weights._replace(z=np.zeros_like(self.error.y)), 0)

    def decode(self, carry: Descent) -> Configuration | None:
        """State, tapes and heads, read off s, T and H; None before the labels are read."""
        if carry.steps == 0:
            return None
        vertex, T, heads = self.one_hot(carry)
        tapes = tuple(
            {int(row) + self.first_cell: self.symbols[1] for row in np.flatnonzero(T[:, tape] > 0)}
            for tape in range(self.tapes)
        )
        where = tuple(int(head) + self.first_cell for head in heads)
        return Configuration(self.states[vertex // 2**self.tapes], tapes, where)

    def one_hot(self, carry: Descent) -> tuple[int, NDArray[np.float64], NDArray[np.int64]]:
        """The vertex that s stands at, every tape (read-only ones first) and the row of every head."""
        weights = carry.weights
        return int(np.argmax(weights.s)), self.all_tapes(carry), np.argmax(weights.H, axis=0)

    def all_tapes(self, carry: Descent) -> NDArray[np.float64]:
        """The read-only tapes, as the data fill them, and the weights T beside them."""
        written = np.asarray(carry.weights.T)
        if not self.read_only:
            return written
        return np.concatenate([self.outputs(carry)["data"], written], axis=1)

    def deviation(self, carry: Descent) -> float:
        """How far s and H are from 0 and 1, and T from -1 and +1, at most."""
        s, T, H, _ = (np.asarray(array) for array in carry.weights)
        distances = (np.abs(s - np.round(s)), np.abs(np.abs(T) - 1), np.abs(H - np.round(H)))
        return float(np.max([distance.max(initial=0.0) for distance in distances]))  # NaN stays

    def engine_for(self, carry: Descent, steps: int) -> str:
        """`fast` where the other would take hours, looking at every edge at every step."""
        return "fast" if steps * len(self.graph.edge_from) > MOST_EDGE_STEPS else "reference"

    def done(self, carry: Descent) -> bool:
        """Criterion (4). Where s and H are one-hot and the labels are read, the loss (21) is that of a single
        vertex, and need not be added up over all edges."""
        if carry.steps == 0:
            return False
        one_hot = self.deviation(carry) == 0 and np.array_equal(carry.weights.z, self.error.y)
        if self.read_only or not one_hot:
            return super().done(carry)
        return self._by_vertex(carry, 0)[1][2] == fast.HALTED

    def _by_vertex(self, carry: Descent, steps: int) -> tuple[NDArray[np.float64], Any, NDArray[np.int64]]:
        """So many steps on one-hot s and H: the tapes, what the loop gives back, and the heads."""
        vertex, T, heads = self.one_hot(carry)
        T = np.where(T > 0, 1.0, -1.0)
        c = self.constants
        bounds = float(c.b), float(c.c), float(c.low)
        return T, fast.run(self.arrays_for_fast, vertex, T, heads, self.read_only, *bounds, steps), heads

    def advance_fast(self, carry: Descent, steps: int) -> Descent:
        """Reads the labels by a step of the reference engine, then runs on one-hot s and H."""
        if carry.steps == 0:
            carry, steps = self.step(carry), steps - 1
        T, (vertex, taken, status, tape), heads = self._by_vertex(carry, steps)
        s, H = np.zeros(len(self.graph.down)), np.zeros_like(T)
        s[vertex] = 1.0
        H[heads, np.arange(self.tapes)] = 1.0
        after = Descent(Weights(s, T[:, self.read_only :], H, carry.weights.z), carry.steps + int(taken))
        if status == fast.LEFT_TAPE:
            raise self.left_the_tape(after, tape)
        return after

    def fast_gradient(self, carry: Descent) -> Weights:
        """The gradient as the fast engine has it, to be compared with `gradient`."""
        vertex, T, heads = self.one_hot(carry)
        parts = fast.gradient(self.arrays_for_fast, vertex, T, heads, self.read_only, float(self.constants.b))
        return Weights(*parts, np.zeros_like(self.error.y))

    def fast_loss(self, carry: Descent) -> float:
        """The loss as the fast engine has it, which need not look at every edge; to be compared with `loss`.
        Where that engine has none (before the labels are read, at the end of a tape, around a primary
        network), that of the reference."""
        vertex, T, heads = self.one_hot(carry)
        places = heads + self.graph.moves[vertex]
        inside = ((places >= 0) & (places < len(T))).all()
        if carry.steps == 0 or not inside or self.error.network.primary is not None:
            return self.loss(carry)
        own = fast.loss(
            self.arrays_for_fast, vertex, T, heads, float(self.constants.b), float(self.constants.c)
        )
        return LONE_FINAL_LOSS if own <= self.stop else own + LONE_FINAL_LOSS

    def lost(self, carry: Descent) -> int | None:
        """A tape without a head: its indicator was pushed over the end."""
        gone = np.asarray(carry.weights.H).sum(axis=0) < 1 / 2
        return int(np.argmax(gone)) if gone.any() else None

    def last_place(self, carry: Descent, tape: int) -> str:
        """Where the head of this tape stands, and how far the tape goes."""
        cell = int(np.argmax(np.asarray(carry.weights.H)[:, tape])) + self.first_cell
        last = self.first_cell + self.cells - 1
        return f"from cell {cell:,}; the tape has cells {self.first_cell:,} to {last:,}"

    def more_room(self) -> str:
        """Twice as much: how much it takes is not known to the net."""
        return f"Give the net more cells, as in cells={2 * self.cells}."

    def units(self) -> Iterator[str]:
        """`s/5`: a vertex; `edge/7`: an edge; `T/1/-3`, `H/1/-3`: tape 1, cell -3; `z/0`: a label."""
        yield from (f"s/{vertex}" for vertex in range(len(self.graph.down)))
        yield from (f"edge/{edge}" for edge in range(len(self.graph.edge_from)))
        for tape in range(self.tapes):
            for cell in range(self.first_cell, self.first_cell + self.cells):
                if tape >= self.read_only:
                    yield f"T/{tape}/{cell}"
                yield f"H/{tape}/{cell}"
        yield from (f"z/{label}" for label in range(np.size(self.error.y)))

    def explain(self, unit: str) -> str:
        """What a vertex, an edge or a weight stands for."""
        kind, *numbers = unit.split("/")
        try:
            places = [int(number) for number in numbers]
            if kind == "s" and len(places) == 1 and 0 <= places[0] < len(self.graph.down):
                return _vertex(self, places[0])
            if kind == "edge" and len(places) == 1 and 0 <= places[0] < len(self.graph.edge_from):
                return _edge(self, places[0])
            if kind in ("T", "H") and _on_tape(self, *places):
                return _cell(self, kind, *places)
            if kind == "z" and 0 <= places[0] < np.size(self.error.y):
                return (
                    f"Copy of label number {places[0]}: 0 before the first gradient step, the label after it "
                    "(section 5.2). The machine and f_perp see it through a stop-gradient."
                )
        except (ValueError, TypeError, IndexError):
            pass
        raise InputError(
            f"the net has no unit {unit!r}", advice="Units are s/5, edge/7, T/0/-3, H/0/-3 or z/0."
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """None: the network has all that the net knows of the machine."""
        return {}

    def config(self) -> dict[str, Any]:
        """Names of states and symbols."""
        if self.read_only:
            raise Refused(
                "an extended network is saved with its data and with what training came to",
                advice="Use `save` of tapegrad.targets.extended.",
            )
        return self.names()

    def names(self) -> dict[str, list[str]]:
        """Of states and symbols."""
        return {"states": list(self.states), "symbols": list(self.symbols)}

    @classmethod
    def from_saved(
        cls,
        config: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        network: Network | None = None,
    ) -> Self:
        """The net from its network and its names."""
        network, constants, cells = read(network)
        names = tuple(config["states"]), tuple(config["symbols"])
        return cls.of(TapeLoss.graph_of(network), constants, *names, cells).read(network)

    @classmethod
    def of(
        cls,
        graph: Graph,
        constants: Constants,
        states: tuple[str, ...],
        symbols: tuple[str, ...],
        cells: int,
        *,
        primary: Primary | None = None,
        x: Numbers = LONE_INPUTS,
        y: Numbers = LONE_LABELS,
        epsilon: float = 1.0,
        read_only: int = 0,
    ) -> Self:
        """The net of a graph, around a primary network and its data; without, around an empty one. `epsilon`
        is a lower bound of |y|^2."""
        bounds = Thresholds(float(epsilon), float(constants.low), float(constants.high))
        error = SquaredError(ExtendedNetwork(TapeLoss.of(graph, constants, cells), primary, bounds), x, y)
        return cls(error, fast.prepare(**vars(graph)), graph, constants, states, symbols, cells, read_only)

    def certificate(self) -> dict[str, Any]:
        """The claims that the checker derives again from the arrays. `lead`: by how much, at least, the
        slope towards the intended successor is steeper than every other. Among the successors 4 b, from
        the symbols that stay as they are; towards all else 2 b^3 - 2 d b, the third of (18)'s margins."""
        b, tapes = self.constants.b, self.tapes
        return {
            "vertices": len(self.graph.down),
            "edges": len(self.graph.edge_from),
            "lead": min(4 * b, 2 * b**3 - 2 * tapes * b),
            "running_at_least": self.constants.c,
            "halted_at_most": self.constants.halted_at_most,
            "final_loss": LONE_FINAL_LOSS,
        }

    def _row(self, cell: int, tape: int) -> int:
        row = cell - self.first_cell
        if not 0 <= row < self.cells:
            last = self.first_cell + self.cells - 1
            raise InputError(
                f"cell {cell:,} of tape {tape + 1} is in use, but the net has cells "
                f"{self.first_cell:,} to {last:,} only",
                advice=self.more_room(),
            )
        return row

    def _sign(self, symbol: str) -> float:
        if symbol not in self.symbols:
            raise InputError(f"the net knows no symbol {symbol!r}", advice=f"It knows {self.symbols}.")
        return 1.0 if symbol == self.symbols[1] else -1.0

    def _number(self, state: str) -> int:
        if state not in self.states:
            raise InputError(f"the net knows no state {state!r}")
        return self.states.index(state)


def read(network: Network | None) -> tuple[Network, Constants, int]:
    """A network that was saved, the constants of its loss, and the number of its cells."""
    network, _, low = with_rule(network)
    sizes = [size for size in network.inputs.get("H", Port((), "")).shape if isinstance(size, int)]
    if len(sizes) != 2:
        raise BrokenNet("the network has no heads on tapes of so many cells", where=NETWORK)
    cells, tapes = sizes
    b = np.sqrt(network.constant("4 b^2") / 4)
    return network, Constants.of(tapes, float(b), float(network.constant("c")), low), sensible(cells)


def sensible(cells: int) -> int:
    """A number of cells; a run takes memory for each."""
    if type(cells) is not int or not 2 <= cells <= MOST_CELLS:
        raise Refused(
            f"a tape of {cells!r} cells cannot be built", advice=f"Give a number from 2 to {MOST_CELLS:,}."
        )
    return cells


def build(machine: TuringMachine, cells: int = 1024) -> TapeNet:
    """The net of a binary, stay-free machine without two-cycles, on tapes of this many cells."""
    constants = choose(machine.tapes, LONE_FINAL_LOSS)
    graph = build_graph(machine, constants)
    return TapeNet.of(graph, constants, machine.states, machine.alphabet, cells)


# The net in words: what each weight and each unit stands for.


_MOVE = {-1: "left", 0: "nowhere", 1: "right"}


def _on_tape(net: "TapeNet", tape: int, cell: int) -> bool:
    inside = net.first_cell <= cell < net.first_cell + net.cells
    return 0 <= tape < net.tapes and inside


def state_of(net: "TapeNet", vertex: int) -> str:
    """The control state of a vertex."""
    return net.states[vertex // 2**net.tapes]


def symbols(net: "TapeNet", signs: NDArray[np.int8]) -> str:
    """-1 and +1 as the machine's symbols."""
    return " ".join(net.symbols[-1] if sign > 0 else net.symbols[0] for sign in signs)


def _named(net: "TapeNet", vertex: int) -> str:
    return f"state {state_of(net, vertex)!r} reading {symbols(net, net.graph.down[vertex])}"


def _vertex(net: "TapeNet", vertex: int) -> str:
    named = _named(net, vertex)
    weight = net.graph.vertex_weight[vertex]
    if weight < 0:
        return (
            f"Vertex of {named}, which halts: its weight {weight:g} = -b^3 lets the loss drop under B_stop."
        )
    write = symbols(net, net.graph.written[vertex])
    moves = ", ".join(_MOVE[int(move)] for move in net.graph.moves[vertex])
    return f"Vertex of {named}: writes {write} (T_next), moves {moves} (S). Loss (21), section 4.4."


def _edge(net: "TapeNet", edge: int) -> str:
    source, target = int(net.graph.edge_from[edge]), int(net.graph.edge_to[edge])
    return (
        f"Edge from {_named(net, source)} to {_named(net, target)}, weight {net.graph.edge_weight[edge]:g} "
        "as in (17): a slide along which s moves when the machine takes this step."
    )


def _cell(net: "TapeNet", kind: str, tape: int, cell: int) -> str:
    if kind == "T":
        return (
            f"Tape {tape + 1}, cell {cell}: +1 holds {net.symbols[-1]!r}, -1 holds {net.symbols[0]!r}. "
            "Written by the first least-squares term of (21), read by the second."
        )
    return f"1 if the head of tape {tape + 1} is at cell {cell}, else 0; moved by the last term of (21)."
