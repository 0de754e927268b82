"""A circuit in a few lines of text."""

import re
from itertools import groupby

import numpy as np

from tapegrad.circuits.layered import layered_widths
from tapegrad.circuits.model import Circuit, Gate

_BIT = re.compile(r"(.*)\[([0-9]+)\]")
_MOST_SHOWN = 8


def summary(circuit: Circuit) -> str:
    """Inputs, outputs, gates by kind, depth and width."""
    counts = [(int(np.sum(circuit.kinds == kind)), kind.name) for kind in Gate]
    kinds = ", ".join(f"{count:,} {name}" for count, name in sorted(counts, reverse=True) if count)
    idle = circuit.size - int(circuit.needed()[len(circuit.inputs) :].sum())
    widths = layered_widths(circuit)
    rows = [
        ("inputs", f"{len(circuit.inputs):,}  {_names(circuit.inputs)}"),
        ("outputs", f"{len(circuit.outputs):,}  {_names(circuit.outputs)}"),
        ("gates", f"{circuit.size:,}  {kinds}" + (f"; {idle:,} reach no output" if idle else "")),
        ("depth", f"{circuit.depth:,}"),
        ("width", f"{int(widths.max()):,} in layers, {int(widths[1:].sum()):,} gates with identities"),
    ]
    return "\n".join([f"circuit {circuit.name}", *(f"  {head:8} {text}".rstrip() for head, text in rows)])


def _names(names: tuple[str, ...]) -> str:
    """Names in a row, the bits of a value as one: a[0], a[1], a[2] become a[0..2]."""
    shown: list[str] = []
    start = 0
    for stem, group in groupby(names, lambda name: match[1] if (match := _BIT.fullmatch(name)) else None):
        members = names[start : (start := start + len(list(group)))]
        bits = [match[2] for name in members if (match := _BIT.fullmatch(name))]
        if stem is not None and bits == [str(bit) for bit in range(len(bits))] and len(bits) > 1:
            shown.append(f"{stem}[0..{len(bits) - 1}]")
        else:
            shown += members
    if len(shown) > _MOST_SHOWN:
        shown = [*shown[: _MOST_SHOWN - 1], "...", shown[-1]]
    return ", ".join(shown)
