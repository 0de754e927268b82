"""Circuits written as BLIF: one `.names` for each gate."""

import re
from collections.abc import Iterable

from tapegrad.circuits.model import ARITY, Circuit, Gate
from tapegrad.errors import Refused
from tapegrad.formats import quoted

_COVERS = {
    Gate.FALSE: "",
    Gate.TRUE: "1\n",
    Gate.ID: "1 1\n",
    Gate.NOT: "0 1\n",
    Gate.AND: "11 1\n",
    Gate.NAND: "11 0\n",
    Gate.OR: "00 0\n",
    Gate.NOR: "00 1\n",
    Gate.XOR: "10 1\n01 1\n",
    Gate.XNOR: "11 1\n00 1\n",
}
_NAME = re.compile(r"[^\s#\\.][^\s#\\]*")
_LINE = 100


def write(circuit: Circuit) -> str:
    """The circuit as BLIF. The first output on a gate gives its net the name; an output on an input, or
    a further one on the same gate, is a buffer. Inputs and outputs share their names in BLIF."""
    _check_names(circuit)
    first = len(circuit.inputs)
    stem = _unused_stem((*circuit.inputs, *circuit.outputs))
    names = [*circuit.inputs, *(f"{stem}{gate}" for gate in range(circuit.size))]
    buffers = []
    for name, wire in zip(circuit.outputs, circuit.output_wires.tolist(), strict=True):
        if wire >= first and names[wire].startswith(stem):
            names[wire] = name
        elif names[wire] != name:
            buffers.append((wire, name))

    model = re.sub(r"[\s#\\]+", "_", circuit.name) or "circuit"
    parts = [f".model {model}\n", _listed(".inputs", circuit.inputs), _listed(".outputs", circuit.outputs)]
    rows = zip(circuit.kinds.tolist(), circuit.left.tolist(), circuit.right.tolist(), strict=True)
    for gate, (kind, *operands) in enumerate(rows):
        nets = [names[wire] for wire in operands[: ARITY[kind]]]
        parts.append(f".names {' '.join([*nets, names[first + gate]])}\n{_COVERS[Gate(kind)]}")
    parts += [f".names {names[wire]} {name}\n1 1\n" for wire, name in buffers]
    return "".join([*parts, ".end\n"])


def _check_names(circuit: Circuit) -> None:
    for name in (*circuit.inputs, *circuit.outputs):
        if not (_NAME.fullmatch(name) and name.isprintable()):
            raise Refused(
                f"the name {quoted(name)} cannot be written to BLIF",
                advice="Names there have no space, # or \\, and no dot in front. Rename it, or write AIGER.",
            )
    wire_of = {name: wire for wire, name in enumerate(circuit.inputs)}
    for name, wire in zip(circuit.outputs, circuit.output_wires.tolist(), strict=True):
        if wire_of.get(name, wire) != wire:
            raise Refused(
                f"an input and an output are both called {quoted(name)}, which BLIF takes for the same net",
                advice="Rename one of them, or write AIGER.",
            )


def _unused_stem(names: Iterable[str]) -> str:
    """A beginning that no name has."""
    stem, taken = "n", tuple(names)
    while any(name.startswith(stem) for name in taken):
        stem += "_"
    return stem


def _listed(head: str, names: Iterable[str]) -> str:
    lines = [head]
    for name in names:
        if len(lines[-1]) + len(name) > _LINE:
            lines[-1] += " \\"
            lines.append("")
        lines[-1] += f" {name}"
    return "\n".join(lines) + "\n"
