"""The kinds of panel that a page can draw: cells in rows, named fields, a table, a point of a simplex.

A panel is made before the run, collects one value for each frame, and is finished afterwards: only then is it
known which cells and vertices the run has used, and only those are kept and explained.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

WIDEST = 161
"""Columns that are shown at once; a wider panel has a window that follows its focus."""
TALLEST = 96
MOST_WORDS = 4000
"""Cells of one panel that are explained one by one; beyond, the page falls back on row and column."""
MOST_VERTICES = 400
ALL_VERTICES = 48
"""A simplex with at most this many vertices is drawn whole, a larger one as far as the run visits it."""

Cell = tuple[int, int, Any]
"""Row, column and what is there: a number, or a symbol."""


class Panel(Protocol):
    """What the recorder needs of a panel."""

    def finish(self, collected: list[Any]) -> tuple[dict[str, Any], list[Any]] | None:
        """The panel and its frames as plain JSON; None if there is nothing to see."""
        ...


@dataclass(frozen=True)
class CellsFrame:
    """The cells that differ from the default, and the marked ones. `focus` is the column that a narrow
    window follows (by default that of the first mark); `widths` says where rows of unequal length end."""

    cells: Sequence[Cell]
    marks: Sequence[tuple[int, int]] = ()
    focus: int | None = None
    widths: Sequence[int] | None = None
    words: Sequence[Sequence[str]] | None = None


@dataclass(frozen=True)
class Cells:
    """Rows of cells. `scale` says how numbers become colours: `signed` from -1 to 1, `unit` from 0 to 1; with
    `text` they are symbols. Rows without labels are numbered, as those of a plane are."""

    title: str
    scale: str
    rows: tuple[str, ...] | None = None
    default: tuple[Any, ...] = (0,)
    """What a cell holds unless a frame says otherwise; one for all rows, or one for each."""
    note: str = ""
    columns: tuple[int, int] | None = None
    """First and last column, where they do not follow from the run."""
    column_name: str = "cell"
    row_words: tuple[str, ...] = ()
    explain: Callable[[int, int], str] | None = None
    room: int = 1
    """Default cells that are shown on either side of those in use."""
    hide_if_constant: bool = False

    def finish(self, collected: list[CellsFrame]) -> tuple[dict[str, Any], list[Any]] | None:
        """Cut down to the rows and columns that the run has used."""
        if self.hide_if_constant and len({self._content(frame) for frame in collected}) == 1:
            return None
        places = [(r, c) for f in collected for r, c in [*((r, c) for r, c, _ in f.cells), *f.marks]]
        top, bottom = self._rows(places)
        left, right = self._columns(places, collected)
        note = self.note
        if right - left >= WIDEST:
            note = f"{note} {WIDEST} of {right - left + 1:,} columns are shown at a time.".strip()
        if bottom - top >= TALLEST:
            note = f"{note} {TALLEST} of {bottom - top + 1:,} rows are shown.".strip()
            bottom = top + TALLEST - 1
        labels = self.rows or tuple(str(row) for row in range(top, bottom + 1))
        panel = {
            "kind": "cells",
            "title": self.title,
            "note": note,
            "scale": self.scale,
            "rows": list(labels),
            "default": [*self.default] if len(self.default) > 1 else [*self.default] * len(labels),
            "first": left,
            "columns": min(right - left + 1, WIDEST),
            "columnName": self.column_name,
            "rowWords": list(self.row_words),
            "words": self._words(top, bottom, left, right),
        }
        return panel, [_cut(frame, (top, bottom), (left, right)) for frame in collected]

    def _content(self, frame: CellsFrame) -> frozenset[Cell]:
        """What a frame shows, whether or not it lists cells that hold the default."""
        return frozenset(cell for cell in frame.cells if cell[2] not in self.default)

    def _rows(self, places: Sequence[tuple[int, int]]) -> tuple[int, int]:
        if self.rows is not None:
            return 0, len(self.rows) - 1
        rows = [r for r, _ in places] or [0]
        return min(rows) - self.room, max(rows) + self.room

    def _columns(self, places: Sequence[tuple[int, int]], collected: Sequence[CellsFrame]) -> tuple[int, int]:
        if self.columns is not None:
            return self.columns
        widths = [width - 1 for frame in collected for width in frame.widths or ()]
        if widths:
            return 0, max(0, *widths)
        used = [c for _, c in places] or [0]
        return min(used) - self.room, max(used) + self.room

    def _words(self, top: int, bottom: int, left: int, right: int) -> list[list[str]] | None:
        if self.explain is None or (bottom - top + 1) * (right - left + 1) > MOST_WORDS:
            return None
        return [[self.explain(r, c) for c in range(left, right + 1)] for r in range(top, bottom + 1)]


def _cut(frame: CellsFrame, rows: tuple[int, int], columns: tuple[int, int]) -> dict[str, Any]:
    (top, bottom), (left, right) = rows, columns
    focus = frame.focus if frame.focus is not None else frame.marks[0][1] if frame.marks else left
    if right - left >= WIDEST:
        left = min(max(focus - WIDEST // 2, left), right - WIDEST + 1)
        right = left + WIDEST - 1
    inside = [(r, c) for r, c in frame.marks if top <= r <= bottom and left <= c <= right]
    shown: dict[str, Any] = {
        "first": left,
        "cells": [
            [r - top, c - left, plain(v)]
            for r, c, v in frame.cells
            if top <= r <= bottom and left <= c <= right
        ],
        "marks": [[r - top, c - left] for r, c in inside],
    }
    if frame.focus is not None:
        shown["focus"] = min(max(frame.focus, left), right) - left
    if frame.widths is not None:
        shown["widths"] = [max(0, min(width - left, right - left + 1)) for width in frame.widths]
    if frame.words is not None:
        shown["words"] = [list(row) for row in frame.words]
    return shown


@dataclass(frozen=True)
class Fields:
    """Names with values, such as a state or an output."""

    title: str
    note: str = ""
    words: dict[str, str] = field(default_factory=dict)

    def finish(self, collected: list[dict[str, str]]) -> tuple[dict[str, Any], list[Any]]:
        """As it is."""
        panel = {"kind": "fields", "title": self.title, "note": self.note, "words": self.words}
        return panel, [list(values.items()) for values in collected]


@dataclass(frozen=True)
class Table:
    """A table of which one entry at a time is current: a frame is its row and column, or None."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    entries: Sequence[Sequence[str]]
    words: Sequence[Sequence[str]]

    def finish(self, collected: list[tuple[int, int] | None]) -> tuple[dict[str, Any], list[Any]]:
        """As it is."""
        panel = {
            "kind": "table",
            "title": self.title,
            "note": "",
            "columns": list(self.columns),
            "rows": list(self.rows),
            "entries": [list(row) for row in self.entries],
            "words": [list(row) for row in self.words],
        }
        return panel, [None if place is None else list(place) for place in collected]


@dataclass(frozen=True)
class Simplex:
    """A point of a simplex, given by its coordinates that are not 0. It is drawn in a regular polygon."""

    title: str
    count: int
    edges: Sequence[tuple[int, int]]
    name: Callable[[int], str]
    explain: Callable[[int], str]

    def finish(self, collected: list[list[tuple[int, float]]]) -> tuple[dict[str, Any], list[Any]]:
        """Cut down to the vertices that the run visits, where there are many."""
        shown = list(range(self.count))
        note = f"{self.count:,} vertices"
        if self.count > ALL_VERTICES:
            shown = list(dict.fromkeys(v for point in collected for v, _ in point))[:MOST_VERTICES]
            part = f"{len(shown):,} of " if len(shown) < self.count else ""
            note = f"{part}{self.count:,} vertices, in the order of their first visit"
        place = {vertex: number for number, vertex in enumerate(shown)}
        panel = {
            "kind": "simplex",
            "title": self.title,
            "note": f"{note}; corners of a simplex, drawn as a polygon.",
            "names": [self.name(v) for v in shown],
            "words": [self.explain(v) for v in shown],
            "edges": [[place[a], place[b]] for a, b in self.edges if a in place and b in place and a != b],
        }
        return panel, [[[place[v], plain(w)] for v, w in point if v in place] for point in collected]


def plain(value: Any) -> Any:
    """A symbol as it is, a number with four digits."""
    if isinstance(value, str):
        return value
    number = float(f"{float(value):.4g}")
    return int(number) if number.is_integer() else number
