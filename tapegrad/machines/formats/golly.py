"""Turmites as Golly's generator scripts take them: `{{{write,move,next}, ...}, ...}`, a list for each state
of a triple for each colour, from state 0 on blank (colour 0).

Moves are absolute ('N', 'E', 'S', 'W', and '' halts) or relative turn codes (1 ahead, 2 right, 4 back, 8
left, and 0 halts): turn, then step. Relative moves are folded into the state: state 3 facing east becomes
`3E`, and only what can be reached is kept. A halting triple writes, stays and enters the state `halt`,
which counts as a step. Lists that only use E and W, or only 1 and 4, live on a line and become a
TuringMachine (facing east at first); the others become a GridMachine (facing north).
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tapegrad.errors import FormatError
from tapegrad.machines.formats.loaded import At, Loaded, decode, with_symbols
from tapegrad.machines.model import LEFT, RIGHT, STAY, GridMachine, GridRule, Rule, TuringMachine
from tapegrad.source import Format, opening, quoted

_COMPASS = "NESW"
_ON_GRID = dict(zip(_COMPASS, ("up", "right", "down", "left"), strict=True))
_ON_LINE = {"E": RIGHT, "W": LEFT}
_TURNS = {"1": 0, "2": 1, "4": 2, "8": 3}
"""Turn codes as quarter turns clockwise."""
_HALT = "halt"
_MAX_STATES = 256

_TOKEN = re.compile(r"\s*(?:([{},])|([0-9]{1,9})(?![0-9])|'([^'\n]{0,20})'|\"([^\"\n]{0,20})\")")


class _Triple(NamedTuple):
    write: int
    move: str
    """N, E, S, W, a turn code, or empty for a halt."""
    next: int
    position: int


_Table = list[list[_Triple]]


def detect(data: bytes) -> bool:
    """Whether the text opens three braces."""
    return bool(re.match(r"\s*\{\s*\{\s*\{", opening(data)))


def read(data: bytes, symbols: Iterable[str] = ()) -> Loaded:
    """The machine of this list."""
    table = _table(decode(data))
    kinds = {_kind(triple) for row in table for triple in row} - {"halt"}
    if len(kinds) > 1:
        raise FormatError(
            "the list mixes absolute moves with turns",
            advice="Use 'N', 'E', 'S', 'W' and '' throughout, or 1, 2, 4, 8 and 0 throughout.",
        )
    relative = kinds == {"turn"}
    on_line = {triple.move for row in table for triple in row} <= {*(("1", "4") if relative else "EW"), ""}
    facing = ("E" if on_line else "N") if relative else ""
    steps = _reachable(table, facing)
    alphabet = tuple(str(colour) for colour in range(len(table[0])))
    name = "relative turmite" if relative else "turmite"
    if on_line:
        moves = {**_ON_LINE, "": STAY}
        line_rules = {(s, (c,)): Rule((w,), (moves[move],), t) for s, c, w, move, t in steps}
        machine = TuringMachine(line_rules, "0" + facing, "0", name=name, alphabet=alphabet)
    else:
        ways = {**_ON_GRID, "": "stay"}
        rules = {(s, c): GridRule(w, ways[move], t) for s, c, w, move, t in steps}
        machine = GridMachine(rules, "0" + facing, "0", name=name, alphabet=alphabet)
    return Loaded(with_symbols(machine, symbols), "golly")


def _kind(triple: _Triple) -> str:
    if not triple.move:
        return "halt"
    return "turn" if triple.move in _TURNS else "compass"


def _reachable(table: _Table, facing: str) -> Iterator[tuple[str, str, str, str, str]]:
    """State, colour, what to write, where to go on the compass and the next state, for every pair of a state
    and a direction that can come up; `facing` is empty for absolute moves."""
    seen = {(0, facing)}
    waiting = [(0, facing)]
    while waiting:
        state, facing = waiting.pop()
        for colour, triple in enumerate(table[state]):
            way, target = triple.move, _HALT
            if way in _TURNS:
                way = _COMPASS[(_COMPASS.index(facing) + _TURNS[way]) % 4]
            if way:
                following = (triple.next, way if facing else "")
                target = f"{following[0]}{following[1]}"
                if following not in seen:
                    seen.add(following)
                    waiting.append(following)
            yield f"{state}{facing}", str(colour), str(triple.write), way, target


def _table(text: str) -> _Table:
    """The list as rows of triples, checked for shape and range."""
    tokens = _Tokens(text)
    table: _Table = []
    tokens.take("{")
    while not table or tokens.take_if(","):
        row: list[_Triple] = []
        tokens.take("{")
        while not row or tokens.take_if(","):
            row.append(_triple(tokens))
            _check_size(max(len(table) + 1, len(row)), tokens)
        tokens.take("}")
        table.append(row)
        if len(row) != len(table[0]):
            raise FormatError(
                f"state {len(table) - 1} has {len(row)} colours, and state 0 has {len(table[0])}",
                where=tokens.where(),
                advice="Every state needs a triple for each colour.",
            )
    tokens.take("}")
    tokens.take("")
    for row in table:
        for triple in row:
            if triple.next >= len(table):
                raise FormatError(f"there is no state {triple.next}", where=tokens.where(triple.position))
            if triple.write >= len(table[0]):
                raise FormatError(f"there is no colour {triple.write}", where=tokens.where(triple.position))
    return table


def _check_size(count: int, tokens: "_Tokens") -> None:
    if count > _MAX_STATES:
        raise FormatError(f"more than {_MAX_STATES} states or colours", where=tokens.where())


def _triple(tokens: "_Tokens") -> _Triple:
    tokens.take("{")
    position = tokens.position
    write = tokens.take_number()
    tokens.take(",")
    move = tokens.take_move()
    tokens.take(",")
    following = tokens.take_number()
    tokens.take("}")
    return _Triple(write, move, following, position)


class _Tokens:
    """The tokens of the text from left to right: braces, commas, numbers and quoted moves."""

    def __init__(self, text: str) -> None:
        self._text = text.rstrip()
        self.position = 0

    def where(self, position: int | None = None) -> str:
        """A position, or else the present one, as line and column."""
        position = self.position if position is None else position
        line_start = self._text.rfind("\n", 0, position) + 1
        return str(At(self._text.count("\n", 0, position) + 1, position - line_start + 1))

    def _next(self, wanted: str) -> re.Match[str]:
        match = _TOKEN.match(self._text, self.position)
        if match is None:
            rest = self._text[self.position :].strip()
            raise self._unexpected(quoted(rest[:10]) if rest else "the end of the text", wanted)
        return match

    def _unexpected(self, found: str, wanted: str) -> FormatError:
        return FormatError(
            f"found {found} where {wanted} belongs",
            where=self.where(),
            advice="A list reads {{{write,move,next},...},...}. Was it cut off?",
        )

    def take(self, mark: str) -> None:
        """Pass over a brace or comma; the empty mark is the end of the text."""
        if not mark and self.position >= len(self._text):
            return
        match = self._next(repr(mark) if mark else "the end of the text")
        if match[1] != mark:
            raise self._unexpected(quoted(match[0].strip()), repr(mark) if mark else "the end of the text")
        self.position = match.end()

    def take_if(self, mark: str) -> bool:
        match = self._next("',' or '}'")
        if match[1] == mark:
            self.position = match.end()
        return match[1] == mark

    def take_number(self) -> int:
        match = self._next("a number")
        if match[2] is None:
            raise self._unexpected(quoted(match[0].strip()), "a number")
        self.position = match.end()
        return int(match[2])

    def take_move(self) -> str:
        match = self._next("a move")
        quotation = match[3] if match[3] is not None else match[4]
        if match[2] is not None and int(match[2]) == 0:
            move = ""
        elif match[2] in _TURNS or (quotation is not None and quotation in ("", *_COMPASS)):
            move = match[2] or quotation
        else:
            raise FormatError(
                f"{quoted(match[0].strip())} is no move",
                where=self.where(),
                advice="Moves are 'N', 'E', 'S', 'W' and '' or the turns 1, 2, 4, 8 and 0; sums of turns, "
                "which make several heads, are not read.",
            )
        self.position = match.end()
        return move


FORMAT = Format(
    name="golly",
    summary="turmite lists of Golly's generator, absolute or relative, on a line or a grid",
    example="{{{1,'E',1},{1,'W',1}},{{1,'W',0},{1,'',1}}}",
    detect=detect,
    read=read,
)
