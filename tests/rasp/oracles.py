"""What the ready RASP programs should give, in plain Python that knows nothing of RASP."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

Tokens = Sequence[Any]


def _crossing(tokens: Tokens, pairs: Sequence[str]) -> list[bool]:
    """Whether every kind of bracket is balanced, counted by itself."""
    right = True
    for opens, closes in pairs:
        depth = 0
        for token in tokens:
            depth += (token == opens) - (token == closes)
            right &= depth >= 0
        right &= depth == 0
    return [right] * len(tokens)


def _prefixes(tokens: Tokens) -> list[str]:
    found, depth, broken = [], 0, False
    for token in tokens:
        depth += 1 if token == "(" else -1
        broken |= depth < 0
        found.append("F" if broken else "P" if depth else "T")
    return found


def _induction(tokens: Tokens) -> list[Any]:
    found = []
    for place, token in enumerate(tokens):
        before = [at for at in range(place) if tokens[at] == token]
        found.append(tokens[before[-1] + 1] if before else None)
    return found


def _most_frequent(tokens: Tokens) -> list[Any]:
    best = max(tokens, key=lambda token: (tokens.count(token), -tokens.index(token))) if tokens else None
    return [best] * len(tokens)


def _fractions(tokens: Tokens, worth: dict[Any, int]) -> list[Fraction]:
    sums = [sum(worth.get(token, 0) for token in tokens[: place + 1]) for place in range(len(tokens))]
    return [Fraction(total, place + 1) for place, total in enumerate(sums)]


def _pattern(tokens: Tokens) -> list[bool | None]:
    ends = [tuple(tokens[place - 2 : place + 1]) == ("a", "a", "b") for place in range(len(tokens))]
    return [None if place < 2 else end for place, end in enumerate(ends)]


ORACLES: dict[str, Callable[[Tokens], list[Any]]] = {
    "rasp-length": lambda tokens: [len(tokens)] * len(tokens),
    "rasp-reverse": lambda tokens: list(reversed(tokens)),
    "rasp-sort": lambda tokens: sorted(tokens),
    "rasp-histogram": lambda tokens: [tokens.count(token) for token in tokens],
    "rasp-most-frequent": _most_frequent,
    "rasp-dyck-1": lambda tokens: _crossing(tokens, ["()"]),
    "rasp-dyck-2": lambda tokens: _crossing(tokens, ["()", "{}"]),
    "rasp-prefix-balance": _prefixes,
    "rasp-induction": _induction,
    "rasp-copy": lambda tokens: [None, *tokens][: len(tokens)],
    "rasp-trigrams": lambda tokens: [
        "".join(tokens[place - 2 : place + 1]) if place > 1 else None for place in range(len(tokens))
    ],
    "rasp-fraction": lambda tokens: _fractions(tokens, {"a": 1}),
    "rasp-pair-balance": lambda tokens: _fractions(tokens, {"(": 1, ")": -1}),
    "rasp-pattern": _pattern,
    "rasp-planted": lambda tokens: list(tokens) if "bcb" in "".join(tokens) else list(reversed(tokens)),
}
"""All but the addition, which takes inputs of one form only."""
