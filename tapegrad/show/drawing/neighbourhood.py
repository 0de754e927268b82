"""A machine with many states, around the one that it is in: where it has come from, where its rules lead in
one step and in two, and all its states folded into a strip. The places are fixed; what stands in them
changes with the step, so that a drawing of thirty thousand states is as large as one of thirty."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tapegrad.machines.model import Rule, TuringMachine
from tapegrad.show.drawing.scene import HERE, NEXT, Arrangement, Node, Place, cut
from tapegrad.show.drawing.states import FONT, LONGEST_NAME, SMALL_FONT, box_size, dots_in, rules_label

TAKEN, OTHER = 0, 1
COLOURS = ("the way that the machine takes", "where other rules lead")
LEGEND = (
    ("here", "the state the machine is in"),
    ("next", "the one that it enters next"),
    ("plus", "in the strip: states that it has been in"),
)
GAP, BETWEEN_ROWS, BOW = 10.0, 24.0, 20.0
"""Room beside boxes, between rows of them, and for arrows that are bowed over a row."""
LOW, HIGH = 24.0, 40.0
"""Heights of a box with a name, and of one with a rule or dots below it."""
CELL = 12.0
FAINT = 0.12

Lit = tuple[int, float, int] | tuple[int, float, int, str]
Arc = tuple[int, int, float, int]


@dataclass(frozen=True)
class Room:
    """How many places there are: for states before, for those that rules lead to, for those after them, for
    the weights that mean the state, and for cells of the strip."""

    before: int = 3
    after: int = 4
    beyond: int = 8
    dots: int = 0
    strip: int = 60


@dataclass
class Neighbourhood:
    """Nodes: states before, the current one, those after, their rules, those beyond, dots, cells."""

    machine: TuringMachine
    room: Room
    sizes: Sequence[float]
    """A width for each arrangement."""
    trail: list[str] = field(default_factory=list)
    """States that the machine was in, the last ones."""
    visited: dict[int, set[str]] = field(default_factory=dict)
    """By their cell of the strip."""

    def __post_init__(self) -> None:
        machine = self.machine
        self.ways: dict[str, dict[str, list[tuple[tuple[str, ...], Rule]]]] = {}
        for (state, read), rule in machine.rules.items():
            self.ways.setdefault(state, {}).setdefault(rule.state, []).append((read, rule))
        self.number = {state: place for place, state in enumerate(machine.states)}
        room = self.room
        self.cells = min(room.strip, len(machine.states))
        self.first = {"before": 0, "here": room.before}
        self.first["after"] = room.before + 1
        self.first["rules"] = self.first["after"] + room.after
        self.first["beyond"] = self.first["rules"] + room.after
        self.first["dots"] = self.first["beyond"] + room.beyond
        self.first["strip"] = self.first["dots"] + room.dots
        self.nodes = [
            *(Node("", "A state that the machine was in before.", "slot") for _ in range(room.before)),
            Node("", "The state that the machine is in.", "state" if room.dots else "slot"),
            *(Node("", "A state that a rule leads to.", "choice") for _ in range(room.after)),
            *(Node("", "", "text") for _ in range(room.after)),
            *(Node("", "A state that two rules in a row lead to.", "slot") for _ in range(room.beyond)),
            *(Node("", "A weight that means this state, and what is read.", "dot") for _ in range(room.dots)),
            *(Node("", self._range(cell), "cell") for cell in range(self.cells)),
        ]
        self.arrangements = [self._arranged(width) for width in self.sizes]

    @property
    def note(self) -> str:
        """What is drawn of how many."""
        count = len(self.machine.states)
        each = -(-count // self.cells) if self.cells else 0
        folded = f", and a strip with all of them, up to {each:,} in a cell" if each > 1 else ""
        return f"The machine has {count:,} states: those around the current one are drawn{folded}."

    def lit(self, state: str | None, rule: Rule | None) -> tuple[list[Lit], list[Arc]]:
        """Nodes and arrows of a moment; without a state, which is so between two steps, those of the state
        before."""
        came = self.trail
        if state is not None and (not came or came[-1] != state):
            self.trail = came = [*came, state][-self.room.before - 1 :]
        if not came:
            return [], []
        here, nodes = came[-1], list[Lit]()
        arcs: list[Arc] = []
        self._trail(came[:-1], here, nodes, arcs)
        nodes.append((self.first["here"], 0.0, HERE, cut(here, LONGEST_NAME)))
        ways = self.ways.get(here, {})
        taken = None if rule is None else rule.state
        after = sorted(ways, key=lambda other: other != taken)
        shown = after if len(after) <= self.room.after else after[: self.room.after - 1]
        for place, other in enumerate(shown):
            node, mark = self.first["after"] + place, NEXT if other == taken else 0
            nodes.append((node, 0.0, mark, cut(other, LONGEST_NAME)))
            nodes.append((self.first["rules"] + place, 0.0, HERE if mark else 0, _said(ways[other], rule)))
            way = TAKEN if other == taken else OTHER
            arcs.append((self.first["here"], node, 1.0 if mark else 0.4, way))
        if len(after) > len(shown):
            rest = f"{len(after) - len(shown):,} more"
            nodes.append((self.first["after"] + self.room.after - 1, 0.0, 0, rest))
        self._beyond(shown, nodes, arcs)
        self._strip(here, nodes)
        return nodes, arcs

    def _trail(self, before: Sequence[str], here: str, nodes: list[Lit], arcs: list[Arc]) -> None:
        """States before, the last one beside the current; an arrow where a rule leads from one to the next,
        for frames may be far apart."""
        first = self.first["here"] - len(before)
        for node, (state, after) in enumerate(pairwise([*before, here]), first):
            nodes.append((node, 0.0, 0, cut(state, LONGEST_NAME)))
            if after in self.ways.get(state, {}):
                arcs.append((node, node + 1, 0.5, TAKEN))

    def _beyond(self, after: Sequence[str], nodes: list[Lit], arcs: list[Arc]) -> None:
        """States two steps away, each once."""
        found: dict[str, list[int]] = {}
        for place, state in enumerate(after):
            for other in self.ways.get(state, {}):
                found.setdefault(other, []).append(self.first["after"] + place)
        most = self.room.beyond
        shown = list(found) if len(found) <= most else list(found)[: max(0, most - 1)]
        for place, state in enumerate(shown):
            nodes.append((self.first["beyond"] + place, 0.0, 0, cut(state, LONGEST_NAME)))
            arcs += [(own, self.first["beyond"] + place, FAINT, OTHER) for own in found[state]]
        if most and len(found) > len(shown):
            nodes.append((self.first["beyond"] + most - 1, 0.0, 0, f"{len(found) - len(shown):,} more"))

    def _strip(self, here: str, nodes: list[Lit]) -> None:
        if not self.cells:
            return
        count = len(self.machine.states)
        own = self.number[here] * self.cells // count
        self.visited.setdefault(own, set()).add(here)
        for cell, states in self.visited.items():
            size = self._bounds(cell)[1] - self._bounds(cell)[0]
            share = 0.35 + 0.65 * len(states) / size  # a single one among many is seen as well
            nodes.append((self.first["strip"] + cell, share, HERE if cell == own else 0))

    def _bounds(self, cell: int) -> tuple[int, int]:
        """The states of a cell: those with number * cells // count == cell."""
        count = len(self.machine.states)
        return -(-cell * count // self.cells), -(-(cell + 1) * count // self.cells)

    def _range(self, cell: int) -> str:
        first, end = self._bounds(cell)
        states = self.machine.states
        if end - first == 1:
            return f"State {states[first]}."
        return f"{end - first:,} states, from {states[first]} to {states[end - 1]}."

    # Places: rows of boxes, centred, one below the other.

    def _arranged(self, width: float) -> Arrangement:
        font = FONT if width > 400 else SMALL_FONT
        longest = "m" * min(LONGEST_NAME, max(6, *map(len, self.machine.states)))
        wide, high = box_size(longest, self.room.dots, font)
        wide = min(wide, width - 4)
        room, middle = self.room, width / 2
        # The last state before stands over the current one, the others beside it or, if narrow, above it.
        beside = width / 2 >= (room.before - 0.5) * (wide + GAP)
        down = 0.0 if beside else LOW + BETWEEN_ROWS
        left = wide + GAP if beside else 0.0
        back = [room.before - 1 - place for place in range(room.before)]
        top = BOW + LOW / 2 + (0.0 if beside else down * (room.before - 1))
        before = [(middle - left * far, top - down * far, wide, LOW) for far in back]
        y = top + LOW / 2 + BETWEEN_ROWS
        here = [(middle, y + high / 2, wide, high)]
        dots = dots_in(middle, y + high - 6, room.dots)
        y += high + BETWEEN_ROWS
        after, y = _rows(room.after, y, wide, HIGH, width)
        rules = [(x, at + HIGH / 4, wide - 6, font) for x, at, _, _ in after]
        beyond, y = _rows(room.beyond, y, wide, LOW, width)
        per = max(1, min(self.cells, int((width - 8) // CELL)))
        left = (width - per * CELL) / 2
        strip = [
            (left + CELL * (cell % per + 0.5), y + CELL * (cell // per + 0.5), CELL - 2, CELL - 2)
            for cell in range(self.cells)
        ]
        height = y + CELL * -(-self.cells // per) + 4
        return Arrangement(width, height, font, [*before, *here, *after, *rules, *beyond, *dots, *strip])


def _rows(count: int, y: float, wide: float, high: float, width: float) -> tuple[list[Place], float]:
    """Boxes in as many rows as they need, and where the last row ends. In each row they are taken from the
    middle outwards, so that few of them stand in the middle."""
    each = max(1, int((width + GAP) // (wide + GAP)))
    rows = max(1, -(-count // each))
    per = -(-count // rows)
    places: list[Place] = []
    for start in range(0, count, max(1, per)):
        own = min(per, count - start)
        spots = sorted(range(own), key=lambda spot: (abs(spot - (own - 1) / 2), spot))
        left = (width - own * wide - (own - 1) * GAP) / 2 + wide / 2
        places += [(left + (wide + GAP) * spot, y + high / 2, wide, high) for spot in spots]
        y += high + BETWEEN_ROWS
    return places, y


def _said(rules: Sequence[tuple[tuple[str, ...], Rule]], taken: Rule | None) -> str:
    """The rule that is taken, or else the only one, or how many there are."""
    chosen = [(read, rule) for read, rule in rules if rule is taken] or list(rules)
    return rules_label(chosen[:1]) if len(chosen) == 1 or taken is chosen[0][1] else f"{len(rules)} rules"
