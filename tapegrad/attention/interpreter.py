"""Attention programs in plain Python, written to be read: what the weights are compared with. No floats."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tapegrad.attention.program import AttentionProgram, Bit, Head, Map, Side
from tapegrad.circuits.model import Circuit
from tapegrad.errors import SourceError

Bits = Mapping[Bit, int]


def run(program: AttentionProgram, first: Bits, tokens: Sequence[Bits]) -> Iterator[dict[Bit, int]]:
    """The carried bits before the first step and after every other, until the program ends."""
    carried, past = dict(first), []
    while True:
        yield carried
        if any(carried[bit] for bit in program.ends):
            return
        known = dict(carried)
        past.append(known)
        for layer in program.layers:
            if isinstance(layer, Map):
                values = evaluated(layer.circuit, [known[bit] for bit in layer.circuit.inputs])
                known.update(zip(layer.circuit.outputs, values, strict=True))
            else:
                known.update(looked_up(layer, known, past if layer.over == "steps" else tokens))
        carried = {bit: known[becomes] for bit, becomes in program.output.items()}


def looked_up(head: Head, known: Bits, places: Sequence[Bits]) -> Iterable[tuple[Bit, int]]:
    """The new bits of a head."""
    fits = [
        place
        for place in places
        if all(_value(ask, known) == _value(answer, place) for ask, answer in head.compared)
    ]
    if head.over == "input" and len(fits) > 1:
        raise SourceError(f"{head.name!r} finds {len(fits)} tokens, and only one may fit")
    yield head.found, int(bool(fits))
    for there, here in head.copies:
        yield here, fits[-1][there] if fits else 0


def evaluated(circuit: Circuit, inputs: Sequence[int]) -> list[int]:
    """The outputs of a circuit, gate by gate: bit 2a + b of a gate's kind is its value for operands a, b."""
    wires = list(inputs)
    for kind, a, b in zip(circuit.kinds.tolist(), circuit.left.tolist(), circuit.right.tolist(), strict=True):
        wires.append(kind >> (2 * wires[a] + wires[b] if wires else 0) & 1)
    return [wires[wire] for wire in circuit.output_wires.tolist()]


def _value(side: Side, bits: Bits) -> int:
    return bits[side] if isinstance(side, str) else side
