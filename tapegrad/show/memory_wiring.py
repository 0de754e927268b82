"""What a position of a transformer with memories consists of: its bits and which of them each is computed
from, read off the weights; or of a large one its layers."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tapegrad.attention.clocked import ClockPorts
from tapegrad.circuits.model import Gate
from tapegrad.networks.heads import Block
from tapegrad.networks.numpy import chain
from tapegrad.show.drawing.layers import Units
from tapegrad.show.drawing.position import Inside, inside_of, inside_of_columns
from tapegrad.show.drawing.scene import Node, cut
from tapegrad.show.views_relu import SIGNS
from tapegrad.targets.transformer.memory_net import MemoryNet

LONGEST_NAME = 9
MOST_BITS = 1500
"""Beyond, not all of them can be drawn anyway."""
MOST_COLUMNS = 90


@dataclass(frozen=True)
class Wiring:
    """The inside of a position: for each node its layer of the decoder (-1 for what a step begins with) and
    the coordinates that it stands for; the node of each layer with a head; and the ends of all edges."""

    inside: Inside
    block_of: list[int]
    holds: list[NDArray[np.intp]]
    of_block: dict[int, int]
    ends: list[tuple[int, int]]


def wiring(net: MemoryNet) -> Wiring:
    """Bit by bit, or of a large net by its layers."""
    return _by_units(net) or _by_columns(net)


def _by_units(net: MemoryNet) -> Wiring | None:
    """A node for every bit; None if there are too many."""
    names, blocks, carried = _names(net), net.decoder.blocks, _carried(net)
    if net.stream.width > MOST_BITS:
        return None
    latches = net.stream.group("latches") if "latches" in net.layout.registers else []
    nodes, layer_of, block_of, holds, ends, layer = [], [], [], [], [], 0
    at: dict[int, int] = {}
    of_block: dict[int, int] = {}

    def add(text: str, words: str, shape: str, block: int, place: int, reads: list[int]) -> int:
        ends.extend((at[read], len(nodes)) for read in dict.fromkeys(reads) if read in at)
        nodes.append(Node(text, words, shape))
        layer_of.append(layer)
        block_of.append(block)
        holds.append(np.array([place], np.intp))
        return len(nodes) - 1

    for place in [*carried, *net.decoder.time]:
        said = f"{names[place]}, as the step before has handed it on."
        at[place] = add(cut(names[place], LONGEST_NAME), said, "box", -1, place, [])
    for number, block in enumerate(blocks[:-1]):
        layer += 1
        targets = np.asarray(block.adds_to).tolist()
        if block.attentions():
            asks = block.attentions()[0].query.entries().columns.tolist()
            said = f"Layer {number + 1}: {block.purpose}."
            head = of_block[number] = add("head", said, "box", number, targets[-1], asks)
            layer += 1
            for place in targets:
                said = f"{names[place]}, copied by a head."
                at[place] = add(cut(names[place], LONGEST_NAME), said, "box", number, place, [])
                ends.append((head, at[place]))
            continue
        for row, place in enumerate(targets):
            reads, sign = _gate(block, row)
            said = f"Layer {number + 1}: a bit that ReLU units compute from {_counted(len(reads))}."
            at[place] = add(sign, said, "gate" if sign else "dot", number, place, reads)
    last = blocks[-1].feed_forward[0].map.entries()
    layer += 1
    for place in carried:
        mark = "′" if place in latches else ""  # what a latch becomes, beside an output of that name
        text, said = f"{cut(names[place], LONGEST_NAME)}{mark}", f"{names[place]}, as this step hands it on."
        reads = [column for column, _ in last.row(place)]
        add(text, said, "box", len(blocks) - 1, place, reads)
    return _pruned(Wiring(Inside(nodes), block_of, holds, of_block, ends), layer_of, len(blocks) - 1)


def _carried(net: MemoryNet) -> list[int]:
    """The coordinates of registers."""
    return [place for name in net.layout.registers for place in net.stream.group(name)]


def _counted(bits: int) -> str:
    return ("nothing: a constant", "another one", "two others")[bits] if bits < 3 else f"{bits} others"


def _pruned(full: Wiring, layer_of: list[int], last: int) -> Wiring | None:
    """Without bits that nothing reads, and in few layers; None if it is still too large to be drawn."""
    read = {a for a, _ in full.ends}
    kept = [node for node, block in enumerate(full.block_of) if block == last or node in read]
    number = {node: place for place, node in enumerate(kept)}
    ends = [(number[a], number[b]) for a, b in full.ends if a in number and b in number]
    used = sorted({layer_of[node] for node in kept})
    nodes = [full.inside.nodes[node] for node in kept]
    units = Units(nodes, [used.index(layer_of[node]) for node in kept], ends, [1.0] * len(ends))
    if not units.drawable:
        return None
    return Wiring(
        inside_of(units),
        [full.block_of[node] for node in kept],
        [full.holds[node] for node in kept],
        {block: number[node] for block, node in full.of_block.items()},
        ends,
    )


def _gate(block: Block, row: int) -> tuple[list[int], str]:
    """The coordinates that a bit is computed from, and the sign of the gate, from its truth table as the
    units compute it; nothing for one that passes a bit on."""
    units, sums = (layer.map.entries() for layer in block.feed_forward)
    mine = [unit for unit, _ in sums.row(row)]
    reads = sorted({column for unit in mine for column, _ in units.row(unit)})
    if len(reads) > 2:
        return reads, "?"
    a = reads[0] if reads else 0
    b = reads[1] if len(reads) > 1 else a
    table = 0
    for case in range(4):
        vector = np.zeros(units.width, np.float32)
        vector[b] = case & 1
        vector[a] = case >> 1
        table |= int(chain(block.feed_forward, vector)[row] > 0.5) << case
    kind = next((gate for gate in Gate if gate == table), None)
    return reads, "?" if kind is None else SIGNS.get(kind, "")


def _names(net: MemoryNet) -> list[str]:
    """Of coordinates; those of a circuit as the circuit calls them."""
    names = list(net.stream.names)
    if not isinstance(net.machine, ClockPorts):
        return names
    source = net.machine.source
    copied = next(block for block in net.decoder.blocks if block.attentions())
    head = np.asarray(copied.adds_to).tolist()
    own = {"outputs": source.outputs, "latches": source.latches, "trap": ("ended",)}
    for group, called in own.items():
        if group in net.layout.registers:
            for place, name in zip(net.stream.group(group), called, strict=True):
                names[place] = name
    for bit, place in enumerate(net.stream.group("taken")):
        names[place] = f"cycle[{bit}]"
    for place, name in zip(head, ("last", *source.inputs, "found"), strict=True):
        names[place] = name
    return names


def _by_columns(net: MemoryNet) -> Wiring:
    """A column for each head, and for layers of gates in a row, so many that there are few columns."""
    blocks = net.decoder.blocks
    heads = len({block.purpose.split(": digit")[0] for block in blocks if block.attentions()})
    gates = sum(not block.attentions() for block in blocks)
    each = -(-gates // max(1, MOST_COLUMNS - heads))
    columns: list[tuple[str, list[int]]] = []
    for number, block in enumerate(blocks[:-1]):
        what = f"a head, {block.purpose.split(': digit')[0]}" if block.attentions() else "gates"
        full = what == "gates" and columns and len(columns[-1][1]) >= each
        if not columns or columns[-1][0] != what or full:
            columns.append((what, []))
        columns[-1][1].append(number)
    carried = np.array(_carried(net), np.intp)
    holds = [carried]
    block_of, words, of_block = [-1], ["What the step before has handed on."], {}
    for what, numbers in columns:
        for number in numbers:
            of_block[number] = len(holds)
        holds.append(np.concatenate([np.asarray(blocks[number].adds_to) for number in numbers]))
        block_of.append(numbers[-1])
        layers = (
            f"Layer {numbers[0] + 1}"
            if len(numbers) == 1
            else f"Layers {numbers[0] + 1} to {numbers[-1] + 1}"
        )
        words.append(f"{layers}: {what}; {len(holds[-1]):,} bits.")
    holds.append(carried)
    block_of.append(len(blocks) - 1)
    words.append("What this step hands on.")
    return Wiring(inside_of_columns([len(own) for own in holds], words), block_of, holds, of_block, [])
