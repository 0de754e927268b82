"""Two questions about a circuit that need one pass over its gates, compiled: how deep, and what for."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tapegrad.circuits.model import ARITY, Circuit


def levels(circuit: Circuit, *, constants: int = 0) -> NDArray[np.int32]:
    """For every wire the length of the longest path to it; inputs stand at 0, constants where asked."""
    return _levels(len(circuit.inputs), ARITY[circuit.kinds], circuit.left, circuit.right, constants)


def needed(circuit: Circuit) -> NDArray[np.bool_]:
    """For every wire whether some output depends on it."""
    first = len(circuit.inputs)
    return _needed(first, ARITY[circuit.kinds], circuit.left, circuit.right, circuit.output_wires)


@njit(cache=True)
def _levels(first, arity, left, right, constants):
    found = np.zeros(first + len(arity), np.int32)
    for gate in range(len(arity)):
        if arity[gate] == 0:
            found[first + gate] = constants
        elif arity[gate] == 1:
            found[first + gate] = 1 + found[left[gate]]
        else:
            found[first + gate] = 1 + max(found[left[gate]], found[right[gate]])
    return found


@njit(cache=True)
def _needed(first, arity, left, right, output_wires):
    found = np.zeros(first + len(arity), np.bool_)
    for wire in output_wires:
        found[wire] = True
    for gate in range(len(arity) - 1, -1, -1):
        if found[first + gate]:
            if arity[gate] >= 1:
                found[left[gate]] = True
            if arity[gate] == 2:
                found[right[gate]] = True
    return found
