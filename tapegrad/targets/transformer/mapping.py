"""Small gates merged into larger ones, as is done for chips whose gates are tables.

A cut of a gate is a set of wires on which it depends through the gates between. Gates get a few cuts each, of
at most `WIDEST` wires: the best of all unions of cuts of what they read. The best have the least area flow:
how many tables it takes to compute the gate, where a wire that is read by several counts for each of them in
part. Then tables are made for the gates that are needed, with their best cuts, and for the wires of these.
"""

from collections.abc import Iterable, Sequence
from itertools import product

WIDEST = 6
KEPT = 4
"""Cuts of a gate that are kept."""
VARIABLES = tuple(sum(1 << row for row in range(1 << WIDEST) if row >> place & 1) for place in range(WIDEST))
"""The values of each variable, for all values of all: bit i is that in row i."""
ALL = (1 << (1 << WIDEST)) - 1

Gate = tuple[Sequence[int], int]
"""The wires that it reads, and its table: bit i is its value where they are the bits of i. Wires from 0 on
come from outside; gate g has wire -1 - g."""
Cut = tuple[float, frozenset[int]]


def merged(gates: Sequence[Gate], needed: Iterable[int]) -> dict[int, Gate]:
    """Gates by their numbers, as few as it takes for the wires that are needed. A gate that is left as it is
    keeps its table; others have tables of `WIDEST` variables."""
    readers = [0] * len(gates)
    needed = [-1 - wire for wire in needed if wire < 0]
    for gate in (*needed, *(-1 - wire for reads, _ in gates for wire in reads if wire < 0)):
        readers[gate] += 1
    best = _cuts(gates, readers)
    chosen: dict[int, Gate] = {}
    waiting = list(needed)
    while waiting:
        gate = waiting.pop()
        if gate not in chosen:
            leaves, (reads, _) = sorted(best[gate], reverse=True), gates[gate]
            same = leaves == sorted(reads, reverse=True)
            chosen[gate] = gates[gate] if same else (leaves, _table(gates, gate, leaves))
            waiting += [-1 - wire for wire in leaves if wire < 0]
    return dict(sorted(chosen.items()))


def _cuts(gates: Sequence[Gate], readers: Sequence[int]) -> list[frozenset[int]]:
    """The best cut of every gate."""
    flow: list[float] = []
    kept: list[list[frozenset[int]]] = []
    for gate, (reads, _) in enumerate(gates):
        full = len(reads) == WIDEST  # it has no room for others
        choices = [
            [frozenset([wire])] if full or wire >= 0 else [*kept[-1 - wire], frozenset([wire])]
            for wire in reads
        ]
        found = {cut for parts in product(*choices) if len(cut := frozenset().union(*parts)) <= WIDEST}
        rated: list[Cut] = sorted(
            ((1 + sum(flow[-1 - wire] for wire in cut if wire < 0), cut) for cut in found),
            key=lambda rating: (rating[0], len(rating[1])),
        )
        kept.append([cut for _, cut in rated[:KEPT]])
        flow.append(rated[0][0] / max(1, readers[gate]))
    return [cuts[0] for cuts in kept]


def _table(gates: Sequence[Gate], root: int, leaves: Sequence[int]) -> int:
    """The table of a gate as a function of these wires: all rows at once."""
    values = dict(zip(leaves, VARIABLES, strict=False))

    def value(wire: int) -> int:
        if wire not in values:
            reads, table = gates[-1 - wire]
            inputs = [value(own) for own in reads]
            total = 0
            for row in range(1 << len(inputs)):
                if table >> row & 1:
                    term = ALL
                    for place, own in enumerate(inputs):
                        term &= own if row >> place & 1 else ALL ^ own
                    total |= term
            values[wire] = total
        return values[wire]

    return value(-1 - root)
