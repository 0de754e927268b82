"""Sources as the checker sees them: plain models, read from a folder with everything in bounds.

The checker has its own, so that it depends on the file format alone. Each is in the one form in which sources
are saved (the start state first, the blank first, nothing twice); any other is refused, because a reader that
tidies it up would run something else than what was checked. What is read is no larger than the files are, so
a loop over a model is bounded by them.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tapegrad_check.fields import array, text, texts, whole
from tapegrad_check.folder import SOURCE, Arrays, Folder, NotProved, require
from tapegrad_check.sources.circuits import (
    GATES,
    Circuit,
    Function,
    Learner,
    Sequential,
    circuit_of,
    circuit_to_json,
    function_of,
    learner_of,
    sequential_of,
)
from tapegrad_check.sources.instructions import Instruction, instruction_of
from tapegrad_check.sources.rasp import Rasp, rasp_of

MOST_TAPES = 64
"""More are refused: without rules a file of any size could name them."""

MOST_BYTES = 1 << 26
"""Of the memory of a program, and of its input and output."""

MOVES = {"left": (0, -1), "right": (0, 1), "up": (-1, 0), "down": (1, 0), "stay": (0, 0)}


@dataclass(frozen=True)
class Rule:
    """What a machine writes on each tape, where each head goes, and the state it enters."""

    write: tuple[str, ...]
    moves: tuple[int, ...]
    state: str


@dataclass(frozen=True)
class Machine:
    """A Turing machine; it halts where there is no rule."""

    tapes: int
    start: str
    blank: str
    accept: tuple[str, ...]
    reject: tuple[str, ...]
    alphabet: tuple[str, ...]
    states: tuple[str, ...]
    rules: Mapping[tuple[str, tuple[str, ...]], Rule]
    name: str = "machine"


@dataclass(frozen=True)
class GridRule:
    """What a machine on the grid writes, where it goes (a name of `MOVES`), and the state it enters."""

    write: str
    move: str
    state: str


@dataclass(frozen=True)
class GridMachine:
    """A machine on the grid; it halts where there is no rule."""

    start: str
    blank: str
    alphabet: tuple[str, ...]
    states: tuple[str, ...]
    rules: Mapping[tuple[str, str], GridRule]
    name: str = "machine"


@dataclass(frozen=True)
class Program:
    """What the memory of a machine with random access holds at first, and where it starts."""

    kind: str
    ram: int
    """Bytes of memory."""
    input: int
    output: int
    """Bytes of input and output that there is room for, unless the net has other room."""
    width: int
    """Bits of a word."""
    image: bytes
    entry: int
    symbols: Mapping[str, int]
    source: Mapping[str, Any] | None = None
    """What it was compiled from, if that is known: for people to read, and not proved."""
    instruction: Instruction | None = None
    """Of an instruction set that the checker does not know: what the folder says of it."""
    name: str = "program"


Model: TypeAlias = Machine | GridMachine | Circuit | Function | Learner | Sequential | Program | Rasp


def source_of(folder: Folder) -> Model:
    """The source that the folder says its net is of."""
    return model_of(folder.config["source"], folder.part(SOURCE))


def lowered_of(folder: Folder) -> Model:
    """What the source was lowered to, as saved; the source itself where nothing was."""
    if "lowered" not in folder.config:
        return source_of(folder)
    return model_of(folder.config["lowered"], folder.part("lowered."))


def model_of(data: Any, arrays: Arrays) -> Model:
    """A source from its JSON and its arrays."""
    require(isinstance(data, dict) and isinstance(data.get("kind"), str), "the source is of no kind")
    if data["kind"] not in _READERS:
        raise NotProved(f"the checker does not know sources of the kind {data['kind']!r}")
    reader, keys, names = _READERS[data["kind"]]
    if data["kind"] == "program" and len(arrays) > 1:  # an instruction set is told in arrays of its own
        names = (*names, *GATES)
    require(data.keys() == {"kind", "name", *keys}, "the source has other entries than its kind")
    require(arrays.keys() == set(names), "the source has other arrays than its kind")
    text(data["name"], "the name of the source")
    return reader(data, arrays)


def to_json(model: Model) -> tuple[dict[str, Any], Arrays]:
    """The form in which a source is saved."""
    if isinstance(model, Machine):
        rules = [[q, *read, *rule.write, *rule.moves, rule.state] for (q, read), rule in model.rules.items()]
        return {
            "kind": "turing machine",
            "name": model.name,
            "tapes": model.tapes,
            "start_state": model.start,
            "blank": model.blank,
            "accept": list(model.accept),
            "reject": list(model.reject),
            "alphabet": list(model.alphabet),
            "states": list(model.states),
            "rules": rules,
        }, {}
    if isinstance(model, GridMachine):
        rules = [[q, read, rule.write, rule.move, rule.state] for (q, read), rule in model.rules.items()]
        return {
            "kind": "grid machine",
            "name": model.name,
            "start_state": model.start,
            "blank": model.blank,
            "alphabet": list(model.alphabet),
            "states": list(model.states),
            "rules": [
                [q, read, rule.write, rule.move, rule.state] for (q, read), rule in model.rules.items()
            ],
        }, {}
    if isinstance(model, Program):
        machine = {name: getattr(model, name) for name in ("kind", "ram", "input", "output")}
        machine |= {"width": model.width} if model.kind == "subleq" else {}
        own = model.instruction
        machine |= {} if own is None else {"instruction": dict(own.data)}
        data = {"kind": "program", "name": model.name, "machine": machine, "entry": model.entry}
        data |= {"symbols": dict(model.symbols), "source": model.source}
        return data, {"image": np.frombuffer(model.image, np.uint8), **({} if own is None else own.arrays)}
    if isinstance(model, Rasp):
        return dict(model.data), {}
    return circuit_to_json(model)


def digest(model: Model) -> str:
    """The sum by which a saved net names what a pass gave: of everything but the name of the source and the
    order of its rules."""
    return digest_of(*to_json(model))


def digest_of(data: Mapping[str, Any], arrays: Arrays) -> str:
    """The sum of a source in its saved form."""
    content = {key: value for key, value in data.items() if key != "name"}
    if "rules" in content:
        content["rules"] = sorted(content["rules"], key=json.dumps)
    total = hashlib.sha256(json.dumps(content, sort_keys=True).encode())
    for name, own in sorted(arrays.items()):
        plain = np.ascontiguousarray(own, own.dtype.newbyteorder("<"))
        total.update(json.dumps([name, plain.dtype.str, list(plain.shape)]).encode())
        total.update(plain.tobytes())
    return total.hexdigest()


# Readers of each kind.


def _table(data: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """States and symbols of a machine."""
    states, alphabet = texts(data["states"], "the states"), texts(data["alphabet"], "the symbols")
    require(states and states[0] == data["start_state"], "the start state is not the first state")
    require(alphabet and alphabet[0] == data["blank"], "the blank is not the first symbol")
    require(isinstance(data["rules"], list), "the rules are not a list")
    return states, alphabet


def _machine(data: Mapping[str, Any], arrays: Arrays) -> Machine:
    states, alphabet = _table(data)
    tapes = whole(data["tapes"], "the number of tapes", 1, MOST_TAPES)
    accept, reject = texts(data["accept"], "accepting states"), texts(data["reject"], "rejecting states")
    ends = {*accept, *reject}
    known, symbols = set(states), set(alphabet)
    require(
        list(accept) == sorted(accept) and list(reject) == sorted(reject), "final states are not in order"
    )
    require(ends <= known and len(ends) == len(accept) + len(reject), "a final state is unknown or double")
    rules: dict[tuple[str, tuple[str, ...]], Rule] = {}
    for row in data["rules"]:
        require(isinstance(row, list) and len(row) == 3 * tapes + 2, "a rule has another length")
        written, moves = row[1 : 2 * tapes + 1], row[2 * tapes + 1 : -1]
        require(all(isinstance(s, str) and s in symbols for s in written), "a rule has an unknown symbol")
        require(all(type(move) is int and -1 <= move <= 1 for move in moves), "a rule has an unknown move")
        require(
            all(isinstance(q, str) and q in known for q in (row[0], row[-1])), "a rule has no known state"
        )
        require(row[0] not in ends, "a final state has a rule")
        key = row[0], tuple(written[:tapes])
        require(key not in rules, "there are two rules for one case")
        rules[key] = Rule(tuple(written[tapes:]), tuple(moves), row[-1])
    named = data["start_state"], data["blank"], accept, reject, alphabet, states
    return Machine(tapes, *named, rules, data["name"])


def _grid_machine(data: Mapping[str, Any], arrays: Arrays) -> GridMachine:
    states, alphabet = _table(data)
    rules: dict[tuple[str, str], GridRule] = {}
    known, symbols = set(states), set(alphabet)
    for row in data["rules"]:
        right = isinstance(row, list) and len(row) == 5 and all(isinstance(part, str) for part in row)
        require(right, "a rule does not consist of five texts")
        require({row[0], row[4]} <= known and {row[1], row[2]} <= symbols, "a rule has an unknown name")
        require(row[3] in MOVES and (row[0], row[1]) not in rules, "a rule has no known move, or is double")
        rules[row[0], row[1]] = GridRule(row[2], row[3], row[4])
    return GridMachine(data["start_state"], data["blank"], alphabet, states, rules, data["name"])


def _program(data: Mapping[str, Any], arrays: Arrays) -> Program:
    sizes = machine_of(data["machine"], {name: own for name, own in arrays.items() if name != "image"})
    image = array(arrays, "image", np.uint8, (None,))
    require(len(image) <= sizes["ram"], "the program is larger than its memory")
    entry = whole(data["entry"], "where the program starts", 0, (1 << sizes["width"]) - 1)
    symbols = data["symbols"]
    require(isinstance(symbols, dict), "the symbols of the program have no names")
    for address in symbols.values():
        whole(address, "a symbol of the program", -(1 << 63), 1 << 63)
    if (source := data["source"]) is not None:
        _lines(source)
    return Program(
        **sizes, image=image.tobytes(), entry=entry, symbols=symbols, source=source, name=data["name"]
    )


def _lines(source: Any) -> None:
    """The text of a program, and which line the code from an address on belongs to."""
    require(isinstance(source, dict) and source.keys() == {"text", "lines"}, "the program's text is none")
    text, lines = source["text"], source["lines"]
    require(isinstance(text, list) and all(isinstance(one, str) for one in text), "a line is not text")
    require(isinstance(lines, list), "the lines of the program have no addresses")
    for pair in lines:
        require(isinstance(pair, list) and len(pair) == 2, "a line of the program has no address")
        whole(pair[0], "the address of a line")
        whole(pair[1], "a line of the program", 0, len(text))


def machine_of(data: Any, arrays: Arrays) -> dict[str, Any]:
    """A machine with random access: its kind and its sizes, all in their ranges; of one that the checker does
    not know, also its instruction."""
    require(isinstance(data, dict), "the program has no machine")
    kind = data.get("kind")
    if "instruction" in data:
        return _other_machine(data, arrays)
    require(kind in ("rv32im", "subleq"), "the machine of the program is of no known kind")
    require(not arrays, "the machine of the program has arrays")
    entries = {"kind", "ram", "input", "output"} | ({"width"} if kind == "subleq" else set())
    require(data.keys() == entries, "the machine of the program has other entries than its kind")
    width = whole(data.get("width", 32), "the width of a word", 8, 32)
    require(width in (8, 16, 32), "a word has no width that there is")
    ram = whole(data["ram"], "the size of memory", width // 8, MOST_BYTES)
    require(ram % (width // 8) == 0, "the memory does not consist of words")
    require(kind == "rv32im" or ram * 8 // width < 1 << width - 1, "a word cannot be every address")
    return {"kind": kind, "ram": ram, **_room(data), "width": width}


def _room(data: Mapping[str, Any]) -> dict[str, int]:
    room = {name: whole(data[name], f"the room for {name}", 1, MOST_BYTES) for name in ("input", "output")}
    require(room["output"].bit_count() == 1, "the room for output is no power of two")
    return room


def _other_machine(data: Mapping[str, Any], arrays: Arrays) -> dict[str, Any]:
    entries = {"kind", "ram", "input", "output", "instruction"}
    require(data.keys() == entries, "the machine of the program has other entries")
    kind, ram = (
        text(data["kind"], "the instruction set"),
        whole(data["ram"], "the size of memory", 1, MOST_BYTES),
    )
    require(kind not in ("rv32im", "subleq"), "an instruction set that is known is told again")
    own = instruction_of(kind, ram, data["instruction"], arrays)
    return {"kind": kind, "ram": ram, **_room(data), "width": own.word, "instruction": own}


_NAMES = ("inputs", "outputs")
_MACHINE = ("start_state", "blank", "alphabet", "states", "rules")
_READERS: dict[str, tuple[Any, tuple[str, ...], tuple[str, ...]]] = {
    "turing machine": (_machine, ("tapes", "accept", "reject", *_MACHINE), ()),
    "grid machine": (_grid_machine, _MACHINE, ()),
    "circuit": (circuit_of, _NAMES, tuple(GATES)),
    "function": (function_of, (*_NAMES, "parameters", "result"), tuple(GATES)),
    "learner": (learner_of, (*_NAMES, "bits"), (*GATES, "first")),
    "sequential circuit": (sequential_of, _NAMES, (*GATES, "resets")),
    "program": (_program, ("machine", "entry", "symbols", "source"), ("image",)),
    "rasp program": (rasp_of, ("vocabulary", "length", "causal", "nodes", "output", "names"), ()),
}
