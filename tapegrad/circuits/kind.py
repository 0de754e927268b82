"""Circuits, layered circuits and traced functions as kinds of source."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tapegrad.circuits.formats import FORMATS
from tapegrad.circuits.layered import LayeredCircuit
from tapegrad.circuits.library import READY, ready
from tapegrad.circuits.model import Circuit
from tapegrad.circuits.sampler import random_circuit
from tapegrad.circuits.tracer import Traced
from tapegrad.circuits.types import layout_from_json, layout_to_json
from tapegrad.circuits.view import BUS, CircuitView, LayersView, state_json, state_text, summary
from tapegrad.errors import InputError
from tapegrad.source import Arrays, Inputs, Lowering, Option, Ready, ReadyBy, Rewriting, SourceKind

EXHAUSTIVE_BITS = 20
"""Circuits of up to this many inputs are checked on all of them."""

RANDOM_PATTERNS = 4096
BATCH = 1 << 12
PATTERNS_ONE_BY_ONE = 64
"""A circuit that runs as a machine takes its inputs one after the other, so fewer are sampled."""

PATTERNS_OF_FUNCTIONS = 1 << 12
"""A function is called once for each pattern."""

_ARRAYS = {
    Circuit: ("kinds", "left", "right", "output_wires"),
    LayeredCircuit: ("kinds", "left", "right", "wires", "bounds"),
}
T = TypeVar("T", Circuit, LayeredCircuit)


def circuit_to_json(circuit: Circuit | LayeredCircuit) -> tuple[dict[str, Any], Arrays]:
    """Names as JSON, gates as arrays."""
    names = {"name": circuit.name, "inputs": list(circuit.inputs), "outputs": list(circuit.outputs)}
    return names, {field: np.array(getattr(circuit, field)) for field in _ARRAYS[type(circuit)]}


def circuit_from_json(data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Circuit:
    """The circuit again."""
    return _circuit(Circuit, data, arrays)


def _circuit(kind: type[T], data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> T:
    fields: dict[str, Any] = {field: arrays[field] for field in _ARRAYS[kind]}
    return kind(inputs=tuple(data["inputs"]), outputs=tuple(data["outputs"]), name=data["name"], **fields)


def _function_to_json(traced: Traced) -> tuple[dict[str, Any], Arrays]:
    """The circuit and the types; the function's own code is not saved."""
    data, arrays = circuit_to_json(traced.circuit)
    types = {
        "parameters": {name: layout_to_json(layout) for name, layout in traced.inputs.items()},
        "result": layout_to_json(traced.output),
    }
    return {**data, **types}, arrays


def _function_from_json(data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Traced:
    parameters = {name: layout_from_json(layout) for name, layout in data["parameters"].items()}
    return Traced(None, circuit_from_json(data, arrays), parameters, layout_from_json(data["result"]))


def function_circuit(traced: Traced) -> Rewriting:
    """A traced function as its circuit; both have bits as states."""
    return Rewriting("gates", traced, traced.circuit, lambda bits: bits, lambda bits: bits)


def parse_bits(source: Circuit | Traced, texts: Sequence[str]) -> tuple[NDArray[np.uint8]]:
    """Bits in order (`0110`), or `name=number` for each input or bus."""
    circuit = source.circuit if isinstance(source, Traced) else source
    if any("=" in text for text in texts):
        return (_named(circuit, texts),)
    digits = "".join(texts).replace("_", "").replace(" ", "")
    if set(digits) - {"0", "1"}:
        raise InputError(
            f"{''.join(texts)!r} is not a row of bits",
            advice="Write the bits in order, as in 0110, or name=number for each input.",
        )
    if len(digits) != len(circuit.inputs):
        raise InputError(
            f"{len(digits)} bits were given for the {len(circuit.inputs)} inputs of {circuit.name!r}",
            advice=f"Its inputs are {', '.join(_widths(circuit.inputs))}.",
        )
    return (np.array([[int(digit) for digit in digits]], np.uint8).reshape(1, -1),)


def _widths(names: Sequence[str]) -> dict[str, int]:
    """Every input or bus with the number of its bits."""
    widths: dict[str, int] = {}
    for name in names:
        bus = BUS.fullmatch(name)
        key = bus[1] if bus else name
        widths[key] = max(widths.get(key, 0), int(bus[2]) + 1 if bus else 1)
    return widths


def _named(circuit: Circuit, texts: Sequence[str]) -> NDArray[np.uint8]:
    widths = _widths(circuit.inputs)
    values: dict[str, int] = {}
    for text in texts:
        name, _, number = text.partition("=")
        name = name.strip()
        if name not in widths:
            raise InputError(f"there is no input {name!r}", advice=f"The inputs are {', '.join(widths)}.")
        try:
            values[name] = int(number, 0)
        except ValueError:
            raise InputError(f"{number!r} is not a number", where=f"input {text!r}") from None
        if not -(1 << widths[name] - 1) <= values[name] < 1 << widths[name]:
            raise InputError(f"{values[name]} does not fit {widths[name]} bits", where=f"input {name!r}")
    if missing := widths.keys() - values.keys():
        raise InputError(f"no value for {', '.join(sorted(missing))}", advice="Give every input.")
    row = []
    for name in circuit.inputs:
        bus = BUS.fullmatch(name)
        row.append(values[bus[1]] >> int(bus[2]) & 1 if bus else values[name] & 1)
    return np.array([row], np.uint8)


def _default_inputs(circuit: Circuit, random: np.random.Generator, in_batches: bool) -> tuple[Inputs, bool]:
    most = 1 << EXHAUSTIVE_BITS if in_batches else PATTERNS_ONE_BY_ONE
    return _patterns(len(circuit.inputs), most, in_batches, random)


def _default_arguments(traced: Traced, random: np.random.Generator, in_batches: bool) -> tuple[Inputs, bool]:
    most = PATTERNS_OF_FUNCTIONS if in_batches else PATTERNS_ONE_BY_ONE
    return _patterns(len(traced.circuit.inputs), most, in_batches, random)


def _patterns(bits: int, most: int, in_batches: bool, random: np.random.Generator) -> tuple[Inputs, bool]:
    """All patterns of a few bits, or a sample."""
    if exhaustive := 1 << bits <= most:
        batches = _every_pattern(bits)
    else:
        batches = iter([random.integers(0, 2, (min(most, RANDOM_PATTERNS), bits), np.uint8)])
    if not in_batches:
        batches = (row[None] for batch in batches for row in batch)
    return ((batch,) for batch in batches), exhaustive


def _every_pattern(bits: int) -> Iterator[NDArray[np.uint8]]:
    for first in range(0, 1 << bits, BATCH):
        numbers = np.arange(first, min(first + BATCH, 1 << bits))[:, None]
        yield (numbers >> np.arange(bits) & 1).astype(np.uint8)


CIRCUIT = SourceKind(
    name="circuit",
    type=Circuit,
    to_json=circuit_to_json,
    from_json=circuit_from_json,
    formats=FORMATS,
    ready=ReadyBy(READY, lambda name, entry: Ready(entry.summary, lambda: ready(name))),
    parse_input=parse_bits,
    input_needed="Write its bits in order, as in 0110, or name=number for each input.",
    default_inputs=_default_inputs,
    sample=random_circuit,
    describe=summary,
    state_json=state_json,
    state_text=state_text,
    view=CircuitView,
    lowerings=(
        Lowering(
            "turing machine",
            "tapegrad.lowering.circuit_machine:circuit_machine",
            {
                "machine": Option("straight-line", "a machine made for the circuit, or the fixed evaluator"),
                "tapes": Option(1, "tapes of the straight-line machine: more of them make it quicker"),
                "carried": Option(4, "bits that the straight-line machine carries in its state"),
            },
        ),
    ),
)

LAYERED_CIRCUIT = SourceKind(
    name="layered circuit",
    type=LayeredCircuit,
    to_json=circuit_to_json,
    from_json=partial(_circuit, LayeredCircuit),
    view=LayersView,
)

FUNCTION = SourceKind(
    name="function",
    type=Traced,
    to_json=_function_to_json,
    from_json=_function_from_json,
    parse_input=parse_bits,
    input_needed="Write its bits in order, as in 0110, or name=number for each parameter.",
    default_inputs=_default_arguments,
    describe=lambda traced: summary(traced.circuit),
    state_json=lambda traced, bits: state_json(traced.circuit, bits),
    state_text=lambda traced, bits: state_text(traced.circuit, bits),
    view=lambda traced: CircuitView(traced.circuit),
    lowerings=(Lowering("circuit", "tapegrad.circuits.kind:function_circuit"),),
)
