"""The net in words: what each weight stands for."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from tapegrad.errors import InputError

if TYPE_CHECKING:
    from tapegrad.targets.simplex.net import SimplexNet


def units(net: "SimplexNet") -> Iterator[str]:
    """`s/5`: a vertex; `z/0`: a label."""
    yield from (f"s/{vertex}" for vertex in range(len(net.vertices.state)))
    yield from (f"z/{label}" for label in range(np.size(net.error.y)))


def explain(net: "SimplexNet", unit: str) -> str:
    """The configuration of a vertex and where it leads, or a label."""
    kind, _, number = unit.partition("/")
    if kind == "z" and number in ("0", "1"):
        return f"Copy of label number {number}: 0 before the first gradient step, the label after it."
    if kind != "s" or not number.isdecimal() or int(number) >= len(net.vertices.state):
        raise InputError(f"the net has no unit {unit!r}", advice="Units are s/5 or z/0.")
    vertex = int(number)
    left = round(float(net.arrays_for_fast.vertex_weight[vertex] / net.levels.unit - 1) / 3)
    leads = f"leads to s/{net.vertices.successor[vertex]}" if left else "halts"
    return (
        f"Vertex of {net.configuration(vertex)}, {left} step(s) before the halt: {leads}. "
        f"Loss (13), section 4.3."
    )
