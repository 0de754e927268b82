"""Section 6.3 of Abbe, Sandon: sums in unknown symbols, by descent and by a compiled learner."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tapegrad.circuits import Array, Bit, UInt, any_of, count_ones, where
from tapegrad.compile import compile
from tapegrad.learners import FunctionLearner
from tapegrad.targets.emulator.net import PracticalNet
from tapegrad_papers.experiments.compiled_parity import Learned
from tapegrad_papers.experiments.perceptron import Errors, fit
from tapegrad_papers.theory.hidden_digits import Meaning, draw_inputs, matches, meanings


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
    net = compile(learner, "emulator").net
    assert isinstance(net, PracticalNet)
    width = learner.inputs // (n * n + 2)

    def bits(rows: np.ndarray) -> np.ndarray:
        return (rows[:, :, None] >> np.arange(width) & 1).reshape(len(rows), -1)

    carry = net.start(learner.start(bits(train), matches(train, n, meaning).astype(int), seed))
    while carry.answer is None and not net.done(carry):
        carry = net.advance(carry, 1, "fast")
    said = net.outputs(carry, bits(test), np.zeros(len(test), int)) > 0
    return Learned(carry.steps, float(np.mean(said == matches(test, n, meaning))))
