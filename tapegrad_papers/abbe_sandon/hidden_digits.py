"""Section 6.3 of Abbe, Sandon: sums in unknown symbols, learned by descent and by a compiled learner.

An input lists n numbers of n digits in base n, then a place among the digits of their sum (of which there
are n + 1, and the first is not asked for), then a digit. The function says whether the sum has that digit
there. There is one function for each way to give the n symbols their values.
"""

from dataclasses import dataclass
from itertools import permutations
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad.circuits import Array, Bit, UInt, any_of, count_ones, where
from tapegrad.learners import FunctionLearner
from tapegrad_papers.abbe_sandon.cross_predictability import Function, FunctionClass, Values
from tapegrad_papers.abbe_sandon.rivals import Errors, Learned, fit, until_done

Meaning = tuple[int, ...]
"""The value of each symbol."""


def draw_inputs(n: int, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Uniform: n * n symbols, most significant first, number by number; the place, from 0 for the units; the
    symbol at that place."""
    return rng.integers(0, n, (count, n * n + 2))


def matches(inputs: NDArray[np.int64], n: int, meaning: Meaning) -> NDArray[np.bool_]:
    """Whether the sum has the digit, by arithmetic on integers."""
    values = np.asarray(meaning)[inputs]
    powers = n ** np.arange(n - 1, -1, -1)
    total = (values[:, : n * n].reshape(-1, n, n) @ powers).sum(axis=1)
    return total // n ** inputs[:, -2] % n == values[:, -1]


def centred(answers: NDArray[np.bool_], n: int) -> Values:
    """Outputs of mean 0 and mean square 1: one answer in n is yes, for the last symbol is independent of the
    sum and its value uniform."""
    return np.where(answers, sqrt(n - 1), -1 / sqrt(n - 1))


def meanings(n: int) -> list[Meaning]:
    """All ways to give the symbols their values."""
    return list(permutations(range(n)))


def hidden_digit_sums(n: int) -> FunctionClass:
    """The class, with a uniformly random meaning of the symbols."""

    def function(rng: np.random.Generator) -> Function:
        meaning = tuple(rng.permutation(n).tolist())
        return lambda x: centred(matches(x, n, meaning), n)

    return FunctionClass(f"sums in base {n}", lambda rng, count: draw_inputs(n, count, rng), function)


def all_inputs(n: int) -> NDArray[np.int64]:
    """Every input, for small n: n^(n*n + 2) of them."""
    return np.indices((n,) * (n * n + 2), dtype=np.int8).reshape(n * n + 2, -1).T.astype(np.int64)


def consistent(inputs: NDArray[np.int64], answers: NDArray[np.bool_], n: int) -> list[Meaning]:
    """The meanings that explain all answers."""
    return [m for m in meanings(n) if (matches(inputs, n, m) == answers).all()]


@dataclass(frozen=True)
class Arithmetic:
    """The same sums for both networks; errors are balanced over the two answers."""

    base: int
    perceptron: Errors
    perceptron_samples: int
    emulator: Learned


def digit_sums(n: int) -> FunctionLearner:
    """Crosses out every meaning of the symbols that a sample contradicts, until one is left. Symbols come in
    as many bits as they need; the memory has a bit for each of the n! meanings."""
    width = max(1, (n - 1).bit_length())
    every = meanings(n)

    def answers(x: Any) -> list[Any]:
        symbols = [[x[width * i + b] for b in range(width)] for i in range(n * n + 2)]
        return [_matches(n, meaning, symbols) for meaning in every]

    def update(memory: Any, x: Any, y: Any, r: Any) -> list[Any]:
        return [out | (said ^ y) for out, said in zip(memory, answers(x), strict=True)]

    def predict(memory: Any, x: Any) -> Any:
        return any_of(~out & said for out, said in zip(memory, answers(x), strict=True))

    return FunctionLearner(
        name=f"sums in base {n} with hidden digits",
        x=Array(Bit, width * (n * n + 2)),
        memory=[Bit] * len(every),
        update=update,
        predict=predict,
        done=lambda memory: count_ones(~out for out in memory) == 1,
    )


def _matches(n: int, meaning: Meaning, symbols: list[list[Any]]) -> Any:
    """School addition from the units up, carries and all, and the digit asked for at the end."""
    digits = [_is(symbol, n) for symbol in symbols]
    place, asked = digits[-2], _value(digits[-1], meaning)
    carry: Any = UInt(8)(0)
    found: Any = UInt(8)(0)
    for column in range(n):
        total = carry
        for number in range(n):
            total = total + _value(digits[n * number + n - 1 - column], meaning)
        quotient, rest = _divided(total, n)
        found = where(place[column], rest, found)
        carry = quotient
    return found == asked


def _is(symbol: list[Any], n: int) -> list[Any]:
    """For each of n symbols whether this is the one."""
    return [
        ~any_of(bit if not value >> b & 1 else ~bit for b, bit in enumerate(symbol)) for value in range(n)
    ]


def _value(one_hot: list[Any], meaning: Meaning) -> Any:
    total: Any = UInt(8)(0)
    for symbol, value in zip(one_hot, meaning, strict=True):
        total = where(symbol, UInt(8)(value), total)
    return total


def _divided(total: Any, n: int) -> tuple[Any, Any]:
    """Quotient and rest by n, by subtracting as often as a column of n digits and a carry may need."""
    quotient: Any = UInt(8)(0)
    for _ in range(n):
        enough = total >= n
        quotient = where(enough, quotient + 1, quotient)
        total = where(enough, total - n, total)
    return quotient, total


def arithmetic(n: int = 3, count: int = 3000, epochs: int = 30, seed: int = 0) -> Arithmetic:
    """The perceptron sees `count` sums with each symbol one-hot; the compiled learner as many as it needs."""
    rng = np.random.default_rng(seed)
    meaning = tuple(rng.permutation(n).tolist())
    train, test = (draw_inputs(n, count, rng) for _ in range(2))
    y, truth = matches(train, n, meaning), matches(test, n, meaning)
    one_hot = np.eye(n, dtype=np.int64)
    inputs = [one_hot[part].reshape(len(part), -1) for part in (train, test)]
    errors = fit((inputs[0], y), (inputs[1], truth), epochs=epochs, seed=seed)
    return Arithmetic(n, errors, count, _by_emulator(n, meaning, train, test, seed))


def _by_emulator(n: int, meaning: Meaning, train: np.ndarray, test: np.ndarray, seed: int) -> Learned:
    learner = digit_sums(n)
    width = learner.inputs // (n * n + 2)

    def bits(rows: np.ndarray) -> np.ndarray:
        return (rows[:, :, None] >> np.arange(width) & 1).reshape(len(rows), -1)

    net, carry = until_done(learner, bits(train), matches(train, n, meaning).astype(int), seed)
    said = net.outputs(carry, bits(test), np.zeros(len(test), int)) > 0
    return Learned(carry.steps, float(np.mean(said == matches(test, n, meaning))))
