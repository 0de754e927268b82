"""The families of questions, and how large a question of a family must be for a network of so many ReLUs."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from tapegrad._draws import Draws
from tapegrad._vnn import clauses, factoring, miters, preimages, reaching, votes
from tapegrad._vnn.guard import PAPER, relu_count
from tapegrad._vnn.question import Question
from tapegrad.errors import InputError

WIDE = 5_000
"""With more ReLUs than this, questions of families that have both are asked bit by bit: no layer is wider
than some two thousand units then, and files stay small."""


@dataclass(frozen=True)
class Family:
    """Questions of one kind, by a size of their own: bits, corners, pixels, rounds, steps."""

    name: str
    summary: str
    question: Callable[[int, bool, Draws], Question]
    smallest: int
    largest: int
    serial: Callable[[int, bool, Draws], Question] | None = None
    """Large questions, bit by bit (`tapegrad._vnn.rounds`), where those of `question` are wide."""


FAMILIES = {
    family.name: family
    for family in (
        Family(
            "factoring",
            "is N a product of two numbers of w bits?",
            factoring.question,
            factoring.SMALLEST,
            factoring.LARGEST,
            factoring.serial,
        ),
        Family(
            "miter",
            "do two circuits that multiply ever differ, one of them mutated or not?",
            miters.question,
            miters.SMALLEST,
            miters.LARGEST,
            miters.serial,
        ),
        Family(
            "preimage",
            "has a digest of a reduced hash a preimage?",
            preimages.question,
            preimages.SMALLEST,
            preimages.LARGEST,
        ),
        Family(
            "sat",
            "has a formula of parities a solution?",
            clauses.question,
            clauses.SMALLEST,
            clauses.LARGEST,
            clauses.serial,
        ),
        Family(
            "robustness",
            "does a majority of pixels turn over within a radius?",
            votes.question,
            votes.SMALLEST,
            votes.LARGEST,
            votes.serial,
        ),
        Family(
            "reachability",
            "is a Turing machine in this state after T steps?",
            reaching.question,
            reaching.SMALLEST,
            reaching.LARGEST,
        ),
    )
}


def family_named(name: str) -> Family:
    """The family of this name."""
    if name not in FAMILIES:
        raise InputError(f"there is no family {name!r}", advice=f"Choose from {', '.join(FAMILIES)}.")
    return FAMILIES[name]


def draws_for(seed: int, *what: object) -> Draws:
    """A stream of its own for whatever is drawn."""
    named = "/".join(map(str, (seed, *what)))
    return Draws(int.from_bytes(hashlib.sha256(named.encode()).digest()[:8], "big"))


def asker(name: str, relus: int) -> Callable[[int, bool, Draws], Question]:
    """What makes the questions of a family for networks of so many ReLUs."""
    family = FAMILIES[name]
    return family.question if family.serial is None or relus <= WIDE else family.serial


@cache
def fitting(name: str, relus: int, form: str = PAPER) -> int:
    """The greatest size of a family whose networks have at most so many ReLUs, or its smallest size. A sample
    stands for all networks of a size, which are alike."""
    family = FAMILIES[name]
    ask = asker(name, relus)

    def fits(size: int) -> bool:
        return relu_count(ask(size, True, draws_for(0, name, size)).parts, form) <= relus

    low = high = family.smallest
    while high < family.largest and fits(min(2 * high, family.largest)):
        low = high = min(2 * high, family.largest)
    high = min(2 * high, family.largest)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
