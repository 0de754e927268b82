"""The diagram of a machine's states: a box for each state, an arrow for each way from one to another, and, in
the boxes, dots for the weights of the network that mean this state."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tapegrad._compile import Compiled
from tapegrad.machines.kind import rule_words
from tapegrad.machines.model import Configuration, Rule, TuringMachine
from tapegrad.show.drawing.scene import FIELD, HERE, Arrangement, Edge, Node, Place, cut, text_width
from tapegrad.source import Rewriting

WIDE, TALL = (780.0, 500.0), (370.0, 430.0)
FONT, SMALL_FONT = 13.0, 12.0
MOST_BOXES = 20
"""States that are drawn all at once; of a machine with more there is a `Neighbourhood`."""
MOST_LINES, LONGEST_LINE, LONGEST_NAME = 3, 14, 16
DOT = 11.0
"""Room for a dot in a box."""
BETWEEN = "in between"
"""The box of weights that mean no state of the machine, but a step on the way to one."""
_LETTERS = {-1: "L", 0: "S", 1: "R"}


Lit = tuple[int, float, int]
"""A node or an edge, its value, its mark."""


def drawn_machine(compiled: Compiled) -> tuple[TuringMachine, Sequence[Rewriting]]:
    """The machine to draw, the first on the way from the source to a net of machines, and the passes behind
    it."""
    sources = [compiled.source, *(rewriting.after for rewriting in compiled.passes)]
    machines = ((n, source) for n, source in enumerate(sources) if isinstance(source, TuringMachine))
    number, machine = next(machines)
    return machine, compiled.passes[number:]


def state_decoded(state: Configuration | None, passes: Sequence[Rewriting]) -> Configuration | None:
    """A configuration of the lowered machine as one of the drawn machine; None between two of its steps."""
    for rewriting in reversed(passes):
        state = None if state is None else rewriting.decode(state)
    return state


def state_meant(state: str, passes: Sequence[Rewriting], tapes: int) -> str | None:
    """The state of the drawn machine that one of the lowered machine stands for, whatever the tapes hold."""
    found = state_decoded(Configuration(state, ({},) * tapes, (0,) * tapes), passes)
    return None if found is None else found.state


@dataclass(frozen=True)
class StateDiagram:
    """Nodes are the boxes of states, in order, then the dots in them; edges are the ways between."""

    machine: TuringMachine
    nodes: list[Node]
    edges: list[Edge]
    arrangements: list[Arrangement]
    box: Mapping[str, int]
    way: Mapping[tuple[str, str], int]

    def lit(self, state: str, taken: Rule | None) -> tuple[list[Lit], list[Lit]]:
        """Nodes and edges of a moment: the state that the machine is in, and the way that it takes next."""
        nodes = [(self.box[state], 0.0, HERE)] if state in self.box else []
        if taken is None:
            return nodes, []
        if taken.state != state:
            nodes.append((self.box[taken.state], 0.0, FIELD))
        return nodes, [(self.way[state, taken.state], 1.0, HERE)]


def state_diagram(
    machine: TuringMachine,
    dots: Mapping[str, Sequence[Node]],
    sizes: Sequence[tuple[float, float]] = (WIDE, TALL),
) -> StateDiagram:
    """The diagram, with these dots in the boxes, and an arrangement for each size. Dots of `BETWEEN` get a
    box of their own."""
    states = [*machine.states, *([BETWEEN] if dots.get(BETWEEN) else [])]
    ways: dict[tuple[str, str], list[tuple[tuple[str, ...], Rule]]] = {}
    for (state, read), rule in machine.rules.items():
        ways.setdefault((state, rule.state), []).append((read, rule))
    edges = [
        Edge(rules_label(rules), _explained(state, rules), arrow=True) for (state, _), rules in ways.items()
    ]
    shape = "state" if dots else "box"
    boxes = [Node(cut(state, LONGEST_NAME), _role(machine, state), shape) for state in states]
    number = {state: place for place, state in enumerate(states)}
    ends = [(number[a], number[b]) for a, b in ways]
    within = [dots.get(state, ()) for state in states]
    arrangements = [_arranged(within, boxes, ends, edges, width, height) for width, height in sizes]
    way = {ends: place for place, ends in enumerate(ways)}
    nodes = [*boxes, *(dot for own in within for dot in own)]
    return StateDiagram(machine, nodes, edges, arrangements, number, way)


def _arranged(
    dots: Sequence[Sequence[Node]],
    boxes: Sequence[Node],
    ends: Sequence[tuple[int, int]],
    edges: Sequence[Edge],
    width: float,
    height: float,
) -> Arrangement:
    font = FONT if width > TALL[0] else SMALL_FONT
    sizes = [box_size(node.text, len(own), font) for node, own in zip(boxes, dots, strict=True)]
    laid = on_ellipse(sizes, ends, [edge.text for edge in edges], width, height, font - 1)
    places = [*laid.places]
    for (x, y, _, h), own in zip(laid.places, dots, strict=True):
        places += dots_in(x, y + h / 2 - 6, len(own))
    return Arrangement(laid.width, laid.height, font, places, laid.paths, laid.labels)


def _columns(dots: int) -> int:
    return max(1, min(dots, 6 if dots <= 24 else 12))


def box_size(text: str, dots: int, font: float) -> tuple[float, float]:
    """Width and height of a box with a name, and dots below it."""
    rows = -(-dots // _columns(dots))
    wide = max(text_width(text, font) + 18, DOT * _columns(dots) + 14, 34)
    return wide, font + 14 + (DOT * rows + 2 if dots else 0)


def dots_in(x: float, bottom: float, dots: int) -> list[Place]:
    """Places of dots in rows, the last of them at the bottom of a box."""
    columns = _columns(dots)
    rows = -(-dots // columns)
    return [
        (
            x + (place % columns - (min(columns, dots) - 1) / 2) * DOT,
            bottom - (rows - place // columns - 0.5) * DOT,
            7.0,
            7.0,
        )
        for place in range(dots)
    ]


def rules_label(rules: Sequence[tuple[tuple[str, ...], Rule]]) -> str:
    """Lines such as `0→1 R`; symbols that stay as they are share one, as `a b R`."""
    kept: dict[str, list[str]] = {}
    lines = []
    for read, rule in rules:
        moves, symbols = "".join(_LETTERS[move] for move in rule.moves), "".join(read)
        if rule.write == read:
            kept.setdefault(moves, []).append(symbols)
        else:
            lines.append(f"{symbols}→{''.join(rule.write)} {moves}")
    lines += [f"{' '.join(symbols)} {moves}" for moves, symbols in kept.items()]
    shown = (
        lines
        if len(lines) <= MOST_LINES
        else [*lines[: MOST_LINES - 1], f"and {len(lines) - MOST_LINES + 1} more"]
    )
    return "\n".join(cut(line, LONGEST_LINE) for line in shown)


def _explained(state: str, rules: Sequence[tuple[tuple[str, ...], Rule]]) -> str:
    said = [f"reading {' '.join(read)}: {rule_words(rule)}" for read, rule in rules[:6]]
    more = f"; and {len(rules) - 6} more" if len(rules) > 6 else ""
    return f"In state {state}, {'; '.join(said)}{more}."


def _role(machine: TuringMachine, state: str) -> str:
    if state == BETWEEN:
        return "Weights that mean a step on the way from one state of the machine to the next."
    said = f"State {state} of the machine"
    if state == machine.start_state:
        return f"{said}, in which it starts."
    if state in machine.accept or state in machine.reject:
        return f"{said}, in which it {'accepts' if state in machine.accept else 'rejects'}."
    if not any(own == state for own, _ in machine.rules):
        return f"{said}, in which it halts."
    return f"{said}."


# Arranging the diagram: states at equal angles on an ellipse, edges bent, loops outwards, labels where there
# is room for them.


LOOP, SIDE = 46.0, 12.0
"""Room above and below the ellipse, for the loop of a state that leads to itself, and beside it."""
GAP = 14.0
"""Room between two states."""

Box = tuple[float, float, float, float]


def on_ellipse(
    sizes: Sequence[tuple[float, float]],
    edges: Sequence[tuple[int, int]],
    labels: Sequence[str],
    width: float,
    height: float,
    font: float,
) -> Arrangement:
    """States of these sizes in a box of these proportions, which grows until none covers another; a label may
    have several lines."""
    places = _apart(sizes, width, height)
    while places is None:
        width, height = 1.08 * width, 1.08 * height
        places = _apart(sizes, width, height)
    both = set(edges)
    middle = (width / 2, height / 2)
    paths = [
        _loop(places[a], middle) if a == b else _bent(places[a], places[b], (b, a) in both) for a, b in edges
    ]
    taken: list[Box] = [(x, y, w + 4, h + 4) for x, y, w, h in places]
    found = []
    for path, label in zip(paths, labels, strict=True):
        lines = label.split("\n")
        w, h = max(text_width(line, font) for line in lines), 1.15 * font * len(lines)
        spot = _free(path, w, h, taken, (width, height))
        taken.append((*spot, w, h))
        found.append(spot)
    return Arrangement(width, height, font, places, paths, found)


def _apart(sizes: Sequence[tuple[float, float]], width: float, height: float) -> list[Place] | None:
    """Places at equal angles, or None if two of them overlap."""
    across = (width - max(w for w, _ in sizes)) / 2 - SIDE
    down = (height - max(h for _, h in sizes)) / 2 - LOOP
    if len(sizes) == 1:
        across = down = 0.0
    places = []
    for number, (w, h) in enumerate(sizes):
        angle = 2 * math.pi * number / len(sizes) - math.pi / 2
        places.append((width / 2 + across * math.cos(angle), height / 2 + down * math.sin(angle), w, h))
    pairs = ((a, b) for number, a in enumerate(places) for b in places[:number])
    if across < 0 or down < 0 or any(_overlap((*a[:2], a[2] + GAP, a[3] + GAP), b) for a, b in pairs):
        return None
    return places


def _bent(a: Place, b: Place, both: bool) -> list[float]:
    """A curve that keeps to its right, more so where another comes the other way."""
    (ax, ay, *_), (bx, by, *_) = a, b
    dx, dy = bx - ax, by - ay
    length = math.hypot(dx, dy) or 1.0
    bend = min(60.0, (0.16 if both else 0.08) * length)
    cx, cy = (ax + bx) / 2 - dy / length * bend, (ay + by) / 2 + dx / length * bend
    x0, y0 = border(a, cx, cy)
    x1, y1 = border(b, cx, cy, room=4)
    # A quadratic curve as a cubic one.
    return [
        x0, y0, x0 + 2 / 3 * (cx - x0), y0 + 2 / 3 * (cy - y0),
        x1 + 2 / 3 * (cx - x1), y1 + 2 / 3 * (cy - y1), x1, y1,
    ]  # fmt: skip


def _loop(a: Place, middle: tuple[float, float]) -> list[float]:
    """From one side of the node's outer end to the other."""
    x, y, w, h = a
    out = 1.0 if y >= middle[1] else -1.0
    edge, far, half = y + out * h / 2, y + out * (h / 2 + LOOP * 0.85), min(w / 2 - 4, 16.0)
    return [x - half, edge, x - 2.2 * half, far, x + 2.2 * half, far, x + half, edge + out * 4]


def border(place: Place, x: float, y: float, room: float = 1.0) -> tuple[float, float]:
    """Where the way from a node's centre to a point leaves its box."""
    cx, cy, w, h = place
    dx, dy = x - cx, y - cy
    if not dx and not dy:
        return cx, cy
    scale = 1 / max(abs(dx) / (w / 2 + room), abs(dy) / (h / 2 + room))
    return cx + dx * scale, cy + dy * scale


def along(path: Sequence[float], t: float) -> tuple[float, float]:
    """A point of the first curve of a path."""
    x0, y0, x1, y1, x2, y2, x3, y3 = path[:8]
    a, b, c, d = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
    return a * x0 + b * x1 + c * x2 + d * x3, a * y0 + b * y1 + c * y2 + d * y3


def _free(
    path: Sequence[float], w: float, h: float, taken: Sequence[Box], room: tuple[float, float]
) -> tuple[float, float]:
    """The spot on or beside the curve where a label covers the least of what is there."""
    best, least = (0.0, 0.0), math.inf
    for worse, t in enumerate((0.5, 0.4, 0.6, 0.32, 0.68, 0.24, 0.76)):
        px, py = along(path, t)
        for aside, (dx, dy) in enumerate(((0, 0), (0, 0.8), (0, -0.8), (0.55, 0), (-0.55, 0))):
            x = min(max(px + dx * w, w / 2), room[0] - w / 2)
            y = min(max(py + dy * h, h / 2), room[1] - h / 2)
            covered = sum(_overlap((x, y, w, h), other) for other in taken)
            if (cost := covered + 0.5 * worse + 0.7 * aside) < least:
                best, least = (x, y), cost
    return best


def _overlap(a: Box, b: Box) -> float:
    across = (a[2] + b[2]) / 2 - abs(a[0] - b[0])
    down = (a[3] + b[3]) / 2 - abs(a[1] - b[1])
    return max(0.0, across) * max(0.0, down)
