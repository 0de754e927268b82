"""Sources as functions: what a circuit, and one step of whatever takes steps, does to bits."""

from collections.abc import Sequence

from tapegrad_check.core.functions import Functions
from tapegrad_check.sources import Circuit


def wires(functions: Functions, circuit: Circuit, inputs: Sequence[int]) -> list[int]:
    """The function of every wire of a circuit on these inputs."""
    found = list(inputs)
    rows = zip(circuit.kinds.tolist(), circuit.left.tolist(), circuit.right.tolist(), strict=True)
    for kind, left, right in rows:
        constant = kind in (0, 15)  # its operands are 0, and there may be no wire 0
        found.append(kind & 1 if constant else gate(functions, kind, found[left], found[right]))
    return found


def gate(functions: Functions, kind: int, a: int, b: int) -> int:
    """The gate whose truth table is `kind`: bit 2a + b is its value for operands a, b."""
    low, high = kind & 3, kind >> 2
    if low == high:  # b alone matters
        return (0, b ^ 1, b, 1)[low]
    if low == high ^ 3:  # a, xor b if that matters
        return functions.xor(a, (1, b ^ 1, b, 0)[low]) if low in (1, 2) else a ^ (low == 3)
    if kind.bit_count() == 3:
        return gate(functions, kind ^ 15, a, b) ^ 1
    at = kind.bit_length() - 1
    return functions.and_(a ^ (at < 2), b ^ (at % 2 == 0))
