"""The YAML of turingmachine.io: `blank`, `start state`, perhaps `input` and `synonyms`, and a `table`.

The table maps a state to its entries, or to nothing if it halts; an entry maps a symbol, or a list of
symbols, to an instruction: `L`, `R`, a synonym, or `{write: x, R: state}`, where `write` and the state may
be left out. Saved files keep all this as text under `source code:`. Three keys of our own, which the site
passes over, keep what the format has no place for: `accept`, `reject` (states) and `alphabet`. Without them
halting states called accept and reject are what they say.
"""

import re
from collections.abc import Iterable

from tapegrad.errors import FormatError, Refused
from tapegrad.machines.formats.loaded import (
    MAX_NAME,
    At,
    Loaded,
    check_count,
    check_name,
    check_symbol,
    decode,
    with_symbols,
)
from tapegrad.machines.formats.yaml_tree import Mapping, Node, Place, Scalar, Sequence, parse
from tapegrad.machines.model import LEFT, RIGHT, STAY, GridMachine, Rule, TuringMachine
from tapegrad.source import Format, opening, quoted

_MOVES = {"L": LEFT, "R": RIGHT}
_Instruction = tuple[str | None, int, str | None]
"""What to write, the move, and which state to enter; None stands for no change."""


def detect(data: bytes) -> bool:
    """Whether one of the keys that every machine needs begins a line, or an entry of {...}."""
    text = opening(data)
    before = r"[{,]\s*" if text.lstrip().startswith("{") else r"^[ \t]*"
    keys = r"(['\"]?)(table|source code|start state)\1[ \t]*:"
    return bool(re.search(before + keys, text, re.MULTILINE))


def read(data: bytes, symbols: Iterable[str] = ()) -> Loaded:
    """The machine of this text."""
    text = decode(data)
    document = _mapping(parse(text, Place()), "a machine")
    name = document.get("name")
    source = document.get("source code")
    if isinstance(source, Scalar) and document.get("table") is None:
        document = _mapping(parse(source.text, _place_inside(text, source)), "a machine")
    word = _text(document, "input", "")
    machine = _Reader(document).machine(_scalar(name, "the name").text if name else "machine")
    return Loaded(with_symbols(machine, [*word, *symbols]), "turingmachine.io", (word,) if word else ())


def _place_inside(text: str, source: Scalar) -> Place:
    """Where the lines of a literal block stand in the file around it."""
    if source.style != "|":
        return Place(source.at.line - 1, source.at.column)
    inner = next((line for line in source.text.split("\n") if line.strip()), "")
    outer = next((line for line in text.split("\n")[source.at.line :] if line.strip()), "")
    return Place(source.at.line, max(len(outer) - len(inner), 0))


def _mapping(node: Node, what: str) -> Mapping:
    if not isinstance(node, Mapping):
        raise FormatError(
            f"{what} is a mapping with keys and colons", where=node.where, advice="Was the text cut off?"
        )
    return node


def _scalar(node: Node, what: str) -> Scalar:
    if not isinstance(node, Scalar):
        raise FormatError(f"{what} is a single text", where=node.where)
    return node


def _text(document: Mapping, key: str, default: str | None = None) -> str:
    node = document.get(key)
    if node is None or (isinstance(node, Scalar) and node.text == "" and node.plain):
        if default is None:
            raise _missing_key(document, key)
        return default
    return _scalar(node, f"the {key}").text


def _missing_key(document: Mapping, key: str) -> FormatError:
    return FormatError(
        f"the key {key!r} is missing", where=document.where, advice=f"Add a line that begins {key}:"
    )


class _Reader:
    """One table on its way to a machine."""

    def __init__(self, document: Mapping) -> None:
        self.document = document
        self.blank = check_symbol(_text(document, "blank"), self._where("blank"))
        self.start = check_name(_text(document, "start state"), self._where("start state"))
        table = document.get("table")
        if table is None:
            raise _missing_key(document, "table")
        self.rows: dict[str, Node] = {}
        for key, row in _mapping(table, "the table").entries:
            state = _scalar(key, "the name of a state")
            self.rows[check_name(state.text, state.at)] = row
        self._check_state(self.start, self._where("start state"))
        self.synonyms: dict[str, _Instruction] = {}
        if (synonyms := document.get("synonyms")) is not None and not _is_missing(synonyms):
            found = {}
            for key, value in _mapping(synonyms, "synonyms").entries:
                found[_scalar(key, "a synonym").text] = self._instruction(value)
            self.synonyms = found

    def _where(self, key: str) -> str:
        node = self.document.get(key)
        return node.where if node else self.document.where

    def machine(self, name: str) -> TuringMachine:
        rules: dict[tuple[str, tuple[str]], Rule] = {}
        halting = set()
        for state, row in self.rows.items():
            if _is_missing(row):
                halting.add(state)
                continue
            for key, value in _mapping(row, f"the row of state {quoted(state)}").entries:
                write, move, target = self._instruction(value)
                for symbol, where in _symbols(key):
                    if (state, (symbol,)) in rules:
                        raise FormatError(
                            f"a second rule for state {quoted(state)} and symbol {quoted(symbol)}",
                            where=str(where),
                            advice="Remove one of them: the machine must be deterministic.",
                        )
                    rule = Rule(
                        (symbol if write is None else write,), (move,), state if target is None else target
                    )
                    rules[state, (symbol,)] = rule
                    check_count(len(rules), where)
        return TuringMachine(
            rules,
            self.start,
            self.blank,
            accept=self._final("accept", halting),
            reject=self._final("reject", halting),
            name=name,
            alphabet=tuple(symbol for symbol, _ in self._list("alphabet")),
            states=tuple(self.rows),
            tapes=1,
        )

    def _final(self, key: str, halting: set[str]) -> frozenset[str]:
        if self.document.get(key) is None:
            return frozenset({key} & halting)
        for state, where in self._list(key):
            self._check_state(state, where)
        return frozenset(state for state, _ in self._list(key))

    def _list(self, key: str) -> list[tuple[str, str]]:
        node = self.document.get(key)
        if node is None or _is_missing(node):
            return []
        if not isinstance(node, Sequence):
            raise FormatError(f"{key} is a list", where=node.where, advice=f"Write {key}: [...]")
        return [(_scalar(item, "an item").text, item.where) for item in node.items]

    def _check_state(self, state: str, where: At | str) -> None:
        if state not in self.rows:
            raise FormatError(
                f"state {quoted(state)} is not in the table",
                where=str(where),
                advice="Add its row; a halting state has an empty one, as in `done:`. Was the text cut off?",
            )

    def _instruction(self, node: Node) -> _Instruction:
        if isinstance(node, Mapping):
            return self._long_instruction(node)
        word = _scalar(node, "an instruction")
        if word.text in _MOVES:
            return None, _MOVES[word.text], None
        if word.text in self.synonyms:
            return self.synonyms[word.text]
        raise FormatError(
            f"{quoted(word.text)} is no instruction" if word.text else "the instruction is missing",
            where=word.where,
            advice="Write L, R, {write: x, R: state}, or a synonym that the file defines.",
        )

    def _long_instruction(self, node: Mapping) -> _Instruction:
        parts = {_scalar(key, "a part of an instruction").text: value for key, value in node.entries}
        moves = [key for key in parts if key in _MOVES]
        if len(moves) != 1 or not parts.keys() <= {"L", "R", "write"}:
            raise FormatError(
                "an instruction has one of L and R, and perhaps write; "
                f"this one has {quoted(', '.join(parts))}",
                where=node.where,
            )
        write = None
        if "write" in parts:
            symbol = _scalar(parts["write"], "the symbol to write")
            write = check_symbol(symbol.text, symbol.at)
        target = _scalar(parts[moves[0]], "the next state")
        if target.missing:
            return write, _MOVES[moves[0]], None
        self._check_state(target.text, target.at)
        return write, _MOVES[moves[0]], target.text


def _is_missing(node: Node) -> bool:
    return isinstance(node, Scalar) and node.missing


def _symbols(key: Node) -> list[tuple[str, At]]:
    """The symbols of a key, which is one or a list, with their positions."""
    items = key.items if isinstance(key, Sequence) else [key]
    scalars = [_scalar(item, "a symbol") for item in items]
    return [(check_symbol(scalar.text, scalar.at), scalar.at) for scalar in scalars]


# Writing a machine as the YAML of turingmachine.io, so that reading it back gives an equal machine.


_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]*|[0-9]")
_RESERVED = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}
"""Words that some YAML readers take for values of other types."""
_MAX_KEY = 1000
"""Characters in a key, escapes included; YAML itself stops at 1,024."""


def write_yaml(machine: TuringMachine | GridMachine, input: str = "") -> str:
    """The machine as YAML, or Refused unless it has one tape, moves at every step, and has symbols of one
    character."""
    if isinstance(machine, GridMachine):
        raise _misfit(machine, "it works on a grid")
    if machine.tapes != 1:
        raise _misfit(machine, f"it has {machine.tapes} tapes")
    if any(rule.moves == (STAY,) for rule in machine.rules.values()):
        raise _misfit(machine, "some of its rules do not move")
    if wide := [symbol for symbol in machine.alphabet if len(symbol) != 1]:
        raise _misfit(machine, f"its symbol {wide[0]!r} is not one character")
    for state in machine.states:
        if not 0 < len(state) <= MAX_NAME or len(_quoted(machine, state)) > _MAX_KEY:
            raise _misfit(machine, f"a state's name is empty or too long: {state[:40]!r}")
    lines = [f"name: {_quoted(machine, machine.name)}"]
    if input:
        lines.append(f"input: {_quoted(machine, input)}")
    lines += [
        f"blank: {_quoted(machine, machine.blank)}",
        f"start state: {_quoted(machine, machine.start_state)}",
    ]
    lines += [
        f"{key}: [{', '.join(_quoted(machine, t) for t in texts)}]" for key, texts in _own_keys(machine)
    ]
    lines.append("table:")
    rows: dict[str, list[str]] = {state: [] for state in machine.states}
    for (state, (symbol,)), rule in machine.rules.items():
        rows[state].append(f"    {_quoted(machine, symbol)}: {_instruction(machine, state, symbol, rule)}")
    for state, row in rows.items():
        lines += [f"  {_quoted(machine, state)}:", *row]
    return "\n".join(lines) + "\n"


def _own_keys(machine: TuringMachine) -> list[tuple[str, list[str]]]:
    """Our own keys, where the format's customs would not give the machine back."""
    working = {state for state, _ in machine.rules}
    halting = set(machine.states) - working
    keys = [("alphabet", list(machine.alphabet))]
    for key, states in (("accept", machine.accept), ("reject", machine.reject)):
        if states != {key} & halting:
            keys.append((key, sorted(states)))
    return keys


def _instruction(machine: TuringMachine, state: str, symbol: str, rule: Rule) -> str:
    move = "R" if rule.moves[0] == RIGHT else "L"
    write = f"write: {_quoted(machine, rule.write[0])}, " if rule.write[0] != symbol else ""
    if rule.state != state:
        return f"{{{write}{move}: {_quoted(machine, rule.state)}}}"
    return f"{{{write}{move}}}" if write else move


def _quoted(machine: TuringMachine, text: str) -> str:
    """The text as a YAML scalar that no reader mistakes for a number or a truth value."""
    if _PLAIN.fullmatch(text) and text.lower() not in _RESERVED:
        return text
    return '"' + "".join(_escaped(machine, character) for character in text) + '"'


def _escaped(machine: TuringMachine, character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character.isprintable():
        return character
    code = ord(character)
    if 0xD800 <= code < 0xE000:
        raise _misfit(machine, "half a surrogate pair is no character")
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _misfit(machine: TuringMachine | GridMachine, reason: str) -> Refused:
    return Refused(
        f"the machine cannot be written as YAML of turingmachine.io: {reason}",
        advice="The format has one tape, a move left or right at every step, and symbols of one character.",
    )


FORMAT = Format(
    name="turingmachine.io",
    summary="YAML of turingmachine.io",
    example="{blank: 0, start state: A, table: {A: {1: R, 0: {write: 1, R: H}}, H: }}",
    detect=detect,
    read=read,
    write=write_yaml,
)
