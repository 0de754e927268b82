"""A recording as an animated GIF, for slides: drawing, caption and curve, painted with Pillow.

The places are those of the page (`tapegrad.show.drawing`); here they are only painted. Everything is drawn
larger than it is shown and reduced, which makes lines smooth.
"""

import io
import math
import textwrap
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from tapegrad._compile import Progress
from tapegrad.errors import Refused
from tapegrad.show.recorder import Recording

WIDTH, HEIGHT = 960, 600
HEAD, FOOT, PAD = 96, 70, 20
"""Room for title and caption, for the curve, and at the sides; the drawing has the rest."""
MOST_FRAMES = 240
A_SECOND, LAST = 6, 2.5
"""Frames a second, and how many seconds the last one stays."""
PAPER, CARD, INK, SOFT = (251, 250, 248), (255, 255, 255), (29, 33, 39), (90, 97, 107)
EDGE, CELL, ACCENT, ON, MINUS = (185, 180, 169), (243, 241, 236), (180, 83, 9), (47, 116, 208), (183, 121, 31)
ARCS = (ACCENT, (31, 111, 235), (24, 121, 78), (168, 85, 200), (192, 38, 45), (15, 154, 168))
_HERE, _NEXT, _FIELD, _LATER = 1, 2, 3, 4

Colour = tuple[int, int, int]


def gif(recording: Recording, *, progress: Progress | None = None) -> bytes:
    """The whole run; of a long one every so many frames."""
    painter, numbers = painter_of(recording, smooth=2, size=1)
    from PIL import Image

    colours = Image.new("P", (1, 1))
    colours.putpalette([part for colour in _palette() for part in colour])
    # One palette for all frames: what does not change from one to the next is then not stored again.
    images = []
    for done, number in enumerate(numbers, 1):
        images.append(painter.frame(number).quantize(palette=colours, dither=Image.Dither.NONE))
        if progress is not None:
            progress(done)
    lasting = [round(1000 / A_SECOND)] * (len(images) - 1) + [round(1000 * LAST)]
    content = io.BytesIO()
    images[0].save(
        content, "GIF", save_all=True, append_images=images[1:], duration=lasting, loop=0, optimize=True
    )
    return content.getvalue()


def painter_of(recording: Recording, smooth: float, size: float) -> tuple["_Painter", list[int]]:
    """What paints pictures of a recording, so many times as large as `WIDTH` and `HEIGHT`, from ones that are
    `smooth` times larger still; and the frames to paint."""
    try:
        from matplotlib import get_data_path  # brings a font that has arrows and signs
        from PIL import Image  # noqa: F401
    except ImportError as error:
        raise Refused(
            "an animation is drawn with Pillow and a font of matplotlib, which are not installed",
            advice="Install the extra: pip install 'tapegrad[plot]'.",
        ) from error
    drawings = [i for i, panel in enumerate(recording.panels) if panel["kind"] == "drawing"]
    if not drawings:
        raise Refused(
            f"there is no drawing of this network on {recording.target} to animate",
            advice="Write a page instead, as in -o run.html.",
        )
    every = -(-len(recording.frames) // MOST_FRAMES)
    numbers = sorted({*range(0, len(recording.frames), every), len(recording.frames) - 1})
    fonts = f"{get_data_path()}/fonts/ttf"
    return _Painter(recording, drawings[0], fonts, smooth * size, size), numbers


class _Painter:
    """Paints frames of one recording."""

    def __init__(self, recording: Recording, drawing: int, fonts: str, scale: float, size: float) -> None:
        from PIL import Image, ImageDraw, ImageFont

        self.recording, self.drawing, self.fonts = recording, drawing, fonts
        self.scale, self.size = scale, (round(WIDTH * size), round(HEIGHT * size))
        self.panel = recording.panels[drawing]
        self._image, self._draw, self._font = Image, ImageDraw, ImageFont
        self._made: dict[tuple[str, int], Any] = {}
        room = WIDTH - 2 * PAD, HEIGHT - HEAD - FOOT
        self.way = max(self.panel["arrangements"], key=lambda way: _filled(way, room))
        fit = min(room[0] / self.way["width"], room[1] / self.way["height"])
        self.unit = fit * self.scale
        self.left = self.scale * (WIDTH - fit * self.way["width"]) / 2
        self.top = self.scale * (HEAD + (room[1] - fit * self.way["height"]) / 2)

    def frame(self, number: int) -> Any:
        """One picture."""
        image = self._image.new("RGB", (round(self.scale * WIDTH), round(self.scale * HEIGHT)), PAPER)
        self.on = self._draw.Draw(image)
        frame = self.recording.frames[number]
        shown = frame["panels"][self.drawing]
        title = f"{self.recording.title} on {self.recording.target}"
        self._text(PAD, 14, title, 20, INK, "DejaVuSans-Bold", "la")
        step = f"{self.recording.step_name} {frame['step']:,} of {self.recording.steps:,}"
        self._text(WIDTH - PAD, 18, step, 14, SOFT, "DejaVuSans", "ra")
        for line, text in enumerate(textwrap.wrap(shown["caption"], 112)[:2]):
            self._text(PAD, 46 + 20 * line, text, 15, INK, "DejaVuSans", "la")
        lit = {i: (value, mark) for i, value, mark in shown["edges"]}
        for i, (text, _, arrow) in enumerate(self.panel["edges"]):
            if i not in lit:
                self._edge(i, text, arrow, None)
        for i, state in lit.items():
            text, _, arrow = self.panel["edges"][i]
            self._edge(i, text, arrow, state)
        states: dict[int, list[list[Any]]] = {}
        for i, *state in shown["nodes"]:
            states.setdefault(i, []).append(state)
        for i in range(len(self.panel["nodes"])):
            self._node(i, states.get(i, []))
        for arc, _, colour in shown["arcs"]:
            self._path(self.way["arcs"][arc], ARCS[colour % len(ARCS)], 2, True)
        self._curve(number)
        return image.resize(self.size, self._image.Resampling.LANCZOS)

    def _edge(self, i: int, text: str, arrow: int, state: tuple[float, int] | None) -> None:
        colour, width = EDGE, 1.2
        if state is not None:
            colour = ACCENT if state[1] else ON if state[0] > 0 else MINUS
            width = 2.6 if state[1] else 1.8
        self._path(self.way["paths"][i], colour, width, bool(arrow))
        x, y = self.way["labels"][i] if self.way["labels"] else (0, 0)
        for line, row in enumerate(text.split("\n") if text else ()):
            down = (line - text.count("\n") / 2) * 1.15 * self.way["font"]
            self._name(x, y + down, row, self.way["font"] * 0.92, SOFT if state is None else ACCENT, PAPER)

    def _node(self, i: int, states: Sequence[Sequence[Any]]) -> None:
        text, _, shape = self.panel["nodes"][i]
        x, y, w, h = self.way["places"][i]
        marks = [mark for _, mark, *_ in states]
        value = next((state[0] for state in reversed(states) if state[0]), 0)
        text = next((state[2] for state in reversed(states) if len(state) > 2), text)
        if shape in ("slot", "choice") and not text:
            return
        fill = CELL if shape in ("cell", "dot") else _mixed(ON, 0.2) if shape == "pale" else CARD
        if value:
            fill = _mixed(ON if value > 0 else MINUS, min(1.0, abs(value)))
        if _HERE in marks and shape == "dot":
            fill = ACCENT
        elif _HERE in marks and not value and shape in ("box", "state"):
            fill = _mixed(ACCENT, 0.16)
        line, width = (EDGE, 1.2)
        if _FIELD in marks:
            line, width = ARCS[1], 2.0
        if _HERE in marks or _NEXT in marks:
            line, width = ACCENT, 2.6 if _HERE in marks else 2.0
        ink = CARD if abs(value) > 0.5 else ACCENT if shape == "text" and _HERE in marks else INK
        if _LATER in marks or (shape == "box" and not text):
            line, ink = _faded(EDGE), _faded(INK)
        if shape != "text":
            box = [*self._at(x - w / 2, y - h / 2), *self._at(x + w / 2, y + h / 2)]
            pen = max(1, round(width * self.unit))
            if shape in ("dot", "gate"):
                self.on.ellipse(box, fill, line, pen)
            else:
                radius = (1.5 if shape in ("cell", "pale") else min(9, h / 3)) * self.unit
                self.on.rounded_rectangle(box, radius, fill, line, pen)
        if text and shape != "dot":
            size = min(self.way["font"], (w - 2) / (0.62 * len(text)) if shape != "text" else math.inf)
            self._name(x, y - h / 2 + 13 if shape in ("state", "choice") else y, text, size, ink)

    def _curve(self, number: int) -> None:
        """The part of the run that is over, and where it stands; scaled as the page scales it."""
        values = [frame["curve"] for frame in self.recording.frames]
        low, high = span([value for value in values if value is not None])
        left, right, top, bottom = PAD, WIDTH - PAD, HEIGHT - FOOT + 22, HEIGHT - 14

        def at(i: int) -> tuple[float, float]:
            share = (min(high, max(low, values[i])) - low) / (high - low)
            x = left + (right - left) * i / max(1, len(values) - 1)
            return self.scale * x, self.scale * (bottom - (bottom - top) * share)

        self._text(PAD, HEIGHT - FOOT, self.recording.curve_name, 12, SOFT, "DejaVuSans", "la")
        for i, j in pairwise(range(len(values))):
            if values[i] is not None and values[j] is not None:
                self.on.line([at(i), at(j)], ON if j <= number else _faded(ON), round(2 * self.scale))
        if values[number] is not None:
            x, y = at(number)
            dot = 4.5 * self.scale
            self.on.ellipse([x - dot, y - dot, x + dot, y + dot], ACCENT)

    def _path(self, path: Sequence[float], colour: Colour, width: float, arrow: bool) -> None:
        points = [self._at(path[0], path[1])]
        for start in range(0, len(path) - 2, 6):
            points += [self._at(*_bezier(path[start : start + 8], t / 12)) for t in range(1, 13)]
        self.on.line(points, colour, max(1, round(width * self.unit)), joint="curve")
        if arrow:
            (cx, cy), (x, y) = points[-3], points[-1]
            length, size = math.hypot(x - cx, y - cy) or 1.0, 7 * self.unit
            ux, uy = (x - cx) / length * size, (y - cy) / length * size
            sides = [(x - ux - 0.45 * uy, y - uy + 0.45 * ux), (x - ux + 0.45 * uy, y - uy - 0.45 * ux)]
            self.on.polygon([(x, y), *sides], colour)

    def _name(
        self, x: float, y: float, text: str, size: float, colour: Colour, halo: Colour | None = None
    ) -> None:
        font = self._sized("DejaVuSansMono", size * self.unit)
        rim = {"stroke_width": round(2 * self.unit), "stroke_fill": halo} if halo else {}
        self.on.text(self._at(x, y), text, colour, font, anchor="mm", **rim)

    def _text(
        self, x: float, y: float, text: str, size: float, colour: Colour, name: str, anchor: str
    ) -> None:
        self.on.text(
            (self.scale * x, self.scale * y),
            text,
            colour,
            self._sized(name, self.scale * size),
            anchor=anchor,
        )

    def _sized(self, name: str, size: float) -> Any:
        key = name, max(1, round(size))
        if key not in self._made:
            self._made[key] = self._font.truetype(f"{self.fonts}/{name}.ttf", key[1])
        return self._made[key]

    def _at(self, x: float, y: float) -> tuple[float, float]:
        return self.left + self.unit * x, self.top + self.unit * y


def span(known: Sequence[float]) -> tuple[float, float]:
    """What the curve spans, as on the page: without the first and the last value, if these alone would make
    it flat."""
    if not known:
        return 0.0, 1.0
    inner = known[1:-1] if len(known) > 4 else known
    spread, whole = max(inner) - min(inner), max(known) - min(known)
    chosen = inner if 0 < spread < 0.5 * whole else known
    low, high = min(chosen), max(chosen)
    return (low, high) if high > low else (low - 1, high + 1)


def _filled(way: dict[str, Any], room: tuple[float, float]) -> float:
    return way["width"] * way["height"] * min(room[0] / way["width"], room[1] / way["height"]) ** 2


def _bezier(path: Sequence[float], t: float) -> tuple[float, float]:
    a, b, c, d = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
    return a * path[0] + b * path[2] + c * path[4] + d * path[6], a * path[1] + b * path[3] + c * path[
        5
    ] + d * path[7]


def _palette() -> list[Colour]:
    """The colours, and what smooth edges between them and the paper need."""
    full = (INK, SOFT, EDGE, CELL, ON, MINUS, *ARCS, _mixed(ACCENT, 0.16), _mixed(ON, 0.2))
    shades = [
        _between(colour, ground, i / 5) for colour in full for i in range(1, 6) for ground in (PAPER, CARD)
    ]
    return list(dict.fromkeys([PAPER, CARD, *shades, *(_between(CARD, ON, i / 4) for i in range(1, 4))]))


def _between(colour: Colour, ground: Colour, share: float) -> Colour:
    r, g, b = (round(share * c + (1 - share) * other) for c, other in zip(colour, ground, strict=True))
    return r, g, b


def _mixed(colour: Colour, strength: float) -> Colour:
    return _between(colour, CARD, strength)


def _faded(colour: Colour) -> Colour:
    return _between(colour, PAPER, 0.3)
