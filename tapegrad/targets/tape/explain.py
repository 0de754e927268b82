"""The net in words: what each weight and each unit stands for."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import InputError

if TYPE_CHECKING:
    from tapegrad.targets.tape.net import TapeNet


_MOVE = {-1: "left", 0: "nowhere", 1: "right"}


def units(net: "TapeNet") -> Iterator[str]:
    """`s/5`: a vertex; `edge/7`: an edge; `T/1/-3`, `H/1/-3`: tape 1, cell -3; `z/0`: a label."""
    yield from (f"s/{vertex}" for vertex in range(len(net.graph.down)))
    yield from (f"edge/{edge}" for edge in range(len(net.graph.edge_from)))
    for tape in range(net.tapes):
        for cell in range(net.first_cell, net.first_cell + net.cells):
            if tape >= net.read_only:
                yield f"T/{tape}/{cell}"
            yield f"H/{tape}/{cell}"
    yield from (f"z/{label}" for label in range(np.size(net.error.y)))


def explain(net: "TapeNet", unit: str) -> str:
    """A sentence or two on one unit."""
    kind, *numbers = unit.split("/")
    try:
        places = [int(number) for number in numbers]
        if kind == "s" and len(places) == 1 and 0 <= places[0] < len(net.graph.down):
            return _vertex(net, places[0])
        if kind == "edge" and len(places) == 1 and 0 <= places[0] < len(net.graph.edge_from):
            return _edge(net, places[0])
        if kind in ("T", "H") and _on_tape(net, *places):
            return _cell(net, kind, *places)
        if kind == "z" and 0 <= places[0] < np.size(net.error.y):
            return (
                f"Copy of label number {places[0]}: 0 before the first gradient step, the label after it "
                "(section 5.2). The machine and f_perp see it through a stop-gradient."
            )
    except (ValueError, TypeError, IndexError):
        pass
    raise InputError(f"the net has no unit {unit!r}", advice="Units are s/5, edge/7, T/0/-3, H/0/-3 or z/0.")


def _on_tape(net: "TapeNet", tape: int, cell: int) -> bool:
    inside = net.first_cell <= cell < net.first_cell + net.cells
    return 0 <= tape < net.tapes and inside


def state_of(net: "TapeNet", vertex: int) -> str:
    """The control state of a vertex."""
    return net.states[vertex // 2**net.tapes]


def symbols(net: "TapeNet", signs: NDArray[np.int8]) -> str:
    """-1 and +1 as the machine's symbols."""
    return " ".join(net.symbols[-1] if sign > 0 else net.symbols[0] for sign in signs)


def _named(net: "TapeNet", vertex: int) -> str:
    return f"state {state_of(net, vertex)!r} reading {symbols(net, net.graph.down[vertex])}"


def _vertex(net: "TapeNet", vertex: int) -> str:
    named = _named(net, vertex)
    weight = net.graph.vertex_weight[vertex]
    if weight < 0:
        return (
            f"Vertex of {named}, which halts: its weight {weight:g} = -b^3 lets the loss drop under B_stop."
        )
    write = symbols(net, net.graph.written[vertex])
    moves = ", ".join(_MOVE[int(move)] for move in net.graph.moves[vertex])
    return f"Vertex of {named}: writes {write} (T_next), moves {moves} (S). Loss (21), section 4.4."


def _edge(net: "TapeNet", edge: int) -> str:
    source, target = int(net.graph.edge_from[edge]), int(net.graph.edge_to[edge])
    return (
        f"Edge from {_named(net, source)} to {_named(net, target)}, weight {net.graph.edge_weight[edge]:g} "
        "as in (17): a slide along which s moves when the machine takes this step."
    )


def _cell(net: "TapeNet", kind: str, tape: int, cell: int) -> str:
    if kind == "T":
        return (
            f"Tape {tape + 1}, cell {cell}: +1 holds {net.symbols[-1]!r}, -1 holds {net.symbols[0]!r}. "
            "Written by the first least-squares term of (21), read by the second."
        )
    return f"1 if the head of tape {tape + 1} is at cell {cell}, else 0; moved by the last term of (21)."
