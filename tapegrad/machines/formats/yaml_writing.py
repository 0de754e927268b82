"""Writing a machine as the YAML of turingmachine.io, so that reading it back gives an equal machine."""

import re

from tapegrad.errors import Refused
from tapegrad.formats import Format
from tapegrad.machines.formats.text import MAX_NAME
from tapegrad.machines.formats.turingmachine_io import detect, read
from tapegrad.machines.grid import GridMachine
from tapegrad.machines.model import RIGHT, STAY, Rule, TuringMachine

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
        if not 0 < len(state) <= MAX_NAME or len(_text(machine, state)) > _MAX_KEY:
            raise _misfit(machine, f"a state's name is empty or too long: {state[:40]!r}")
    lines = [f"name: {_text(machine, machine.name)}"]
    if input:
        lines.append(f"input: {_text(machine, input)}")
    lines += [
        f"blank: {_text(machine, machine.blank)}",
        f"start state: {_text(machine, machine.start_state)}",
    ]
    lines += [f"{key}: [{', '.join(_text(machine, t) for t in texts)}]" for key, texts in _own_keys(machine)]
    lines.append("table:")
    rows: dict[str, list[str]] = {state: [] for state in machine.states}
    for (state, (symbol,)), rule in machine.rules.items():
        rows[state].append(f"    {_text(machine, symbol)}: {_instruction(machine, state, symbol, rule)}")
    for state, row in rows.items():
        lines += [f"  {_text(machine, state)}:", *row]
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
    write = f"write: {_text(machine, rule.write[0])}, " if rule.write[0] != symbol else ""
    if rule.state != state:
        return f"{{{write}{move}: {_text(machine, rule.state)}}}"
    return f"{{{write}{move}}}" if write else move


def _text(machine: TuringMachine, text: str) -> str:
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
