"""Sources as the checker sees them: plain models, read from a folder with everything in bounds.

The checker has its own, so that it depends on the file format alone. Each is in the one form in which sources
are saved (the start state first, the blank first, nothing twice); any other is refused, because a reader that
tidies it up would run something else than what was checked. What is read is no larger than the files are, so
a loop over a model is bounded by them.
"""

import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.folder import Arrays, Folder, NotProved, require
from tapegrad_check.rasp_source import Rasp, rasp_of

OPERANDS = {0: 0, 15: 0, 3: 1, 12: 1, 8: 2, 6: 2, 14: 2, 1: 2, 9: 2, 7: 2}
"""How many operands each kind of gate looks at. Bit 2a + b of a kind is its value for operands a, b."""

ARITY = np.array([OPERANDS.get(kind, -1) for kind in range(256)], np.int8)
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


@dataclass(frozen=True, eq=False)
class Circuit:
    """Wires are the inputs, then one for each gate; the operands of a gate have smaller numbers."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    kinds: NDArray[np.uint8]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    output_wires: NDArray[np.int32]
    name: str = "circuit"


@dataclass(frozen=True, eq=False)
class Function:
    """A function over bits: its circuit, and how its arguments and result lie on the wires."""

    circuit: Circuit
    types: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Learner:
    """Inputs of the circuit: memory, x, a random bit, the guess; outputs: answer, finished, new memory."""

    circuit: Circuit
    bits: int
    first: tuple[int, ...]


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
    name: str = "program"


Model: TypeAlias = Machine | GridMachine | Circuit | Function | Learner | Program | Rasp


def source_of(folder: Folder) -> Model:
    """The source that the folder says its net is of."""
    return model_of(folder.config["source"], folder.part("source."))


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
        data = {"kind": "program", "name": model.name, "machine": machine, "entry": model.entry}
        data |= {"symbols": dict(model.symbols), "source": model.source}
        return data, {"image": np.frombuffer(model.image, np.uint8)}
    if isinstance(model, Rasp):
        return dict(model.data), {}
    circuit = model if isinstance(model, Circuit) else model.circuit
    data = {"name": circuit.name, "inputs": list(circuit.inputs), "outputs": list(circuit.outputs)}
    arrays: Arrays = {name: getattr(circuit, name) for name in _GATES}
    if isinstance(model, Learner):
        first = np.array(model.first, np.uint8)
        return {"kind": "learner", **data, "bits": model.bits}, {**arrays, "first": first}
    if isinstance(model, Function):
        return {"kind": "function", **data, **model.types}, arrays
    return {"kind": "circuit", **data}, arrays


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
    for name, array in sorted(arrays.items()):
        plain = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        total.update(json.dumps([name, plain.dtype.str, list(plain.shape)]).encode())
        total.update(plain.tobytes())
    return total.hexdigest()


# Readers of single values, which the checkers of the targets use as well.


def text(value: Any, what: str) -> str:
    """A string."""
    require(isinstance(value, str), f"{what} is not text")
    return value


def texts(value: Any, what: str) -> tuple[str, ...]:
    """A list of different strings."""
    require(isinstance(value, list) and all(isinstance(one, str) for one in value), f"{what} are not texts")
    require(len(set(value)) == len(value), f"two of {what} are the same")
    return tuple(value)


def whole(value: Any, what: str, least: int = 0, most: int = 1 << 62) -> int:
    """A whole number in this range; true and false are none."""
    require(type(value) is int and least <= value <= most, f"{what} is not a whole number in its range")
    return value


def number(value: Any, what: str) -> float:
    """A finite number, as JSON has it."""
    fits = type(value) is float or (type(value) is int and abs(value) < 1 << 1000)
    require(fits and math.isfinite(value), f"{what} is not a finite number")
    return float(value)


def array(arrays: Arrays, name: str, dtype: Any, shape: Sequence[int | None]) -> NDArray[Any]:
    """An array of this type and shape; None stands for any length."""
    require(name in arrays, f"the array {name!r} is missing")
    found = arrays[name]
    require(found.dtype == np.dtype(dtype), f"the array {name!r} is not of type {np.dtype(dtype)}")
    fits = found.ndim == len(shape) and all(n in (None, m) for n, m in zip(shape, found.shape, strict=True))
    require(fits, f"the array {name!r} has another shape than it should")
    return found


# Readers of each kind.

_GATES = ("kinds", "left", "right", "output_wires")


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


def _circuit(data: Mapping[str, Any], arrays: Arrays) -> Circuit:
    inputs, outputs = texts(data["inputs"], "the inputs"), texts(data["outputs"], "the outputs")
    kinds = array(arrays, "kinds", np.uint8, (None,))
    left, right = (array(arrays, name, np.int32, kinds.shape) for name in ("left", "right"))
    output_wires = array(arrays, "output_wires", np.int32, (len(outputs),))
    arity = ARITY[kinds]
    require((arity >= 0).all(), "a gate is of no known kind")
    own = np.arange(len(inputs), len(inputs) + len(kinds))
    for operand, used in ((left, arity >= 1), (right, arity >= 2)):
        earlier = (operand >= 0) & (operand < own)
        require(np.where(used, earlier, operand == 0).all(), "a gate reads a wire that is not before it")
    wires = len(inputs) + len(kinds)
    require(((output_wires >= 0) & (output_wires < wires)).all(), "an output is no wire")
    return Circuit(inputs, outputs, kinds, left, right, output_wires, data["name"])


def _function(data: Mapping[str, Any], arrays: Arrays) -> Function:
    circuit = _circuit(data, arrays)
    parameters, result = data["parameters"], data["result"]
    require(isinstance(parameters, dict), "the parameters have no names")
    bits = chain.from_iterable(_bits(of, name, 1) for name, of in parameters.items())
    require(_same_names(bits, circuit.inputs), "the inputs are not the bits of the parameters")
    fields = isinstance(result, dict) and "fields" in result
    bits = _bits(result, "" if fields else "out", 1)
    require(_same_names(bits, circuit.outputs), "the outputs are not the bits of the result")
    return Function(circuit, {"parameters": parameters, "result": result})


def _same_names(found: Iterator[str], wanted: tuple[str, ...]) -> bool:
    """Whether these are the names, looking at no more of them than there should be."""
    return tuple(islice(found, len(wanted) + 1)) == wanted


def _bits(layout: Any, name: str, depth: int) -> Iterator[str]:
    """The names of the bits of a value of some type: a bit, a number, or a structure of them. Structures
    without any bits are refused, so that what is looked at is no more than the names that come out."""
    require(depth < 100, "a type is nested too deeply")
    if isinstance(layout, str):
        number = re.fullmatch(r"U?Int\(([1-9][0-9]{0,5})\)", layout)
        require(layout == "Bit" or number, "a type is neither a bit nor a number")
        yield from (f"{name}[{i}]" for i in range(int(number[1]))) if number else [name]
        return
    require(isinstance(layout, dict), "a type is neither a text nor a structure")
    parts: Iterable[tuple[str, Any]]
    if layout.keys() == {"array", "length"}:
        length = whole(layout["length"], "the length of an array", 1)
        parts = ((f"{name}[{i}]", layout["array"]) for i in range(length))
    elif layout.keys() == {"fields"} and isinstance(layout["fields"], dict):
        parts = ((f"{name}.{key}" if name else key, part) for key, part in layout["fields"].items())
    else:
        kinds = set(layout) & {"tuple", "list"}
        require(len(layout) == len(kinds) == 1, "a type is of an unknown structure")
        items = layout[kinds.pop()]
        require(isinstance(items, list), "a type is of an unknown structure")
        parts = ((f"{name}[{i}]", part) for i, part in enumerate(items))
    for part_name, part in parts:
        bits = _bits(part, part_name, depth + 1)
        first = next(bits, None)
        require(first is not None, "a part of a type has no bits")
        yield from chain([first], bits)  # type: ignore[list-item]


def _learner(data: Mapping[str, Any], arrays: Arrays) -> Learner:
    circuit = _circuit(data, arrays)
    cells = len(circuit.outputs) - 2
    bits = whole(data["bits"], "the number of bits of a sample", 0, len(circuit.inputs))
    require(cells >= 0 and len(circuit.inputs) == cells + bits + 2, "the circuit is not that of a learner")
    first = array(arrays, "first", np.uint8, (cells,))
    require((first <= 1).all(), "the first memory is not made of bits")
    return Learner(circuit, bits, tuple(first.tolist()))


def _program(data: Mapping[str, Any], arrays: Arrays) -> Program:
    sizes = machine_of(data["machine"])
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


def machine_of(data: Any) -> dict[str, Any]:
    """A machine with random access: its kind and its sizes, all in their ranges."""
    require(isinstance(data, dict), "the program has no machine")
    kind = data.get("kind")
    require(kind in ("rv32im", "subleq"), "the machine of the program is of no known kind")
    entries = {"kind", "ram", "input", "output"} | ({"width"} if kind == "subleq" else set())
    require(data.keys() == entries, "the machine of the program has other entries than its kind")
    width = whole(data.get("width", 32), "the width of a word", 8, 32)
    require(width in (8, 16, 32), "a word has no width that there is")
    ram = whole(data["ram"], "the size of memory", width // 8, MOST_BYTES)
    require(ram % (width // 8) == 0, "the memory does not consist of words")
    require(kind == "rv32im" or ram * 8 // width < 1 << width - 1, "a word cannot be every address")
    room = {name: whole(data[name], f"the room for {name}", 1, MOST_BYTES) for name in ("input", "output")}
    require(room["output"].bit_count() == 1, "the room for output is no power of two")
    return {"kind": kind, "ram": ram, **room, "width": width}


_NAMES = ("inputs", "outputs")
_MACHINE = ("start_state", "blank", "alphabet", "states", "rules")
_READERS: dict[str, tuple[Any, tuple[str, ...], tuple[str, ...]]] = {
    "turing machine": (_machine, ("tapes", "accept", "reject", *_MACHINE), ()),
    "grid machine": (_grid_machine, _MACHINE, ()),
    "circuit": (_circuit, _NAMES, _GATES),
    "function": (_function, (*_NAMES, "parameters", "result"), _GATES),
    "learner": (_learner, (*_NAMES, "bits"), (*_GATES, "first")),
    "program": (_program, ("machine", "entry", "symbols", "source"), ("image",)),
    "rasp program": (rasp_of, ("vocabulary", "length", "causal", "nodes", "output", "names"), ()),
}
