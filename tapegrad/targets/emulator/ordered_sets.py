"""Ordered sets of numbers below n, for compiled code: a bit for each number, a bit for each word of bits that
is not 0, and so on. The first words of the array say where each of these layers begins.

The compiled functions here count no references (`_nrt=False`): they are called millions of times a second
with arrays that live on, and counting would take most of the time.
"""

import numpy as np
from numba.cpython.unsafe.numbers import trailing_zeros
from numpy.typing import NDArray

from tapegrad._jit import njit

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
    at = 0
    while numbers[at + 1] != 0:
        word = np.int64(numbers[at]) + (i >> 6)
        before = numbers[word]
        numbers[word] = before | np.uint64(1) << np.uint64(i & 63)
        if before != 0:
            break
        i >>= 6
        at += 1


@njit(_nrt=False, inline="always")
def remove(numbers, i):
    at = 0
    while numbers[at + 1] != 0:
        word = np.int64(numbers[at]) + (i >> 6)
        after = numbers[word] & ~(np.uint64(1) << np.uint64(i & 63))
        numbers[word] = after
        if after != 0:
            break
        i >>= 6
        at += 1


@njit(_nrt=False, inline="always")
def following(numbers, i):
    """The smallest member that is at least i, or NONE."""
    at = 0
    while numbers[at + 1] != 0:
        word = np.int64(numbers[at]) + (i >> 6)
        if word >= np.int64(numbers[at + 1]):
            break
        rest = numbers[word] >> np.uint64(i & 63)
        if rest != 0:
            i += np.int64(trailing_zeros(rest))  # pyright: ignore[reportCallIssue]
            for below in range(at - 1, -1, -1):
                i = (i << 6) + np.int64(trailing_zeros(numbers[np.int64(numbers[below]) + i]))  # pyright: ignore[reportCallIssue]
            return i
        i = (i >> 6) + 1
        at += 1
    return NONE
