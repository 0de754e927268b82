"""Multi-tape text of turingmachinesimulator.com: headers `name:`, `init:` and `accept:`, then pairs of lines,

    q0,0,_        in state q0, reading 0 and blank,
    q1,0,1,>,-    enter q1, write 0 and 1, move the first head right and leave the second.

`//` starts a comment and `_` is the blank. A state without rules halts: it accepts if `accept:` lists it and
rejects otherwise, so states need no declaration.
"""

import re
from collections.abc import Iterable

from tapegrad.errors import FormatError
from tapegrad.machines.formats.loaded import (
    At,
    Loaded,
    check_count,
    check_name,
    check_symbol,
    decode,
    numbered_lines,
    with_symbols,
)
from tapegrad.machines.model import LEFT, RIGHT, STAY, Rule, TuringMachine
from tapegrad.source import Format, opening, quoted

_MOVES = {"<": LEFT, "-": STAY, ">": RIGHT}
_HEADER = re.compile(r"\s*(name|init|accept)\s*:(.*)")
_MAX_TAPES = 16

_Key = tuple[str, tuple[str, ...]]


def detect(data: bytes) -> bool:
    """Whether there is a header that names the start state."""
    return bool(re.search(r"^[ \t]*init[ \t]*:", opening(data), re.MULTILINE))


def read(data: bytes, symbols: Iterable[str] = ()) -> Loaded:
    """The machine of this text."""
    headers: dict[str, str] = {}
    rules: dict[_Key, Rule] = {}
    lines: dict[_Key, int] = {}
    pending: _Key | None = None
    number = 0
    for number, line in numbered_lines(decode(data)):
        code = line.partition("//")[0]
        if header := _HEADER.match(code):
            _add_header(headers, header[1], header[2].strip(), number)
        elif not code.strip():
            continue
        elif pending is None:
            pending = _condition(code, number, rules)
            if pending in rules:
                raise FormatError(
                    f"a second rule for {quoted(code.strip())}; the first is in line {lines[pending]}",
                    where=str(At(number, 1)),
                    advice="Remove one of them: the machine must be deterministic.",
                )
            lines[pending] = number
        else:
            rules[pending] = _action(code, number, len(pending[1]))
            pending = None
            check_count(len(rules), At(number, 1))
    if pending is not None:
        raise FormatError(
            f"the rule that begins in line {lines[pending]} has no second line",
            where=str(At(number, 1)),
            advice="Was the text cut off?",
        )
    return Loaded(with_symbols(_machine(headers, rules, lines), symbols), "multi-tape")


def _add_header(headers: dict[str, str], key: str, value: str, number: int) -> None:
    if key in headers:
        raise FormatError(f"a second {key}: header", where=str(At(number, 1)), advice="Remove one of them.")
    headers[key] = value


def _fields(code: str) -> tuple[list[str], list[int]]:
    """The parts between commas, stripped, and the column of each."""
    fields, columns, column = [], [], 1
    for part in code.split(","):
        fields.append(part.strip())
        columns.append(column + len(part) - len(part.lstrip()))
        column += len(part) + 1
    return fields, columns


def _condition(code: str, number: int, rules: dict[_Key, Rule]) -> _Key:
    fields, columns = _fields(code)
    tapes = len(next(iter(rules))[1]) if rules else min(max(len(fields) - 1, 1), _MAX_TAPES)
    if len(fields) != tapes + 1:
        raise FormatError(
            f"{len(fields)} parts where a state and {tapes} symbol(s) belong",
            where=str(At(number, columns[0])),
            advice="Write state,symbol for one tape, state,symbol,symbol for two, "
            f"up to {_MAX_TAPES}, and the same number in every rule.",
        )
    state = check_name(fields[0], At(number, columns[0]))
    symbols = zip(fields[1:], columns[1:], strict=True)
    return state, tuple(check_symbol(symbol, At(number, column)) for symbol, column in symbols)


def _action(code: str, number: int, tapes: int) -> Rule:
    fields, columns = _fields(code)
    if len(fields) != 2 * tapes + 1:
        raise FormatError(
            f"{len(fields)} parts where a state, {tapes} symbol(s) and {tapes} move(s) belong",
            where=str(At(number, columns[0])),
            advice="The second line of a rule is a state, a symbol for each tape, then <, > or - for each.",
        )
    places = [At(number, column) for column in columns]
    state = check_name(fields[0], places[0])
    write = tuple(check_symbol(fields[i], places[i]) for i in range(1, tapes + 1))
    for i in range(tapes + 1, 2 * tapes + 1):
        if fields[i] not in _MOVES:
            raise FormatError(
                f"{quoted(fields[i])} is no move", where=str(places[i]), advice="Use <, > or -."
            )
    return Rule(write, tuple(_MOVES[move] for move in fields[tapes + 1 :]), state)


def _machine(headers: dict[str, str], rules: dict[_Key, Rule], lines: dict[_Key, int]) -> TuringMachine:
    for key in ("init", "accept"):
        if not headers.get(key):
            raise FormatError(
                f"the header {key}: is missing or empty", advice=f"Add a line such as: {key}: q0"
            )
    accept = frozenset(check_name(state.strip(), "accept:") for state in headers["accept"].split(","))
    start = check_name(headers["init"], "init:")
    working = {state for state, _ in rules}
    if start not in working | accept:
        raise FormatError(
            f"the start state {quoted(start)} has no rules",
            where="init:",
            advice="Add its rules, or name another start state.",
        )
    for key, number in lines.items():
        if key[0] in accept:
            raise FormatError(
                f"state {quoted(key[0])} accepts, so it halts, yet it has a rule",
                where=f"line {number}",
                advice="Remove the rule: it is never used.",
            )
    reject = {rule.state for rule in rules.values()} - working - accept
    name = headers.get("name") or "machine"
    return TuringMachine(rules, start, "_", accept=accept, reject=frozenset(reject), name=name)


FORMAT = Format(
    name="multi-tape",
    summary="multi-tape text of turingmachinesimulator.com",
    example="init: q0\naccept: yes\nq0,0,_\nq0,0,0,>,>\nq0,_,_\nyes,_,_,-,-",
    detect=detect,
    read=read,
)
