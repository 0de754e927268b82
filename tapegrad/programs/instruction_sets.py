"""The instruction sets that are known: those of the library, and those that a user has registered."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from tapegrad.circuits.model import GATES
from tapegrad.errors import InputError, SourceError
from tapegrad.programs.model import Machine
from tapegrad.programs.recording import Recording, machine_of, record
from tapegrad.programs.rv32 import RV32
from tapegrad.programs.subleq import Subleq
from tapegrad.source import Arrays

LIBRARY: Mapping[str, type[Machine]] = {machine.kind: machine for machine in (RV32, Subleq)}
_registered: dict[str, type[Machine]] = {}


def register(machine: type[Machine]) -> None:
    """Adds an instruction set, for this process."""
    kind = getattr(machine, "kind", None)
    if not isinstance(kind, str) or not kind or not getattr(machine, "traps", ()):
        raise InputError(
            f"the instruction set {machine.__name__} has no name or no end",
            advice='Give the class `kind = "..."`, and `traps`, what can stop a program, its end first.',
        )
    if kind in LIBRARY or (kind in _registered and _registered[kind] is not machine):
        raise InputError(f"there is an instruction set {kind!r} already")
    taken = {"pc", "trap", "copied", "taken", "written", "ram", "x", "input", "output"} & set(machine.extra)
    if taken:
        raise InputError(
            f"{', '.join(sorted(taken))}: every machine has these",
            advice="Give further registers and memories other names.",
        )
    _registered[kind] = machine


def as_saved(machine: Machine) -> Machine:
    """The machine as it comes out of a folder: what is made of its gates is the same before and after."""
    if machine.kind in LIBRARY:
        return machine
    return machine_of(record(machine))(machine.ram, machine.input, machine.output)


def machine_to_json(machine: Machine) -> tuple[dict[str, Any], Arrays]:
    """A machine by name and sizes; of one that is not in the library, also what its instruction does."""
    data: dict[str, Any] = {"kind": machine.kind, **asdict(machine)}
    if machine.kind in LIBRARY:
        return data, {}
    recording = record(machine)
    return data | {"instruction": recording.form.to_json()}, recording.arrays()


def machine_from_json(data: Mapping[str, Any], arrays: Mapping[str, Any]) -> Machine:
    """The machine again. A registered instruction set is taken if its instruction is the same."""
    sizes = dict(data)
    kind, instruction = str(sizes.pop("kind")), sizes.pop("instruction", None)
    whole = {name: int(size) for name, size in sizes.items()}
    if instruction is None:
        if kind not in LIBRARY:
            raise SourceError(f"there is no instruction set {kind!r}")
        return LIBRARY[kind](**whole)
    recording = Recording.of_json(kind, whole["ram"], instruction, {name: arrays[name] for name in GATES})
    known = _registered.get(kind)
    if known is not None and record(machine := known(**whole)) == recording:
        return machine
    return machine_of(recording)(*(whole[name] for name in ("ram", "input", "output")))
