"""bbchallenge text, `1RB1LB_1LA1RZ`: a row for each state A, B, ..., in it what to write, where to move and
which state to enter for each symbol 0, 1, ...; `---` where there is no rule. The states Z and H halt unless
they have a row."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

from tapegrad.errors import FormatError, Refused
from tapegrad.machines.formats.loaded import At, Loaded, decode, numbered_lines, with_symbols
from tapegrad.machines.model import LEFT, RIGHT, GridMachine, Rule, TuringMachine
from tapegrad.source import Format, opening, quoted

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_ENTRY = re.compile(r"([0-9])([LR])([A-Z])|---")
_MOVES = {"L": LEFT, "R": RIGHT}
_HALTING = "ZH"


def detect(data: bytes) -> bool:
    """Whether the first word looks like a row of entries."""
    words = opening(data).split(maxsplit=1)
    return bool(words) and bool(re.fullmatch(r"(?:[0-9][LR][A-Z]|---(?=.))[0-9A-Za-z_-]*", words[0]))


def read(data: bytes, symbols: Iterable[str] = ()) -> Loaded:
    """The one machine of this text. Columns after it, as in published lists ("Halt 6 4"), are not read."""
    found = list(islice(read_list(data), 2))
    if len(found) > 1:
        raise FormatError(
            "the text lists several machines",
            advice="Give the one line that is meant, or read all with bbchallenge.read_list.",
        )
    return replace(found[0], machine=with_symbols(found[0].machine, symbols))


def read_list(data: bytes) -> Iterator[Loaded]:
    """Every machine of a list, one to a line."""
    for number, line in numbered_lines(decode(data)):
        if words := line.split():
            machine = _machine(words[0], number, line.index(words[0]) + 1)
            rows = words[0].count("_") + 1
            yield Loaded(machine, "bbchallenge", halting_states=frozenset(_HALTING) - set(_LETTERS[:rows]))


def _machine(text: str, line: int, column: int) -> TuringMachine:
    rows = text.split("_")
    if len(rows) > len(_LETTERS):
        raise FormatError(
            f"{len(rows)} rows, but only {len(_LETTERS)} letters for states", where=str(At(line, column))
        )
    width = len(rows[0])
    rules = {}
    for state, row in zip(_LETTERS, rows, strict=False):
        if len(row) != width or width % 3 or not 3 <= width <= 30:
            raise FormatError(
                f"the row of state {state} is {len(row)} characters long"
                + (f", and that of state A {width}" if len(row) != width else ""),
                where=str(At(line, column)),
                advice="A row takes three characters for each symbol, such as 1RB, and all rows are equally "
                "long, with 1 to 10 symbols. Was the text cut off?",
            )
        for symbol in range(width // 3):
            entry = row[3 * symbol : 3 * symbol + 3]
            rule = _rule(entry, len(rows), width // 3, At(line, column + 3 * symbol))
            if rule is not None:
                rules[state, (str(symbol),)] = rule
        column += width + 1
    alphabet = tuple(str(symbol) for symbol in range(width // 3))
    states = tuple(_LETTERS[: len(rows)])
    return TuringMachine(rules, "A", "0", name=text, alphabet=alphabet, states=states, tapes=1)


def _rule(entry: str, rows: int, symbols: int, where: At) -> Rule | None:
    match = _ENTRY.fullmatch(entry)
    if match is None:
        raise FormatError(
            f"{quoted(entry)} is no entry",
            where=str(where),
            advice="An entry is a digit, L or R, and a letter, such as 1RB, or --- for none.",
        )
    write, move, state = match.groups()
    if write is None:
        return None
    if int(write) >= symbols:
        raise FormatError(
            f"{entry} writes symbol {write}, but the rows have {symbols} symbols", where=str(where)
        )
    if state not in _LETTERS[:rows] and state not in _HALTING:
        raise FormatError(
            f"{entry} enters state {state}, which has no row",
            where=str(where),
            advice="Halt by Z, as in 1RZ, or by ---. Was the text cut off?",
        )
    return Rule((write,), (_MOVES[move],), state)


def write_bbchallenge(machine: TuringMachine | GridMachine) -> str:
    """The machine as one line, or Refused where it does not fit. States become letters and symbols digits,
    in the machine's own order (start state A, blank 0): names are lost, what the machine does is not."""
    if isinstance(machine, GridMachine):
        raise _misfit(machine, "it works on a grid")
    with_rules = {state for state, _ in machine.rules}
    working = [state for state in machine.states if state in with_rules]
    halting = {rule.state for rule in machine.rules.values()} - with_rules
    letters = _LETTERS[:-1] if halting else _LETTERS
    reasons = {
        f"it has {machine.tapes} tapes": machine.tapes != 1,
        f"it has {len(machine.alphabet)} symbols": len(machine.alphabet) > 10,
        f"it has {len(working)} states with rules": len(working) > len(letters),
        "its start state has no rules": machine.start_state not in working,
        f"it tells {len(halting)} halting states apart": len(halting) > 1,
        "some of its rules do not move": any(0 in rule.moves for rule in machine.rules.values()),
    }
    for reason, applies in reasons.items():
        if applies:
            raise _misfit(machine, reason)
    name = dict(zip(working, letters, strict=False)) | dict.fromkeys(halting, "Z")
    digit = {symbol: str(number) for number, symbol in enumerate(machine.alphabet)}

    def entry(state: str, symbol: str) -> str:
        rule = machine.rules.get((state, (symbol,)))
        if rule is None:
            return "---"
        return digit[rule.write[0]] + ("R" if rule.moves[0] == RIGHT else "L") + name[rule.state]

    return "_".join("".join(entry(s, a) for a in machine.alphabet) for s in working)


def _misfit(machine: TuringMachine | GridMachine, reason: str) -> Refused:
    return Refused(
        f"the machine {machine.name!r} does not fit the bbchallenge format: {reason}",
        advice="The format has one tape, up to 10 symbols, up to 25 states and a halting state Z, "
        "and moves left or right at every step.",
    )


FORMAT = Format(
    name="bbchallenge",
    summary="busy-beaver text of bbchallenge.org",
    example="1RB1LB_1LA1RZ",
    detect=detect,
    read=read,
    write=write_bbchallenge,
)
