"""The vertices of section 4.3: every configuration that the machine can reach from its inputs; and the
weights (10) and (15) of vertices and edges."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import BrokenNet, InputError, Refused, SourceError
from tapegrad.machines.model import Configuration, TuringMachine

MOST_VERTICES = 1 << 18
MOST_CELLS = 1 << 28
"""Cells of all vertices together."""

Key = tuple[str, tuple[int, ...], tuple[frozenset[tuple[int, str]], ...]]


@dataclass(frozen=True)
class Vertices:
    """Configurations as arrays, one row for each vertex."""

    state: NDArray[np.int32]
    heads: NDArray[np.int32]
    """One column for each tape."""
    cells: NDArray[np.uint16]
    """Numbers of symbols: vertex, tape, cell from `first_cell` on."""
    successor: NDArray[np.int32]
    """The vertex after the next step; the vertex itself where the machine halts."""
    first_cell: int

    def checked(self, states: int, symbols: int) -> Self:
        """Itself, if the arrays fit together and are about so many states and symbols: engines look up what
        stands at these numbers unasked."""
        count = len(self.successor)
        shapes = self.state.shape, self.successor.shape, self.heads.shape, self.cells.shape[:2]
        expected = (count,), (count,), (count, self.heads.shape[-1]), (count, self.heads.shape[-1])
        below = (self.state, states), (self.cells, symbols), (self.successor, count)
        if shapes != expected or self.cells.ndim != 3 or self.heads.ndim != 2:
            raise BrokenNet("the arrays of the configurations do not fit together")
        if any(array.dtype.kind not in "iu" for array in (*(array for array, _ in below), self.heads)):
            raise BrokenNet("the arrays of the configurations do not hold whole numbers")
        if any(((array < 0) | (array >= most)).any() for array, most in below):
            raise BrokenNet("a configuration has a state, a symbol or a successor that there is not")
        return self


def key(configuration: Configuration) -> Key:
    """A configuration in a form that can be looked up."""
    tapes = tuple(frozenset(tape.items()) for tape in configuration.tapes)
    return configuration.state, tuple(configuration.heads), tapes


def starts_up_to(machine: TuringMachine, longest: int) -> list[Configuration]:
    """The start configurations for every word on the first tape up to a length."""
    letters = [symbol for symbol in machine.alphabet if symbol != machine.blank]
    lengths = range(longest + 1)
    return [machine.start(word) for length in lengths for word in product(letters, repeat=length)]


def reachable(machine: TuringMachine, starts: Sequence[Configuration], steps: int, strict: bool) -> Vertices:
    """Runs the machine from every start to its halt and collects what it passes. Where it does not halt
    within `steps`, the start is refused if `strict`, else left out."""
    number: dict[Key, int] = {}
    rows: list[Configuration] = []
    successor: list[int] = []
    for place, start in enumerate(starts, 1):
        path = _path(machine, start, number, steps)
        if path is None:
            if strict:
                raise Refused(
                    f"the machine {machine.name!r} does not halt within {steps:,} steps",
                    where=f"input {place} of {len(starts):,}",
                    advice=f"Raise the option, as in `--set steps={10 * steps}`, or use the target `tape`, "
                    "which needs no bound.",
                )
            continue
        for configuration in path:
            number[key(configuration)] = len(rows)
            rows.append(configuration)
        successor.extend(_successors(machine, path, number))
        if len(rows) > MOST_VERTICES:
            raise _too_large(machine, rows)
    if not rows:
        raise Refused(
            f"the machine {machine.name!r} halts on none of {len(starts):,} inputs within {steps:,} steps",
            advice="Give one on which it halts, with `--input`, or use the target `tape`.",
        )
    return _as_arrays(machine, rows, successor)


def _path(
    machine: TuringMachine, first: Configuration, known: Mapping[Key, int], steps: int
) -> list[Configuration] | None:
    """The new configurations from the first one to a known one or to the halt; None if it takes too long.
    The successor of the last is known, or it halts."""
    path: list[Configuration] = []
    room = min(MOST_VERTICES, MOST_CELLS // (machine.tapes * (np.ptp(_used([first])) + 1)))
    for configuration in islice(machine.run(first), steps + 1):
        if known and key(configuration) in known:
            return path
        path.append(configuration)
        if len(path) > room:
            raise _too_large(machine, path)
    return path if machine.step(path[-1]) is None else None


def _successors(
    machine: TuringMachine, path: list[Configuration], number: Mapping[Key, int]
) -> Iterable[int]:
    for configuration in path:
        after = machine.step(configuration)
        yield number[key(configuration if after is None else after)]


def _as_arrays(machine: TuringMachine, rows: list[Configuration], successor: list[int]) -> Vertices:
    used = _used(rows)
    first, last = min(used), max(used)
    shape = (len(rows), machine.tapes, last - first + 1)
    if np.prod(shape) > MOST_CELLS:
        raise _too_large(machine, rows)
    symbol = {name: index for index, name in enumerate(machine.alphabet)}
    states = {name: index for index, name in enumerate(machine.states)}
    cells = np.zeros(shape, np.uint16)
    for vertex, row in enumerate(rows):
        for tape, content in enumerate(row.tapes):
            for cell, name in content.items():
                cells[vertex, tape, cell - first] = symbol[name]
    return Vertices(
        state=np.array([states[row.state] for row in rows], np.int32),
        heads=np.array([row.heads for row in rows], np.int32),
        cells=cells,
        successor=np.array(successor, np.int32),
        first_cell=first,
    )


def _used(rows: Sequence[Configuration]) -> list[int]:
    """Cells that are not blank, and those under the heads."""
    return [place for row in rows for places in (*row.tapes, row.heads) for place in places]


def all_configurations(machine: TuringMachine, cells: int) -> int:
    """|Q| |symbols|^(d tau) tau^d: the paper's count, which takes every configuration on tau cells."""
    tapes = machine.tapes
    return len(machine.states) * len(machine.alphabet) ** (tapes * cells) * cells**tapes


def _too_large(machine: TuringMachine, rows: Sequence[Configuration]) -> Refused:
    cells = int(np.ptp(_used([rows[0], rows[-1]]))) + 1
    return Refused(
        f"the simplex of the machine {machine.name!r} would need {len(rows):,} vertices and more, each with "
        f"{machine.tapes * cells:,} cells (the limits are {MOST_VERTICES:,} vertices and {MOST_CELLS:,} "
        f"cells; all configurations on so many cells would be about 10^{_digits(machine, cells):,})",
        advice="Use the target `tape`, whose size does not grow with the run.",
    )


def _digits(machine: TuringMachine, cells: int) -> int:
    tapes = machine.tapes
    logarithm = np.log10(len(machine.states)) + tapes * np.log10(cells)
    return int(logarithm + tapes * cells * np.log10(len(machine.alphabet)))


def look_up(table: Mapping[Key, int], configuration: Configuration) -> int:
    """The vertex of a configuration."""
    vertex = table.get(key(configuration))
    if vertex is None:
        raise InputError(
            "the simplex has no vertex for this input",
            advice="It was built for other inputs: compile again with the option `inputs`, or use `tape`.",
        )
    return vertex


def configuration(
    vertices: Vertices, row: int, states: tuple[str, ...], symbols: tuple[str, ...]
) -> Configuration:
    """The configuration of a vertex."""
    tapes = tuple(
        {int(cell) + vertices.first_cell: symbols[content[cell]] for cell in np.flatnonzero(content)}
        for content in vertices.cells[row]
    )
    return Configuration(states[vertices.state[row]], tapes, tuple(int(head) for head in vertices.heads[row]))


# The weights (10) and (15) of vertices and edges, from the number of steps that are left to the halt.


_LARGEST_LOSS = 2**50


@dataclass(frozen=True)
class Levels:
    """W_k = unit (1 + 3 k): the weight of a configuration k steps before its halt. B_low = 2 unit and
    B_high = 3 unit cut the gap between W_0 and W_1 into thirds; B = W_K lies above all that occur."""

    unit: int
    most: int
    """The largest k."""

    @property
    def low(self) -> int:
        """B_low, which is also B_stop."""
        return 2 * self.unit

    @property
    def high(self) -> int:
        """B_high."""
        return 3 * self.unit

    @property
    def outside(self) -> int:
        """B: the weight of pairs that no step joins."""
        return self.unit * (1 + 3 * (self.most + 1))

    @classmethod
    def of(cls, low: float, outside: float) -> Self:
        """The levels with this B_low and this B."""
        if 2 <= low <= outside <= _LARGEST_LOSS:
            unit = int(low / 2)
            found = cls(unit, int((outside / unit - 4) / 3))
            if (found.low, found.outside) == (low, outside):
                return found
        raise BrokenNet(f"no levels have B_low = {low:g} and B = {outside:g}")


def choose(most: int, final_loss: float) -> Levels:
    """The smallest unit, a power of two, for which B_stop exceeds the final loss of the primary network."""
    unit = 1
    while 2 * unit <= final_loss:
        unit *= 2
    levels = Levels(unit, most)
    if levels.outside > _LARGEST_LOSS:
        raise Refused(f"{most:,} steps and a loss of {final_loss:.3g} are too much for double precision")
    return levels


def steps_left(successor: NDArray[np.int32]) -> NDArray[np.int64]:
    """k(v): how many steps lead from each vertex to its halt, by looking 1, 2, 4, ... steps ahead."""
    ahead = np.array(successor)
    left = (ahead != np.arange(len(ahead))).astype(np.int64)
    for _ in range(len(ahead).bit_length()):
        left += left[ahead]
        ahead = ahead[ahead]
    if not np.array_equal(successor[ahead], ahead):
        raise SourceError("the successors of some configuration go round in a circle")
    return left


def weighted(successor: NDArray[np.int32], levels: Levels) -> dict[str, NDArray]:
    """w_v = W_k(v) for vertices, the mean of both ends for edges."""
    weight = levels.unit * (1.0 + 3.0 * steps_left(successor))
    running = np.flatnonzero(successor != np.arange(len(successor)))
    return {
        "vertex_weight": weight,
        "edge_from": running.astype(np.int32),
        "edge_to": successor[running],
        "edge_weight": (weight[running] + weight[successor[running]]) / 2,
    }
