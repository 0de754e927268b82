"""Sources as plain JSON and arrays, so that a saved net knows what it runs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad.circuits.model import Circuit
from tapegrad.errors import BrokenNet, TapegradError
from tapegrad.learners import CircuitLearner, Learner
from tapegrad.lowering.rewriting import Source
from tapegrad.machines.grid import GridMachine, GridRule
from tapegrad.machines.model import Rule, TuringMachine

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Kind:
    """How one kind of source is written and read; large parts go into arrays."""

    type: type
    write: Callable[[Any], tuple[dict[str, Any], Arrays]]
    read: Callable[[Mapping[str, Any], Mapping[str, NDArray[Any]]], Any]


def _write_machine(machine: TuringMachine) -> tuple[dict[str, Any], Arrays]:
    rules = [[q, *read, *r.write, *r.moves, r.state] for (q, read), r in machine.rules.items()]
    return {
        "name": machine.name,
        "tapes": machine.tapes,
        "start_state": machine.start_state,
        "blank": machine.blank,
        "accept": sorted(machine.accept),
        "reject": sorted(machine.reject),
        "alphabet": list(machine.alphabet),
        "states": list(machine.states),
        "rules": rules,
    }, {}


def _read_machine(data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> TuringMachine:
    k = int(data["tapes"])
    rules = {
        (row[0], tuple(row[1 : k + 1])): Rule(
            tuple(row[k + 1 : 2 * k + 1]), tuple(row[2 * k + 1 : 3 * k + 1]), row[3 * k + 1]
        )
        for row in data["rules"]
    }
    return TuringMachine(
        rules,
        data["start_state"],
        data["blank"],
        frozenset(data["accept"]),
        frozenset(data["reject"]),
        data["name"],
        tuple(data["alphabet"]),
        tuple(data["states"]),
        k,
    )


def _write_grid(machine: GridMachine) -> tuple[dict[str, Any], Arrays]:
    return {
        "name": machine.name,
        "start_state": machine.start_state,
        "blank": machine.blank,
        "alphabet": list(machine.alphabet),
        "states": list(machine.states),
        "rules": [[q, read, r.write, r.move, r.state] for (q, read), r in machine.rules.items()],
    }, {}


def _read_grid(data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> GridMachine:
    return GridMachine(
        {(q, read): GridRule(*rest) for q, read, *rest in data["rules"]},
        data["start_state"],
        data["blank"],
        data["name"],
        tuple(data["alphabet"]),
        tuple(data["states"]),
    )


def _write_circuit(circuit: Circuit) -> tuple[dict[str, Any], Arrays]:
    names = {"name": circuit.name, "inputs": list(circuit.inputs), "outputs": list(circuit.outputs)}
    arrays = {field: np.array(getattr(circuit, field)) for field in _CIRCUIT_ARRAYS}
    return names, arrays


def _read_circuit(data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Circuit:
    return Circuit(
        inputs=tuple(data["inputs"]),
        outputs=tuple(data["outputs"]),
        name=data["name"],
        **{field: arrays[field] for field in _CIRCUIT_ARRAYS},
    )


def _write_learner(learner: Learner) -> tuple[dict[str, Any], Arrays]:
    """A learner is saved as its circuit; functions are not saved."""
    data, arrays = _write_circuit(learner.circuit)
    return {**data, "bits": learner.inputs}, {**arrays, "first": np.array(learner.first, np.uint8)}


def _read_learner(data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Learner:
    first = tuple(arrays["first"].tolist())
    return CircuitLearner(_read_circuit(data, arrays), int(data["bits"]), first)


_CIRCUIT_ARRAYS = ("kinds", "left", "right", "output_wires")

KINDS: dict[str, Kind] = {
    "turing machine": Kind(TuringMachine, _write_machine, _read_machine),
    "grid machine": Kind(GridMachine, _write_grid, _read_grid),
    "circuit": Kind(Circuit, _write_circuit, _read_circuit),
    "learner": Kind(Learner, _write_learner, _read_learner),
}


def source_to_json(source: Source) -> tuple[dict[str, Any], Arrays]:
    """The source as JSON, with the arrays that go beside it."""
    for name, kind in KINDS.items():
        if isinstance(source, kind.type):
            data, arrays = kind.write(source)
            return {"kind": name, **data}, arrays
    raise TypeError(f"{type(source).__name__} is no source")


def source_from_json(data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Source:
    """The source again; anything that does not fit is refused."""
    try:
        return KINDS[data["kind"]].read(data, arrays)
    except TapegradError as error:
        raise BrokenNet(f"the saved source contradicts itself: {error}") from error
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise BrokenNet(f"the saved source cannot be read: {type(error).__name__} {error}") from error
