"""Arranging a diagram of states on an ellipse: nodes at equal angles, edges bent, loops outwards, labels
where there is room for them."""

import math
from collections.abc import Sequence

from tapegrad.show.drawing.scene import Arrangement, Place, text_width

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
