"""A drawing: nodes and edges with their places, fixed for a run, and what lights up in each frame.

Places are computed once, so that the page, a saved picture and an animation show the same drawing. There are
two arrangements, for a wide and for a narrow window; whoever paints takes the one that fills it better.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tapegrad._panels import plain

HERE, NEXT, FIELD, LATER = 1, 2, 3, 4
"""Marks of a node: where the run stands, where it goes next, what is looked at, what is not there yet."""

GLYPH = 0.62
"""Width of a character of the monospaced font, in units of its size."""

Place = tuple[float, float, float, float]
"""Centre, width and height of a node."""


@dataclass(frozen=True)
class Node:
    """`box` with text, `state` with its name above dots, `gate` with text in a circle, `dot`, `cell` without
    rounding, `pale` for one that is a little blue by itself, `text` without outline, `slot` for a box that is
    there only while it has text, `choice` for one with room below its name."""

    text: str = ""
    words: str = ""
    """What it stands for, in a sentence."""
    shape: str = "box"


@dataclass(frozen=True)
class Edge:
    """A line that is always there. Its label is text, its explanation `words`."""

    text: str = ""
    words: str = ""
    arrow: bool = False


@dataclass(frozen=True)
class Arrangement:
    """Where everything is: a place for each node; for each edge a chain of cubic curves, as a point and then
    two controls and a point for each; and the middle of its label."""

    width: float
    height: float
    font: float
    places: Sequence[Place]
    paths: Sequence[Sequence[float]] = ()
    labels: Sequence[tuple[float, float]] = ()


@dataclass(frozen=True)
class Picture:
    """One frame. A node is its number, a value from -1 to 1, a mark and, if it changes, its text; an edge its
    number, what it carries and whether it is the one taken; an arc goes from node to node with a weight and a
    colour, which is a number into `Drawing.colours`."""

    caption: str
    nodes: Sequence[tuple[int, float, int] | tuple[int, float, int, str]] = ()
    edges: Sequence[tuple[int, float, int]] = ()
    arcs: Sequence[tuple[int, int, float, int]] = ()


@dataclass(frozen=True)
class Drawing:
    """The panel of a drawing; its frames are `Picture`s."""

    title: str
    nodes: Sequence[Node]
    edges: Sequence[Edge]
    arrangements: Sequence[Arrangement]
    legend: Sequence[tuple[str, str]] = ()
    """Pairs of a sign (`here`, `next`, `field`, `later`, `plus`, `minus`, `flow`, `taken`, `arc0`, ...) and
    what it means."""
    note: str = ""
    colours: Sequence[str] = field(default=())
    """What arcs of each colour are, in words."""

    def finish(self, collected: list[Picture]) -> tuple[dict[str, Any], list[Any]]:
        """As JSON, numbers shortened. Arcs are listed once, with their ways in each arrangement; frames name
        them by number."""
        arcs = {(a, b): None for picture in collected for a, b, *_ in picture.arcs}
        number = {ends: place for place, ends in enumerate(arcs)}
        panel = {
            "kind": "drawing",
            "title": self.title,
            "note": self.note,
            "nodes": [[node.text, node.words, node.shape] for node in self.nodes],
            "edges": [[edge.text, edge.words, int(edge.arrow)] for edge in self.edges],
            "legend": [list(entry) for entry in self.legend],
            "colours": list(self.colours),
            "arcs": [list(ends) for ends in arcs],
            "arrangements": [_arranged(arrangement, list(arcs)) for arrangement in self.arrangements],
        }
        return panel, [_pictured(picture, number) for picture in collected]


def _arranged(arrangement: Arrangement, arcs: Sequence[tuple[int, int]]) -> dict[str, Any]:
    places = arrangement.places
    return {
        "width": _tenths(arrangement.width),
        "height": _tenths(arrangement.height),
        "font": arrangement.font,
        "places": [[_tenths(number) for number in place] for place in arrangement.places],
        "paths": [[_tenths(number) for number in path] for path in arrangement.paths],
        "labels": [[_tenths(number) for number in label] for label in arrangement.labels],
        "arcs": [[_tenths(number) for number in arc_path(places[a], places[b])] for a, b in arcs],
    }


def arc_path(a: Place, b: Place) -> list[float]:
    """The way of an arc from node to node: bowed upwards along a row, else across."""
    (ax, ay, _, ah), (bx, by, _, bh) = a, b
    if abs(ay - by) < 1:
        top = ay - ah / 2 - min(10 + abs(ax - bx) * 0.2, 46)
        return [ax, ay - ah / 2, ax, top, bx, top, bx, by - bh / 2 - 1]
    way = 1 if by > ay else -1
    start, end = ay + way * ah / 2, by - way * (bh / 2 + 1)
    return [ax, start, ax, (start + end) / 2, bx, (start + end) / 2, bx, end]


def _tenths(number: float) -> float:
    found = round(float(number), 1)
    return int(found) if found.is_integer() else found


def _pictured(picture: Picture, number: Mapping[tuple[int, int], int]) -> dict[str, Any]:
    return {
        "caption": picture.caption,
        "nodes": [[i, plain(value), *rest] for i, value, *rest in picture.nodes],
        "edges": [[i, plain(value), mark] for i, value, mark in picture.edges],
        "arcs": [[number[a, b], plain(weight), colour] for a, b, weight, colour in picture.arcs],
    }


def text_width(text: str, font: float) -> float:
    """How wide a text is."""
    return GLYPH * font * len(text)


def cut(text: str, longest: int) -> str:
    """A text with at most so many characters."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
