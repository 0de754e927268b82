"""The table of a Turing machine as a panel, with the rule that applies next as its current entry."""

from dataclasses import dataclass

from tapegrad.machines.model import Rule, Symbols, TuringMachine
from tapegrad.show.panels import Table

MOST_STATES, MOST_READS = 200, 12
"""Larger tables are not shown."""

_LETTERS = {-1: "L", 0: "S", 1: "R"}
_WORDS = {-1: "left", 0: "nowhere", 1: "right"}


@dataclass(frozen=True)
class RuleTable:
    """The panel, and where in it each state and combination of symbols stands."""

    panel: Table
    rows: dict[str, int]
    columns: dict[Symbols, int]

    def place(self, state: str, read: Symbols) -> tuple[int, int] | None:
        """The entry of the rule that applies; None in states without any."""
        if state not in self.rows or read not in self.columns:
            return None
        return self.rows[state], self.columns[read]


def rule_table(machine: TuringMachine) -> RuleTable | None:
    """One row for each state that has rules, one column for each combination of symbols that is read."""
    states = tuple(dict.fromkeys(state for state, _ in machine.rules))
    reads = tuple(
        dict.fromkeys(read for _, read in sorted(machine.rules, key=lambda key: _order(machine, key[1])))
    )
    if not states or len(states) > MOST_STATES or len(reads) > MOST_READS:
        return None
    rules = [[machine.rules.get((state, read)) for read in reads] for state in states]
    panel = Table(
        "Table: what is read, what to do",
        columns=tuple(" ".join(read) for read in reads),
        rows=states,
        entries=[["" if rule is None else _short(rule) for rule in row] for row in rules],
        words=[
            [
                f"In state {state!r}, reading {' '.join(read)}: "
                + ("halt." if rule is None else f"{rule_words(rule)}.")
                for read, rule in zip(reads, row, strict=True)
            ]
            for state, row in zip(states, rules, strict=True)
        ],
    )
    return RuleTable(panel, {s: r for r, s in enumerate(states)}, {read: c for c, read in enumerate(reads)})


def rule_words(rule: Rule) -> str:
    """What a rule does, in words."""
    ways = ", ".join(_WORDS[move] for move in rule.moves)
    return f"write {' '.join(rule.write)}, go {ways}, enter {rule.state}"


def _short(rule: Rule) -> str:
    return f"{' '.join(rule.write)} {''.join(_LETTERS[move] for move in rule.moves)} {rule.state}"


def _order(machine: TuringMachine, read: Symbols) -> list[int]:
    return [machine.alphabet.index(symbol) for symbol in read]
