"""What a disguise is made of: bases without rounding, lifetimes of features, directions that they share.

**Bases.** Four coordinates at a time are mixed by a Hadamard matrix of order 4 with entries +-1/2, which is
orthogonal; then the coordinates are shuffled, and so on for a few rounds. The product is orthogonal, and all
its entries are multiples of 2^-rounds. So what was a multiple of a power of two before is one after, and sums
of bits stay without rounding. `quads` has one round, and a feature is spread over 4 coordinates; `hadamard`
has two, and it is spread over 16. A `rotation` is drawn at random from all rotations, and does round.

**Lifetimes.** A feature is there from where it is written. After the last part that reads it, a unit of that
layer can erase it, since it is not negative: relu(x) = x, and -x is added. Then its direction is free. So
features that are never there together share directions, and there can be more of them than dimensions: as
many dimensions are needed as features are there at once. Features that come into freed directions are mixed
once more, so that they overlap with several of those that were there before.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tapegrad.attention.codes import MIXED, START, WORD
from tapegrad.errors import Refused
from tapegrad.interop.sequences import read_by, written_by
from tapegrad.targets.decoder.sequences import SequenceNet

Matrix = NDArray[np.float64]

HADAMARD = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]) / 2
BASES = {"none": 0, "quads": 1, "hadamard": 2, "rotation": 0}
"""The kinds of bases, and how many rounds of mixing they have."""


def basis(kind: str, size: int, random: np.random.Generator) -> Matrix:
    """An orthogonal matrix of a kind."""
    if kind == "rotation":
        made, upper = np.linalg.qr(random.standard_normal((size, size)))
        return made * np.where(np.diag(upper) < 0, -1.0, 1.0)
    found = np.eye(size)
    for _ in range(BASES[kind]):
        found = found[random.permutation(size)] * random.choice([-1.0, 1.0], (size, 1))
        for first in range(0, size - 3, 4):
            found[first : first + 4] = HADAMARD @ found[first : first + 4]
    return found


@dataclass(frozen=True)
class Features:
    """Directions of features, one in each row; and for each layer those that it erases."""

    directions: Matrix
    erased: tuple[tuple[int, ...], ...]


def all_at_once(kind: str, count: int, width: int, random: np.random.Generator) -> Features:
    """A direction for each feature, orthogonal to all others."""
    places = random.permutation(width)[:count] if kind != "none" else np.arange(count)
    return Features(np.ascontiguousarray(basis(kind, width, random)[:, places].T), ())


def layer_of(part: str) -> float:
    """Where a part of the net stands: before all layers, in one, or after all."""
    if part in ("embed", "positions"):
        return -1
    return np.inf if part == "logits" else int(part[1:].partition(".")[0])


def lifetimes(net: SequenceNet) -> tuple[dict[int, float], dict[int, float], set[int]]:
    """For each feature the layer after which it is there, that of the last part that reads it, and which are
    written by heads."""
    born: dict[int, float] = dict.fromkeys((START, WORD, MIXED), -1)
    last: dict[int, float] = {}
    by_heads: set[int] = set()
    for part, places in written_by(net).items():
        for place in places - {MIXED}:
            born[place] = min(layer_of(part), born.get(place, np.inf))
            by_heads |= {place} if part.startswith("a") else set()
    for part, places in read_by(net).items():
        for place in places:
            last[place] = max(layer_of(part), last.get(place, -1))
    for place, (kind, _, _) in enumerate(net.meanings):
        if place in (START, WORD, MIXED) or kind == "number":
            last[place] = np.inf  # a number need not be positive on its way
    return born, last, by_heads


def most_at_once(net: SequenceNet, decoys: int) -> int:
    """How many features are there at once, if each is erased as soon as it can be."""
    born, last, by_heads = lifetimes(net)
    counts = []
    for layer in range(len(net.parts.layers) + 1):
        there = [
            place
            for place, when in born.items()
            if (when < layer or (when == layer and place in by_heads))
            and not _erased_before(when, last.get(place, -1), layer, place in by_heads)
        ]
        counts.append(len(there) + decoys)
    return max(counts)


def _erased_before(born: float, last: float, layer: int, by_head: bool) -> bool:
    """Units that write a feature cannot erase it, but the next ones can."""
    return max(last, born if by_head else born + 1) < layer


def sharing(net: SequenceNet, kind: str, decoys: int, width: int, random: np.random.Generator) -> Features:
    """Directions that features share which are never there together."""
    if any(own == MIXED for layer in net.parts.layers for own in np.asarray(layer.to)):
        raise Refused(
            f"{net.program.name!r} watches for values that are mixed, and after them anything may come",
            advice="Leave out the superposition, or let the selector select one position.",
        )
    least = most_at_once(net, decoys)
    if width < least:
        raise Refused(
            f"{least} features are there at once, which do not fit into {width} dimensions",
            advice=f"The least superposition that will do is {least}.",
        )
    born, last, by_heads = lifetimes(net)
    count, axes = net.parts.width, basis(kind, width, random)
    directions, erased = np.zeros((count + decoys, width)), []
    free = [axes[:, place] for place in random.permutation(width)]

    def settle(features: list[int]) -> None:
        """New features get free directions, mixed among themselves."""
        nonlocal free
        if features:
            taken, free = np.array(free[: len(features)]), free[len(features) :]
            directions[features] = basis(kind, len(features), random) @ taken

    settle([*(place for place, when in born.items() if when < 0), *range(count, count + decoys)])
    there = {place for place, when in born.items() if when < 0}
    for layer in range(len(net.parts.layers)):
        brought = [place for place, when in born.items() if when == layer and place in by_heads]
        settle(brought)
        there |= set(brought)
        gone = sorted(place for place in there if last.get(place, -1) <= layer)
        free += [directions[place] for place in gone]
        random.shuffle(free)
        erased.append(tuple(gone))
        there -= set(gone)
        made = [place for place, when in born.items() if when == layer and place not in by_heads]
        settle(made)
        there |= set(made)
    return Features(directions, tuple(erased))
