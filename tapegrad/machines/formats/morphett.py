"""Morphett's simulator: `state symbol new-symbol direction new-state`, one rule to a line, from state 0.

`*` as a state or symbol to match is a wildcard; for state s and symbol c the rules are tried in the order
(s, c), (s, *), (*, c), (*, *). `*` as a new symbol, direction or new state means no change. `_` is the blank,
`;` starts a comment, a final `!` sets a breakpoint (passed over here). A state named halt... halts, as does a
machine without a rule. A comment may propose an input by `$INITIAL_TAPE:`, in which a `*` marks the head.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from tapegrad.errors import FormatError
from tapegrad.machines.formats.loaded import (
    At,
    Loaded,
    check_count,
    check_name,
    check_symbol,
    decode,
    numbered_lines,
)
from tapegrad.machines.model import LEFT, RIGHT, STAY, Rule, TuringMachine
from tapegrad.source import Format, opening, quoted

_START, _BLANK, _ANY = "0", "_", "*"
_MOVES = {"l": LEFT, "r": RIGHT, "*": STAY}
_INPUT = re.compile(r"\$INITIAL_TAPE:? *(.*)$")
_RULE_LINE = re.compile(r"^[ \t]*[^\s;]+[ \t]+[^\s;][ \t]+[^\s;][ \t]+[lrLR*][ \t]+[^\s;]+", re.MULTILINE)
_LONE_BRACE = re.compile(r"^[ \t]*[{}][ \t\r]*$", re.MULTILINE)


class _Line(NamedTuple):
    write: str
    move: int
    state: str
    number: int


_Table = dict[tuple[str, str], _Line]


def detect(data: bytes) -> bool:
    """Whether any line has the five columns of a rule; so has `i = r * 9;`, but then there is C around it."""
    text = opening(data)
    return bool(_RULE_LINE.search(text)) and not _LONE_BRACE.search(text)


def read(data: bytes, symbols: Iterable[str] = ()) -> Loaded:
    """The machine of this text. A wildcard matches every symbol that the rules, the proposed input and
    `symbols` name: an alphabet is finite here, so symbols that only inputs hold must be given."""
    table: _Table = {}
    word, head = "", 0
    for number, line in numbered_lines(decode(data)):
        code, _, comment = line.partition(";")
        if match := _INPUT.search(comment):
            marked = match[1].rstrip().replace(" ", _BLANK)
            word, head = marked.replace("*", ""), max(marked.find("*"), 0)
        if code.strip():
            _add_rule(table, code, number)
            check_count(len(table), At(number, 1))
    if not {_START, _ANY} & {state for state, _ in table}:
        raise FormatError(
            "no rule for state 0, where every machine of this format starts",
            advice="Name the start state 0, or add a rule such as: 0 * * * first",
        )
    alphabet = dict.fromkeys(symbol for (_, read), line in table.items() for symbol in (read, line.write))
    alphabet = dict.fromkeys([_BLANK, *alphabet, *word, *symbols])
    alphabet.pop(_ANY, None)
    machine = _expanded(table, tuple(alphabet))
    halting = frozenset(state for state in machine.states if _halts(state))
    return Loaded(machine, "morphett", (word,) if word else (), head, halting)


def _halts(state: str) -> bool:
    return state[:4].lower() == "halt"


def _add_rule(table: _Table, code: str, number: int) -> None:
    words = list(re.finditer(r"\S+", code))
    fields = [word[0] for word in words]
    where = At(number, words[0].start() + 1)
    if len(fields) not in (5, 6) or (len(fields) == 6 and fields[5] != "!"):
        raise FormatError(
            f"a rule has 5 columns, and this one has {len(fields)}",
            where=str(where),
            advice="Write: state symbol new-symbol direction new-state, then perhaps ! for a breakpoint; "
            "comments start with ;",
        )
    state, symbol, write, move, target = fields[:5]
    columns = [At(number, word.start() + 1) for word in words]
    check_name(state, columns[0])
    check_symbol(symbol, columns[1])
    check_symbol(write, columns[2])
    check_name(target, columns[4])
    if move.lower() not in _MOVES:
        raise FormatError(f"{quoted(move)} is no direction", where=str(columns[3]), advice="Use l, r or *.")
    if (state, symbol) in table:
        raise FormatError(
            f"a second rule for state {quoted(state)} and symbol {quoted(symbol)}; "
            f"the first is in line {table[state, symbol].number}",
            where=str(where),
            advice="Remove one of them: the machine must be deterministic.",
        )
    table[state, symbol] = _Line(write, _MOVES[move.lower()], target, number)


def _expanded(table: _Table, alphabet: tuple[str, ...]) -> TuringMachine:
    named = dict.fromkeys([_START, *(state for state, _ in table), *(line.state for line in table.values())])
    named.pop(_ANY, None)
    check_count(len(named) * len(alphabet) if any(_ANY in key for key in table) else 0, "the wildcards")
    rules = {}
    for state in named:
        for symbol in alphabet if not _halts(state) else ():
            line = _match(table, state, symbol)
            if line is not None:
                write = symbol if line.write == _ANY else line.write
                target = state if line.state == _ANY else line.state
                rules[state, (symbol,)] = Rule((write,), (line.move,), target)
    halting = [state for state in named if _halts(state)]
    return TuringMachine(
        rules,
        _START,
        _BLANK,
        accept=frozenset(state for state in halting if state.lower().startswith("halt-accept")),
        reject=frozenset(state for state in halting if state.lower().startswith("halt-reject")),
        alphabet=alphabet,
        states=tuple(named),
        tapes=1,
    )


def _match(table: _Table, state: str, symbol: str) -> _Line | None:
    for key in ((state, symbol), (state, _ANY), (_ANY, symbol), (_ANY, _ANY)):
        if key in table:
            return table[key]
    return None


FORMAT = Format(
    name="morphett",
    summary="rules of Morphett's Turing machine simulator, wildcards included",
    example="0 1 1 r 0\n0 _ 1 * halt",
    detect=detect,
    read=read,
)
