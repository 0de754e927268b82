"""Back from a compact ReLU network to a circuit, by looking at its weights alone.

A unit is a bit if it is one for all values of the bits that it reads. What it reads may be bits that are not
independent, a XOR reads a, b and their AND; then it is one once some of them are opened, and traced back to
the bits that they depend on. A unit that is no bit is opened by whoever reads it. No recipe needs to be
recognised, so this works for any whole weights that compute gates of up to six inputs in this way.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from tapegrad.circuits.builder import CircuitBuilder, Wire
from tapegrad.circuits.model import Circuit
from tapegrad.errors import Refused
from tapegrad.targets.relu.compact.net import CompactNet

MOST_LEAVES, LEVELS = 6, 4


class _Traced(NamedTuple):
    """A unit as a function of bits: row r of its values is for leaf i being bit i of r."""

    leaves: tuple[int, ...]
    values: Int[np.ndarray, " rows"]


def decompiled(net: CompactNet, name: str) -> Circuit:
    """The circuit that a compact net computes."""
    make, wiring, units = CircuitBuilder(simplify=True), net.wiring, len(net.holds)
    numbers = np.concatenate([wiring.values, wiring.biases])
    if (numbers != np.rint(numbers)).any():
        raise Refused("a weight or a bias of the network is no whole number")
    wires: dict[int, Wire] = {place: make.input(given) for place, given in enumerate(net.input_names)}
    traced: dict[int, _Traced] = {}
    copies: dict[int, int] = {}
    """Units that hand a bit on to the next layer, and the bit: it must be known that they are the same."""
    biases = wiring.biases.astype(np.int64).tolist()
    for unit, bias in enumerate(biases[:units]):
        place = wiring.inputs + unit
        reads = [(copies.get(read, read), int(weight)) for read, weight in wiring.reads(unit)]
        if bias == 0 and len(reads) == 1 and reads[0][1] == 1 and reads[0][0] in wires:
            copies[place], wires[place] = reads[0][0], wires[reads[0][0]]
            continue
        for found in _ways(reads, bias, wires, traced):
            if found.values.max() <= 1:
                wires[place] = _gate(make, found.values, [wires[leaf] for leaf in found.leaves])
                break
        else:
            found = next(_ways(reads, bias, wires, traced), None)
        if found is None:
            raise Refused(f"unit {unit} depends on more than {MOST_LEAVES} bits, so it is part of no gate")
        traced[place] = found
    for output, (name_of, bias) in enumerate(zip(net.output_names, biases[units:], strict=True)):
        reads = wiring.reads(units + output)
        if len(reads) > 1:
            raise Refused("an output of the network reads more than one value")
        place, weight = reads[0] if reads else (0, 0.0)
        low, high = bias > 0, bias + weight > 0
        if low == high:
            make.output(name_of, make.constant(low))
        elif place not in wires:
            raise Refused("an output of the network reads a value that is no bit")
        else:
            wire = wires[place]
            make.output(name_of, wire if high else make.not_(wire))
    return make.circuit(name)


def _ways(
    reads: Sequence[tuple[int, int]], bias: int, bits: dict[int, Wire], traced: dict[int, _Traced]
) -> Iterator[_Traced]:
    """A unit over different bits that determine it."""
    for leaves in _frontiers({place for place, _ in reads}, bits, traced):
        if len(leaves) > MOST_LEAVES:
            continue
        rows = np.arange(1 << len(leaves))
        known = {leaf: rows >> i & 1 for i, leaf in enumerate(leaves)}
        total = np.full(len(rows), bias)
        for place, weight in reads:
            total += weight * _value(place, known, traced)
        yield _Traced(leaves, np.maximum(total, 0))


def _frontiers(
    places: set[int], bits: dict[int, Wire], traced: dict[int, _Traced]
) -> Iterator[tuple[int, ...]]:
    """What is read, those opened that are no bits; then with those opened that depend on nothing but the
    others; then with all opened that can be, level by level, a few times."""
    leaves = {leaf for place in places for leaf in ((place,) if place in bits else traced[place].leaves)}
    yield tuple(sorted(leaves))
    inner = {place for place in leaves & traced.keys() if leaves - {place} >= set(traced[place].leaves)}
    yield tuple(sorted(leaves - inner))
    for _ in range(LEVELS):
        if not leaves & traced.keys():
            return
        leaves = {
            leaf for place in leaves for leaf in (traced[place].leaves if place in traced else (place,))
        }
        yield tuple(sorted(leaves))


def _value(
    place: int, known: dict[int, Int[np.ndarray, " rows"]], traced: dict[int, _Traced]
) -> Int[np.ndarray, " rows"]:
    """A unit for each row, from what is known of those that it depends on."""
    if place not in known:
        own = traced[place]
        index = sum(_value(leaf, known, traced) << i for i, leaf in enumerate(own.leaves))
        known[place] = own.values[index]
    return known[place]


def _gate(make: CircuitBuilder, values: Int[np.ndarray, " rows"], wires: Sequence[Wire]) -> Wire:
    """The gate with this truth table, case by case on the last of its inputs."""
    if (values == values[0]).all():
        return make.constant(bool(values[0]))
    low, high = np.split(values, 2)
    if (low == high).all():
        return _gate(make, low, wires[:-1])
    if (low != high).all():
        return make.xor(wires[-1], _gate(make, low, wires[:-1]))
    return make.where(wires[-1], _gate(make, high, wires[:-1]), _gate(make, low, wires[:-1]))
