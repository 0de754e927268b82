"""Look-up: remember every sample, answer by the k nearest."""

from collections.abc import Sequence
from typing import Any

from tapegrad.circuits import Array, UInt, concat, count_ones, where
from tapegrad.errors import SourceError
from tapegrad.learners.asked import AskedLearner, Scores, asked
from tapegrad.learners.counted import counted


def nearest(n: int, samples: int, k: int = 1, *, classes: int = 2, scores: bool = False) -> AskedLearner:
    """Remembers `samples` samples and answers by a vote of the k nearest in Hamming distance; of two at the
    same distance the earlier counts as nearer, and of two classes with as many votes the smaller one is the
    answer. With k = 1 this is a look-up table. Its scores are the votes for each class.

    The k nearest are found by radix selection, from the highest bit of the distances to the lowest: those
    where the bit is 0 are either enough, and the others are out, or all of them are chosen.
    """
    if not 1 <= k <= samples:
        raise SourceError(f"{k} neighbours cannot be found among {samples} sample{'s' * (samples != 1)}")
    label, vote = UInt((classes - 1).bit_length()), UInt(k.bit_length())

    def update(memory: Any, x: Any, y: Any, r: Any) -> dict[str, Any]:
        xs, ys = memory["xs"].copy(), memory["ys"].copy()
        xs[memory["seen"]] = concat(x)
        ys[memory["seen"]] = concat(y)
        return {"xs": xs, "ys": ys}

    def votes(memory: Any, x: Any) -> list[Any]:
        chosen = nearest_of([count_ones(stored ^ concat(x)) for stored in memory["xs"]], vote(k))
        by_class = (
            [c & (y == own) for c, y in zip(chosen, memory["ys"], strict=True)] for own in range(classes)
        )
        return [count_ones(those).to(vote) for those in by_class]

    def predict(memory: Any, x: Any) -> Any:
        return most(votes(memory, x))

    return asked(
        features=n,
        classes=classes,
        predict=predict,
        scores=Scores([vote] * classes, votes) if scores else None,
        **counted(
            samples,
            name=f"{k} nearest of {samples} samples of {n} bits",
            memory={"xs": Array(UInt(n), samples), "ys": Array(label, samples)},
            update=update,
        ),
    )


def nearest_of(distances: Sequence[Any], k: Any) -> list[Any]:
    """Which of these are among the k smallest; of equal ones the earlier."""
    possible, chosen, room = [d == d for d in distances], [d != d for d in distances], k
    for bit in reversed(range(distances[0].type.width)):
        near = [here & ~d[bit] for here, d in zip(possible, distances, strict=True)]
        count = count_ones(near)
        enough = count >= room
        chosen = [c | (a & ~enough) for c, a in zip(chosen, near, strict=True)]
        possible = [here & ~(d[bit] ^ ~enough) for here, d in zip(possible, distances, strict=True)]
        room = where(enough, room, (room - count).to(k.type))
    return [c | a for c, a in zip(chosen, first_of(possible, room), strict=True)]


def first_of(those: Sequence[Any], room: Any) -> list[Any]:
    """Of the bits that are 1, the first ones, as many as there is room for."""
    if len(those) == 1:
        return [those[0] & (room != 0)]
    half = len(those) // 2
    before = count_ones(those[:half])
    left = where(before < room, (room - before).to(room.type), room.type(0))
    return first_of(those[:half], room) + first_of(those[half:], left)


def most(words: Sequence[Any]) -> Any:
    """Where the largest of the integers is, the first of several: a bit for two, else an unsigned integer."""
    if len(words) == 2:
        return words[1] > words[0]
    label = UInt((len(words) - 1).bit_length())
    best, place = words[0], label(0)
    for number, word in enumerate(words[1:], 1):
        better = word > best
        best, place = where(better, word, best), where(better, label(number), place)
    return place
