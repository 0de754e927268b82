"""Ordered sets of numbers below n, for compiled code: a bit for each number, a bit for each word of bits that
is not 0, and so on. The first words of the array say where each of these layers begins.

The compiled functions here count no references (`_nrt=False`): they are called millions of times a second
with arrays that live on, and counting would take most of the time.
"""

import numpy as np
from numba.cpython.unsafe.numbers import trailing_zeros
from numpy.typing import NDArray

from tapegrad._jit import njit

at = np.uint64
"""An index: numba asks of every other one whether it is negative."""
NONE = -1
HEAD = 8


def empty_set(n: int) -> NDArray[np.uint64]:
    starts = [HEAD]
    while n > 1 or len(starts) == 1:
        n = -(-n // 64)
        starts.append(starts[-1] + n)
    numbers = np.zeros(starts[-1], np.uint64)
    numbers[: len(starts)] = starts
    return numbers


@njit(_nrt=False, inline="always")
def add(numbers, i):
    layer = 0
    while numbers[at(layer + 1)] != 0:
        word = np.int64(numbers[at(layer)]) + (i >> 6)
        before = numbers[at(word)]
        numbers[at(word)] = before | np.uint64(1) << np.uint64(i & 63)
        if before != 0:
            break
        i >>= 6
        layer += 1


@njit(_nrt=False, inline="always")
def remove(numbers, i):
    layer = 0
    while numbers[at(layer + 1)] != 0:
        word = np.int64(numbers[at(layer)]) + (i >> 6)
        after = numbers[at(word)] & ~(np.uint64(1) << np.uint64(i & 63))
        numbers[at(word)] = after
        if after != 0:
            break
        i >>= 6
        layer += 1


@njit(_nrt=False, inline="always")
def following(numbers, i):
    """The smallest member that is at least i, or NONE."""
    layer = 0
    while numbers[at(layer + 1)] != 0:
        word = np.int64(numbers[at(layer)]) + (i >> 6)
        if word >= np.int64(numbers[at(layer + 1)]):
            break
        rest = numbers[at(word)] >> np.uint64(i & 63)
        if rest != 0:
            i += np.int64(trailing_zeros(rest))  # pyright: ignore[reportCallIssue]
            for below in range(layer - 1, -1, -1):
                i = (i << 6) + np.int64(trailing_zeros(numbers[at(np.int64(numbers[at(below)]) + i)]))  # pyright: ignore[reportCallIssue]
            return i
        i = (i >> 6) + 1
        layer += 1
    return NONE
