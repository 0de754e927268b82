"""Random RASP programs: typed, without dead code, and with an output that is not always the same."""

from itertools import product

import numpy as np

from tapegrad.errors import Refused, TapegradError
from tapegrad.rasp.closing import Closing
from tapegrad.rasp.functions import COMPARISONS, is_number
from tapegrad.rasp.nodes import Aggregate, Combine, Full, Indices, Select, Sequence_, Tokens, Width
from tapegrad.rasp.program import RaspProgram

ATTEMPTS = 64
MOST_VALUES = 40
"""Of a sequence: what a random function is applied to stays small."""
TRIED = 3
"""Lengths of the inputs on which an output has to differ."""


def random_program(seed: int) -> RaspProgram:
    """A small random program, the same for the same seed."""
    random = np.random.default_rng(seed)
    for _ in range(ATTEMPTS):
        try:
            found = _attempt(random, f"random {seed}")
        except TapegradError:
            continue
        if found is not None and _varies(found):
            return found
    raise Refused(f"no program was found for the seed {seed}", advice="Try another seed.")


def _attempt(random: np.random.Generator, name: str) -> RaspProgram | None:
    vocabulary = tuple("abcd"[: random.integers(2, 5)]) if random.random() < 0.6 else (1, 2, 3)
    closing = Closing(vocabulary, int(random.integers(2, 8)), bool(random.random() < 0.4))
    closing.add(Tokens())
    closing.add(Indices())
    for _ in range(random.integers(3, 9)):
        _grow(closing, random)
    sequences = [n for n, node in enumerate(closing.nodes) if isinstance(node, Sequence_)]
    output = sequences[-1]
    if isinstance(closing.nodes[output], Tokens | Indices | Full):
        return None
    return closing.program(output, name)


def _grow(closing: Closing, random: np.random.Generator) -> None:
    """One more node, of random kind, that reads nodes at hand; the latest are the likeliest."""
    sequences = [n for n, node in enumerate(closing.nodes) if isinstance(node, Sequence_)]
    selectors = [n for n in range(len(closing.nodes)) if n not in sequences]

    def one(among: list[int]) -> int:
        weights = np.arange(1, len(among) + 1, dtype=float) ** 2
        return among[int(random.choice(len(among), p=weights / weights.sum()))]

    def numbers(node: int) -> bool:
        return all(is_number(value) for value in closing.values[node])

    kind = random.choice(["select", "combine", "width", "aggregate", "apply"], p=[0.3, 0.1, 0.15, 0.25, 0.2])
    if kind == "select" or (kind in ("combine", "width", "aggregate") and not selectors):
        keys = one(sequences)
        same = [n for n in sequences if numbers(n) == numbers(keys)]
        sign = str(random.choice(COMPARISONS[:6] if numbers(keys) else ("==", "!=")))
        closing.add(Select(keys, one(same), sign))
    elif kind == "combine":
        sign = str(random.choice(["and", "or", "not"]))
        closing.add(Combine(sign, tuple(one(selectors) for _ in range(1 if sign == "not" else 2))))
    elif kind == "width":
        closing.add(Width(one(selectors)))
    elif kind == "aggregate":
        sequence = one(sequences)
        mean = numbers(sequence) and len(closing.values[sequence]) <= 4 and random.random() < 0.5
        closing.add(Aggregate(one(selectors), sequence, 0 if mean else None, bool(mean)))
    else:
        first = one(sequences)
        second = one(sequences) if random.random() < 0.5 else closing.add(Full(int(random.integers(0, 3))))
        arithmetic = numbers(first) and numbers(second)
        signs = ("+", "-", "<", "==", "%", "and", "or") if arithmetic else ("==", "!=")
        if len(closing.values[first]) * len(closing.values[second]) <= MOST_VALUES**2:
            closing.apply(str(random.choice(signs)), (first, second))


def _varies(program: RaspProgram) -> bool:
    """Whether short inputs have outputs with different values."""
    found = set()
    for length in range(1, min(TRIED, program.length) + 1):
        for tokens in product(program.vocabulary, repeat=length):
            try:
                found.update(program.evaluate(tokens)[program.output])
            except TapegradError:
                continue
            if len(found) > 1:
                return True
    return False
