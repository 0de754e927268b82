"""Circuits as the checker sees them, and what is made of them: functions, learners, circuits with state."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.fields import array, texts, whole
from tapegrad_check.folder import Arrays, require

OPERANDS = {0: 0, 15: 0, 3: 1, 12: 1, 8: 2, 6: 2, 14: 2, 1: 2, 9: 2, 7: 2}
"""How many operands each kind of gate looks at. Bit 2a + b of a kind is its value for operands a, b."""

ARITY = np.array([OPERANDS.get(kind, -1) for kind in range(256)], np.int8)

GATES = {"kinds": np.uint8, "left": np.int32, "right": np.int32, "output_wires": np.int32}
"""The arrays of a circuit, with their types."""
ANY = 2
"""The reset of a latch that is left open."""


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


@dataclass(frozen=True, eq=False)
class Sequential:
    """A circuit with state: the last inputs of its logic are latches, and the last outputs what they become.
    Each latch is reset to 0, to 1 or to ANY."""

    logic: Circuit
    resets: tuple[int, ...]

    @property
    def inputs(self) -> tuple[str, ...]:
        """Inputs, without latches."""
        return self.logic.inputs[: len(self.logic.inputs) - len(self.resets)]

    @property
    def latches(self) -> tuple[str, ...]:
        """Latches."""
        return self.logic.inputs[len(self.inputs) :]

    @property
    def outputs(self) -> tuple[str, ...]:
        """Outputs, without what latches become."""
        return self.logic.outputs[: len(self.logic.outputs) - len(self.resets)]


def circuit_to_json(model: Circuit | Function | Learner | Sequential) -> tuple[dict[str, Any], Arrays]:
    """The form in which it is saved."""
    circuit = model.logic if isinstance(model, Sequential) else model
    circuit = circuit if isinstance(circuit, Circuit) else circuit.circuit
    data = {"name": circuit.name, "inputs": list(circuit.inputs), "outputs": list(circuit.outputs)}
    arrays: Arrays = {name: getattr(circuit, name) for name in GATES}
    if isinstance(model, Sequential):
        return {"kind": "sequential circuit", **data}, {**arrays, "resets": np.array(model.resets, np.uint8)}
    if isinstance(model, Learner):
        first = np.array(model.first, np.uint8)
        return {"kind": "learner", **data, "bits": model.bits}, {**arrays, "first": first}
    if isinstance(model, Function):
        return {"kind": "function", **data, **model.types}, arrays
    return {"kind": "circuit", **data}, arrays


# Readers.


def arrays_of_lists(lists: Any, types: Mapping[str, Any]) -> Arrays:
    """Arrays of these types that a net has as lists of whole numbers."""
    require(isinstance(lists, dict) and lists.keys() == types.keys(), "the circuit has other arrays")
    arrays: Arrays = {}
    for name, kind in types.items():
        require(isinstance(lists[name], list), f"the array {name!r} of the circuit is not a list")
        most = int(np.iinfo(kind).max)
        found = [whole(entry, f"an entry of {name!r}", 0, most) for entry in lists[name]]
        arrays[name] = np.array(found, kind)
    return arrays


def circuit_of(data: Mapping[str, Any], arrays: Arrays) -> Circuit:
    """A circuit, its gates in an order in which each reads earlier wires."""
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


def function_of(data: Mapping[str, Any], arrays: Arrays) -> Function:
    """A function, whose types name the wires."""
    circuit = circuit_of(data, arrays)
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


def _width(scalar: str) -> int | None:
    """The bits of a number of this type: of an integer, before and behind the point, or of the exponent and
    the mantissa of a float, beside its sign. A bit has no number of bits."""
    if scalar == "Bit":
        return None
    whole = re.fullmatch(r"U?Int\(([1-9][0-9]{0,5})\)", scalar)
    parts = re.fullmatch(r"(U?Fixed|Float)\((0|[1-9][0-9]?), (0|[1-9][0-9]?)\)", scalar)
    require(whole or parts, "a type is neither a bit nor a number")
    if whole:
        return int(whole[1])
    assert parts is not None
    return int(parts[2]) + int(parts[3]) + (parts[1] == "Float")


def _bits(layout: Any, name: str, depth: int) -> Iterator[str]:
    """The names of the bits of a value of some type: a bit, a number, or a structure of them. Structures
    without any bits are refused, so that what is looked at is no more than the names that come out."""
    require(depth < 100, "a type is nested too deeply")
    if isinstance(layout, str):
        width = _width(layout)
        yield from [name] if width is None else (f"{name}[{i}]" for i in range(width))
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


def learner_of(data: Mapping[str, Any], arrays: Arrays) -> Learner:
    """A learner with its first memory."""
    circuit = circuit_of(data, arrays)
    cells = len(circuit.outputs) - 2
    bits = whole(data["bits"], "the number of bits of a sample", 0, len(circuit.inputs))
    require(cells >= 0 and len(circuit.inputs) == cells + bits + 2, "the circuit is not that of a learner")
    first = array(arrays, "first", np.uint8, (cells,))
    require((first <= 1).all(), "the first memory is not made of bits")
    return Learner(circuit, bits, tuple(first.tolist()))


def sequential_of(data: Mapping[str, Any], arrays: Arrays) -> Sequential:
    """A circuit with state."""
    logic = circuit_of(data, arrays)
    resets = array(arrays, "resets", np.uint8, (None,))
    fits = len(resets) <= min(len(logic.inputs), len(logic.outputs))
    require(fits and (resets <= ANY).all(), "the resets are not those of latches")
    return Sequential(logic, tuple(resets.tolist()))
