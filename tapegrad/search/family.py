"""Which machines a search looks at, and how their tables are numbered."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad._jit import njit
from tapegrad.errors import Refused
from tapegrad.learners.on_grid import finish
from tapegrad.machines.builder import GridBuilder
from tapegrad.machines.model import MOVES, GridMachine, GridRule

SYMBOLS = ("0", "+", "-")
MOST_STATES = 12


@dataclass(frozen=True)
class Family:
    """Machines with `single` states that are their own mirror image and `pairs` of states that are each
    other's. With `mirrored`, exchanging + and - everywhere leaves the machine as it is; without, there are
    no pairs. With `writes`, a sign may be replaced by the other; blanks stay, so the frame stays too.

    An entry of the table says: write, move, go to a state, or move and answer. Answers must be given on a
    cell of the main grid; a fixed epilogue takes them to where the network expects them.
    """

    single: int
    pairs: int = 0
    mirrored: bool = False
    writes: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.states <= MOST_STATES or self.single < 1 or self.pairs < 0:
            raise Refused(
                f"a family with {self.single} single states and {self.pairs} pairs is not searched",
                advice=f"Take at least one single state and at most {MOST_STATES} states in all.",
            )
        if self.pairs and not self.mirrored:
            raise Refused("pairs of states only make sense for mirrored machines", advice="Set mirrored.")

    @property
    def states(self) -> int:
        return self.single + 2 * self.pairs

    def __str__(self) -> str:
        parts = [f"{self.states} state{'s' if self.states > 1 else ''}"]
        if self.mirrored:
            pairs = f" with {self.pairs} pair{'s' if self.pairs > 1 else ''}"
            parts.append("mirrored" + (pairs if self.pairs else ""))
        return ", ".join([*parts, "writing"] if self.writes else parts)

    def code(self) -> NDArray[np.int64]:
        """The family for compiled code: states, single, pairs, mirrored, writes."""
        return np.array([self.states, self.single, self.pairs, self.mirrored, self.writes])

    def state_names(self) -> list[str]:
        pairs = [f"{sign}{k}" for k in range(self.pairs) for sign in "pm"]
        return [*(f"s{k}" for k in range(self.single)), *pairs]


Table = NDArray[np.int64]
"""Write, move and next for each entry (state * 3 + symbol); next = states, states + 1 answer + and -; -1
throughout for an entry that no run has asked for."""


def machine_of(table: Table, family: Family, name: str = "found") -> GridMachine:
    """The machine of a table, with the epilogue that clears the grid and writes the answer."""
    names, moves = family.state_names(), list(MOVES)
    ends = {family.states: "answer +", family.states + 1: "answer -"}
    rules: dict[tuple[str, str], GridRule] = {}
    for entry, (write, move, following) in enumerate(table):
        if move >= 0:
            state = ends.get(int(following)) or names[following]
            rules[names[entry // 3], SYMBOLS[entry % 3]] = GridRule(SYMBOLS[write], moves[move], state)
    for sign in "+-":
        rules |= _epilogue(sign)
    return GridMachine(rules, names[0], name=name, alphabet=SYMBOLS[1:])


def _epilogue(sign: str) -> dict[tuple[str, str], GridRule]:
    """The rules that take an answer to the top left cell; they start in the state `answer` and its sign."""
    b = GridBuilder(f"epilogue {sign}", symbols=SYMBOLS)
    finish(b, sign)
    machine = b.machine()

    def renamed(state: str) -> str:
        if state == machine.start_state:
            return f"answer {sign}"
        return state if state == "done" else f"{state} {sign}"

    return {
        (renamed(state), read): GridRule(rule.write, rule.move, renamed(rule.state))
        for (state, read), rule in machine.rules.items()
    }


def table_text(table: Table, family: Family) -> str:
    """The table for people: one line for each state, one column for each symbol."""
    names, moves = [*family.state_names(), "answer +", "answer -"], list(MOVES)
    lines = [f"{'':>4}  " + "".join(f"reads {symbol:<18}" for symbol in SYMBOLS)]
    for state in range(family.states):
        cells = []
        for symbol, (write, move, following) in enumerate(table[3 * state : 3 * state + 3]):
            text = "-" if move < 0 else f"{moves[move]}, {names[following]}"
            cells.append(text if move < 0 or write == symbol else f"write {SYMBOLS[write]}, {text}")
        if any(cell != "-" for cell in cells):
            lines.append(f"{names[state]:>4}  " + "".join(f"{cell:<24}" for cell in cells))
    return "\n".join(line.rstrip() for line in lines)


def canonical_machines(family: Family) -> int:
    """How many tables the family has in canonical form: states numbered by first use in the order of the
    table, every state reachable. Exact, by counting entry after entry."""
    if family.mirrored:
        raise Refused("counted for families without mirror symmetry only")
    writes = 2 if family.writes else 1
    ways = {(0, 1): 1}
    total = 0
    for entry in range(3 * family.states):
        later: dict[tuple[int, int], int] = {}
        per_next = 4 * (1 if entry % 3 == 0 else writes)
        for (_, found), count in ways.items():
            if entry == 3 * found:
                continue
            known = count * (10 + per_next * found)
            later[entry + 1, found] = later.get((entry + 1, found), 0) + known
            if found < family.states:
                fresh = later.get((entry + 1, found + 1), 0)
                later[entry + 1, found + 1] = fresh + count * per_next
        total = sum(count for (done, found), count in later.items() if done == 3 * found == 3 * family.states)
        ways = later
    return total


# What an entry of a table can be, numbered: the branches of the tree of machines, compiled.
#
# A family in compiled code is `Family.code`: states, single, pairs, mirrored, writes. `used` counts
# the single states and the pairs that are in use, so that new ones are taken in order.


@njit(nogil=True)
def option_count(entry: int, code: Any, used: Any) -> int:
    """How many choices an entry has."""
    ordinary, answers = _kinds(entry, code, used)
    return ordinary + answers


@njit(nogil=True)
def _kinds(entry: int, code: Any, used: Any) -> Any:
    state, symbol = entry // 3, entry % 3
    neutral = code[3] == 1 and state < code[1] and symbol == 0
    following = min(used[0] + 1, code[1])
    if not neutral:
        following += 2 * used[1] + (1 if used[1] < code[2] else 0)
    writes = 2 if code[4] == 1 and symbol > 0 else 1
    return writes * 4 * following, 0 if neutral else 10


@njit(nogil=True)
def set_entry(table: Any, entry: int, option: int, code: Any, used: Any) -> None:
    """Fills an entry (and its mirror image) with one of its choices; answers come last. Updates `used`."""
    states, single = code[0], code[1]
    state, symbol = entry // 3, entry % 3
    ordinary, _ = _kinds(entry, code, used)
    write = symbol
    if option >= ordinary:
        move, following = (option - ordinary) // 2, states + (option - ordinary) % 2
    else:
        writes = 2 if code[4] == 1 and symbol > 0 else 1
        count = ordinary // (4 * writes)
        rest = option % (4 * count)
        if option >= 4 * count:
            write = 3 - symbol
        move, choice = rest // count, rest % count
        fixed = min(used[0] + 1, single)
        if choice < fixed:
            following = choice
            used[0] = max(used[0], choice + 1)
        else:
            following = single + choice - fixed
            used[1] = max(used[1], (choice - fixed) // 2 + 1)
    table[entry, 0], table[entry, 1], table[entry, 2] = write, move, following
    if code[3] == 1:
        other = 3 * _mirrored(state, single) + _opposite(symbol)
        turned = following
        if following >= states:
            turned = 2 * states + 1 - following
        elif following >= single:
            turned = _mirrored(following, single)
        table[other, 0], table[other, 1], table[other, 2] = _opposite(write), move, turned


@njit(nogil=True)
def clear_entry(table: Any, entry: int, code: Any) -> None:
    """Forgets an entry and its mirror image."""
    for part in range(3):
        table[entry, part] = -1
    if code[3] == 1:
        other = 3 * _mirrored(entry // 3, code[1]) + _opposite(entry % 3)
        for part in range(3):
            table[other, part] = -1


@njit(nogil=True)
def _mirrored(state: int, single: int) -> int:
    return state if state < single else single + ((state - single) ^ 1)


@njit(nogil=True)
def _opposite(symbol: int) -> int:
    return 3 - symbol if symbol > 0 else 0
