"""Merging the states of a table that cannot be told apart."""

from collections.abc import Hashable

from tapegrad.machines.assembling import Step, Table


def merge_states(table: Table, finals: frozenset[str]) -> Table:
    """The smallest table with the same behaviour, by partition refinement: states are first told apart by
    what they write and how they move on each symbol, then by the classes they lead to, until nothing
    changes (Moore's algorithm). States in `finals` stay as they are. A class takes the name of its first
    member."""
    rows: dict[str, dict[tuple[str, ...], Step]] = {table.start_state: {}}
    for (state, read), step in table.rules.items():
        rows.setdefault(state, {})[read] = step
    for step in table.rules.values():
        rows.setdefault(step.state, {})
    group: dict[str, str] = {state: state if state in finals else "" for state in rows}
    groups = 0
    while groups < len(set(group.values())):
        groups = len(set(group.values()))
        leader: dict[Hashable, str] = {}
        group = {state: leader.setdefault(_sight(state, row, group), state) for state, row in rows.items()}
    rules = {
        (state, read): Step(step.write, step.moves, group[step.state])
        for (state, read), step in table.rules.items()
        if group[state] == state
    }
    return Table(rules, group[table.start_state], table.alphabet)


def _sight(state: str, row: dict[tuple[str, ...], Step], group: dict[str, str]) -> Hashable:
    """All that tells a state apart at this stage."""
    moves = frozenset((read, step.write, step.moves, group[step.state]) for read, step in row.items())
    return group[state], moves
